//! Audit settings: the mechanism must exist for the engine and in this release, and its settings must make sense.

use crds::BenchmarkCampaignSpec;
use crds::audit::{AuditSetting, AuditState, AuditType, LogDestination, ServerAuditEvent};

use super::super::Problem;
use super::super::supported::{AUDITS, audits_of, one_of};
use super::axes::{parameters, positive};
use super::{engines_that_meet, unique};

pub(super) fn settings(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    unique(
        "spec.auditSettings",
        spec.audit_settings.iter().map(|a| a.name.as_str()),
        problems,
    );
    for (i, audit) in spec.audit_settings.iter().enumerate() {
        let at = format!("spec.auditSettings[{i}]");
        let mut foreign = false;
        let engines = engines_that_meet(
            spec,
            |s| s.audit_setting.as_ref().is_none_or(|name| *name == audit.name),
            |s| {
                s.instance_size.is_none()
                    && s.parameter_template.is_none()
                    && s.workload.is_none()
                    && s.threads.is_none()
            },
        );
        for engine in engines {
            if !audits_of(engine).contains(&audit.type_) {
                foreign = true;
                problems.push(Problem::new(
                    format!("{at}.type"),
                    format!("{:?} does not exist for {engine:?}", audit.type_),
                    format!("{engine:?} has {}", one_of(audits_of(engine))),
                    format!(
                        "use one of these, or exclude {} for the databases with engine {engine:?}",
                        audit.name
                    ),
                ));
            }
        }
        if !foreign && !AUDITS.contains(&audit.type_) {
            problems.push(Problem::new(
                format!("{at}.type"),
                format!("{:?}", audit.type_),
                format!("this release measures {}", one_of(AUDITS)),
                "use one of these, or wait for a release that measures it",
            ));
        }
        members(&at, audit, problems);
        mechanism(&at, audit, problems);
        if let Some(limit) = audit.log.as_ref().and_then(|log| log.limit.as_ref()) {
            positive(&format!("{at}.log.limit"), limit, "10Gi", problems);
        }
        parameters(&format!("{at}.parameters"), &audit.parameters, problems);
    }
}

/// Exactly the union member that the type names.
fn members(at: &str, audit: &AuditSetting, problems: &mut Vec<Problem>) {
    let audit_log = matches!(
        audit.type_,
        AuditType::PerconaAuditLog | AuditType::EnterpriseAuditLog
    );
    for (member, given, fits) in [
        (
            "serverAudit",
            audit.server_audit.is_some(),
            audit.type_ == AuditType::ServerAudit,
        ),
        (
            "generalLog",
            audit.general_log.is_some(),
            audit.type_ == AuditType::GeneralLog,
        ),
        (
            "slowLog",
            audit.slow_log.is_some(),
            audit.type_ == AuditType::SlowLog,
        ),
        ("auditLog", audit.audit_log.is_some(), audit_log),
        (
            "pgAudit",
            audit.pg_audit.is_some(),
            audit.type_ == AuditType::PgAudit,
        ),
        (
            "logStatement",
            audit.log_statement.is_some(),
            audit.type_ == AuditType::LogStatement,
        ),
        ("custom", audit.custom.is_some(), audit.type_ == AuditType::Custom),
    ] {
        if given && !fits {
            problems.push(Problem::new(
                format!("{at}.{member}"),
                format!("set with type {:?}", audit.type_),
                format!("{member} belongs to another type"),
                "remove it, or change type",
            ));
        }
    }
}

fn mechanism(at: &str, audit: &AuditSetting, problems: &mut Vec<Problem>) {
    let plugin = !matches!(
        audit.type_,
        AuditType::None | AuditType::GeneralLog | AuditType::SlowLog | AuditType::LogStatement
    );
    if audit.state == AuditState::InstalledOff && !plugin {
        problems.push(Problem::new(
            format!("{at}.state"),
            format!("InstalledOff with type {:?}", audit.type_),
            "only a plugin can be installed and off; the server's own logs are always there",
            "use type: None for the arm without auditing",
        ));
    }
    let table = |output: &Option<crds::audit::LogOutput>| {
        output
            .as_ref()
            .is_some_and(|output| output.output == LogDestination::Table)
    };
    for (member, set) in [
        ("generalLog", table(&audit.general_log)),
        ("slowLog", table(&audit.slow_log)),
    ] {
        if set {
            problems.push(Problem::new(
                format!("{at}.{member}.output"),
                "Table",
                "this release measures logs that go to a File",
                "use output: File, or remove it",
            ));
        }
    }
    if let Some(server_audit) = &audit.server_audit {
        let events = &server_audit.events;
        if events.contains(&ServerAuditEvent::All) && events.len() > 1 {
            problems.push(Problem::new(
                format!("{at}.serverAudit.events"),
                format!("{events:?}"),
                "All is every class already",
                "keep All alone, or name the classes without it",
            ));
        }
    }
    if audit.type_ == AuditType::None && audit.log.is_some() {
        problems.push(Problem::new(
            format!("{at}.log"),
            "set with type None",
            "an arm without auditing has no log",
            "remove log, or change type",
        ));
    }
}
