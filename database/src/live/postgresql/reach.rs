//! Reaching a server: who answers, how it ended before, and what is said when nobody does or the login is wrong.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use crds::audit::AuditType;
use crds::parameter::Parameters;
use crds::target::{CleanShutdown, Tls, TlsMode};

use super::{none, order, start};
use crate::live::parameters;
use crate::testing::{PASSWORD, TestAgent, free_port};
use crate::{DatabaseAccess as _, DatabaseError, Databases};

#[tokio::test]
async fn a_server_says_who_it_is_and_keeps_its_identity_over_boots() {
    let mut server = start(&Parameters::new());
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let first = Databases.identify(&login).await.unwrap();
    assert_eq!(first.flavour, "PostgreSQL");
    assert!(
        first.version.starts_with(|c: char| c.is_ascii_digit()),
        "{first:?}"
    );
    assert_eq!(
        first.server_identity,
        server.sql("SELECT system_identifier FROM pg_control_system()")
    );
    assert_eq!(first.clean_shutdown, CleanShutdown::Yes, "new data");
    assert_eq!(
        first.capabilities.audit,
        [AuditType::None, AuditType::LogStatement, AuditType::PgAudit]
    );
    let now = jiff::Timestamp::now().as_second();
    assert!(
        (now - 60..=now + 1).contains(&first.started),
        "{} {now}",
        first.started
    );

    server.kill();
    server.restart(&Parameters::new(), None);
    let second = Databases.identify(&login).await.unwrap();
    assert_eq!(second.clean_shutdown, CleanShutdown::No);
    assert_eq!(second.server_identity, first.server_identity);
    assert!(second.started >= first.started);
    let start = Instant::now();
    server.restart(&Parameters::new(), None);
    eprintln!("stopped and started in {:?}", start.elapsed());
    let third = Databases.identify(&login).await.unwrap();
    assert_eq!(third.clean_shutdown, CleanShutdown::Yes);

    // A borrowed server has no such file, its libraries are not ours to load, and nothing stays connected.
    let borrowed = Databases.identify(&server.login(None)).await.unwrap();
    assert_eq!(borrowed.clean_shutdown, CleanShutdown::Unknown);
    assert!(!borrowed.capabilities.audit.contains(&AuditType::PgAudit));
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'benchmark-campaign%'";
    assert_eq!(server.sql(ours), "0");
}

#[tokio::test]
async fn wrong_logins_and_silent_ports_are_told_apart_and_no_password_is_shown() {
    let server = start(&Parameters::new());
    let mut login = server.login(None);
    login.password = "wrong-password-of-mine".to_owned();
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("28P01") && message.contains("Secret")),
        "{error}"
    );
    for text in [error.to_string(), format!("{error:?}"), format!("{login:?}")] {
        assert!(!text.contains("wrong-password-of-mine"), "{text}");
    }

    let mut nowhere = server.login(None);
    nowhere.connection.port = free_port();
    let error = Databases.identify(&nowhere).await.unwrap_err();
    assert!(matches!(&error, DatabaseError::Unreachable { .. }), "{error}");
    nowhere.connection.host = "no-such-host.invalid".to_owned();
    let error = Databases.identify(&nowhere).await.unwrap_err();
    assert!(matches!(&error, DatabaseError::Unreachable { .. }), "{error}");
    // A port that accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    nowhere.connection.host = "127.0.0.1".to_owned();
    nowhere.connection.port = silent.local_addr().unwrap().port();
    let start = Instant::now();
    let error = Databases.identify(&nowhere).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Unreachable { message, .. } if message.contains("2 s")),
        "{error}"
    );
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
    assert!(!error.to_string().contains(PASSWORD));
    // Neither the server's messages nor its log nor what the first container wrote hold the password.
    for file in ["messages", "tmp/init.log", "volume/log/postgresql.log"] {
        let folder = std::path::Path::new(&server.layout().volume).parent().unwrap();
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(
            !text.contains(PASSWORD) && !text.contains("wrong-password"),
            "{file}: {text}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_full_or_ends_us_will_be_tried_again() {
    let server = start(&parameters(&[
        ("max_connections", "6"),
        ("superuser_reserved_connections", "0"),
        ("max_wal_senders", "0"),
    ]));
    let login = server.login(None);
    let mut open = Vec::new();
    let full = loop {
        match <crate::engine::postgresql::Session as crate::server::Server>::open(&login).await {
            Ok(session) => open.push(session),
            Err(error) => break error,
        }
        assert!(open.len() < 10);
    };
    assert!(
        matches!(&full, DatabaseError::Unreachable { message, .. } if message.contains("53300")),
        "{full}"
    );
}

#[tokio::test]
async fn a_missing_grant_is_named() {
    let server = start(&Parameters::new());
    server.sql("CREATE ROLE small LOGIN PASSWORD 'x'");
    server.sql("REVOKE ALL ON SCHEMA benchmark_campaign FROM PUBLIC");
    let mut login = server.login(None);
    login.username = "small".to_owned();
    login.password = "x".to_owned();
    let error = Databases.establish(&login, &order(1, &none())).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("GRANT ALL ON SCHEMA benchmark_campaign")),
        "{error}"
    );
}

/// Runs openssl in a directory.
fn openssl(directory: &std::path::Path, arguments: &str) {
    let output = std::process::Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("openssl is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn certificate_and_name_are_checked_as_asked() {
    let files = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let directory = files.path();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["ca", "other"] {
        openssl(
            directory,
            &format!(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.crt"
            ),
        );
    }
    openssl(
        directory,
        "req -newkey rsa:2048 -nodes -subj /CN=db.test -keyout server.key -out server.csr",
    );
    std::fs::write(directory.join("server.ext"), "subjectAltName=DNS:db.test\n").unwrap();
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.crt",
    );
    let path = |name: &str| directory.join(name).display().to_string();
    std::fs::set_permissions(path("server.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    crate::testing::give_away(&directory.join("server.key"));
    let server = start(&parameters(&[
        ("ssl", "on"),
        ("ssl_cert_file", &path("server.crt")),
        ("ssl_key_file", &path("server.key")),
    ]));
    for (mode, name, authority, admitted) in [
        (TlsMode::Verify, Some("db.test"), "ca.crt", true),
        (TlsMode::Verify, Some("db.elsewhere"), "ca.crt", false),
        // The host is an address that the certificate does not name.
        (TlsMode::Verify, None, "ca.crt", false),
        (TlsMode::VerifyCa, None, "ca.crt", true),
        (TlsMode::VerifyCa, None, "other.crt", false),
        (TlsMode::Verify, Some("db.test"), "other.crt", false),
        (TlsMode::Disabled, None, "other.crt", true),
    ] {
        let mut login = server.login(None);
        login.connection.tls = Some(Tls {
            mode,
            server_name: name.map(str::to_owned),
        });
        login.certificate_authority = Some(std::fs::read(path(authority)).unwrap());
        let answer = Databases.identify(&login).await;
        assert_eq!(
            answer.is_ok(),
            admitted,
            "{mode:?} {name:?} {authority}: {answer:?}"
        );
        if !admitted {
            assert!(
                matches!(&answer, Err(DatabaseError::Refused { message, .. }) if message.contains("tls.mode")),
                "{answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_and_one_that_wants_the_password_itself_are_refused() {
    let server = start(&Parameters::new());
    let mut login = server.login(None);
    login.connection.tls = Some(Tls {
        mode: TlsMode::Verify,
        server_name: None,
    });
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("TLS") && message.contains("ssl")),
        "{error}"
    );
    let rules = std::path::Path::new(&server.layout().data_directory()).join("pg_hba.conf");
    std::fs::write(&rules, "host all all all password\n").unwrap();
    server.sql("SELECT pg_reload_conf()");
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let error = Databases.identify(&server.login(None)).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("clear text")),
        "{error}"
    );
    std::fs::write(&rules, "host all all all reject\n").unwrap();
    // Read again by whoever is still connected: nobody, so the server is told by a signal.
    let pid = std::fs::read_to_string(server.layout().pid_file()).unwrap();
    let told = std::process::Command::new("kill")
        .args(["-HUP", pid.trim()])
        .status();
    assert!(told.unwrap().success());
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let error = Databases.identify(&server.login(None)).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("must admit")),
        "{error}"
    );
}
