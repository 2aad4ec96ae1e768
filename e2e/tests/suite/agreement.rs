//! The operator's figure against the same command typed by hand: interleaved pairs on one database, and a statistic
//! that would notice if the operator halved its figure.

use crate::bench::{Bench, bench, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-agreement";
/// Seconds of warm-up and of the window.
const WARM_UP: u32 = 1;
const SECONDS: u32 = 3;
/// Enough to keep the database's core busy most of the time.
const THREADS: u32 = 8;
/// Pairs at least, and at most: on a shared machine windows of one and the same load were seen to differ by a tenth and
/// more (standard deviation), so that few pairs leave an interval too wide to tell anything. Measuring goes on until it is
/// narrow enough, wherever it lies.
const LEAST: usize = 12;
const MOST: usize = 48;
/// Two-sided 95 % point of Student's t with 11 degrees of freedom (any table); with more pairs a little too large, which
/// makes the interval wider than it need be.
const T_11: f64 = 2.200_985;
/// Half-width, in logarithms, below which it is narrow: 10 %.
const NARROW: f64 = 0.095_310;
/// Runs that others disturbed are made anew, so often.
const TRIES: usize = 4;

/// The 95 % interval of the mean log-ratio of pairs (operator, by hand).
fn interval(pairs: &[(f64, f64)]) -> (f64, f64) {
    assert!(pairs.len() >= LEAST, "the t value is for so many pairs");
    let ratios: Vec<f64> = pairs
        .iter()
        .map(|(operator, hand)| (operator / hand).ln())
        .collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = T_11 * (variance / n).sqrt();
    (mean - half, mean + half)
}

fn narrow(pairs: &[(f64, f64)]) -> bool {
    let (low, high) = interval(pairs);
    (high - low) / 2.0 < NARROW
}

/// The two agree if the interval contains 0 and is narrower than 10 % either way.
fn agree(pairs: &[(f64, f64)]) -> Result<(), String> {
    let (low, high) = interval(pairs);
    if low <= 0.0 && high >= 0.0 && narrow(pairs) {
        return Ok(());
    }
    Err(format!(
        "the 95 % interval of the log-ratio is {low:.4} to {high:.4}; pairs (operator, by hand): {pairs:?}"
    ))
}

#[test]
fn the_statistic_notices_halved_and_noisy_figures() {
    let alternating = |one: f64, other: f64| -> Vec<(f64, f64)> {
        (0..LEAST)
            .map(|pair| if pair % 2 == 0 { (one, other) } else { (other, one) })
            .collect()
    };
    let close = alternating(1000.0, 1010.0);
    agree(&close).unwrap();
    let halved: Vec<_> = close
        .iter()
        .map(|(operator, hand)| (operator / 2.0, *hand))
        .collect();
    assert!(agree(&halved).is_err());
    let noisy = alternating(1000.0, 600.0);
    assert!(agree(&noisy).is_err(), "too noisy to tell is not agreement");
}

#[test]
fn the_operators_figure_is_that_of_the_same_command_by_hand() {
    let (bench, _alone) = bench();
    bench.clear();
    bench.apply(&manifest::target(bench, NAMESPACE, "server"));
    bench.apply(&client(bench));
    bench.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "bt/server",
        "pod/client",
        "-n",
        NAMESPACE,
        "--timeout=120s",
    ]);
    // The first run makes the data and warms the server; it is not compared.
    by_operator(bench, "warm-up");
    let mut measured = Vec::new();
    for round in 1..=2 {
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        for pair in 0..MOST {
            if pairs.len() >= LEAST && narrow(&pairs) {
                break;
            }
            let name = format!("pair-{round}-{pair}");
            pairs.push(if pair % 2 == 0 {
                let operator = by_operator(bench, &name);
                (operator, by_hand(bench))
            } else {
                let hand = by_hand(bench);
                (by_operator(bench, &name), hand)
            });
        }
        match agree(&pairs) {
            Ok(()) => {
                let (low, high) = interval(&pairs);
                println!(
                    "operator / by hand, transactions per second: 95 % interval of the log-ratio {low:.4} to {high:.4}"
                );
                let halved: Vec<_> = pairs
                    .iter()
                    .map(|(operator, hand)| (operator / 2.0, *hand))
                    .collect();
                assert!(agree(&halved).is_err(), "a halved figure must be caught");
                return;
            }
            Err(said) => measured.push(said),
        }
    }
    panic!("twice no agreement:\n{}", measured.join("\n"));
}

/// A pod that waits for commands, with the resources and rights that a run's pod has.
fn client(bench: &Bench) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "client", "namespace": NAMESPACE},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "client",
                "image": bench.runner_image(),
                "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "3600"],
                "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "login", "mountPath": "/login", "readOnly": true}],
            }],
            "volumes": [{"name": "login", "secret": {"secretName": "server", "items": [
                {"key": "username", "path": "username"}, {"key": "password", "path": "password"}]}}],
        },
    })
}

/// Transactions per second that the operator reports of a valid run that a person made.
fn by_operator(bench: &Bench, name: &str) -> f64 {
    let mut judged = Vec::new();
    for attempt in 1..=TRIES {
        let name = format!("{name}-{attempt}");
        let mut run = manifest::run(NAMESPACE, &name, "server", SECONDS);
        run["spec"]["threads"] = THREADS.into();
        run["spec"]["run"]["warmup"] = format!("{WARM_UP}s").into();
        bench.apply(&run);
        let run = bench.ended(NAMESPACE, "benchmarkrun", &name, 120);
        if valid(&run) {
            let tps = run["status"]["result"]["tpsMilli"].as_i64();
            return tps.expect("a valid run has a figure") as f64 / 1000.0;
        }
        judged.push(run["status"]["validity"].to_string());
    }
    panic!("{TRIES} runs {name} and none is valid: {}", judged.join("; "));
}

/// Transactions per second that the same command prints when it is typed: window only, so a checkpoint at its start.
fn by_hand(bench: &Bench) -> f64 {
    let command = format!(
        "sysbench --db-driver=mysql --mysql-host=server --mysql-user=$(cat /login/username) --mysql-password=$(cat /login/password) \
         --mysql-db=sbtest --tables=2 --table-size=10000 --threads={THREADS} --rand-type=uniform --rand-seed=7 --percentile=95 \
         --histogram=on --report-interval=1 --report-checkpoints={WARM_UP} --time={} oltp_read_only run",
        SECONDS + WARM_UP
    );
    let printed = bench.kubectl(&["exec", "client", "-n", NAMESPACE, "--", "sh", "-c", &command]);
    let last_report = printed.rsplit("SQL statistics").next().expect("a report");
    let events: f64 = last_report
        .lines()
        .find_map(|line| {
            line.trim()
                .strip_prefix("transactions:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .expect("a number of transactions");
    events / f64::from(SECONDS)
}
