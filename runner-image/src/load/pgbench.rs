//! pgbench: one process for warm-up and window. It knows no warm-up and its report covers all of the load, so it logs each
//! transaction and [`Window`] counts those that ended inside the window. The time to open the connections, which its
//! `--time` includes, lies before the warm-up.

use std::fs;
use std::path::PathBuf;

use crds::runner::{Connection, PrepareOrder, RunOrder};
use crds::target::Engine;
use crds::workload::{Pgbench, PgbenchProtocol, PgbenchScript, Workload, WorkloadType};
use database::marker::{PGBENCH_TABLES, pgbench_scale};

use super::{Invocation, LoadError, LoadGenerator, LogPipes, Site, Tables, libpq};
use crate::parse::pgbench::window::{Shape, Window};

pub(super) const GENERATOR: LoadGenerator = LoadGenerator {
    type_: WorkloadType::Pgbench,
    tool: "pgbench",
    run,
    prepare,
    tables,
    window: |order| {
        settings(&order.workload)
            .ok()
            .map(|found| Window::new(shape(order, found)))
    },
};

/// Connections that a second is allowed for, beyond the first second.
const CONNECTIONS_PER_SECOND: u32 = 100;
/// Seeds are kept positive and within 31 bits, as those of every generator.
const SEEDS: i64 = i32::MAX as i64;

/// Makes a pipe for each of pgbench's log files, whose names hold the number of the process, and becomes pgbench.
const WITH_PIPES: &str = r#"prefix=$1 count=$2; shift 2
mkfifo -m 600 "$prefix.$$" || exit 1
i=1; while [ "$i" -lt "$count" ]; do mkfifo -m 600 "$prefix.$$.$i" || exit 1; i=$((i + 1)); done
exec pgbench "$@""#;

fn run(order: &RunOrder, site: &Site<'_>) -> Result<Invocation, LoadError> {
    let found = settings(&order.workload)?;
    let clients = usize::try_from(order.threads).unwrap_or(1).max(1);
    let jobs = clients.min(site.cpus.max(1));
    let prefix = site.scratch.join("transactions");
    let shape = shape(order, found);
    let mut invocation = connection(&order.connection, site)?;
    invocation.program = "sh";
    let mut arguments: Vec<String> = ["-c", WITH_PIPES, "sh"].map(str::to_owned).into();
    arguments.extend([prefix.display().to_string(), jobs.to_string()]);
    arguments.append(&mut invocation.arguments);
    arguments.extend([
        format!("--client={clients}"),
        format!("--jobs={jobs}"),
        format!("--time={}", shape.lead_seconds + shape.duration_seconds),
        format!("--protocol={}", protocol(found.protocol)),
        // What is vacuumed and when is decided before the load, not by its tool.
        "--no-vacuum".to_owned(),
        format!("--progress={}", order.report_interval_seconds.max(1)),
        "--log".to_owned(),
        format!("--log-prefix={}", prefix.display()),
        format!("--random-seed={}", order.seed.rem_euclid(SEEDS - 1) + 1),
    ]);
    if let Some(rate) = order.rate {
        arguments.push(format!("--rate={rate}"));
    }
    if let Some(tries) = found.max_tries {
        arguments.push(format!("--max-tries={tries}"));
    }
    arguments.extend(scripts(found, order.rows_per_table, site)?);
    arguments.push(order.connection.schema.clone());
    invocation.arguments = arguments;
    invocation.log = Some(LogPipes { prefix, count: jobs });
    Ok(invocation)
}

fn prepare(order: &PrepareOrder, site: &Site<'_>) -> Result<Invocation, LoadError> {
    let scale = pgbench_scale(settings(&order.workload)?, order.rows_per_table);
    let mut invocation = connection(&order.connection, site)?;
    invocation.arguments.extend([
        "--initialize".to_owned(),
        "--quiet".to_owned(),
        format!("--scale={scale}"),
        order.connection.schema.clone(),
    ]);
    Ok(invocation)
}

fn tables(order: &PrepareOrder) -> Result<Tables, LoadError> {
    let scale = pgbench_scale(settings(&order.workload)?, order.rows_per_table);
    let tables = PGBENCH_TABLES.iter();
    Ok(tables
        .map(|(name, rows)| ((*name).to_owned(), rows * scale))
        .collect())
}

fn settings(workload: &Workload) -> Result<&Pgbench, LoadError> {
    workload.pgbench.as_ref().ok_or(LoadError::Missing("pgbench"))
}

fn shape(order: &RunOrder, found: &Pgbench) -> Shape {
    let clients = u32::try_from(order.threads).unwrap_or(1).max(1);
    let opening_seconds = 1 + clients.div_ceil(CONNECTIONS_PER_SECOND);
    Shape {
        lead_seconds: opening_seconds + order.warmup_seconds,
        opening_seconds,
        duration_seconds: order.duration_seconds,
        interval_seconds: order.report_interval_seconds,
        throttled: order.rate.is_some(),
        retried: found.max_tries.is_some_and(|tries| tries > 1),
        statements: builtin(found)
            .map(|(_, statements)| statements)
            .into_iter()
            .collect(),
    }
}

/// Name of the built-in script and the statements of one of its transactions; `None` for scripts of somebody's own.
fn builtin(found: &Pgbench) -> Option<(&'static str, u64)> {
    if found.script_config_map.is_some() {
        return None;
    }
    Some(match found.builtin.unwrap_or(PgbenchScript::TpcbLike) {
        PgbenchScript::TpcbLike => ("tpcb-like", 7),
        PgbenchScript::SimpleUpdate => ("simple-update", 5),
        PgbenchScript::SelectOnly => ("select-only", 1),
    })
}

/// Which scripts are run: a built-in one, or each file of the ConfigMap with the same weight.
fn scripts(found: &Pgbench, rows_per_table: i64, site: &Site<'_>) -> Result<Vec<String>, LoadError> {
    if let Some((name, _)) = builtin(found) {
        return Ok(vec![format!("--builtin={name}")]);
    }
    let unreadable = |error: std::io::Error| LoadError::Scripts(error.to_string());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(site.scripts).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        // The kubelet keeps the files of a ConfigMap behind hidden folders.
        let hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(LoadError::Scripts("it holds no script".to_owned()));
    }
    files.sort();
    // Scripts of one's own are told the scale, which built-in ones count themselves.
    let mut arguments = vec![format!("--scale={}", pgbench_scale(found, rows_per_table))];
    arguments.extend(files.iter().map(|file| format!("--file={}", file.display())));
    Ok(arguments)
}

const fn protocol(protocol: PgbenchProtocol) -> &'static str {
    match protocol {
        PgbenchProtocol::Simple => "simple",
        PgbenchProtocol::Extended => "extended",
        PgbenchProtocol::Prepared => "prepared",
    }
}

/// Where to connect and as whom; the password by a file.
fn connection(connection: &Connection, site: &Site<'_>) -> Result<Invocation, LoadError> {
    if connection.engine != Engine::PostgreSQL {
        return Err(LoadError::Engine {
            tool: "pgbench",
            engine: format!("{:?}", connection.engine),
        });
    }
    let libpq::Told {
        mut environment,
        mut files,
    } = libpq::password(site)?;
    let tls = libpq::tls(connection, site);
    environment.extend(tls.environment);
    files.extend(tls.files);
    Ok(Invocation {
        program: "pgbench",
        arguments: vec![
            format!("--host={}", connection.host),
            format!("--port={}", connection.port),
            format!("--username={}", site.login.username),
        ],
        environment,
        files,
        working_directory: site.scratch.to_owned(),
        log: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use database::Login;
    use std::path::Path;

    fn order(pgbench: Pgbench) -> RunOrder {
        RunOrder {
            connection: Connection {
                engine: Engine::PostgreSQL,
                host: "db".to_owned(),
                port: 5432,
                schema: "sbtest".to_owned(),
                ..Connection::default()
            },
            workload: Workload {
                type_: WorkloadType::Pgbench,
                pgbench: Some(pgbench),
                ..Workload::default()
            },
            threads: 8,
            warmup_seconds: 60,
            duration_seconds: 600,
            report_interval_seconds: 1,
            seed: 7,
            ..RunOrder::default()
        }
    }

    fn with_site<T>(scripts: &Path, work: impl FnOnce(&Site<'_>) -> T) -> T {
        let login = Login {
            username: "bench".to_owned(),
            password: "hush".to_owned(),
            connection: Connection::default(),
            certificate_authority: None,
            agent_token: None,
        };
        work(&Site {
            login: &login,
            scratch: Path::new("/scratch"),
            scripts,
            cpus: 2,
        })
    }

    fn built(order: &RunOrder) -> Result<Invocation, LoadError> {
        with_site(Path::new("/scripts"), |site| run(order, site))
    }

    #[test]
    fn one_process_logs_each_transaction_and_knows_the_password_by_a_file() {
        let invocation = built(&order(Pgbench::default())).unwrap();
        assert_eq!(invocation.program, "sh");
        let text = invocation.arguments[2..].join(" ");
        insta::assert_snapshot!(text, @"sh /scratch/transactions 2 --host=db --port=5432 --username=bench --client=8 --jobs=2 --time=662 --protocol=simple --no-vacuum --progress=1 --log --log-prefix=/scratch/transactions --random-seed=8 --builtin=tpcb-like sbtest");
        assert_eq!(
            invocation.environment,
            [("PGPASSFILE", "/scratch/pgpass".to_owned())]
        );
        assert!(!format!("{invocation:?}").contains("hush"));
    }

    #[test]
    fn protocol_rate_and_tries_are_the_workloads() {
        let mut order = order(Pgbench {
            builtin: Some(PgbenchScript::SelectOnly),
            protocol: PgbenchProtocol::Prepared,
            max_tries: Some(10),
            ..Pgbench::default()
        });
        order.rate = Some(500);
        order.threads = 1;
        let text = built(&order).unwrap().arguments.join(" ");
        assert!(
            text.contains("--client=1 --jobs=1 ") && text.contains("--protocol=prepared"),
            "{text}"
        );
        assert!(
            text.ends_with("--rate=500 --max-tries=10 --builtin=select-only sbtest"),
            "{text}"
        );
        let shape = shape(&order, order.workload.pgbench.as_ref().unwrap());
        assert!(shape.throttled && shape.retried);
        assert_eq!(
            (shape.statements.as_slice(), shape.lead_seconds),
            ([1].as_slice(), 62)
        );
    }

    #[test]
    fn every_file_of_a_config_map_is_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let own = order(Pgbench {
            scale: Some(3),
            script_config_map: Some("scripts".to_owned()),
            ..Pgbench::default()
        });
        let build = || with_site(folder.path(), |site| run(&own, site));
        assert!(matches!(build(), Err(LoadError::Scripts(_))));
        for name in ["b.sql", "a.sql", "..data"] {
            fs::write(folder.path().join(name), "SELECT 1;").unwrap();
        }
        let text = build().unwrap().arguments.join(" ");
        let at = folder.path().display();
        assert!(
            text.ends_with(&format!("--scale=3 --file={at}/a.sql --file={at}/b.sql sbtest")),
            "{text}"
        );
        let shape = shape(&own, own.workload.pgbench.as_ref().unwrap());
        assert_eq!(shape.statements, [] as [u64; 0], "nobody knows what they send");
    }

    #[test]
    fn data_is_made_by_scale_and_has_a_known_number_of_rows() {
        let order = PrepareOrder {
            connection: order(Pgbench::default()).connection,
            workload: order(Pgbench::default()).workload,
            rows_per_table: 2_000_000,
            ..PrepareOrder::default()
        };
        let invocation = with_site(Path::new("/scripts"), |site| prepare(&order, site)).unwrap();
        assert_eq!(invocation.program, "pgbench");
        assert!(
            invocation
                .arguments
                .join(" ")
                .ends_with("--initialize --quiet --scale=20 sbtest")
        );
        assert_eq!(
            tables(&order).unwrap(),
            [
                ("pgbench_branches".to_owned(), 20),
                ("pgbench_tellers".to_owned(), 200),
                ("pgbench_accounts".to_owned(), 2_000_000),
                ("pgbench_history".to_owned(), 0)
            ]
        );
    }

    #[test]
    fn other_engines_are_refused() {
        let mut order = order(Pgbench::default());
        order.connection.engine = Engine::MySQL;
        assert!(matches!(built(&order), Err(LoadError::Engine { .. })));
        order.workload.pgbench = None;
        assert_eq!(built(&order), Err(LoadError::Missing("pgbench")));
    }
}
