//! From a boot to the proof, for every mechanism, against a real server, real sysbench and a small agent.

use std::time::{Duration, Instant};

use crds::audit::{AuditState, AuditType};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::run::EvidenceLevel;
use crds::target::Engine;
use rstest::rstest;

use super::{make_data, none, order, prepared, ready, run_order};
use crate::live::{parameters, request, setting};
use crate::testing::{TestAgent, TestServer};
use crate::{Agent, Claim, DatabaseAccess as _, DatabaseError, Databases, Established, audit};

/// Queries that sysbench says it sent.
fn queries(report: &str) -> i64 {
    let line = report
        .lines()
        .find(|l| l.trim_start().starts_with("total:"))
        .unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

#[rstest]
#[case(AuditType::None, AuditState::On)]
#[case(AuditType::LogStatement, AuditState::On)]
#[case(AuditType::LogStatement, AuditState::InstalledOff)]
#[case(AuditType::PgAudit, AuditState::On)]
#[case(AuditType::PgAudit, AuditState::InstalledOff)]
#[tokio::test]
async fn a_setting_is_proved_records_every_statement_and_stays_in_force(
    #[case] type_: AuditType,
    #[case] state: AuditState,
) {
    let audit = setting(type_, state);
    let (server, agent, login) = prepared(&audit, &Parameters::new()).await;
    let on = state == AuditState::On && type_ != AuditType::None;
    let mut order = order(1, &audit);
    order.parameters = parameters(&[("work_mem", "5MB")]);
    let start = Instant::now();
    let proof = ready(&login, &order).await;
    eprintln!("proved after a boot in {:?}", start.elapsed());
    assert_eq!(proof.evidence.level, EvidenceLevel::Proved);
    assert_eq!(proof.evidence.audit.recording, on);
    assert_eq!(proof.evidence.audit.installed, type_ != AuditType::None);
    assert_eq!(proof.evidence.audit.canary_found, Some(on));
    assert_eq!(proof.audit_log.is_some(), on);
    assert_eq!(proof.evidence.parameters[0].found, (5 << 20).to_string());
    assert!(proof.evidence.settle.met, "{:?}", proof.evidence.settle);
    assert!(proof.evidence.cache.reached, "{:?}", proof.evidence.cache);
    assert!(proof.environment.table_bytes.unwrap() > 0 && proof.environment.kernel.is_some());
    assert_eq!(proof.environment.role.as_deref(), Some("Primary"));
    assert_eq!(proof.environment.buffer_pool_bytes, Some(64 << 20));

    // Load, as a runner applies it.
    assert_eq!(
        Databases
            .claim(&login, &order.run_uid, order.epoch)
            .await
            .unwrap(),
        Claim::Claimed
    );
    let before = Databases.counters(&login).await.unwrap();
    let report = server.sysbench(
        "oltp_read_only",
        "run",
        &[
            "--tables=2",
            "--table-size=2000",
            "--threads=2",
            "--events=200",
            "--time=0",
        ],
    );
    let run = run_order(&login, &order, &proof);
    if let Some(position) = &proof.audit_log {
        let log = Agent::new(agent.base(), agent.token())
            .audit(position.offset, &position.file, None)
            .await
            .unwrap();
        let classes = audit::expected_classes(Engine::PostgreSQL, &audit).unwrap();
        let found: i64 = classes.iter().filter_map(|c| log.events.get(*c)).sum();
        let sent = queries(&report);
        eprintln!("{found} of {sent}: {:?}", log.events);
        // What we send ourselves between the proof and the load is a handful.
        assert!(
            found >= sent && found <= sent + 30,
            "{found} of {sent}: {:?}",
            log.events
        );
    }
    let after = Databases.after_run(&login, &run, &before).await.unwrap();
    assert!(after.same_boot, "{after:?}");
    assert_eq!(after.changed_settings, []);
    assert_eq!((after.rows_written, after.audit_lost), (0, None));

    // A second run of the visit: nothing is changed, the proof stands, in little time.
    let mut second = order.clone();
    (second.run_uid, second.epoch, second.fresh_boot) = ("run-2".to_owned(), 2, false);
    let start = Instant::now();
    let again = ready(&login, &second).await;
    eprintln!("proved within a visit in {:?}", start.elapsed());
    assert_eq!(again.evidence.audit.canary_found, Some(on));
    assert_eq!(again.started, proof.started);
    if let (Some(first), Some(then)) = (&proof.audit_log, &again.audit_log) {
        assert!(then.offset > first.offset, "the log was kept within the visit");
    }

    // Somebody changes a setting and writes rows: seen at the end.
    let before = Databases.counters(&login).await.unwrap();
    server.sql("ALTER SYSTEM SET work_mem = '3MB'");
    server.sql("SELECT pg_reload_conf()");
    server.sql_in("sbtest", "INSERT INTO sbtest1 (k, c, pad) VALUES (1, '', '')");
    let changed = Databases.after_run(&login, &run, &before).await.unwrap();
    assert_eq!(changed.changed_settings.len(), 1, "{changed:?}");
    assert_eq!(changed.rows_written, 1);
}

#[tokio::test]
async fn the_arms_of_a_block_one_boot_each_on_the_same_data() {
    let pgaudit = setting(AuditType::PgAudit, AuditState::On);
    let statements = setting(AuditType::LogStatement, AuditState::On);
    let (mut server, _agent, login) = prepared(&pgaudit, &Parameters::new()).await;
    // A boot for another arm.
    let wrong = Databases.establish(&login, &order(1, &none())).await.unwrap();
    let Established::NotInForce { problems } = wrong else {
        panic!("{wrong:?}")
    };
    assert!(
        problems[0].message.contains("restarted without it"),
        "{problems:?}"
    );
    ready(&login, &order(1, &pgaudit)).await;
    let extension = "SELECT count(*) FROM pg_extension WHERE extname = 'pgaudit'";
    assert_eq!(server.sql_in("sbtest", extension), "1");
    let log = |name: &str| format!("{}/log/{name}", server.layout().volume);
    assert!(std::fs::metadata(log("pgaudit.log")).unwrap().len() > 0);
    let audit_log = log("pgaudit.log");

    for (epoch, arm) in [(2, &none()), (3, &statements), (4, &pgaudit), (5, &statements)] {
        server.restart(&Parameters::new(), Some(&request(Parameters::new(), arm)));
        let proof = ready(&login, &order(epoch, arm)).await;
        assert_eq!(
            proof.evidence.audit.canary_found,
            Some(arm.type_ != AuditType::None)
        );
        let loaded = arm.type_ == AuditType::PgAudit;
        assert_eq!(
            std::path::Path::new(&audit_log).exists(),
            loaded,
            "the log of the arm before is gone"
        );
        assert_eq!(server.sql_in("sbtest", extension), i32::from(loaded).to_string());
        // Data definition works in every arm.
        server.sql_in("sbtest", "CREATE TABLE other (i int)");
        server.sql_in("sbtest", "DROP TABLE other");
    }
}

#[tokio::test]
async fn data_that_is_missing_or_grown_is_asked_for_before_anything_changes() {
    let server = TestServer::start_of(
        Engine::PostgreSQL,
        &Parameters::new(),
        Some(&request(Parameters::new(), &none())),
    );
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let order = order(1, &none());
    let missing = Databases.establish(&login, &order).await.unwrap();
    assert!(
        matches!(&missing, Established::DatasetNeeded { found } if found.contains("no finished data")),
        "{missing:?}"
    );
    assert_eq!(server.sql("SELECT epoch FROM benchmark_campaign.fence"), "0");
    make_data(&server, &login, 1).await;
    ready(&login, &order).await;
    server.sql("UPDATE benchmark_campaign.dataset SET bytes = bytes / 2");
    let grown = Databases.establish(&login, &order).await.unwrap();
    assert!(
        matches!(&grown, Established::DatasetNeeded { found } if found.contains("grown")),
        "{grown:?}"
    );
    // The marker outlives the data: a database that somebody dropped is missed.
    server.sql("DROP DATABASE sbtest");
    let dropped = Databases.establish(&login, &order).await.unwrap();
    assert!(
        matches!(&dropped, Established::DatasetNeeded { found } if found.contains("0 tables")),
        "{dropped:?}"
    );
    let mut late = order.clone();
    (late.run_uid, late.epoch) = ("late".to_owned(), 0);
    let fenced = Databases.establish(&login, &late).await.unwrap();
    assert!(
        matches!(&fenced, Established::Fenced { holder } if holder == "run-1"),
        "{fenced:?}"
    );
    assert!(matches!(
        Databases.claim(&login, "other", 9).await.unwrap(),
        Claim::Fenced { .. }
    ));
}

#[tokio::test]
async fn caches_are_cold_dumped_or_warm_as_wanted() {
    let dumped = crate::configuration::cache_parameters(Engine::PostgreSQL, CacheState::Dumped).unwrap();
    let (mut server, _agent, login) = prepared(&none(), &dumped).await;
    let mut wanted = order(1, &none());
    ready(&login, &wanted).await;

    server.restart(&Parameters::new(), Some(&request(dumped, &none())));
    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-2".to_owned(), 2, CacheState::Dumped);
    let loaded = ready(&login, &wanted).await;
    assert!(loaded.evidence.cache.reached, "{:?}", loaded.evidence);

    server.restart(&Parameters::new(), Some(&request(Parameters::new(), &none())));
    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-3".to_owned(), 3, CacheState::Dumped);
    assert!(
        !ready(&login, &wanted).await.evidence.cache.reached,
        "nothing was loaded"
    );

    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-4".to_owned(), 4, CacheState::Prewarmed);
    let warm = ready(&login, &wanted).await.evidence.cache;
    assert!(warm.reached && warm.miss_ppm.unwrap() < 10_000, "{warm:?}");
}

#[tokio::test]
async fn a_server_that_still_writes_has_not_settled_and_the_limit_holds() {
    let fast = parameters(&[("synchronous_commit", "off")]);
    let (server, _agent, login) = prepared(&none(), &fast).await;
    let mut wanted = order(1, &none());
    wanted.settle.timeout = Duration::from_secs(2).into();
    wanted.rebuild_when_grown = None;
    let (port, user, password) = (
        server.layout().port,
        login.username.clone(),
        login.password.clone(),
    );
    let mut writer = std::process::Command::new("sysbench")
        .args([
            "oltp_update_non_index",
            "--db-driver=pgsql",
            "--pgsql-host=127.0.0.1",
            "--rand-type=uniform",
        ])
        .args([
            "--tables=2",
            "--table-size=2000",
            "--threads=4",
            "--time=60",
            "--pgsql-db=sbtest",
        ])
        .arg(format!("--pgsql-port={port}"))
        .arg(format!("--pgsql-user={user}"))
        .arg(format!("--pgsql-password={password}"))
        .arg("run")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let unsettled = ready(&login, &wanted).await.evidence.settle;
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(!unsettled.met && !unsettled.unmet.is_empty(), "{unsettled:?}");
    assert!((2000..5000).contains(&unsettled.waited_millis), "{unsettled:?}");
}

#[tokio::test]
async fn a_borrowed_server_is_proved_by_read_back_only() {
    let audit = setting(AuditType::LogStatement, AuditState::On);
    let (server, _agent, _) = prepared(&audit, &Parameters::new()).await;
    let proof = ready(&server.login(None), &order(1, &audit)).await;
    assert_eq!(proof.evidence.level, EvidenceLevel::ReadBack);
    assert_eq!(proof.evidence.audit.canary_found, None);
    assert!(proof.evidence.audit.recording && proof.audit_log.is_none());
}

/// A role that is no superuser is refused until it has what each refusal names, and then is served.
#[tokio::test]
async fn a_borrowed_server_names_each_grant_that_is_missing() {
    let server = super::start(&Parameters::new());
    server.sql("CREATE ROLE small LOGIN PASSWORD 'x'");
    server.sql("DROP SCHEMA benchmark_campaign CASCADE");
    let mut login = server.login(None);
    (login.username, login.password) = ("small".to_owned(), "x".to_owned());
    let mut named = Vec::new();
    let mut give = |error: &DatabaseError| {
        let text = error.to_string();
        let (_, advice) = text.rsplit_once("; ").unwrap();
        let grant = advice.split(" is missing").next().unwrap();
        let sql = if grant.starts_with("ALTER ROLE") {
            grant.replace('…', "small")
        } else {
            format!("{grant} TO small")
        };
        assert!(!named.contains(&sql), "{sql} was given and is not enough: {text}");
        server.sql(&sql);
        named.push(sql);
    };
    loop {
        match Databases.begin_dataset(&login, "run-1", 1).await {
            Ok(claim) => break assert_eq!(claim, Claim::Claimed),
            Err(error) => give(&error),
        }
    }
    for table in ["sbtest1", "sbtest2"] {
        server.sql_in(
            "sbtest",
            &format!(
                "SET ROLE small; CREATE TABLE {table} (id int PRIMARY KEY, k int, pad text); INSERT INTO {table} SELECT i, i, \
                 repeat('x', 100) FROM generate_series(1, 2000) AS i; CREATE INDEX ON {table} (k)"
            ),
        );
    }
    let audit = setting(AuditType::LogStatement, AuditState::On);
    let wanted = order(1, &audit);
    let tables = crate::marker::table_names(&wanted.workload);
    Databases
        .finish_dataset(&login, ("run-1", 1), &wanted.dataset_hash, &tables, 2000)
        .await
        .unwrap()
        .unwrap();
    let proof = loop {
        match Databases.establish(&login, &wanted).await {
            Ok(Established::Ready(proof)) => break proof,
            Ok(other) => panic!("{other:?}"),
            Err(error) => give(&error),
        }
    };
    assert_eq!(proof.evidence.level, EvidenceLevel::ReadBack);
    assert!(proof.evidence.audit.recording);
    // Without the right to make pg_prewarm the tables are scanned.
    assert!(proof.evidence.cache.reached, "{:?}", proof.evidence.cache);
    assert_eq!(
        named,
        [
            "GRANT CREATE, CONNECT ON DATABASE postgres TO small",
            "ALTER ROLE small CREATEDB",
            "GRANT ALTER SYSTEM ON PARAMETER log_statement TO small",
            "GRANT EXECUTE ON FUNCTION pg_reload_conf TO small",
        ]
    );
}
