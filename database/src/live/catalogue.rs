//! The catalogue and volatile parameters of a real server.

use std::collections::BTreeSet;

use super::{parameters, setting};
use crate::catalogue::Kind;
use crate::engine::mysql_family::Session;
use crate::parameters::{plan, read_back};
use crate::server::Server as _;
use crate::testing::TestServer;
use crate::{DatabaseAccess as _, Databases};
use crds::audit::{AuditState, AuditType, ServerAudit};

#[tokio::test]
async fn every_value_of_a_real_server_has_a_canonical_form_that_is_in_force() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut session = Session::open(&login).await.unwrap();
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    session.close().await;
    let values = catalogue.values();
    assert!(values.len() > 500, "{}", values.len());
    let mut kinds = std::collections::BTreeMap::new();
    let mut strange = Vec::new();
    for name in values.keys() {
        let variable = catalogue.get(name).unwrap();
        *kinds.entry(format!("{:?}", variable.kind)).or_insert(0) += 1;
        // Its own value, as the server gives it, is out of the range that the server gives.
        let odd = name == "innodb_lru_flush_size";
        if !odd
            && !variable.session_only
            && !variable.value.is_empty()
            && !catalogue.in_force(variable, &variable.value)
        {
            strange.push(format!(
                "{name}={}: {:?}",
                variable.value,
                variable.canonical(&variable.value)
            ));
        }
    }
    assert!(kinds.len() == 7, "{kinds:?}");
    assert_eq!(strange, Vec::<String>::new());
    assert_eq!(
        catalogue.get("innodb_buffer_pool_size").unwrap().kind,
        Kind::Integer
    );
    assert!(catalogue.get("innodb_flush_method").unwrap().read_only);
    for (name, fixed) in [
        ("hostname", true),
        ("version", true),
        ("have_ssl", true),
        ("server_uid", true),
        ("port", false),
        ("log_bin", false),
        ("innodb_flush_method", false),
        ("character_set_server", false),
    ] {
        let value = crds::parameter::ParameterValue::from("1");
        assert_eq!(catalogue.get(name).unwrap().fixed, fixed, "{name}");
        let said = catalogue.problem(name, &value).map(|problem| problem.message);
        assert_eq!(
            said.is_some_and(|m| m.contains("nobody can set it")),
            fixed,
            "{name}"
        );
    }
}

#[tokio::test]
async fn volatile_parameters_are_bound_by_type_and_read_back() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut session = Session::open(&login).await.unwrap();
    // The trap: a number sent as a string is refused.
    let refused = session
        .run_with("trap", "SET GLOBAL max_prepared_stmt_count = ?", ("400000",))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("1232"), "{refused}");

    let wanted = parameters(&[
        ("max_prepared_stmt_count", "400000"),
        ("innodb-io-capacity", "1K"),
        ("join_buffer_size", "256K"),
        ("long_query_time", "1.5"),
        ("sql_mode", "NO_ENGINE_SUBSTITUTION,STRICT_TRANS_TABLES"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("optimizer_switch", "mrr=on"),
        ("innodb_adaptive_hash_index", "on"),
        ("tx_isolation", "read-committed"),
        ("init_connect", "SET @a = 'it''s; x'"),
        ("autocommit", "OFF"),
    ]);
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let (statements, problems) = plan(&catalogue, &wanted);
    assert_eq!(problems, []);
    assert!(statements.len() >= 9, "{statements:?}");
    for (name, statement) in &statements {
        assert_eq!(session.apply(name, statement).await.unwrap(), [], "{name}");
    }
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let (evidence, problems) = read_back(&catalogue, &wanted, false);
    assert_eq!(problems, []);
    assert_eq!(evidence.len(), wanted.len());
    assert!(evidence.iter().filter(|e| e.inert).count() == 0);
    // Again: nothing is left to do.
    assert_eq!(plan(&catalogue, &wanted).0, []);
    // A server whose new sessions do not commit by themselves still keeps what we write.
    session.close().await;
    assert_eq!(
        crate::Databases.claim(&login, "nobody", 1).await.unwrap(),
        crate::Claim::Fenced {
            holder: String::new()
        }
    );
}

#[tokio::test]
async fn values_that_the_server_cuts_are_problems() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut session = Session::open(&login).await.unwrap();
    let statement = crate::audit::Statement::set("max_connections", crate::audit::Bound::Integer(1_000_000));
    let problems = session.apply("max_connections", &statement).await.unwrap();
    assert!(
        problems.len() == 1 && problems[0].message.contains("1292"),
        "{problems:?}"
    );
    let wrong = crate::audit::Statement::set("max_connections", crate::audit::Bound::Text("100".to_owned()));
    let problems = session.apply("max_connections", &wrong).await.unwrap();
    assert!(
        problems.len() == 1 && problems[0].message.contains("1232"),
        "{problems:?}"
    );
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let (statements, problems) = plan(
        &catalogue,
        &parameters(&[("innodb_flush_method", "fsync"), ("max_connections", "10000000")]),
    );
    assert!(statements.is_empty());
    assert!(
        problems[0].message.contains("restarted with it") && problems[1].message.contains("out of range"),
        "{problems:?}"
    );
    session.close().await;
}

#[tokio::test]
async fn a_check_names_everything_at_once() {
    let server = TestServer::start();
    let agent = crate::testing::TestAgent::start(&server.layout().volume).await;
    let managed = server.login(Some(&agent));
    let wanted = [
        parameters(&[
            ("innodb_flush_method", "fsync"),
            ("max_prepared_stmt_count", "1048576"),
        ]),
        parameters(&[
            ("innodb_bufer_pool_size", "1G"),
            ("general_log", "ON"),
            ("sync_binlog", "-1"),
        ]),
    ];
    let mut excluded = setting(AuditType::ServerAudit, AuditState::On);
    excluded.server_audit = Some(ServerAudit {
        exclude_users: vec![managed.username.clone()],
        ..ServerAudit::default()
    });
    excluded.parameters = parameters(&[("server_audit_syslog_ident", "x")]);
    let audit = [
        setting(AuditType::GeneralLog, AuditState::On),
        setting(AuditType::PgAudit, AuditState::On),
        excluded,
    ];
    let problems = Databases.check(&managed, &wanted, &audit).await.unwrap();
    let text: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    for part in [
        "did you mean innodb_buffer_pool_size?",
        "use an audit setting of type GeneralLog",
        "sync_binlog: -1 is out of range",
        "PgAudit is not there for MariaDB",
        "the load generator's own login",
    ] {
        assert_eq!(
            text.iter().filter(|t| t.contains(part)).count(),
            1,
            "{part}: {text:#?}"
        );
    }
    assert_eq!(problems.len(), 5, "{text:#?}");
    // The same server borrowed: its file is not ours.
    let borrowed = Databases
        .check(&server.login(None), &wanted[..1], &[])
        .await
        .unwrap();
    assert!(
        borrowed.len() == 1 && borrowed[0].message.contains("file is not ours"),
        "{borrowed:?}"
    );
}
