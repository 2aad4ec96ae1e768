//! Laws of a target that hold whatever is seen.

use crds::target::{Capabilities, IdleTargets};
use proptest::prelude::*;

use super::tests::{at, booted, found, running, take, view};
use super::*;

fn container() -> impl Strategy<Value = ContainerState> {
    prop_oneof![
        Just(ContainerState::Waiting(None)),
        Just(ContainerState::Waiting(Some(Problem::new("ErrImagePull", "m")))),
        Just(ContainerState::Running {
            id: "c1".into(),
            started_at: Some(at(1))
        }),
        Just(ContainerState::Running {
            id: "c2".into(),
            started_at: None
        }),
        (0..3i32).prop_map(|code| ContainerState::Ended(Exit {
            code,
            ..Exit::default()
        })),
    ]
}

prop_compose! {
    fn any_pod()(uid in "p[12]", serial in 0i64..4, outdated: bool, deleted: bool, init in container(), database in container(),
        unschedulable: bool, failed: bool) -> PodView {
        PodView {
            serial,
            outdated,
            deleted_at: deleted.then(|| at(5)),
            unschedulable: unschedulable.then(|| "no node".to_owned()),
            failed: failed.then(|| Problem::new("Evicted", "m")),
            init,
            database,
            ..running(&uid, "c1")
        }
    }
}

prop_compose! {
    fn any_view()(pod in proptest::option::of(any_pod()), held: bool, boot: bool, stop: bool, known: bool, has_boot: bool,
        server in prop_oneof![Just(ServerAnswer::NotAsked), Just(ServerAnswer::Silent), Just(found()), Just(ServerAnswer::Refused("no".into()))],
        configuration in prop_oneof![Just(Ok("c0ffee".to_owned())), Just(Err("bad".to_owned()))], gone: bool) -> TargetView {
        let mut view = if has_boot { booted() } else { view() };
        view.pod = pod;
        view.server = server;
        view.configuration = configuration;
        view.holder_gone = gone;
        if held { take(&mut view, "r1", boot); }
        if known { view.status.capabilities = Some(Capabilities::default()); }
        if stop { view.spec.managed.as_mut().unwrap().idle = IdleTargets::Stop; }
        view
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is written once is not written again: the plan for the planned status plans nothing new.
    #[test]
    fn a_plan_is_stable(view in any_view(), second in 0i64..2000) {
        let first = plan(&view, at(second));
        let mut next = view;
        next.status = first.status.clone();
        next.holder_gone = false;
        let again = plan(&next, at(second));
        prop_assert_eq!(again.status, first.status);
    }

    /// There is never a second pod, and a pod that is ending is left alone.
    #[test]
    fn a_pod_is_made_only_where_there_is_none(view in any_view(), second in 0i64..2000) {
        match plan(&view, at(second)).action {
            Some(Action::CreatePod { .. } | Action::Create(_)) => prop_assert!(view.pod.is_none()),
            Some(Action::DeletePod { uid, .. }) => {
                let pod = view.pod.unwrap();
                prop_assert_eq!(uid, pod.uid);
                prop_assert!(pod.deleted_at.is_none());
            }
            Some(Action::Identify { .. }) => {
                let pod = view.pod.unwrap();
                let runs = matches!(pod.database, ContainerState::Running { .. });
                prop_assert!(runs && pod.deleted_at.is_none());
            }
            Some(other) => prop_assert!(false, "{other:?} is for borrowed servers"),
            None => {}
        }
    }

    /// A boot in the status is one whose pod was seen to run and whose server was heard, or an older one that a
    /// request is about to replace.
    #[test]
    fn a_boot_is_never_made_up(view in any_view(), second in 0i64..2000) {
        let status = plan(&view, at(second)).status;
        if let Some(boot) = status.boot && view.status.boot.as_ref() != Some(&boot) {
            let pod = view.pod.unwrap();
            prop_assert_eq!(boot.serial, pod.serial);
            prop_assert!(boot.identity.starts_with(&pod.uid));
            prop_assert!(matches!(view.server, ServerAnswer::Identity(_)));
        }
    }

    /// A steady server under a holder is not touched.
    #[test]
    fn silence_while_held(second in 2i64..200_000) {
        let mut view = booted();
        take(&mut view, "r1", false);
        let plan = plan(&view, at(second));
        prop_assert_eq!((plan.action, plan.requeue), (None, None));
        prop_assert_eq!(plan.status, view.status);
    }
}
