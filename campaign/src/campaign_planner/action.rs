//! What a campaign may do to the cluster: a closed list, so that the acting side can match it exhaustively.
//! Nothing here is done; the operator does it.

use std::time::Duration;

use crds::audit::AuditSetting;
use crds::parameter::Parameters;
use crds::{BenchmarkCampaignStatus, BenchmarkRun, BenchmarkTarget};

/// One step, in the order in which the plan lists them.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create a managed target. Owner reference and label are set. If the name is taken, observe reports the
    /// holder of the name as an [`super::Obstacle`] or as a target of another owner.
    CreateTarget(Box<BenchmarkTarget>),
    /// Delete a managed target of this campaign that the spec, corrected before anything was measured, no longer
    /// describes. With the UID as precondition.
    DeleteTarget {
        /// Name of the target.
        name: String,
        /// UID that it must have.
        uid: String,
    },
    /// Take the holder of a target for the campaign (compare and swap, only while there is none or it is the
    /// campaign's own) with a boot request without run parameters and the next serial, so that it can be checked.
    HoldTarget {
        /// Name of the target.
        name: String,
    },
    /// Ask the running server whether it knows and takes every parameter and audit setting that will be asked of
    /// it. The outcome is kept, for this generation, in [`super::CampaignView::checks`]; a check that could not be
    /// made is not recorded and is asked for again.
    CheckTarget {
        /// Name of the target.
        name: String,
        /// Every distinct set of run parameters.
        parameters: Vec<Parameters>,
        /// Every audit setting.
        audit: Vec<AuditSetting>,
    },
    /// Give up the holder of a target, if it is the campaign's own and no run uses it.
    ReleaseTarget {
        /// Name of the target.
        name: String,
    },
    /// Create a run. Owner reference and label are set; the name is made from the plan, so that creating it twice
    /// is refused by the API server and means that it is there.
    CreateRun(Box<BenchmarkRun>),
    /// Delete a run that has not begun and is no longer wanted. With UID and resource version as preconditions: a
    /// run that begins in between stays.
    DeleteRun {
        /// Name of the run.
        name: String,
        /// UID that it must have.
        uid: String,
        /// Resource version that it must have.
        resource_version: String,
    },
    /// Publish an event about the campaign.
    Event {
        /// Whether a person should look.
        type_: EventType,
        /// CamelCase word.
        reason: &'static str,
        /// What happened, under 1 kB.
        note: String,
    },
}

/// Kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// The story.
    Normal,
    /// A person should look.
    Warning,
}

/// What to do now, and what to say about it.
///
/// The status is written before the actions when it carries the intent that they rely on (`startTime`), which is
/// why a plan never has both a new `startTime` and a [`Action::CreateRun`].
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignPlan {
    /// Steps, in order. Each is idempotent.
    pub actions: Vec<Action>,
    /// The whole status wanted. Equal to the one observed when nothing changed.
    pub status: BenchmarkCampaignStatus,
    /// When to look again without an event; None while a run is measured or nothing is left to do.
    pub requeue: Option<Duration>,
}
