//! What every tool over PostgreSQL's client library is told about login and TLS: a password file and variables. The
//! library refuses a password file that others may read; ours are readable by us only.

use std::path::PathBuf;

use crds::runner::Connection;
use crds::target::TlsMode;

use super::{LoadError, Secret, Site};

/// Where Debian keeps the public authorities.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Variables and files for the library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) files: Vec<(PathBuf, Secret)>,
}

/// The password, by a file for whatever server is asked.
pub(super) fn password(site: &Site<'_>) -> Result<Told, LoadError> {
    let password = &site.login.password;
    if password.contains(['\n', '\r', '\0']) {
        return Err(LoadError::LineBreak);
    }
    let escaped = password.replace('\\', "\\\\").replace(':', "\\:");
    let file = site.scratch.join("pgpass");
    Ok(Told {
        environment: vec![("PGPASSFILE", file.display().to_string())],
        files: vec![(file, Secret(format!("*:*:*:*:{escaped}\n")))],
    })
}

/// How far the server's certificate is checked; nothing is said where there is no TLS.
pub(super) fn tls(connection: &Connection, site: &Site<'_>) -> Told {
    let Some(tls) = connection
        .tls
        .as_ref()
        .filter(|tls| tls.mode != TlsMode::Disabled)
    else {
        return Told::default();
    };
    let mut told = Told::default();
    let authority = match &site.login.certificate_authority {
        Some(authority) => {
            let file = site.scratch.join("ca.crt");
            let name = file.display().to_string();
            let text = String::from_utf8_lossy(authority).into_owned();
            told.files.push((file, Secret(text)));
            name
        }
        None => SYSTEM_AUTHORITIES.to_owned(),
    };
    // The library knows no other name for a certificate than the host's.
    let named = tls
        .server_name
        .as_ref()
        .is_none_or(|name| *name == connection.host);
    let mode = if tls.mode == TlsMode::Verify && named {
        "verify-full"
    } else {
        "verify-ca"
    };
    told.environment
        .extend([("PGSSLMODE", mode.to_owned()), ("PGSSLROOTCERT", authority)]);
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::target::Tls;
    use database::Login;
    use rstest::rstest;
    use std::path::Path;

    fn login(password: &str, authority: bool) -> Login {
        Login {
            username: "bench".to_owned(),
            password: password.to_owned(),
            connection: Connection::default(),
            certificate_authority: authority.then(|| b"PEM".to_vec()),
            agent_token: None,
        }
    }

    fn site(login: &Login) -> Site<'_> {
        Site {
            login,
            scratch: Path::new("/scratch"),
            scripts: Path::new("/scripts"),
            cpus: 1,
        }
    }

    #[test]
    fn a_password_is_escaped_and_never_shown() {
        let given = login(r"a:b\c d", false);
        let told = password(&site(&given)).unwrap();
        assert_eq!(told.environment, [("PGPASSFILE", "/scratch/pgpass".to_owned())]);
        assert_eq!(told.files[0].1, Secret("*:*:*:*:a\\:b\\\\c d\n".to_owned()));
        assert!(!format!("{told:?}").contains("c d"));
        assert_eq!(password(&site(&login("a\nb", false))), Err(LoadError::LineBreak));
    }

    #[rstest]
    #[case(TlsMode::Verify, None, "verify-full")]
    #[case(TlsMode::Verify, Some("db"), "verify-full")]
    #[case(TlsMode::Verify, Some("other"), "verify-ca")]
    #[case(TlsMode::VerifyCa, None, "verify-ca")]
    fn certificates_are_checked_as_far_as_the_library_can(
        #[case] mode: TlsMode,
        #[case] server_name: Option<&str>,
        #[case] expected: &str,
    ) {
        let connection = Connection {
            host: "db".to_owned(),
            tls: Some(Tls {
                mode,
                server_name: server_name.map(str::to_owned),
            }),
            ..Connection::default()
        };
        let given = login("pw", true);
        let told = tls(&connection, &site(&given));
        assert_eq!(
            told.environment,
            [
                ("PGSSLMODE", expected.to_owned()),
                ("PGSSLROOTCERT", "/scratch/ca.crt".to_owned())
            ]
        );
        assert_eq!(told.files.len(), 1);
        let told = tls(&connection, &site(&login("pw", false)));
        assert_eq!(told.environment[1].1, SYSTEM_AUTHORITIES);
        let plain = Connection {
            tls: Some(Tls {
                mode: TlsMode::Disabled,
                server_name: None,
            }),
            ..connection
        };
        assert_eq!(tls(&plain, &site(&given)), Told::default());
    }
}
