//! The part of a `BenchmarkCampaign` that a demo shows, read from its JSON. It judges only whether the work has ended.

use serde::Deserialize;

/// A campaign as kubectl prints it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Campaign {
    /// Name, generation.
    pub metadata: Metadata,
    /// What the operator reports.
    pub status: Status,
}

/// Name and generation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Counts changes of the spec.
    pub generation: i64,
}

/// What the operator reports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// Generation of the spec that was looked at.
    pub observed_generation: i64,
    /// When work began.
    pub start_time: Option<String>,
    /// One word.
    pub state: String,
    /// Tokens of requests for another iteration that were seen.
    pub run_requests: Vec<String>,
    /// What will be done.
    pub plan: Plan,
    /// How far it is.
    pub progress: Progress,
    /// All verdicts in a few words.
    pub verdict: String,
    /// Answers, the primary effects first.
    pub answers: Vec<Answer>,
    /// Why runs were invalid.
    pub invalid: Vec<ReasonCount>,
    /// Kubernetes conditions.
    pub conditions: Vec<Condition>,
}

/// What will be done.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Plan {
    /// Blocks.
    pub blocks: i64,
    /// Measured runs.
    pub runs: i64,
    /// Estimated length, seconds.
    pub estimated_seconds: i64,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Progress {
    /// Runs measured.
    pub done: i64,
    /// Runs planned.
    pub total: i64,
    /// Invalid runs.
    pub invalid: i64,
    /// What runs now.
    pub current: Option<String>,
    /// Estimated seconds left.
    pub seconds_left: Option<i64>,
}

/// The answer to one question.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Answer {
    /// Comparison.
    pub comparison: String,
    /// Level compared.
    pub level: String,
    /// Level it is compared with.
    pub baseline: String,
    /// The fixed axes, in words.
    pub context: String,
    /// Metric.
    pub metric: String,
    /// Verdict.
    pub verdict: String,
    /// Ratio to the baseline less 1, parts per million.
    pub effect_ppm: Option<i64>,
    /// Lower end of the interval.
    pub low_ppm: Option<i64>,
    /// Upper end of the interval.
    pub high_ppm: Option<i64>,
    /// Confidence of the interval.
    pub confidence_ppm: Option<i64>,
    /// Blocks that count.
    pub blocks: i64,
    /// Mean of the baseline, thousandths (latency: microseconds).
    pub baseline_milli: Option<i64>,
    /// Mean of the level, thousandths (latency: microseconds).
    pub level_milli: Option<i64>,
    /// The answer in a sentence.
    pub sentence: String,
    /// The same at each thread count.
    pub per_threads: Vec<ThreadsAnswer>,
}

/// An effect at one thread count.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ThreadsAnswer {
    /// Client threads.
    pub threads: i32,
    /// Verdict.
    pub verdict: String,
    /// Ratio to the baseline less 1, parts per million.
    pub effect_ppm: Option<i64>,
    /// Lower end of the interval.
    pub low_ppm: Option<i64>,
    /// Upper end of the interval.
    pub high_ppm: Option<i64>,
    /// Mean of the baseline.
    pub baseline_milli: Option<i64>,
    /// Mean of the level.
    pub level_milli: Option<i64>,
}

/// How many runs were invalid for a reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReasonCount {
    /// Reason.
    pub reason: String,
    /// Number.
    pub count: i64,
}

/// A Kubernetes condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// `CamelCase` reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Campaign {
    /// The condition of that type, if it is True.
    pub fn holds(&self, type_: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == "True")
    }

    /// Whether the work asked for has ended: this spec, and the requested iteration if there was a request.
    pub fn finished(&self, request: Option<&str>) -> bool {
        let seen = request.is_none_or(|token| self.status.run_requests.iter().any(|seen| seen == token));
        seen && self.status.observed_generation == self.metadata.generation
            && self.holds("Finished").is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(json: &serde_json::Value) -> Campaign {
        serde_json::from_value(json.clone()).unwrap()
    }

    #[test]
    fn an_old_end_is_not_the_end_of_a_new_request_or_spec() {
        let mut json = serde_json::json!({
            "metadata": {"name": "audit-cost", "generation": 2},
            "status": {"observedGeneration": 2, "runRequests": ["one"],
                       "conditions": [{"type": "Finished", "status": "True", "reason": "Completed"}]},
        });
        assert!(campaign(&json).finished(None));
        assert!(campaign(&json).finished(Some("one")));
        assert!(
            !campaign(&json).finished(Some("two")),
            "asked again, not seen yet"
        );
        json["metadata"]["generation"] = 3.into();
        assert!(
            !campaign(&json).finished(None),
            "the corrected spec was not looked at yet"
        );
    }

    #[test]
    fn a_campaign_without_status_is_read() {
        let campaign = campaign(&serde_json::json!({"metadata": {"name": "x", "generation": 1}}));
        assert!(!campaign.finished(None));
        assert_eq!(campaign.status.progress, Progress::default());
    }
}
