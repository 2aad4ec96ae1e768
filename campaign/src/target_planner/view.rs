//! What a decision about a target is made from, as plain values.

use crds::target::{BenchmarkTargetSpec, BenchmarkTargetStatus, Capabilities, CleanShutdown};

use super::{CaptureAnswer, PodView, RestoreAnswer};

/// Everything that a decision about a target needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetView {
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// The spec.
    pub spec: BenchmarkTargetSpec,
    /// The status as stored.
    pub status: BenchmarkTargetStatus,
    /// Hash of the configuration wanted now (the target's own under the boot request's), or why there is none.
    pub configuration: Result<String, String>,
    /// Which of the objects around the pod are there.
    pub parts: Parts,
    /// A name that this target needs and somebody else has, in a sentence.
    pub name_taken: Option<String>,
    /// Why it can never run as it is (its name, its engine), in a sentence.
    pub refused: Option<String>,
    /// The pod.
    pub pod: Option<PodView>,
    /// What the server said when it was asked in this reconcile.
    pub server: ServerAnswer,
    /// Whether the holder named in the status is known, by a live read, to be gone.
    pub holder_gone: bool,
    /// What is known of a borrowed server beside its status.
    pub borrowed: Borrowed,
}

/// What is known of a borrowed server, most of it of this reconcile only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Borrowed {
    /// Whether our finalizer is on the target.
    pub finalized: bool,
    /// What came of looking at what the server has.
    pub captured: CaptureAnswer,
    /// What came of putting it back.
    pub restored: RestoreAnswer,
    /// Whether the server was told to restart.
    pub restart_sent: bool,
}

/// The objects around the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // one an object
pub struct Parts {
    /// The generated Secret.
    pub secret: bool,
    /// The headless Service.
    pub service: bool,
    /// The data volume's claim.
    pub volume: bool,
    /// The log volume's claim; true as well if none is wanted.
    pub log_volume: bool,
    /// The ConfigMap with the configuration wanted.
    pub configuration: bool,
}

/// One of the objects around the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The generated Secret.
    Secret,
    /// The headless Service.
    Service,
    /// The data volume's claim.
    Volume,
    /// The log volume's claim.
    LogVolume,
    /// The ConfigMap with the configuration wanted.
    Configuration,
}

impl Parts {
    /// The first one missing, in the order in which they are made.
    pub fn missing(self) -> Option<Part> {
        [
            (self.secret, Part::Secret),
            (self.service, Part::Service),
            (self.volume, Part::Volume),
            (self.log_volume, Part::LogVolume),
            (self.configuration, Part::Configuration),
        ]
        .into_iter()
        .find_map(|(there, part)| (!there).then_some(part))
    }
}

/// What the server said.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ServerAnswer {
    /// It was not asked.
    #[default]
    NotAsked,
    /// It does not answer (yet).
    Silent,
    /// It answers and refuses, or what it says makes no sense; a person must act if that stays so.
    Refused(String),
    /// It answered.
    Identity(Box<ServerFound>),
}

/// Who a server said it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFound {
    /// Version as the server says it.
    pub version: String,
    /// Flavour found.
    pub flavour: String,
    /// Identity of the server's data.
    pub server_identity: String,
    /// Start of the server process, seconds since 1970.
    pub started: i64,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Whether the shutdown before this boot was clean.
    pub clean_shutdown: CleanShutdown,
}
