//! A small campaign on the quickstart's server, for dead time and API requests; and one long run, for the operator's
//! CPU time while load is applied.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::gaps::{DeadTime, dead_time, gaps};
use super::metrics::{RequestCount, counted};
use super::process::Memory;
use super::testbed::{NAMESPACE, Operator, Testbed};
use super::watching::Watching;
use crate::error::{Error, Result};
use crate::live;
use crate::progress::step;

/// Seconds of warm-up and window: as short as they may be, since the time between is what counts.
const WARMUP_SECONDS: u64 = 1;
const WINDOW_SECONDS: u64 = 4;
/// The long run: the operator is looked at in the middle of its window. Watches are opened anew every 290 s, all of them
/// within moments: a shorter look would see either none or all of it.
const LONG_WINDOW_SECONDS: u64 = 310;
const LOOK_SECONDS: u64 = 290;
/// After the first sign of the load generator's container: its start and the first transactions are over.
const LOOK_AFTER: Duration = Duration::from_secs(4);

/// What the small campaign showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Between {
    /// Runs, the burn-in included.
    pub runs: u64,
    /// Those of them that do not count: a machine that is not quiet, whose figures are to be read with that in mind.
    pub invalid_runs: u64,
    /// How the campaign ended.
    pub state: String,
    /// Where a restart, volatile settings, settling and proof lie between.
    pub with_restart: Option<DeadTime>,
    /// Between runs of one visit; none where every visit ended with its first run, which did not count.
    pub within_visit: Option<DeadTime>,
    /// Every request from the campaign's creation to its end.
    pub requests: Vec<RequestCount>,
    /// Those that runs pay for, divided by the runs, thousandths.
    pub requests_per_run_milli: u64,
    /// Memory after the campaign.
    pub memory: Memory,
}

/// What the operator did while a run was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quiet {
    /// CPU time per second of a measured window, microseconds.
    pub cpu_micros_per_second: f64,
    /// Length of the look, seconds.
    pub seconds: f64,
    /// Requests in it, leases and watches included.
    pub requests: Vec<RequestCount>,
}

/// Runs the small campaign and takes its figures.
pub fn between(testbed: &Testbed, operator: &Operator) -> Result<Between> {
    let manifest = small(testbed.quickstart()?, "between");
    let watching = Watching::start(&testbed.cluster, NAMESPACE)?;
    let before = testbed.requests(operator)?;
    testbed.apply("applying the campaign", &manifest)?;
    let campaign = live::follow(&testbed.cluster, NAMESPACE, "between", None)?;
    // The last writes of the last run may follow the campaign's end.
    sleep(Duration::from_secs(2));
    let requests = testbed.requests(operator)?.since(&before);
    let timeline = watching.stop();
    let runs = testbed.list(NAMESPACE, "benchmarkruns", &[])?;
    let invalid_runs = runs
        .iter()
        .filter(|run| run["status"]["validity"]["verdict"] == "Invalid")
        .count() as u64;
    let runs = runs.len() as u64;
    let gaps = gaps(&timeline);
    Ok(Between {
        runs,
        invalid_runs,
        state: campaign.status.state,
        with_restart: dead_time(&gaps, true),
        within_visit: dead_time(&gaps, false),
        requests_per_run_milli: counted(&requests) * 1000 / runs.max(1),
        requests,
        memory: operator.process.memory()?,
    })
}

/// The quickstart with short windows and two thread counts.
fn small(mut manifest: Value, name: &str) -> Value {
    manifest["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    let spec = &mut manifest["spec"];
    spec["threads"] = json!([2, 4]);
    spec["run"]["warmup"] = format!("{WARMUP_SECONDS}s").into();
    spec["run"]["duration"] = format!("{WINDOW_SECONDS}s").into();
    manifest
}

/// One long run.
fn long(manifest: Value, name: &str) -> Value {
    let mut manifest = small(manifest, name);
    let spec = &mut manifest["spec"];
    spec["threads"] = json!([2]);
    spec["run"]["duration"] = format!("{LONG_WINDOW_SECONDS}s").into();
    spec["repetitions"] = json!({"blocks": 1});
    spec["inference"] = "Descriptive".into();
    // So long a run with auditing would fill the log.
    spec["auditSettings"] = json!([{"name": "no-audit", "type": "None"}]);
    spec["comparisons"] = json!([]);
    manifest
}

/// Looks at the operator in the middle of a measured window, without touching it.
pub fn quiet(testbed: &Testbed, operator: &Operator) -> Result<Quiet> {
    let manifest = long(testbed.quickstart()?, "quiet");
    remove(testbed, "quiet")?;
    let watching = Watching::start(&testbed.cluster, NAMESPACE)?;
    testbed.apply("applying the campaign", &manifest)?;
    // Runs of an earlier campaign may still be there: only one that has just begun counts.
    let measured = step("waiting for a measured window", || {
        let deadline = Instant::now() + Duration::from_mins(5);
        let measuring = |timeline: &super::timeline::Timeline| {
            let of_it =
                |run: &super::timeline::RunMoments| run.pod_running.is_some() && run.reported.is_none();
            let found = timeline.runs.iter().find(|(_, run)| of_it(run));
            found.map(|(name, _)| name.clone())
        };
        loop {
            if let Some(name) = watching.look(measuring) {
                return Ok(name);
            }
            let refused = testbed.try_kubectl(&[
                "get",
                "bc/quiet",
                "--namespace",
                NAMESPACE,
                "--output=jsonpath={.status.conditions[?(@.type=='Stalled')].message}",
            ]);
            if let Some(message) = refused.filter(|message| !message.is_empty()) {
                return Err(Error::Plain(format!(
                    "the campaign quiet does not run: {message}"
                )));
            }
            if Instant::now() > deadline {
                return Err(Error::Timeout {
                    what: "a run that is measured".into(),
                    seconds: 300,
                    tail: testbed
                        .try_kubectl(&["get", "bc,br,bt,pods", "--namespace", NAMESPACE])
                        .unwrap_or_default(),
                    log: None,
                });
            }
            sleep(Duration::from_millis(500));
        }
    })?;
    sleep(LOOK_AFTER);
    let before = testbed.requests(operator)?;
    // Answering the question above costs the operator a little, which is not to be counted.
    sleep(Duration::from_secs(1));
    let (start, cpu_before) = (Instant::now(), operator.process.cpu()?);
    step("looking at the operator while a run is measured", || {
        sleep(Duration::from_secs(LOOK_SECONDS));
        Ok::<_, Error>(())
    })?;
    let (seconds, cpu_after) = (start.elapsed().as_secs_f64(), operator.process.cpu()?);
    let requests = testbed.requests(operator)?.since(&before);
    let still = watching.look(|timeline| {
        let run = timeline.runs.get(&measured);
        run.is_some_and(|run| run.reported.is_none())
    });
    if !still {
        return Err(Error::Plain(
            "the run ended while the operator was looked at: the figure would be that of no measured window"
                .into(),
        ));
    }
    remove(testbed, "quiet")?;
    let spent = cpu_after.saturating_sub(cpu_before);
    Ok(Quiet {
        cpu_micros_per_second: spent.as_secs_f64() * 1e6 / seconds,
        seconds,
        requests,
    })
}

/// Removes a campaign, if it is there, and waits until its server is gone.
fn remove(testbed: &Testbed, name: &str) -> Result<()> {
    step(&format!("removing the campaign {name}"), || {
        testbed.kubectl(&[
            "delete",
            "benchmarkcampaign",
            name,
            "--namespace",
            NAMESPACE,
            "--ignore-not-found",
            "--timeout=120s",
        ])?;
        testbed
            .kubectl(&[
                "wait",
                "--for=delete",
                "pods",
                "--selector=benchmark-campaign.dev/role=database",
                "--namespace",
                NAMESPACE,
                "--timeout=180s",
            ])
            .map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_campaign_is_the_quickstart_but_for_its_lengths() {
        let quickstart = json!({"metadata": {"name": "audit-cost", "namespace": "bench"},
            "spec": {"instanceSizes": [{"memory": "1Gi"}], "threads": [2, 4, 8],
                     "run": {"warmup": "2s", "duration": "8s", "attempts": 2}, "repetitions": {"blocks": 6}}});
        let small = small(quickstart.clone(), "between");
        assert_eq!(small["metadata"]["namespace"], NAMESPACE);
        assert_eq!(
            small["spec"]["instanceSizes"],
            quickstart["spec"]["instanceSizes"]
        );
        assert_eq!(
            small["spec"]["run"],
            json!({"warmup": "1s", "duration": "4s", "attempts": 2})
        );
        assert_eq!(small["spec"]["repetitions"]["blocks"], 6);
        let long = long(quickstart, "quiet");
        assert_eq!(long["spec"]["run"]["duration"], "310s");
        assert_eq!(
            long["spec"]["auditSettings"],
            json!([{"name": "no-audit", "type": "None"}])
        );
        assert_eq!(long["spec"]["inference"], "Descriptive");
    }

    #[test]
    fn the_look_fits_into_the_window() {
        assert!(LOOK_AFTER.as_secs() + 2 + LOOK_SECONDS < WARMUP_SECONDS + LONG_WINDOW_SECONDS);
    }
}
