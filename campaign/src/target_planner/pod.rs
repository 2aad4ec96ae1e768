//! What is seen of a managed server's pod, as plain values, and what they mean.

use jiff::Timestamp;

use super::condition::tail;

/// Reason of a pod whose server may run, but whose agent does not.
pub(super) const AGENT_ENDED: &str = "AgentEnded";

/// A managed server's pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// UID.
    pub uid: String,
    /// Boot request that it answers (its annotation).
    pub serial: i64,
    /// Configuration that it was started with (its annotation).
    pub configuration_hash: String,
    /// Whether a pod made now would differ: image, size, configuration.
    pub outdated: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its deletion began.
    pub deleted_at: Option<Timestamp>,
    /// Node that it was given.
    pub node: Option<String>,
    /// Its address.
    pub address: Option<String>,
    /// Why no node was found for it.
    pub unschedulable: Option<String>,
    /// Why the pod as a whole has ended (evicted, lost).
    pub failed: Option<Problem>,
    /// Image digest of the server's container, once it is known.
    pub image_id: Option<String>,
    /// The container that makes the data directory.
    pub init: ContainerState,
    /// The server's container.
    pub database: ContainerState,
    /// The agent's container.
    pub agent: ContainerState,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// It does not run yet, and why, if that is known.
    Waiting(Option<Problem>),
    /// It runs.
    Running {
        /// ID of the container.
        id: String,
        /// When it started.
        started_at: Option<Timestamp>,
    },
    /// It has ended: the exit code decides whether that is a problem.
    Ended(Exit),
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: i32,
    /// What the kubelet calls it (`Error`, `OOMKilled`, …).
    pub reason: String,
    /// Its termination message or the end of its log.
    pub message: String,
}

/// Something that keeps a pod from running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// CamelCase reason.
    pub reason: String,
    /// What was seen.
    pub message: String,
}

impl Problem {
    /// A problem by reason and message.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
        }
    }
}

impl PodView {
    /// Why the server is not going to run in this pod any more.
    pub(super) fn ended(&self) -> Option<Problem> {
        if let ContainerState::Ended(exit) = &self.init
            && exit.code != 0
        {
            return Some(exit.problem("InitFailed", "the data directory could not be made"));
        }
        if let ContainerState::Ended(exit) = &self.database {
            return Some(exit.problem("ServerEnded", "the server ended"));
        }
        if let ContainerState::Ended(exit) = &self.agent {
            return Some(exit.problem(AGENT_ENDED, "the agent beside the server ended"));
        }
        self.failed.clone()
    }

    /// What keeps the pod from starting, if it is worth a person's attention.
    pub(super) fn problem(&self) -> Option<Problem> {
        if let Some(message) = &self.unschedulable {
            return Some(Problem::new("Unschedulable", message));
        }
        [&self.init, &self.database, &self.agent]
            .into_iter()
            .find_map(|container| match container {
                ContainerState::Waiting(Some(problem)) => attention(problem),
                _ => None,
            })
    }
}

/// Reasons of a waiting container that do not pass by themselves within seconds; usual ones are none.
pub fn attention(problem: &Problem) -> Option<Problem> {
    let reason = match problem.reason.as_str() {
        // Two names of one problem, between which the kubelet alternates.
        "ErrImagePull" | "ImagePullBackOff" => "ImagePullBackOff",
        "CrashLoopBackOff" => "CrashLoopBackOff",
        other if other.starts_with("Err") || other.ends_with("Error") || other.starts_with("Invalid") => {
            other
        }
        _ => return None,
    };
    let message = if problem.message.is_empty() {
        "the container cannot start"
    } else {
        &problem.message
    };
    Some(Problem::new(reason, message))
}

impl Exit {
    fn problem(&self, reason: &str, what: &str) -> Problem {
        let reason = if self.reason == "OOMKilled" {
            "OOMKilled"
        } else {
            reason
        };
        let said = tail(&self.message, 400);
        let colon = if said.is_empty() { "" } else { ": " };
        Problem::new(
            reason,
            format!("{what} with exit code {}{colon}{said}", self.code),
        )
    }
}
