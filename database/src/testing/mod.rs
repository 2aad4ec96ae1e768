//! A private real server for tests: on a port of its own, in a directory of its own, as a user that is not root, from the
//! very configuration that a managed pod gets. Stopped by its pid when dropped.

// A test has nobody to hand an error to: what goes wrong here fails it.
#![allow(clippy::expect_used, clippy::missing_panics_doc)]

mod agent;
mod cut;
mod server_root;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crds::parameter::Parameters;
use crds::runner::Connection;
use crds::target::{BootRequest, Engine};
use tempfile::TempDir;

pub use agent::TestAgent;
pub use cut::CutLine;
use server_root::Programs;

use crate::access::Login;
use crate::engine::{self, EngineSupport, Layout};

/// Memory of the pretended pod, bytes.
pub const MEMORY: i64 = 256 << 20;
/// Login of the test server.
pub const USERNAME: &str = "benchmark";
/// Password of the test server: hard to quote on purpose.
pub const PASSWORD: &str = r#"it's a "p\ss; word--"#;
/// Schema of the workload.
pub const SCHEMA: &str = "sbtest";
/// `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server.
pub struct TestServer {
    engine: Engine,
    programs: Programs,
    directory: TempDir,
    layout: Layout,
    process: Option<Child>,
}

impl TestServer {
    /// Starts a server with the target's own configuration only.
    pub fn start() -> Self {
        Self::start_with(&Parameters::new(), None)
    }

    /// Starts a `MariaDB` server for a boot request.
    pub fn start_with(base: &Parameters, request: Option<&BootRequest>) -> Self {
        Self::start_of(Engine::MariaDB, base, request)
    }

    /// Starts a server of an engine for a boot request.
    pub fn start_of(engine: Engine, base: &Parameters, request: Option<&BootRequest>) -> Self {
        let programs = Programs::of(engine);
        let directory = tempfile::Builder::new()
            .prefix("benchmark-server-")
            .tempdir_in("/tmp")
            .expect("a temporary directory");
        let layout = Layout::under(directory.path(), free_port());
        for path in [
            directory.path(),
            Path::new(&layout.temporary),
            Path::new(&layout.volume),
        ] {
            std::fs::create_dir_all(path).expect("a directory");
            give_away(path);
        }
        std::fs::write(&layout.init_sql, support(engine).init_sql(USERNAME, PASSWORD))
            .expect("the init file");
        let mut server = Self {
            engine,
            programs,
            directory,
            layout,
            process: None,
        };
        server.boot(base, request);
        server
    }

    /// Stops the server as a pod is stopped, and starts it with another configuration.
    pub fn restart(&mut self, base: &Parameters, request: Option<&BootRequest>) {
        self.stop();
        self.boot(base, request);
    }

    /// Ends the server without a shutdown, as a power cut does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("the server is ours");
            process.wait().expect("the server's end");
            self.wait_for_its_children();
        }
    }

    /// The processes of a server that has several go on until they notice; those of a pod end with it.
    fn wait_for_its_children(&self) {
        let data = self.layout.data_directory();
        let limit = Instant::now() + Duration::from_secs(10);
        let left = || {
            std::fs::read_dir("/proc")
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
                .any(|folder| folder == Path::new(&data))
        };
        while left() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A login; `agent` is the base URL of an agent, without which the server counts as borrowed.
    pub fn login(&self, agent: Option<&TestAgent>) -> Login {
        Login {
            connection: Connection {
                engine: self.engine,
                host: "127.0.0.1".to_owned(),
                port: self.layout.port,
                tls: None,
                schema: SCHEMA.to_owned(),
                agent: agent.map(|a| a.base().to_owned()),
            },
            username: USERNAME.to_owned(),
            password: PASSWORD.to_owned(),
            certificate_authority: None,
            agent_token: agent.map(|a| a.token().to_owned()),
        }
    }

    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What the server printed.
    pub fn messages(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("messages")).unwrap_or_default()
    }

    /// Runs the command line client as somebody who may do everything.
    pub fn sql(&self, statement: &str) -> String {
        self.sql_in("postgres", statement)
    }

    /// The same in a database of a `PostgreSQL` server.
    pub fn sql_in(&self, database: &str, statement: &str) -> String {
        let mut client = self.programs.command(self.programs.client);
        if self.engine == Engine::PostgreSQL {
            client
                .args(["--host=127.0.0.1", "--set=ON_ERROR_STOP=1"])
                .arg(format!("--port={}", self.layout.port))
                .arg(format!("--username={USERNAME}"))
                .arg(format!("--dbname={database}"))
                .arg(format!("--command={statement}"))
                .env("PGPASSWORD", PASSWORD);
        } else {
            client
                .arg(format!("--socket={}", self.layout.socket()))
                .args(["--execute", statement]);
        }
        let output = client.output().expect("the client runs");
        assert!(
            output.status.success(),
            "{statement}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs sysbench against it; gives what it printed.
    pub fn sysbench(&self, script: &str, command: &str, options: &[&str]) -> String {
        let driver = if self.engine == Engine::PostgreSQL {
            "pgsql"
        } else {
            "mysql"
        };
        let output = Command::new("sysbench")
            .arg(script)
            .arg(format!("--db-driver={driver}"))
            .arg("--rand-type=uniform")
            .arg(format!("--{driver}-host=127.0.0.1"))
            .arg(format!("--{driver}-port={}", self.layout.port))
            .arg(format!("--{driver}-user={USERNAME}"))
            .arg(format!("--{driver}-password={PASSWORD}"))
            .arg(format!("--{driver}-db={SCHEMA}"))
            .args(options)
            .arg(command)
            .output()
            .expect("sysbench runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "sysbench {script} {command}: {text}");
        text
    }

    fn boot(&mut self, base: &Parameters, request: Option<&BootRequest>) {
        let managed = support(self.engine).managed(&self.layout);
        let file = support(self.engine)
            .configuration(&self.layout, base, request, MEMORY)
            .expect("a configuration");
        std::fs::write(&self.layout.configuration, file.text).expect("the configuration");
        let run = |command: &[String]| self.programs.command(command);
        let made = run(&managed.init_command).output().expect("the init command");
        assert!(
            made.status.success(),
            "init: {}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        let messages = std::fs::File::create(self.directory.path().join("messages")).expect("a file");
        let process = run(&managed.server_command)
            .stdin(Stdio::null())
            .stdout(messages.try_clone().expect("a second handle"))
            .stderr(messages)
            .spawn()
            .expect("the server starts");
        self.process = Some(process);
        let limit = Instant::now() + Duration::from_mins(1);
        loop {
            let probe = run(&managed.startup_probe).output().expect("the probe runs");
            if probe.status.success() {
                return;
            }
            let ended = self
                .process
                .as_mut()
                .and_then(|p| p.try_wait().expect("a status"));
            assert!(
                ended.is_none() && Instant::now() < limit,
                "the server did not start: {}",
                self.messages()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        // The stop signal that a PostgreSQL image has; SIGTERM would wait for clients.
        let signal = if self.engine == Engine::PostgreSQL {
            "-INT"
        } else {
            "-TERM"
        };
        let _ = Command::new("kill")
            .args([signal, &process.id().to_string()])
            .status();
        let limit = Instant::now() + Duration::from_mins(1);
        while process.try_wait().expect("a status").is_none() {
            if Instant::now() > limit {
                let _ = process.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn support(engine: Engine) -> &'static dyn EngineSupport {
    engine::find(engine).expect("the engine is in the list")
}

/// A port that nobody listens on now.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn am_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

pub(crate) fn give_away(path: &Path) {
    if am_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("a directory can be given away");
    }
}
