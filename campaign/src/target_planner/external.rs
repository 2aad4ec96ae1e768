//! What is done about one borrowed database: what it had is captured before anything may be changed, and put back as soon
//! as nobody holds it. The finalizer is there exactly as long as there is something to put back.

use std::time::Duration;

use crds::names::condition::{ORIGINAL_STATE_RESTORED, READY};
use crds::target::{Boot, External, RouteType};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    ASK_EVERY, Action, Decision, Planner, ServerAnswer, ServerFound, WAIT_FOR_CHANGE, condition, holder,
};

/// How often a server that does not answer, or refuses, is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(15);
/// How often putting back is tried again where something is in the way.
const RESTORE_AGAIN: Duration = Duration::from_secs(30);
/// How often it is looked whether the last load generator has ended.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How long a restart may take until the server is back.
const BACK_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// Seconds by which the start of two boots differs at least; less is the uncertainty of one boot's.
const OTHER_START: i64 = 2;

/// What came of looking at what the server has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CaptureAnswer {
    /// It was not looked.
    #[default]
    NotAsked,
    /// It could not be looked, in words.
    Failed(String),
    /// What will be put back, and mechanisms that record and may not be switched.
    Captured(Box<crds::target::OriginalState>, Vec<crds::audit::AuditType>),
}

/// What came of putting back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RestoreAnswer {
    /// It was not tried.
    #[default]
    NotAsked,
    /// A load generator still runs; its name.
    Busy(String),
    /// It could not be tried to the end, in words.
    Failed(String),
    /// It was; what is still not as it was, with the statement that a person can run.
    Done(Vec<(String, String)>),
}

/// Identity of a boot of a borrowed server.
pub fn boot_identity(server: &ServerFound, host: &str) -> String {
    format!("{}@{host}/{}", server.server_identity, server.started)
}

/// Server identity, host and start (seconds since 1970) of a [`boot_identity`]; `None` for a managed server's.
pub fn split_boot_identity(identity: &str) -> Option<(&str, &str, u64)> {
    let (server, rest) = identity.split_once('@')?;
    let (host, started) = rest.rsplit_once('/')?;
    Some((server, host, started.parse().ok()?))
}

impl Planner<'_> {
    pub(super) fn external(&mut self, external: &External) -> Decision {
        let view = self.view;
        if view.holder_gone {
            holder::release(&mut self.status);
        }
        let held = holder::held(self.status.holder.as_ref());
        // Borrowing is undone as well where a crash came between it and the first look.
        let borrowed = view.borrowed.finalized || self.status.original_state.is_some();
        if borrowed && (view.terminating || !held) {
            return self.put_back();
        }
        if view.terminating {
            return WAIT_FOR_CHANGE;
        }
        if let Some(message) = &view.refused {
            self.stalled("Refused", message);
            return WAIT_FOR_CHANGE;
        }
        if view.status.observed_generation != Some(view.generation) && !held {
            // It may be another server now.
            self.status.boot = None;
        }
        if self.status.boot.is_none() {
            return self.get_to_know(external);
        }
        if !held {
            self.conditions_of_borrowed();
            return WAIT_FOR_CHANGE;
        }
        if self.status.original_state.is_none() {
            return self.capture();
        }
        let wanted = self.wanted_serial();
        let serial = self.status.boot.as_ref().map_or(0, |boot| boot.serial);
        if serial < wanted {
            return self.restart(external, wanted);
        }
        self.conditions_of_borrowed();
        WAIT_FOR_CHANGE
    }

    /// Asks the server who it is.
    fn get_to_know(&mut self, external: &External) -> Decision {
        match &self.view.server {
            ServerAnswer::NotAsked => (
                Some(Action::Identify {
                    address: external.host.clone(),
                }),
                None,
            ),
            ServerAnswer::Silent => {
                self.not_ready("Unreachable", "the server does not answer; it is asked again");
                (None, Some(ASK_AGAIN))
            }
            ServerAnswer::Refused(message) => {
                self.stalled("LoginRefused", message);
                (None, Some(ASK_AGAIN))
            }
            ServerAnswer::Identity(server) => {
                self.known(external, server, self.wanted_serial());
                if holder::held(self.status.holder.as_ref()) {
                    return (None, Some(Duration::ZERO));
                }
                WAIT_FOR_CHANGE
            }
        }
    }

    fn known(&mut self, external: &External, server: &ServerFound, serial: i64) {
        let started = Timestamp::from_second(server.started).unwrap_or(self.now);
        self.status.boot = Some(Boot {
            serial,
            identity: boot_identity(server, &external.host),
            address: external.host.clone(),
            started_at: Some(Time(started)),
            clean_shutdown: server.clean_shutdown,
            ..Boot::default()
        });
        self.status.boot_failure = None;
        self.status.version = Some(server.version.clone());
        self.status.flavour = Some(server.flavour.clone());
        self.status.server_identity = Some(server.server_identity.clone());
        self.status.capabilities = Some(server.capabilities.clone());
        self.conditions_of_borrowed();
    }

    fn conditions_of_borrowed(&mut self) {
        let held = holder::held(self.status.holder.as_ref());
        if held && self.status.original_state.is_none() {
            self.not_ready(
                "Capturing",
                "what the server has is read before anything is changed",
            );
        } else {
            self.conditions_of_running();
        }
    }

    /// Before anything may be changed: the finalizer, then what the server has, in the status.
    fn capture(&mut self) -> Decision {
        if !self.view.borrowed.finalized {
            self.conditions_of_borrowed();
            return (Some(Action::AddFinalizer), None);
        }
        match &self.view.borrowed.captured {
            CaptureAnswer::NotAsked => {
                self.conditions_of_borrowed();
                (Some(Action::Capture), None)
            }
            CaptureAnswer::Failed(message) => {
                self.not_ready("Capturing", message);
                (None, Some(ASK_AGAIN))
            }
            CaptureAnswer::Captured(_, recording) if !recording.is_empty() => {
                let names: Vec<String> = recording.iter().map(|type_| format!("{type_:?}")).collect();
                let names = names.join(", ");
                self.stalled(
                    "AuditNotPermitted",
                    &format!(
                        "{names} records on this server, and no arm could be measured without it: add it to \
                         spec.external.permissions.audit, or switch it off"
                    ),
                );
                (None, Some(ASK_AGAIN))
            }
            CaptureAnswer::Captured(state, _) => {
                let mut state = state.as_ref().clone();
                state.captured_at = Some(Time(self.now));
                self.status.original_state = Some(state);
                condition::remove(&mut self.status.conditions, ORIGINAL_STATE_RESTORED);
                self.conditions_of_running();
                WAIT_FOR_CHANGE
            }
        }
    }

    /// The boot that the holder asks for. A server that has started since the boot in the status has been restarted:
    /// asked so, and not asked twice.
    fn restart(&mut self, external: &External, serial: i64) -> Decision {
        let route = external.restart.as_ref().map(|route| route.type_);
        let refused = match route {
            _ if !external.permissions.restart => {
                Some("the owner permits no restart: set spec.external.permissions.restart: true")
            }
            None => Some("no way to restart it is given: set spec.external.restart"),
            Some(RouteType::Statement) => None,
            Some(_) => Some("this release restarts borrowed servers by type Statement only"),
        };
        if let Some(message) = refused {
            self.boot_failed(serial, "RestartRefused", message);
            return WAIT_FOR_CHANGE;
        }
        if self
            .status
            .boot_failure
            .as_ref()
            .is_some_and(|failure| failure.serial == serial)
        {
            return WAIT_FOR_CHANGE;
        }
        let restarting = condition::reason(&self.status.conditions, READY) == Some("Restarting");
        if !restarting {
            // Written first: from then on its time counts.
            self.not_ready("Restarting", "the server is restarted by a statement");
            return (None, Some(Duration::ZERO));
        }
        let since = condition::since(&self.status.conditions, READY).unwrap_or(self.now);
        let late = self.now.duration_since(since) > BACK_WITHIN;
        let before = self.status.boot.as_ref().and_then(|boot| boot.started_at.clone());
        match &self.view.server {
            ServerAnswer::NotAsked => (
                Some(Action::Identify {
                    address: external.host.clone(),
                }),
                None,
            ),
            ServerAnswer::Identity(server)
                if before.is_none_or(|time| server.started > time.0.as_second() + OTHER_START) =>
            {
                let server = server.clone();
                self.known(external, &server, serial);
                WAIT_FOR_CHANGE
            }
            ServerAnswer::Identity(_) if !self.view.borrowed.restart_sent && !late => {
                (Some(Action::RestartBy(route.unwrap_or_default())), None)
            }
            _ if late => {
                self.boot_failed(
                    serial,
                    "RestartFailed",
                    "the server was asked to restart and is not back within 5 min: does something start it again?",
                );
                WAIT_FOR_CHANGE
            }
            _ => (None, Some(ASK_EVERY)),
        }
    }

    /// Nobody holds it any more: what it had is put back, and what is left to a person is said.
    fn put_back(&mut self) -> Decision {
        match &self.view.borrowed.restored {
            RestoreAnswer::NotAsked => (Some(Action::Restore), None),
            RestoreAnswer::Busy(pod) => {
                let message =
                    format!("waiting for load generator {pod} to end before what the server had is put back");
                self.not_ready("Restoring", &message);
                (None, Some(LOOK_AGAIN))
            }
            RestoreAnswer::Failed(message) => {
                self.restored(false, "RestoreFailed", message);
                self.not_ready("Restoring", message);
                (None, Some(RESTORE_AGAIN))
            }
            RestoreAnswer::Done(left) if left.is_empty() && self.status.original_state.is_none() => {
                (Some(Action::RemoveFinalizer), None)
            }
            RestoreAnswer::Done(left) if left.is_empty() => {
                self.status.original_state = None;
                self.status.dataset = None;
                self.restored(
                    true,
                    "Restored",
                    "what the server had is put back, and was read back",
                );
                self.conditions_of_running();
                (Some(Action::RemoveFinalizer), None)
            }
            RestoreAnswer::Done(left) => {
                let what: Vec<&str> = left.iter().map(|(what, _)| what.as_str()).collect();
                let statements: Vec<&str> = left.iter().map(|(_, statement)| statement.as_str()).collect();
                let message = format!("{}. Run: {};", what.join("; "), statements.join("; "));
                self.restored(false, "NotRestored", &message);
                self.stalled("NotRestored", &message);
                (None, Some(RESTORE_AGAIN))
            }
        }
    }

    fn restored(&mut self, holds: bool, reason: &str, message: &str) {
        self.set(ORIGINAL_STATE_RESTORED, holds, reason, message);
    }
}
