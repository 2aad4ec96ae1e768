//! What is done about one database instance: a pure function of what the cluster and the server show.
//! It asks nothing itself: where it needs the server's own word, it says so with [`Action::Identify`] and is called
//! again with the answer.

pub mod condition;
mod external;
#[cfg(test)]
mod external_tests;
pub mod holder;
#[cfg(test)]
mod laws;
mod pod;
#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use crds::names::condition::{READY, RECONCILING, STALLED};
use crds::target::{BenchmarkTargetStatus, Boot, BootFailure, Expect, IdleTargets, RouteType, TargetType};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use external::{
    CaptureAnswer, RestoreAnswer, boot_identity as borrowed_boot_identity,
    split_boot_identity as split_borrowed_boot_identity,
};
use pod::AGENT_ENDED;
pub use pod::{ContainerState, Exit, PodView, Problem, attention};
pub use view::{Borrowed, Part, Parts, ServerAnswer, ServerFound, TargetView};

/// How often a server that starts is asked whether it answers.
pub const ASK_EVERY: Duration = Duration::from_millis(150);
/// A restart that takes longer than this is shown in the conditions; a usual one costs no write of its own.
const SHOW_AFTER: SignedDuration = SignedDuration::from_secs(15);
/// How long a login may be refused after the server's start before the boot counts as failed.
const REFUSED_FOR: SignedDuration = SignedDuration::from_secs(30);
/// How long a pod may wait for a node or an image before a boot that somebody waits for counts as failed.
const START_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// How long after a failed boot that nobody asked for the next one is tried.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// A pod that ends younger than this is not replaced at once, so that a server that crashes again and again is not
/// started faster than it can be looked at.
const REPLACE_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// What to do now: at most one thing, then look again.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make one of the objects around the pod.
    Create(Part),
    /// Start the server.
    CreatePod {
        /// Boot request that it answers.
        serial: i64,
        /// Configuration that it starts with.
        configuration_hash: String,
        /// Node on which it must run, once it ever ran on one.
        node: Option<String>,
    },
    /// Stop the server; the UID is the precondition.
    DeletePod {
        /// UID of the pod.
        uid: String,
        /// The pod answers a later request than the one seen: look at the live target first.
        newer_than_request: bool,
    },
    /// Ask the server who it is.
    Identify {
        /// Address of the pod, or host of a borrowed server.
        address: String,
    },
    /// Keep a borrowed target from going away before what its server had is put back.
    AddFinalizer,
    /// Nothing is left to put back.
    RemoveFinalizer,
    /// Borrow the server and read what it has.
    Capture,
    /// Put back what the server had.
    Restore,
    /// Restart a borrowed server by this route.
    RestartBy(RouteType),
}

/// What follows from a view.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPlan {
    /// The status to write first, if it differs from the one stored.
    pub status: BenchmarkTargetStatus,
    /// The one thing to do then.
    pub action: Option<Action>,
    /// When to look again if nothing changes; `None`: only when something changes.
    pub requeue: Option<Duration>,
}

/// Identity of a boot of a managed server: pod and container, so that a container restarted in place differs.
pub fn boot_identity(pod_uid: &str, container_id: &str) -> String {
    format!("{pod_uid}/{container_id}")
}

/// Pod UID and container ID of a [`boot_identity`].
pub fn split_boot_identity(identity: &str) -> Option<(&str, &str)> {
    identity.split_once('/')
}

/// Decides about one target.
pub fn plan(view: &TargetView, now: Timestamp) -> TargetPlan {
    let mut planner = Planner {
        view,
        now,
        status: view.status.clone(),
    };
    planner.status.observed_generation = Some(view.generation);
    let (action, requeue) = planner.decide();
    TargetPlan {
        status: planner.status,
        action,
        requeue,
    }
}

type Decision = (Option<Action>, Option<Duration>);

const WAIT_FOR_CHANGE: Decision = (None, None);

struct Planner<'a> {
    view: &'a TargetView,
    now: Timestamp,
    status: BenchmarkTargetStatus,
}

impl Planner<'_> {
    fn decide(&mut self) -> Decision {
        let view = self.view;
        if let (TargetType::External, Some(external)) = (view.spec.type_, &view.spec.external) {
            return self.external(external);
        }
        if view.terminating {
            self.status.observed_generation = view.status.observed_generation;
            return WAIT_FOR_CHANGE;
        }
        let Some(managed) = view
            .spec
            .managed
            .as_ref()
            .filter(|_| view.spec.type_ == TargetType::Managed)
        else {
            self.stalled(
                "Incomplete",
                "the target has neither a managed nor an external part: give the one that its type names",
            );
            return WAIT_FOR_CHANGE;
        };
        if view.holder_gone {
            holder::release(&mut self.status);
        }
        if let Some(message) = &view.refused {
            self.stalled("Refused", message);
            return WAIT_FOR_CHANGE;
        }
        if let Some(message) = &view.name_taken {
            self.not_ready("WaitingForCleanup", message);
            return (None, Some(Duration::from_secs(5)));
        }
        let held = holder::held(self.status.holder.as_ref());
        // A server that was never asked is started once to learn what it can do, also where idle ones are stopped.
        let wanted = held || managed.idle == IdleTargets::Keep || self.status.capabilities.is_none();
        match &view.pod {
            None => self.without_pod(wanted, held),
            Some(pod) if pod.deleted_at.is_some() => self.ending(pod, wanted),
            Some(pod) => self.with_pod(pod, wanted, held),
        }
    }

    /// The boot request that counts now; 0 if there was never one.
    fn wanted_serial(&self) -> i64 {
        holder::request(self.status.holder.as_ref()).map_or(0, |boot| boot.serial)
    }

    fn without_pod(&mut self, wanted: bool, held: bool) -> Decision {
        let serial = self.wanted_serial();
        if !wanted {
            self.status.boot = None;
            self.ready(
                "Stopped",
                "the server is stopped while nobody uses it; its volume stays",
            );
            return WAIT_FOR_CHANGE;
        }
        let hash = match &self.view.configuration {
            Ok(hash) => hash.clone(),
            Err(message) => {
                self.status.boot = None;
                if held {
                    self.boot_failed(serial, "ConfigurationRefused", message);
                } else {
                    self.stalled("ConfigurationRefused", message);
                }
                return WAIT_FOR_CHANGE;
            }
        };
        // A restart that was asked for keeps the last boot in the status until the next one is up (one write less);
        // a server that went away by itself is taken out at once, so that nobody relies on it.
        if self
            .status
            .boot
            .as_ref()
            .is_some_and(|boot| boot.serial == serial)
        {
            self.status.boot = None;
            self.not_ready("Restarting", "the server's pod is gone; it is started again");
        } else if condition::reason(&self.status.conditions, READY).is_none()
            || condition::is_true(&self.status.conditions, STALLED)
        {
            self.not_ready("Booting", "the server is being started");
        }
        let action = match self.view.parts.missing() {
            Some(part) => Action::Create(part),
            None => Action::CreatePod {
                serial,
                configuration_hash: hash,
                node: self.status.node.clone(),
            },
        };
        (Some(action), None)
    }

    fn ending(&mut self, pod: &PodView, wanted: bool) -> Decision {
        let since = pod.deleted_at.unwrap_or(self.now);
        if let Some(boot) = &self.status.boot
            && boot.serial == self.wanted_serial()
            && boot.pod_uid.as_deref() == Some(&pod.uid)
        {
            // Nobody asked for this end.
            self.status.boot = None;
            let reason = if wanted { "Restarting" } else { "Stopping" };
            self.not_ready(reason, "the server's pod is ending");
        }
        self.show_if_slow(since, "the server is shutting down before its next start")
    }

    fn with_pod(&mut self, pod: &PodView, wanted: bool, held: bool) -> Decision {
        let serial = self.wanted_serial();
        if !wanted || (held && pod.serial < serial) {
            return delete(pod, false);
        }
        if held && pod.serial > serial {
            return delete(pod, true);
        }
        let ended = pod.ended();
        if pod.outdated && (!held || ended.is_some()) {
            return delete(pod, false);
        }
        if let Some(problem) = ended {
            return self.ended(pod, &problem, held);
        }
        // The agent is part of a boot: nothing can be proved without it.
        match (&pod.database, &pod.agent) {
            (ContainerState::Running { id, started_at }, ContainerState::Running { .. }) => {
                self.running(pod, id, *started_at)
            }
            _ => self.starting(pod, held),
        }
    }

    /// The pod has ended without being asked to: a boot that failed, or a crash after one that had succeeded.
    fn ended(&mut self, pod: &PodView, problem: &Problem, held: bool) -> Decision {
        // Without its agent a server cannot be measured, but it need not be stopped under whatever uses it now.
        let agent_only = problem.reason == AGENT_ENDED;
        let booted = self
            .status
            .boot
            .as_ref()
            .is_some_and(|boot| boot.pod_uid.as_deref() == Some(&pod.uid));
        if booted {
            self.status.boot = None;
        }
        if booted && !agent_only {
            self.not_ready(
                "Crashed",
                &format!(
                    "the server ended by itself ({}) and is started again: {}",
                    problem.reason, problem.message
                ),
            );
        }
        let failed_before = self
            .status
            .boot_failure
            .as_ref()
            .is_some_and(|failure| failure.serial == pod.serial);
        let crashed = !agent_only && condition::reason(&self.status.conditions, READY) == Some("Crashed");
        if crashed && !failed_before {
            return match remaining(pod.created_at, REPLACE_AFTER, self.now) {
                None => delete(pod, false),
                wait => (None, wait),
            };
        }
        self.boot_failed(pod.serial, &problem.reason, &problem.message);
        if held {
            return WAIT_FOR_CHANGE;
        }
        match remaining(pod.created_at, RETRY_AFTER, self.now) {
            None => delete(pod, false),
            wait => (None, wait),
        }
    }

    fn starting(&mut self, pod: &PodView, held: bool) -> Decision {
        let Some(problem) = pod.problem() else {
            return self.show_if_slow(pod.created_at, "the server's pod is being started");
        };
        // Back-off texts change from try to try: the first one says it all.
        if condition::reason(&self.status.conditions, READY) != Some(problem.reason.as_str()) {
            self.not_ready(&problem.reason, &problem.message);
        }
        let wait = remaining(pod.created_at, START_WITHIN, self.now);
        if held && wait.is_none() {
            self.boot_failed(pod.serial, &problem.reason, &problem.message);
        }
        (None, wait)
    }

    fn running(&mut self, pod: &PodView, container_id: &str, started_at: Option<Timestamp>) -> Decision {
        let identity = boot_identity(&pod.uid, container_id);
        if self
            .status
            .boot
            .as_ref()
            .is_some_and(|boot| boot.identity == identity && boot.serial == pod.serial)
        {
            self.conditions_of_running();
            return WAIT_FOR_CHANGE;
        }
        let Some(address) = &pod.address else {
            return (None, Some(ASK_EVERY));
        };
        match &self.view.server {
            ServerAnswer::NotAsked => (
                Some(Action::Identify {
                    address: address.clone(),
                }),
                None,
            ),
            ServerAnswer::Silent => {
                let (action, _) = self.show_if_slow(pod.created_at, "the server does not answer yet");
                (action, Some(ASK_EVERY))
            }
            ServerAnswer::Refused(message) => {
                let since = started_at.unwrap_or(pod.created_at);
                if remaining(since, REFUSED_FOR, self.now).is_none() {
                    self.boot_failed(pod.serial, "LoginRefused", message);
                    return (None, Some(Duration::from_secs(5)));
                }
                (None, Some(Duration::from_secs(1)))
            }
            ServerAnswer::Identity(server) => {
                self.booted(pod, identity, server);
                WAIT_FOR_CHANGE
            }
        }
    }

    fn booted(&mut self, pod: &PodView, identity: String, server: &ServerFound) {
        let started = Timestamp::from_second(server.started).unwrap_or(self.now);
        self.status.boot = Some(Boot {
            serial: pod.serial,
            identity,
            configuration_hash: pod.configuration_hash.clone(),
            address: pod.address.clone().unwrap_or_default(),
            pod_uid: Some(pod.uid.clone()),
            image_id: pod.image_id.clone(),
            started_at: Some(Time(started)),
            clean_shutdown: server.clean_shutdown,
        });
        self.status.boot_failure = None;
        self.status.version = Some(server.version.clone());
        self.status.flavour = Some(server.flavour.clone());
        self.status.server_identity = Some(server.server_identity.clone());
        self.status.capabilities = Some(server.capabilities.clone());
        if self.status.node.is_none() {
            self.status.node.clone_from(&pod.node);
        }
        self.conditions_of_running();
    }

    fn conditions_of_running(&mut self) {
        let version = self.status.version.clone().unwrap_or_default();
        let flavour = self.status.flavour.clone().unwrap_or_default();
        match unexpected(self.view.spec.expect.as_ref(), &flavour, &version) {
            Some(message) => self.stalled("UnexpectedServer", &message),
            None => self.ready("Running", &format!("{flavour} {version} answers")),
        }
    }

    /// Shows in the conditions what takes long; what ends soon is not worth a write.
    fn show_if_slow(&mut self, since: Timestamp, message: &str) -> Decision {
        let wait = remaining(since, SHOW_AFTER, self.now);
        if wait.is_none() {
            self.not_ready("Booting", message);
        }
        (None, wait)
    }

    fn boot_failed(&mut self, serial: i64, reason: &str, message: &str) {
        let message = condition::clip(message, 512);
        self.status.boot_failure = Some(BootFailure {
            serial,
            reason: reason.to_owned(),
            message: message.clone(),
        });
        self.stalled("BootFailed", &format!("{reason}: {message}"));
    }

    fn ready(&mut self, reason: &str, message: &str) {
        self.set(READY, true, reason, message);
        condition::remove(&mut self.status.conditions, RECONCILING);
        condition::remove(&mut self.status.conditions, STALLED);
    }

    fn not_ready(&mut self, reason: &str, message: &str) {
        self.set(READY, false, reason, message);
        self.set(RECONCILING, true, reason, message);
        condition::remove(&mut self.status.conditions, STALLED);
    }

    fn stalled(&mut self, reason: &str, message: &str) {
        self.set(READY, false, reason, message);
        self.set(STALLED, true, reason, message);
        condition::remove(&mut self.status.conditions, RECONCILING);
    }

    fn set(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        let conditions = &mut self.status.conditions;
        condition::set(
            conditions,
            type_,
            holds,
            reason,
            message,
            self.view.generation,
            self.now,
        );
    }
}

fn delete(pod: &PodView, newer_than_request: bool) -> Decision {
    (
        Some(Action::DeletePod {
            uid: pod.uid.clone(),
            newer_than_request,
        }),
        None,
    )
}

/// What is left of a span that began then; `None` when it is over.
fn remaining(since: Timestamp, span: SignedDuration, now: Timestamp) -> Option<Duration> {
    let left = span - now.duration_since(since);
    // At most the whole span, also where the other clock is ahead of ours.
    left.is_positive().then(|| left.min(span).unsigned_abs())
}

/// Why a server is not what was expected.
fn unexpected(expect: Option<&Expect>, flavour: &str, version: &str) -> Option<String> {
    let expect = expect?;
    if let Some(wanted) = &expect.flavour
        && !wanted.eq_ignore_ascii_case(flavour)
    {
        return Some(format!(
            "expect.flavour is {wanted} and the server is {flavour}: correct one of them"
        ));
    }
    if let Some(wanted) = &expect.version
        && !version.starts_with(wanted.as_str())
    {
        return Some(format!(
            "expect.version is {wanted} and the server is {version}: correct one of them"
        ));
    }
    None
}
