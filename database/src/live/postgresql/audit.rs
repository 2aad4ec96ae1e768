//! Switching an audit setting on a real server, stopped between any two of its statements; the lock and the fence.

use std::time::Duration;

use crds::audit::{
    AuditSetting, AuditState, AuditType, LogStatement, LoggedStatements, PgAudit, PgAuditClass,
};
use crds::parameter::Parameters;
use crds::target::Engine;
use rstest::rstest;

use super::{none, order, prepared, ready};
use crate::audit::{self, Found};
use crate::engine::postgresql::Session;
use crate::exclusive::{CHANGING, SCANNING};
use crate::live::setting;
use crate::server::Server as _;
use crate::{Agent, Claim, Databases, Login};

async fn found(login: &Login) -> Found {
    let mut session = Session::open(login).await.unwrap();
    let found = Session::found(&mut session, login).await.unwrap();
    session.close().await;
    found
}

/// Runs the first statements that a setting needs now.
async fn run(login: &Login, setting: &AuditSetting, first: usize) -> usize {
    let statements = audit::statements(Engine::PostgreSQL, setting, &found(login).await).unwrap();
    let mut session = Session::open(login).await.unwrap();
    for statement in statements.iter().take(first) {
        assert_eq!(
            session.apply(&setting.name, statement).await.unwrap(),
            [],
            "{statement:?}"
        );
    }
    session.close().await;
    statements.len()
}

#[rstest]
#[case(AuditType::LogStatement)]
#[case(AuditType::PgAudit)]
#[tokio::test]
async fn stopped_between_any_two_statements_and_begun_again_it_comes_to_the_same_end(
    #[case] type_: AuditType,
) {
    let mut on = setting(type_, AuditState::On);
    on.pg_audit = (type_ == AuditType::PgAudit).then(|| PgAudit {
        log_parameter: true,
        log_statement_once: true,
        ..PgAudit::default()
    });
    let off = AuditSetting {
        state: AuditState::InstalledOff,
        ..on.clone()
    };
    let (_server, _agent, login) = prepared(&off, &Parameters::new()).await;
    let all = run(&login, &on, 0).await;
    assert!(all >= 1);
    for stopped in 0..=all {
        run(&login, &on, stopped).await;
        run(&login, &on, usize::MAX).await;
        let verdict = audit::verify(Engine::PostgreSQL, &on, &found(&login).await).unwrap();
        assert_eq!(verdict.problems, [], "stopped after {stopped}");
        assert!(verdict.recording && verdict.installed);
        assert_eq!(run(&login, &on, 0).await, 0, "in force: nothing is left to do");
        // And off again, from every place.
        run(&login, &off, stopped).await;
        run(&login, &off, usize::MAX).await;
        let verdict = audit::verify(Engine::PostgreSQL, &off, &found(&login).await).unwrap();
        assert_eq!(verdict.problems, []);
        assert!(!verdict.recording && verdict.installed);
    }
}

#[rstest]
#[case(PgAuditClass::Read)]
#[case(PgAuditClass::Write)]
#[case(PgAuditClass::Function)]
#[case(PgAuditClass::Role)]
#[case(PgAuditClass::Ddl)]
#[case(PgAuditClass::Misc)]
#[tokio::test]
async fn a_subset_is_proved_and_records_what_it_names(#[case] class: PgAuditClass) {
    let some = AuditSetting {
        pg_audit: Some(PgAudit {
            classes: vec![class],
            log_relation: true,
            log_rows: true,
            ..PgAudit::default()
        }),
        ..setting(AuditType::PgAudit, AuditState::On)
    };
    assert_eq!(audit::expected_classes(Engine::PostgreSQL, &some), None);
    let (server, agent, login) = prepared(&some, &Parameters::new()).await;
    let proof = ready(&login, &order(1, &some)).await;
    assert_eq!(proof.evidence.audit.canary_found, Some(true));
    server.sql_in(
        "sbtest",
        "UPDATE sbtest1 SET k = k + 1 WHERE id < 3; SELECT count(*) FROM sbtest1",
    );
    server.sql_in("sbtest", "CREATE TABLE t (i int)");
    let log = Agent::new(agent.base(), agent.token())
        .audit(proof.audit_log.unwrap().offset, "log/pgaudit.log", None)
        .await
        .unwrap();
    let text = std::fs::read_to_string(format!("{}/log/pgaudit.log", server.layout().volume)).unwrap();
    match class {
        PgAuditClass::Read => assert!(log.events["READ"] >= 1, "{:?}", log.events),
        PgAuditClass::Write => assert!(log.events["WRITE"] >= 1, "{:?}", log.events),
        // The extension names objects.
        PgAuditClass::Ddl => assert!(text.contains("CREATE TABLE,TABLE,public.t"), "{text}"),
        _ => {}
    }
    let named = format!("{class:?}").to_ascii_uppercase();
    assert!(
        log.events.keys().all(|found| found.starts_with(&named)),
        "{:?}",
        log.events
    );
}

#[rstest]
#[case(LoggedStatements::Ddl, "ddl")]
#[case(LoggedStatements::Mod, "mod")]
#[tokio::test]
async fn a_log_of_some_statements_is_proved_and_told_from_one_of_everything(
    #[case] statements: LoggedStatements,
    #[case] word: &str,
) {
    let some = AuditSetting {
        log_statement: Some(LogStatement { statements }),
        ..setting(AuditType::LogStatement, AuditState::On)
    };
    let (_server, _agent, login) = prepared(&some, &Parameters::new()).await;
    let proof = ready(&login, &order(1, &some)).await;
    assert_eq!(proof.evidence.audit.canary_found, Some(true));
    assert_eq!(found(&login).await.variable("log_statement"), word);
    assert_eq!(audit::expected_classes(Engine::PostgreSQL, &some), None);
    let all = setting(AuditType::LogStatement, AuditState::On);
    let verdict = audit::verify(Engine::PostgreSQL, &all, &found(&login).await);
    assert!(!verdict.unwrap().problems.is_empty());
}

#[tokio::test]
async fn one_session_at_a_time_holds_the_lock_and_a_newer_one_ends_it_with_its_companion() {
    let (server, _agent, login) = prepared(&none(), &Parameters::new()).await;
    let mut first = Session::open(&login).await.unwrap();
    let mut second = Session::open(&login).await.unwrap();
    assert!(Session::lock(&mut first, CHANGING, Duration::ZERO).await.unwrap());
    assert!(
        !Session::lock(&mut second, CHANGING, Duration::ZERO)
            .await
            .unwrap()
    );
    let start = std::time::Instant::now();
    assert!(
        !Session::lock(&mut second, CHANGING, Duration::from_secs(1))
            .await
            .unwrap()
    );
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(
        Session::lock(&mut second, SCANNING, Duration::ZERO)
            .await
            .unwrap()
    );
    first.run("look", "SELECT 1").await.unwrap();
    assert_eq!(
        server.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'benchmark-campaign of %'"
        ),
        "1"
    );
    Session::end_holder(&mut second, CHANGING).await.unwrap();
    assert!(
        Session::lock(&mut second, CHANGING, Duration::from_secs(5))
            .await
            .unwrap()
    );
    assert!(
        first.run("look", "SELECT 1").await.is_err(),
        "its companion was ended too"
    );
    assert!(
        first
            .keep_while(tokio::time::sleep(Duration::from_secs(6)))
            .await
            .is_err()
    );
    Session::release(&mut second, CHANGING).await;
    second.close().await;
}

#[tokio::test]
async fn a_runner_starts_once_and_only_what_is_proved_on_this_boot() {
    let (mut server, _agent, login) = prepared(&none(), &Parameters::new()).await;
    let claim = async |run: &str, epoch| Databases.claim(&login, run, epoch).await.unwrap();
    assert_eq!(claim("run-1", 1).await, Claim::NotProved);
    ready(&login, &order(1, &none())).await;
    // A proof ends with its boot.
    server.kill();
    server.restart(&Parameters::new(), None);
    assert_eq!(claim("run-1", 1).await, Claim::NotProved);
    ready(&login, &order(1, &none())).await;
    assert_eq!(claim("run-1", 1).await, Claim::Claimed);
    assert_eq!(claim("run-1", 1).await, Claim::AlreadyStarted);
    // After a start nothing is changed any more for this run, also not on another boot.
    let order = order(1, &none());
    let answer = crate::DatabaseAccess::establish(&Databases, &login, &order)
        .await
        .unwrap();
    assert!(matches!(answer, crate::Established::Started), "{answer:?}");
    assert_eq!(
        Databases.begin_dataset(&login, "run-1", 1).await.unwrap(),
        Claim::AlreadyStarted
    );
}
