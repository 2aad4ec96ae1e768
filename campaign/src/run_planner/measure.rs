//! While load is applied: nothing, until the container ends. Then the report is judged.

use std::collections::BTreeSet;

use crds::names::MEETING_PORT;
use crds::runner::{AuditLogPosition, RunOrder, RunOutcome};
use crds::together::Meeting;

use super::together::{self, Whole};
use super::{Action, Decision, EndedPod, JobView, Planner, RunnerState, act};
use crate::naming;
use crate::target_planner::condition;

/// Seconds that a Job may need beyond its load: for a node, an image, thread starts and the evidence afterwards.
const ALLOWANCE_SECONDS: i64 = 420;

/// Seconds of load: warm-up and window.
pub fn load_seconds(run: &crds::load::RunSettings) -> (u32, u32) {
    let whole =
        |d: &kube::core::Duration| u32::try_from(std::time::Duration::from(*d).as_secs()).unwrap_or(u32::MAX);
    (whole(&run.warmup), whole(&run.duration))
}

/// `activeDeadlineSeconds` of the Job that applies load.
pub fn job_deadline_seconds(run: &crds::load::RunSettings) -> i64 {
    let (warmup, duration) = load_seconds(run);
    i64::from(warmup) + i64::from(duration) + ALLOWANCE_SECONDS
}

/// Name of the headless Service under which the load generators of a target's runs find their first one. One for all
/// runs: only the pods' own names differ.
pub fn meeting_service(target: &str) -> String {
    naming::meeting_name(target)
}

impl Planner<'_> {
    pub(super) fn measuring(&mut self) -> Decision {
        let deadline = u64::try_from(job_deadline_seconds(&self.view.run.spec.run)).unwrap_or(0);
        let until_deadline = (None, Some(std::time::Duration::from_secs(deadline + 60)));
        match &self.view.job {
            JobView::Absent => self.start(),
            JobView::Active { pod } => {
                if let Some(RunnerState::Pending(Some(problem))) = pod.as_ref().map(|p| &p.state) {
                    // Shown once: no load is applied yet, so the write disturbs nothing.
                    self.status.waiting_for = Some(format!("the load generator's pod: {}", problem.reason));
                    let (reason, message) = (problem.reason.clone(), problem.message.clone());
                    if condition::reason(&self.status.conditions, crds::names::condition::READY)
                        != Some(&reason)
                    {
                        self.set(crds::names::condition::READY, true, &reason, &message);
                    }
                }
                until_deadline
            }
            JobView::Lost(finding) => self.invalid(&finding.reason, &finding.message),
            JobView::Ended(pods) => {
                let spec = &self.view.run.spec;
                let (_, window) = load_seconds(&spec.run);
                match together::whole(pods, spec.load_generator.count, window) {
                    Ok(whole) => self.reported(&whole, pods),
                    Err(finding) => self.invalid(&finding.reason, &finding.message),
                }
            }
        }
    }

    /// The proof is in the status: now the Job. If it was made before and is gone, the fence in the database lets no
    /// second one measure.
    fn start(&mut self) -> Decision {
        let Some(target) = &self.view.target else {
            return self.invalid("TargetLost", "the BenchmarkTarget is gone");
        };
        let proved = self.status.evidence.as_ref().map(|e| e.boot_identity.as_str());
        let boot = target.status.boot.as_ref();
        let (Some(boot), Some(connection)) = (boot, &target.connection) else {
            return self.invalid("BootChanged", "the server ended between its proof and the load");
        };
        if proved != Some(boot.identity.as_str()) {
            return self.invalid(
                "BootChanged",
                "the server was restarted between its proof and the load",
            );
        }
        let order = self.order(
            connection.clone(),
            boot.started_at.as_ref().map(|t| t.0.as_second()),
        );
        act(Action::CreateJob {
            name: self.view.run.name.clone(),
            order: Box::new(order),
        })
    }

    fn order(&self, connection: crds::runner::Connection, server_started: Option<i64>) -> RunOrder {
        let run = &self.view.run;
        let spec = &run.spec;
        let (warmup_seconds, duration_seconds) = load_seconds(&spec.run);
        let interval = std::time::Duration::from(spec.run.report_interval).as_secs();
        let audit = self.status.evidence.as_ref().map(|e| &e.audit);
        let audit_log = audit.and_then(|a| {
            Some(AuditLogPosition {
                file: a.log_file.clone()?,
                offset: a.log_offset.unwrap_or_default(),
            })
        });
        RunOrder {
            connection,
            run_uid: run.uid.clone(),
            epoch: self.status.epoch.unwrap_or_default(),
            workload: spec.workload.clone(),
            rows_per_table: spec.rows_per_table,
            threads: spec.threads,
            warmup_seconds,
            duration_seconds,
            report_interval_seconds: u32::try_from(interval).unwrap_or(1).max(1),
            rate: spec.run.load.rate,
            seed: spec.seed,
            server_started,
            parameters: spec.parameters.clone(),
            audit: spec.audit.clone(),
            audit_log,
            meeting: self.meeting(),
        }
    }

    /// Where several pods meet: at the first one, whose name in DNS is made of its Job's name and its Service's.
    fn meeting(&self) -> Option<Meeting> {
        let run = &self.view.run;
        let count = run.spec.load_generator.count;
        let target = self.view.target.as_ref().filter(|_| count > 1)?;
        Some(Meeting {
            count,
            host: format!("{}-0.{}", run.name, meeting_service(&target.name)),
            port: MEETING_PORT,
        })
    }

    /// The runner's last word: judged, written, never changed.
    fn reported(&mut self, whole: &Whole, pods: &[EndedPod]) -> Decision {
        let report = &whole.report;
        let run = &self.view.run;
        // A runner that could not read its orders knows of no run: its message says why.
        let knows_its_run = !report.run_uid.is_empty() || report.outcome == RunOutcome::Completed;
        if knows_its_run && (report.run_uid != run.uid || Some(report.epoch) != self.status.epoch) {
            let message = format!(
                "the report speaks of run {} and epoch {}",
                report.run_uid, report.epoch
            );
            return self.invalid("ReportMismatch", &message);
        }
        let judgement = super::judge::judge(self.view, report, &whole.generators);
        if let Some(environment) = &mut self.status.environment {
            environment.client_version.clone_from(&report.client_version);
            environment.runner_image_id = pods.first().and_then(|ended| ended.pod.image_id.clone());
            let nodes: BTreeSet<&str> = pods
                .iter()
                .filter_map(|ended| ended.pod.node.as_deref())
                .collect();
            let nodes = nodes.into_iter().collect::<Vec<_>>().join(", ");
            environment.generator_node = Some(nodes).filter(|nodes| !nodes.is_empty());
        }
        let mut timings = self.status.timings.take().unwrap_or_default();
        let millis = |from: Option<i64>, to: Option<i64>| Some(to? - from?).filter(|m| *m >= 0);
        let proved_at = self
            .status
            .evidence
            .as_ref()
            .and_then(|e| e.proved_at.as_ref())
            .map(|t| t.0.as_millisecond());
        timings.job_start_millis = millis(proved_at, report.load_started_millis);
        timings.collect_millis = millis(report.load_ended_millis, Some(self.now.as_millisecond()));
        self.status.timings = Some(timings);
        self.status.result.clone_from(&report.result);
        self.status.series.clone_from(&report.series);
        self.finish(judgement)
    }
}
