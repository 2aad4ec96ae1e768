//! What `MySQL` does otherwise than `MariaDB`, on a real server of version 9.

use std::collections::BTreeSet;

use crds::audit::{AuditState, AuditType};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::{CleanShutdown, Engine};
use rstest::rstest;

use super::{ROWS, TABLES, parameters, request, setting};
use crate::access::EstablishOrder;
use crate::engine::mysql_family::Session;
use crate::marker;
use crate::parameters::{plan, read_back};
use crate::server::Server as _;
use crate::testing::{TestAgent, TestServer};
use crate::{Claim, DatabaseAccess as _, DatabaseError, Databases, Established, Login};

fn start(base: &Parameters) -> TestServer {
    TestServer::start_of(Engine::MySQL, base, None)
}

fn order(epoch: i64, type_: AuditType, state: AuditState) -> EstablishOrder {
    EstablishOrder {
        dataset_hash: marker::dataset_hash(Engine::MySQL, &super::workload(), ROWS),
        ..super::order(epoch, &setting(type_, state))
    }
}

async fn prepare(server: &TestServer, login: &Login, epoch: i64) {
    let run = format!("prepare-{epoch}");
    assert_eq!(
        Databases.begin_dataset(login, &run, epoch).await.unwrap(),
        Claim::Claimed
    );
    let options = [format!("--tables={TABLES}"), format!("--table-size={ROWS}")];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    server.sysbench("oltp_read_only", "prepare", &options);
    let tables = marker::table_names(&super::workload());
    assert_eq!(Databases.row_counts(login, &tables).await.unwrap(), [ROWS, ROWS]);
    let hash = order(epoch, AuditType::None, AuditState::On).dataset_hash;
    let made = Databases
        .finish_dataset(login, (&run, epoch), &hash, &tables, ROWS)
        .await
        .unwrap()
        .unwrap();
    assert!(made.bytes > 2 * ROWS * 180, "{made:?}");
}

#[tokio::test]
async fn a_server_says_who_it_is_and_how_it_ended() {
    let mut server = start(&Parameters::new());
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let first = Databases.identify(&login).await.unwrap();
    assert_eq!(first.flavour, "MySQL");
    assert!(first.version.starts_with("9."), "{}", first.version);
    assert_eq!(
        first.capabilities.audit,
        [AuditType::None, AuditType::GeneralLog, AuditType::SlowLog]
    );
    assert!(first.capabilities.persist && first.capabilities.restart_statement);
    assert_eq!(first.clean_shutdown, CleanShutdown::Yes);
    server.kill();
    server.restart(&Parameters::new(), None);
    let second = Databases.identify(&login).await.unwrap();
    assert_eq!(second.clean_shutdown, CleanShutdown::No);
    assert_eq!(second.server_identity, first.server_identity);
    assert!(second.started >= first.started);
    server.restart(&Parameters::new(), None);
    let third = Databases.identify(&login).await.unwrap();
    assert_eq!(third.clean_shutdown, CleanShutdown::Yes);
}

#[tokio::test]
async fn wrong_logins_are_told_and_no_password_is_shown() {
    let server = start(&Parameters::new());
    let mut login = server.login(None);
    login.password = "wrong-password-of-mine".to_owned();
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("1045") && message.contains("Secret")),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("wrong-password-of-mine"));
    assert!(!server.messages().contains(&login.password));
}

#[tokio::test]
async fn every_value_of_a_real_server_has_a_canonical_form_that_is_in_force() {
    let server = start(&Parameters::new());
    let mut session = Session::open(&server.login(None)).await.unwrap();
    let names = [
        "innodb_flush_method",
        "innodb_buffer_pool_size",
        "version",
        "max_prepared_stmt_count",
    ];
    let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    let catalogue = session.catalogue(&names).await.unwrap();
    let values = catalogue.values();
    assert!(values.len() > 500, "{}", values.len());
    let strange: Vec<String> = values
        .iter()
        .filter_map(|(name, value)| {
            let variable = catalogue.get(name).unwrap();
            let fine = variable.session_only || value.is_empty() || catalogue.in_force(variable, value);
            (!fine).then(|| format!("{name}={value}: {:?}", variable.canonical(value)))
        })
        .collect();
    assert_eq!(strange, Vec::<String>::new());
    for (name, read_only, fixed) in [
        ("innodb_flush_method", true, false),
        ("innodb_buffer_pool_size", false, false),
        ("version", false, true),
        ("max_prepared_stmt_count", false, false),
    ] {
        let variable = catalogue.get(name).unwrap();
        assert_eq!((variable.read_only, variable.fixed), (read_only, fixed), "{name}");
    }
    session.close().await;
}

#[tokio::test]
async fn volatile_parameters_are_bound_by_type_and_read_back_and_asking_changes_nothing() {
    let server = start(&Parameters::new());
    let mut session = Session::open(&server.login(None)).await.unwrap();
    let wanted = parameters(&[
        ("max_prepared_stmt_count", "400000"),
        ("innodb-io-capacity", "1K"),
        ("join_buffer_size", "256K"),
        ("long_query_time", "1.5"),
        ("sql_mode", "NO_ENGINE_SUBSTITUTION,STRICT_TRANS_TABLES"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("optimizer_switch", "mrr=off"),
        ("innodb_adaptive_hash_index", "on"),
        ("transaction_isolation", "read-committed"),
        ("init_connect", "SET @a = 'it''s; x'"),
        ("autocommit", "OFF"),
        ("innodb_buffer_pool_size", "200M"),
    ]);
    let names: BTreeSet<String> = wanted
        .keys()
        .map(|n| crate::configuration::canonical_name(n))
        .collect();
    let before = session.catalogue(&BTreeSet::new()).await.unwrap().values();
    let catalogue = session.catalogue(&names).await.unwrap();
    assert_eq!(session.objections(&catalogue, &wanted).await.unwrap(), []);
    assert_eq!(
        session.catalogue(&names).await.unwrap().values(),
        before,
        "asking changes nothing"
    );
    let (statements, problems) = plan(&catalogue, &wanted);
    assert_eq!(problems, []);
    assert!(statements.len() >= 9, "{statements:?}");
    for (name, statement) in &statements {
        assert_eq!(session.apply(name, statement).await.unwrap(), [], "{name}");
    }
    // The pool is resized in the background.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let catalogue = loop {
        let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
        if read_back(&catalogue, &wanted, false).1.is_empty() || std::time::Instant::now() > limit {
            break catalogue;
        }
    };
    let (evidence, problems) = read_back(&catalogue, &wanted, false);
    assert_eq!(problems, []);
    assert_eq!(evidence.len(), wanted.len());
    session.close().await;
}

#[tokio::test]
async fn a_check_names_everything_at_once() {
    let server = start(&Parameters::new());
    let agent = TestAgent::start(&server.layout().volume).await;
    let wanted = [parameters(&[
        ("innodb_bufer_pool_size", "1G"),
        ("general_log", "ON"),
        ("max_connections", "10000000"),
        ("transaction_isolation", "READ-SOMETHING"),
        ("sql_mode", "NO_SUCH_MODE"),
        ("innodb_flush_method", "O_DIRECT"),
        ("version", "1"),
        ("insert_id", "1"),
        ("max_prepared_stmt_count", "99999999999"),
    ])];
    let audit = [
        setting(AuditType::GeneralLog, AuditState::On),
        setting(AuditType::ServerAudit, AuditState::On),
    ];
    let problems = Databases
        .check(&server.login(Some(&agent)), &wanted, &audit)
        .await
        .unwrap();
    let text: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    for part in [
        "did you mean innodb_buffer_pool_size?",
        "use an audit setting of type GeneralLog",
        "max_connections: 10000000 is out of range",
        "READ-SOMETHING",
        "NO_SUCH_MODE",
        "nobody can set it",
        "insert_id",
        "max_prepared_stmt_count",
        "ServerAudit is not there for MySQL",
    ] {
        assert_eq!(
            text.iter().filter(|t| t.contains(part)).count(),
            1,
            "{part}: {text:#?}"
        );
    }
    assert_eq!(problems.len(), 9, "{text:#?}");
    // The same server borrowed: its file is not ours.
    let wanted = [parameters(&[("innodb_flush_method", "O_DIRECT")])];
    let borrowed = Databases.check(&server.login(None), &wanted, &[]).await.unwrap();
    assert!(
        borrowed.len() == 1 && borrowed[0].message.contains("file is not ours"),
        "{borrowed:?}"
    );
}

#[rstest]
#[case(AuditType::None, AuditState::On)]
#[case(AuditType::GeneralLog, AuditState::On)]
#[case(AuditType::GeneralLog, AuditState::InstalledOff)]
#[case(AuditType::SlowLog, AuditState::On)]
#[tokio::test]
async fn a_run_is_established_claimed_and_looked_at_afterwards(
    #[case] type_: AuditType,
    #[case] state: AuditState,
) {
    let mut server = start(&Parameters::new());
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    prepare(&server, &login, 1).await;
    let mut wanted = order(2, type_, state);
    wanted.parameters = parameters(&[
        ("max_prepared_stmt_count", "400000"),
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_buffer_pool_size", "200M"),
    ]);
    wanted.cache = CacheState::Prewarmed;
    server.restart(
        &Parameters::new(),
        Some(&request(wanted.parameters.clone(), &wanted.audit)),
    );
    let answer = Databases.establish(&login, &wanted).await.unwrap();
    let Established::Ready(proof) = answer else {
        panic!("{answer:?}\n{}", server.messages());
    };
    let records = state == AuditState::On && type_ != AuditType::None;
    assert_eq!(proof.evidence.audit.recording, records);
    assert_eq!(proof.evidence.audit.canary_found, Some(records));
    assert!(proof.evidence.settle.met, "{:?}", proof.evidence.settle);
    assert!(proof.evidence.cache.reached, "{:?}", proof.evidence.cache);
    let environment = &proof.environment;
    assert!(environment.redo_bytes.is_some() && environment.checkpoint_age_bytes.is_some());
    assert_eq!(environment.role.as_deref(), Some("Primary"));
    assert_eq!(environment.buffer_pool_bytes, Some(256 << 20));

    assert_eq!(Databases.claim(&login, "run-2", 2).await.unwrap(), Claim::Claimed);
    let before = Databases.counters(&login).await.unwrap();
    let options = [
        format!("--tables={TABLES}"),
        format!("--table-size={ROWS}"),
        "--events=20".to_owned(),
        "--time=0".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    server.sysbench("oltp_read_write", "run", &options);
    let after = |parameters: Parameters| {
        let run = RunOrder {
            run_uid: "run-2".to_owned(),
            epoch: 2,
            parameters,
            audit: wanted.audit.clone(),
            server_started: Some(proof.started),
            ..RunOrder::default()
        };
        let before = before.clone();
        let login = login.clone();
        async move { Databases.after_run(&login, &run, &before).await.unwrap() }
    };
    let found = after(wanted.parameters.clone()).await;
    assert!(found.same_boot);
    assert_eq!(found.changed_settings, []);
    // Two updates, a delete and an insert each.
    assert_eq!(found.rows_written, 80);
    if records {
        let position = proof.audit_log.clone().unwrap();
        let log = crate::Agent::of(&login)
            .unwrap()
            .audit(position.offset, &position.file, None)
            .await
            .unwrap();
        let classes = crate::audit::expected_classes(Engine::MySQL, &wanted.audit).unwrap();
        let events: i64 = log
            .events
            .iter()
            .filter(|(class, _)| classes.contains(&class.as_str()))
            .map(|(_, count)| *count)
            .sum();
        // 20 statements an event, and beside them what the tool prepares and closes and we ask.
        assert!((400..500).contains(&events), "{:?}", log.events);
    }
    let changed = after(parameters(&[("max_prepared_stmt_count", "16382")])).await;
    assert_eq!(
        changed.changed_settings.len(),
        1,
        "{:?}",
        changed.changed_settings
    );
}

/// The trap: what somebody persisted overrides every configuration file of the next campaign.
#[tokio::test]
async fn persisted_values_do_not_leak_into_a_managed_boot() {
    let mut server = start(&Parameters::new());
    server.sql("SET PERSIST max_prepared_stmt_count = 77, PERSIST_ONLY innodb_flush_method = 'O_DSYNC'");
    server.restart(&parameters(&[("innodb_flush_method", "fsync")]), None);
    assert_eq!(
        server.sql("SELECT CONCAT(@@max_prepared_stmt_count, ' ', @@innodb_flush_method)"),
        "16382 fsync"
    );
}
