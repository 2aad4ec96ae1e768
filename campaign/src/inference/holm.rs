//! Holm's step-down procedure, which keeps the chance of any false claim in a family within the family's level.

/// The outcome for one member of the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Whether the hypothesis is rejected.
    pub rejected: bool,
    /// The level against which its p-value was compared; an interval of confidence 1 - `level` agrees with
    /// `rejected`.
    pub level: f64,
    /// The p-value adjusted for the family: to be compared with the nominal level of the look, `level(1)`.
    pub adjusted: f64,
}

/// Tests a family of `members`, of which `p_values` are known; the rest count as not rejected (effects without a
/// figure yet). `level(k)` is the level for each of k hypotheses still standing, and falls with k: the family
/// level divided by k for a single look.
pub fn holm(p_values: &[f64], members: usize, level: impl Fn(usize) -> f64) -> Vec<Tested> {
    let members = members.max(p_values.len());
    let mut ranked: Vec<usize> = (0..p_values.len()).collect();
    ranked.sort_by(|&one, &two| p_values[one].total_cmp(&p_values[two]));
    let mut standing = members;
    let mut tested = vec![
        Tested {
            rejected: false,
            level: 0.0,
            adjusted: 1.0
        };
        p_values.len()
    ];
    let (mut stopped, mut adjusted) = (false, 0.0_f64);
    for (rank, place) in ranked.into_iter().enumerate() {
        let compared = level(standing.max(1));
        let beaten = p_values[place] < compared;
        stopped |= !beaten;
        let factor = level(1) / level((members - rank).max(1));
        adjusted = adjusted.max((p_values[place] * factor).min(1.0));
        tested[place] = Tested {
            rejected: !stopped,
            level: compared,
            adjusted,
        };
        standing -= usize::from(!stopped);
    }
    tested
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::holm;

    fn rejected(p_values: &[f64], members: usize) -> Vec<bool> {
        holm(p_values, members, |k| 0.05 / k as f64)
            .iter()
            .map(|tested| tested.rejected)
            .collect()
    }

    #[test]
    fn steps_down_and_stops_at_the_first_that_stands() {
        assert_eq!(
            rejected(&[0.01, 0.04, 0.03, 0.005], 4),
            [true, false, false, true]
        );
        assert_eq!(
            rejected(&[0.04, 0.03], 2),
            [false, false],
            "0.03 is above 0.025, so 0.04 is not tested"
        );
        assert_eq!(rejected(&[0.04, 0.02], 2), [true, true]);
        assert_eq!(rejected(&[0.02], 3), [false], "members without a figure count");
        assert_eq!(rejected(&[f64::NAN, 0.001], 2), [false, true]);
        assert!(rejected(&[], 0).is_empty());
        let adjusted: Vec<f64> = holm(&[0.01, 0.04, 0.03, 0.005], 4, |k| 0.05 / k as f64)
            .iter()
            .map(|one| one.adjusted)
            .collect();
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!(
                (found - expected).abs() < 1e-12,
                "{adjusted:?}: R's p.adjust(method = \"holm\")"
            );
        }
    }

    proptest! {
        #[test]
        fn rejects_no_less_than_bonferroni_and_no_more_than_no_correction(
            p_values in prop::collection::vec(0.0_f64..0.2, 1..10),
        ) {
            let members = p_values.len();
            for (tested, p) in holm(&p_values, members, |k| 0.05 / k as f64).iter().zip(&p_values) {
                prop_assert!(tested.rejected || *p >= 0.05 / members as f64);
                prop_assert!(!tested.rejected || *p < 0.05);
                prop_assert_eq!(tested.rejected, *p < tested.level);
                prop_assert!(tested.rejected == (tested.adjusted < 0.05) || (tested.adjusted - 0.05).abs() < 1e-12);
                prop_assert!(tested.adjusted >= *p);
            }
        }
    }
}
