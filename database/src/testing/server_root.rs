//! Where a test server's programs are: on this machine, or in a Debian of another release made for the tests, whose
//! processes see the same `/tmp`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crds::target::Engine;

/// Programs of one engine.
pub(super) struct Programs {
    /// Root of another Debian; `None`: this machine.
    root: Option<PathBuf>,
    /// Folder of the programs, where no path leads to them.
    folder: Option<PathBuf>,
    /// Command line client and its options.
    pub(super) client: &'static [&'static str],
}

impl Programs {
    /// Of an engine, installed if they are missing.
    pub(super) fn of(engine: Engine) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        install_if_missing(
            &["mariadbd", "mariadb-install-db", "mariadb-admin", "sysbench"],
            &["mariadb-server", "sysbench"],
        );
        match engine {
            Engine::MySQL => Self {
                root: Some(debian(
                    "sid",
                    "mysql",
                    &["mysql-server-core", "mysql-client-core"],
                )),
                folder: None,
                client: &[
                    "mysql",
                    "--no-defaults",
                    "--user=root",
                    "--batch",
                    "--skip-column-names",
                    "--comments",
                ],
            },
            Engine::PostgreSQL => {
                // Another version's programs on this machine, for whoever wants to know what they do.
                let own = std::env::var_os("TEST_POSTGRESQL_PROGRAMS").map(PathBuf::from);
                let root = || {
                    debian(
                        "trixie",
                        "postgresql",
                        &["postgresql-17", "postgresql-17-pgaudit"],
                    )
                };
                Self {
                    root: own.is_none().then(root),
                    folder: Some(own.unwrap_or_else(|| "/usr/lib/postgresql/17/bin".into())),
                    client: &["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"],
                }
            }
            Engine::MariaDB => Self {
                root: None,
                folder: None,
                client: &[
                    "mariadb",
                    "--no-defaults",
                    "--user=root",
                    "--batch",
                    "--skip-column-names",
                    "--comments",
                ],
            },
        }
    }

    /// A command of these programs, as a user that is not root.
    pub(super) fn command(&self, command: &[impl AsRef<str>]) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut words = command.iter().map(AsRef::as_ref);
        let mut process = if let Some(root) = &self.root {
            // A mount namespace of its own ends with the process.
            let mut process = Command::new("unshare");
            process
                .args(["--mount", "sh", "-c"])
                .arg(
                    "mount --rbind /tmp \"$0/tmp\" && mount --rbind /dev \"$0/dev\" && exec chroot \
                     --userspec=65534:65534 \"$0\" \"$@\"",
                )
                .arg(root)
                .args(words);
            process
        } else {
            let mut process = Command::new(words.next().expect("a program"));
            process.args(words);
            if super::am_root() {
                process.uid(super::NOBODY).gid(super::NOBODY);
            }
            process
        };
        if let Some(folder) = &self.folder {
            let path = std::env::var("PATH").unwrap_or_default();
            process.env(
                "PATH",
                format!("{}:{path}:/usr/sbin:/usr/bin:/sbin:/bin", folder.display()),
            );
        }
        process
    }
}

/// A minimal Debian of a release with these packages, made once for all tests of this machine.
fn debian(suite: &str, name: &str, packages: &[&str]) -> PathBuf {
    let home = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into())).join(".cache"),
        PathBuf::from,
    );
    let folder = home.join("benchmark-campaign/test-roots");
    let root = folder.join(format!("{suite}-{name}"));
    if root.exists() {
        return root;
    }
    assert!(
        super::am_root(),
        "these tests need root, to run another Debian's {name}"
    );
    install_if_missing(&["mmdebstrap"], &["mmdebstrap"]);
    std::fs::create_dir_all(&folder).expect("a folder of the cache");
    let new = folder.join(format!("{suite}-{name}.{}", std::process::id()));
    let done = Command::new("mmdebstrap")
        .args(["--quiet", "--variant=minbase", "--format=directory"])
        // A mirror may be some days behind.
        .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
        .arg(format!("--include={}", packages.join(",")))
        .arg(suite)
        .arg(&new)
        .output()
        .expect("mmdebstrap runs");
    assert!(
        done.status.success(),
        "mmdebstrap of {suite} with {packages:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    // Another process may have been faster: its root is as good.
    if std::fs::rename(&new, &root).is_err() {
        let _ = std::fs::remove_dir_all(&new);
    }
    root
}

/// Debian's packages, once; a machine where they cannot be installed gets a clear message and a failed test.
fn install_if_missing(programs: &[&str], packages: &[&str]) {
    let missing = |program: &&str| {
        !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .chain([Path::new("/usr/sbin").to_owned()])
            .any(|directory| directory.join(program).exists())
    };
    if programs.iter().any(missing) {
        let done = Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        assert!(
            done.is_ok_and(|status| status.success()),
            "these tests need real programs: apt-get install {}",
            packages.join(" ")
        );
    }
}
