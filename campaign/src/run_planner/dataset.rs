//! Which data a run needs, as the hash that the database's marker row must carry.

use crds::dataset::Rebuild;
use sha2::{Digest as _, Sha256};

use super::RunView;

/// Growth of the data, as a share of its bytes when it was made, at which it is made again.
const GROWN_BY: f64 = 0.1;

/// By how much the data may have grown before it is made again; `None` where growth does not matter.
pub fn rebuild_when_grown(view: &RunView) -> Option<f64> {
    (!view.read_only && view.run.spec.dataset.rebuild == Rebuild::WhenGrown).then_some(GROWN_BY)
}

/// Hash of what makes the data, and of where it counts as used up by the rebuild policy.
///
/// A policy that makes the data again (per workload, block or run) is part of the hash, so that the marker row alone
/// says whether that was done: there is no other record that could be lost.
pub fn dataset_hash(view: &RunView) -> String {
    let spec = &view.run.spec;
    let visit = &spec.visit;
    let used_up = match spec.dataset.rebuild {
        Rebuild::Never | Rebuild::WhenGrown => return view.data_shape.clone(),
        Rebuild::PerWorkload => spec.workload.name.clone(),
        Rebuild::PerBlock => format!(
            "{}/{}/{}/{}/{}",
            view.run.claimant.uid, visit.iteration, visit.comparison, visit.block, spec.attempt
        ),
        Rebuild::PerRun => view.run.uid.clone(),
    };
    let digest = Sha256::digest(format!("{}\n{used_up}", view.data_shape).as_bytes());
    digest
        .iter()
        .take(16)
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
