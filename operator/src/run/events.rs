//! Events of a run: at most four (data being made, twice at most; invalid or measured once; and its start).
//! An event is a courtesy: the status says the same.

use crds::BenchmarkRun;
use crds::run::{Step, ValidityVerdict};
use kube::Resource as _;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::context::{CALL_TIMEOUT, Context};

/// Publishes the event of the step that a run has reached, if that step has one.
pub(super) fn publish(context: &Context, run: &BenchmarkRun) {
    let Some(event) = event(run) else {
        return;
    };
    let reporter = Reporter {
        controller: crds::names::FIELD_MANAGER.into(),
        instance: Some(context.settings.identity.clone()),
    };
    let recorder = Recorder::new(context.client.clone(), reporter);
    let reference = run.object_ref(&());
    // Beside the reconcile: the next run does not wait for the telling.
    tokio::spawn(async move {
        let outcome = tokio::time::timeout(CALL_TIMEOUT, recorder.publish(&event, &reference)).await;
        if !matches!(outcome, Ok(Ok(()))) {
            tracing::debug!("an event was not published");
        }
    });
}

fn event(run: &BenchmarkRun) -> Option<Event> {
    let status = run.status.as_ref()?;
    let (type_, reason, note) = match status.step {
        Step::PreparingDataset => (
            EventType::Normal,
            "PreparingDataset".to_owned(),
            "the data is being made".to_owned(),
        ),
        Step::Measuring => (
            EventType::Normal,
            "Proved".to_owned(),
            "the settings are in force and proved; load begins".to_owned(),
        ),
        Step::Finished => match &status.validity {
            Some(validity) if validity.verdict == ValidityVerdict::Invalid => {
                let first = validity.reasons.first()?;
                (EventType::Warning, first.reason.clone(), first.message.clone())
            }
            _ => (
                EventType::Normal,
                "Measured".to_owned(),
                "the run is valid".to_owned(),
            ),
        },
        Step::Waiting | Step::Restarting | Step::Proving => return None,
    };
    Some(Event {
        type_,
        reason,
        note: Some(note),
        action: "Measure".to_owned(),
        secondary: None,
    })
}
