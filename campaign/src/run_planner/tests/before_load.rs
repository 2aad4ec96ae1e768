//! Waiting, restarting, making data, proving.

use crds::dataset::DatasetStatus;

use super::*;

#[test]
fn a_failed_boot_ends_the_run_that_asked_for_it_only() {
    let mut view = taken(true);
    let failure = |serial| BootFailure {
        serial,
        reason: "ServerEnded".into(),
        message: "unknown variable".into(),
    };
    target(&mut view).boot_failure = Some(failure(0));
    assert_eq!(settle(&mut view, 5), None);
    assert_eq!(view.run.status.step, Step::Restarting);
    target(&mut view).boot_failure = Some(failure(1));
    settle(&mut view, 6);
    assert_eq!(reason(&view), "BootFailed");
    assert!(
        view.run.status.validity.as_ref().unwrap().reasons[0]
            .message
            .contains("unknown variable")
    );
}

#[test]
fn data_is_made_and_then_measured_on_a_fresh_boot() {
    let mut view = taken(true);
    target(&mut view).boot = Some(boot(1, "p1/c1"));
    view.established = Some(Establishment::DatasetNeeded {
        found: "nothing".into(),
    });
    let Some(Action::CreatePrepareJob { name, order }) = settle(&mut view, 5) else {
        panic!("the data is missing");
    };
    assert_eq!(
        (name.as_str(), order.dataset_hash.as_str()),
        ("c-1-prepare-1", "shape")
    );
    view.established = None;
    view.prepare = JobView::Active { pod: None };
    assert_eq!(settle(&mut view, 6), None);
    view.prepare = ended(serde_json::to_string(&report()).unwrap(), 0);
    let Some(Action::RequestBoot(status)) = settle(&mut view, 60) else {
        panic!("measured on a fresh boot");
    };
    *target(&mut view) = *status;
    assert_eq!(settle(&mut view, 61), None);
    assert_eq!(
        (view.run.status.step, view.run.status.boot_serial),
        (Step::Restarting, Some(2))
    );
    target(&mut view).boot = Some(boot(2, "p2/c2"));
    assert!(matches!(settle(&mut view, 65), Some(Action::Establish { .. })));
    view.established = Some(Establishment::DatasetNeeded {
        found: "7 rows".into(),
    });
    view.prepare = JobView::Absent;
    assert!(
        matches!(settle(&mut view, 66), Some(Action::CreatePrepareJob { name, .. }) if name == "c-1-prepare-2")
    );
    view.established = None;
    let failed = RunReport {
        outcome: RunOutcome::ToolFailed,
        message: "no space".into(),
        ..report()
    };
    view.prepare = ended(serde_json::to_string(&failed).unwrap(), 1);
    settle(&mut view, 90);
    assert_eq!(reason(&view), "PrepareFailed");
}

#[test]
fn what_a_proof_found_is_told_by_target_and_run() {
    let mut view = taken(true);
    target(&mut view).boot = Some(Boot {
        image_id: Some("sha256:server".into()),
        ..boot(1, "p1/c1")
    });
    let data = DatasetStatus {
        hash: "shape".into(),
        tables: 2,
        ..DatasetStatus::default()
    };
    let Establishment::Ready(mut proof) = proven("p1/c1") else {
        panic!("a proof");
    };
    proof.evidence.dataset = Some(data.clone());
    view.established = Some(Establishment::Ready(proof));
    let Some(Action::RecordDataset(status)) = settle(&mut view, 5) else {
        panic!("the target does not say what it holds");
    };
    assert_eq!(status.dataset, Some(data));
    *target(&mut view) = *status;
    // Said once.
    assert!(matches!(settle(&mut view, 6), Some(Action::CreateJob { .. })));
    let environment = view.run.status.environment.unwrap();
    assert_eq!(environment.database_image_id.as_deref(), Some("sha256:server"));
}

#[rstest]
#[case(Establishment::NotInForce(vec![Finding { reason: "x".into(), message: "x is 1, wanted 2".into() }]), "SettingsNotInForce")]
#[case(Establishment::Refused(Finding { reason: "DatabaseRefused".into(), message: "m".into() }), "DatabaseRefused")]
fn what_cannot_be_proved_is_not_measured(#[case] answer: Establishment, #[case] expected: &str) {
    let mut view = taken(false);
    view.established = Some(answer);
    settle(&mut view, 5);
    assert_eq!(reason(&view), expected);
    assert_eq!(view.job, JobView::Absent);
}

#[test]
fn a_silent_database_is_asked_again_for_a_while() {
    let mut view = taken(false);
    view.established = Some(Establishment::Unreachable("no route".into()));
    settle(&mut view, 0);
    assert_eq!(plan(&view, at(100)).requeue, Some(Duration::from_secs(1)));
    assert_eq!(view.run.status.step, Step::Proving);
    settle(&mut view, 181);
    assert_eq!(reason(&view), "DatabaseUnreachable");
}

#[test]
fn a_runner_that_somebody_else_started_is_looked_for_and_not_disturbed() {
    let mut view = taken(false);
    view.established = Some(Establishment::Started);
    assert_eq!(settle(&mut view, 0), None);
    assert_eq!(plan(&view, at(100)).requeue, Some(Duration::from_secs(5)));
    assert_eq!(view.run.status.step, Step::Proving);
    settle(&mut view, 181);
    assert_eq!(reason(&view), "AlreadyStarted");
}

#[test]
fn a_proof_of_an_earlier_boot_proves_nothing() {
    let mut view = taken(true);
    target(&mut view).boot = Some(boot(1, "p2/c2"));
    view.established = Some(proven("p1/c1"));
    assert_eq!(
        settle(&mut view, 5),
        Some(Action::Establish {
            boot_identity: "p2/c2".into()
        })
    );
    assert_eq!(view.run.status.evidence, None);
}

#[test]
fn a_later_run_of_a_visit_needs_the_boot_of_the_first() {
    let mut view = view(false);
    view.run.spec.requires_boot = Some("p0/c0".into());
    view.node = NodeLease::Ours;
    let Some(Action::TakeTarget(status)) = settle(&mut view, 0) else {
        panic!("free");
    };
    assert_eq!(status.holder.as_ref().unwrap().boot, None, "no boot is asked for");
    *target(&mut view) = *status;
    assert!(matches!(settle(&mut view, 0), Some(Action::Establish { .. })));
    target(&mut view).boot = Some(boot(0, "p0/c1"));
    settle(&mut view, 1);
    assert_eq!(reason(&view), "BootChanged");
}

#[test]
fn a_target_of_somebody_else_is_waited_for_and_the_node_is_not_kept_meanwhile() {
    let mut view = view(true);
    let other = Claimant {
        kind: CAMPAIGN.into(),
        name: "other".into(),
        uid: "ou".into(),
    };
    let run = crds::target::RunReference {
        name: "other-1".into(),
        uid: "or".into(),
    };
    holder::take(target(&mut view), &other, run, None);
    view.node = NodeLease::Ours;
    assert_eq!(
        settle(&mut view, 0),
        Some(Action::ReleaseNode {
            node: "node-1".into()
        })
    );
    view.node = NodeLease::Unknown;
    assert_eq!(settle(&mut view, 0), None);
    let waits = view.run.status.waiting_for.clone().unwrap();
    assert!(
        waits.contains("BenchmarkCampaign other") && waits.contains("other-1"),
        "{waits}"
    );
    holder::release(target(&mut view));
    view.node = NodeLease::Other("run x of namespace y".into());
    assert_eq!(settle(&mut view, 0), None);
    assert!(
        view.run
            .status
            .waiting_for
            .clone()
            .unwrap()
            .contains("run x of namespace y")
    );
    assert!(condition::is_true(&view.run.status.conditions, READY));
}

#[test]
fn a_run_whose_target_was_given_away_ends() {
    let mut view = taken(true);
    settle(&mut view, 0);
    target(&mut view).holder.as_mut().unwrap().epoch += 1;
    settle(&mut view, 1);
    assert_eq!(reason(&view), "TargetLost");
}

#[test]
fn a_run_made_by_hand_gives_its_target_back() {
    let mut view = view(false);
    view.run.claimant = Claimant {
        kind: holder::RUN.into(),
        name: "c-1".into(),
        uid: "ru".into(),
    };
    view.node = NodeLease::Ours;
    let Some(Action::TakeTarget(status)) = settle(&mut view, 0) else {
        panic!("free");
    };
    *target(&mut view) = *status;
    settle(&mut view, 0);
    view.established = Some(Establishment::Refused(Finding {
        reason: "ProofFailed".into(),
        message: "m".into(),
    }));
    settle(&mut view, 1);
    view.node = NodeLease::Unknown;
    let Some(Action::ReleaseTarget(status)) = settle(&mut view, 1) else {
        panic!("it held the target for itself");
    };
    assert!(!holder::held(status.holder.as_ref()));
}

#[test]
fn a_generator_without_a_thread_is_refused_and_long_names_too() {
    let mut many = view(true);
    many.run.spec.load_generator.count = many.run.spec.threads + 1;
    settle(&mut many, 0);
    assert_eq!(reason(&many), "Unsupported");
    let mut long = view(true);
    long.run.name = "r".repeat(53);
    settle(&mut long, 0);
    assert_eq!(reason(&long), "NameTooLong");
}

#[test]
fn rebuild_policies_are_part_of_the_datas_hash() {
    use crds::dataset::Rebuild;
    let mut view = view(true);
    view.read_only = false;
    assert_eq!(rebuild_when_grown(&view), Some(0.1));
    assert_eq!(dataset_hash(&view), "shape");
    let mut hashes = std::collections::BTreeSet::from(["shape".to_owned()]);
    for rebuild in [Rebuild::PerWorkload, Rebuild::PerBlock, Rebuild::PerRun] {
        view.run.spec.dataset.rebuild = rebuild;
        assert_eq!(rebuild_when_grown(&view), None);
        assert_eq!(dataset_hash(&view), dataset_hash(&view));
        assert!(hashes.insert(dataset_hash(&view)), "{rebuild:?}");
    }
    view.run.uid = "another".into();
    assert!(
        hashes.insert(dataset_hash(&view)),
        "PerRun: another run, other data"
    );
}
