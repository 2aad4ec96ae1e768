use super::*;
use crds::audit::{ServerAudit, ServerAuditEvent};
use rstest::rstest;

fn setting(type_: AuditType, state: AuditState) -> AuditSetting {
    AuditSetting {
        name: "level".to_owned(),
        type_,
        state,
        ..AuditSetting::default()
    }
}

/// A model of a server: what the statements change.
fn apply(found: &mut Found, statement: &Statement) {
    let Statement::Set { name, value } = statement else {
        panic!("unexpected statement {statement:?}");
    };
    let value = match value.clone() {
        Bound::Integer(i) => i.to_string(),
        Bound::Real(f) => f.to_string(),
        Bound::Text(t) => t,
    };
    found.variables.insert(name.clone(), value);
    let on = found.is_on("server_audit_logging");
    found.status.insert(
        "server_audit_active".to_owned(),
        if on { "ON" } else { "OFF" }.to_owned(),
    );
    let log = if on {
        found.variable("server_audit_file_path").to_owned()
    } else {
        String::new()
    };
    found.status.insert("server_audit_current_log".to_owned(), log);
}

/// A managed server as it is after a boot for this type.
fn booted(type_: AuditType) -> Found {
    let mut found = Found {
        managed: true,
        ..Found::default()
    };
    let mut set = |name: &str, value: &str| found.variables.insert(name.to_owned(), value.to_owned());
    for (name, value) in [
        ("general_log", "OFF"),
        ("general_log_file", "/v/log/general.log"),
        ("slow_query_log", "OFF"),
        ("slow_query_log_file", "/v/log/slow.log"),
        ("long_query_time", "10.000000"),
        ("min_examined_row_limit", "0"),
        ("log_slow_rate_limit", "1"),
        ("log_output", "FILE"),
    ] {
        set(name, value);
    }
    if type_ == AuditType::ServerAudit {
        for (name, value) in [
            ("server_audit_logging", "OFF"),
            ("server_audit_file_path", "/v/log/server_audit.log"),
            ("server_audit_file_rotate_size", "1000000"),
            ("server_audit_file_rotations", "9"),
            ("server_audit_output_type", "file"),
        ] {
            set(name, value);
        }
        found
            .plugins
            .insert("SERVER_AUDIT".to_owned(), "ACTIVE".to_owned());
    }
    found
}

#[rstest]
fn a_crash_between_any_two_statements_comes_to_the_same_end(
    #[values(
        AuditType::None,
        AuditType::ServerAudit,
        AuditType::GeneralLog,
        AuditType::SlowLog
    )]
    type_: AuditType,
    #[values(AuditState::On, AuditState::InstalledOff)] state: AuditState,
) {
    if type_ == AuditType::None && state == AuditState::InstalledOff {
        return;
    }
    let setting = setting(type_, state);
    let whole = statements(Engine::MariaDB, &setting, &booted(type_)).unwrap();
    for crash in 0..=whole.len() {
        let mut found = booted(type_);
        for statement in &whole[..crash] {
            apply(&mut found, statement);
        }
        // Begun again from what is found.
        for statement in statements(Engine::MariaDB, &setting, &found).unwrap() {
            apply(&mut found, &statement);
        }
        let verdict = verify(Engine::MariaDB, &setting, &found).unwrap();
        assert_eq!(verdict.problems, [], "crash after {crash}");
        assert_eq!(
            verdict.recording,
            state == AuditState::On && type_ != AuditType::None
        );
        assert_eq!(verdict.installed, type_ != AuditType::None);
        // In force: nothing is left to do.
        assert_eq!(statements(Engine::MariaDB, &setting, &found).unwrap(), []);
    }
}

#[test]
fn the_switch_is_the_last_statement() {
    for type_ in [AuditType::ServerAudit, AuditType::GeneralLog, AuditType::SlowLog] {
        let all = statements(Engine::MariaDB, &setting(type_, AuditState::On), &booted(type_)).unwrap();
        let last = all.last().unwrap();
        let on = |s: &Statement| matches!(s, Statement::Set { value: Bound::Text(text), .. } if text == "ON");
        assert!(on(last), "{last:?}");
        assert!(!all[..all.len() - 1].iter().any(on));
    }
}

#[test]
fn another_mechanism_that_records_is_silenced_first_and_seen_if_it_stays() {
    let mut found = booted(AuditType::None);
    found.variables.insert("general_log".to_owned(), "ON".to_owned());
    let none = setting(AuditType::None, AuditState::On);
    let all = statements(Engine::MariaDB, &none, &found).unwrap();
    assert_eq!(
        all,
        [Statement::set("general_log", Bound::Text("OFF".to_owned()))]
    );
    let verdict = verify(Engine::MariaDB, &none, &found).unwrap();
    assert!(
        verdict.problems[0]
            .message
            .contains("GeneralLog records although None"),
        "{verdict:?}"
    );
    assert_eq!(silence(Engine::MariaDB, &found), all);
}

#[test]
fn a_plugin_that_should_not_be_there_needs_a_restart() {
    let none = setting(AuditType::None, AuditState::On);
    let verdict = verify(Engine::MariaDB, &none, &booted(AuditType::ServerAudit)).unwrap();
    assert!(
        verdict.problems[0].message.contains("restarted without it"),
        "{verdict:?}"
    );
    let wanted = setting(AuditType::ServerAudit, AuditState::On);
    let verdict = verify(Engine::MariaDB, &wanted, &booted(AuditType::None)).unwrap();
    assert!(
        verdict
            .problems
            .iter()
            .any(|p| p.message.contains("started with it")),
        "{verdict:?}"
    );
    // A borrowed server has no file of ours: the plugin is installed by statement.
    let mut borrowed = booted(AuditType::None);
    borrowed.managed = false;
    let first = &statements(Engine::MariaDB, &wanted, &borrowed).unwrap()[0];
    assert_eq!(*first, Statement::Sql("INSTALL SONAME 'server_audit'".to_owned()));
}

#[test]
fn a_path_that_cannot_be_written_is_a_fault() {
    let mut found = booted(AuditType::ServerAudit);
    let wanted = setting(AuditType::ServerAudit, AuditState::On);
    for statement in statements(Engine::MariaDB, &wanted, &found).unwrap() {
        apply(&mut found, &statement);
    }
    found
        .status
        .insert("server_audit_active".to_owned(), "OFF".to_owned());
    found
        .status
        .insert("server_audit_current_log".to_owned(), String::new());
    found.status.insert(
        "server_audit_last_error".to_owned(),
        "Permission denied".to_owned(),
    );
    let messages: Vec<String> = verify(Engine::MariaDB, &wanted, &found)
        .unwrap()
        .problems
        .into_iter()
        .map(|p| p.message)
        .collect();
    assert!(
        messages.iter().any(|m| m.contains("Permission denied")),
        "{messages:?}"
    );
    assert!(
        messages
            .iter()
            .any(|m| m.contains("Server_audit_active is `OFF`")),
        "{messages:?}"
    );
}

#[test]
fn event_classes_are_sets_and_all_is_the_empty_one() {
    let with = |events: &[ServerAuditEvent]| AuditSetting {
        server_audit: Some(ServerAudit {
            events: events.to_vec(),
            ..ServerAudit::default()
        }),
        ..setting(AuditType::ServerAudit, AuditState::On)
    };
    let events = |s: &AuditSetting| {
        let mechanism = find(Engine::MariaDB, AuditType::ServerAudit).unwrap();
        mechanism
            .wanted(s)
            .into_iter()
            .find(|w| w.name == "server_audit_events")
            .unwrap()
    };
    assert_eq!(events(&with(&[])).value, Bound::Text(String::new()));
    assert_eq!(
        events(&with(&[ServerAuditEvent::All])).value,
        Bound::Text(String::new())
    );
    let two = events(&with(&[ServerAuditEvent::Query, ServerAuditEvent::Connect]));
    assert!(two.matches("CONNECT,QUERY") && !two.matches("QUERY"));
    assert_eq!(
        expected_classes(Engine::MariaDB, &with(&[ServerAuditEvent::Query])),
        Some(&["QUERY"][..])
    );
    assert_eq!(
        expected_classes(Engine::MariaDB, &with(&[ServerAuditEvent::Connect])),
        None
    );
    assert_eq!(
        expected_classes(
            Engine::MariaDB,
            &setting(AuditType::ServerAudit, AuditState::InstalledOff)
        ),
        None
    );
    let mechanism = find(Engine::MariaDB, AuditType::ServerAudit).unwrap();
    let both = with(&[ServerAuditEvent::All, ServerAuditEvent::Query]);
    assert!(mechanism.problems(&both)[0].message.contains("name it alone"));
}

/// Counted with awk.
const SERVER_AUDIT_COUNTS: &[(&str, i32)] = &[("DISCONNECT", 1), ("QUERY", 22), ("READ", 21)];
const GENERAL_COUNTS: &[(&str, i32)] = &[("Connect", 3), ("Prepare", 33), ("Quit", 1)];
const SLOW_COUNTS: &[(&str, i32)] = &[("Query", 6)];
const LOG_STATEMENT_COUNTS: &[(&str, i32)] = &[("execute", 7)];
/// One transaction of sysbench with 20 queries, and what a person sent.
const PGAUDIT_COUNTS: &[(&str, i32)] = &[
    ("DDL", 2),
    ("FUNCTION", 1),
    ("MISC", 3),
    ("READ", 16),
    ("ROLE", 1),
    ("WRITE", 4),
];

#[rstest]
#[case("server_audit.log", include_str!("../../fixtures/audit_server_audit_sample.log"))]
#[case("general.log", include_str!("../../fixtures/general_log_sample.log"))]
#[case("slow.log", include_str!("../../fixtures/slow_log_lqt0_sample.log"))]
#[case("postgresql.log", include_str!("../../fixtures/pg_log_statement_all_sample.log"))]
#[case("pgaudit.log", include_str!("../../fixtures/pgaudit_all_sample.log"))]
fn captured_logs_are_counted(#[case] name: &str, #[case] text: &str) {
    let mechanism = by_log_name(&format!("log/{name}")).unwrap();
    let mut counts = BTreeMap::new();
    for class in text.lines().filter_map(|l| mechanism.classify(l.as_bytes())) {
        *counts.entry(class).or_insert(0) += 1;
    }
    let expected: &[(&str, i32)] = match name {
        "server_audit.log" => SERVER_AUDIT_COUNTS,
        "general.log" => GENERAL_COUNTS,
        "postgresql.log" => LOG_STATEMENT_COUNTS,
        "pgaudit.log" => PGAUDIT_COUNTS,
        _ => SLOW_COUNTS,
    };
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn lines_within_a_statement_are_no_events() {
    let general = by_log_name("general.log").unwrap();
    assert_eq!(
        general.classify(b"261130 20:35:05\t    37 Connect\troot@localhost on  using Socket"),
        Some("Connect")
    );
    assert_eq!(
        general.classify(b"\t\t    37 Query\tselect length('a"),
        Some("Query")
    );
    for line in [
        "b')",
        "",
        "\t\t x",
        "Time\t\t    Id Command\tArgument",
        "261130 20:35:05",
    ] {
        assert_eq!(general.classify(line.as_bytes()), None, "{line}");
    }
    let audit = by_log_name("server_audit.log").unwrap();
    assert_eq!(
        audit.classify(b"20261130 17:20:49,vm,o,brien,localhost,91,996761,QUERY,,'select 1',0"),
        Some("QUERY")
    );
    assert_eq!(audit.classify(b"20261130 17:20:49,"), None);
    assert!(by_log_name("log/error.log").is_none());
    let log = by_log_name("log/postgresql.log").unwrap();
    let class = |text: &str| log.classify(format!("2026-11-30 17:19:58.325 UTC [1]{text}").as_bytes());
    assert_eq!(class(" LOG:  statement: BEGIN"), Some("statement"));
    assert_eq!(class(" LOG:  execute fetch from p1: SELECT 1"), Some("fetch"));
    for none in [
        " LOG:  checkpoint starting: time",
        " DETAIL:  parameters: $1 = 'statement: '",
        " ERROR:  statement: ",
        "",
    ] {
        assert_eq!(class(none), None, "{none}");
    }
    assert_eq!(log.classify(b"\t2026] LOG:  statement: x"), None);
    let audit = by_log_name("log/pgaudit.log").unwrap();
    let class =
        |text: &str| audit.classify(format!("2026-11-30 17:19:58.325 UTC [1] LOG:  {text}").as_bytes());
    assert_eq!(class("AUDIT: SESSION,7,2,MISC_SET,SET,,,x"), Some("MISC_SET"));
    // Of a role that somebody audits by objects, and of a statement that only speaks of audits.
    assert_eq!(class("AUDIT: OBJECT,7,2,READ,SELECT,,,x"), None);
    assert_eq!(class("statement: SELECT 'AUDIT: SESSION,1,1,READ,'"), None);
}

#[test]
fn the_canary_is_one_harmless_statement() {
    let word = canary_word("1f0c-9*/x", 7);
    assert_eq!(word, "benchmark-canary-1f0c-9x-7");
    assert_eq!(
        canary_statement(&word),
        "SELECT /* benchmark-canary-1f0c-9x-7 */ 1"
    );
}
