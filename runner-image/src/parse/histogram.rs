//! sysbench's latency histogram: 1,024 buckets from 1 µs to 100 s on a logarithmic scale, each 1.8 % wider than the one
//! before. The tool prints the middle of the bucket that holds the percentile; here it is interpolated within it.
//! Pure arithmetic on buckets.

use super::result::Bucket;

/// Lowest and highest value, microseconds, and the number of buckets (sysbench `sb_histogram_init` in 0.5 to 1.1).
const LOWEST: f64 = 1.0;
const HIGHEST: f64 = 100_000_000.0;
const BUCKETS: f64 = 1_024.0;

/// Natural logarithm of the ratio between neighbouring buckets.
fn step() -> f64 {
    (HIGHEST / LOWEST).ln() / (BUCKETS - 1.0)
}

/// Place of the bucket that holds a time in microseconds, from 0; what lies outside counts in the first or last.
pub fn place(micros: u64) -> u16 {
    let place = ((micros.max(1) as f64 / LOWEST).ln() / step()).round();
    place.clamp(0.0, BUCKETS - 1.0) as u16
}

/// Counts by place as the buckets that the tool would print.
pub fn buckets(counts: &std::collections::BTreeMap<u16, u64>) -> Vec<Bucket> {
    let value = |place: u16| (LOWEST * (f64::from(place) * step()).exp()).round() as u64;
    counts
        .iter()
        .map(|(&place, &count)| Bucket {
            value_micros: value(place),
            count,
        })
        .collect()
}

/// Edges of the bucket printed as `value` microseconds. Values under 0.1 ms are printed with two or three digits, so the
/// bucket's index is recovered first.
fn edges(value: u64) -> (f64, f64) {
    let index = f64::from(place(value));
    let edge = |offset: f64| LOWEST * ((index + offset) * step()).exp();
    (edge(-0.5), edge(0.5))
}

/// The `percentile` (1 to 100) of the buckets, interpolated within the bucket on the logarithmic scale; microseconds.
/// `None` without events or outside of 1 to 100.
pub fn percentile(buckets: &[Bucket], percentile: u64) -> Option<u64> {
    let total: u128 = buckets.iter().map(|bucket| u128::from(bucket.count)).sum();
    if total == 0 || !(1..=100).contains(&percentile) {
        return None;
    }
    let rank = total as f64 * percentile as f64 / 100.0;
    let mut below = 0.0;
    for bucket in buckets {
        let count = bucket.count as f64;
        if count > 0.0 && below + count >= rank {
            let (lower, upper) = edges(bucket.value_micros);
            let share = ((rank - below) / count).clamp(0.0, 1.0);
            return Some((lower * (upper / lower).powf(share)).round() as u64);
        }
        below += count;
    }
    None
}

/// The sum of several generators' histograms: percentiles of the whole come from here, never from averaged percentiles.
pub fn merged(histograms: &[&[Bucket]]) -> Vec<Bucket> {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for bucket in histograms.iter().flat_map(|buckets| buckets.iter()) {
        let count = counts.entry(bucket.value_micros).or_default();
        *count = count.saturating_add(bucket.count);
    }
    counts
        .into_iter()
        .map(|(value_micros, count)| Bucket { value_micros, count })
        .collect()
}

/// One printed bucket: `       0.665 |****    2`.
pub fn bucket(line: &str) -> Option<Bucket> {
    let (value, rest) = line.split_once('|')?;
    let count = rest.trim().trim_start_matches('*');
    Some(Bucket {
        value_micros: super::decimal::scaled(value, 3)?,
        count: super::decimal::count(count)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_within_a_bucket_and_stays_in_it() {
        let buckets = [
            Bucket {
                value_micros: 1_007,
                count: 50,
            },
            Bucket {
                value_micros: 1_025,
                count: 50,
            },
        ];
        let (lower, upper) = edges(1_025);
        assert!((upper / lower - 1.0182).abs() < 0.0001);
        assert_eq!(percentile(&buckets, 50), Some(lower.round() as u64));
        assert_eq!(percentile(&buckets, 100), Some(upper.round() as u64));
        let p75 = percentile(&buckets, 75).unwrap() as f64;
        assert!(p75 > lower && p75 < upper);
        assert_eq!(percentile(&buckets, 0), None);
        assert_eq!(percentile(&[], 95), None);
    }

    #[test]
    fn a_time_returns_to_its_own_bucket() {
        for micros in (1..5_000).chain([100_000, 99_999_999, 100_000_000, u64::MAX]) {
            let [bucket] = buckets(&[(place(micros), 7)].into())[..] else {
                panic!("one bucket");
            };
            assert_eq!((place(bucket.value_micros), bucket.count), (place(micros), 7));
            let (lower, upper) = edges(bucket.value_micros);
            let inside = micros.min(100_000_000) as f64;
            assert!(
                inside >= lower.floor() && inside <= upper.ceil(),
                "{micros} in {lower} to {upper}"
            );
        }
    }

    #[test]
    fn merging_adds_counts() {
        let one = [
            Bucket {
                value_micros: 10,
                count: 1,
            },
            Bucket {
                value_micros: 20,
                count: 2,
            },
        ];
        let other = [Bucket {
            value_micros: 20,
            count: u64::MAX,
        }];
        assert_eq!(
            merged(&[&one, &other]),
            [
                Bucket {
                    value_micros: 10,
                    count: 1
                },
                Bucket {
                    value_micros: 20,
                    count: u64::MAX
                }
            ]
        );
    }

    #[test]
    fn reads_a_printed_bucket() {
        let read = |line| bucket(line).map(|bucket| (bucket.value_micros, bucket.count));
        assert_eq!(
            read("       0.665 |                                         2"),
            Some((665, 2))
        );
        assert_eq!(
            read("       0.203 |**************************************** 578"),
            Some((203, 578))
        );
        assert_eq!(
            read("       value  ------------- distribution ------------- count"),
            None
        );
    }
}
