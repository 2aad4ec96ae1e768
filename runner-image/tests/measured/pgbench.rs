//! pgbench: how it is started, what its pipes carry, how the window is cut out, and that what is told agrees with the audit
//! log.

use std::fs;
use std::sync::{Arc, Mutex, Once};

use crds::audit::AuditType;
use crds::runner::{RunOrder, RunOutcome};
use crds::target::Engine;
use crds::workload::{Pgbench, PgbenchProtocol, PgbenchScript, Workload, WorkloadType};
use rstest::rstest;
use runner::load;
use runner::parse::pgbench::window::Window;
use runner::parse::result::Reason;
use runner::parse::{self, Capture, Flag, ToolResult};
use runner::process::{self, Lines};
use runner::stop::Stop;

use super::bench::{Bench, PASSWORD};

/// Rows of `pgbench_accounts`: scale 1.
const ROWS: i64 = 100_000;

fn workload(pgbench: Pgbench) -> Workload {
    Workload {
        type_: WorkloadType::Pgbench,
        pgbench: Some(pgbench),
        ..Workload::default()
    }
}

/// A server with pgbench's data, by way of `prepare`.
async fn prepared(type_: AuditType, pgbench: Pgbench) -> Bench {
    install_if_missing();
    let bench = Bench::on(Engine::PostgreSQL, type_, workload(pgbench), ROWS).await;
    let report = bench.prepare(&bench.prepare_order(1)).await;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );
    let dataset = report.dataset.unwrap();
    assert_eq!((dataset.tables, dataset.rows_per_table), (4, ROWS));
    bench
}

fn install_if_missing() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("pgbench").exists()) {
            let done = std::process::Command::new("apt-get")
                .args(["install", "-y", "--no-install-recommends", "postgresql"])
                .env("DEBIAN_FRONTEND", "noninteractive")
                .status();
            assert!(
                done.is_ok_and(|status| status.success()),
                "these tests need pgbench: apt-get install postgresql"
            );
        }
    });
}

fn order(bench: &Bench, pgbench: Pgbench) -> RunOrder {
    RunOrder {
        connection: bench.login.connection.clone(),
        workload: workload(pgbench),
        threads: 3,
        warmup_seconds: 1,
        duration_seconds: 3,
        report_interval_seconds: 1,
        seed: 7,
        ..RunOrder::default()
    }
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

async fn applied(bench: &Bench, order: &RunOrder, script: Option<&str>) -> Applied {
    let scratch = bench.scratch.path();
    if let Some(script) = script {
        fs::write(scratch.join("own.sql"), script).unwrap();
    }
    let generator = load::generator(WorkloadType::Pgbench).unwrap();
    let invocation = (generator.run)(order, &bench.site()).unwrap();
    assert!(!format!("{invocation:?}").contains(PASSWORD));
    let log = Arc::new(Log(Mutex::new((
        (generator.window)(order).unwrap(),
        0,
        Vec::new(),
    ))));
    let finished = process::run(&invocation, Some(log.clone()), std::future::pending())
        .await
        .unwrap();
    let whole = parse::pgbench::parse(&Capture {
        stdout: &finished.stdout,
        stderr: &finished.stderr,
        exit_code: finished.exit_code,
        command: parse::Command::Run,
    });
    let left = fs::read_dir(scratch).unwrap().count();
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
    let bench = prepared(AuditType::None, Pgbench::default()).await;
    let order = order(
        &bench,
        Pgbench {
            builtin: Some(script),
            protocol,
            ..Pgbench::default()
        },
    );
    let Applied {
        whole,
        window,
        lines,
        started,
    } = applied(&bench, &order, None).await;
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
    let bench = prepared(AuditType::None, Pgbench::default()).await;
    let mut order = order(
        &bench,
        Pgbench {
            builtin: Some(PgbenchScript::SelectOnly),
            ..Pgbench::default()
        },
    );
    order.rate = Some(200);
    let Applied { window, .. } = applied(&bench, &order, None).await;
    assert!(window.acceptable, "{:?}", window.details);
    let done = window.figures.transactions.unwrap();
    assert!((450..750).contains(&done), "{done} of 600");
    // One transaction takes 50 ms and 200 a second are asked of 3 clients: the queue grows.
    order.workload = workload(Pgbench {
        script_config_map: Some("own".to_owned()),
        ..Pgbench::default()
    });
    let Applied { window, .. } = applied(&bench, &order, Some("SELECT pg_sleep(0.05);\n")).await;
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
    let bench = prepared(AuditType::None, Pgbench::default()).await;
    let contended = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n\
                     SELECT pg_sleep(0.002);\nEND;\n";
    let own = |tries| Pgbench {
        script_config_map: Some("own".to_owned()),
        max_tries: tries,
        ..Pgbench::default()
    };
    let Applied { window, .. } = applied(&bench, &order(&bench, own(Some(3))), Some(contended)).await;
    assert!(window.acceptable, "{:?}", window.details);
    assert!(window.flags.contains(&Flag::Retries), "{:?}", window.flags);
    assert!(window.figures.retries > window.figures.failed_transactions);

    let Applied { window, .. } = applied(&bench, &order(&bench, own(None)), Some(contended)).await;
    assert!(
        window.flags.contains(&Flag::FailedTransactions),
        "{:?}",
        window.flags
    );

    let Applied { window, .. } = applied(
        &bench,
        &order(&bench, own(None)),
        Some("SELECT * FROM nowhere;\n"),
    )
    .await;
    assert!(!window.acceptable);
    assert!(window.reasons.contains(&Reason::Aborted), "{:?}", window.reasons);

    let mut wrong = order(&bench, own(None));
    wrong.connection.schema = "nowhere".to_owned();
    let Applied { window, .. } = applied(&bench, &wrong, Some("SELECT 1;\n")).await;
    assert!(
        window.reasons.contains(&Reason::UnknownDatabase),
        "{:?}",
        window.reasons
    );
}

#[rstest]
#[case(AuditType::PgAudit, PgbenchScript::SelectOnly, PgbenchProtocol::Prepared)]
#[case(AuditType::LogStatement, PgbenchScript::TpcbLike, PgbenchProtocol::Simple)]
#[tokio::test]
async fn a_run_is_told_with_its_evidence(
    #[case] type_: AuditType,
    #[case] script: PgbenchScript,
    #[case] protocol: PgbenchProtocol,
) {
    let read_only = script == PgbenchScript::SelectOnly;
    let pgbench = Pgbench {
        builtin: Some(script),
        protocol,
        ..Pgbench::default()
    };
    let bench = prepared(type_, pgbench).await;
    let order = bench.proved(2, type_).await;
    let told = bench.run(&order, &Stop::on(std::future::pending())).await;
    let report = &told.report;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );
    assert!(report.client_version.as_ref().unwrap().starts_with("pgbench "));
    let result = report.result.as_ref().unwrap();
    let observed = report.observed.as_ref().unwrap();
    assert_eq!(result.window_micros, Some(3_000_000));
    assert!(result.qps_milli > Some(0) && result.latency_p95_micros > Some(0));
    assert!(observed.queries_sent > result.queries);
    assert!(
        (990_000..=1_010_000).contains(&result.audit_completeness_ppm.unwrap()),
        "{result:?} {observed:?}"
    );
    assert_eq!(observed.same_boot, Some(true));
    assert_eq!(observed.rows_written == Some(0), read_only, "{observed:?}");
    assert_eq!((told.intervals.len(), told.step_seconds), (3, 1));
    let log = fs::read_dir(format!("{}/log", bench.server.layout().volume)).unwrap();
    for file in log.flatten() {
        assert!(!fs::read_to_string(file.path()).unwrap().contains(PASSWORD));
    }
}
