//! What is told when there is no server to measure. Runs against a real one are in `tests/`.

use crds::runner::{Connection, RunOrder, RunOutcome};
use crds::workload::{Sysbench, Workload, WorkloadType};

use super::*;
use crate::parse::{self, Capture, Command};

fn order(port: u16) -> RunOrder {
    RunOrder {
        connection: Connection {
            host: "127.0.0.1".to_owned(),
            port,
            schema: "sbtest".to_owned(),
            ..Connection::default()
        },
        run_uid: "uid".to_owned(),
        epoch: 3,
        workload: Workload {
            sysbench: Some(Sysbench {
                script: "oltp_read_only".to_owned(),
                tables: 1,
                ..Sysbench::default()
            }),
            ..Workload::default()
        },
        threads: 1,
        duration_seconds: 1,
        report_interval_seconds: 1,
        ..RunOrder::default()
    }
}

async fn told_of(order: &RunOrder, stop: &Stop) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let login = Login {
        connection: order.connection.clone(),
        username: "bench".to_owned(),
        password: "hush".to_owned(),
        certificate_authority: None,
        agent_token: None,
    };
    run(
        order,
        None,
        &login,
        &Site {
            login: &login,
            scratch: folder.path(),
            scripts: folder.path(),
            cpus: 1,
        },
        stop,
    )
    .await
}

#[tokio::test]
async fn an_order_that_can_not_be_carried_out_is_told_before_anything_is_asked() {
    let mut order = order(1);
    order.workload.type_ = WorkloadType::Pgbench;
    let told = told_of(&order, &Stop::on(std::future::pending())).await;
    assert_eq!(
        (
            told.report.outcome,
            told.report.run_uid.as_str(),
            told.report.epoch
        ),
        (RunOutcome::Failed, "uid", 3)
    );
    assert!(told.report.message.contains("pgbench"), "{}", told.report.message);
}

#[tokio::test]
async fn told_to_stop_while_waiting_for_the_server_it_stops() {
    // A port that nobody listens on: bound and closed again.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let start = Instant::now();
    let told = told_of(
        &order(port),
        &Stop::on(tokio::time::sleep(Duration::from_millis(300))),
    )
    .await;
    assert_eq!(told.report.outcome, RunOutcome::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!told.report.message.contains("hush"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_told() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (order, stop) = (order(port), Stop::on(std::future::pending()));
    let told = tokio::time::timeout(Duration::from_hours(1), told_of(&order, &stop));
    let told = told.await.unwrap();
    assert_eq!(told.report.outcome, RunOutcome::DatabaseFailed);
    assert!(
        told.report.message.contains(&port.to_string()),
        "{}",
        told.report.message
    );
}

#[test]
fn a_window_that_ended_early_is_told() {
    let stdout = include_str!("../../fixtures/sysbench/warmup_checkpoint_histogram_ro.txt");
    let result = (parse::TOOLS[0].parse)(&Capture {
        stdout,
        stderr: "",
        exit_code: 0,
        command: Command::Run,
    });
    let order = |seconds| RunOrder {
        duration_seconds: seconds,
        ..order(1)
    };
    assert_eq!(short_window(&result, &order(4)), None);
    assert!(
        short_window(&result, &order(8))
            .unwrap()
            .contains("4003 ms of 8000 ms")
    );
}
