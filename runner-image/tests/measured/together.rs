//! Several runners apply one load to one server: they begin together, one claims, and what they tell adds up to what the
//! server saw.

use std::time::Duration;

use crds::audit::AuditType;
use crds::parameter::ParameterValue;
use crds::runner::{RunOrder, RunOutcome, RunReport};
use crds::target::Engine;
use crds::together::Meeting;
use crds::workload::{Sysbench, Workload};
use database::testing::free_port;
use runner::stop::Stop;

use super::bench::Bench;

const ROWS: i64 = 2_000;

async fn bench() -> Bench {
    let sysbench = Sysbench {
        script: "oltp_read_only".to_owned(),
        tables: 1,
        options: [("rand-type".to_owned(), ParameterValue::from("uniform"))].into(),
        ..Sysbench::default()
    };
    let workload = Workload {
        sysbench: Some(sysbench),
        ..Workload::default()
    };
    let bench = Bench::on(Engine::MariaDB, AuditType::ServerAudit, workload, ROWS).await;
    let report = bench.prepare(&bench.prepare_order(1)).await;
    assert_eq!(report.outcome, RunOutcome::Completed, "{}", report.message);
    bench
}

fn together(order: RunOrder, count: i32) -> RunOrder {
    RunOrder {
        threads: 3,
        meeting: Some(Meeting {
            count,
            host: "127.0.0.1".to_owned(),
            port: free_port(),
        }),
        ..order
    }
}

fn never() -> Stop {
    Stop::on(std::future::pending())
}

#[tokio::test]
async fn what_each_tells_adds_up_to_what_the_server_saw() {
    let bench = bench().await;
    let order = together(bench.proved(2, AuditType::ServerAudit).await, 2);
    let stop = never();
    let (first, other) = tokio::join!(bench.part(&order, 0, &stop), bench.part(&order, 1, &stop));
    for (index, report) in [(0, &first), (1, &other)] {
        assert_eq!(
            (report.outcome, report.message.as_str()),
            (RunOutcome::Completed, "")
        );
        assert_eq!((report.run_uid.as_str(), report.epoch), ("run-2", 2));
        let part = report.part.as_ref().unwrap();
        assert_eq!(
            (part.index, part.start_uncertainty_micros.is_some()),
            (index, index == 1)
        );
        let result = report.result.as_ref().unwrap();
        let counted: u64 = part.histogram.as_ref().unwrap().counts().values().sum();
        // sysbench counts a transaction in its histogram a moment before or after it counts it in its report.
        assert!(
            i64::try_from(counted)
                .unwrap()
                .abs_diff(result.transactions.unwrap())
                <= 3
        );
        assert!(result.round_trip_nanos.unwrap() > 0);
    }
    let lengths = [&first, &other].map(|report| report.part.as_ref().unwrap().load_millis.unwrap());
    assert!(lengths[0].abs_diff(lengths[1]) < 500, "{lengths:?}");
    // The first one's share of the audit log is all of it: both together sent what it holds.
    let seen = first.observed.as_ref().unwrap();
    let sent = |report: &RunReport| report.observed.as_ref().unwrap().queries_sent.unwrap();
    let found = seen.audit_events["QUERY"];
    let share = found as f64 / (sent(&first) + sent(&other)) as f64;
    assert!((0.99..1.01).contains(&share), "{share}");
    assert_eq!((seen.same_boot, seen.rows_written), (Some(true), Some(0)));
    assert!(seen.server_cpu_millis.is_some_and(|millis| millis > 0));
    let own = other.observed.as_ref().unwrap();
    assert_eq!((own.same_boot, own.server_cpu_millis), (None, None));

    // A Job that starts twice measures once, with several pods too. (Elsewhere: the first port may not be free yet.)
    let order = together(order, 2);
    let (again, left) = tokio::join!(bench.part(&order, 0, &stop), bench.part(&order, 1, &stop));
    assert_eq!(again.outcome, RunOutcome::AlreadyStarted);
    assert_eq!((left.outcome, left.result), (RunOutcome::PartLost, None));
}

#[tokio::test]
async fn one_that_is_lost_ends_the_load_of_all() {
    let bench = bench().await;
    let long = |order: RunOrder| RunOrder {
        duration_seconds: 600,
        ..order
    };
    // Told to stop under load, as a pod that is evicted.
    let order = long(together(bench.proved(2, AuditType::ServerAudit).await, 2));
    let (stop, evicted) = (never(), Stop::on(tokio::time::sleep(Duration::from_secs(2))));
    let (first, other) = tokio::join!(bench.part(&order, 0, &stop), bench.part(&order, 1, &evicted));
    assert_eq!((first.outcome, first.result), (RunOutcome::PartLost, None));
    assert!(first.message.contains("load generator 1"), "{}", first.message);
    assert_eq!(other.outcome, RunOutcome::Interrupted);

    let order = long(together(bench.proved(3, AuditType::ServerAudit).await, 2));
    let evicted = Stop::on(tokio::time::sleep(Duration::from_secs(2)));
    let (first, other) = tokio::join!(bench.part(&order, 0, &evicted), bench.part(&order, 1, &stop));
    assert_eq!(first.outcome, RunOutcome::Interrupted);
    assert_eq!((other.outcome, other.result), (RunOutcome::PartLost, None));

    // One whose index nobody said measures nothing.
    let told = bench.run(&order, &stop).await.report;
    assert_eq!(told.outcome, RunOutcome::Failed);
}
