//! A borrowed PostgreSQL server is left as it was found, from whatever point it is put back.

use std::collections::BTreeSet;

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::parameter::Parameters;
use crds::target::{Engine, OriginalState, Permissions};

use super::super::parameters;
use super::{ROWS, none, request, setting, workload};
use crate::access::DatabaseError;
use crate::testing::{CutLine, TestServer};
use crate::{
    Captured, Claim, DatabaseAccess as _, Databases, EstablishOrder, Established, Left, Login, marker,
};

const OWNER: &str = "target-uid";

/// As a person runs it: values set by hand in both files, an extension, a database of their own, and no trace of us.
fn borrowed(preload: bool) -> (TestServer, Login) {
    let base = parameters(&[("random_page_cost", "1.7"), ("deadlock_timeout", "3s")]);
    let loaded = request(Parameters::new(), &setting(AuditType::PgAudit, AuditState::On));
    let server = TestServer::start_of(Engine::PostgreSQL, &base, preload.then_some(&loaded));
    for statement in [
        "DROP SCHEMA benchmark_campaign CASCADE",
        "CREATE DATABASE orders",
        "ALTER SYSTEM SET work_mem = '7MB'",
        "ALTER SYSTEM SET log_min_duration_statement = 60000",
        "ALTER SYSTEM SET search_path = \"$user\", public, \"Odd, name\"",
        "ALTER DATABASE postgres SET temp_buffers = '9MB'",
        "SELECT pg_reload_conf()",
    ] {
        server.sql(statement);
    }
    if preload {
        server.sql_in("orders", "CREATE EXTENSION pgaudit");
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let login = server.login(None);
    (server, login)
}

/// What a person can see of the server. It has no clock in its parameters.
fn look(server: &TestServer) -> BTreeSet<String> {
    let everywhere = "SELECT name, setting, reset_val, source, sourcefile, pending_restart FROM pg_settings; SELECT \
                      pg_read_file(current_setting('data_directory') || '/postgresql.auto.conf'); SELECT 'database', \
                      datname, datacl, datallowconn FROM pg_database; SELECT 'own value', s.* FROM pg_db_role_setting s; \
                      SELECT 'role', rolname FROM pg_roles";
    let here = "SELECT current_database(), extname, extversion FROM pg_extension; SELECT current_database(), nspname FROM \
                pg_namespace";
    [("postgres", everywhere), ("postgres", here), ("orders", here)]
        .iter()
        .flat_map(|(database, statements)| {
            let text = server.sql_in(database, statements);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

fn permissions(audit: &[AuditType]) -> Permissions {
    Permissions {
        parameters: ["work_mem", "random_page_cost", "temp_buffers", "search_path"]
            .map(str::to_owned)
            .to_vec(),
        audit: audit.to_vec(),
        restart: false,
        dataset_schema: Some("sbtest".to_owned()),
    }
}

async fn capture(login: &Login, permissions: &Permissions) -> (OriginalState, Vec<AuditType>) {
    match Databases.capture(login, permissions, OWNER).await.unwrap() {
        Captured::Ours { state, not_permitted } => (*state, not_permitted),
        taken @ Captured::Taken { .. } => panic!("{taken:?}"),
    }
}

async fn restore(login: &Login, original: &OriginalState) -> Vec<Left> {
    Databases.restore(login, Some(original), OWNER).await.unwrap()
}

fn order(epoch: i64, audit: &AuditSetting) -> EstablishOrder {
    EstablishOrder {
        parameters: parameters(&[
            ("work_mem", "16MB"),
            ("random_page_cost", "3"),
            ("temp_buffers", "2MB"),
            ("search_path", "\"$user\", public"),
        ]),
        fresh_boot: false,
        ..super::order(epoch, audit)
    }
}

async fn prepare(server: &TestServer, login: &Login, epoch: i64) -> Result<(), DatabaseError> {
    let run = format!("prepare-{epoch}");
    if Databases.begin_dataset(login, &run, epoch).await? != Claim::Claimed {
        return Ok(());
    }
    let table =
        |n: i32| format!("CREATE TABLE public.sbtest{n} AS SELECT generate_series(1, {ROWS}) AS id; ");
    server.sql_in("sbtest", &(table(1) + &table(2)));
    let hash = marker::dataset_hash(Engine::PostgreSQL, &workload(), ROWS);
    let tables = marker::table_names(&workload());
    Databases
        .finish_dataset(login, (&run, epoch), &hash, &tables, ROWS)
        .await
        .map(drop)
}

async fn ready(login: &Login, order: &EstablishOrder) {
    let answer = Databases.establish(login, order).await.unwrap();
    assert!(matches!(answer, Established::Ready(_)), "{answer:?}");
}

#[tokio::test]
async fn what_a_campaign_changed_is_put_back() {
    let (server, login) = borrowed(false);
    let before = look(&server);
    let allowed = permissions(&[AuditType::LogStatement]);
    let identity = Databases.identify(&login).await.unwrap().server_identity;
    Databases.capture(&login, &allowed, OWNER).await.unwrap();
    assert_ne!(look(&server), before, "it is said whose the server is");
    assert_eq!(Databases.restore(&login, None, OWNER).await.unwrap(), []);
    assert_eq!(look(&server), before);

    let (original, not_permitted) = capture(&login, &allowed).await;
    assert_eq!(not_permitted, []);
    assert_eq!(capture(&login, &allowed).await.0, original, "it can be repeated");
    let persisted = |name: &str| original.persisted[name].as_deref();
    assert_eq!(persisted("work_mem"), Some("7MB"));
    assert_eq!(persisted("random_page_cost"), None, "it is in another file");
    assert_eq!(persisted("log_statement"), None);
    assert!(
        !original.persisted.contains_key("deadlock_timeout"),
        "not permitted"
    );
    assert!(original.schemas.contains(&"orders".to_owned()));

    let recording = setting(AuditType::LogStatement, AuditState::On);
    prepare(&server, &login, 1).await.unwrap();
    for (epoch, arm) in [(2, &recording), (3, &none()), (4, &recording)] {
        ready(&login, &order(epoch, arm)).await;
    }
    assert_eq!(server.sql_in("sbtest", "SHOW work_mem"), "16MB");
    assert_eq!(
        Databases.identify(&login).await.unwrap().server_identity,
        identity
    );
    assert_eq!(restore(&login, &original).await, []);
    assert_eq!(look(&server), before);
    assert_eq!(restore(&login, &original).await, [], "it can be repeated");
    assert_eq!(look(&server), before);
}

/// The operator is killed after any of its messages, while it brings a run in force and while it puts back.
#[tokio::test]
async fn it_is_put_back_from_every_point_in_the_middle() {
    let (server, login) = borrowed(false);
    let before = look(&server);
    let allowed = permissions(&[AuditType::LogStatement]);
    let recording = setting(AuditType::LogStatement, AuditState::On);
    let mut points = [0, 0];
    for (kind, step) in [(0, 11), (1, 5)] {
        for messages in (0..).step_by(step) {
            let (original, _) = capture(&login, &allowed).await;
            prepare(&server, &login, 1).await.unwrap();
            if kind == 1 {
                ready(&login, &order(2, &recording)).await;
            }
            let line = CutLine::to(login.connection.port, messages).await;
            let mut cut = login.clone();
            cut.connection.port = line.port();
            let cut_off = if kind == 0 {
                Databases.establish(&cut, &order(2, &recording)).await.is_err()
            } else {
                Databases.restore(&cut, Some(&original), OWNER).await.is_err()
            };
            drop(line);
            assert_eq!(restore(&login, &original).await, [], "{kind} {messages}");
            let now = look(&server);
            let differs: Vec<_> = now.symmetric_difference(&before).collect();
            assert!(
                differs.is_empty(),
                "{kind}, after {messages} messages: {differs:#?}"
            );
            points[kind] = messages;
            if !cut_off {
                break;
            }
        }
    }
    assert!(points[0] > 40 && points[1] > 20, "{points:?}");
}

#[tokio::test]
async fn two_targets_never_have_it_at_once() {
    let (_server, login) = borrowed(false);
    let allowed = permissions(&[]);
    let answers = futures::future::join(
        Databases.capture(&login, &allowed, "a"),
        Databases.capture(&login, &allowed, "b"),
    )
    .await;
    let ours = |answer: &crate::access::Result<Captured>| matches!(answer, Ok(Captured::Ours { .. }));
    assert!(answers.0.is_ok() && answers.1.is_ok(), "{answers:?}");
    assert!(ours(&answers.0) ^ ours(&answers.1), "{answers:?}");
    let (owner, other) = if ours(&answers.0) { ("a", "b") } else { ("b", "a") };
    assert_eq!(Databases.restore(&login, None, other).await.unwrap(), []);
    assert!(!ours(&Databases.capture(&login, &allowed, other).await));
    assert_eq!(Databases.restore(&login, None, owner).await.unwrap(), []);
    assert!(ours(&Databases.capture(&login, &allowed, other).await));
}

/// Its library can neither be loaded nor unloaded by a statement.
#[tokio::test]
async fn pgaudit_is_used_where_the_owner_loaded_it_and_only_there() {
    let (server, login) = borrowed(true);
    let before = look(&server);
    assert_eq!(capture(&login, &permissions(&[])).await.1, [AuditType::PgAudit]);
    let (mut original, not_permitted) = capture(&login, &permissions(&[AuditType::PgAudit])).await;
    assert_eq!(not_permitted, []);
    let (on, off) = (
        setting(AuditType::PgAudit, AuditState::On),
        setting(AuditType::PgAudit, AuditState::InstalledOff),
    );
    let problems = Databases
        .check(&login, &[], &[on.clone(), off.clone(), none()])
        .await
        .unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("InstalledOff"), "{problems:?}");
    prepare(&server, &login, 1).await.unwrap();
    ready(&login, &order(2, &on)).await;
    ready(&login, &order(3, &off)).await;
    ready(&login, &order(4, &on)).await;
    original.retain = true;
    assert_eq!(restore(&login, &original).await, []);
    let extensions = server.sql_in(
        "sbtest",
        "SELECT count(*) FROM pg_extension WHERE extname = 'pgaudit'",
    );
    assert_eq!(
        extensions, "0",
        "data that is kept can be altered without the library"
    );
    server.sql("DROP DATABASE sbtest");
    assert_eq!(look(&server), before);

    let (_bare, login) = borrowed(false);
    let problems = Databases.check(&login, &[], &[on]).await.unwrap();
    assert!(
        problems.len() == 1 && problems[0].message.contains("shared_preload_libraries"),
        "{problems:?}"
    );
}

/// The statements of a refusal are all that a login without any right needs.
#[tokio::test]
async fn missing_privileges_are_named_and_suffice() {
    let (server, mut login) = borrowed(false);
    server.sql("CREATE ROLE bench LOGIN PASSWORD 'of the owner'");
    login.username = "bench".to_owned();
    login.password = "of the owner".to_owned();
    let allowed = permissions(&[AuditType::LogStatement]);
    let before = look(&server);
    let error = Databases.capture(&login, &allowed, OWNER).await.unwrap_err();
    let DatabaseError::Refused { message, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(look(&server), before, "nothing was done");
    let grants = message.split_once("privileges: ").unwrap().1.split("; ");
    for grant in grants {
        server.sql(grant);
    }
    let wanted = [parameters(&[("work_mem", "16MB"), ("random_page_cost", "3")])];
    let problems = Databases.check(&login, &wanted, &[]).await.unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    for problem in problems {
        let grant = problem
            .message
            .split_once(": ")
            .unwrap()
            .1
            .strip_suffix(" is missing")
            .unwrap();
        server.sql(grant);
    }
    assert_eq!(Databases.check(&login, &wanted, &[]).await.unwrap(), []);
    let before = look(&server);
    let (original, _) = capture(&login, &allowed).await;
    let run = EstablishOrder {
        parameters: wanted[0].clone(),
        ..order(2, &setting(AuditType::LogStatement, AuditState::On))
    };
    Databases.begin_dataset(&login, "prepare-1", 1).await.unwrap();
    server.sql_in(
        "sbtest",
        "SET ROLE bench; CREATE SCHEMA own; RESET ROLE; CREATE TABLE public.sbtest1 AS SELECT generate_series(1, 2000) AS id; \
         CREATE TABLE public.sbtest2 AS TABLE public.sbtest1; ALTER TABLE public.sbtest1 OWNER TO bench; ALTER TABLE \
         public.sbtest2 OWNER TO bench",
    );
    let hash = marker::dataset_hash(Engine::PostgreSQL, &workload(), ROWS);
    let tables = marker::table_names(&workload());
    Databases
        .finish_dataset(&login, ("prepare-1", 1), &hash, &tables, ROWS)
        .await
        .unwrap();
    ready(&login, &run).await;
    assert_eq!(restore(&login, &original).await, []);
    assert_eq!(look(&server), before);
}

#[tokio::test]
async fn what_hides_a_setting_or_would_change_with_ours_is_said_before_anything_is_done() {
    let (server, login) = borrowed(false);
    let allowed = permissions(&[AuditType::LogStatement]);
    server.sql("ALTER ROLE benchmark SET work_mem = '5MB'; ALTER ROLE ALL SET log_statement = 'ddl'");
    let wanted = [parameters(&[("work_mem", "16MB")])];
    let problems = Databases.check(&login, &wanted, &[]).await.unwrap();
    assert!(
        problems.len() == 1
            && problems[0]
                .message
                .contains("ALTER ROLE benchmark RESET \"work_mem\""),
        "{problems:?}"
    );
    let refused = async |word: &str| {
        let error = Databases
            .capture(&login, &allowed, OWNER)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{word}: {error}");
    };
    refused("ALTER ROLE ALL RESET \"log_statement\"").await;
    server.sql("ALTER ROLE ALL RESET log_statement");
    capture(&login, &allowed).await;
    // Somebody edits the file and does not say so.
    let file = &server.layout().configuration;
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, format!("{text}\nvacuum_cost_limit = 333\n")).unwrap();
    refused("vacuum_cost_limit is 200").await;
    std::fs::write(file, format!("{text}\nvacuum_cost_limit = much\n")).unwrap();
    refused("correct it").await;
    std::fs::write(file, format!("{text}\nmax_connections = 77\n")).unwrap();
    server.sql("SELECT pg_reload_conf()");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    capture(&login, &allowed).await;
    let restarts = Permissions {
        restart: true,
        ..allowed.clone()
    };
    let error = Databases.capture(&login, &restarts, OWNER).await.unwrap_err();
    assert!(
        error.to_string().contains("max_connections waits for a restart"),
        "{error}"
    );
    std::fs::write(file, format!("{text}\nallow_alter_system = off\n")).unwrap();
    server.sql("SELECT pg_reload_conf()");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    refused("allow_alter_system").await;
}

#[tokio::test]
async fn what_cannot_be_put_back_comes_with_its_statement() {
    let (server, login) = borrowed(false);
    let (original, _) = capture(&login, &permissions(&[])).await;
    prepare(&server, &login, 1).await.unwrap();
    ready(&login, &order(2, &none())).await;
    let file = &server.layout().configuration;
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, format!("{text}\nallow_alter_system = off\n")).unwrap();
    server.sql("SELECT pg_reload_conf()");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let left = restore(&login, &original).await;
    assert_eq!(left.len(), 4, "{left:?}");
    let statements: Vec<&str> = left.iter().map(|left| left.statement.as_str()).collect();
    assert!(
        statements.contains(&"ALTER SYSTEM SET \"work_mem\" = '7MB'; SELECT pg_reload_conf()"),
        "{statements:?}"
    );
    // The owner takes it on from there.
    std::fs::write(file, text).unwrap();
    server.sql("SELECT pg_reload_conf()");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    for statement in statements.iter().flat_map(|all| all.split("; ")) {
        server.sql(statement);
    }
    assert_eq!(restore(&login, &original).await, []);

    let error = Databases.restart(&login).await.unwrap_err().to_string();
    assert!(error.contains("Workload, Job or Http"), "{error}");
}
