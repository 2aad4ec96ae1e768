//! The fence row and the dataset's marker in a real server.

use super::{ROWS, TABLES};
use crate::engine::mysql_family::Session;
use crate::marker::{self, Progress};
use crate::server::Server as _;
use crate::testing::TestServer;
use crate::{Claim, DatabaseError, Databases};
use crds::parameter::Parameters;

fn fenced(holder: &str) -> Claim {
    Claim::Fenced {
        holder: holder.to_owned(),
    }
}

#[tokio::test]
async fn a_job_that_starts_twice_measures_once() {
    let server = TestServer::start();
    let login = server.login(None);
    let mut session = Session::open(&login).await.unwrap();
    let identity = session.read_fence().await.unwrap().unwrap().server_identity;

    assert_eq!(Databases.claim(&login, "a", 5).await.unwrap(), fenced(""));
    let fence = session.take_fence("a", 5).await.unwrap();
    assert_eq!(
        (fence.holder.as_str(), fence.epoch, fence.progress),
        ("a", 5, Progress::Establishing)
    );
    // Nothing is proved: nothing is measured.
    assert_eq!(Databases.claim(&login, "a", 5).await.unwrap(), Claim::NotProved);
    assert!(!marker::write_proved(&mut session, "a", 4).await.unwrap());
    assert!(!marker::write_proved(&mut session, "b", 5).await.unwrap());
    assert!(marker::write_proved(&mut session, "a", 5).await.unwrap());
    assert!(!marker::write_proved(&mut session, "a", 5).await.unwrap());
    // The operator repeats its step after a crash: what was proved counts no more.
    let fence = session.take_fence("a", 5).await.unwrap();
    assert_eq!(fence.progress, Progress::Establishing);
    assert_eq!(Databases.claim(&login, "a", 5).await.unwrap(), Claim::NotProved);
    assert!(marker::write_proved(&mut session, "a", 5).await.unwrap());

    let starts = futures::future::join_all((0..8).map(|_| Databases.claim(&login, "a", 5))).await;
    let claimed = starts.iter().filter(|c| matches!(c, Ok(Claim::Claimed))).count();
    assert_eq!(claimed, 1, "{starts:?}");
    assert_eq!(
        Databases.claim(&login, "a", 5).await.unwrap(),
        Claim::AlreadyStarted
    );
    // Now it is too late to repeat it: the start is not undone.
    let fence = session.take_fence("a", 5).await.unwrap();
    assert_eq!(fence.progress, Progress::Started);
    assert!(!marker::write_proved(&mut session, "a", 5).await.unwrap());

    // Somebody who is too late changes nothing.
    for (run, epoch) in [("b", 5), ("b", 4), ("a", 4)] {
        let fence = session.take_fence(run, epoch).await.unwrap();
        assert_eq!(
            (fence.holder.as_str(), fence.epoch, fence.progress),
            ("a", 5, Progress::Started)
        );
    }
    assert_eq!(Databases.claim(&login, "b", 5).await.unwrap(), fenced("a"));
    assert_eq!(Databases.claim(&login, "a", 4).await.unwrap(), fenced("a"));

    // The next run takes over; the late start of the one before finds itself fenced.
    let fence = session.take_fence("b", 6).await.unwrap();
    assert_eq!(
        (fence.holder.as_str(), fence.progress),
        ("b", Progress::Establishing)
    );
    assert_eq!(Databases.claim(&login, "a", 5).await.unwrap(), fenced("b"));
    assert!(marker::write_proved(&mut session, "b", 6).await.unwrap());
    assert_eq!(Databases.claim(&login, "b", 6).await.unwrap(), Claim::Claimed);
    assert_eq!(fence.server_identity, identity);
    session.close().await;
}

#[tokio::test]
async fn a_proof_does_not_outlive_its_boot_and_a_start_does() {
    let mut server = TestServer::start();
    let login = server.login(None);
    let state = "SELECT CONCAT_WS(' ', holder, epoch, started) FROM benchmark_campaign.fence";
    server.sql("UPDATE benchmark_campaign.fence SET holder = 'a', epoch = 5, started = 1");
    server.restart(&Parameters::new(), None);
    assert_eq!(server.sql(state), "a 5 0");
    assert_eq!(Databases.claim(&login, "a", 5).await.unwrap(), Claim::NotProved);
    server.sql("UPDATE benchmark_campaign.fence SET started = 2");
    server.restart(&Parameters::new(), None);
    assert_eq!(server.sql(state), "a 5 2");
    assert_eq!(
        Databases.claim(&login, "a", 5).await.unwrap(),
        Claim::AlreadyStarted
    );
    // The data of a run that measures is left alone, whoever asks in its name.
    server.sql("CREATE DATABASE IF NOT EXISTS sbtest; CREATE TABLE sbtest.kept (id INT)");
    assert_eq!(
        Databases.begin_dataset(&login, "a", 5).await.unwrap(),
        Claim::AlreadyStarted
    );
    assert_eq!(server.sql("SELECT COUNT(*) FROM sbtest.kept"), "0");
}

#[tokio::test]
async fn data_is_known_from_its_end_until_it_is_made_again() {
    let server = TestServer::start();
    let login = server.login(None);
    assert_eq!(
        Databases.begin_dataset(&login, "a", 2).await.unwrap(),
        Claim::Claimed
    );
    let options = [format!("--tables={TABLES}"), format!("--table-size={ROWS}")];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    server.sysbench("oltp_read_only", "prepare", &options);
    let tables = marker::table_names(&super::workload());
    assert_eq!(Databases.row_counts(&login, &tables).await.unwrap(), [ROWS, ROWS]);
    let missing = Databases
        .row_counts(&login, &["sbtest3".to_owned()])
        .await
        .unwrap_err();
    assert!(
        matches!(&missing, DatabaseError::Statement { message, .. } if message.contains("sbtest3")),
        "{missing}"
    );

    let made = Databases
        .finish_dataset(&login, ("a", 2), "hash", &tables, ROWS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((made.tables, made.rows_per_table), (2, ROWS));
    assert!(made.bytes > 2 * ROWS * 180, "{made:?}");
    let mut session = Session::open(&login).await.unwrap();
    assert_eq!(
        session.read_dataset(&login.connection.schema).await.unwrap(),
        Some(made)
    );
    assert_eq!(session.read_dataset("elsewhere").await.unwrap(), None);

    // A stale prepare touches nothing; the next one begins with an empty schema and no marker.
    assert_eq!(
        Databases.begin_dataset(&login, "old", 1).await.unwrap(),
        fenced("a")
    );
    assert_eq!(Databases.row_counts(&login, &tables).await.unwrap().len(), 2);
    assert_eq!(
        Databases.begin_dataset(&login, "b", 3).await.unwrap(),
        Claim::Claimed
    );
    assert_eq!(
        session.read_dataset(&login.connection.schema).await.unwrap(),
        None
    );
    assert_eq!(
        server.sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'sbtest'"),
        "0"
    );
    session.close().await;
    // Whoever made the data before comes too late to say that it is there.
    let late = Databases
        .finish_dataset(&login, ("a", 2), "hash", &[], ROWS)
        .await;
    assert_eq!(late.unwrap(), None);
    assert_eq!(server.sql("SELECT COUNT(*) FROM benchmark_campaign.dataset"), "0");

    let mut wrong = login.clone();
    wrong.connection.schema = "mysql".to_owned();
    assert!(matches!(
        Databases.begin_dataset(&wrong, "b", 3).await,
        Err(DatabaseError::Unsupported(_))
    ));
}
