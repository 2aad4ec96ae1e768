//! A borrowed server is left as it was found, from whatever point it is put back.

use std::collections::{BTreeMap, BTreeSet};

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::target::{Engine, Permissions};
use rstest::rstest;

use super::{ROWS, TABLES, parameters, setting};
use crate::access::EstablishOrder;
use crate::testing::TestServer;
use crate::{Claim, DatabaseAccess as _, Databases, Established, Login, marker};

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
    let captured = Databases.capture(&login, &permissions(&[type_])).await.unwrap();
    assert_eq!(look(&server), before, "looking changes nothing");
    assert_eq!(captured.not_permitted, []);
    let original = captured.state;
    assert_eq!(original.parameters["max_prepared_stmt_count"], "12345");
    assert!(
        !original.parameters.contains_key("max_connections"),
        "not permitted"
    );

    // Nothing was done.
    assert_eq!(Databases.restore(&login, &original, false).await.unwrap(), []);
    assert_eq!(look(&server), before);

    // The data was made, nothing else.
    prepare(&server, &login, engine, 1).await;
    assert_ne!(look(&server), before);
    assert_eq!(Databases.restore(&login, &original, false).await.unwrap(), []);
    assert_eq!(look(&server), before);

    // A run was established, with a recording mechanism; then another arm.
    prepare(&server, &login, engine, 2).await;
    let on = setting(type_, AuditState::On);
    let answer = Databases.establish(&login, &order(3, engine, &on)).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    assert_ne!(look(&server).variables, before.variables);
    // Putting back stops in the middle and is done again.
    let first = async { Databases.restore(&login, &original, false).await };
    let _ = tokio::time::timeout(std::time::Duration::from_millis(15), first).await;
    let left = Databases.restore(&login, &original, false).await.unwrap();
    assert_eq!(left, []);
    assert_eq!(look(&server), before);
}

#[tokio::test]
async fn data_can_be_kept_and_what_was_there_before_is_never_dropped() {
    let (server, login) = borrowed(Engine::MariaDB);
    let original = Databases.capture(&login, &permissions(&[])).await.unwrap().state;
    prepare(&server, &login, Engine::MariaDB, 1).await;
    assert_eq!(Databases.restore(&login, &original, true).await.unwrap(), []);
    let schemas = look(&server).schemas;
    assert!(schemas.contains("sbtest") && !schemas.contains("benchmark_campaign"));
    // Now it is one that we did not make.
    let original = Databases.capture(&login, &permissions(&[])).await.unwrap().state;
    assert_eq!(Databases.restore(&login, &original, false).await.unwrap(), []);
    assert!(look(&server).schemas.contains("sbtest"));
}

#[tokio::test]
async fn what_records_already_is_named_and_what_cannot_be_put_back_comes_with_its_statement() {
    let (server, login) = borrowed(Engine::MariaDB);
    server.sql("SET GLOBAL general_log = ON");
    let captured = Databases.capture(&login, &permissions(&[])).await.unwrap();
    assert_eq!(captured.not_permitted, [AuditType::GeneralLog]);
    let allowed = permissions(&[AuditType::GeneralLog]);
    let captured = Databases.capture(&login, &allowed).await.unwrap();
    assert_eq!(captured.not_permitted, []);
    // A value that this server cannot have.
    let mut original = captured.state;
    original
        .parameters
        .insert("innodb_io_capacity".to_owned(), "1".to_owned());
    let left = Databases.restore(&login, &original, false).await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].statement, "SET GLOBAL innodb_io_capacity = 1");
    assert!(left[0].what.contains("it was `1`"), "{left:?}");
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
