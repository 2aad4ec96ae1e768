//! Names of what a campaign makes: short enough for every use, different for every place and attempt, the same
//! each time they are computed.

use sha2::{Digest, Sha256};

/// Bytes of the campaign's name that a child's name keeps.
const KEPT: usize = 30;
/// Hexadecimal digits of the hash: 48 bits, so that 10,000 children collide once in six million campaigns.
const DIGITS: usize = 12;

/// `<campaign at most 30>-<hash of the parts>`.
fn child(campaign: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length keeps ("ab", "c") apart from ("a", "bc").
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let digits: String = hash
        .finalize()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .take(DIGITS)
        .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
        .collect();
    let kept = campaign.get(..KEPT).unwrap_or(campaign);
    // A campaign's name may have dots, a Service's may not.
    format!("{}-{digits}", kept.trim_end_matches(['-', '.']).replace('.', "-"))
}

/// Name of the managed target of a database and an instance size; the same in every iteration.
pub fn target_name(campaign: &str, campaign_uid: &str, database: &str, instance_size: &str) -> String {
    child(campaign, &["target", campaign_uid, database, instance_size])
}

/// Name of a run: of a place in the plan of an iteration, and an attempt of its block.
pub fn run_name(campaign: &str, campaign_uid: &str, iteration: i64, sequence: i32, attempt: i32) -> String {
    let numbers = [iteration, i64::from(sequence), i64::from(attempt)].map(|number| number.to_string());
    let [iteration, sequence, attempt] = numbers.each_ref().map(String::as_str);
    child(campaign, &["run", campaign_uid, iteration, sequence, attempt])
}

/// Name of the Service at which the load generators of a target meet; a target's own may be as long as a Service's.
pub fn meeting_name(target: &str) -> String {
    child(target, &["meeting", target])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{run_name, target_name};

    #[test]
    fn ten_thousand_runs_have_ten_thousand_names() {
        let mut names = BTreeSet::new();
        for iteration in 0..2 {
            for sequence in 0..5_000 {
                for attempt in 1..4 {
                    names.insert(run_name("audit-cost", "uid", iteration, sequence, attempt));
                }
            }
        }
        assert_eq!(names.len(), 30_000);
    }

    #[test]
    fn names_of_another_campaign_with_the_same_name_differ() {
        assert_ne!(run_name("a", "one", 0, 0, 1), run_name("a", "two", 0, 0, 1));
        assert_ne!(
            target_name("a", "one", "db", "small"),
            target_name("a", "two", "db", "small")
        );
        assert_ne!(target_name("a", "u", "ab", "c"), target_name("a", "u", "a", "bc"));
    }

    proptest! {
        #[test]
        fn names_are_names(campaign in "[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", uid in "[a-f0-9-]{36}", sequence in 0..1_000_000) {
            for name in [run_name(&campaign, &uid, 3, sequence, 2), target_name(&campaign, &uid, "mariadb", "4u16g")] {
                prop_assert!(name.len() <= 43);
                prop_assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
                prop_assert!(!name.starts_with('-') && !name.ends_with('-') && !name.contains("--") || campaign.contains("--"));
                prop_assert!(name.starts_with(&campaign[..1]));
            }
        }
    }
}
