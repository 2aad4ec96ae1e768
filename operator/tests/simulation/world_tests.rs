//! The real controllers under every fault: each test makes worlds and asks whether the invariants held in them.
//!
//! Each test tries some seeds, chosen so that all of them take little more than a minute on two cores. A longer set before
//! a release, or after a change of a controller: `SIMULATION_SEEDS=500 cargo test -p operator --test simulation` tries so
//! many seeds in each test.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{
    api_server::Interposer,
    faults::FaultPlan,
    server_tests::simulate,
    world::{
        Setup, World, broken,
        containers::Disturbances,
        databases::DatabaseFaults,
        invariants::{self, Invariant, Violation},
        manifests::campaign,
    },
};

/// Virtual time that a small campaign may take, faults included.
const LIMIT: Duration = Duration::from_secs(3 * 3_600);

/// Seeds of the test in which everything can go wrong.
const STORMS: u64 = 48;

/// Tries a test's seeds, as many at a time as there are cores; more of them with `SIMULATION_SEEDS`.
fn for_seeds(default: u64, test: impl Fn(u64) + Sync) {
    let count = std::env::var("SIMULATION_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default);
    let next = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    // A failed seed ends its thread, and the scope with a panic; the others go on meanwhile.
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < count) {
                    test(seed);
                }
            });
        }
    });
}

/// Entries of the record that a failed test prints.
const STORY: usize = 60;

fn assert_none(world: &World, seed: u64, violations: &[Violation]) {
    assert!(
        violations.is_empty(),
        "seed {seed}: {violations:#?}\n{}",
        world.story(STORY)
    );
}

async fn small_campaign(setup: Setup, blocks: u32) -> World {
    let mut world = World::new(setup).await;
    world.start();
    world.apply(&campaign("audit", "node-a", &[2, 4], blocks)).await;
    world.run_until_finished(LIMIT).await;
    world
}

#[test]
fn a_campaign_in_a_calm_world_breaks_no_invariant() {
    simulate(async {
        let mut world = World::new(Setup::calm(1)).await;
        world.start();
        world.apply(&campaign("audit", "node-a", &[2, 4, 8], 6)).await;
        world.run_until_finished(LIMIT).await;
        assert_none(&world, 1, &invariants::always(&world));
        assert_none(&world, 1, &invariants::calm(&world));
        let done = &world.stored("benchmarkcampaigns")[0];
        assert_eq!(
            done["status"]["answers"][0]["verdict"], "Worse",
            "{}",
            done["status"]
        );
        let late = invariants::quiet_when_done(&mut world).await;
        assert_none(&world, 1, &late);
        world.delete("audit").await;
        world.pass(Duration::from_secs(1_800)).await;
        assert_none(&world, 1, &invariants::nothing_left(&world));
    });
}

/// The same campaign with several load generators, whose pods meet.
fn by_several(count: i32, threads: &[u32], blocks: u32) -> serde_json::Value {
    let mut wanted = campaign("audit", "node-a", threads, blocks);
    wanted["spec"]["loadGenerator"]["count"] = count.into();
    wanted
}

#[test]
fn several_load_generators_apply_one_load_together() {
    simulate(async {
        let mut world = World::new(Setup::calm(21)).await;
        world.start();
        world.apply(&by_several(3, &[4, 6], 6)).await;
        world.run_until_finished(LIMIT).await;
        assert_none(&world, 21, &invariants::always(&world));
        assert_none(&world, 21, &invariants::calm(&world));
        let done = &world.stored("benchmarkcampaigns")[0];
        assert_eq!(
            done["status"]["answers"][0]["verdict"], "Worse",
            "{}",
            done["status"]
        );
        let loads = world.databases.lock().ledger.loads.clone();
        for load in &loads {
            let threads: Vec<i32> = load.parts.iter().map(|part| part.threads).collect();
            assert!(
                threads == [1, 2] || threads == [2, 1] || threads == [2, 2],
                "{load:?}"
            );
        }
        let run = &world.stored("benchmarkruns")[0];
        let result = &run["status"]["result"];
        assert_eq!(
            result["latencyP95Micros"].as_i64().map(|micros| micros / 100),
            Some(15),
            "{run}"
        );
        world.delete("audit").await;
        world.pass(Duration::from_secs(1_800)).await;
        assert_none(&world, 21, &invariants::nothing_left(&world));
    });
}

#[test]
fn no_storm_breaks_an_invariant_where_several_apply_load() {
    for_seeds(16, |seed| {
        simulate(async {
            let mut world = World::new(Setup::stormy(seed + 1_000)).await;
            world.start();
            world.apply(&by_several(2, &[2, 4], 2)).await;
            world.run_until_finished(LIMIT).await;
            assert_none(&world, seed, &invariants::always(&world));
        });
    });
}

#[test]
fn each_kind_of_fault_is_in_many_of_the_storms() {
    let setups: Vec<Setup> = (0..STORMS).map(Setup::stormy).collect();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for setup in &setups {
        for (kind, rate) in setup.rates() {
            *kinds.entry(kind).or_default() += u64::from(rate > 0);
        }
    }
    assert_eq!(kinds.len(), 18, "{kinds:?}");
    for (kind, seeds) in kinds {
        assert!(seeds >= STORMS / 4, "{kind} is in {seeds} of {STORMS}");
    }
}

#[test]
fn no_storm_of_faults_breaks_an_invariant() {
    for_seeds(STORMS, |seed| {
        simulate(async {
            let mut world = small_campaign(Setup::stormy(seed), 2).await;
            assert_none(&world, seed, &invariants::always(&world));
            world.server.lock().faults.stop();
            world.databases.lock().faults = Default::default();
            let late = invariants::quiet_when_done(&mut world).await;
            assert_none(&world, seed, &late);
        });
    });
}

/// Crashes after every write whose number leaves this rest when divided by 4: four tests share the work.
fn crash_after_each_write(rest: u64) {
    let (writes, places) = simulate(async {
        let world = small_campaign(Setup::calm(3), 1).await;
        assert_none(&world, 0, &invariants::always(&world));
        let writes = world.server.lock().faults.writes();
        (writes, measured(&world))
    });
    assert!(writes > 20, "{writes} writes");
    for write in (1..=writes).filter(|write| write % 4 == rest) {
        simulate(async {
            let setup = Setup {
                faults: FaultPlan::none().crash_after(write),
                ..Setup::calm(3)
            };
            let world = small_campaign(setup, 1).await;
            assert_eq!(world.crashes, 1, "write {write}");
            assert_none(&world, write, &invariants::always(&world));
            assert_eq!(measured(&world), places, "write {write}");
        });
    }
}

#[test]
fn a_crash_after_any_single_write_changes_nothing_first_quarter() {
    crash_after_each_write(0);
}

#[test]
fn a_crash_after_any_single_write_changes_nothing_second_quarter() {
    crash_after_each_write(1);
}

#[test]
fn a_crash_after_any_single_write_changes_nothing_third_quarter() {
    crash_after_each_write(2);
}

#[test]
fn a_crash_after_any_single_write_changes_nothing_last_quarter() {
    crash_after_each_write(3);
}

/// Places of the plan with a valid run.
fn measured(world: &World) -> BTreeSet<i64> {
    world
        .stored("benchmarkruns")
        .iter()
        .filter(|run| run["status"]["validity"]["verdict"] == "Valid")
        .filter_map(|run| run["spec"]["visit"]["sequence"].as_i64())
        .collect()
}

#[test]
fn an_operator_that_is_killed_again_and_again_still_ends() {
    for_seeds(12, |seed| {
        simulate(async {
            let mut world = World::new(Setup::stormy(seed)).await;
            world.start();
            world.apply(&campaign("audit", "node-a", &[2, 4], 2)).await;
            for _ in 0..10 {
                world.pass(Duration::from_secs(17 + seed)).await;
                world.crash().await;
            }
            world.run_until_finished(LIMIT).await;
            assert_none(&world, seed, &invariants::always(&world));
        });
    });
}

#[test]
fn two_operators_that_both_think_they_lead_break_no_invariant() {
    for_seeds(32, |seed| {
        simulate(async {
            let setup = Setup {
                operators: 2,
                ..Setup::stormy(seed)
            };
            let world = small_campaign(setup, 2).await;
            assert_none(&world, seed, &invariants::always(&world));
        });
    });
}

/// Long loads and slow statements: one that comes late comes in the middle of a load.
fn two_operators_at_a_slow_server(seed: u64, ignores_lock: bool) -> Vec<Violation> {
    simulate(async {
        let setup = Setup {
            operators: 2,
            ignores_lock,
            database_faults: DatabaseFaults {
                slow: 400,
                ..DatabaseFaults::default()
            },
            ..Setup::calm(seed)
        };
        let mut world = World::new(setup).await;
        world.start();
        let mut long = campaign("audit", "node-a", &[2, 4], 2);
        long["spec"]["run"]["duration"] = "60s".into();
        world.apply(&long).await;
        world.run_until_finished(LIMIT).await;
        invariants::always(&world)
    })
}

#[test]
fn a_late_statement_of_another_operator_meets_no_load() {
    for_seeds(6, |seed| {
        let violations = two_operators_at_a_slow_server(seed, false);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    });
}

#[test]
fn of_two_operators_with_a_lease_the_second_takes_over() {
    simulate(async {
        let mut world = World::new(Setup {
            operators: 0,
            ..Setup::calm(4)
        })
        .await;
        let lead = |world: &World, number: usize| {
            let context = world.context(number);
            tokio::spawn(operator::lead(
                context,
                operator::http::Readiness::default(),
                std::future::pending(),
            ))
        };
        let first = lead(&world, 0);
        world.pass(Duration::from_secs(3)).await;
        let second = lead(&world, 1);
        world.apply(&campaign("audit", "node-a", &[2, 4], 2)).await;
        world.pass(Duration::from_secs(45)).await;
        first.abort();
        world.run_until_finished(LIMIT).await;
        assert_none(&world, 4, &invariants::always(&world));
        assert!(!second.is_finished());
        second.abort();
    });
}

#[test]
fn two_campaigns_on_one_node_take_turns() {
    for_seeds(12, |seed| {
        simulate(async {
            let mut world = World::new(Setup::stormy(seed)).await;
            world.start();
            world.apply(&campaign("one", "node-a", &[2], 2)).await;
            world.apply(&campaign("two", "node-a", &[2], 2)).await;
            world.run_until_finished(LIMIT).await;
            assert_none(&world, seed, &invariants::always(&world));
        });
    });
}

#[test]
fn a_drain_suspends_what_runs_and_ends_when_nothing_is_under_way() {
    simulate(async {
        let mut world = World::new(Setup::calm(5)).await;
        world.start();
        world.apply(&campaign("audit", "node-a", &[2, 4], 6)).await;
        world.pass(Duration::from_secs(120)).await;
        operator::drain::drain(&world.context(0), Duration::from_secs(900))
            .await
            .unwrap();
        assert_eq!(world.stored("benchmarkcampaigns")[0]["spec"]["suspend"], true);
        let steps: Vec<_> = world
            .stored("benchmarkruns")
            .iter()
            .map(|run| run["status"]["step"].clone())
            .collect();
        assert!(steps.len() > 1, "{steps:?}");
        assert!(
            steps
                .iter()
                .all(|step| step == "Finished" || step == "Waiting" || step.is_null()),
            "{steps:?}"
        );
    });
}

#[test]
fn a_node_that_is_held_out_of_sight_is_waited_for_in_words() {
    simulate(async {
        let mut world = World::new(interposed(broken::HeldOutOfSight)).await;
        world.start();
        world.apply(&campaign("audit", "node-a", &[2], 1)).await;
        world.pass(Duration::from_secs(120)).await;
        let waiting = world.stored("benchmarkruns")[0]["status"]["waitingFor"].to_string();
        for word in ["lost", "elsewhere", "delete lease benchmark-node-"] {
            assert!(waiting.contains(word), "`{word}` is not in {waiting}");
        }
    });
}

#[test]
fn a_campaign_deleted_at_any_time_leaves_nothing() {
    for_seeds(12, |seed| {
        simulate(async {
            let mut world = World::new(Setup::calm(seed)).await;
            world.start();
            world.apply(&campaign("audit", "node-a", &[2, 4], 2)).await;
            world.pass(Duration::from_secs(2 + 11 * seed)).await;
            world.delete("audit").await;
            world.pass(Duration::from_secs(1_800)).await;
            assert_none(&world, seed, &invariants::nothing_left(&world));
        });
    });
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed: u64| {
        simulate(async {
            let world = small_campaign(Setup::stormy(seed), 2).await;
            world.server.lock().record.hash()
        })
    };
    for_seeds(3, |seed| {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    });
}

/// Runs a broken world; the invariants must be among the violations.
fn must_catch(wanted: &[Invariant], setup: Setup) {
    let violations = simulate(async {
        let mut world = World::new(setup).await;
        world.start();
        world.apply(&campaign("one", "node-a", &[2], 2)).await;
        world.apply(&campaign("two", "node-a", &[2], 2)).await;
        world.run_until_finished(Duration::from_secs(2 * 3_600)).await;
        let mut violations = invariants::always(&world);
        violations.extend(invariants::calm(&world));
        violations.extend(invariants::quiet_when_done(&mut world).await);
        world.delete("one").await;
        world.delete("two").await;
        world.pass(Duration::from_secs(1_800)).await;
        violations.extend(invariants::nothing_left(&world));
        violations
    });
    for invariant in wanted {
        let caught = violations.iter().any(|(found, _)| found == invariant);
        assert!(caught, "{invariant:?} was not caught; found: {violations:#?}");
    }
}

fn interposed(interposer: impl Interposer + 'static) -> Setup {
    Setup {
        interposer: Some(Arc::new(interposer)),
        ..Setup::calm(1)
    }
}

#[test]
fn caught_a_job_that_is_made_twice() {
    let setup = Setup {
        ignores_fence: true,
        ..interposed(broken::SecondJob)
    };
    must_catch(&[Invariant::MeasuredOnce], setup);
}

#[test]
fn caught_a_job_that_is_never_made() {
    must_catch(&[Invariant::NothingStuck], interposed(broken::ForgottenJob));
}

#[test]
fn caught_a_node_that_is_taken_without_its_lease() {
    must_catch(&[Invariant::NoOverlap], interposed(broken::FreeNodes));
}

#[test]
fn caught_a_proof_of_nothing() {
    must_catch(
        &[Invariant::ProvedFirst],
        Setup {
            proves_nothing: true,
            ..Setup::calm(1)
        },
    );
}

#[test]
fn caught_servers_that_are_changed_by_two_at_once() {
    let caught = |seed| {
        let violations = two_operators_at_a_slow_server(seed, true);
        violations
            .iter()
            .any(|(found, _)| *found == Invariant::ProvedFirst)
    };
    assert!((0..5).any(caught), "ProvedFirst was not caught");
}

#[test]
fn caught_an_invalid_run_that_counts() {
    let disturbances = Disturbances {
        busy_node: 300,
        ..Disturbances::default()
    };
    let setup = Setup {
        disturbances,
        ..interposed(broken::EverythingValid)
    };
    must_catch(&[Invariant::InvalidNotCounted], setup);
}

#[test]
fn caught_requests_under_load_and_after_the_end_and_too_many() {
    let wanted = [
        Invariant::QuietWhileMeasuring,
        Invariant::QuietWhenDone,
        Invariant::FewRequests,
    ];
    must_catch(
        &wanted,
        Setup {
            restless: true,
            ..Setup::calm(1)
        },
    );
}

#[test]
fn caught_a_status_that_is_not_fitted() {
    must_catch(&[Invariant::SmallStatus], interposed(broken::FatStatus));
}

#[test]
fn caught_a_child_without_an_owner() {
    must_catch(&[Invariant::NothingLeft], interposed(broken::Ownerless));
}
