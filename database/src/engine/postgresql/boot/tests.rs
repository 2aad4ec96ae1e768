use std::collections::BTreeMap;

use super::*;
use crds::audit::{AuditLogVolume, AuditType};
use crds::parameter::ParameterValue;
use proptest::prelude::*;
use rstest::rstest;

fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    pairs
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).into()))
        .collect()
}

fn request(pairs: &[(&str, &str)], type_: AuditType) -> BootRequest {
    BootRequest {
        serial: 1,
        parameters: parameters(pairs),
        audit: Some(AuditSetting {
            name: "level".to_owned(),
            type_,
            ..AuditSetting::default()
        }),
    }
}

fn made(base: &[(&str, &str)], request: Option<&BootRequest>) -> Result<String, ConfigurationError> {
    configuration(&Layout::pod(5432), &parameters(base), request, 1 << 30).map(|file| file.text)
}

fn file(base: &[(&str, &str)], request: Option<&BootRequest>) -> BTreeMap<String, String> {
    made(base, request)
        .unwrap()
        .lines()
        .filter_map(|l| l.split_once(" = "))
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

#[test]
fn the_buffers_get_their_share_unless_their_size_is_given() {
    let lines = file(&[], None);
    assert_eq!(lines["shared_buffers"], "'256MB'");
    assert_eq!(lines["effective_cache_size"], "'768MB'");
    let given = file(&[("Shared_Buffers", "1G")], None);
    assert_eq!(given["shared_buffers"], "'1GB'");
}

#[rstest]
#[case(AuditType::None, "'postgresql.log'", "''")]
#[case(AuditType::LogStatement, "'postgresql.log'", "''")]
#[case(AuditType::PgAudit, "'pgaudit.log'", "'pgaudit'")]
fn every_arm_has_one_collector_and_its_own_libraries_and_nothing_records_at_boot(
    #[case] type_: AuditType,
    #[case] log: &str,
    #[case] libraries: &str,
) {
    let lines = file(&[], Some(&request(&[], type_)));
    assert_eq!(lines["logging_collector"], "'on'");
    assert_eq!(lines["log_rotation_size"], "0");
    assert_eq!(lines["log_rotation_age"], "0");
    assert_eq!(lines["log_filename"], log);
    assert_eq!(lines["shared_preload_libraries"], libraries);
    assert_eq!(lines["log_statement"], "'none'");
    assert_eq!(
        lines.get("pgaudit.log").map(String::as_str),
        (type_ == AuditType::PgAudit).then_some("'none'")
    );
}

#[test]
fn libraries_of_a_person_an_audit_setting_and_a_cache_state_are_one_list() {
    let mut wanted = request(
        &[("shared_preload_libraries", "pg_stat_statements")],
        AuditType::PgAudit,
    );
    wanted.parameters.extend(cache_parameters(CacheState::Dumped));
    assert_eq!(
        file(&[], Some(&wanted))["shared_preload_libraries"],
        "'pg_stat_statements,pg_prewarm,pgaudit'"
    );
    assert!(cache_parameters(CacheState::Prewarmed).is_empty());
}

#[test]
fn the_parameters_of_a_library_come_with_it() {
    let with = |list: &str| parameters(&[(list, "pg_stat_statements, auto_explain")]);
    for list in ["shared_preload_libraries", "session_preload_libraries"] {
        assert!(comes_with("auto_explain.log_analyze", &with(list)), "{list}");
    }
    assert!(!comes_with("auto_explain.log_analyze", &Parameters::new()));
    assert!(!comes_with("work_men", &with("shared_preload_libraries")));
}

#[test]
fn the_log_goes_to_the_volume_that_is_asked_for() {
    let mut wanted = request(&[], AuditType::LogStatement);
    assert_eq!(
        file(&[], Some(&wanted))["log_directory"],
        "'/var/lib/benchmark/log'"
    );
    if let Some(audit) = wanted.audit.as_mut() {
        audit.log = Some(AuditLogVolume {
            volume: LogVolume::WithData,
            limit: None,
        });
    }
    assert_eq!(
        file(&[], Some(&wanted))["log_directory"],
        "'/var/lib/benchmark/data-log'"
    );
}

#[rstest]
#[case("port", "5433", "Service")]
#[case("log_statement", "all", "LogStatement")]
#[case("pgaudit.log", "all", "PgAudit")]
#[case("shared_preload_libraries", "pgaudit", "PgAudit")]
#[case("include", "/etc/other.conf", "complete")]
#[case("work_mem", "4MB\nfsync = off", "line breaks")]
fn what_is_not_a_persons_to_set_is_refused_with_what_to_use_instead(
    #[case] name: &str,
    #[case] value: &str,
    #[case] said: &str,
) {
    let error = made(&[(name, value)], None).unwrap_err().to_string();
    assert!(error.contains(name) && error.contains(said), "{error}");
}

#[rstest]
#[case("4M", "'4MB'")]
#[case("1.5G", "'1.5GB'")]
#[case("64kb", "'64kB'")]
#[case("2min", "'2min'")]
#[case("100", "100")]
#[case("-1", "'-1'")]
#[case("it's", "'it''s'")]
#[case("a\\b", "'a\\\\b'")]
fn values_are_written_as_the_server_reads_them(#[case] value: &str, #[case] written: &str) {
    assert_eq!(quoted(&with_unit(value)).as_deref(), Some(written));
}

#[test]
fn the_login_is_made_without_a_connection_and_hard_passwords_are_quoted() {
    let sql = init_sql("ben\"ch", "it's a \\ $init$");
    let lines: Vec<&str> = sql.lines().collect();
    assert!(lines.iter().all(|line| line.ends_with(';')), "{sql}");
    assert!(
        lines.contains(&"ALTER ROLE \"ben\"\"ch\" LOGIN SUPERUSER PASSWORD E'it''s a \\\\ $init$';"),
        "{sql}"
    );
    let managed = managed(&Layout::pod(5432));
    assert!(managed.init_command[2].contains("postgres --single"));
    assert_eq!(managed.server_command[2], "config_file=/etc/benchmark/server.cnf");
}

proptest! {
    /// Whatever a person writes, a line stays one line and a value one quoted value.
    #[test]
    fn no_value_leaves_its_line(value in "\\PC{0,40}") {
        let parameters = Parameters::from([("application_name".to_owned(), ParameterValue::from(value.as_str()))]);
        if let Ok(file) = configuration(&Layout::pod(5432), &parameters, None, 1 << 30) {
            let line = file.text.lines().find(|l| l.starts_with("application_name")).unwrap();
            let (_, written) = line.split_once(" = ").unwrap();
            if let Some(inner) = written.strip_prefix('\'').and_then(|w| w.strip_suffix('\'')) {
                let read = inner.replace("''", "\u{1}").replace("\\\\", "\u{2}");
                prop_assert!(!read.contains('\'') && !read.contains('\\'));
                prop_assert_eq!(read.replace('\u{1}', "'").replace('\u{2}', "\\"), with_unit(value.trim()));
            } else {
                prop_assert!(written.bytes().all(|b| b.is_ascii_digit()));
            }
        }
    }
}
