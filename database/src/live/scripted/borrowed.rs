//! A borrowed server is left as it was found.

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::load::CacheState;
use crds::target::{Engine, OriginalState, Permissions};
use rstest::rstest;
use scripted_server::{Listening, Value};

use super::{parameters, setting, start};
use crate::access::EstablishOrder;
use crate::live::{ROWS, TABLES, order as common, workload};
use crate::{Captured, Claim, DatabaseAccess as _, Databases, Established, Login, marker};

const OWNER: &str = "target-uid";

/// What a person can see of a server.
pub(super) fn look(server: &Listening) -> [Vec<Vec<Value>>; 3] {
    [
        "SHOW GLOBAL VARIABLES",
        "SELECT PLUGIN_NAME FROM information_schema.PLUGINS",
        "SHOW DATABASES",
    ]
    .map(|sql| server.sql(sql).unwrap())
}

pub(super) async fn capture(login: &Login, audit: &[AuditType]) -> (OriginalState, Vec<AuditType>) {
    let permissions = Permissions {
        parameters: vec!["max_prepared_stmt_count".to_owned(), "innodb_io_*".to_owned()],
        audit: audit.to_vec(),
        restart: false,
        dataset_schema: Some("sbtest".to_owned()),
    };
    match Databases.capture(login, &permissions, OWNER).await.unwrap() {
        Captured::Ours { state, not_permitted } => (*state, not_permitted),
        taken @ Captured::Taken { .. } => panic!("{taken:?}"),
    }
}

pub(super) async fn restored(login: &Login, original: &OriginalState) {
    let left = Databases.restore(login, Some(original), OWNER).await.unwrap();
    assert_eq!(left, []);
}

/// Makes the data: the load generator's part is a few rows.
pub(super) async fn prepare(server: &Listening, login: &Login, epoch: i64) {
    let run = format!("prepare-{epoch}");
    assert_eq!(
        Databases.begin_dataset(login, &run, epoch).await.unwrap(),
        Claim::Claimed
    );
    for table in 1..=TABLES {
        for sql in [
            format!("CREATE TABLE sbtest.sbtest{table} (id INT PRIMARY KEY, k INT)"),
            format!("INSERT INTO sbtest.sbtest{table} (id, k) VALUES (1, 1), (2, 2)"),
        ] {
            server.sql(&sql).unwrap();
        }
    }
    let tables = marker::table_names(&workload());
    assert_eq!(Databases.row_counts(login, &tables).await.unwrap(), [2, 2]);
    let hash = marker::dataset_hash(Engine::MySQL, &workload(), ROWS);
    Databases
        .finish_dataset(login, (&run, epoch), &hash, &tables, ROWS)
        .await
        .unwrap()
        .unwrap();
}

pub(super) fn order(epoch: i64, audit: &AuditSetting) -> EstablishOrder {
    EstablishOrder {
        parameters: parameters(&[
            ("max_prepared_stmt_count", "400000"),
            ("innodb_io_capacity", "777"),
        ]),
        dataset_hash: marker::dataset_hash(Engine::MySQL, &workload(), ROWS),
        cache: CacheState::Prewarmed,
        fresh_boot: false,
        ..common(epoch, audit)
    }
}

#[rstest]
#[case("mysql-5.6")]
#[case("taurusdb")]
#[case("mysql-5.7")]
#[case("mysql-8.0")]
#[case("mysql-8.4")]
#[case("percona-5.7")]
#[case("percona-8.0")]
#[tokio::test]
async fn what_a_campaign_changed_is_put_back(#[case] name: &str) {
    let (server, login) = start(name).await;
    for sql in [
        "SET GLOBAL max_prepared_stmt_count = 12345, GLOBAL innodb_io_capacity = 333, GLOBAL long_query_time = 3.5",
        "CREATE DATABASE orders",
    ] {
        server.sql(sql).unwrap();
    }
    let before = look(&server);
    let (original, not_permitted) = capture(&login, &[AuditType::SlowLog]).await;
    assert_eq!(not_permitted, []);
    assert_eq!(original.parameters["max_prepared_stmt_count"], "12345");
    assert!(!original.parameters.contains_key("max_connections"));
    prepare(&server, &login, 1).await;
    let arms = [
        setting(AuditType::SlowLog, AuditState::On),
        setting(AuditType::None, AuditState::On),
    ];
    for (epoch, arm) in (2..).zip(arms) {
        let answer = Databases.establish(&login, &order(epoch, &arm)).await.unwrap();
        let Established::Ready(proof) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(proof.evidence.audit.recording, arm.type_ == AuditType::SlowLog);
        assert_eq!(proof.environment.role.as_deref(), Some("Primary"));
        let run = format!("run-{epoch}");
        assert_eq!(
            Databases.claim(&login, &run, epoch).await.unwrap(),
            Claim::Claimed
        );
        assert_ne!(look(&server), before);
    }
    restored(&login, &original).await;
    assert_eq!(look(&server), before);
    // As often as one likes.
    restored(&login, &original).await;
}

/// The trap: what the owner persisted is in force again after a restart, and stays persisted; we persist nothing.
#[tokio::test]
async fn what_was_persisted_stays_persisted_and_nothing_is_added() {
    let (server, login) = start("mysql-8.0").await;
    server
        .sql("SET PERSIST max_prepared_stmt_count = 77, PERSIST_ONLY innodb_flush_method = 'O_DSYNC'")
        .unwrap();
    let persisted =
        || server.sql("SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables");
    let before = (look(&server), persisted().unwrap());
    let (original, _) = capture(&login, &[]).await;
    prepare(&server, &login, 1).await;
    let none = setting(AuditType::None, AuditState::On);
    let answer = Databases.establish(&login, &order(2, &none)).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    assert_eq!(persisted().unwrap(), before.1);
    // A restart in the middle brings the persisted value: the next run sets its own again.
    server.boot();
    let value = || server.sql("SELECT @@GLOBAL.max_prepared_stmt_count").unwrap();
    assert_eq!(value(), [[Value::Integer(77)]]);
    let answer = Databases.establish(&login, &order(3, &none)).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    assert_eq!(value(), [[Value::Integer(400_000)]]);
    restored(&login, &original).await;
    assert_eq!(value(), [[Value::Integer(77)]]);
    assert_eq!(persisted().unwrap(), before.1);
}

/// Two targets of one server, and one that has lost its lock.
#[tokio::test]
async fn a_server_is_borrowed_by_one_target_and_changed_by_one_session() {
    let (server, login) = start("percona-8.0").await;
    let (original, _) = capture(&login, &[]).await;
    let other = Databases
        .capture(&login, &Permissions::default(), "another")
        .await
        .unwrap();
    assert_eq!(
        other,
        Captured::Taken {
            owner: OWNER.to_owned()
        }
    );
    prepare(&server, &login, 1).await;
    let none = setting(AuditType::None, AuditState::On);
    let answer = Databases.establish(&login, &order(5, &none)).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
    let late = Databases.establish(&login, &order(4, &none)).await.unwrap();
    assert!(
        matches!(&late, Established::Fenced { holder } if holder == "run-5"),
        "{late:?}"
    );
    restored(&login, &original).await;
}
