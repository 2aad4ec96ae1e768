//! Who may use a target: taken and given up in the target's status, by compare-and-swap of the whole status.
//! Epoch and boot serial only ever grow, so a release keeps them: they are part of the fence in the database.

use crds::audit::AuditSetting;
use crds::parameter::Parameters;
use crds::target::{BenchmarkTargetStatus, BootRequest, Holder, RunReference};

/// Kind of a holder that is a campaign.
pub const CAMPAIGN: &str = "BenchmarkCampaign";
/// Kind of a holder that is a run made by hand.
pub const RUN: &str = "BenchmarkRun";

/// Somebody who wants a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimant {
    /// [`CAMPAIGN`] or [`RUN`].
    pub kind: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// A boot that a run asks for: what the server is to be started with.
#[derive(Clone, Debug, PartialEq)]
pub struct BootWanted {
    /// Parameters over the target's own configuration.
    pub parameters: Parameters,
    /// Audit setting.
    pub audit: AuditSetting,
}

/// Whether somebody holds the target.
pub fn held(holder: Option<&Holder>) -> bool {
    holder.is_some_and(|h| !h.uid.is_empty())
}

/// The last boot request, also one whose asker has let go since.
pub fn request(holder: Option<&Holder>) -> Option<&BootRequest> {
    holder.and_then(|h| h.boot.as_ref())
}

/// Whether this claimant may take the target for a run. `last_run_ended`: whether the run that the holder names is
/// known to have finished or to be gone.
pub fn may_take(holder: Option<&Holder>, claimant: &Claimant, last_run_ended: bool) -> bool {
    match holder {
        Some(holder) if held(Some(holder)) => {
            holder.uid == claimant.uid && (holder.run.is_none() || last_run_ended)
        }
        _ => true,
    }
}

/// Takes the target for a run: the epoch grows, and with it the boot request, if a boot is asked for.
pub fn take(
    status: &mut BenchmarkTargetStatus,
    claimant: &Claimant,
    run: RunReference,
    boot: Option<BootWanted>,
) {
    let epoch = status.holder.as_ref().map_or(0, |h| h.epoch) + 1;
    let kept = status.holder.as_ref().and_then(|h| h.boot.clone());
    status.holder = Some(Holder {
        kind: claimant.kind.clone(),
        name: claimant.name.clone(),
        uid: claimant.uid.clone(),
        run: Some(run),
        epoch,
        boot: kept,
    });
    if let Some(boot) = boot {
        ask_boot(status, boot);
    }
}

/// Asks for a boot on behalf of whoever holds the target.
pub fn ask_boot(status: &mut BenchmarkTargetStatus, wanted: BootWanted) {
    let serial = last_serial(status) + 1;
    if let Some(holder) = &mut status.holder {
        holder.boot = Some(BootRequest {
            serial,
            parameters: wanted.parameters,
            audit: Some(wanted.audit),
        });
    }
}

/// Gives the target up. Epoch and last boot request stay.
pub fn release(status: &mut BenchmarkTargetStatus) {
    if let Some(holder) = &mut status.holder {
        holder.kind.clear();
        holder.name.clear();
        holder.uid.clear();
        holder.run = None;
    }
}

/// The largest serial that was ever asked for or booted, as far as the status knows.
fn last_serial(status: &BenchmarkTargetStatus) -> i64 {
    [
        request(status.holder.as_ref()).map(|b| b.serial),
        status.boot.as_ref().map(|b| b.serial),
        status.boot_failure.as_ref().map(|f| f.serial),
    ]
    .into_iter()
    .flatten()
    .max()
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(uid: &str) -> Claimant {
        Claimant {
            kind: CAMPAIGN.into(),
            name: "a".into(),
            uid: uid.into(),
        }
    }

    fn run(uid: &str) -> RunReference {
        RunReference {
            name: uid.into(),
            uid: uid.into(),
        }
    }

    fn boot() -> BootWanted {
        BootWanted {
            parameters: Parameters::new(),
            audit: AuditSetting::default(),
        }
    }

    #[test]
    fn epoch_and_serial_grow_over_releases() {
        let mut status = BenchmarkTargetStatus::default();
        assert!(may_take(status.holder.as_ref(), &claimant("c"), false));
        take(&mut status, &claimant("c"), run("r1"), Some(boot()));
        let holder = status.holder.clone().unwrap();
        assert_eq!((holder.epoch, holder.boot.unwrap().serial), (1, 1));
        release(&mut status);
        assert!(!held(status.holder.as_ref()));
        take(&mut status, &claimant("d"), run("r2"), Some(boot()));
        let holder = status.holder.clone().unwrap();
        assert_eq!((holder.epoch, holder.boot.unwrap().serial), (2, 2));
    }

    #[test]
    fn a_run_without_a_restart_keeps_the_boot_request() {
        let mut status = BenchmarkTargetStatus::default();
        take(&mut status, &claimant("c"), run("r1"), Some(boot()));
        take(&mut status, &claimant("c"), run("r2"), None);
        let holder = status.holder.unwrap();
        assert_eq!((holder.epoch, holder.boot.unwrap().serial), (2, 1));
    }

    #[test]
    fn only_the_holder_may_take_it_again_and_only_after_its_run() {
        let mut status = BenchmarkTargetStatus::default();
        take(&mut status, &claimant("c"), run("r1"), None);
        let holder = status.holder.as_ref();
        assert!(!may_take(holder, &claimant("d"), true), "somebody else");
        assert!(!may_take(holder, &claimant("c"), false), "its run is live");
        assert!(may_take(holder, &claimant("c"), true));
    }
}
