//! What the runner asks of a server when load has ended: is it the boot that was proved, are the settings still in
//! force, were rows written, were records lost.

use crds::audit::AuditSetting;
use crds::run::Finding;

/// Counters of a server; differences of two readings describe what lies between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Start of the server process, seconds since 1970 by the server's own clock (uncertain by 1 s).
    pub started: i64,
    /// Rows inserted, updated and deleted in tables (temporary ones not counted).
    pub rows_written: i64,
    /// Statements that clients sent.
    pub questions: i64,
    /// Records that each audit mechanism reports as lost, as it counts since the boot.
    pub audit_lost: Option<i64>,
}

/// What was found after a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AfterRun {
    /// Counters at the end.
    pub counters: Counters,
    /// Whether the boot at the end is the one that was proved (start times within 5 s).
    pub same_boot: bool,
    /// Settings that no longer read back as wanted.
    pub changed_settings: Vec<Finding>,
    /// Rows written since the counters before the run.
    pub rows_written: i64,
    /// Records lost since the counters before the run; `None` where the mechanism does not count.
    pub audit_lost: Option<i64>,
}

/// Seconds by which two readings of one start time may differ.
pub const START_TOLERANCE: i64 = 5;

/// Compares the end with what was proved and counted before.
pub(crate) fn compare(
    proved_start: Option<i64>,
    before: &Counters,
    counters: Counters,
    changed_settings: Vec<Finding>,
) -> AfterRun {
    let proved = proved_start.unwrap_or(before.started);
    let difference = |now: i64, then: i64| if now >= then { now - then } else { now };
    AfterRun {
        same_boot: [proved, before.started]
            .iter()
            .all(|start| (counters.started - start).abs() <= START_TOLERANCE),
        changed_settings,
        rows_written: difference(counters.rows_written, before.rows_written),
        audit_lost: counters
            .audit_lost
            .map(|now| difference(now, before.audit_lost.unwrap_or(0))),
        counters,
    }
}

/// Settings as findings for a run's report.
pub(crate) fn findings(problems: Vec<crate::access::ParameterProblem>, audit: &AuditSetting) -> Vec<Finding> {
    problems
        .into_iter()
        .map(|p| Finding {
            reason: if p.name == audit.name {
                "AuditChanged"
            } else {
                "SettingChanged"
            }
            .to_owned(),
            message: p.message.chars().take(500).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(started: i64, rows_written: i64, audit_lost: Option<i64>) -> Counters {
        Counters {
            started,
            rows_written,
            questions: 0,
            audit_lost,
        }
    }

    #[test]
    fn a_boot_is_the_same_within_five_seconds() {
        let before = counters(1000, 10, Some(2));
        let same = compare(Some(1004), &before, counters(1001, 15, Some(2)), Vec::new());
        assert!(same.same_boot);
        assert_eq!((same.rows_written, same.audit_lost), (5, Some(0)));
        let other = compare(Some(1000), &before, counters(1006, 3, None), Vec::new());
        assert!(!other.same_boot);
        assert_eq!((other.rows_written, other.audit_lost), (3, None));
        assert!(!compare(Some(990), &before, before.clone(), Vec::new()).same_boot);
    }
}
