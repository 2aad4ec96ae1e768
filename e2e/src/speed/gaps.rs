//! Dead time: from the end of one run's load to the start of the next one's, and where it went. Pure.

use serde::Serialize;

use super::timeline::{Millis, PodMoment, RunMoments, Timeline};

/// The time between the loads of two consecutive runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whether a restart, volatile settings, settling and proof lie between.
    pub restarts: bool,
    /// All of it.
    pub millis: Millis,
    /// Its parts in order; they add up to all of it.
    pub steps: Vec<(&'static str, Millis)>,
}

/// The median of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepMedian {
    /// From what to what.
    pub step: &'static str,
    /// Median, milliseconds.
    pub millis: Millis,
}

/// Medians of gaps of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadTime {
    /// Number of gaps.
    pub gaps: usize,
    /// Median, milliseconds.
    pub median_millis: Millis,
    /// Shortest.
    pub shortest_millis: Millis,
    /// Longest.
    pub longest_millis: Millis,
    /// Medians of the parts, in order.
    pub steps: Vec<StepMedian>,
}

/// The gaps of a campaign. A run for which data was made, or that measured nothing, ends none and begins none.
pub fn gaps(timeline: &Timeline) -> Vec<Gap> {
    let mut runs: Vec<(&RunMoments, Millis, Millis)> = timeline
        .runs
        .values()
        .filter_map(|run| Some((run, run.load_started?, run.load_ended?)))
        .collect();
    runs.sort_by_key(|(_, started, _)| *started);
    runs.windows(2)
        .filter_map(|pair| {
            let [(before, _, ended), (after, started, _)] = pair else {
                return None;
            };
            (!after.prepared).then(|| gap(timeline, before, after, *ended, *started))
        })
        .collect()
}

fn gap(timeline: &Timeline, before: &RunMoments, after: &RunMoments, ended: Millis, started: Millis) -> Gap {
    let pod = |what| timeline.pod_moment(what, ended, started);
    let moments = [
        ("end of load to the kubelet's report", before.reported),
        ("report to the result in the status", before.finished),
        ("result to the next run's object", after.created),
        ("next run to the stop of the server", pod(PodMoment::Stopping)),
        ("stop of the server to its pod's end", pod(PodMoment::Gone)),
        ("pod's end to the new pod", pod(PodMoment::Created)),
        ("new pod to the server's container", pod(PodMoment::Running)),
        ("server's container to a ready pod", pod(PodMoment::Ready)),
        ("settings, settling, cache, proof", after.proved),
        ("proof to the Job's pod", after.pod_created),
        ("Job's pod to a running container", after.pod_running),
        ("container to the start of load", Some(started)),
    ];
    let mut last = ended;
    let mut steps = Vec::new();
    for (step, at) in moments {
        // What was not seen belongs to the part after it; the kubelet may say late what was over before.
        if let Some(at) = at {
            let at = at.clamp(last, started.max(last));
            steps.push((step, at - last));
            last = at;
        }
    }
    Gap {
        restarts: after.restarts,
        millis: started - ended,
        steps,
    }
}

/// Medians over the gaps with a restart, or those without.
pub fn dead_time(gaps: &[Gap], restarts: bool) -> Option<DeadTime> {
    let of_kind: Vec<&Gap> = gaps.iter().filter(|gap| gap.restarts == restarts).collect();
    let all: Vec<Millis> = of_kind.iter().map(|gap| gap.millis).collect();
    let mut steps: Vec<StepMedian> = Vec::new();
    for (step, _) in of_kind.iter().flat_map(|gap| &gap.steps) {
        if steps.iter().all(|known| known.step != *step) {
            let of_step: Vec<Millis> = of_kind
                .iter()
                .flat_map(|gap| &gap.steps)
                .filter(|(name, _)| name == step)
                .map(|(_, millis)| *millis)
                .collect();
            steps.push(StepMedian {
                step,
                millis: median(&of_step)?,
            });
        }
    }
    Some(DeadTime {
        gaps: all.len(),
        median_millis: median(&all)?,
        shortest_millis: all.iter().copied().min()?,
        longest_millis: all.iter().copied().max()?,
        steps,
    })
}

/// The median; of an even number, the mean of the middle two.
pub fn median(values: &[Millis]) -> Option<Millis> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(i64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(restarts: bool, started: Millis, ended: Millis) -> RunMoments {
        RunMoments {
            restarts,
            load_started: Some(started),
            load_ended: Some(ended),
            ..RunMoments::default()
        }
    }

    fn timeline(runs: Vec<RunMoments>) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.runs = runs
            .into_iter()
            .enumerate()
            .map(|(n, run)| (format!("{n}"), run))
            .collect();
        timeline
    }

    #[test]
    fn gaps_lie_between_loads_in_time_order_and_are_named_by_the_later_run() {
        let runs = vec![
            run(true, 50_000, 60_000),
            run(false, 62_000, 70_000),
            run(true, 1_000, 9_000),
        ];
        let gaps = gaps(&timeline(runs));
        let found: Vec<(bool, Millis)> = gaps.iter().map(|gap| (gap.restarts, gap.millis)).collect();
        assert_eq!(found, [(true, 41_000), (false, 2_000)]);
    }

    #[test]
    fn data_that_is_made_and_runs_without_load_are_no_dead_time() {
        let mut prepared = run(true, 40_000, 50_000);
        prepared.prepared = true;
        let mut lost = run(false, 60_000, 0);
        lost.load_ended = None;
        assert_eq!(gaps(&timeline(vec![run(true, 0, 10), prepared, lost])), []);
    }

    #[test]
    fn the_parts_add_up_whatever_was_seen_late_or_not_at_all() {
        let mut before = run(true, 0, 1_000);
        before.reported = Some(1_600);
        before.finished = Some(1_700);
        let mut after = run(false, 3_000, 4_000);
        // Seen before the earlier one's end was: the watch of runs is not that of pods.
        after.created = Some(1_650);
        after.proved = Some(2_000);
        after.pod_running = Some(3_200);
        let gaps = gaps(&timeline(vec![before, after]));
        assert_eq!(
            gaps[0].steps.iter().map(|(_, millis)| millis).sum::<Millis>(),
            2_000
        );
        assert_eq!(gaps[0].steps[0], ("end of load to the kubelet's report", 600));
        assert_eq!(gaps[0].steps[2].1, 0, "never negative");
        assert_eq!(gaps[0].steps.last().unwrap().1, 0);
    }

    #[test]
    fn medians_are_over_gaps_of_one_kind() {
        let gap = |restarts, millis| Gap {
            restarts,
            millis,
            steps: vec![("a", millis / 2)],
        };
        let gaps = [
            gap(true, 6_000),
            gap(true, 9_000),
            gap(true, 7_000),
            gap(false, 10),
        ];
        let found = dead_time(&gaps, true).unwrap();
        assert_eq!(
            (
                found.gaps,
                found.median_millis,
                found.shortest_millis,
                found.longest_millis
            ),
            (3, 7_000, 6_000, 9_000)
        );
        assert_eq!(
            found.steps,
            [StepMedian {
                step: "a",
                millis: 3_500
            }]
        );
        assert_eq!(dead_time(&gaps[..3], false), None);
        assert_eq!(median(&[1, 4]), Some(2));
    }
}
