use std::collections::BTreeMap;

use super::*;
use crds::audit::{AuditLogVolume, AuditSetting, AuditType, LogVolume};
use crds::load::CacheState;

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

fn file(base: &[(&str, &str)], request: Option<&BootRequest>) -> BTreeMap<String, String> {
    let file = render(Engine::MariaDB, &parameters(base), request, 1 << 30).unwrap();
    file.text
        .lines()
        .filter_map(|l| l.split_once('='))
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect()
}

#[test]
fn later_layers_win_whatever_the_spelling() {
    let request = request(
        &[("Max-Connections", "300"), ("innodb_io_capacity", "2K")],
        AuditType::None,
    );
    let lines = file(&[("max_connections", "100"), ("back_log", "90")], Some(&request));
    assert_eq!(lines["max_connections"], "300");
    assert_eq!(lines["innodb_io_capacity"], "2048");
    assert_eq!(lines["back_log"], "90");
    assert_eq!(lines["datadir"], "/var/lib/benchmark/data");
}

#[test]
fn the_pool_gets_its_share_unless_its_size_is_given() {
    assert_eq!(
        file(&[], None)["innodb_buffer_pool_size"],
        (614 << 20).to_string()
    );
    assert_eq!(
        file(&[("innodb-buffer-pool-size", "256M")], None)["innodb_buffer_pool_size"],
        (256 << 20).to_string()
    );
}

/// A target or a run that a person wrote has no instance sizes to resolve it with.
#[test]
fn a_share_of_the_instance_is_no_value_of_a_file() {
    for (engine, name) in [
        (Engine::MariaDB, "innodb_buffer_pool_size"),
        (Engine::MySQL, "innodb_buffer_pool_size"),
        (Engine::PostgreSQL, "shared_buffers"),
    ] {
        for value in ["75% of memory", "75%"] {
            let base = parameters(&[(name, value)]);
            let error = render(engine, &base, None, 1 << 30).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains(value) && error.contains("write the number"),
                "{error}"
            );
        }
    }
}

#[test]
fn plugins_are_loaded_only_for_their_own_setting_and_nothing_records_at_boot() {
    for type_ in [
        AuditType::None,
        AuditType::GeneralLog,
        AuditType::SlowLog,
        AuditType::ServerAudit,
    ] {
        let lines = file(&[], Some(&request(&[], type_)));
        let plugin = type_ == AuditType::ServerAudit;
        assert_eq!(lines.contains_key("plugin_load_add"), plugin, "{type_:?}");
        assert_eq!(
            lines.get("server_audit_logging").map(String::as_str),
            plugin.then_some("OFF")
        );
        assert_eq!(lines["general_log"], "OFF");
        assert_eq!(lines["slow_query_log"], "OFF");
    }
    let mut installed_off = request(&[], AuditType::ServerAudit);
    if let Some(audit) = installed_off.audit.as_mut() {
        audit.state = crds::audit::AuditState::InstalledOff;
        audit.log = Some(AuditLogVolume {
            volume: LogVolume::WithData,
            limit: None,
        });
    }
    let lines = file(&[], Some(&installed_off));
    assert_eq!(lines["plugin_load_add"], "server_audit");
    assert_eq!(
        lines["server_audit_file_path"],
        "/var/lib/benchmark/data-log/server_audit.log"
    );
}

#[test]
fn the_binary_log_is_off_unless_asked_for() {
    let text =
        |base: &[(&str, &str)]| render(Engine::MariaDB, &parameters(base), None, 1 << 30).map(|f| f.text);
    assert!(text(&[]).unwrap().contains("\nskip_log_bin\n"));
    assert!(text(&[("log-bin", "1")]).unwrap().contains("\nlog_bin=binlog\n"));
    assert!(text(&[("log_bin", "/elsewhere/binlog")]).is_err());
}

#[test]
fn what_is_not_a_persons_to_set_is_refused_with_the_reason() {
    for (name, value, reason) in [
        ("datadir", "/elsewhere", "volume"),
        ("plugin-load-add", "x.so", "audit settings"),
        ("general_log", "ON", "GeneralLog"),
        ("server_audit_file_rotate_size", "1000", "loses records"),
        ("loose_max_connections", "1", "prefix"),
        ("skip-networking", "1", "connect"),
        ("a b", "1", "not a parameter's name"),
        ("max_connections=5\ninit_file", "1", "not a parameter's name"),
        ("init_connect", "a\nskip_grant_tables", "line breaks"),
        ("init_connect", "both ' and \"", "quotes"),
    ] {
        let base = parameters(&[(name, value)]);
        let ConfigurationError::Refused(problems) =
            render(Engine::MariaDB, &base, None, 1 << 30).unwrap_err()
        else {
            panic!("{name} was not refused");
        };
        assert!(
            problems.len() == 1 && problems[0].message.contains(reason),
            "{name}: {problems:?}"
        );
    }
    let twice = parameters(&[("max-connections", "1"), ("max_connections", "2")]);
    assert!(
        render(Engine::MariaDB, &twice, None, 1 << 30)
            .unwrap_err()
            .to_string()
            .contains("same parameter")
    );
}

#[test]
fn values_are_quoted_where_the_file_would_read_them_otherwise() {
    let lines = file(
        &[
            ("init_connect", "SET @a = 'x' # y"),
            ("ft_stopword_file", r"a\b c"),
        ],
        None,
    );
    assert_eq!(lines["init_connect"], r#""SET @a = 'x' # y""#);
    assert_eq!(lines["ft_stopword_file"], r#""a\\b c""#);
}

#[test]
fn the_same_wishes_give_the_same_hash_and_other_wishes_another() {
    let hash = |pairs: &[(&str, &str)], type_| {
        render(
            Engine::MariaDB,
            &Parameters::new(),
            Some(&request(pairs, type_)),
            1 << 30,
        )
        .unwrap()
        .hash
    };
    let one = hash(&[("sync_binlog", "1"), ("back_log", "90")], AuditType::None);
    assert_eq!(one.len(), 16);
    assert_eq!(
        one,
        hash(&[("back-log", "90"), ("SYNC_BINLOG", "1")], AuditType::None)
    );
    assert_ne!(one, hash(&[("back_log", "90")], AuditType::None));
    assert_ne!(
        one,
        hash(
            &[("sync_binlog", "1"), ("back_log", "90")],
            AuditType::ServerAudit
        )
    );
    let mut later = request(&[("sync_binlog", "1"), ("back_log", "90")], AuditType::None);
    later.serial = 99;
    assert_eq!(
        one,
        render(Engine::MariaDB, &Parameters::new(), Some(&later), 1 << 30)
            .unwrap()
            .hash
    );
}

#[test]
fn mechanisms_that_an_engine_does_not_have_are_named_with_those_it_has() {
    let pgaudit = request(&[], AuditType::PgAudit);
    let error = render(Engine::MariaDB, &Parameters::new(), Some(&pgaudit), 1 << 30).unwrap_err();
    assert!(error.to_string().contains("ServerAudit"), "{error}");
}

#[test]
fn a_dump_is_written_and_loaded_whole() {
    let dumped = cache_parameters(Engine::MariaDB, CacheState::Dumped).unwrap();
    assert_eq!(dumped["innodb_buffer_pool_dump_pct"].to_string(), "100");
    assert_eq!(dumped["innodb_buffer_pool_load_at_startup"].to_string(), "ON");
    assert_eq!(file(&[], None)["innodb_buffer_pool_load_at_startup"], "OFF");
    let names: Vec<(&str, &str)> = vec![("innodb_buffer_pool_load_at_startup", "ON")];
    assert_eq!(file(&names, None)["innodb_buffer_pool_load_at_startup"], "ON");
}
