//! The operator's counters of API requests, read from its metrics' text: differences, and which of them a run pays for.
//! Pure: the text comes from elsewhere.

use std::collections::BTreeMap;

use serde::Serialize;

/// Sample that is read.
const COUNTER: &str = "benchmark_campaign_api_requests_total";

/// Number of requests by (verb, resource).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiRequests(BTreeMap<(String, String), u64>);

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestCount {
    /// Verb in the API server's words.
    pub verb: String,
    /// Plural of the kind, with its subresource.
    pub resource: String,
    /// Number.
    pub count: u64,
    /// Whether a run pays for it: no lease, event or watch.
    pub counted: bool,
}

impl ApiRequests {
    /// Reads them from `OpenMetrics` text; other samples are passed over.
    pub fn parse(text: &str) -> Self {
        let mut requests = BTreeMap::new();
        for line in text.lines() {
            let Some((labels, value)) = line
                .strip_prefix(COUNTER)
                .and_then(|rest| rest.strip_prefix('{')?.split_once('}'))
            else {
                continue;
            };
            if let (Some(verb), Some(resource), Ok(value)) = (
                label(labels, "verb"),
                label(labels, "resource"),
                value.trim().parse::<u64>(),
            ) {
                requests.insert((verb, resource), value);
            }
        }
        Self(requests)
    }

    /// What was asked since an earlier reading of the same process, most frequent first.
    pub fn since(&self, earlier: &Self) -> Vec<RequestCount> {
        let mut counts: Vec<RequestCount> = self
            .0
            .iter()
            .map(|((verb, resource), now)| RequestCount {
                count: now.saturating_sub(
                    earlier
                        .0
                        .get(&(verb.clone(), resource.clone()))
                        .copied()
                        .unwrap_or(0),
                ),
                counted: is_counted(verb, resource),
                verb: verb.clone(),
                resource: resource.clone(),
            })
            .filter(|count| count.count > 0)
            .collect();
        counts.sort_by_key(|count| std::cmp::Reverse(count.count));
        counts
    }

    /// Whether there was any sample: an operator that counts has asked for something.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Leases are renewed by the clock, events are a courtesy, watches are reconnects: none of them belongs to a run.
fn is_counted(verb: &str, resource: &str) -> bool {
    verb != "watch" && resource != "leases" && resource != "events"
}

/// The requests that a run pays for.
pub fn counted(counts: &[RequestCount]) -> u64 {
    counts
        .iter()
        .filter(|count| count.counted)
        .map(|count| count.count)
        .sum()
}

fn label(labels: &str, name: &str) -> Option<String> {
    labels.split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# HELP benchmark_campaign_api_requests Requests.\n\
        benchmark_campaign_api_requests_total{verb=\"patch\",resource=\"benchmarkruns/status\"} 3\n\
        benchmark_campaign_api_requests_total{verb=\"update\",resource=\"leases\"} 40\n\
        benchmark_campaign_leader 1\n# EOF\n";
    const AFTER: &str = "benchmark_campaign_api_requests_total{verb=\"patch\",resource=\"benchmarkruns/status\"} 9\n\
        benchmark_campaign_api_requests_total{resource=\"jobs\",verb=\"create\"} 2\n\
        benchmark_campaign_api_requests_total{verb=\"watch\",resource=\"pods\"} 5\n\
        benchmark_campaign_api_requests_total{verb=\"create\",resource=\"events\"} 7\n\
        benchmark_campaign_api_requests_total{verb=\"update\",resource=\"leases\"} 60\n# EOF\n";

    #[test]
    fn only_what_a_run_pays_for_is_counted_and_only_since_the_first_reading() {
        let (before, after) = (ApiRequests::parse(BEFORE), ApiRequests::parse(AFTER));
        let since = after.since(&before);
        assert_eq!(since[0].resource, "leases", "the most frequent first: {since:?}");
        assert_eq!(counted(&since), 6 + 2);
        assert_eq!(since.len(), 5);
        assert!(after.since(&after).is_empty());
    }

    #[test]
    fn a_text_without_the_counter_is_empty() {
        assert!(ApiRequests::parse("benchmark_campaign_leader 1\n# EOF\n").is_empty());
        assert!(!ApiRequests::parse(BEFORE).is_empty());
    }
}
