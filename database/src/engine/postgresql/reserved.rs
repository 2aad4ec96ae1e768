//! What the operator sets itself at a managed server; a person who sets it would break the pod, the login or the evidence.

use crate::access::ParameterProblem;

const RESERVED: &[(&str, &str)] = &[
    ("allow_alter_system", "auditing is switched with ALTER SYSTEM"),
    ("config_file", "the pod's layout is the operator's"),
    ("data_directory", "the volume's layout is the operator's"),
    ("external_pid_file", "it tells how the server ended"),
    ("hba_file", "it admits the operator's login"),
    ("ident_file", "the pod's layout is the operator's"),
    ("include", "the file is complete"),
    ("include_dir", "the file is complete"),
    ("include_if_exists", "the file is complete"),
    ("lc_messages", "translated records cannot be counted"),
    ("listen_addresses", "the pod's address is the only one"),
    ("log_destination", "the collector's file is the same in every arm"),
    ("log_directory", "use log.volume of the audit setting"),
    ("log_file_mode", "the agent reads the log"),
    ("log_filename", "the agent reads the log"),
    ("log_line_prefix", "records are counted by it"),
    ("log_rotation_age", "a log that rotates loses records"),
    ("log_rotation_size", "a log that rotates loses records"),
    ("log_statement", "use an audit setting of type LogStatement"),
    ("log_timezone", "records are counted by their prefix"),
    ("log_truncate_on_rotation", "a log that is cut loses records"),
    (
        "logging_collector",
        "the collector's file is the same in every arm",
    ),
    ("port", "the Service uses the engine's own port"),
    (
        "restart_after_crash",
        "a boot would not be the one that was proved",
    ),
    ("syslog_facility", "the collector's file is the same in every arm"),
    ("unix_socket_directories", "the startup probe uses it"),
];

/// The problem with setting this parameter on a managed server, if it is not a person's to set.
pub(super) fn reserved(name: &str) -> Option<ParameterProblem> {
    if name.starts_with("pgaudit.") {
        return Some(problem(name, "use pgAudit of an audit setting of type PgAudit"));
    }
    let (_, why) = RESERVED.iter().find(|(reserved, _)| *reserved == name)?;
    Some(problem(name, why))
}

pub(super) fn problem(name: &str, why: &str) -> ParameterProblem {
    ParameterProblem {
        name: name.to_owned(),
        message: format!("{name} is not yours to set: {why}"),
    }
}
