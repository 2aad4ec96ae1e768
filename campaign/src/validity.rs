//! Which runs and blocks count: a judgement of plain evidence. Only what comes from outside the database makes a
//! run invalid. What auditing may itself cause is a symptom and never discards anything: discarding stalled runs
//! hides the effect that they show. Pure: evidence is gathered elsewhere.

mod block;
mod evidence;
mod run;
#[cfg(test)]
mod tests;

use std::fmt;

pub use block::{BlockFinding, BlockOutcome, BlockRun, block_outcome, judge_block};
pub use evidence::{
    Arrivals, AuditCount, BootIdentity, Disturbance, Evidence, GeneratorUsage, Report, Shutdown, Snapshot,
};
pub use run::judge_run;

/// Why a run or a block does not count. Names are those of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvalidReason {
    /// Another pod answered at the end.
    PodChanged,
    /// The database moved to another node.
    NodeChanged,
    /// The server restarted.
    BootChanged,
    /// Another server answered behind the same address.
    FailedOver,
    /// The load generator used over 80 % of the CPU that it could have, or was throttled.
    GeneratorStarved,
    /// Others used over 5 % of the database's own cores, or the node swapped or killed a process for memory.
    NodeDisturbed,
    /// A setting was not as proved at the end.
    SettingsChanged,
    /// The tool did not finish what was asked.
    NoCompleteReport,
    /// The storage's burst credit ran out.
    BurstExhausted,
    /// A read-only load ran on rows that changed.
    DatasetChanged,
    /// The environment changed: kernel, image, governor, client version.
    EnvironmentChanged,
    /// What must be known after the run could not be gathered, so that nothing is proved.
    EvidenceMissing,
    /// The network round trip differs by over 10 % and 50 us between the arms of a block.
    RoundTripDiffers,
    /// A run of the block does not count, so the block is repeated as a whole.
    RunInvalid,
}

/// What a reader must know about a run that counts. Names are those of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symptom {
    /// Whole seconds without a transaction.
    StalledSeconds,
    /// Errors that the tool ignored or retried.
    ErrorsPerSecond,
    /// Fewer transactions ended than the rate asked for: they queue up, and latency grows with the length of the window.
    RateNotReached,
    /// The server counted audit records that it did not write.
    LostAuditRecords,
    /// The audit log holds less than 99 % or more than 101 % of the events expected.
    AuditIncomplete,
    /// The shutdown before the boot took over a minute.
    SlowShutdown,
    /// The boot began with crash recovery.
    UncleanShutdown,
    /// The server had not settled at the time limit.
    SettleTimedOut,
}

impl InvalidReason {
    /// The name as in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PodChanged => "PodChanged",
            Self::NodeChanged => "NodeChanged",
            Self::BootChanged => "BootChanged",
            Self::FailedOver => "FailedOver",
            Self::GeneratorStarved => "GeneratorStarved",
            Self::NodeDisturbed => "NodeDisturbed",
            Self::SettingsChanged => "SettingsChanged",
            Self::NoCompleteReport => "NoCompleteReport",
            Self::BurstExhausted => "BurstExhausted",
            Self::DatasetChanged => "DatasetChanged",
            Self::EnvironmentChanged => "EnvironmentChanged",
            Self::EvidenceMissing => "EvidenceMissing",
            Self::RoundTripDiffers => "RoundTripDiffers",
            Self::RunInvalid => "RunInvalid",
        }
    }
}

impl Symptom {
    /// The name as in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StalledSeconds => "StalledSeconds",
            Self::ErrorsPerSecond => "ErrorsPerSecond",
            Self::RateNotReached => "RateNotReached",
            Self::LostAuditRecords => "LostAuditRecords",
            Self::AuditIncomplete => "AuditIncomplete",
            Self::SlowShutdown => "SlowShutdown",
            Self::UncleanShutdown => "UncleanShutdown",
            Self::SettleTimedOut => "SettleTimedOut",
        }
    }
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Something found, with the figures that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<K> {
    /// What it is.
    pub kind: K,
    /// What was found, and what is allowed.
    pub message: String,
}

/// The judgement of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why it does not count; empty: it counts.
    pub reasons: Vec<Finding<InvalidReason>>,
    /// What a reader must know. Never a reason.
    pub symptoms: Vec<Finding<Symptom>>,
}

impl Judgement {
    /// Whether the run counts.
    pub fn valid(&self) -> bool {
        self.reasons.is_empty()
    }
}
