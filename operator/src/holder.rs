//! A campaign takes a target before any of its runs do, to ask what the server can do, and gives it up at the end:
//! by compare-and-swap of the target's whole status.

use campaign::target_planner::holder::{self, BootWanted, CAMPAIGN, Claimant};
use crds::audit::AuditSetting;
use crds::parameter::Parameters;
use crds::target::TargetType;
use crds::{BenchmarkCampaign, BenchmarkTarget, BenchmarkTargetStatus};
use kube::ResourceExt as _;
use kube::api::PostParams;

use crate::context::{Context, Result, timed};

/// A campaign, as one who wants a target.
pub fn claimant(campaign: &BenchmarkCampaign) -> Claimant {
    Claimant {
        kind: CAMPAIGN.into(),
        name: campaign.name_any(),
        uid: campaign.uid().unwrap_or_default(),
    }
}

/// Takes the target for a campaign and asks for a boot with the target's own configuration (a borrowed server is left
/// running), unless it is held already: by another, who keeps it, or by the campaign, which has asked. Returns whether the
/// status changed.
pub fn hold(type_: TargetType, status: &mut BenchmarkTargetStatus, claimant: &Claimant) -> bool {
    let current = status.holder.as_ref();
    if holder::held(current) {
        return false;
    }
    let mut taken = current.cloned().unwrap_or_default();
    taken.kind.clone_from(&claimant.kind);
    taken.name.clone_from(&claimant.name);
    taken.uid.clone_from(&claimant.uid);
    taken.run = None;
    status.holder = Some(taken);
    if type_ == TargetType::External {
        return true;
    }
    let own = BootWanted {
        parameters: Parameters::new(),
        // The API refuses a setting without a name.
        audit: AuditSetting {
            name: "none".to_owned(),
            ..AuditSetting::default()
        },
    };
    holder::ask_boot(status, own);
    true
}

/// Gives the target up if the campaign has it. Returns whether the status changed.
pub fn release(status: &mut BenchmarkTargetStatus, campaign_uid: &str) -> bool {
    let ours =
        holder::held(status.holder.as_ref()) && status.holder.as_ref().is_some_and(|h| h.uid == campaign_uid);
    if ours {
        holder::release(status);
    }
    ours
}

/// Reads the target, changes its status, and writes it if it changed. A conflict is an error: look again.
pub async fn change(
    context: &Context,
    namespace: &str,
    name: &str,
    change: impl FnOnce(TargetType, &mut BenchmarkTargetStatus) -> bool,
) -> Result<()> {
    let api = context.namespaced::<BenchmarkTarget>(namespace);
    let Some(mut target) = timed("reading a target", api.get_opt(name)).await? else {
        return Ok(());
    };
    let type_ = target.spec.type_;
    if change(type_, target.status.get_or_insert_default()) {
        timed(
            "taking or giving up a target",
            api.replace_status(name, &PostParams::default(), &target),
        )
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(uid: &str) -> Claimant {
        Claimant {
            kind: CAMPAIGN.into(),
            name: uid.into(),
            uid: uid.into(),
        }
    }

    #[test]
    fn a_target_has_one_holder_and_serials_never_go_back() {
        let mut status = BenchmarkTargetStatus::default();
        assert!(hold(TargetType::Managed, &mut status, &claimant("a")));
        assert!(
            !hold(TargetType::Managed, &mut status, &claimant("a")),
            "asking twice is asking once"
        );
        assert!(
            !hold(TargetType::Managed, &mut status, &claimant("b")),
            "held by another"
        );
        assert!(!release(&mut status, "b"), "not its own");
        assert!(release(&mut status, "a"));
        assert!(hold(TargetType::Managed, &mut status, &claimant("b")));
        let serial = status
            .holder
            .as_ref()
            .and_then(|h| h.boot.as_ref())
            .map(|b| b.serial);
        assert_eq!(serial, Some(2));
    }
}
