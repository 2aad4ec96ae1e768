//! The audit plugins of MySQL's kin, against models made from the vendors' manuals (named in each mechanism's file).

use super::*;
use crds::audit::{AuditLogFormat, AuditLogPlugin};
use rstest::rstest;

fn setting(type_: AuditType, state: AuditState) -> AuditSetting {
    AuditSetting {
        name: "level".to_owned(),
        type_,
        state,
        ..AuditSetting::default()
    }
}

fn layout() -> Layout {
    Layout::pod(3306)
}

/// A server as it is after a boot with the lines of a setting: the plugin's variables as the manual lists them.
fn booted(type_: AuditType, state: AuditState) -> Found {
    let (plugin, defaults): (&str, &[(&str, &str)]) = match type_ {
        AuditType::PerconaAuditLog => (
            "AUDIT_LOG",
            &[
                ("audit_log_buffer_size", "1048576"),
                ("audit_log_exclude_accounts", ""),
                ("audit_log_exclude_commands", ""),
                ("audit_log_exclude_databases", ""),
                ("audit_log_file", "audit.log"),
                ("audit_log_flush", "OFF"),
                ("audit_log_format", "OLD"),
                ("audit_log_handler", "FILE"),
                ("audit_log_include_accounts", ""),
                ("audit_log_include_commands", ""),
                ("audit_log_include_databases", ""),
                ("audit_log_policy", "ALL"),
                ("audit_log_rotate_on_size", "0"),
                ("audit_log_rotations", "0"),
                ("audit_log_strategy", "ASYNCHRONOUS"),
            ],
        ),
        AuditType::EnterpriseAuditLog => (
            "AUDIT_LOG",
            &[
                ("audit_log_buffer_size", "1048576"),
                ("audit_log_connection_policy", "ALL"),
                ("audit_log_disable", "OFF"),
                ("audit_log_exclude_accounts", ""),
                ("audit_log_file", "audit.log"),
                ("audit_log_format", "NEW"),
                ("audit_log_include_accounts", ""),
                ("audit_log_policy", "ALL"),
                ("audit_log_rotate_on_size", "0"),
                ("audit_log_statement_policy", "ALL"),
                ("audit_log_strategy", "ASYNCHRONOUS"),
            ],
        ),
        AuditType::McAfeeAudit => (
            "AUDIT",
            &[
                ("audit_json_file", "OFF"),
                ("audit_json_log_file", "mysql-audit.json"),
                ("audit_record_cmds", ""),
                ("audit_record_objs", ""),
                ("audit_whitelist_cmds", "BEGIN,COMMIT,PING"),
            ],
        ),
        _ => ("", &[]),
    };
    let mut found = Found {
        managed: true,
        ..Found::default()
    };
    found
        .variables
        .extend(defaults.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    if !plugin.is_empty() {
        found.plugins.insert(plugin.to_owned(), "ACTIVE".to_owned());
    }
    let asked = setting(type_, state);
    for other in mechanisms(Engine::MySQL) {
        let given = (other.kind() == type_).then_some(&asked);
        for (name, value) in other.configuration(given, &layout()) {
            let name = name.trim_start_matches("loose_").to_owned();
            found.variables.insert(name, value);
        }
    }
    found
}

fn apply(found: &mut Found, statement: &Statement) {
    let Statement::Set { name, value } = statement else {
        panic!("unexpected statement {statement:?}");
    };
    let text = match value.clone() {
        Bound::Integer(i) => i.to_string(),
        Bound::Real(f) => f.to_string(),
        Bound::Text(t) => t,
    };
    assert!(found.variables.contains_key(name), "{name} is no variable");
    found.variables.insert(name.clone(), text);
}

#[rstest]
fn a_setting_comes_in_force_from_any_point_in_the_middle(
    #[values(
        AuditType::PerconaAuditLog,
        AuditType::EnterpriseAuditLog,
        AuditType::McAfeeAudit
    )]
    type_: AuditType,
    #[values(AuditState::On, AuditState::InstalledOff)] state: AuditState,
) {
    let setting = setting(type_, state);
    let boot = booted(type_, state);
    assert!(
        !find(Engine::MySQL, type_).unwrap().recording(&boot),
        "silent until it is switched on"
    );
    let all = statements(Engine::MySQL, &setting, &boot).unwrap();
    for crash in 0..=all.len() {
        let mut found = boot.clone();
        all[..crash].iter().for_each(|s| apply(&mut found, s));
        for statement in statements(Engine::MySQL, &setting, &found).unwrap() {
            apply(&mut found, &statement);
        }
        let verdict = verify(Engine::MySQL, &setting, &found).unwrap();
        assert_eq!(verdict.problems, [], "crash after {crash}");
        assert_eq!(verdict.recording, state == AuditState::On);
        assert!(verdict.installed);
        // And off again.
        for statement in silence(Engine::MySQL, &found) {
            apply(&mut found, &statement);
        }
        assert!(!find(Engine::MySQL, type_).unwrap().recording(&found));
    }
    let log = find(Engine::MySQL, type_).unwrap().log_path(&boot).unwrap();
    assert!(log.starts_with("/var/lib/benchmark/log/"), "{log}");
    assert_eq!(by_log_name(&log).unwrap().kind(), type_);
}

#[test]
fn the_two_plugins_of_one_name_are_told_apart() {
    let percona = setting(AuditType::PerconaAuditLog, AuditState::On);
    let enterprise = setting(AuditType::EnterpriseAuditLog, AuditState::On);
    for (wanted, there, word) in [
        (&percona, AuditType::EnterpriseAuditLog, "Oracle's"),
        (&enterprise, AuditType::PerconaAuditLog, "Percona's"),
    ] {
        let found = booted(there, AuditState::On);
        let verdict = verify(Engine::MySQL, wanted, &found).unwrap();
        assert!(
            verdict.problems.iter().any(|p| p.message.contains(word)),
            "{verdict:?}"
        );
    }
}

#[test]
fn what_only_the_start_sets_is_read_back_and_never_set() {
    let mut wanted = setting(AuditType::PerconaAuditLog, AuditState::On);
    let found = booted(AuditType::PerconaAuditLog, AuditState::On);
    wanted.audit_log = Some(AuditLogPlugin {
        format: AuditLogFormat::Csv,
        ..AuditLogPlugin::default()
    });
    let set = statements(Engine::MySQL, &wanted, &found).unwrap();
    assert_eq!(
        set,
        [Statement::set("audit_log_policy", Bound::Text("ALL".to_owned()))]
    );
    let verdict = verify(Engine::MySQL, &wanted, &found).unwrap();
    assert!(
        verdict.problems.iter().any(|p| p.name == "audit_log_format"),
        "{verdict:?}"
    );
    let filtered = Found {
        variables: [(
            "audit_log_exclude_accounts".to_owned(),
            "'benchmark'@'%'".to_owned(),
        )]
        .into_iter()
        .chain(found.variables.clone())
        .chain([(
            "audit_log_exclude_accounts".to_owned(),
            "'benchmark'@'%'".to_owned(),
        )])
        .collect(),
        ..found
    };
    let faults = find(Engine::MySQL, AuditType::PerconaAuditLog)
        .unwrap()
        .faults(&filtered);
    assert!(faults[0].contains("hides statements"), "{faults:?}");
}

/// Records as the manuals show them.
#[rstest]
#[case(AuditType::PerconaAuditLog, r#"{"audit_record":{"name":"Query","record":"13149_2021-06-30T15:03:11","timestamp":"2021-06-30T15:07:58 UTC","command_class":"show_databases","connection_id":"2","status":0,"sqltext":"show databases","user":"root[root] @ localhost []","host":"localhost","os_user":"","ip":"","db":""}}"#, Some("Query"))]
#[case(AuditType::PerconaAuditLog, r#""Query","22567_2021-06-30T16:10:09","2021-06-30T16:19:00 UTC","select","2",0,"select count(*) from one","root[root] @ localhost []","localhost","","","""#, Some("Query"))]
#[case(AuditType::PerconaAuditLog, r#" NAME="Quit""#, Some("Quit"))]
#[case(AuditType::PerconaAuditLog, "<NAME>Execute</NAME>", Some("Execute"))]
#[case(AuditType::PerconaAuditLog, r#" SQLTEXT="select 1""#, None)]
#[case(AuditType::PerconaAuditLog, "<AUDIT_RECORD>", None)]
#[case(AuditType::EnterpriseAuditLog, "  <NAME>Query</NAME>", Some("Query"))]
#[case(AuditType::EnterpriseAuditLog, r#"  { "timestamp": "2021-06-30 15:07:58", "id": 1, "class": "general", "event": "status", "connection_id": 2, "general_data": { "command": "Query", "sql_command": "select", "query": "select 1", "status": 0 } },"#, Some("Query"))]
#[case(AuditType::McAfeeAudit, r#"{"msg-type":"activity","date":"1344266893186","thread-id":"1","query-id":"2","user":"root","cmd":"select","query":"select 1"}"#, Some("activity"))]
#[case(
    AuditType::McAfeeAudit,
    r#"{"msg-type":"header","date":"1344266893186","audit-version":"1.1.2"}"#,
    Some("header")
)]
fn records_are_told_by_their_names(
    #[case] type_: AuditType,
    #[case] line: &str,
    #[case] class: Option<&str>,
) {
    let mechanism = find(Engine::MySQL, type_).unwrap();
    assert_eq!(mechanism.classify(line.as_bytes()), class);
}

#[test]
fn only_flavours_that_ship_a_plugin_may_have_it() {
    let may = |type_, flavour, version| find(Engine::MySQL, type_).unwrap().may_be_there(flavour, version);
    assert!(may(AuditType::PerconaAuditLog, "Percona", (8, 0, 36)));
    assert!(!may(AuditType::PerconaAuditLog, "MySQL", (8, 0, 36)));
    assert!(may(AuditType::EnterpriseAuditLog, "MySQL Enterprise", (8, 0, 41)));
    assert!(!may(AuditType::EnterpriseAuditLog, "MySQL Enterprise", (9, 6, 0)));
    assert!(may(AuditType::McAfeeAudit, "MySQL", (5, 7, 44)));
    assert!(!may(AuditType::McAfeeAudit, "MySQL", (9, 7, 4)));
}
