//! Servers that cannot be had here, as their manuals say that they answer: the same calls against `scripted-server`.

mod audit;
mod borrowed;

use std::time::Duration;

use crds::audit::AuditType;
use crds::runner::Connection;
use crds::target::{CleanShutdown, Engine};
use rstest::rstest;
use scripted_server::{Account, Listening, Server, dialect};

use super::{parameters, setting};
use crate::{DatabaseAccess as _, DatabaseError, Databases, Login};

const USER: &str = "benchmark";
const PASSWORD: &str = "word-of-the-scripted-server";

async fn start(name: &str) -> (Listening, Login) {
    let server = Server::new(dialect::find(name).unwrap(), Account::all(USER, PASSWORD));
    let listening = Listening::start(server, "127.0.0.1:0").await.unwrap();
    let login = Login {
        connection: Connection {
            engine: Engine::MySQL,
            host: "127.0.0.1".to_owned(),
            port: listening.address().port(),
            tls: None,
            schema: "sbtest".to_owned(),
            agent: None,
        },
        username: USER.to_owned(),
        password: PASSWORD.to_owned(),
        certificate_authority: None,
        agent_token: None,
    };
    (listening, login)
}

/// The same with an account that may do less.
async fn start_as(name: &str, privileges: &[&str]) -> (Listening, Login) {
    let (server, login) = start(name).await;
    server
        .server()
        .set_account(Account::with(USER, PASSWORD, privileges));
    (server, login)
}

#[rstest]
#[case("mysql-5.6", "5.6.51", "MySQL", false)]
#[case("taurusdb", "8.0.22", "TaurusDB", true)]
#[case("mysql-5.7", "5.7.44", "MySQL", false)]
#[case("mysql-enterprise-5.7", "5.7.44", "MySQL Enterprise", false)]
#[case("mysql-8.0", "8.0.41", "MySQL", true)]
#[case("mysql-enterprise-8.0", "8.0.41", "MySQL Enterprise", true)]
#[case("mysql-8.4", "8.4.4", "MySQL", true)]
#[case("percona-5.7", "5.7.44", "Percona", false)]
#[case("percona-8.0", "8.0.36", "Percona", true)]
#[tokio::test]
async fn a_server_says_who_it_is(
    #[case] name: &str,
    #[case] version: &str,
    #[case] flavour: &str,
    #[case] is_8: bool,
) {
    let (server, login) = start(name).await;
    let identity = Databases.identify(&login).await.unwrap();
    assert!(identity.version.starts_with(version), "{}", identity.version);
    assert_eq!(identity.flavour, flavour);
    assert_eq!(identity.clean_shutdown, CleanShutdown::Unknown);
    let can = &identity.capabilities;
    assert_eq!((can.persist, can.restart_statement), (is_8, is_8));
    assert_eq!(
        can.audit.contains(&AuditType::PerconaAuditLog),
        flavour == "Percona",
        "{can:?}"
    );
    assert_eq!(
        can.audit.contains(&AuditType::EnterpriseAuditLog),
        flavour == "MySQL Enterprise"
    );
    // What follows manuals only is named so.
    for type_ in &can.unverified {
        assert!(can.audit.contains(type_));
        assert!(![AuditType::None, AuditType::GeneralLog, AuditType::SlowLog].contains(type_));
    }
    assert!((identity.started - server.server().started()).abs() <= 1);
    let again = Databases.identify(&login).await.unwrap();
    assert_eq!(again.server_identity, identity.server_identity);
}

#[rstest]
#[case("mysql-5.7")]
#[case("mysql-8.0")]
#[tokio::test]
async fn a_wrong_password_is_told_and_shown_nowhere(#[case] name: &str) {
    let (_server, mut login) = start(name).await;
    login.password = "wrong-word-of-mine".to_owned();
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("1045") && message.contains("Secret")),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("wrong-word"));
}

#[rstest]
#[case("mysql-5.7")]
#[case("mysql-8.0")]
#[case("mysql-8.4")]
#[case("percona-5.7")]
#[case("percona-8.0")]
#[tokio::test]
async fn a_check_names_what_the_server_would_refuse_and_sets_nothing(#[case] name: &str) {
    let (server, login) = start(name).await;
    let before = server.sql("SHOW GLOBAL VARIABLES").unwrap();
    let wanted = [parameters(&[
        ("innodb_io_capasity", "300"),
        ("innodb_flush_method", "O_DIRECT"),
        ("max_prepared_stmt_count", "99999999999"),
        ("long_query_time", "1.5"),
        ("innodb_io_capacity", "1K"),
        ("version", "1"),
        ("max_connections", "lots"),
    ])];
    let problems = Databases.check(&login, &wanted, &[]).await.unwrap();
    let text: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    for part in [
        "did you mean innodb_io_capacity?",
        "file is not ours",
        "max_prepared_stmt_count",
        "nobody can set it",
        "max_connections",
    ] {
        assert_eq!(
            text.iter().filter(|t| t.contains(part)).count(),
            1,
            "{part}: {text:#?}"
        );
    }
    assert_eq!(problems.len(), 5, "{text:#?}");
    assert_eq!(server.sql("SHOW GLOBAL VARIABLES").unwrap(), before);
}

/// 5.7 tells no ranges: the warning 1292 of a value that would be cut is all there is.
#[tokio::test]
async fn a_value_that_would_be_cut_is_refused_by_its_warning() {
    let (_server, login) = start("mysql-5.7").await;
    let wanted = [parameters(&[("max_prepared_stmt_count", "4194304")])];
    let problems = Databases.check(&login, &wanted, &[]).await.unwrap();
    assert!(
        problems.len() == 1 && problems[0].message.contains("1292"),
        "{problems:?}"
    );
    // Newer servers allow as many.
    let (_server, login) = start("mysql-8.0").await;
    assert_eq!(Databases.check(&login, &wanted, &[]).await.unwrap(), []);
}

#[rstest]
#[case("mysql-5.7", "SUPER")]
#[case("mysql-8.0", "SYSTEM_VARIABLES_ADMIN")]
#[case("percona-8.0", "SYSTEM_VARIABLES_ADMIN")]
#[tokio::test]
async fn a_missing_privilege_is_named(#[case] name: &str, #[case] privilege: &str) {
    let (server, login) = start_as(name, &["SELECT", "CREATE", "INSERT", "UPDATE", "DELETE", "DROP"]).await;
    let wanted = [parameters(&[("innodb_io_capacity", "300")])];
    let error = Databases.check(&login, &wanted, &[]).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. }
            if message.contains("1227") && message.contains(privilege) && message.contains("grant")),
        "{error}"
    );
    server
        .server()
        .set_account(Account::with(USER, PASSWORD, &["SELECT", privilege]));
    assert_eq!(Databases.check(&login, &wanted, &[]).await.unwrap(), []);
    // To end the server takes another.
    let error = Databases.restart(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("SHUTDOWN")),
        "{error}"
    );
    assert!(server.is_up());
}

async fn back(login: &Login) -> i64 {
    for _ in 0..100 {
        if let Ok(identity) = Databases.identify(login).await {
            return identity.started;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server did not come back");
}

#[rstest]
#[case("mysql-8.0")]
#[case("mysql-8.4")]
#[case("percona-8.0")]
#[tokio::test]
async fn a_supervised_server_restarts_by_statement(#[case] name: &str) {
    let (server, login) = start(name).await;
    server.server().supervise(true);
    let first = Databases.identify(&login).await.unwrap();
    Databases.restart(&login).await.unwrap();
    assert!(back(&login).await > first.started);
    let sent = server.statements();
    assert!(sent.iter().any(|s| s == "RESTART") && sent.iter().all(|s| s != "SHUTDOWN"));
}

/// Before 5.7.9 no statement ends a server: it is told, and the server goes on.
#[tokio::test]
async fn a_server_that_no_statement_ends_says_so() {
    let (server, login) = start("mysql-5.6").await;
    let error = Databases.restart(&login).await.unwrap_err();
    assert!(error.to_string().contains("1064"), "{error}");
    assert!(server.is_up());
}

/// Error 3707 where nothing supervises it; before 8.0 there is no `RESTART` at all.
#[rstest]
#[case("mysql-8.0", true)]
#[case("mysql-5.7", false)]
#[case("percona-5.7", false)]
#[tokio::test]
async fn any_other_is_shut_down_for_whatever_starts_it(#[case] name: &str, #[case] tries: bool) {
    let (server, login) = start(name).await;
    let first = Databases.identify(&login).await.unwrap();
    Databases.restart(&login).await.unwrap();
    assert!(!server.is_up());
    assert!(matches!(
        Databases.identify(&login).await,
        Err(DatabaseError::Unreachable { .. })
    ));
    let sent = server.statements();
    assert_eq!(sent.iter().any(|s| s == "RESTART"), tries);
    assert!(sent.iter().any(|s| s == "SHUTDOWN"));
    server.boot();
    assert!(back(&login).await > first.started);
}
