//! Two operators at one server: what is proved for a run is what its load meets, whoever else believes to lead.

use std::time::{Duration, Instant};

use crds::audit::{AuditState, AuditType};
use tokio::task::JoinHandle;

use super::establish::{prepared, ready};
use super::{order, parameters, setting};
use crate::access::Result;
use crate::engine::mysql_family::Session;
use crate::exclusive::{self, Right};
use crate::server::Server as _;
use crate::testing::TestServer;
use crate::{Claim, DatabaseAccess as _, DatabaseError, Databases, EstablishOrder, Established, Login};

/// An order that stays in the middle of its work for so long.
fn slow(epoch: i64, seconds: u64, parameter: &str) -> EstablishOrder {
    let mut order = order(epoch, &setting(AuditType::None, AuditState::On));
    order.settle.fixed_sleep = Some(Duration::from_secs(seconds).into());
    order.parameters = parameters(&[("max_prepared_stmt_count", parameter)]);
    order
}

/// Begins, and comes back when settings were changed and the proof was not.
async fn begun(
    server: &TestServer,
    login: &Login,
    order: &EstablishOrder,
) -> JoinHandle<Result<Established>> {
    let (login, order) = (login.clone(), order.clone());
    let wanted = format!(
        "{} 0 {}",
        order.run_uid, order.parameters["max_prepared_stmt_count"]
    );
    let task = tokio::spawn(async move { Databases.establish(&login, &order).await });
    let limit = Instant::now() + Duration::from_secs(30);
    while middle(server) != wanted {
        assert!(
            !task.is_finished() && Instant::now() < limit,
            "{}",
            middle(server)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    task
}

/// Holder, progress and the setting in force.
fn middle(server: &TestServer) -> String {
    server.sql(
        "SELECT CONCAT_WS(' ', holder, started, @@max_prepared_stmt_count) FROM benchmark_campaign.fence",
    )
}

async fn claim(login: &Login, epoch: i64) -> Claim {
    let run = format!("run-{epoch}");
    Databases.claim(login, &run, epoch).await.unwrap()
}

#[tokio::test]
async fn a_newer_run_ends_an_older_one_that_is_still_at_the_server() {
    let none = setting(AuditType::None, AuditState::On);
    let (server, _agent, login) = prepared(&none, &parameters(&[])).await;
    let older = begun(&server, &login, &slow(2, 600, "20002")).await;
    // Its runner, of an earlier proof perhaps, finds nothing proved.
    assert_eq!(claim(&login, 2).await, Claim::NotProved);

    let start = Instant::now();
    ready(&login, &slow(3, 0, "20003")).await;
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let ended = older.await.unwrap();
    assert!(
        matches!(&ended, Err(DatabaseError::Unreachable { .. })),
        "its session is gone, which may pass: {ended:?}"
    );
    // It comes back and changes nothing: what the newer one proved is what its load meets.
    let again = Databases.establish(&login, &slow(2, 0, "20002")).await.unwrap();
    assert!(
        matches!(&again, Established::Fenced { holder } if holder == "run-3"),
        "{again:?}"
    );
    assert_eq!(middle(&server), "run-3 1 20003");
    assert_eq!(
        claim(&login, 2).await,
        Claim::Fenced {
            holder: "run-3".to_owned()
        }
    );
    assert_eq!(claim(&login, 3).await, Claim::Claimed);
    assert_eq!(middle(&server), "run-3 2 20003");
}

#[tokio::test]
async fn an_older_run_does_not_end_a_newer_one() {
    let none = setting(AuditType::None, AuditState::On);
    let (server, _agent, login) = prepared(&none, &parameters(&[])).await;
    let newer = begun(&server, &login, &slow(3, 2, "20003")).await;
    let older = Databases.establish(&login, &slow(2, 0, "20002")).await.unwrap();
    assert!(
        matches!(&older, Established::Fenced { holder } if holder == "run-3"),
        "{older:?}"
    );
    let prepare = Databases.begin_dataset(&login, "run-2", 2).await.unwrap();
    assert_eq!(
        prepare,
        Claim::Fenced {
            holder: "run-3".to_owned()
        }
    );
    assert!(matches!(newer.await.unwrap(), Ok(Established::Ready(_))));
    assert_eq!(middle(&server), "run-3 1 20003");
}

#[tokio::test]
async fn one_run_is_established_by_one_operator_at_a_time_and_not_after_its_start() {
    let none = setting(AuditType::None, AuditState::On);
    let (server, _agent, login) = prepared(&none, &parameters(&[])).await;
    let first = begun(&server, &login, &slow(2, 2, "20002")).await;
    let second = Databases
        .establish(&login, &slow(2, 0, "20002"))
        .await
        .unwrap_err();
    assert!(
        matches!(&second, DatabaseError::Busy(said) if said.contains("another operator is establishing this run")),
        "{second}"
    );
    // A runner waits for a moment: the same run is being proved once more.
    assert_eq!(claim(&login, 2).await, Claim::Claimed);
    assert!(matches!(first.await.unwrap(), Ok(Established::Ready(_))));
    // From its start on nothing is changed any more, also by an operator that knows of no start.
    let late = Databases.establish(&login, &slow(2, 0, "19999")).await.unwrap();
    assert!(matches!(late, Established::Started), "{late:?}");
    assert_eq!(middle(&server), "run-2 2 20002");
}

#[tokio::test]
async fn what_was_left_in_the_middle_is_not_measured_and_heals_by_repeating() {
    let none = setting(AuditType::None, AuditState::On);
    let (server, _agent, login) = prepared(&none, &parameters(&[])).await;
    // Proved once, and then in the middle of it once more, when the operator goes.
    ready(&login, &slow(2, 0, "20001")).await;
    assert_eq!(middle(&server), "run-2 1 20001");
    let crashed = begun(&server, &login, &slow(2, 600, "20002")).await;
    crashed.abort();
    assert!(crashed.await.unwrap_err().is_cancelled());
    assert_eq!(claim(&login, 2).await, Claim::NotProved);
    assert_eq!(middle(&server), "run-2 0 20002");
    let limit = Instant::now() + Duration::from_secs(10);
    let healed = loop {
        match Databases.establish(&login, &slow(2, 0, "20002")).await {
            // The server has not noticed yet that the session has gone.
            Err(DatabaseError::Busy(_)) if Instant::now() < limit => {}
            answer => break answer,
        }
    };
    assert!(matches!(healed, Ok(Established::Ready(_))), "{healed:?}");
    assert_eq!(middle(&server), "run-2 1 20002");
    assert_eq!(claim(&login, 2).await, Claim::Claimed);
}

#[tokio::test]
async fn a_scan_that_an_earlier_holder_left_behind_is_ended() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut scanning = Session::open(&login).await.unwrap();
    assert!(scanning.lock(exclusive::SCANNING, Duration::ZERO).await.unwrap());
    let scan = tokio::spawn(async move { scanning.run("scan", "DO SLEEP(9)").await });
    let mut session = Session::open(&login).await.unwrap();
    let start = Instant::now();
    let right = exclusive::acquire(&mut session, "a", 1, Duration::ZERO).await;
    assert_eq!(right.unwrap(), Right::Granted);
    let ended = scan.await.unwrap();
    assert!(
        matches!(ended, Err(DatabaseError::Unreachable { .. })),
        "{ended:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    session.close().await;
}

#[tokio::test]
async fn a_session_that_says_nothing_loses_the_lock_within_a_minute() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut session = Session::open(&login).await.unwrap();
    let limit: Vec<i64> = session
        .rows("look", "SELECT @@SESSION.wait_timeout")
        .await
        .unwrap();
    assert_eq!(limit, [60]);
    session.close().await;
}
