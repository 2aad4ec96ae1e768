//! A world in which every action is done at once and runs end when a test says so.

use std::collections::BTreeMap;

use crds::campaign::BenchmarkCampaign;
use crds::environment::Environment;
use crds::names::condition::READY;
use crds::run::{
    BenchmarkRunStatus, Evidence, Finding, RunResult, SettleEvidence, Step, Validity, ValidityVerdict,
};
use crds::target::{BenchmarkTargetStatus, Boot, BootRequest, Holder};
use crds::{BenchmarkRun, BenchmarkTarget};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use serde_json::Value;

use crate::campaign_planner::{Action, CampaignPlan, CampaignView, Obstacle, RunSummary, plan};
use crate::matrix::tests::{changed, quickstart};

pub(super) struct World {
    pub(super) campaign: BenchmarkCampaign,
    pub(super) targets: Vec<BenchmarkTarget>,
    pub(super) runs: BTreeMap<String, BenchmarkRun>,
    pub(super) checks: BTreeMap<String, Vec<String>>,
    /// Problems that the servers will report.
    pub(super) problems: Vec<String>,
    pub(super) obstacles: Vec<Obstacle>,
    pub(super) now: Timestamp,
    pub(super) events: Vec<String>,
    pub(super) log: Vec<String>,
    /// Largest number of runs open at once.
    pub(super) most_open: usize,
    /// Passes in which the status changed.
    pub(super) patches: usize,
    boots: i64,
    /// What a run says of its surroundings.
    pub(super) surroundings: fn(&BenchmarkRun) -> Environment,
}

/// One server a database, and one load generator.
pub(super) fn surroundings(run: &BenchmarkRun) -> Environment {
    Environment {
        server_version: Some(format!("of {}", run.spec.cell.database)),
        client_version: Some("sysbench 1.0.20".into()),
        ..Environment::default()
    }
}

pub(super) const UID: &str = "0b5c2c4e-6a5e-4f6e-9c8b-2d7f9a1e4c33";

impl World {
    pub(super) fn new(changes: &[(&str, Value)]) -> Self {
        let mut campaign = quickstart();
        campaign.spec = changed(changes);
        campaign.metadata.uid = Some(UID.into());
        campaign.metadata.generation = Some(1);
        Self {
            campaign,
            targets: Vec::new(),
            runs: BTreeMap::new(),
            checks: BTreeMap::new(),
            problems: Vec::new(),
            obstacles: Vec::new(),
            now: "2026-03-01T00:00:00Z".parse().unwrap(),
            events: Vec::new(),
            log: Vec::new(),
            most_open: 0,
            patches: 0,
            boots: 0,
            surroundings,
        }
    }

    pub(super) fn edit(&mut self, changes: &[(&str, Value)]) {
        self.campaign.spec = changed(changes);
        *self.campaign.metadata.generation.as_mut().unwrap() += 1;
        self.checks.clear();
    }

    pub(super) fn look(&self) -> CampaignPlan {
        let summaries: Vec<RunSummary> = self.runs.values().map(RunSummary::from).collect();
        let runs: Vec<&RunSummary> = summaries.iter().collect();
        let targets: Vec<&BenchmarkTarget> = self.targets.iter().collect();
        let view = CampaignView {
            campaign: &self.campaign,
            targets: &targets,
            runs: &runs,
            checks: &self.checks,
            obstacles: &self.obstacles,
        };
        let decided = plan(&view, self.now);
        if self.log.len().is_multiple_of(7) {
            assert_eq!(
                decided,
                plan(&view, self.now),
                "the same view gives the same plan"
            );
        }
        decided
    }

    /// One pass: plan, write the status, do the actions. Returns what was done.
    pub(super) fn step(&mut self) -> Vec<Action> {
        self.now += SignedDuration::from_secs(1);
        let decided = self.look();
        let begun = self
            .campaign
            .status
            .as_ref()
            .is_some_and(|s| s.start_time.is_some());
        let creates = decided
            .actions
            .iter()
            .any(|action| matches!(action, Action::CreateRun(_)));
        assert!(begun || !creates, "no run before startTime is written");
        if self.campaign.status.as_ref() != Some(&decided.status) {
            self.patches += 1;
        }
        self.campaign.status = Some(decided.status);
        for action in &decided.actions {
            self.act(action.clone());
        }
        let open = self
            .runs
            .values()
            .filter(|run| run.status.as_ref().is_none_or(|s| s.step != Step::Finished));
        self.most_open = self.most_open.max(open.count());
        decided.actions
    }

    /// Passes until nothing more is done; fails if that never happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..50 {
            let before = self.campaign.status.clone();
            if self.step().is_empty() && self.campaign.status == before {
                return;
            }
        }
        panic!("the plan does not come to rest: {:?}", self.look().actions);
    }

    fn taken(&self, name: &str) -> bool {
        self.obstacles.iter().any(|obstacle| obstacle.name == name)
    }

    fn target(&mut self, name: &str) -> &mut BenchmarkTarget {
        let found = self.targets.iter_mut().find(|target| target.name_any() == name);
        found.unwrap_or_else(|| panic!("no target {name}"))
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::CreateTarget(target) if self.taken(&target.name_any()) => {}
            Action::CreateRun(run) if self.taken(&run.name_any()) => {}
            Action::CreateTarget(target) => {
                self.log.push("create target".into());
                let mut target = *target;
                target.metadata.uid = Some(format!("uid of {}", target.name_any()));
                // As the API server stores it.
                let stored = serde_json::to_value(&target).unwrap();
                self.targets.push(serde_json::from_value(stored).unwrap());
            }
            Action::DeleteTarget { name, uid } => {
                self.log.push("delete target".into());
                self.targets
                    .retain(|target| target.name_any() != name || target.uid().as_deref() != Some(&uid));
            }
            Action::HoldTarget { name } => {
                self.boots += 1;
                let serial = self.boots;
                self.log.push("hold".into());
                let status = self.target(&name).status.get_or_insert_default();
                status.holder = Some(Holder {
                    kind: "BenchmarkCampaign".into(),
                    uid: UID.into(),
                    boot: Some(BootRequest {
                        serial,
                        ..BootRequest::default()
                    }),
                    ..Holder::default()
                });
                boot(status, serial);
            }
            Action::CheckTarget {
                name,
                parameters,
                audit,
            } => {
                self.log
                    .push(format!("check {} {}", parameters.len(), audit.len()));
                self.checks.insert(name, self.problems.clone());
            }
            Action::ReleaseTarget { name } => {
                self.log.push(format!("release {name}"));
                let busy = self.runs.values().any(|run| {
                    run.spec.target_ref.name == name
                        && run.status.as_ref().is_none_or(|s| s.step != Step::Finished)
                });
                assert!(!busy, "{name} is released under a run");
                if let Some(holder) = self.target(&name).status.get_or_insert_default().holder.as_mut() {
                    holder.uid.clear();
                }
            }
            Action::CreateRun(run) => {
                let mut run = *run;
                let name = run.name_any();
                run.metadata.uid = Some(format!("uid of {name}"));
                run.metadata.resource_version = Some("1".into());
                assert!(
                    self.runs.insert(name.clone(), run).is_none(),
                    "{name} is created twice"
                );
                let target = self.runs[&name].spec.target_ref.name.clone();
                let holder = self
                    .target(&target)
                    .status
                    .get_or_insert_default()
                    .holder
                    .get_or_insert_default();
                UID.clone_into(&mut holder.uid);
            }
            Action::DeleteRun {
                name,
                uid,
                resource_version,
            } => {
                self.log.push("delete run".into());
                let run = &self.runs[&name];
                assert_eq!(
                    (run.uid(), run.resource_version()),
                    (Some(uid), Some(resource_version))
                );
                self.runs.remove(&name);
            }
            Action::Event { reason, note, .. } => self.events.push(format!("{reason}: {note}")),
        }
    }

    /// Names of runs that have not ended.
    pub(super) fn open(&self) -> Vec<String> {
        let open = |run: &BenchmarkRun| {
            run.status
                .as_ref()
                .is_none_or(|status| status.step != Step::Finished)
        };
        self.runs
            .iter()
            .filter(|(_, run)| open(run))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Ends a run; `reasons`: why it does not count.
    pub(super) fn end(&mut self, name: &str, reasons: &[&str]) {
        self.boots += 1;
        let boots = self.boots;
        let now = self.now;
        let run = self.runs.get_mut(name).unwrap();
        let spec = &run.spec;
        let boot = spec
            .requires_boot
            .clone()
            .unwrap_or_else(|| format!("pod-{boots}/container"));
        let audit = if spec.cell.audit_setting == "no-audit" {
            1.0
        } else {
            0.85
        };
        // Noise that no two runs share, and the same in every test.
        let noise = noise(spec.visit.sequence, spec.attempt);
        let qps = 1000.0 * f64::from(spec.threads).sqrt() * audit * (1.0 + 0.02 * noise);
        let log = (spec.audit.name != "no-audit").then_some(160_500);
        let environment = (self.surroundings)(run);
        run.status = Some(BenchmarkRunStatus {
            environment: Some(environment),
            step: Step::Finished,
            start_time: Some(Time(now)),
            completion_time: Some(Time(now + SignedDuration::from_secs(20))),
            evidence: Some(Evidence {
                boot_identity: boot,
                settle: SettleEvidence {
                    met: true,
                    ..SettleEvidence::default()
                },
                ..Evidence::default()
            }),
            validity: Some(Validity {
                verdict: if reasons.is_empty() {
                    ValidityVerdict::Valid
                } else {
                    ValidityVerdict::Invalid
                },
                reasons: reasons
                    .iter()
                    .map(|reason| Finding {
                        reason: (*reason).into(),
                        message: "seen in a test".into(),
                    })
                    .collect(),
            }),
            result: Some(RunResult {
                qps_milli: Some((qps * 1000.0) as i64),
                tps_milli: Some((qps * 1000.0 / 16.0) as i64),
                transactions: Some(qps as i64),
                latency_mean_micros: Some((1e9 / qps) as i64),
                latency_p95_micros: Some((2e9 / qps) as i64),
                cpu_nanos_per_statement: Some((1e5 / audit) as i64),
                log_bytes_per_1000_statements: log,
                ..RunResult::default()
            }),
            ..BenchmarkRunStatus::default()
        });
    }

    /// Runs the campaign to its end; `judge` gives the reasons against a run, none if it counts.
    pub(super) fn finish(&mut self, mut judge: impl FnMut(&BenchmarkRun) -> Vec<&'static str>) {
        for _ in 0..2000 {
            self.settle();
            let open = self.open();
            let Some(name) = open.first() else { return };
            let reasons = judge(&self.runs[name]);
            self.end(name, &reasons);
        }
        panic!(
            "the campaign never ends: {:?}",
            self.campaign.status.as_ref().map(|s| &s.progress)
        );
    }

    pub(super) fn condition(&self, type_: &str) -> (String, String, String) {
        let status = self.campaign.status.as_ref().unwrap();
        let found = status.conditions.iter().find(|c| c.type_ == type_);
        found.map_or_else(Default::default, |c| {
            (c.status.clone(), c.reason.clone(), c.message.clone())
        })
    }
}

/// From -0.5 to 0.5, the same in every test (a step of splitmix64).
fn noise(sequence: i32, attempt: i32) -> f64 {
    let mut bits =
        u64::from(sequence.unsigned_abs() * 16 + attempt.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits >> 40) as f64) / f64::from(1 << 24) - 0.5
}

fn boot(status: &mut BenchmarkTargetStatus, serial: i64) {
    status.boot = Some(Boot {
        serial,
        identity: format!("boot-{serial}"),
        ..Boot::default()
    });
    status.conditions = vec![Condition {
        type_: READY.into(),
        status: "True".into(),
        reason: "Running".into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time("2026-03-01T00:00:00Z".parse().unwrap()),
    }];
}
