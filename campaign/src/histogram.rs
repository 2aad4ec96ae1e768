//! Latency histograms as sysbench prints them: merging those of several load generators and reading
//! percentiles inside a bucket. Pure arithmetic; parsing a report is the runner's business.

use std::collections::BTreeMap;

use crds::together::LatencyHistogram;

/// Smallest and largest latency of sysbench's histogram, in milliseconds (`sb_histogram_init`, 1.0 and 1.1).
const RANGE_MS: (f64, f64) = (0.001, 100_000.0);
/// Number of buckets; their values form a geometric sequence over the range.
const BUCKETS: u16 = 1024;

/// Standard error of a percentile read from a histogram, as a log-ratio, that no number of blocks reduces: a value
/// lies evenly anywhere in a bucket 1.8 % wide, and the rounding may be the same in every block.
pub const PERCENTILE_SE_FLOOR: f64 = 0.018 / 3.464_101_615_137_754_6;

/// Counts of latencies in sysbench's buckets, each about 1.8 % wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: BTreeMap<u16, u64>,
}

/// Natural logarithm of the ratio of two neighbouring bucket values.
fn step() -> f64 {
    (RANGE_MS.1 / RANGE_MS.0).ln() / f64::from(BUCKETS - 1)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` events at `value_ms`, milliseconds: a bucket's value as printed, or one event's latency.
    /// Values outside 0.001 to 100000 ms count in the first or last bucket, as in sysbench; a value that is not
    /// a number is ignored.
    pub fn record(&mut self, value_ms: f64, count: u64) {
        if value_ms.is_nan() || count == 0 {
            return;
        }
        let place = ((value_ms.max(RANGE_MS.0) / RANGE_MS.0).ln() / step()).round();
        let bucket = place.clamp(0.0, f64::from(BUCKETS - 1)) as u16;
        let total = self.counts.entry(bucket).or_default();
        *total = total.saturating_add(count);
    }

    /// Adds the counts of another histogram: the percentiles of several generators come from their merged
    /// histogram, never from averaged percentiles.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &count) in &other.counts {
            let total = self.counts.entry(bucket).or_default();
            *total = total.saturating_add(count);
        }
    }

    /// The counts that a load generator told: by place in the same sequence of buckets.
    pub fn told(counts: &LatencyHistogram) -> Self {
        let known = |(place, _): &(u16, u64)| *place < BUCKETS;
        Self {
            counts: counts.counts().into_iter().filter(known).collect(),
        }
    }

    /// Number of events.
    pub fn count(&self) -> u64 {
        self.counts
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The buckets that have events: (value in milliseconds, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.counts
            .iter()
            .map(|(&bucket, &count)| (value_ms(f64::from(bucket)), count))
    }

    /// The latency in milliseconds below which `percent` % of the events lie, interpolated inside the bucket on
    /// the logarithmic scale. None when there are no events or `percent` is not within 0 to 100.
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 || !(0.0..=100.0).contains(&percent) {
            return None;
        }
        let wanted = total as f64 * percent / 100.0;
        let mut below = 0.0;
        let mut last = None;
        for (&bucket, &count) in &self.counts {
            let within = count as f64;
            // A bucket holds what rounds to its value: half a step to either side.
            if below + within >= wanted {
                let share = ((wanted - below) / within).clamp(0.0, 1.0);
                return Some(value_ms(f64::from(bucket) - 0.5 + share));
            }
            below += within;
            last = Some(value_ms(f64::from(bucket) + 0.5));
        }
        last
    }
}

fn value_ms(place: f64) -> f64 {
    RANGE_MS.0 * (place * step()).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Histogram, PERCENTILE_SE_FLOOR, step};

    /// The histogram of a captured report, and the percentile that sysbench printed for the measured window.
    fn captured(report: &str) -> (Histogram, f64) {
        let mut histogram = Histogram::new();
        let mut printed = 0.0;
        for line in report.lines() {
            if let Some((value, rest)) = line.split_once('|') {
                let count = rest.trim_start_matches('*').split_whitespace().last().unwrap();
                histogram.record(
                    value.trim().parse().unwrap(),
                    count.trim_start_matches('*').parse().unwrap(),
                );
            } else if let Some(value) = line.trim().strip_prefix("95th percentile:") {
                printed = value.trim().parse().unwrap();
            }
        }
        (histogram, printed)
    }

    #[test]
    fn agrees_with_the_percentile_that_sysbench_printed_to_half_a_bucket() {
        for report in [
            include_str!("../fixtures/warmup_checkpoint_histogram_ro.txt"),
            include_str!("../fixtures/warmup_checkpoint_histogram_rw.txt"),
            include_str!("../fixtures/wo_histogram.txt"),
        ] {
            let (histogram, printed) = captured(report);
            assert!(histogram.count() > 1_000);
            let ours = histogram.percentile_ms(95.0).unwrap();
            // Printed with two decimals, hence the additional 0.005 ms.
            assert!(
                (ours - printed).abs() <= printed * step() / 2.0 + 0.005,
                "{ours} against {printed}"
            );
        }
    }

    #[test]
    fn printed_values_return_to_their_own_buckets() {
        let (histogram, _) = captured(include_str!("../fixtures/warmup_checkpoint_histogram_ro.txt"));
        let lines = include_str!("../fixtures/warmup_checkpoint_histogram_ro.txt")
            .matches('|')
            .count();
        assert_eq!(histogram.buckets().count(), lines);
    }

    #[test]
    fn buckets_are_1_8_percent_wide_and_the_floor_follows() {
        assert!((step().exp() - 1.018).abs() < 0.001);
        assert!((PERCENTILE_SE_FLOOR - 0.005_196).abs() < 1e-6);
    }

    #[test]
    fn interpolates_within_a_bucket() {
        let mut histogram = Histogram::new();
        histogram.record(1.0, 100);
        let (low, high) = (
            histogram.percentile_ms(0.0).unwrap(),
            histogram.percentile_ms(100.0).unwrap(),
        );
        assert!((high / low - step().exp()).abs() < 1e-9);
        let middle = histogram.percentile_ms(50.0).unwrap();
        assert!((middle - (low * high).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn refuses_what_has_no_answer() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile_ms(95.0), None);
        histogram.record(f64::NAN, 5);
        assert_eq!(histogram.count(), 0);
        histogram.record(0.0, 1);
        histogram.record(1e9, 1);
        assert_eq!(histogram.buckets().count(), 2, "first and last bucket");
        assert_eq!(histogram.percentile_ms(101.0), None);
        assert_eq!(histogram.percentile_ms(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn merging_is_recording_together(
            one in prop::collection::vec((0.01_f64..1_000.0, 1_u64..500), 1..40),
            two in prop::collection::vec((0.01_f64..1_000.0, 1_u64..500), 1..40),
        ) {
            let record = |events: &[(f64, u64)]| {
                let mut histogram = Histogram::new();
                for (value, count) in events {
                    histogram.record(*value, *count);
                }
                histogram
            };
            let mut merged = record(&one);
            merged.merge(&record(&two));
            let together: Vec<_> = one.iter().chain(&two).copied().collect();
            prop_assert_eq!(&merged, &record(&together));
        }

        #[test]
        fn percentiles_rise_and_stay_within_the_values(
            events in prop::collection::vec((0.01_f64..1_000.0, 1_u64..500), 1..40),
            low in 0.0_f64..100.0, high in 0.0_f64..100.0,
        ) {
            let mut histogram = Histogram::new();
            for (value, count) in &events {
                histogram.record(*value, *count);
            }
            let (low, high) = (low.min(high), low.max(high));
            let (at_low, at_high) = (histogram.percentile_ms(low).unwrap(), histogram.percentile_ms(high).unwrap());
            prop_assert!(at_low <= at_high);
            let smallest = events.iter().map(|event| event.0).fold(f64::INFINITY, f64::min);
            let largest = events.iter().map(|event| event.0).fold(0.0, f64::max);
            prop_assert!(at_low >= smallest * (-1.01 * step()).exp());
            prop_assert!(at_high <= largest * (1.01 * step()).exp());
        }
    }
}
