//! Audit mechanisms of servers that cannot be had here: enabled, read back, disabled, put back.

use crds::audit::{AuditLogFormat, AuditLogPlugin, AuditSetting, AuditState, AuditType};
use crds::run::EvidenceLevel;
use rstest::rstest;
use scripted_server::{Account, Listening};

use super::borrowed::{capture, look, order, prepare, restored};
use super::{PASSWORD, USER, setting, start};
use crate::{DatabaseAccess as _, DatabaseError, Databases, Established, Login, Proof};

/// A setting in the format that the plugin has unless its server is started with another.
fn wanted(type_: AuditType, format: AuditLogFormat, state: AuditState) -> AuditSetting {
    AuditSetting {
        audit_log: matches!(type_, AuditType::PerconaAuditLog | AuditType::EnterpriseAuditLog).then(|| {
            AuditLogPlugin {
                format,
                ..AuditLogPlugin::default()
            }
        }),
        ..setting(type_, state)
    }
}

async fn ready(login: &Login, epoch: i64, setting: &AuditSetting) -> Box<Proof> {
    match Databases.establish(login, &order(epoch, setting)).await.unwrap() {
        Established::Ready(proof) => proof,
        other => panic!("{epoch}: {other:?}"),
    }
}

async fn problems(login: &Login, epoch: i64, setting: &AuditSetting) -> String {
    match Databases.establish(login, &order(epoch, setting)).await.unwrap() {
        Established::NotInForce { problems } => format!("{problems:?}"),
        other => panic!("{epoch}: {other:?}"),
    }
}

fn plugins(server: &Listening) -> usize {
    let audit = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'AUDIT'";
    server.sql(audit).unwrap().len()
}

#[rstest]
#[case("percona-5.7", AuditType::PerconaAuditLog, AuditLogFormat::Old)]
#[case("percona-8.0", AuditType::PerconaAuditLog, AuditLogFormat::Old)]
#[case("mysql-enterprise-5.7", AuditType::EnterpriseAuditLog, AuditLogFormat::New)]
#[case("mysql-enterprise-8.0", AuditType::EnterpriseAuditLog, AuditLogFormat::New)]
#[tokio::test]
async fn a_plugin_is_not_installed_then_off_then_on_and_gone_again(
    #[case] name: &str,
    #[case] type_: AuditType,
    #[case] format: AuditLogFormat,
) {
    let (server, login) = start(name).await;
    let before = look(&server);
    let (original, not_permitted) = capture(&login, &[type_]).await;
    assert_eq!(not_permitted, []);
    prepare(&server, &login, 1).await;
    let none = setting(AuditType::None, AuditState::On);
    let (off, on) = (
        wanted(type_, format, AuditState::InstalledOff),
        wanted(type_, format, AuditState::On),
    );
    assert_eq!(
        Databases
            .check(&login, &[], &[off.clone(), on.clone()])
            .await
            .unwrap(),
        []
    );
    for (epoch, (arm, installed, recording)) in (2..).zip([
        (&none, false, false),
        (&off, true, false),
        (&on, true, true),
        (&off, true, false),
        (&none, false, false),
        (&on, true, true),
    ]) {
        let proof = ready(&login, epoch, arm).await;
        let found = &proof.evidence.audit;
        assert_eq!(
            (found.installed, found.recording),
            (installed, recording),
            "{epoch}"
        );
        assert_eq!(proof.evidence.level, EvidenceLevel::ReadBack);
        assert_eq!(plugins(&server), usize::from(installed));
    }
    // Records that the plugin counts as lost are seen.
    let counter = match type_ {
        AuditType::PerconaAuditLog => "Audit_log_buffer_size_overflow",
        _ => "Audit_log_events_lost",
    };
    server.server().set_status(counter, "7");
    assert_eq!(Databases.counters(&login).await.unwrap().audit_lost, Some(7));
    restored(&login, &original).await;
    assert_eq!(look(&server), before);
}

/// What only the start of the server sets is read back, not set.
#[tokio::test]
async fn a_format_that_the_server_was_not_started_with_is_named() {
    let (server, login) = start("percona-8.0").await;
    capture(&login, &[AuditType::PerconaAuditLog]).await;
    prepare(&server, &login, 1).await;
    let json = wanted(AuditType::PerconaAuditLog, AuditLogFormat::Json, AuditState::On);
    let said = problems(&login, 2, &json).await;
    assert!(
        said.contains("audit_log_format is `OLD`, wanted `JSON`"),
        "{said}"
    );
    // Its owner starts it with the format.
    server.server().configure("audit_log_format", "JSON");
    server.boot();
    ready(&login, 3, &json).await;
}

#[tokio::test]
async fn lists_that_hide_statements_are_named() {
    let (server, login) = start("percona-8.0").await;
    server
        .server()
        .configure("audit_log_exclude_accounts", "benchmark@%");
    prepare(&server, &login, 1).await;
    let on = wanted(AuditType::PerconaAuditLog, AuditLogFormat::Old, AuditState::On);
    let said = problems(&login, 2, &on).await;
    assert!(said.contains("audit_log_exclude_accounts"), "{said}");
}

#[rstest]
#[case("percona-8.0", AuditType::PerconaAuditLog)]
#[case("mysql-enterprise-8.0", AuditType::EnterpriseAuditLog)]
#[tokio::test]
async fn a_missing_library_or_privilege_is_a_clear_error(#[case] name: &str, #[case] type_: AuditType) {
    let (server, login) = start(name).await;
    prepare(&server, &login, 1).await;
    let format = match type_ {
        AuditType::PerconaAuditLog => AuditLogFormat::Old,
        _ => AuditLogFormat::New,
    };
    let on = wanted(type_, format, AuditState::On);
    server.server().remove_library("audit_log.so");
    let said = problems(&login, 2, &on).await;
    assert!(said.contains("1126") && said.contains("audit_log.so"), "{said}");
    let may = [
        "SELECT",
        "CREATE",
        "DROP",
        "UPDATE",
        "DELETE",
        "SYSTEM_VARIABLES_ADMIN",
        "INSERT ON benchmark_campaign",
        "SUPER",
    ];
    server.server().set_account(Account::with(USER, PASSWORD, &may));
    let error = Databases.establish(&login, &order(3, &on)).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. }
            if message.contains("1142") && message.contains("INSERT") && message.contains("plugin")),
        "{error}"
    );
}

/// The two vendors' plugins have one name.
#[rstest]
#[case("percona-8.0", AuditType::EnterpriseAuditLog, "EnterpriseAuditLog")]
#[case("mysql-enterprise-8.0", AuditType::PerconaAuditLog, "PerconaAuditLog")]
#[tokio::test]
async fn the_other_vendors_plugin_is_refused(
    #[case] name: &str,
    #[case] type_: AuditType,
    #[case] word: &str,
) {
    let (_server, login) = start(name).await;
    let on = wanted(type_, AuditLogFormat::Old, AuditState::On);
    let found = Databases.identify(&login).await.unwrap();
    assert!(!found.capabilities.audit.contains(&type_), "{word}");
    let said = Databases.check(&login, &[], &[on]).await.unwrap();
    assert!(!said.is_empty());
}

/// McAfee's plugin cannot be unloaded unless its server was started so: it is the owner's to load.
#[tokio::test]
async fn mcafees_plugin_is_switched_where_its_owner_loaded_it() {
    let (server, login) = start("mysql-5.7-mcafee").await;
    let on = setting(AuditType::McAfeeAudit, AuditState::On);
    let off = setting(AuditType::McAfeeAudit, AuditState::InstalledOff);
    let none = setting(AuditType::None, AuditState::On);
    let said = Databases
        .check(&login, &[], std::slice::from_ref(&on))
        .await
        .unwrap();
    assert!(
        said.len() == 1 && said[0].message.contains("no statement loads it"),
        "{said:?}"
    );
    server
        .sql("INSTALL PLUGIN AUDIT SONAME 'libaudit_plugin.so'")
        .unwrap();
    assert_eq!(
        Databases
            .check(&login, &[], &[on.clone(), off.clone()])
            .await
            .unwrap(),
        []
    );
    let said = Databases
        .check(&login, &[], std::slice::from_ref(&none))
        .await
        .unwrap();
    assert!(
        said.len() == 1 && said[0].message.contains("InstalledOff"),
        "{said:?}"
    );
    let before = look(&server);
    let (original, _) = capture(&login, &[AuditType::McAfeeAudit]).await;
    prepare(&server, &login, 1).await;
    for (epoch, (arm, recording)) in (2..).zip([(&off, false), (&on, true), (&off, false), (&on, true)]) {
        let proof = ready(&login, epoch, arm).await;
        assert_eq!(proof.evidence.audit.recording, recording);
        assert!(proof.evidence.audit.installed);
    }
    restored(&login, &original).await;
    assert_eq!(look(&server), before);
    let disabled = server.sql("UNINSTALL PLUGIN AUDIT").unwrap_err();
    assert_eq!(disabled.code, 1148);
}
