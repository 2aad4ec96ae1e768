//! The operator's memory beside many finished runs: copies of a run that was really measured, varied by a seed, owned by
//! a finished campaign in a namespace of their own. They are written while the operator is stopped, so that it never
//! takes one for work to do; it then reads them all as it does after any restart.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::http::{Connection, Proxy};
use super::process::Memory;
use super::testbed::{NAMESPACE, STORED_NAMESPACE, Testbed};
use crate::error::{Error, Result};
use crate::install;
use crate::progress::step;

const API: &str = "/apis/benchmark-campaign.dev/v1alpha1/namespaces";
const CAMPAIGN: &str = "stored";
/// Writers at a time: more would only queue in the API server.
const WRITERS: usize = 6;
/// Memory counts as settled when it changed by less than 1 % over this time.
const SETTLED_FOR: Duration = Duration::from_secs(10);
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

/// Memory beside many finished runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// Finished runs.
    pub runs: usize,
    /// Size of one as JSON, bytes, mean.
    pub run_bytes: usize,
    /// After the operator has read them and come to rest.
    pub memory: Memory,
}

/// Writes the runs, starts the operator on them and reads its memory.
pub fn measure(testbed: &Testbed, count: usize, seed: u64) -> Result<Stored> {
    let template = finished_run(testbed)?;
    testbed.remove(&[STORED_NAMESPACE])?;
    install::namespace(&testbed.cluster, STORED_NAMESPACE)?;
    testbed.install(STORED_NAMESPACE)?;
    testbed.scale(0)?;
    let proxy = Proxy::start(&testbed.cluster)?;
    let owner = campaign(testbed, &mut proxy.connect()?)?;
    let bytes = AtomicUsize::new(0);
    step(&format!("writing {count} finished runs"), || {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = proxy.connect()?;
                        loop {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            if index >= count {
                                return Ok(());
                            }
                            let run = copy(&template, &owner, index, seed);
                            bytes.fetch_add(run.to_string().len(), Ordering::Relaxed);
                            write(&mut connection, "benchmarkruns", &run)?;
                        }
                    })
                })
                .collect();
            writers.into_iter().try_for_each(|writer| {
                writer
                    .join()
                    .unwrap_or_else(|_| Err(Error::Plain("a writer of runs ended early".into())))
            })
        })
    })?;
    testbed.scale(1)?;
    let operator = testbed.operator()?;
    let memory = step("waiting until the operator has read them and rests", || {
        settled(|| operator.process.memory())
    })?;
    step("removing them", || {
        testbed.scale(0)?;
        remove(&mut proxy.connect()?)?;
        testbed.scale(1)
    })?;
    Ok(Stored {
        runs: count,
        run_bytes: bytes.into_inner() / count.max(1),
        memory,
    })
}

/// A run that was measured in this benchmark.
fn finished_run(testbed: &Testbed) -> Result<Value> {
    testbed
        .list(NAMESPACE, "benchmarkruns", &[])?
        .into_iter()
        .find(|run| run["status"]["step"] == "Finished" && run["status"]["result"].is_object())
        .ok_or_else(|| {
            Error::Plain(
                "there is no finished run to make copies of: the part `campaign` must run before, or with --keep"
                    .into(),
            )
        })
}

/// A finished campaign, so that its runs have an owner; returns the reference to it.
fn campaign(testbed: &Testbed, connection: &mut Connection) -> Result<Value> {
    let mut manifest = testbed.quickstart()?;
    manifest["metadata"] = json!({"name": CAMPAIGN, "namespace": STORED_NAMESPACE});
    manifest["spec"]["suspend"] = true.into();
    let ended = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": "Completed", "message": "a copy made by the speed benchmark",
               "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
    };
    manifest["status"] = json!({
        "observedGeneration": 1,
        "state": "Completed",
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T01:00:00Z",
        "conditions": [ended("Ready", "True"), ended("Finished", "True"), ended("Succeeded", "True")],
    });
    let stored = write(connection, "benchmarkcampaigns", &manifest)?;
    Ok(json!({
        "apiVersion": manifest["apiVersion"], "kind": "BenchmarkCampaign", "name": CAMPAIGN,
        "uid": stored["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }))
}

/// One more run like the template: its own name, place and figures.
fn copy(template: &Value, owner: &Value, index: usize, seed: u64) -> Value {
    let mut random = seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut spec = template["spec"].clone();
    spec["visit"]["sequence"] = index.into();
    spec["visit"]["block"] = (index / 4 % 2_500 + 1).into();
    spec["visit"]["ordinal"] = (index % 2).into();
    let mut status = template["status"].clone();
    for figure in ["tpsMilli", "qpsMilli", "latencyMeanMicros", "latencyP95Micros"] {
        if let Some(value) = status["result"][figure].as_i64() {
            random = step_of(random);
            // Within 5 % either way.
            status["result"][figure] =
                (value + value / 1000 * (i64::try_from(random % 101).unwrap_or(0) - 50)).into();
        }
    }
    json!({
        "apiVersion": template["apiVersion"],
        "kind": "BenchmarkRun",
        "metadata": {
            "name": format!("{CAMPAIGN}-{:08x}-{index}", step_of(random) as u32),
            "namespace": STORED_NAMESPACE,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner],
        },
        "spec": spec,
        "status": status,
    })
}

/// Splitmix64: well spread, and the same everywhere.
fn step_of(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Creates an object and then its status, which the API server takes in a second request only.
fn write(connection: &mut Connection, plural: &str, object: &Value) -> Result<Value> {
    let folder = format!("{API}/{STORED_NAMESPACE}/{plural}");
    let created = expect(
        connection.send("POST", &folder, "application/json", &object.to_string())?,
        &folder,
    )?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{folder}/{name}/status");
    let status = json!({"status": object["status"]}).to_string();
    expect(
        connection.send("PATCH", &path, "application/merge-patch+json", &status)?,
        &path,
    )?;
    Ok(created)
}

fn expect((code, body): (u16, String), path: &str) -> Result<Value> {
    let parsed: Option<Value> = serde_json::from_str(&body).ok();
    match (code, parsed) {
        (200..=299, Some(value)) => Ok(value),
        (_, parsed) => {
            let message = parsed
                .and_then(|status| Some(status["message"].as_str()?.to_owned()))
                .unwrap_or(body);
            Err(Error::Plain(format!("{path}: {code}: {message}")))
        }
    }
}

/// Reads memory until it has come to rest.
fn settled(read: impl Fn() -> Result<Memory>) -> Result<Memory> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    let mut last = read()?;
    loop {
        sleep(SETTLED_FOR);
        let now = read()?;
        let change = now.resident_bytes.abs_diff(last.resident_bytes);
        if change * 100 < now.resident_bytes || Instant::now() > deadline {
            return Ok(now);
        }
        last = now;
    }
}

/// Removes runs and campaign. Deleting a collection stops at the API server's own limit of time, so it is asked again.
fn remove(connection: &mut Connection) -> Result<()> {
    for plural in ["benchmarkruns", "benchmarkcampaigns"] {
        let path = format!("{API}/{STORED_NAMESPACE}/{plural}");
        for attempt in 0.. {
            let (code, body) = connection.send("DELETE", &path, "application/json", "")?;
            let (_, left) = connection.send("GET", &format!("{path}?limit=1"), "application/json", "")?;
            let empty = serde_json::from_str::<Value>(&left)
                .is_ok_and(|list| list["items"].as_array().is_some_and(Vec::is_empty));
            if empty {
                break;
            }
            if attempt > 20 {
                return Err(Error::Plain(format!("{path} is not empty yet: {code}: {body}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Value {
        json!({
            "apiVersion": "benchmark-campaign.dev/v1alpha1", "kind": "BenchmarkRun",
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"threads": 2, "visit": {"block": 1, "sequence": 3}},
            "status": {"step": "Finished", "result": {"qpsMilli": 1_000_000, "errors": 0}},
        })
    }

    #[test]
    fn copies_differ_in_name_place_and_figures_and_a_seed_gives_the_same_again() {
        let owner = json!({"uid": "c"});
        let copies: Vec<Value> = (0..500).map(|n| copy(&template(), &owner, n, 1)).collect();
        let names: std::collections::BTreeSet<&str> = copies
            .iter()
            .filter_map(|run| run["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names.len(), 500);
        assert_eq!(copies[499]["spec"]["visit"]["sequence"], 499);
        assert!(
            copies[0]["metadata"]["resourceVersion"].is_null(),
            "a new object has none"
        );
        assert_eq!(copies[0]["metadata"]["ownerReferences"], json!([{"uid": "c"}]));
        assert!(copies.iter().all(|run| {
            (950_000..=1_050_000).contains(&run["status"]["result"]["qpsMilli"].as_i64().unwrap())
        }));
        assert_ne!(copies[0]["status"], copies[1]["status"]);
        assert_eq!(copy(&template(), &owner, 7, 1), copies[7]);
        assert_ne!(copy(&template(), &owner, 7, 2), copies[7]);
    }

    #[test]
    fn a_refusal_says_what_the_api_server_said() {
        let refused = expect((422, r#"{"message":"spec.threads: too many"}"#.into()), "/runs").unwrap_err();
        assert_eq!(refused.to_string(), "/runs: 422: spec.threads: too many");
        assert!(expect((201, "{}".into()), "/runs").is_ok());
    }
}
