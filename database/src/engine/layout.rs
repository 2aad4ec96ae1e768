//! Where a managed server keeps its files. One layout for every pod; the tests use the same one under a directory of
//! their own, so that what they start is what the operator starts.

use crds::audit::LogVolume;

/// Mount path of the data volume in a managed pod, in the database's and in the agent's container. A separate log
/// volume is mounted at [`LOG_DIRECTORY`]. Paths of logs that the agent is asked for are relative to this path.
pub const VOLUME: &str = "/var/lib/benchmark";
/// Mount path of a separate volume for audit logs (`logStorage`); a plain directory of [`VOLUME`] without one.
pub const LOG_DIRECTORY: &str = "/var/lib/benchmark/log";
/// Mount path of the ConfigMap with the server's configuration, and the key in it.
pub const CONFIGURATION_DIRECTORY: &str = "/etc/benchmark";
/// Key of the ConfigMap that holds the server's configuration.
pub const CONFIGURATION_KEY: &str = "server.cnf";
/// Mount path of the Secret with the SQL that runs at every boot (key [`crds::names::secret::INIT_SQL`]).
pub const SECRET_DIRECTORY: &str = "/run/benchmark/secret";
/// Mount path of an emptyDir for socket and temporary tables.
pub const TEMPORARY_DIRECTORY: &str = "/tmp";
/// User and group of the server unless the target says otherwise.
pub const DEFAULT_USER: i64 = 999;

/// Where the files of one server are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Holds `data`, `log` and `data-log`.
    pub volume: String,
    /// The configuration file.
    pub configuration: String,
    /// The SQL that runs at every boot, before connections are accepted.
    pub init_sql: String,
    /// Socket, temporary tables.
    pub temporary: String,
    /// Address to listen on.
    pub bind_address: String,
    /// Port to listen on.
    pub port: u16,
}

impl Layout {
    /// The layout of a managed pod.
    pub fn pod(port: u16) -> Self {
        Self {
            volume: VOLUME.to_owned(),
            configuration: format!("{CONFIGURATION_DIRECTORY}/{CONFIGURATION_KEY}"),
            init_sql: format!("{SECRET_DIRECTORY}/{}", crds::names::secret::INIT_SQL),
            temporary: TEMPORARY_DIRECTORY.to_owned(),
            bind_address: "*".to_owned(),
            port,
        }
    }

    /// The same files under one directory, reachable from this machine only.
    #[cfg(any(test, feature = "testing"))]
    pub fn under(directory: &std::path::Path, port: u16) -> Self {
        let path = |name: &str| directory.join(name).display().to_string();
        Self {
            volume: path("volume"),
            configuration: path(CONFIGURATION_KEY),
            init_sql: path("init.sql"),
            temporary: path("tmp"),
            bind_address: "127.0.0.1".to_owned(),
            port,
        }
    }

    /// Directory of the server's tables.
    pub fn data_directory(&self) -> String {
        format!("{}/data", self.volume)
    }

    /// Directory of audit logs on the volume that the setting asks for.
    pub fn log_directory(&self, volume: LogVolume) -> String {
        match volume {
            LogVolume::Separate => format!("{}/log", self.volume),
            // Beside the tables, not among them: a directory in the data directory is a schema.
            LogVolume::WithData => format!("{}/data-log", self.volume),
        }
    }

    /// Unix socket for the startup probe.
    pub fn socket(&self) -> String {
        format!("{}/server.sock", self.temporary)
    }

    /// Pid file, on the volume: the server removes it when it ends cleanly, so the next boot finds it otherwise.
    pub fn pid_file(&self) -> String {
        format!("{}/server.pid", self.volume)
    }

    /// File that says how the server ended before this boot: `Yes` (cleanly) or `No`, as [`CleanShutdown`] spells it.
    ///
    /// [`CleanShutdown`]: crds::target::CleanShutdown
    pub fn clean_shutdown(&self) -> String {
        format!("{}/clean-shutdown", self.volume)
    }
}

/// How a managed server is run: everything that a pod builder must know of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedServer {
    /// Port that the server listens on.
    pub port: u16,
    /// Makes the directories, and the data if there is none; run before every boot, does nothing the second time.
    pub init_command: Vec<String>,
    /// The server itself, as process 1 so that it gets SIGTERM.
    pub server_command: Vec<String>,
    /// Exits with 0 once the server accepts logins. For a startupProbe only: later probes would disturb a measurement.
    pub startup_probe: Vec<String>,
    /// Seconds that a shutdown may take: a big dirty pool needs minutes.
    pub termination_grace_seconds: i64,
}
