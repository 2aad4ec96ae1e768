//! Running a campaign again: a token in an annotation, each of which runs it once.

use crds::BenchmarkCampaignStatus;
use crds::campaign::BenchmarkCampaign;
use crds::names::{ANNOTATION_RUN_REQUEST, condition};
use kube::ResourceExt as _;

use crate::target_planner::condition::is_true;

/// Tokens remembered; the oldest is forgotten first.
const REMEMBERED: usize = 64;
/// Longest token that is remembered in bytes; longer ones are told apart by their beginning.
const LONGEST: usize = 128;

/// Takes note of a run request. Returns true if it begins another iteration, whose status is then empty but for
/// what outlives iterations.
pub(super) fn take(campaign: &BenchmarkCampaign, status: &mut BenchmarkCampaignStatus) -> bool {
    let Some(token) = campaign.annotations().get(ANNOTATION_RUN_REQUEST) else {
        return false;
    };
    let token = &token[..token.floor_char_boundary(LONGEST)];
    if token.is_empty() || status.run_requests.iter().any(|seen| seen == token) {
        return false;
    }
    let finished = is_true(&status.conditions, condition::FINISHED);
    let never_planned = status.observed_generation.is_none();
    if !finished && !never_planned {
        // Asked while it runs: it is run again when it has ended.
        return false;
    }
    status.run_requests.push(token.to_owned());
    let forgotten = status.run_requests.len().saturating_sub(REMEMBERED);
    status.run_requests.drain(..forgotten);
    if never_planned {
        // The first iteration is the one that was asked for.
        return false;
    }
    *status = BenchmarkCampaignStatus {
        iteration: status.iteration + 1,
        run_requests: std::mem::take(&mut status.run_requests),
        ..BenchmarkCampaignStatus::default()
    };
    true
}
