//! One load applied by several pods: where they meet, what share each has, what each tells for the sum.
//! Only arithmetic that both sides must do alike; who judges the sum is the campaign's planner.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runner::RunOrder;

/// Where the pods of one load meet. The pod of index 0 waits there for the others and says when to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meeting {
    /// Pods that apply load together, 2 at least.
    pub count: i32,
    /// Name of the pod of index 0 in the cluster's DNS.
    pub host: String,
    /// Port on which it waits.
    pub port: u16,
}

/// What one of several pods tells besides its own figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Part {
    /// Its index in the Job.
    pub index: i32,
    /// By how much its start may differ from the first pod's, microseconds: half of the fastest round trip between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_uncertainty_micros: Option<i64>,
    /// From the common start to the end of its load, milliseconds by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_millis: Option<i64>,
    /// Latencies of its window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<LatencyHistogram>,
}

/// Counts of latencies in sysbench's buckets: 1,024 from 1 us to 100 s on a logarithmic scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LatencyHistogram {
    /// Place of the first bucket, from 0.
    pub first: u16,
    /// Buckets that one count is of: 1 where there was room.
    pub width: u16,
    /// Counts from the first bucket on; a negative number stands for so many counts of zero.
    pub counts: Vec<i64>,
}

impl LatencyHistogram {
    /// Counts by place, `width` neighbours together.
    pub fn of(counts: &BTreeMap<u16, u64>, width: u16) -> Self {
        let width = width.max(1);
        let mut wide: BTreeMap<u16, i64> = BTreeMap::new();
        for (place, count) in counts.iter().filter(|(_, count)| **count > 0) {
            let sum = wide.entry(place / width).or_default();
            *sum = sum.saturating_add(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        let mut coded = Vec::new();
        let mut next = wide.keys().next().copied().unwrap_or(0);
        let first = next * width;
        for (place, count) in wide {
            if place > next {
                coded.push(-i64::from(place - next));
            }
            coded.push(count);
            next = place + 1;
        }
        Self {
            first,
            width,
            counts: coded,
        }
    }

    /// Counts by place; those of several buckets together are spread over them evenly.
    pub fn counts(&self) -> BTreeMap<u16, u64> {
        let width = self.width.max(1);
        let mut counts = BTreeMap::new();
        let mut place = u64::from(self.first);
        for coded in &self.counts {
            let Ok(count) = u64::try_from(*coded) else {
                place = place.saturating_add(coded.unsigned_abs().saturating_mul(u64::from(width)));
                continue;
            };
            for offset in 0..u64::from(width) {
                let share = count / u64::from(width) + u64::from(offset < count % u64::from(width));
                if let Ok(place) = u16::try_from(place + offset)
                    && share > 0
                {
                    counts.insert(place, share);
                }
            }
            place = place.saturating_add(u64::from(width));
        }
        counts
    }
}

/// What the pod of this index has of a whole that is divided among `count`: shares differ by 1 at most and add up.
fn share(whole: i64, index: i32, count: i32) -> i64 {
    let (index, count) = (i64::from(index), i64::from(count.max(1)));
    whole.saturating_mul(index + 1) / count - whole.saturating_mul(index) / count
}

/// Client threads of the pod of this index.
pub fn threads_of(threads: i32, index: i32, count: i32) -> i32 {
    i32::try_from(share(i64::from(threads), index, count)).unwrap_or(i32::MAX)
}

/// Transactions per second of the pod of this index: in proportion to its threads.
pub fn rate_of(rate: i64, threads: i32, index: i32, count: i32) -> i64 {
    let before: i64 = (0..index)
        .map(|index| i64::from(threads_of(threads, index, count)))
        .sum();
    let until = before + i64::from(threads_of(threads, index, count));
    let threads = i64::from(threads.max(1));
    rate.saturating_mul(until) / threads - rate.saturating_mul(before) / threads
}

/// Whether each of so many pods has a thread, and a transaction a second where there is a rate.
pub fn divides(threads: i32, rate: Option<i64>, count: i32) -> bool {
    (0..count).all(|index| {
        threads_of(threads, index, count) >= 1
            && rate.is_none_or(|rate| rate_of(rate, threads, index, count) >= 1)
    })
}

/// Distance between the seeds of two pods of one load: those of two blocks lie nearer to each other.
const SEED_STEP: i64 = 1_000_003;

impl RunOrder {
    /// The order of the pod of this index: its threads, its rate, a seed of its own.
    #[must_use]
    pub fn part(&self, index: i32) -> Self {
        let Some(meeting) = &self.meeting else {
            return self.clone();
        };
        Self {
            threads: threads_of(self.threads, index, meeting.count),
            rate: self
                .rate
                .map(|rate| rate_of(rate, self.threads, index, meeting.count)),
            seed: self.seed.wrapping_add(i64::from(index).wrapping_mul(SEED_STEP)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_has_its_share_and_a_seed_of_its_own() {
        let order = RunOrder {
            threads: 7,
            rate: Some(100),
            seed: 5,
            meeting: Some(Meeting {
                count: 3,
                ..Meeting::default()
            }),
            ..RunOrder::default()
        };
        let parts: Vec<RunOrder> = (0..3).map(|index| order.part(index)).collect();
        let threads: Vec<i32> = parts.iter().map(|part| part.threads).collect();
        let rates: Vec<i64> = parts.iter().filter_map(|part| part.rate).collect();
        assert_eq!((threads, rates), (vec![2, 2, 3], vec![28, 29, 43]));
        assert_eq!((parts[0].seed, parts[1].seed), (5, 1_000_008));
        let alone = RunOrder::default();
        assert_eq!(alone.part(4), alone);
        assert!(divides(3, Some(3), 3) && !divides(2, None, 3) && !divides(64, Some(2), 3));
    }

    proptest! {
        #[test]
        fn shares_add_up_and_are_even(threads in 1..10_000i32, rate in 0..10_000_000i64, count in 1..64i32) {
            let all: Vec<i32> = (0..count).map(|index| threads_of(threads, index, count)).collect();
            prop_assert_eq!(all.iter().sum::<i32>(), threads);
            prop_assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
            let rates = (0..count).map(|index| rate_of(rate, threads, index, count));
            prop_assert_eq!(rates.sum::<i64>(), rate);
        }

        #[test]
        fn counts_survive_the_way(
            counts in proptest::collection::btree_map(0u16..1024, 1u64..1_000_000, 0..200),
            width in 1u16..9,
        ) {
            let exact = LatencyHistogram::of(&counts, 1);
            prop_assert_eq!(&exact.counts(), &counts);
            let wide = LatencyHistogram::of(&counts, width);
            let back = wide.counts();
            prop_assert_eq!(back.values().sum::<u64>(), counts.values().sum::<u64>());
            prop_assert!(wide.counts.len() <= exact.counts.len());
            for (place, count) in &counts {
                let near: u64 = back.range(place / width * width..place / width * width + width).map(|(_, c)| c).sum();
                prop_assert!(near >= *count);
            }
        }
    }
}
