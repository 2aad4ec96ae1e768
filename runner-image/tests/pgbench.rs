//! Real pgbench against a real, private PostgreSQL: how it is started, what its pipes carry, how the window is cut out.

// A test that can't go on fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crds::runner::{Connection, PrepareOrder, RunOrder};
use crds::target::Engine;
use crds::workload::{Pgbench, PgbenchProtocol, PgbenchScript, Workload, WorkloadType};
use database::Login;
use rstest::rstest;
use runner::load::{self, Site};
use runner::parse::pgbench::window::Window;
use runner::parse::result::Reason;
use runner::parse::{self, Capture, Flag, ToolResult};
use runner::process::{self, Lines};

/// `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;
/// Every character that a password file must escape.
const PASSWORD: &str = r"p:a\ss word";
const SECONDS: u32 = 3;

/// A running server, ended by its process when dropped.
struct Server {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

fn programs() -> PathBuf {
    let newest = || {
        let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .filter(|folder| folder.join("pgbench").exists() && folder.join("postgres").exists())
            .collect();
        found.sort();
        found.pop()
    };
    newest().unwrap_or_else(|| {
        let install = ["install", "-y", "--no-install-recommends", "postgresql"];
        let _ = Command::new("apt-get")
            .args(install)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        newest().expect("these tests need a real server: apt-get install postgresql")
    })
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

impl Server {
    fn start() -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new()
            .prefix("benchmark-pgbench-")
            .tempdir_in("/tmp")
            .unwrap();
        // Sockets and data are made by the server itself.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("password"), PASSWORD).unwrap();
        fs::set_permissions(at("password"), fs::Permissions::from_mode(0o644)).unwrap();
        let made = as_nobody(&programs.join("initdb"))
            .args(["--username=bench", "--auth=scram-sha-256", "--no-sync"])
            .arg(format!("--pwfile={}", at("password").display()))
            .arg(format!("--pgdata={}", at("data").display()))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = database::testing::free_port();
        let log = fs::File::create(at("messages")).unwrap();
        let process = as_nobody(&programs.join("postgres"))
            .arg("-D")
            .arg(at("data"))
            .arg("-k")
            .arg(folder.path())
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-c", "fsync=off"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            folder,
            port,
            process,
        };
        let limit = Instant::now() + Duration::from_secs(30);
        while !server.sql("SELECT 1").contains('1') {
            let messages = server.folder.path().join("messages");
            assert!(
                Instant::now() < limit,
                "{}",
                fs::read_to_string(messages).unwrap()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn sql(&self, statement: &str) -> String {
        let output = Command::new(programs().join("psql"))
            .args([
                "-h",
                "127.0.0.1",
                "-U",
                "bench",
                "-d",
                "postgres",
                "-Atc",
                statement,
            ])
            .args(["-p", &self.port.to_string()])
            .env("PGPASSWORD", PASSWORD)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn connection(&self) -> Connection {
        Connection {
            engine: Engine::PostgreSQL,
            host: "127.0.0.1".to_owned(),
            port: self.port,
            schema: "postgres".to_owned(),
            ..Connection::default()
        }
    }

    fn login(&self) -> Login {
        Login {
            connection: self.connection(),
            username: "bench".to_owned(),
            password: PASSWORD.to_owned(),
            certificate_authority: None,
            agent_token: None,
        }
    }

    fn order(&self, pgbench: Pgbench) -> RunOrder {
        RunOrder {
            connection: self.connection(),
            workload: workload(pgbench),
            threads: 3,
            warmup_seconds: 1,
            duration_seconds: SECONDS,
            report_interval_seconds: 1,
            seed: 7,
            ..RunOrder::default()
        }
    }

    async fn prepared() -> Self {
        let server = Self::start();
        let order = PrepareOrder {
            connection: server.connection(),
            workload: workload(Pgbench::default()),
            ..PrepareOrder::default()
        };
        let scratch = tempfile::tempdir().unwrap();
        let login = server.login();
        let generator = load::generator(WorkloadType::Pgbench).unwrap();
        let site = site(&login, scratch.path());
        let invocation = (generator.prepare)(&order, &site).unwrap();
        let finished = process::run(&invocation, None, std::future::pending())
            .await
            .unwrap();
        let result = parsed(&finished, parse::Command::Prepare);
        assert!(result.acceptable, "{:?} {}", result.details, finished.stderr);
        for (table, rows) in (generator.tables)(&order).unwrap() {
            assert_eq!(
                server.sql(&format!("SELECT count(*) FROM {table}")),
                format!("{rows}\n")
            );
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT: a fast shutdown, which takes the server's other processes along.
        let _ = Command::new("kill")
            .args(["-INT", &self.process.id().to_string()])
            .status();
        let _ = self.process.wait();
    }
}

fn workload(pgbench: Pgbench) -> Workload {
    Workload {
        type_: WorkloadType::Pgbench,
        pgbench: Some(pgbench),
        ..Workload::default()
    }
}

fn site<'a>(login: &'a Login, scratch: &'a Path) -> Site<'a> {
    Site {
        login,
        scratch,
        scripts: scratch,
        cpus: 2,
    }
}

fn parsed(finished: &process::Finished, command: parse::Command) -> ToolResult {
    parse::pgbench::parse(&Capture {
        stdout: &finished.stdout,
        stderr: &finished.stderr,
        exit_code: finished.exit_code,
        command,
    })
}

/// The window, and what it was filled with.
struct Log(Mutex<(Window, i64, Vec<String>)>);

impl Lines for Log {
    fn begin(&self, started_micros: i64) {
        let mut log = self.0.lock().unwrap();
        log.0.begin(started_micros);
        log.1 = started_micros;
    }
    fn line(&self, line: &[u8]) {
        let mut log = self.0.lock().unwrap();
        log.0.line(line);
        log.2.push(String::from_utf8(line.to_vec()).unwrap());
    }
}

/// What a load left behind.
struct Applied {
    /// What its report says of everything.
    whole: ToolResult,
    /// What is said of the window.
    window: ToolResult,
    /// Its log.
    lines: Vec<String>,
    /// Start of the tool, microseconds since 1970.
    started: i64,
}

async fn applied(server: &Server, order: &RunOrder, script: Option<&str>) -> Applied {
    let scratch = tempfile::tempdir().unwrap();
    if let Some(script) = script {
        fs::write(scratch.path().join("own.sql"), script).unwrap();
    }
    let login = server.login();
    let generator = load::generator(WorkloadType::Pgbench).unwrap();
    let invocation = (generator.run)(order, &site(&login, scratch.path())).unwrap();
    assert!(!format!("{invocation:?}").contains(PASSWORD));
    let log = Arc::new(Log(Mutex::new((
        (generator.window)(order).unwrap(),
        0,
        Vec::new(),
    ))));
    let finished = process::run(&invocation, Some(log.clone()), std::future::pending())
        .await
        .unwrap();
    let whole = parsed(&finished, parse::Command::Run);
    let left = fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(
        left,
        usize::from(script.is_some()),
        "no password and no pipe is left"
    );
    let (window, started, lines) = log.0.lock().unwrap().clone();
    Applied {
        window: window.complete(whole.clone()),
        whole,
        lines,
        started,
    }
}

#[rstest]
#[case(PgbenchScript::TpcbLike, PgbenchProtocol::Simple, 7)]
#[case(PgbenchScript::SimpleUpdate, PgbenchProtocol::Extended, 5)]
#[case(PgbenchScript::SelectOnly, PgbenchProtocol::Prepared, 1)]
#[tokio::test]
async fn the_window_is_cut_out_of_the_load(
    #[case] script: PgbenchScript,
    #[case] protocol: PgbenchProtocol,
    #[case] statements: u64,
) {
    let server = Server::prepared().await;
    let order = server.order(Pgbench {
        builtin: Some(script),
        protocol,
        ..Pgbench::default()
    });
    let Applied {
        whole,
        window,
        lines,
        started,
    } = applied(&server, &order, None).await;
    assert!(window.acceptable, "{:?}", window.details);
    assert!(window.version.is_some());
    let (all, inside) = (&whole.figures, &window.figures);
    assert_eq!(
        all.transactions,
        Some(lines.len() as u64),
        "every transaction was logged"
    );
    // 2 s to connect and 1 s of warm-up, then 3 s of window.
    let ended_inside = |line: &&String| {
        let columns: Vec<i64> = line.split(' ').map(|column| column.parse().unwrap()).collect();
        (3_000_000..6_000_000).contains(&(columns[4] * 1_000_000 + columns[5] - started))
    };
    let expected: Vec<&String> = lines.iter().filter(ended_inside).collect();
    assert_eq!(inside.transactions, Some(expected.len() as u64));
    assert!(
        expected.len() > lines.len() / 5,
        "{} of {}",
        expected.len(),
        lines.len()
    );
    assert_eq!(
        inside.queries_sent,
        all.transactions.map(|done| done * statements)
    );
    assert_eq!(inside.window_micros, Some(3_000_000));
    assert_eq!(inside.queries, inside.transactions.map(|done| done * statements));
    let mut latencies: Vec<u64> = expected
        .iter()
        .map(|line| line.split(' ').nth(2).unwrap().parse().unwrap())
        .collect();
    latencies.sort_unstable();
    let exact = latencies[latencies.len() * 95 / 100] as f64;
    let told = inside.latency_p95_micros.unwrap() as f64;
    assert!(
        (told - exact).abs() <= exact * 0.018 + 1.0,
        "{told} against {exact}"
    );
    assert!(inside.latency_p95_micros >= inside.latency_min_micros);
    assert!(inside.latency_p95_micros <= inside.latency_max_micros.map(|most| most * 102 / 100 + 1));
    assert_eq!(window.series.len(), 3);
    let counted: u64 = window.histogram.iter().map(|bucket| bucket.count).sum();
    assert_eq!(Some(counted), inside.transactions);
    assert_eq!(
        (inside.stalled_seconds, inside.failed_transactions),
        (Some(0), Some(0))
    );
}

#[tokio::test]
async fn a_rate_is_kept_and_lateness_is_part_of_latency() {
    let server = Server::prepared().await;
    let mut order = server.order(Pgbench {
        builtin: Some(PgbenchScript::SelectOnly),
        ..Pgbench::default()
    });
    order.rate = Some(200);
    let Applied { window, .. } = applied(&server, &order, None).await;
    assert!(window.acceptable, "{:?}", window.details);
    let done = window.figures.transactions.unwrap();
    assert!((450..750).contains(&done), "{done} of 600");
    // One transaction takes 50 ms and 200 a second are asked of 3 clients: the queue grows.
    order.workload = workload(Pgbench {
        script_config_map: Some("own".to_owned()),
        ..Pgbench::default()
    });
    let Applied { window, .. } = applied(&server, &order, Some("SELECT pg_sleep(0.05);\n")).await;
    assert!(window.acceptable, "{:?}", window.details);
    let figures = &window.figures;
    assert!(
        (150..=185).contains(&figures.transactions.unwrap()),
        "{figures:?}"
    );
    assert!(figures.latency_mean_micros.unwrap() > 500_000, "{figures:?}");
    assert_eq!((figures.queries, figures.queries_sent), (None, None));
}

#[tokio::test]
async fn retries_and_failures_are_flagged_and_errors_refused() {
    let server = Server::prepared().await;
    let contended = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n\
                     SELECT pg_sleep(0.002);\nEND;\n";
    let own = |tries| Pgbench {
        script_config_map: Some("own".to_owned()),
        max_tries: tries,
        ..Pgbench::default()
    };
    let Applied { window, .. } = applied(&server, &server.order(own(Some(3))), Some(contended)).await;
    assert!(window.acceptable, "{:?}", window.details);
    assert!(window.flags.contains(&Flag::Retries), "{:?}", window.flags);
    assert!(window.figures.retries > window.figures.failed_transactions);

    let Applied { window, .. } = applied(&server, &server.order(own(None)), Some(contended)).await;
    assert!(
        window.flags.contains(&Flag::FailedTransactions),
        "{:?}",
        window.flags
    );

    let Applied { window, .. } = applied(
        &server,
        &server.order(own(None)),
        Some("SELECT * FROM nowhere;\n"),
    )
    .await;
    assert!(!window.acceptable);
    assert!(window.reasons.contains(&Reason::Aborted), "{:?}", window.reasons);

    let mut wrong = server.order(own(None));
    wrong.connection.schema = "nowhere".to_owned();
    let Applied { window, .. } = applied(&server, &wrong, Some("SELECT 1;\n")).await;
    assert!(
        window.reasons.contains(&Reason::UnknownDatabase),
        "{:?}",
        window.reasons
    );
}
