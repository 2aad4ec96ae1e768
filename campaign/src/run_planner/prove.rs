//! From a target that is ours to load: the boot, the data, the proof.

use std::time::Duration;

use crds::run::{Step, Timings};
use crds::runner::{PrepareOrder, RunOutcome};
use crds::target::{Boot, BootRequest};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    ASK_AGAIN, Action, Decision, Establishment, JobView, PREPARE_ATTEMPTS, Planner, Proven, TargetSeen,
    UNREACHABLE_FOR, WAIT_FOR_CHANGE, act, dataset_hash, together,
};
use crate::target_planner::condition::clip;

impl Planner<'_> {
    /// Steps Restarting and Proving: the boot wanted, then the proof on it.
    pub(super) fn proving(&mut self) -> Decision {
        let view = self.view;
        let Some(target) = &view.target else {
            return self.invalid("TargetLost", "the BenchmarkTarget is gone");
        };
        if !self.holds_target(target) {
            return self.invalid("TargetLost", "somebody else was given the BenchmarkTarget");
        }
        if !target.may_be_changed() {
            // The target's controller looks first at what the server has.
            return WAIT_FOR_CHANGE;
        }
        let boot = match self.boot(target) {
            Ok(boot) => boot,
            Err(decision) => return decision,
        };
        match &view.established {
            None => act(Action::Establish {
                boot_identity: boot.identity.clone(),
            }),
            Some(Establishment::Ready(proven)) if proven.boot_identity != boot.identity => {
                // The server was restarted while it was being proved: proved again, on the new boot.
                act(Action::Establish {
                    boot_identity: boot.identity.clone(),
                })
            }
            Some(Establishment::Ready(proven)) => self.proved(target, boot, proven),
            Some(Establishment::DatasetNeeded { found }) => self.prepare(found),
            Some(Establishment::NotInForce(problems)) => {
                let words: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
                let message = if words.is_empty() {
                    "a setting did not read back".to_owned()
                } else {
                    words.join("; ")
                };
                self.invalid("SettingsNotInForce", &message)
            }
            Some(Establishment::Refused(finding)) => self.invalid(&finding.reason, &finding.message),
            Some(Establishment::Fenced { holder }) => {
                let message = format!(
                    "the fence in the database belongs to run {holder}, which is not known to have ended"
                );
                self.again(boot, "Fenced", &message, ASK_AGAIN * 5)
            }
            Some(Establishment::Started) => {
                // Another operator has written the proof; a picture that is up to date shows it.
                let message = "a runner has started for this run, by somebody else's proof";
                self.again(boot, "AlreadyStarted", message, ASK_AGAIN * 5)
            }
            Some(Establishment::Unreachable(message)) => {
                self.again(boot, "DatabaseUnreachable", message, ASK_AGAIN)
            }
        }
    }

    /// The boot on which this run is measured, or what to do while there is none.
    fn boot<'t>(&mut self, target: &'t TargetSeen) -> Result<&'t Boot, Decision> {
        let spec = &self.view.run.spec;
        let boot = target.status.boot.as_ref();
        if !spec.restart_before {
            return match (boot, &spec.requires_boot) {
                (Some(boot), None) => Ok(boot),
                (Some(boot), Some(wanted)) if boot.identity == *wanted => Ok(boot),
                (None, None) => self.await_boot(target),
                (_, Some(_)) => {
                    let message = "the server is not the boot that the first run of the visit recorded";
                    Err(self.invalid("BootChanged", message))
                }
            };
        }
        match (boot, self.status.boot_serial) {
            (Some(boot), Some(wanted)) if boot.serial == wanted => Ok(boot),
            (Some(boot), Some(wanted)) if boot.serial > wanted => {
                Err(self.invalid("BootChanged", "the server was restarted for somebody else"))
            }
            _ => self.await_boot(target),
        }
    }

    /// Nothing to do until the target's controller has booted the server, or given up.
    fn await_boot<'t>(&mut self, target: &TargetSeen) -> Result<&'t Boot, Decision> {
        let asked = target.status.holder.as_ref().and_then(|h| h.boot.as_ref());
        let wanted = self.status.boot_serial.or(asked.map(|b: &BootRequest| b.serial));
        match &target.status.boot_failure {
            Some(failure) if wanted.is_none_or(|serial| failure.serial == serial) => {
                let message = format!("{}: {}", failure.reason, failure.message);
                Err(self.invalid("BootFailed", &message))
            }
            _ => Err(WAIT_FOR_CHANGE),
        }
    }

    /// Tries again until the time for it is over.
    fn again(&mut self, boot: &Boot, reason: &str, message: &str, after: Duration) -> Decision {
        let limit = UNREACHABLE_FOR + Duration::from(self.view.run.spec.restart.settle.timeout);
        let since = self.proving_since(boot);
        let waited = u64::try_from(self.now.duration_since(since).as_secs()).unwrap_or(0);
        if waited < limit.as_secs() {
            return (None, Some(after));
        }
        let message = format!("given up after {waited} s: {message}");
        self.invalid(reason, &message)
    }

    /// When proving could begin: the latest of taking the target, the boot, and the end of making the data.
    fn proving_since(&self, boot: &Boot) -> Timestamp {
        let taken = self.status.start_time.as_ref().map(|t| t.0);
        let booted = boot.started_at.as_ref().map(|t| t.0);
        let prepared = match &self.view.prepare {
            JobView::Ended(pods) => pods.iter().filter_map(|pod| pod.finished_at).max(),
            _ => None,
        };
        [taken, booted, prepared]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(self.now)
    }

    /// Everything is in force: that goes into the status, and only then the Job is made.
    fn proved(&mut self, target: &TargetSeen, boot: &Boot, proven: &Proven) -> Decision {
        if target.status.dataset != proven.evidence.dataset {
            let mut status = target.status.clone();
            status.dataset.clone_from(&proven.evidence.dataset);
            return act(Action::RecordDataset(Box::new(status)));
        }
        let mut evidence = proven.evidence.clone();
        evidence.boot_identity.clone_from(&boot.identity);
        evidence.proved_at = Some(Time(self.now));
        evidence.clean_shutdown = boot.clean_shutdown;
        if let Some(log) = &proven.audit_log {
            evidence.audit.log_file = Some(log.file.clone());
            evidence.audit.log_offset = Some(log.offset);
        }
        let mut environment = proven.environment.clone();
        if environment.server_version.is_none() {
            environment.server_version.clone_from(&target.status.version);
        }
        environment.database_image_id.clone_from(&boot.image_id);
        if environment.database_node.is_none() {
            environment.database_node.clone_from(&target.status.node);
        }
        let mut timings = self.status.timings.take().unwrap_or_default();
        timings.proving_millis = Some(proven.took_millis);
        if self.view.run.spec.restart_before && timings.restart_millis.is_none() {
            timings.restart_millis = self.restart_millis(proven);
        }
        self.status.timings = Some(timings);
        self.status.evidence = Some(evidence);
        self.status.environment = Some(environment);
        self.status.boot_serial = Some(boot.serial);
        self.status.job_name = Some(self.view.run.name.clone());
        self.step(
            Step::Measuring,
            "load is applied; nothing else touches the database",
        );
        WAIT_FOR_CHANGE
    }

    /// From taking the target to a server that answered: what is left of the time until now without the proof.
    fn restart_millis(&self, proven: &Proven) -> Option<i64> {
        if self.status.prepares.is_some() {
            return self
                .status
                .timings
                .as_ref()
                .and_then(|t: &Timings| t.restart_millis);
        }
        let start = self.status.start_time.as_ref()?;
        let millis = i64::try_from(self.now.duration_since(start.0).as_millis()).ok()?;
        Some((millis - proven.took_millis).max(0))
    }

    /// The data must be made (again).
    fn prepare(&mut self, found: &str) -> Decision {
        let made = self.status.prepares.unwrap_or(0);
        if made >= PREPARE_ATTEMPTS {
            let message = format!("the data was made {made} times and is still not what is wanted: {found}");
            return self.invalid("DatasetNotPrepared", &message);
        }
        self.begin_prepare(made + 1, &format!("the data is being made: {found}"))
    }

    fn begin_prepare(&mut self, attempt: i32, message: &str) -> Decision {
        self.status.prepares = Some(attempt);
        self.status.prepare_job_name = Some(format!("{}-prepare-{attempt}", self.view.run.name));
        self.step(Step::PreparingDataset, &clip(message, 512));
        WAIT_FOR_CHANGE
    }

    /// Step `PreparingDataset`: one Job after another, until one has made the data.
    pub(super) fn preparing(&mut self) -> Decision {
        let view = self.view;
        let Some(target) = &view.target else {
            return self.invalid("TargetLost", "the BenchmarkTarget is gone");
        };
        if !self.holds_target(target) {
            return self.invalid("TargetLost", "somebody else was given the BenchmarkTarget");
        }
        match &view.prepare {
            JobView::Active { .. } => WAIT_FOR_CHANGE,
            JobView::Absent => {
                let (Some(name), Some(connection)) = (&self.status.prepare_job_name, &target.connection)
                else {
                    return WAIT_FOR_CHANGE;
                };
                let order = PrepareOrder {
                    connection: connection.clone(),
                    run_uid: view.run.uid.clone(),
                    epoch: self.status.epoch.unwrap_or_default(),
                    workload: view.run.spec.workload.clone(),
                    rows_per_table: view.run.spec.rows_per_table,
                    dataset_hash: dataset_hash(view),
                };
                act(Action::CreatePrepareJob {
                    name: name.clone(),
                    order: Box::new(order),
                })
            }
            JobView::Lost(finding) => {
                self.prepare_failed(&format!("{}: {}", finding.reason, finding.message))
            }
            JobView::Ended(pods) => match together::whole(pods, 1, 0) {
                Ok(told) if told.report.outcome == RunOutcome::Completed => self.prepared(target),
                Ok(told) => {
                    self.prepare_failed(&format!("{:?}: {}", told.report.outcome, told.report.message))
                }
                Err(finding) => self.prepare_failed(&finding.message),
            },
        }
    }

    /// The data is there: measured on a fresh boot where this run has one of its own.
    fn prepared(&mut self, target: &TargetSeen) -> Decision {
        if !self.view.run.spec.restart_before {
            self.step(
                Step::Proving,
                "the data is made; settings are brought in force and proved",
            );
            return WAIT_FOR_CHANGE;
        }
        let asked = target
            .status
            .holder
            .as_ref()
            .and_then(|h| h.boot.as_ref())
            .map(|b| b.serial);
        if asked > self.status.boot_serial {
            self.status.boot_serial = asked;
            self.step(
                Step::Restarting,
                "the data is made; the server is being restarted",
            );
            return WAIT_FOR_CHANGE;
        }
        let mut status = target.status.clone();
        crate::target_planner::holder::ask_boot(&mut status, self.boot_wanted());
        act(Action::RequestBoot(Box::new(status)))
    }

    fn prepare_failed(&mut self, why: &str) -> Decision {
        let made = self.status.prepares.unwrap_or(0);
        if made >= PREPARE_ATTEMPTS {
            return self.invalid("PrepareFailed", why);
        }
        self.begin_prepare(
            made + 1,
            &format!("making the data failed and is tried again: {why}"),
        )
    }
}
