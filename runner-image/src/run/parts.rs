//! One load applied by several pods. The first one alone asks the server and claims the run; the others apply their
//! share from the common start on and tell what they saw of themselves.

use std::collections::BTreeMap;

use crds::runner::{RunOrder, RunOutcome};
use crds::together::{LatencyHistogram, Meeting, Part};
use database::{Agent, Login};
use tokio::time::Instant;

use super::{Told, after, before, completeness, loaded, round_trip, sample, setting, told};
use crate::load::Site;
use crate::meeting::{First, Other};
use crate::parse::ToolResult;
use crate::parse::histogram::place;
use crate::report;
use crate::stop::Stop;

/// Carries out the part of an order that the pod of this index has.
pub(super) async fn measured(
    order: &RunOrder,
    (meeting, index): (&Meeting, Option<i32>),
    login: &Login,
    site: &Site<'_>,
    stop: &Stop,
) -> Result<Told, Told> {
    let Some(index) = index.filter(|index| (0..meeting.count).contains(index)) else {
        let message = format!(
            "which of the {} load generators this is was not said",
            meeting.count
        );
        return Err(Told::only(RunOutcome::Failed, message));
    };
    let order = order.part(index);
    let ended = if index == 0 {
        first(&order, meeting, login, site, stop).await
    } else {
        other(&order, (meeting, index), login, site, stop).await
    };
    let with_index = |mut told: Told| {
        told.report.part.get_or_insert_default().index = index;
        told
    };
    ended.map(with_index).map_err(with_index)
}

fn lost(message: impl Into<String>) -> Told {
    Told::only(RunOutcome::PartLost, message)
}

fn stopped() -> Told {
    Told::only(RunOutcome::Interrupted, "told to stop before the load began")
}

async fn first(
    order: &RunOrder,
    meeting: &Meeting,
    login: &Login,
    site: &Site<'_>,
    stop: &Stop,
) -> Result<Told, Told> {
    let load = loaded(order, site)?;
    let first = First::open(meeting, &order.run_uid, order.epoch)
        .await
        .map_err(|error| {
            let message = format!("port {} can't be listened on: {error}", meeting.port);
            Told::only(RunOutcome::Failed, message)
        })?;
    let before = tokio::select! {
        before = async {
            first.gathered().await.map_err(lost)?;
            // Last: what is asked of the server must lie as close to the load as it does with one pod.
            before(order, login).await
        } => before?,
        () = stop.requested() => return Err(stopped()),
    };
    first.go();
    let begun = Instant::now();
    let applied = load.apply(&stop.or(first.broken())).await?;
    let load_millis = millis_since(begun);
    if applied.finished.interrupted {
        let (outcome, message) = match first.lost() {
            Some(lost) if !stop.is_requested() => (RunOutcome::PartLost, lost),
            _ => (RunOutcome::Interrupted, "told to stop during the load".to_owned()),
        };
        return Err(told(&applied, outcome, message));
    }
    // The counters and the log must hold what all of them sent.
    if let Err(message) = first.ended().await {
        return Err(told(&applied, RunOutcome::PartLost, message));
    }
    let mut told = after(order, login, &before, &applied).await;
    told.report.part = Some(Part {
        index: 0,
        start_uncertainty_micros: None,
        load_millis,
        histogram: Some(histogram(&applied.result)),
    });
    Ok(told)
}

async fn other(
    order: &RunOrder,
    (meeting, index): (&Meeting, i32),
    login: &Login,
    site: &Site<'_>,
    stop: &Stop,
) -> Result<Told, Told> {
    let load = loaded(order, site)?;
    let agent = Agent::of(login);
    let (uncertainty, round_trip, started) = tokio::select! {
        begun = async {
            let come = Other::come(meeting, &order.run_uid, order.epoch, index).await?;
            let uncertainty = come.uncertainty();
            // Each from where it is: another node may be farther away.
            let round_trip = round_trip(agent.as_ref(), &login.connection).await;
            Ok((uncertainty, round_trip, come.started().await?))
        } => begun.map_err(|message: String| lost(message))?,
        () = stop.requested() => return Err(stopped()),
    };
    let begun = Instant::now();
    let before = sample(None).await;
    let applied = load.apply(&stop.or(started.broken())).await?;
    let load_millis = millis_since(begun);
    let after = sample(None).await;
    if applied.finished.interrupted {
        let (outcome, message) = if stop.is_requested() {
            (RunOutcome::Interrupted, "told to stop during the load")
        } else {
            (
                RunOutcome::PartLost,
                "the first load generator went away under load",
            )
        };
        return Err(told(&applied, outcome, message.to_owned()));
    }
    let well = completeness(&applied.result, order);
    if started.ended(well.is_ok()).await.is_err() {
        let message = "the first load generator had gone when the load ended";
        return Err(told(&applied, RunOutcome::PartLost, message.to_owned()));
    }
    let mut told = match well {
        Ok(()) => told(&applied, RunOutcome::Completed, String::new()),
        Err(message) => told(&applied, RunOutcome::ToolFailed, message),
    };
    let setting = report::Setting {
        round_trip_nanos: round_trip,
        ..setting(&applied.finished)
    };
    let (figures, observed) = report::figures(&applied.result, &setting, &before, &after);
    told.report.result = applied.result.acceptable.then_some(figures);
    told.report.observed = Some(observed);
    told.report.part = Some(Part {
        index,
        start_uncertainty_micros: i64::try_from(uncertainty.as_micros()).ok(),
        load_millis,
        histogram: Some(histogram(&applied.result)),
    });
    Ok(told)
}

fn millis_since(begun: Instant) -> Option<i64> {
    i64::try_from(begun.elapsed().as_millis()).ok()
}

fn histogram(result: &ToolResult) -> LatencyHistogram {
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for bucket in &result.histogram {
        *counts.entry(place(bucket.value_micros)).or_default() += bucket.count;
    }
    LatencyHistogram::of(&counts, 1)
}
