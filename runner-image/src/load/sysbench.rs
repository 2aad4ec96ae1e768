//! sysbench 1.0 and 1.1: one process for warm-up and window. `--time` is both together and `--report-checkpoints` marks
//! where the window begins, because a second process would prepare all statements again.

use crds::parameter::ParameterValue;
use crds::runner::{Connection, PrepareOrder, RunOrder};
use crds::target::{Engine, TlsMode};
use crds::workload::{PreparedStatements, Sysbench, Workload, WorkloadType};
use database::marker::table_names;

use super::{Invocation, LoadError, LoadGenerator, Secret, Site, Tables, libpq};

pub(super) const GENERATOR: LoadGenerator = LoadGenerator {
    type_: WorkloadType::Sysbench,
    tool: "sysbench",
    run,
    prepare,
    tables,
    window: |_| None,
};

/// Threads that prepare unless the workload says otherwise.
const PREPARE_THREADS: i32 = 2;
/// sysbench's seed is a positive 32-bit integer; 0 means the clock.
const SEEDS: i64 = i32::MAX as i64;

fn run(order: &RunOrder, site: &Site<'_>) -> Result<Invocation, LoadError> {
    let settings = settings(&order.workload)?;
    let mut invocation = connection(&order.connection, site)?;
    let time = u64::from(order.warmup_seconds) + u64::from(order.duration_seconds);
    let arguments = &mut invocation.arguments;
    arguments.extend(data(settings, order.rows_per_table));
    arguments.extend([
        format!("--threads={}", order.threads),
        format!("--time={time}"),
        "--events=0".to_owned(),
        format!("--report-interval={}", order.report_interval_seconds),
        "--percentile=95".to_owned(),
        "--histogram=on".to_owned(),
        format!("--rand-seed={}", order.seed.rem_euclid(SEEDS - 1) + 1),
    ]);
    if order.warmup_seconds > 0 {
        arguments.push(format!("--report-checkpoints={}", order.warmup_seconds));
    }
    if let Some(rate) = order.rate {
        arguments.push(format!("--rate={rate}"));
    }
    if settings.prepared_statements == PreparedStatements::Disabled {
        arguments.push("--db-ps-mode=disable".to_owned());
    }
    arguments.extend(options(settings));
    arguments.extend([script(&settings.script, settings, site)?, "run".to_owned()]);
    Ok(invocation)
}

fn prepare(order: &PrepareOrder, site: &Site<'_>) -> Result<Invocation, LoadError> {
    let settings = settings(&order.workload)?;
    let mut invocation = connection(&order.connection, site)?;
    let threads = settings
        .prepare_threads
        .unwrap_or(PREPARE_THREADS)
        .min(settings.tables)
        .max(1);
    let arguments = &mut invocation.arguments;
    arguments.extend(data(settings, order.rows_per_table));
    arguments.push(format!("--threads={threads}"));
    arguments.extend(options(settings));
    let name = settings.prepare_script.as_ref().unwrap_or(&settings.script);
    arguments.extend([script(name, settings, site)?, "prepare".to_owned()]);
    Ok(invocation)
}

fn tables(order: &PrepareOrder) -> Result<Tables, LoadError> {
    let settings = settings(&order.workload)?;
    let name = settings.prepare_script.as_ref().unwrap_or(&settings.script);
    // bulk_insert leaves its tables empty: filling them is what it measures.
    let rows = if name == "bulk_insert" {
        0
    } else {
        order.rows_per_table
    };
    Ok(table_names(&order.workload)
        .into_iter()
        .map(|table| (table, rows))
        .collect())
}

fn settings(workload: &Workload) -> Result<&Sysbench, LoadError> {
    workload.sysbench.as_ref().ok_or(LoadError::Missing("sysbench"))
}

fn data(settings: &Sysbench, rows: i64) -> [String; 2] {
    [
        format!("--tables={}", settings.tables),
        format!("--table-size={rows}"),
    ]
}

fn options(settings: &Sysbench) -> impl Iterator<Item = String> + '_ {
    settings
        .options
        .iter()
        .map(|(name, value): (&String, &ParameterValue)| format!("--{name}={value}"))
}

/// A bundled script by name, or a file of the workload's ConfigMap.
fn script(name: &str, settings: &Sysbench, site: &Site<'_>) -> Result<String, LoadError> {
    if name.is_empty() || name.starts_with(['.', '-']) || name.contains('/') {
        return Err(LoadError::Script(name.to_owned()));
    }
    let file = std::path::Path::new(name);
    let own =
        settings.lua_config_map.is_some() && file.extension().is_some_and(|extension| extension == "lua");
    Ok(if own {
        site.scripts.join(name).to_string_lossy().into_owned()
    } else {
        name.to_owned()
    })
}

/// Where to connect; name and password by a file, never as arguments.
fn connection(connection: &Connection, site: &Site<'_>) -> Result<Invocation, LoadError> {
    let driver = match connection.engine {
        Engine::MySQL | Engine::MariaDB => "mysql",
        Engine::PostgreSQL => "pgsql",
    };
    let login = format!(
        "{driver}-user={}\n{driver}-password={}\n",
        quoted(&site.login.username, "username")?,
        quoted(&site.login.password, "password")?
    );
    let file = site.scratch.join("login.conf");
    let mut arguments = vec![
        format!("--config-file={}", file.display()),
        format!("--db-driver={driver}"),
        format!("--{driver}-host={}", connection.host),
        format!("--{driver}-port={}", connection.port),
        format!("--{driver}-db={}", connection.schema),
    ];
    let mut files = vec![(file, Secret(login))];
    let mut environment = Vec::new();
    if driver == "pgsql" {
        // sysbench 1.0 says nothing about TLS to libpq, which then takes it from its environment.
        let tls = libpq::tls(connection, site);
        environment = tls.environment;
        files.extend(tls.files);
    } else if connection
        .tls
        .as_ref()
        .is_some_and(|tls| tls.mode != TlsMode::Disabled)
    {
        // sysbench 1.0 looks for cacert.pem in its working directory and has no other way to be given it.
        arguments.push("--mysql-ssl=on".to_owned());
        let authority = site
            .login
            .certificate_authority
            .as_ref()
            .map(|ca| String::from_utf8_lossy(ca).into_owned());
        files.extend(authority.map(|text| (site.scratch.join("cacert.pem"), Secret(text))));
    }
    Ok(Invocation {
        program: "sysbench",
        arguments,
        environment,
        files,
        working_directory: site.scratch.to_owned(),
        log: None,
    })
}

/// A value for sysbench's configuration file: in whichever quotes it does not contain (there is no escape), or bare if it
/// contains both and nothing that ends a bare value.
fn quoted(text: &str, what: &'static str) -> Result<String, LoadError> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(LoadError::Unquotable(what));
    }
    if let Some(quote) = ['\'', '"'].into_iter().find(|quote| !text.contains(*quote)) {
        return Ok(format!("{quote}{text}{quote}"));
    }
    let ends_bare = |found: char| found.is_whitespace() || found == ',';
    if text.starts_with(['\'', '"', '#']) || text.contains(ends_bare) {
        return Err(LoadError::Unquotable(what));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use database::Login;
    use std::path::Path;

    fn login(password: &str) -> Login {
        Login {
            username: "bench".to_owned(),
            password: password.to_owned(),
            connection: Connection::default(),
            certificate_authority: Some(b"PEM".to_vec()),
            agent_token: None,
        }
    }

    fn order() -> RunOrder {
        RunOrder {
            connection: Connection {
                host: "db".to_owned(),
                port: 3306,
                schema: "sbtest".to_owned(),
                ..Connection::default()
            },
            workload: Workload {
                sysbench: Some(Sysbench {
                    script: "oltp_read_only".to_owned(),
                    tables: 4,
                    options: [("rand-type".to_owned(), ParameterValue::from("uniform"))].into(),
                    ..Sysbench::default()
                }),
                ..Workload::default()
            },
            rows_per_table: 25_000,
            threads: 8,
            warmup_seconds: 2,
            duration_seconds: 8,
            report_interval_seconds: 1,
            seed: 7,
            ..RunOrder::default()
        }
    }

    fn built(order: &RunOrder, password: &str) -> Result<Invocation, LoadError> {
        let login = login(password);
        run(
            order,
            &Site {
                login: &login,
                scratch: Path::new("/scratch"),
                scripts: Path::new("/scripts"),
                cpus: 2,
            },
        )
    }

    #[test]
    fn one_process_covers_warm_up_and_window() {
        let invocation = built(&order(), "p'w").unwrap();
        insta::assert_snapshot!(invocation.arguments.join(" "), @"--config-file=/scratch/login.conf --db-driver=mysql --mysql-host=db --mysql-port=3306 --mysql-db=sbtest --tables=4 --table-size=25000 --threads=8 --time=10 --events=0 --report-interval=1 --percentile=95 --histogram=on --rand-seed=8 --report-checkpoints=2 --rand-type=uniform oltp_read_only run");
        assert_eq!(
            invocation.files[0].1,
            Secret("mysql-user='bench'\nmysql-password=\"p'w\"\n".to_owned())
        );
        assert!(!format!("{invocation:?}").contains("p'w"));
    }

    #[test]
    fn postgresql_gets_its_login_by_the_same_file_and_tls_by_the_environment() {
        let mut order = order();
        order.connection.engine = Engine::PostgreSQL;
        let plain = built(&order, "p'w").unwrap();
        let text = plain.arguments.join(" ");
        assert!(
            text.starts_with("--config-file=/scratch/login.conf --db-driver=pgsql --pgsql-host=db --pgsql-port=3306 --pgsql-db=sbtest "),
            "{text}"
        );
        assert_eq!(
            plain.files[0].1,
            Secret("pgsql-user='bench'\npgsql-password=\"p'w\"\n".to_owned())
        );
        assert_eq!(plain.environment, []);
        for (mode, name, expected) in [
            (TlsMode::Verify, None, "verify-full"),
            (TlsMode::Verify, Some("db"), "verify-full"),
            (TlsMode::Verify, Some("other"), "verify-ca"),
            (TlsMode::VerifyCa, None, "verify-ca"),
        ] {
            order.connection.tls = Some(crds::target::Tls {
                mode,
                server_name: name.map(str::to_owned),
            });
            let with = built(&order, "pw").unwrap();
            assert_eq!(
                with.environment,
                [
                    ("PGSSLMODE", expected.to_owned()),
                    ("PGSSLROOTCERT", "/scratch/ca.crt".to_owned())
                ]
            );
            assert_eq!(with.files.len(), 2);
        }
    }

    #[test]
    fn without_a_warm_up_there_is_no_checkpoint() {
        let invocation = built(
            &RunOrder {
                warmup_seconds: 0,
                rate: Some(500),
                ..order()
            },
            "pw",
        )
        .unwrap();
        let text = invocation.arguments.join(" ");
        assert!(
            text.contains("--time=8 ") && text.contains("--rate=500") && !text.contains("checkpoint"),
            "{text}"
        );
    }

    #[test]
    fn own_scripts_come_from_their_folder_and_can_not_leave_it() {
        let mut order = order();
        let settings = order.workload.sysbench.as_mut().unwrap();
        (settings.script, settings.lua_config_map) = ("mine.lua".to_owned(), Some("lua".to_owned()));
        settings.prepared_statements = PreparedStatements::Disabled;
        let text = built(&order, "pw").unwrap().arguments.join(" ");
        assert!(
            text.ends_with("--db-ps-mode=disable --rand-type=uniform /scripts/mine.lua run"),
            "{text}"
        );
        order.workload.sysbench.as_mut().unwrap().script = "../x.lua".to_owned();
        assert_eq!(built(&order, "pw"), Err(LoadError::Script("../x.lua".to_owned())));
    }

    #[test]
    fn every_seed_is_a_positive_32_bit_number() {
        for seed in [0, -1, i64::MIN, i64::MAX, SEEDS, SEEDS - 1] {
            let invocation = built(&RunOrder { seed, ..order() }, "pw").unwrap();
            let given = invocation
                .arguments
                .iter()
                .find_map(|argument| argument.strip_prefix("--rand-seed="))
                .unwrap();
            assert!(
                (1..=SEEDS).contains(&given.parse().unwrap()),
                "{seed} became {given}"
            );
        }
    }

    #[test]
    fn a_password_that_can_not_be_written_is_refused_without_showing_it() {
        assert!(built(&order(), "a'b\"c").is_ok());
        for password in ["a'b\" c", "'a\"", "a'b\",c", "a\nb"] {
            let error = built(&order(), password).unwrap_err();
            assert_eq!(error, LoadError::Unquotable("password"));
            assert!(!error.to_string().contains(password));
        }
    }

    #[test]
    fn prepare_uses_no_more_threads_than_tables() {
        let order = PrepareOrder {
            workload: order().workload,
            rows_per_table: 10,
            ..PrepareOrder::default()
        };
        let login = login("pw");
        let site = Site {
            login: &login,
            scratch: Path::new("/scratch"),
            scripts: Path::new("/scripts"),
            cpus: 2,
        };
        let text = prepare(&order, &site).unwrap().arguments.join(" ");
        assert!(
            text.ends_with(
                "--tables=4 --table-size=10 --threads=2 --rand-type=uniform oltp_read_only prepare"
            ),
            "{text}"
        );
        assert_eq!(tables(&order).unwrap().last(), Some(&("sbtest4".to_owned(), 10)));
    }
}
