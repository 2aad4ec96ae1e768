//! What went wrong at a PostgreSQL server, and what to do about it: which grant is missing, which file to look at.

use std::error::Error as _;

use rustls::CertificateError;
use tokio_postgres::Error;

use crate::access::DatabaseError;

pub(super) fn unreachable((host, port): (&str, u16), message: String) -> DatabaseError {
    DatabaseError::Unreachable {
        host: host.to_owned(),
        port,
        message,
    }
}

pub(super) fn refused((host, port): (&str, u16), message: String) -> DatabaseError {
    DatabaseError::Refused {
        host: host.to_owned(),
        port,
        message,
    }
}

/// An error of the client as one of ours.
pub(super) fn mapped(at: (&str, u16), doing: &str, error: &Error) -> DatabaseError {
    if let Some(said) = error.as_db_error() {
        return by_state(at, doing, said.code().code(), said.message());
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return refused(at, tls_advice(tls));
        }
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            if let Some(tls) = io.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
                return refused(at, tls_advice(tls));
            }
            if io.kind() == std::io::ErrorKind::PermissionDenied {
                return refused(at, io.to_string());
            }
            return unreachable(at, io.to_string());
        }
        cause = inner.source();
    }
    let text = chain(error);
    if error.is_closed() {
        return unreachable(at, "the connection was closed".to_owned());
    }
    if text.contains("TLS") {
        return refused(
            at,
            format!("{text}; switch ssl on at the server, or set tls.mode: Disabled"),
        );
    }
    DatabaseError::Statement {
        statement: doing.to_owned(),
        message: text,
    }
}

fn tls_advice(error: &rustls::Error) -> String {
    let what = match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "tls.serverName and tls.mode",
        _ => "ca.crt of the credentials Secret, tls.serverName and tls.mode",
    };
    format!("{error}; check {what}")
}

/// An error with its causes; a server's own error stands alone, its details may hold values.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// By SQLSTATE (appendix A of the manual).
fn by_state(at: (&str, u16), doing: &str, state: &str, message: &str) -> DatabaseError {
    let said = format!("error {state}: {message}");
    match state {
        "28P01" => refused(
            at,
            format!("{said}; check username and password of the credentials Secret"),
        ),
        "28000" if message.contains("pg_hba.conf") => refused(
            at,
            format!(
                "{said}; the server's pg_hba.conf must admit this login from this host (hostssl: with TLS)"
            ),
        ),
        "28000" => refused(
            at,
            format!("{said}; check username of the credentials Secret: the role must exist with LOGIN"),
        ),
        "42501" => refused(at, format!("{said} ({doing}); {}", grant(message))),
        // Too many connections; shutting down, not yet up; a statement or session that somebody ended.
        "53300" | "57014" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => unreachable(at, said),
        _ if state.starts_with("08") => unreachable(at, said),
        _ => DatabaseError::Statement {
            statement: doing.to_owned(),
            message: said,
        },
    }
}

/// The grant that a refused statement lacks, by what the server says.
fn grant(message: &str) -> String {
    let quoted = message.split('"').nth(1);
    let last = message.rsplit(' ').next().unwrap_or_default();
    let named = quoted.unwrap_or(last);
    let after = |words: &str| message.contains(words);
    if after("to create database") {
        "ALTER ROLE … CREATEDB is missing".to_owned()
    } else if after("to set parameter") {
        format!(
            "GRANT ALTER SYSTEM ON PARAMETER {named} is missing (before PostgreSQL 15 only a superuser may)"
        )
    } else if after("for database") {
        format!("GRANT CREATE, CONNECT ON DATABASE {named} is missing")
    } else if after("for schema") {
        format!("GRANT ALL ON SCHEMA {named} is missing")
    } else if after("for function") {
        format!("GRANT EXECUTE ON FUNCTION {named} is missing")
    } else if after("for table") || after("for view") || after("for relation") {
        format!("GRANT ALL ON TABLE {named} is missing")
    } else if after("terminate") {
        "GRANT pg_signal_backend is missing".to_owned()
    } else if after("CHECKPOINT") || after("checkpoint") {
        "GRANT pg_checkpoint is missing".to_owned()
    } else if after("must be owner") {
        format!("the login must own {named}")
    } else {
        "grant that privilege to the login, or make it a superuser".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("permission denied to create database", "CREATEDB")]
    #[case(
        "permission denied to set parameter \"log_statement\"",
        "ALTER SYSTEM ON PARAMETER log_statement"
    )]
    #[case(
        "permission denied for database postgres",
        "CREATE, CONNECT ON DATABASE postgres"
    )]
    #[case(
        "permission denied for schema benchmark_campaign",
        "ALL ON SCHEMA benchmark_campaign"
    )]
    #[case(
        "permission denied for function pg_reload_conf",
        "EXECUTE ON FUNCTION pg_reload_conf"
    )]
    #[case("permission denied for table fence", "ALL ON TABLE fence")]
    #[case("must be owner of database sbtest", "must own sbtest")]
    #[case("must be a superuser to terminate superuser process", "pg_signal_backend")]
    #[case("something else", "superuser")]
    fn a_missing_grant_is_named(#[case] message: &str, #[case] expected: &str) {
        let error = by_state(("db", 5432), "look", "42501", message).to_string();
        assert!(error.contains(expected) && error.contains(message), "{error}");
    }

    #[test]
    fn what_will_pass_is_told_from_what_a_person_must_do() {
        let kind = |state, message| by_state(("db", 5432), "look", state, message);
        for state in ["53300", "57P03", "57P01", "08006"] {
            assert!(
                matches!(kind(state, "x"), DatabaseError::Unreachable { .. }),
                "{state}"
            );
        }
        let hba = kind(
            "28000",
            "no pg_hba.conf entry for host \"::1\", user \"b\", no encryption",
        );
        assert!(matches!(&hba, DatabaseError::Refused { message, .. } if message.contains("must admit")));
        assert!(matches!(kind("28P01", "x"), DatabaseError::Refused { .. }));
        assert!(matches!(kind("42601", "x"), DatabaseError::Statement { .. }));
    }
}
