//! sysbench: data is made and counted, a run is measured once, what is told agrees with what the server and its audit log
//! say.

use std::time::Duration;

use crds::audit::AuditType;
use crds::parameter::ParameterValue;
use crds::runner::{AuditLogPosition, RunOrder, RunOutcome, RunReport, TERMINATION_MESSAGE_LIMIT};
use crds::target::Engine;
use crds::workload::{Sysbench, Workload};
use runner::stop::Stop;
use tokio::process::Command;

use super::bench::{Bench, PASSWORD, TOKEN};

const TABLES: i32 = 2;
const ROWS: i64 = 2_000;

async fn bench(engine: Engine, type_: AuditType) -> Bench {
    let sysbench = Sysbench {
        script: "oltp_read_only".to_owned(),
        tables: TABLES,
        options: [("rand-type".to_owned(), ParameterValue::from("uniform"))].into(),
        ..Sysbench::default()
    };
    let workload = Workload {
        sysbench: Some(sysbench),
        ..Workload::default()
    };
    Bench::on(engine, type_, workload, ROWS).await
}

/// The same binary, login file and evidence on the other protocol, one process a connection.
#[tokio::test]
async fn postgresql_is_prepared_and_measured_with_its_evidence() {
    for type_ in [AuditType::PgAudit, AuditType::LogStatement] {
        let bench = bench(Engine::PostgreSQL, type_).await;
        let report = bench.prepare(&bench.prepare_order(1)).await;
        assert_eq!(
            (report.outcome, report.message.as_str()),
            (RunOutcome::Completed, "")
        );
        let order = bench.proved(2, type_).await;
        let told = bench.run(&order, &Stop::on(std::future::pending())).await;
        let report = &told.report;
        assert_eq!(
            (report.outcome, report.message.as_str()),
            (RunOutcome::Completed, "")
        );
        let result = report.result.as_ref().unwrap();
        let observed = report.observed.as_ref().unwrap();
        assert!(result.tps_milli.unwrap() > 0 && result.latency_p95_micros.unwrap() > 0);
        assert!(
            (990_000..=1_010_000).contains(&result.audit_completeness_ppm.unwrap()),
            "{result:?} {observed:?}"
        );
        let bytes = result.log_bytes_per_1000_statements.unwrap();
        eprintln!("{type_:?}: {bytes} bytes of log for 1,000 statements");
        assert!((50_000..300_000).contains(&bytes), "{result:?}");
        assert_eq!((observed.same_boot, observed.rows_written), (Some(true), Some(0)));
        assert!(observed.changed_settings.is_empty(), "{observed:?}");
        // Nobody's log holds the password, as itself or as what the server stores of it.
        let log = std::fs::read_dir(format!("{}/log", bench.server.layout().volume)).unwrap();
        for file in log.flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap();
            assert!(!text.contains(PASSWORD) && !text.contains("SCRAM-SHA-256$"));
        }
    }
}

#[tokio::test]
async fn a_run_is_measured_once_and_told_with_its_evidence() {
    let bench = bench(Engine::MariaDB, AuditType::ServerAudit).await;
    let report = bench.prepare(&bench.prepare_order(1)).await;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );
    let dataset = report.dataset.unwrap();
    assert_eq!(
        (dataset.tables, dataset.rows_per_table),
        (i64::from(TABLES), ROWS)
    );

    let order = bench.proved(2, AuditType::ServerAudit).await;
    let never = Stop::on(std::future::pending());
    let told = bench.run(&order, &never).await;
    let report = &told.report;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );
    assert_eq!((report.run_uid.as_str(), report.epoch), ("run-2", 2));
    assert!(report.client_version.as_ref().unwrap().starts_with("sysbench 1."));
    let result = report.result.as_ref().unwrap();
    let observed = report.observed.as_ref().unwrap();
    assert!(result.tps_milli.unwrap() > 0 && result.latency_p95_micros.unwrap() > 0);
    assert!(
        (2_900_000..3_500_000).contains(&result.window_micros.unwrap()),
        "{result:?}"
    );
    // The last second's line races with the end of the load: sysbench may leave it out.
    assert!(matches!(told.intervals.len(), 2 | 3), "{:?}", told.intervals);
    // One audit record for each statement of the whole load, warm-up included.
    assert!(
        (990_000..=1_010_000).contains(&result.audit_completeness_ppm.unwrap()),
        "{result:?} {observed:?}"
    );
    assert!(result.log_bytes_per_1000_statements.unwrap() > 50_000);
    assert!(observed.queries_sent.unwrap() > result.queries.unwrap());
    assert_eq!((observed.same_boot, observed.rows_written), (Some(true), Some(0)));
    assert!(
        observed.changed_settings.is_empty(),
        "{:?}",
        observed.changed_settings
    );
    assert!(result.round_trip_nanos.unwrap() > 0);
    assert!(result.client_cpu_nanos_per_statement.unwrap() > 0 && result.generator_cpu_ppm.unwrap() > 0);
    assert_eq!(
        std::fs::read_dir(bench.scratch.path()).unwrap().count(),
        0,
        "the login's file is gone"
    );

    // A Job that starts twice measures once.
    let again = bench.run(&order, &never).await;
    assert_eq!(
        (again.report.outcome, again.report.result),
        (RunOutcome::AlreadyStarted, None)
    );
    // The next run has taken the row; the one before is too late.
    let next = bench.proved(3, AuditType::ServerAudit).await;
    assert_eq!(bench.run(&order, &never).await.report.outcome, RunOutcome::Fenced);
    // Another boot than the proved one is not measured, and not claimed.
    let moved = RunOrder {
        server_started: next.server_started.map(|started| started - 100),
        ..next.clone()
    };
    assert_eq!(
        bench.run(&moved, &never).await.report.outcome,
        RunOutcome::BootChanged
    );
    // Told to stop during the load, it stops within the grace period.
    let long = RunOrder {
        duration_seconds: 600,
        ..next
    };
    let told = bench
        .run(&long, &Stop::on(tokio::time::sleep(Duration::from_millis(1_500))))
        .await;
    assert_eq!(
        (told.report.outcome, told.report.result),
        (RunOutcome::Interrupted, None)
    );
    // Nor is data made that a measured run may still need.
    assert_eq!(
        bench.prepare(&bench.prepare_order(2)).await.outcome,
        RunOutcome::Fenced
    );
}

#[tokio::test]
async fn data_is_made_only_when_every_row_is_there() {
    let bench = bench(Engine::MariaDB, AuditType::None).await;
    // A script that says what a good one says, and inserts nothing.
    let lua = "function prepare()\n  local con = sysbench.sql.driver():connect()\n  for i = 1, 2 do\n    print(\"Creating table 'sbtest\" .. i .. \"'...\")\n    con:query(\"CREATE TABLE sbtest\" .. i .. \" (id INT PRIMARY KEY)\")\n    print(\"Inserting 2000 records into 'sbtest\" .. i .. \"'\")\n    print(\"Creating a secondary index on 'sbtest\" .. i .. \"'...\")\n  end\nend\nfunction event() end\n";
    std::fs::write(bench.scratch.path().join("liar.lua"), lua).unwrap();
    let mut order = bench.prepare_order(1);
    let sysbench = order.workload.sysbench.as_mut().unwrap();
    (sysbench.prepare_script, sysbench.lua_config_map) =
        (Some("liar.lua".to_owned()), Some("scripts".to_owned()));
    let report = bench.prepare(&order).await;
    assert_eq!(report.outcome, RunOutcome::ToolFailed);
    assert!(
        report.message.contains("sbtest1 has 0 rows, wanted 2000"),
        "{}",
        report.message
    );
    assert_eq!(report.dataset, None);

    // What was half made is in nobody's way.
    let report = bench.prepare(&bench.prepare_order(2)).await;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );

    // A tool that fails is told with its cause.
    let mut order = bench.proved(3, AuditType::None).await;
    order.workload.sysbench.as_mut().unwrap().tables = 3;
    let told = bench.run(&order, &Stop::on(std::future::pending())).await;
    assert_eq!(
        (told.report.outcome, told.report.result),
        (RunOutcome::ToolFailed, None)
    );
    assert!(
        told.report.message.contains("MissingTable"),
        "{}",
        told.report.message
    );
}

#[tokio::test]
async fn a_rate_is_kept_and_one_that_overflows_is_told() {
    let bench = bench(Engine::MariaDB, AuditType::None).await;
    let report = bench.prepare(&bench.prepare_order(1)).await;
    assert_eq!(report.outcome, RunOutcome::Completed, "{}", report.message);
    let never = Stop::on(std::future::pending());
    let mut order = bench.proved(2, AuditType::None).await;
    order.rate = Some(50);
    let report = bench.run(&order, &never).await.report;
    assert_eq!(
        (report.outcome, report.message.as_str()),
        (RunOutcome::Completed, "")
    );
    let done = report.result.unwrap().transactions.unwrap();
    assert!((100..200).contains(&done), "{done} of 150");
    // The tool keeps 100,000 that wait, no more.
    let mut order = bench.proved(3, AuditType::None).await;
    order.rate = Some(1_000_000);
    let report = bench.run(&order, &never).await.report;
    assert_eq!((report.outcome, report.result), (RunOutcome::ToolFailed, None));
    assert!(report.message.contains("RateOverload"), "{}", report.message);
}

#[tokio::test]
async fn the_program_reads_files_and_leaves_a_termination_message() {
    let bench = bench(Engine::MariaDB, AuditType::GeneralLog).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [
        ("username", "runner"),
        ("password", PASSWORD),
        ("agent-token", TOKEN),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    let started = async |command: &str, order: String| {
        std::fs::write(path("order.json"), order).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_runner"))
            .arg(command)
            .args(["--order".as_ref(), path("order.json").as_os_str()])
            .args(["--credentials".as_ref(), folder.path().as_os_str()])
            .args(["--scratch".as_ref(), bench.scratch.path().as_os_str()])
            .args(["--termination-log".as_ref(), path("message").as_os_str()])
            .output()
            .await
            .unwrap();
        let message = std::fs::read_to_string(path("message")).unwrap();
        assert!(message.len() <= TERMINATION_MESSAGE_LIMIT);
        let printed = String::from_utf8(output.stdout).unwrap();
        let logged = String::from_utf8(output.stderr).unwrap();
        assert!(!format!("{printed}{logged}{message}").contains(PASSWORD));
        let last: RunReport = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        let report: RunReport = serde_json::from_str(&message).unwrap();
        assert_eq!(last.outcome, report.outcome);
        (output.status.code().unwrap(), report)
    };
    let prepare = serde_json::to_string(&bench.prepare_order(1)).unwrap();
    let (code, report) = started("prepare", prepare).await;
    assert_eq!(
        (code, report.outcome, report.message.as_str()),
        (0, RunOutcome::Completed, "")
    );

    let order = bench.proved(2, AuditType::GeneralLog).await;
    assert!(matches!(&order.audit_log, Some(AuditLogPosition { file, .. }) if file.ends_with("general.log")));
    let order = serde_json::to_string(&order).unwrap();
    let (code, report) = started("run", order.clone()).await;
    assert_eq!(
        (code, report.outcome, report.message.as_str()),
        (0, RunOutcome::Completed, "")
    );
    // The last second may be missing, as above.
    assert!(matches!(report.series.unwrap().tps.len(), 2 | 3));
    let completeness = report.result.unwrap().audit_completeness_ppm.unwrap();
    assert!((990_000..=1_010_000).contains(&completeness), "{completeness}");

    let (code, report) = started("run", order).await;
    assert_eq!((code, report.outcome), (3, RunOutcome::AlreadyStarted));
    let (code, report) = started("run", "{\"threads\": \"many\"}".to_owned()).await;
    assert_eq!((code, report.outcome), (1, RunOutcome::Failed));
    assert!(report.message.contains("order"), "{}", report.message);
    drop(bench.server);
}
