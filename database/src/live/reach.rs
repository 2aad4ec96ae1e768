//! Reaching a server: who answers, and what is said when nobody does or the login is wrong.

use crds::audit::{AuditState, AuditType};
use crds::target::{CleanShutdown, Engine, Tls, TlsMode};

use super::{request, setting};
use crate::testing::{PASSWORD, TestAgent, TestServer, free_port};
use crate::{DatabaseAccess as _, DatabaseError, Databases};

#[tokio::test]
async fn a_server_says_who_it_is_and_keeps_its_identity_over_boots() {
    let mut server = TestServer::start();
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let first = Databases.identify(&login).await.unwrap();
    assert!(first.version.contains("MariaDB"), "{first:?}");
    assert_eq!(first.flavour, "MariaDB");
    assert_eq!(first.server_identity.len(), 36, "{first:?}");
    let now = jiff::Timestamp::now().as_second();
    assert!(
        (now - 60..=now + 1).contains(&first.started),
        "{} {now}",
        first.started
    );
    for audit in [
        AuditType::None,
        AuditType::ServerAudit,
        AuditType::GeneralLog,
        AuditType::SlowLog,
    ] {
        assert!(first.capabilities.audit.contains(&audit), "{first:?}");
    }
    assert!(!first.capabilities.persist && !first.capabilities.restart_statement);

    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    server.restart(
        &crds::parameter::Parameters::new(),
        Some(&request(
            super::parameters(&[]),
            &setting(AuditType::ServerAudit, AuditState::On),
        )),
    );
    let second = Databases.identify(&login).await.unwrap();
    assert_eq!(second.server_identity, first.server_identity);
    assert!(second.started > first.started, "{first:?} {second:?}");
    // Nothing stays connected, and nobody but the socket's root gets in without the password.
    assert_eq!(
        server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'benchmark'"),
        "0"
    );
    assert_eq!(
        server.sql("SELECT CONCAT(User, '@', Host) FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys') ORDER BY 1"),
        "benchmark@%\nroot@localhost"
    );
}

#[tokio::test]
async fn a_boot_knows_how_the_one_before_it_ended() {
    let mut server = TestServer::start();
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    let none = crds::parameter::Parameters::new();
    let clean = async || Databases.identify(&login).await.unwrap().clean_shutdown;
    assert_eq!(clean().await, CleanShutdown::Yes, "new data");
    server.kill();
    server.restart(&none, None);
    assert_eq!(clean().await, CleanShutdown::No);
    server.restart(&none, None);
    assert_eq!(clean().await, CleanShutdown::Yes);
    // A borrowed server has no such file, and is not asked.
    let borrowed = Databases.identify(&server.login(None)).await.unwrap();
    assert_eq!(borrowed.clean_shutdown, CleanShutdown::Unknown);
}

#[tokio::test]
async fn wrong_logins_and_silent_ports_are_told_apart_and_no_password_is_shown() {
    let server = TestServer::start();
    let mut login = server.login(None);
    login.password = "wrong-password-of-mine".to_owned();
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("1045") && message.contains("Secret")),
        "{error}"
    );
    for text in [error.to_string(), format!("{error:?}"), format!("{login:?}")] {
        assert!(!text.contains("wrong-password-of-mine"), "{text}");
    }

    let mut nowhere = server.login(None);
    nowhere.connection.port = free_port();
    let error = Databases.identify(&nowhere).await.unwrap_err();
    assert!(matches!(&error, DatabaseError::Unreachable { .. }), "{error}");
    // A port that accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    nowhere.connection.port = silent.local_addr().unwrap().port();
    let start = std::time::Instant::now();
    let error = Databases.identify(&nowhere).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Unreachable { message, .. } if message.contains("2 s")),
        "{error}"
    );
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
    assert!(!error.to_string().contains(PASSWORD));

    // A server that speaks another protocol than it is said to.
    let mut other = server.login(None);
    other.connection.engine = Engine::PostgreSQL;
    let error = Databases.identify(&other).await.unwrap_err();
    assert!(matches!(&error, DatabaseError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_grant_is_named() {
    let server = TestServer::start();
    server.sql("CREATE USER small@'%' IDENTIFIED BY 'x'");
    let mut login = server.login(None);
    login.username = "small".to_owned();
    login.password = "x".to_owned();
    let order = super::order(1, &setting(AuditType::None, AuditState::On));
    let error = Databases.establish(&login, &order).await.unwrap_err();
    assert!(
        matches!(&error, DatabaseError::Refused { message, .. } if message.contains("benchmark_campaign") && message.contains("grant")),
        "{error}"
    );
}

/// Runs openssl in a directory.
fn openssl(directory: &std::path::Path, arguments: &[&str]) {
    let output = std::process::Command::new("openssl")
        .args(arguments)
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
    let files = tempfile::tempdir().unwrap();
    let directory = files.path();
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (name, subject) in [("ca", "/CN=our authority"), ("other", "/CN=another authority")] {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
        openssl(
            directory,
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                subject,
                "-keyout",
                &key,
                "-out",
                &certificate,
            ],
        );
    }
    openssl(
        directory,
        &[
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=db.test",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ],
    );
    std::fs::write(directory.join("server.ext"), "subjectAltName=DNS:db.test\n").unwrap();
    openssl(
        directory,
        &[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "server.ext",
            "-out",
            "server.crt",
        ],
    );
    let path = |name: &str| directory.join(name).display().to_string();
    std::fs::set_permissions(
        path("server.key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    let base = super::parameters(&[
        ("ssl_cert", &path("server.crt")),
        ("ssl_key", &path("server.key")),
    ]);
    let server = TestServer::start_with(&base, None);

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
    server.sql("ALTER USER benchmark@'%' REQUIRE SSL");
    let plain = Databases.identify(&server.login(None)).await;
    assert!(matches!(plain, Err(DatabaseError::Refused { .. })), "{plain:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let server = TestServer::start();
    let mut login = server.login(None);
    login.connection.tls = Some(Tls {
        mode: TlsMode::Verify,
        server_name: None,
    });
    let error = Databases.identify(&login).await.unwrap_err();
    assert!(
        error.to_string().to_ascii_lowercase().contains("ssl") || error.to_string().contains("TLS"),
        "{error}"
    );
}
