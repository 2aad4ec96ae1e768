//! The catalogue and volatile parameters of a real server.

use std::collections::BTreeSet;

use crds::parameter::Parameters;

use super::{none, order, prepared, ready, start};
use crate::audit::{Bound, Statement};
use crate::catalogue::Kind;
use crate::engine::postgresql::Session;
use crate::live::{parameters, request};
use crate::parameters::{plan, read_back};
use crate::server::Server as _;
use crate::{DatabaseAccess as _, Databases, Established};

#[tokio::test]
async fn every_value_of_a_real_server_has_a_canonical_form_that_is_in_force() {
    let server = start(&Parameters::new());
    let mut session = Session::open(&server.login(None)).await.unwrap();
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let values = catalogue.values();
    assert!(values.len() > 300, "{}", values.len());
    let strange: Vec<String> = values
        .iter()
        .filter_map(|(name, value)| {
            let variable = catalogue.get(name).unwrap();
            let form = variable.canonical(value);
            let fine = form.is_ok() && catalogue.in_force(variable, value);
            (!fine).then(|| format!("{name}={value}: {form:?}"))
        })
        .collect();
    assert_eq!(strange, Vec::<String>::new());
    for (name, kind, read_only, fixed) in [
        ("shared_buffers", Kind::Size(8192), true, false),
        ("max_connections", Kind::Integer, true, false),
        ("block_size", Kind::Integer, true, true),
        ("log_statement", Kind::Choice, false, false),
        ("work_mem", Kind::Size(1024), false, false),
        ("checkpoint_timeout", Kind::Time(1_000_000), false, false),
        ("fsync", Kind::Boolean, false, false),
        ("random_page_cost", Kind::Real, false, false),
        ("datestyle", Kind::Text, false, false),
    ] {
        let variable = catalogue.get(name).unwrap();
        assert_eq!(
            (variable.kind, variable.read_only, variable.fixed),
            (kind, read_only, fixed),
            "{name}"
        );
    }
    assert_eq!(
        session.cache_bytes(&catalogue),
        Some(64 << 20),
        "a quarter of the memory"
    );
    session.close().await;
}

#[tokio::test]
async fn volatile_parameters_are_in_force_for_sessions_that_begin_and_read_back() {
    let server = start(&Parameters::new());
    let mut session = Session::open(&server.login(None)).await.unwrap();
    let wanted = parameters(&[
        ("work_mem", "16M"),
        ("checkpoint_timeout", "10min"),
        ("synchronous_commit", "off"),
        ("max_wal_size", "2GB"),
        ("random_page_cost", "1.1"),
        ("autovacuum_vacuum_cost_delay", "2.5ms"),
        ("jit", "0"),
        ("DateStyle", "ISO, DMY"),
        ("search_path", "\"$user\", public, other"),
        // Of the kind that is fixed when a session begins.
        ("log_disconnections", "on"),
        ("autovacuum", "off"),
    ]);
    let wanted = crate::configuration::merge([&wanted]).unwrap();
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let (statements, problems) = plan(&catalogue, &wanted);
    assert_eq!(problems, []);
    assert_eq!(statements.len(), wanted.len());
    for (name, statement) in &statements {
        assert_eq!(session.apply(name, statement).await.unwrap(), [], "{name}");
    }
    let catalogue = session.catalogue(&BTreeSet::new()).await.unwrap();
    let (found, problems) = read_back(&catalogue, &wanted, false);
    assert_eq!(problems, [], "{found:?}");
    assert_eq!(plan(&catalogue, &wanted).0, [], "in force: nothing is left to do");

    for (name, value, said) in [
        ("work_mem", "1kB", "out of range"),
        ("work_mem", "many", "number"),
        ("checkpoint_timeout", "5MB", "unit"),
        ("wal_level", "minimal", "restarted"),
        ("block_size", "4096", "restarted"),
        ("work_men", "4MB", "did you mean work_mem"),
        ("synchronous_commit", "maybe", "remote_apply"),
    ] {
        let (statements, problems) = plan(&catalogue, &parameters(&[(name, value)]));
        assert!(statements.is_empty(), "{statements:?}");
        assert!(problems[0].message.contains(said), "{problems:?}");
    }
    // What the server itself refuses is a problem, not an error.
    let refused = Statement::set("log_statement", Bound::Text("everything".to_owned()));
    let problems = session.apply("log_statement", &refused).await.unwrap();
    assert!(problems[0].message.contains("invalid value"), "{problems:?}");
    session.close().await;
}

#[tokio::test]
async fn what_overrides_a_setting_for_the_load_is_seen() {
    let (server, _agent, login) = prepared(&none(), &Parameters::new()).await;
    server.sql("ALTER DATABASE sbtest SET work_mem = '1MB'");
    let mut wanted = order(1, &none());
    wanted.parameters = parameters(&[("work_mem", "8MB")]);
    let answer = Databases.establish(&login, &wanted).await.unwrap();
    let Established::NotInForce { problems } = answer else {
        panic!("{answer:?}")
    };
    assert!(
        problems[0].message.contains("comes from database"),
        "{problems:?}"
    );
    server.sql("ALTER DATABASE sbtest RESET work_mem");
    ready(&login, &wanted).await;
}

#[tokio::test]
async fn what_was_set_with_alter_system_does_not_reach_the_next_boot() {
    let mut server = start(&parameters(&[("shared_buffers", "32MB"), ("work_mem", "6MB")]));
    for statement in [
        "ALTER SYSTEM SET shared_buffers = '48MB'",
        "ALTER SYSTEM SET work_mem = '7MB'",
        "SELECT pg_reload_conf()",
    ] {
        server.sql(statement);
    }
    server.restart(
        &parameters(&[("work_mem", "6MB")]),
        Some(&request(parameters(&[("shared_buffers", "32MB")]), &none())),
    );
    assert_eq!(server.sql("SHOW shared_buffers"), "32MB");
    assert_eq!(server.sql("SHOW work_mem"), "6MB");
    // Every setting in force comes from the file that was written for this boot, and none waits for a restart.
    let elsewhere = "SELECT string_agg(name, ',') FROM pg_settings WHERE sourcefile NOT LIKE '%/server.cnf' OR pending_restart";
    assert_eq!(server.sql(elsewhere), "");
    let wrong = "SELECT count(*) FROM pg_file_settings WHERE NOT applied OR error IS NOT NULL";
    assert_eq!(server.sql(wrong), "0");
}

#[tokio::test]
async fn checking_finds_everything_at_once_and_changes_nothing() {
    let server = start(&Parameters::new());
    let login = server.login(None);
    let layers = [parameters(&[
        ("work_mem", "8MB"),
        ("wal_level", "minimal"),
        ("no_such_parameter", "1"),
        ("data_directory", "/x"),
        ("pgaudit.log", "all"),
    ])];
    let audit = crate::live::setting(crds::audit::AuditType::PgAudit, crds::audit::AuditState::On);
    let problems = Databases.check(&login, &layers, &[audit]).await.unwrap();
    let names: BTreeSet<&str> = problems.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        BTreeSet::from([
            "data_directory",
            "level",
            "no_such_parameter",
            "pgaudit.log",
            "wal_level"
        ]),
        "{problems:?}"
    );
    assert_eq!(
        server.sql("SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"),
        "0"
    );
}
