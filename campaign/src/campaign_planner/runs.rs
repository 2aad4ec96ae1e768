//! The run of a place in the plan, with everything resolved.

use crds::campaign::BenchmarkCampaign;
use crds::load::RestartWhen;
use crds::run::Visit;
use crds::target::LocalReference;
use crds::{BenchmarkRun, BenchmarkRunSpec};
use kube::ResourceExt as _;

use super::targets;
use crate::blocks::Plan;
use crate::budget::{Budget, time};
use crate::matrix::Matrix;
use crate::naming;

/// Name of the run of a place and attempt.
pub(super) fn name(campaign: &BenchmarkCampaign, iteration: i64, place: usize, attempt: i32) -> String {
    let uid = campaign.uid().unwrap_or_default();
    naming::run_name(&campaign.name_any(), &uid, iteration, place as i32, attempt)
}

/// The run of a place. `boot`: the boot of the visit's first run, for the runs after it.
pub(super) fn build(
    campaign: &BenchmarkCampaign,
    matrix: &Matrix<'_>,
    plan: &Plan,
    budget: &Budget,
    (iteration, index, attempt): (i64, usize, i32),
    boot: Option<&str>,
) -> BenchmarkRun {
    let spec = &campaign.spec;
    let place = &plan.places[index];
    let levels = plan.levels(place);
    let group = plan.group(place);
    let comparison = group.comparison.map(|index| spec.comparisons[index].name.clone());
    let restart_before = match spec.restart.policy {
        RestartWhen::WhenRequired => settings_change(plan, index, attempt),
        policy => time::boots(place, policy),
    };
    // Without a restart of its own, a later run of a visit is measured on the boot of the first.
    let requires_boot = if place.ordinal > 0 && spec.restart.policy != RestartWhen::BeforeEachRun {
        boot.map(str::to_owned)
    } else {
        None
    };
    let run_spec = BenchmarkRunSpec {
        target_ref: LocalReference {
            name: targets::name_of(campaign, matrix, levels.instance()),
        },
        cell: matrix.cell(levels, place.threads),
        visit: Visit {
            comparison: comparison.unwrap_or_default(),
            block: place.block as i32,
            arm: plan.arm(place).name.clone(),
            position: i32::from(place.position),
            ordinal: i32::from(place.ordinal),
            sequence: index as i32,
            iteration,
        },
        attempt,
        seed: i64::from(plan.load_seed(place)),
        parameters: matrix.parameters(levels).parameters,
        audit: matrix.audit_on(levels),
        workload: matrix.workload(levels).clone(),
        threads: place.threads,
        rows_per_table: budget
            .rows
            .get(&(levels.workload, levels.size))
            .copied()
            .unwrap_or(0),
        run: spec.run.clone(),
        restart: spec.restart.clone(),
        restart_before,
        requires_boot,
        cache: spec.cache.clone(),
        dataset: spec.dataset.clone(),
        load_generator: spec.load_generator.clone(),
    };
    let mut run = BenchmarkRun::new(&name(campaign, iteration, index, attempt), run_spec);
    targets::adopt(campaign, &mut run);
    run
}

/// Whether a visit's settings may differ from what the server last ran with: then it needs a restart. What an attempt
/// that was broken off left behind is not known.
fn settings_change(plan: &Plan, index: usize, attempt: i32) -> bool {
    let place = &plan.places[index];
    let levels = plan.levels(place);
    let before = plan.places[..index]
        .iter()
        .rev()
        .map(|earlier| plan.levels(earlier))
        .find(|earlier| earlier.instance() == levels.instance());
    let same =
        before.is_some_and(|before| before.template == levels.template && before.audit == levels.audit);
    place.ordinal == 0 && (attempt > 1 || !same)
}
