//! From a boot to the proof, for every mechanism, against a real server, real sysbench and a small agent.

use std::time::{Duration, Instant};

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::run::EvidenceLevel;
use crds::runner::RunOrder;
use crds::target::Engine;
use rstest::rstest;

use super::{ROWS, TABLES, order, parameters, request, setting, workload};
use crate::testing::{TestAgent, TestServer};
use crate::{
    Agent, Claim, DatabaseAccess as _, Databases, EstablishOrder, Established, Login, Proof, audit, marker,
};

/// A server started for this setting, with data.
pub(super) async fn prepared(audit: &AuditSetting, wanted: &Parameters) -> (TestServer, TestAgent, Login) {
    let server = TestServer::start_with(&Parameters::new(), Some(&request(wanted.clone(), audit)));
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    make_data(&server, &login, 1).await;
    (server, agent, login)
}

async fn make_data(server: &TestServer, login: &Login, epoch: i64) {
    let run = format!("run-{epoch}");
    assert_eq!(
        Databases.begin_dataset(login, &run, epoch).await.unwrap(),
        Claim::Claimed
    );
    let options = [format!("--tables={TABLES}"), format!("--table-size={ROWS}")];
    server.sysbench(
        "oltp_read_only",
        "prepare",
        &options.each_ref().map(String::as_str),
    );
    let hash = marker::dataset_hash(Engine::MariaDB, &workload(), ROWS);
    let made = Databases
        .finish_dataset(
            login,
            (&run, epoch),
            &hash,
            &marker::table_names(&workload()),
            ROWS,
        )
        .await
        .unwrap();
    assert!(made.is_some());
}

pub(super) async fn ready(login: &Login, order: &EstablishOrder) -> Proof {
    match Databases.establish(login, order).await.unwrap() {
        Established::Ready(proof) => *proof,
        other => panic!("{other:?}"),
    }
}

fn run_order(login: &Login, order: &EstablishOrder, proof: &Proof) -> RunOrder {
    RunOrder {
        connection: login.connection.clone(),
        run_uid: order.run_uid.clone(),
        epoch: order.epoch,
        workload: order.workload.clone(),
        server_started: Some(proof.started),
        parameters: order.parameters.clone(),
        audit: order.audit.clone(),
        audit_log: proof.audit_log.clone(),
        ..RunOrder::default()
    }
}

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
#[case(AuditType::ServerAudit, AuditState::On)]
#[case(AuditType::ServerAudit, AuditState::InstalledOff)]
#[case(AuditType::GeneralLog, AuditState::On)]
#[case(AuditType::SlowLog, AuditState::On)]
#[tokio::test]
async fn a_setting_is_proved_records_every_statement_and_stays_in_force(
    #[case] type_: AuditType,
    #[case] state: AuditState,
) {
    let audit = setting(type_, state);
    let (server, agent, login) = prepared(&audit, &Parameters::new()).await;
    let on = state == AuditState::On && type_ != AuditType::None;
    let mut order = order(1, &audit);
    order.parameters = parameters(&[("max_prepared_stmt_count", "20000")]);
    let start = Instant::now();
    let proof = ready(&login, &order).await;
    eprintln!("proved after a boot in {:?}", start.elapsed());
    assert_eq!(proof.evidence.level, EvidenceLevel::Proved);
    assert_eq!(proof.evidence.audit.recording, on);
    assert_eq!(proof.evidence.audit.installed, type_ != AuditType::None);
    assert_eq!(proof.evidence.audit.canary_found, Some(on));
    assert_eq!(proof.audit_log.is_some(), on);
    assert_eq!(proof.evidence.parameters[0].found, "20000");
    assert!(proof.evidence.settle.met, "{:?}", proof.evidence.settle);
    assert!(proof.evidence.cache.reached, "{:?}", proof.evidence.cache);
    assert!(proof.environment.table_bytes.unwrap() > 0 && proof.environment.kernel.is_some());

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
        let classes = audit::expected_classes(Engine::MariaDB, &audit).unwrap();
        let found: i64 = classes.iter().filter_map(|c| log.events.get(*c)).sum();
        let sent = queries(&report);
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
    assert_eq!(after.rows_written, 0);
    assert_eq!(after.audit_lost, (type_ == AuditType::ServerAudit).then_some(0));

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
    server.sql("SET GLOBAL max_prepared_stmt_count = 19999; INSERT INTO sbtest.sbtest1 (k, c, pad) VALUES (1, '', '')");
    let changed = Databases.after_run(&login, &run, &before).await.unwrap();
    assert_eq!(changed.changed_settings.len(), 1, "{changed:?}");
    assert_eq!(changed.rows_written, 1);
}

#[tokio::test]
async fn data_that_is_missing_or_grown_is_asked_for_before_anything_changes() {
    let audit = setting(AuditType::None, AuditState::On);
    let server = TestServer::start_with(&Parameters::new(), Some(&request(Parameters::new(), &audit)));
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let order = order(1, &audit);
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
    let mut other = order.clone();
    other.dataset_hash = "another".to_owned();
    assert!(matches!(
        Databases.establish(&login, &other).await.unwrap(),
        Established::DatasetNeeded { .. }
    ));
    // Whoever is too late learns who holds it.
    let mut late = order.clone();
    (late.run_uid, late.epoch) = ("late".to_owned(), 0);
    let fenced = Databases.establish(&login, &late).await.unwrap();
    assert!(
        matches!(&fenced, Established::Fenced { holder } if holder == "run-1"),
        "{fenced:?}"
    );
}

#[tokio::test]
async fn a_boot_for_another_arm_is_not_in_force() {
    let none = setting(AuditType::None, AuditState::On);
    let plugin = setting(AuditType::ServerAudit, AuditState::On);
    let (mut server, _agent, login) = prepared(&plugin, &Parameters::new()).await;
    let wrong = Databases.establish(&login, &order(1, &none)).await.unwrap();
    let Established::NotInForce { problems } = wrong else {
        panic!("{wrong:?}")
    };
    assert!(
        problems[0].message.contains("restarted without it"),
        "{problems:?}"
    );
    ready(&login, &order(1, &plugin)).await;

    // The arms of a block, one boot each, on the same data; what the volatile part set does not survive.
    let log = format!("{}/log/server_audit.log", server.layout().volume);
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let flush = parameters(&[
        ("innodb_flush_log_at_trx_commit", "0"),
        ("innodb_flush_method", "fsync"),
    ]);
    server.restart(&Parameters::new(), Some(&request(flush.clone(), &none)));
    let mut without = order(2, &none);
    without.parameters = flush;
    let proof = ready(&login, &without).await;
    assert!(
        !std::path::Path::new(&log).exists(),
        "the log of the arm before is gone"
    );
    let found: Vec<(&str, &str, bool)> = proof
        .evidence
        .parameters
        .iter()
        .map(|p| (p.name.as_str(), p.found.as_str(), p.inert))
        .collect();
    assert_eq!(
        found,
        [
            ("innodb_flush_log_at_trx_commit", "0", true),
            ("innodb_flush_method", "fsync", false)
        ]
    );
    without.parameters = parameters(&[("innodb_flush_method", "O_DIRECT")]);
    let wrong = Databases.establish(&login, &without).await.unwrap();
    let Established::NotInForce { problems } = wrong else {
        panic!("{wrong:?}")
    };
    assert!(problems[0].message.contains("restarted with it"), "{problems:?}");
}

#[tokio::test]
async fn caches_are_cold_dumped_or_warm_as_wanted() {
    let none = setting(AuditType::None, AuditState::On);
    let dumped = crate::configuration::cache_parameters(Engine::MariaDB, CacheState::Dumped).unwrap();
    let (mut server, _agent, login) = prepared(&none, &dumped).await;
    let mut wanted = order(1, &none);
    ready(&login, &wanted).await;

    server.restart(&Parameters::new(), Some(&request(dumped, &none)));
    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-2".to_owned(), 2, CacheState::Dumped);
    let loaded = ready(&login, &wanted).await;
    assert!(loaded.evidence.cache.reached);

    server.restart(&Parameters::new(), Some(&request(Parameters::new(), &none)));
    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-3".to_owned(), 3, CacheState::Cold);
    let cold = ready(&login, &wanted).await.evidence.cache;
    let held = loaded.evidence.cache.pages.unwrap();
    assert!(cold.pages.unwrap() < held, "{cold:?} against {held}");

    (wanted.run_uid, wanted.epoch, wanted.cache) = ("run-4".to_owned(), 4, CacheState::Prewarmed);
    let warm = ready(&login, &wanted).await.evidence.cache;
    assert!(
        warm.reached && warm.miss_ppm.unwrap() < 10_000 && warm.pages > cold.pages,
        "{warm:?}"
    );
}

#[tokio::test]
async fn a_server_that_still_writes_has_not_settled_and_the_limit_holds() {
    let none = setting(AuditType::None, AuditState::On);
    let fast = parameters(&[("innodb_flush_log_at_trx_commit", "0")]);
    let (server, _agent, login) = prepared(&none, &fast).await;
    let mut wanted = order(1, &none);
    wanted.settle.timeout = std::time::Duration::from_secs(2).into();
    let mut writer = std::process::Command::new("sysbench")
        .args([
            "oltp_update_non_index",
            "--db-driver=mysql",
            "--mysql-host=127.0.0.1",
            "--rand-type=uniform",
        ])
        .args([
            "--tables=2",
            "--table-size=2000",
            "--threads=4",
            "--time=60",
            "--mysql-db=sbtest",
        ])
        .arg(format!("--mysql-port={}", server.layout().port))
        .arg(format!("--mysql-user={}", login.username))
        .arg(format!("--mysql-password={}", login.password))
        .arg("run")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let unsettled = ready(&login, &wanted).await.evidence.settle;
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(!unsettled.met && !unsettled.unmet.is_empty(), "{unsettled:?}");
    assert!((2000..4000).contains(&unsettled.waited_millis), "{unsettled:?}");

    let mut fixed = order(2, &none);
    fixed.settle.fixed_sleep = Some(std::time::Duration::from_secs(1).into());
    let slept = ready(&login, &fixed).await.evidence.settle;
    assert!((1000..2000).contains(&slept.waited_millis), "{slept:?}");
}

#[tokio::test]
async fn a_borrowed_server_is_proved_by_read_back_only() {
    let audit = setting(AuditType::GeneralLog, AuditState::On);
    let (server, _agent, managed) = prepared(&audit, &Parameters::new()).await;
    let login = server.login(None);
    assert!(managed.connection.agent.is_some());
    let proof = ready(&login, &order(1, &audit)).await;
    assert_eq!(proof.evidence.level, EvidenceLevel::ReadBack);
    assert_eq!(proof.evidence.audit.canary_found, None);
    assert!(proof.evidence.audit.recording && proof.audit_log.is_none());
}

#[tokio::test]
async fn a_server_that_was_killed_is_the_same_server_in_another_boot() {
    let none = setting(AuditType::None, AuditState::On);
    let (mut server, _agent, login) = prepared(&none, &Parameters::new()).await;
    let wanted = order(1, &none);
    let proof = ready(&login, &wanted).await;
    let before = Databases.counters(&login).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.kill();
    server.restart(&Parameters::new(), Some(&request(Parameters::new(), &none)));
    assert!(
        server.messages().contains("crash recovery"),
        "{}",
        server.messages()
    );
    let after = Databases
        .after_run(&login, &run_order(&login, &wanted, &proof), &before)
        .await
        .unwrap();
    assert!(!after.same_boot, "{after:?}");
    // The data and its marker are there still.
    ready(&login, &order(2, &none)).await;
}
