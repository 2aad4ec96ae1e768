use super::*;
use crate::testing::TestAgent;

#[tokio::test]
async fn the_agent_counts_finds_and_removes() {
    let volume = tempfile::tempdir().unwrap();
    std::fs::create_dir(volume.path().join("log")).unwrap();
    let log = volume.path().join("log/server_audit.log");
    let sample = include_str!("../../fixtures/audit_server_audit_sample.log");
    std::fs::write(&log, sample).unwrap();
    let server = TestAgent::start(&volume.path().display().to_string()).await;
    let agent = Agent::new(server.base(), server.token());

    let all = agent
        .audit(0, "log/server_audit.log", Some("sbtest1"))
        .await
        .unwrap();
    assert_eq!(all.size, sample.len() as i64);
    assert_eq!(all.canary_found, Some(true));
    assert!(all.events["QUERY"] > 0);
    let end = agent
        .audit(all.size, "log/server_audit.log", Some("no such word & more"))
        .await
        .unwrap();
    assert_eq!((end.bytes, end.canary_found), (0, Some(false)));
    let cut = agent
        .audit(all.size + 1, "log/server_audit.log", None)
        .await
        .unwrap();
    assert!(cut.truncated && cut.events == all.events);
    let size = agent.audit(END, "log/server_audit.log", None).await.unwrap();
    assert_eq!((size.size, size.bytes, size.truncated), (all.size, 0, false));
    assert_eq!(agent.audit(0, "log/absent.log", None).await.unwrap().size, 0);
    assert!(agent.usage().await.unwrap().kernel.is_some());
    assert!(agent.echo().await.unwrap() < Duration::from_secs(2));
    agent.rotate().await.unwrap();
    assert!(!log.exists());
}

#[tokio::test]
async fn refusals_and_silence_are_told_without_the_token() {
    let server = TestAgent::start("/nonexistent").await;
    let refused = Agent::new(server.base(), "secret-of-mine")
        .usage()
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("/v1/usage: status 401"), "{refused}");
    let nobody = format!("http://127.0.0.1:{}", crate::testing::free_port());
    let unreachable = Agent::new(&nobody, "secret-of-mine")
        .usage()
        .await
        .unwrap_err()
        .to_string();
    assert!(unreachable.contains("refused"), "{unreachable}");
    for text in [
        refused,
        unreachable,
        format!("{:?}", Agent::new(&nobody, "secret-of-mine")),
    ] {
        assert!(!text.contains("secret-of-mine"), "{text}");
    }
}
