//! Meetings over real connections on this machine.

use crds::together::Meeting;

use super::other::Started;
use super::*;

async fn first(count: i32) -> (First, Meeting) {
    let mut meeting = Meeting {
        count,
        host: "localhost".to_owned(),
        port: 0,
    };
    let first = First::open(&meeting, "run", 3).await.unwrap();
    meeting.port = first.port();
    (first, meeting)
}

async fn began(meeting: Meeting, index: i32) -> Result<Started, String> {
    Other::come(&meeting, "run", 3, index).await?.started().await
}

#[tokio::test]
async fn all_begin_when_all_are_there_and_the_first_hears_their_ends() {
    let (first, meeting) = first(3).await;
    let early = tokio::spawn(began(meeting.clone(), 2));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!early.is_finished(), "one is missing");
    let late = Other::come(&meeting, "run", 3, 1).await.unwrap();
    assert!(late.uncertainty() > Duration::ZERO && late.uncertainty() < Duration::from_millis(100));
    let late = tokio::spawn(late.started());
    first.gathered().await.unwrap();
    assert!(
        !early.is_finished() && !late.is_finished(),
        "nobody said to begin"
    );
    first.go();
    let (early, late) = (early.await.unwrap().unwrap(), late.await.unwrap().unwrap());
    early.ended(true).await.unwrap();
    assert_eq!(first.lost(), None);
    late.ended(true).await.unwrap();
    first.ended().await.unwrap();
}

#[tokio::test]
async fn strangers_and_pods_of_another_attempt_are_not_counted() {
    let (first, meeting) = first(2).await;
    for (run, epoch, index) in [("other", 3, 1), ("run", 2, 1), ("run", 3, 2), ("run", 3, 0)] {
        assert!(Other::come(&meeting, run, epoch, index).await.is_err());
    }
    let mut stranger = tokio::net::TcpStream::connect(("localhost", meeting.port))
        .await
        .unwrap();
    stranger.write_all(&vec![b'x'; 100_000]).await.ok();
    let ours = tokio::spawn(began(meeting, 1));
    first.gathered().await.unwrap();
    first.go();
    ours.await.unwrap().unwrap();
}

#[tokio::test]
async fn one_that_is_lost_is_told_before_the_start_and_under_load() {
    let (waiting, meeting) = first(3).await;
    let gone = Other::come(&meeting, "run", 3, 1).await.unwrap();
    drop(gone);
    let told = waiting.gathered().await.unwrap_err();
    assert!(told.starts_with("load generator 1 was lost"), "{told}");

    let (measuring, meeting) = first(2).await;
    let other = tokio::spawn(began(meeting, 1));
    measuring.gathered().await.unwrap();
    measuring.go();
    drop(other.await.unwrap().unwrap());
    measuring.broken().await;
    assert!(measuring.lost().unwrap().contains("load generator 1"));
    assert!(measuring.ended().await.is_err());

    let (measuring, meeting) = first(2).await;
    let other = tokio::spawn(began(meeting, 1));
    measuring.gathered().await.unwrap();
    measuring.go();
    other.await.unwrap().unwrap().ended(false).await.unwrap();
    measuring.broken().await;
    assert!(measuring.lost().unwrap().contains("its load failed"));
}

#[tokio::test]
async fn the_others_notice_when_the_first_goes() {
    let (waiting, meeting) = first(3).await;
    let other = tokio::spawn(began(meeting, 1));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(waiting);
    assert!(other.await.unwrap().unwrap_err().contains("called it off"));

    let (measuring, meeting) = first(2).await;
    let other = tokio::spawn(began(meeting, 1));
    measuring.gathered().await.unwrap();
    measuring.go();
    let started = other.await.unwrap().unwrap();
    assert!(!started.is_broken());
    drop(measuring);
    started.broken().await;
    assert!(started.is_broken());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let (first, mut meeting) = first(2).await;
    let told = first.gathered().await.unwrap_err();
    assert!(told.contains("0 of 1") && told.contains("240 s"), "{told}");
    drop(first);
    // Nobody listens there any more.
    meeting.host = "127.0.0.1".to_owned();
    let told = Other::come(&meeting, "run", 3, 1).await.unwrap_err();
    assert!(told.contains(&format!("127.0.0.1:{}", meeting.port)), "{told}");
}
