//! What must hold in every world, whatever happened in it: each check gives its violations in words.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{OPERATOR, World, condition, ledger::Load};

/// Which invariant is violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// Every campaign ends.
    NothingStuck,
    /// Every planned run is measured, and none twice.
    MeasuredOnce,
    /// Two runs never share a target or a database's node.
    NoOverlap,
    /// Load meets only proved settings, on the boot that was proved, from its beginning to its end.
    ProvedFirst,
    /// What is invalid does not count.
    InvalidNotCounted,
    /// Nothing is asked of database or API server under load.
    QuietWhileMeasuring,
    /// Nothing is done when everything has ended.
    QuietWhenDone,
    /// A campaign's status stays under 100 KiB.
    SmallStatus,
    /// At most 12 requests a run.
    FewRequests,
    /// A deleted campaign leaves nothing behind.
    NothingLeft,
}

/// A violation: the invariant and what was seen.
pub(crate) type Violation = (Invariant, String);

/// Status of a campaign, at most.
const STATUS_LIMIT: usize = 100 * 1024;
/// API requests a run, at most.
const REQUESTS_A_RUN: usize = 12;

/// Checks that hold in every world, faults or not.
pub(crate) fn always(world: &World) -> Vec<Violation> {
    let mut violations = Vec::new();
    stuck(world, &mut violations);
    measured_once(world, &mut violations);
    overlaps(world, &mut violations);
    proved_first(world, &mut violations);
    invalid_not_counted(world, &mut violations);
    if world.largest_status > STATUS_LIMIT {
        let text = format!("a campaign's status had {} bytes", world.largest_status);
        violations.push((Invariant::SmallStatus, text));
    }
    violations
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn stuck(world: &World, violations: &mut Vec<Violation>) {
    for campaign in world.stored("benchmarkcampaigns") {
        if condition(&campaign, "Finished") == Some("True") {
            continue;
        }
        let open: Vec<String> = world
            .stored("benchmarkruns")
            .iter()
            .filter(|run| run["status"]["step"] != "Finished")
            .map(|run| {
                format!(
                    "{} {} {}",
                    name(run),
                    run["status"]["step"],
                    run["status"]["waitingFor"]
                )
            })
            .collect();
        let targets: Vec<String> = world
            .stored("benchmarktargets")
            .iter()
            .map(|target| format!("{} {}", name(target), target["status"]))
            .collect();
        let text = format!(
            "campaign {} is {} ({}); open runs: {open:?}; targets: {targets:?}",
            name(&campaign),
            campaign["status"]["state"],
            campaign["status"]["conditions"]
        );
        violations.push((Invariant::NothingStuck, text));
    }
}

fn loads_of<'a>(loads: &'a [Load], run_uid: &str) -> Vec<&'a Load> {
    loads.iter().filter(|load| load.run_uid == run_uid).collect()
}

fn measured_once(world: &World, violations: &mut Vec<Violation>) {
    let mut report = |text: String| violations.push((Invariant::MeasuredOnce, text));
    let loads = world.databases.lock().ledger.loads.clone();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for load in &loads {
        *count.entry(&load.run_uid).or_default() += 1;
    }
    for (run, times) in count.iter().filter(|(_, times)| **times > 1) {
        report(format!("run {run} was measured {times} times"));
    }
    let runs = world.stored("benchmarkruns");
    for campaign in world.stored("benchmarkcampaigns") {
        let ours: Vec<&Value> = runs
            .iter()
            .filter(|run| run["metadata"]["ownerReferences"][0]["uid"] == campaign["metadata"]["uid"])
            .collect();
        // The latest attempt of every place of the plan.
        let mut places: BTreeMap<i64, &Value> = BTreeMap::new();
        for run in ours {
            let sequence = run["spec"]["visit"]["sequence"].as_i64().unwrap_or(0);
            let place = places.entry(sequence).or_insert(run);
            if run["spec"]["attempt"].as_i64() >= place["spec"]["attempt"].as_i64() {
                *place = run;
            }
        }
        let planned = campaign["status"]["plan"]["runs"].as_i64().unwrap_or(-1);
        let lost = campaign["status"]["progress"]["blocksLost"].as_i64().unwrap_or(0);
        let ended = condition(&campaign, "Finished") == Some("True");
        if ended && lost == 0 && places.len() as i64 != planned {
            report(format!(
                "{} places were measured and {planned} planned by {}",
                places.len(),
                name(&campaign)
            ));
        }
        for run in places.values() {
            let valid = run["status"]["validity"]["verdict"] == "Valid";
            let measured = loads_of(&loads, uid(run));
            let burn_in = run["spec"]["visit"]["block"] == 0;
            if valid && (measured.len() != 1 || !measured[0].complete) {
                report(format!(
                    "run {} is valid and was measured {} times",
                    name(run),
                    measured.len()
                ));
            }
            if ended && lost == 0 && !valid && !burn_in {
                report(format!(
                    "run {} is the last attempt at its place and invalid: {}",
                    name(run),
                    run["status"]["validity"]["reasons"]
                ));
            }
        }
    }
}

fn overlaps(world: &World, violations: &mut Vec<Violation>) {
    let loads = world.databases.lock().ledger.loads.clone();
    for (index, first) in loads.iter().enumerate() {
        for second in &loads[index + 1..] {
            let apart =
                first.to.is_some_and(|to| to <= second.from) || second.to.is_some_and(|to| to <= first.from);
            if apart {
                continue;
            }
            let shared = if first.target == second.target {
                format!("target {}", first.target)
            } else if first.database_node == second.database_node {
                format!("node {}", first.database_node)
            } else {
                continue;
            };
            let text = format!(
                "runs {} and {} were measured at once on {shared}",
                first.run, second.run
            );
            violations.push((Invariant::NoOverlap, text));
        }
    }
}

fn proved_first(world: &World, violations: &mut Vec<Violation>) {
    for load in &world.databases.lock().ledger.loads {
        for fault in &load.faults {
            let text = format!("load of run {}: {fault}", load.run);
            violations.push((Invariant::ProvedFirst, text));
        }
    }
}

/// The models' effect of auditing is -20 %, and figures of disturbed runs are absurd: whatever counts one shows it.
fn invalid_not_counted(world: &World, violations: &mut Vec<Violation>) {
    for campaign in world.stored("benchmarkcampaigns") {
        for answer in campaign["status"]["answers"].as_array().into_iter().flatten() {
            let Some(effect) = answer["effectPpm"].as_i64() else {
                continue;
            };
            if !(-230_000..=-170_000).contains(&effect) {
                let text = format!("the effect is {effect} ppm where all valid runs say -200,000: {answer}");
                violations.push((Invariant::InvalidNotCounted, text));
            }
        }
    }
    let loads = world.databases.lock().ledger.loads.clone();
    for run in world.stored("benchmarkruns") {
        let valid = run["status"]["validity"]["verdict"] == "Valid";
        let figures = run["status"]["result"]["tpsMilli"].as_i64().unwrap_or(0);
        let measured = loads_of(&loads, uid(&run));
        for load in &measured {
            let whole =
                load.parts.len() as i32 + 1 == load.runners && load.parts.iter().all(|part| part.complete);
            if valid && !whole {
                let text = format!("run {} counts without all of its load: {load:?}", name(&run));
                violations.push((Invariant::InvalidNotCounted, text));
            }
            let outlasts = |to: Duration| load.parts.iter().any(|part| part.to.is_none_or(|part| part > to));
            if load.to.is_some_and(outlasts) && load.complete {
                let text = format!("a part of run {}'s load outlasts it: {load:?}", name(&run));
                violations.push((Invariant::NoOverlap, text));
            }
        }
        if valid && (figures > 40_000_000 || measured.iter().any(|load| !load.complete)) {
            let text = format!("run {} was disturbed and counts as valid", name(&run));
            violations.push((Invariant::InvalidNotCounted, text));
        }
    }
}

/// Requests that are never counted: leases, watches and the lists that follow a lost watch, events.
fn counts(entry: &crate::record::Entry) -> bool {
    entry.actor == OPERATOR
        && !matches!(entry.verb, "watch" | "list")
        && !matches!(entry.resource.as_str(), "leases" | "events")
}

/// Checks for worlds without faults, in which nothing has to be repeated.
pub(crate) fn calm(world: &World) -> Vec<Violation> {
    let mut violations = Vec::new();
    let ledger = world.databases.lock().ledger.clone();
    for (at, target) in &ledger.connections {
        if let Some(load) = ledger.measuring_at(*at) {
            let text = format!(
                "a connection to {target} at {at:?} while run {} was measured",
                load.run
            );
            violations.push((Invariant::QuietWhileMeasuring, text));
        }
    }
    let state = world.server.lock();
    let entries = state.record.entries();
    for entry in entries.iter().filter(|entry| counts(entry)) {
        if let Some(load) = ledger.measuring_at(entry.at) {
            let text = format!(
                "{} {} {} at {:?} while run {} was measured",
                entry.verb, entry.resource, entry.name, entry.at, load.run
            );
            violations.push((Invariant::QuietWhileMeasuring, text));
        }
    }
    let requests = entries.iter().filter(|entry| counts(entry)).count();
    let runs = ledger.loads.len().max(1);
    if requests > runs * REQUESTS_A_RUN {
        let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| counts(entry)) {
            *kinds.entry((entry.verb, &entry.resource)).or_default() += 1;
        }
        let text = format!("{requests} requests for {runs} runs: {kinds:?}");
        violations.push((Invariant::FewRequests, text));
    }
    violations
}

/// Two hours after the end: nothing was done in them.
pub(crate) async fn quiet_when_done(world: &mut World) -> Vec<Violation> {
    // What follows the end (releases, events) may take a moment.
    world.pass(Duration::from_secs(120)).await;
    let (before, connections) = {
        let state = world.server.lock();
        (
            state.record.entries().len(),
            world.databases.lock().ledger.connections.len(),
        )
    };
    world.pass(Duration::from_secs(7_200)).await;
    let mut violations = Vec::new();
    let state = world.server.lock();
    for entry in state.record.entries()[before..]
        .iter()
        .filter(|entry| counts(entry))
    {
        let text = format!(
            "{} {} {} long after the end",
            entry.verb, entry.resource, entry.name
        );
        violations.push((Invariant::QuietWhenDone, text));
    }
    let later = world.databases.lock().ledger.connections.len();
    if later > connections {
        let text = format!("{} connections long after the end", later - connections);
        violations.push((Invariant::QuietWhenDone, text));
    }
    violations
}

/// Some minutes after the deletion of all campaigns: nothing of theirs is there, and no node is held.
pub(crate) fn nothing_left(world: &World) -> Vec<Violation> {
    let held = world.held_nodes().into_iter().map(|name| {
        let text = format!("Lease {name} is held");
        (Invariant::NothingLeft, text)
    });
    let state = world.server.lock();
    let left = state
        .store
        .in_namespace(super::NAMESPACE)
        .into_iter()
        .filter(|key| state.kinds.get(key.resource).kind != "Event")
        .map(|key| {
            let text = format!("{} {} is left", state.kinds.get(key.resource).kind, key.name);
            (Invariant::NothingLeft, text)
        });
    left.chain(held).collect()
}
