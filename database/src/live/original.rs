//! A borrowed server is left as it was found, from whatever point it is put back.

use std::collections::{BTreeMap, BTreeSet};

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::run::EvidenceLevel;
use crds::target::{Engine, OriginalState, Permissions};
use rstest::rstest;

use super::{ROWS, TABLES, parameters, setting};
use crate::access::EstablishOrder;
use crate::testing::TestServer;
use crate::{Captured, Claim, DatabaseAccess as _, Databases, Established, Left, Login, marker};

/// What a person can see of a server, but for what moves by itself.
#[derive(Debug, PartialEq)]
struct Look {
    variables: BTreeMap<String, String>,
    plugins: BTreeSet<String>,
    schemas: BTreeSet<String>,
}

fn look(server: &TestServer) -> Look {
    let lines =
        |statement: &str| -> Vec<String> { server.sql(statement).lines().map(str::to_owned).collect() };
    // The clocks; positions of the binary log's identifiers.
    let moves = [
        "timestamp",
        "gtid_binlog_pos",
        "gtid_binlog_state",
        "gtid_current_pos",
    ];
    Look {
        variables: lines("SHOW GLOBAL VARIABLES")
            .iter()
            .map(|line| line.split_once('\t').unwrap_or((line, "")))
            .filter(|(name, _)| !moves.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        plugins: lines("SELECT CONCAT(PLUGIN_NAME, ' ', PLUGIN_STATUS) FROM information_schema.PLUGINS")
            .into_iter()
            .collect(),
        schemas: lines("SHOW DATABASES").into_iter().collect(),
    }
}

fn permissions(audit: &[AuditType]) -> Permissions {
    Permissions {
        parameters: vec!["max_prepared_stmt_count".to_owned(), "innodb_io_*".to_owned()],
        audit: audit.to_vec(),
        restart: false,
        dataset_schema: Some("sbtest".to_owned()),
    }
}

const OWNER: &str = "target-uid";

async fn capture(login: &Login, permissions: &Permissions) -> (OriginalState, Vec<AuditType>) {
    match Databases.capture(login, permissions, OWNER).await.unwrap() {
        Captured::Ours { state, not_permitted } => (*state, not_permitted),
        taken @ Captured::Taken { .. } => panic!("{taken:?}"),
    }
}

async fn restore(login: &Login, original: &OriginalState) -> Vec<Left> {
    Databases.restore(login, Some(original), OWNER).await.unwrap()
}

fn order(epoch: i64, engine: Engine, audit: &AuditSetting) -> EstablishOrder {
    EstablishOrder {
        parameters: parameters(&[
            ("max_prepared_stmt_count", "400000"),
            ("innodb_io_capacity", "777"),
        ]),
        dataset_hash: marker::dataset_hash(engine, &super::workload(), ROWS),
        cache: CacheState::Prewarmed,
        fresh_boot: false,
        ..super::order(epoch, audit)
    }
}

/// As a person runs it: values set by hand, a schema of their own, and no trace of us.
fn borrowed(engine: Engine) -> (TestServer, Login) {
    let server = TestServer::start_of(engine, &Parameters::new(), None);
    server.sql(
        "DROP DATABASE benchmark_campaign; CREATE DATABASE orders; SET GLOBAL max_prepared_stmt_count = 12345, GLOBAL \
         innodb_io_capacity = 333, GLOBAL long_query_time = 3.5, GLOBAL slow_query_log = ON, GLOBAL log_output = 'TABLE'",
    );
    let login = server.login(None);
    (server, login)
}

async fn prepare(server: &TestServer, login: &Login, engine: Engine, epoch: i64) {
    let run = format!("prepare-{epoch}");
    assert_eq!(
        Databases.begin_dataset(login, &run, epoch).await.unwrap(),
        Claim::Claimed
    );
    let options = [format!("--tables={TABLES}"), format!("--table-size={ROWS}")];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    server.sysbench("oltp_read_only", "prepare", &options);
    let hash = marker::dataset_hash(engine, &super::workload(), ROWS);
    let tables = marker::table_names(&super::workload());
    Databases
        .finish_dataset(login, (&run, epoch), &hash, &tables, ROWS)
        .await
        .unwrap()
        .unwrap();
}

#[rstest]
#[case(Engine::MariaDB, AuditType::ServerAudit)]
#[case(Engine::MariaDB, AuditType::GeneralLog)]
#[case(Engine::MySQL, AuditType::SlowLog)]
#[tokio::test]
async fn what_a_campaign_changed_is_put_back_from_any_point(
    #[case] engine: Engine,
    #[case] type_: AuditType,
) {
    let (server, login) = borrowed(engine);
    let before = look(&server);
    // Borrowing is undone before anything was captured.
    let allowed = permissions(&[type_]);
    Databases.capture(&login, &allowed, OWNER).await.unwrap();
    assert_eq!(Databases.restore(&login, None, OWNER).await.unwrap(), []);
    assert_eq!(look(&server), before);
    let (original, not_permitted) = capture(&login, &allowed).await;
    assert_eq!(not_permitted, []);
    assert_eq!(capture(&login, &allowed).await.0, original, "it can be repeated");
    assert_eq!(original.parameters["max_prepared_stmt_count"], "12345");
    assert!(
        !original.parameters.contains_key("max_connections"),
        "not permitted"
    );

    // Nothing was done but borrowing.
    assert_eq!(restore(&login, &original).await, []);
    assert_eq!(look(&server), before);

    // The data was made, nothing else. Whether it is marked or not, it is the same server.
    let identity = async || Databases.identify(&login).await.unwrap().server_identity;
    let known = identity().await;
    prepare(&server, &login, engine, 1).await;
    assert_ne!(look(&server), before);
    assert_eq!(identity().await, known);
    assert_eq!(restore(&login, &original).await, []);
    assert_eq!(look(&server), before);

    // A run was established, with a recording mechanism; then another arm.
    prepare(&server, &login, engine, 2).await;
    let on = setting(type_, AuditState::On);
    let answer = Databases.establish(&login, &order(3, engine, &on)).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    assert_ne!(look(&server).variables, before.variables);
    // The other arm, and back: without a restart a plugin is unloaded and loaded again.
    let off = setting(AuditType::None, AuditState::On);
    for (epoch, arm) in [(4, &off), (5, &on), (6, &off), (7, &on)] {
        let answer = Databases
            .establish(&login, &order(epoch, engine, arm))
            .await
            .unwrap();
        let Established::Ready(proof) = answer else {
            panic!("{epoch}: {answer:?}");
        };
        assert_eq!(proof.evidence.audit.recording, arm.type_ != AuditType::None);
        assert_eq!(
            proof.evidence.level,
            EvidenceLevel::ReadBack,
            "no log of a borrowed server is read"
        );
    }
    // Putting back stops in the middle and is done again.
    let first = restore(&login, &original);
    let _ = tokio::time::timeout(std::time::Duration::from_millis(15), first).await;
    let left = restore(&login, &original).await;
    assert_eq!(left, []);
    assert_eq!(look(&server), before);
}

#[tokio::test]
async fn data_can_be_kept_and_what_was_there_before_is_never_dropped() {
    let (server, login) = borrowed(Engine::MariaDB);
    let mut original = capture(&login, &permissions(&[])).await.0;
    original.retain = true;
    prepare(&server, &login, Engine::MariaDB, 1).await;
    assert_eq!(restore(&login, &original).await, []);
    let schemas = look(&server).schemas;
    assert!(schemas.contains("sbtest") && !schemas.contains("benchmark_campaign"));
    // Now it is one that we did not make.
    let original = capture(&login, &permissions(&[])).await.0;
    assert_eq!(restore(&login, &original).await, []);
    assert!(look(&server).schemas.contains("sbtest"));
}

/// The owner's own plugin, loaded and silent, is not there in an arm without one, and there again afterwards.
#[tokio::test]
async fn a_plugin_of_the_owners_is_loaded_again() {
    let (server, login) = borrowed(Engine::MariaDB);
    server.sql("INSTALL SONAME 'server_audit'; SET GLOBAL server_audit_events = 'CONNECT'");
    let before = look(&server);
    assert_eq!(
        capture(&login, &permissions(&[])).await.1,
        [AuditType::ServerAudit]
    );
    let (original, not_permitted) = capture(&login, &permissions(&[AuditType::ServerAudit])).await;
    assert_eq!(not_permitted, []);
    prepare(&server, &login, Engine::MariaDB, 1).await;
    let none = order(2, Engine::MariaDB, &setting(AuditType::None, AuditState::On));
    let answer = Databases.establish(&login, &none).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    assert!(!look(&server).plugins.contains("SERVER_AUDIT ACTIVE"));
    assert_eq!(restore(&login, &original).await, []);
    assert_eq!(look(&server), before);
}

#[tokio::test]
async fn what_records_already_is_named_and_what_cannot_be_put_back_comes_with_its_statement() {
    let (server, login) = borrowed(Engine::MariaDB);
    server.sql("SET GLOBAL general_log = ON");
    assert_eq!(
        capture(&login, &permissions(&[])).await.1,
        [AuditType::GeneralLog]
    );
    let (mut original, not_permitted) = capture(&login, &permissions(&[AuditType::GeneralLog])).await;
    assert_eq!(not_permitted, []);
    // A value that this server cannot have.
    original
        .parameters
        .insert("innodb_io_capacity".to_owned(), "1".to_owned());
    let left = restore(&login, &original).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].statement, "SET GLOBAL innodb_io_capacity = 1");
    assert!(left[0].what.contains("it was `1`"), "{left:?}");
}

/// Two targets of one server, in two namespaces or two clusters.
#[tokio::test]
async fn a_server_is_borrowed_by_one_target_at_a_time() {
    let (server, login) = borrowed(Engine::MariaDB);
    let (first, second) = (permissions(&[]), permissions(&[]));
    let answers = futures::future::join(
        Databases.capture(&login, &first, "a"),
        Databases.capture(&login, &second, "b"),
    )
    .await;
    let ours = |answer: &crate::access::Result<Captured>| matches!(answer, Ok(Captured::Ours { .. }));
    assert!(ours(&answers.0) ^ ours(&answers.1), "{answers:?}");
    let (owner, other) = if ours(&answers.0) { ("a", "b") } else { ("b", "a") };
    // Whoever does not have it puts nothing back.
    assert_eq!(Databases.restore(&login, None, other).await.unwrap(), []);
    let again = Databases.capture(&login, &first, other).await.unwrap();
    assert_eq!(
        again,
        Captured::Taken {
            owner: owner.to_owned()
        }
    );
    assert_eq!(Databases.restore(&login, None, owner).await.unwrap(), []);
    assert!(ours(&Databases.capture(&login, &first, other).await));
    assert!(look(&server).schemas.contains("benchmark_campaign"));
}

#[tokio::test]
async fn a_statement_ends_a_server_for_whatever_brings_it_back() {
    for engine in [Engine::MariaDB, Engine::MySQL] {
        let (mut server, login) = borrowed(engine);
        Databases.restart(&login).await.unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Databases.identify(&login).await.is_ok() {
            assert!(std::time::Instant::now() < until, "{engine:?} goes on");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        server.restart(&Parameters::new(), None);
        assert!(Databases.identify(&login).await.is_ok());
    }
}
