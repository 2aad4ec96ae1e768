use super::*;
use crds::audit::AuditSetting;
use crds::load::{CacheState, Settle};

fn order(rebuild_when_grown: Option<f64>) -> EstablishOrder {
    EstablishOrder {
        run_uid: "run".to_owned(),
        epoch: 1,
        parameters: Parameters::new(),
        audit: AuditSetting::default(),
        workload: Workload::default(),
        rows_per_table: 100,
        dataset_hash: "hash".to_owned(),
        rebuild_when_grown,
        settle: Settle::default(),
        cache: CacheState::Cold,
        fresh_boot: true,
    }
}

#[test]
fn data_is_made_again_when_missing_of_another_shape_or_grown() {
    let made = DatasetStatus {
        hash: "hash".to_owned(),
        tables: 4,
        rows_per_table: 100,
        bytes: 1000,
    };
    let judge = |tables, bytes, grown| judge_dataset(&made, tables, bytes, &order(grown));
    assert_eq!(judge(4, 1100, Some(0.1)), None);
    assert!(judge(4, 1101, Some(0.1)).unwrap().contains("grown by 10.1 %"));
    assert_eq!(judge(4, 9000, None), None);
    assert!(judge(3, 1000, None).unwrap().contains("3 tables"));
    let other = DatasetStatus {
        hash: "other".to_owned(),
        ..made.clone()
    };
    assert!(
        judge_dataset(&other, 4, 1000, &order(None))
            .unwrap()
            .contains("another shape")
    );
}
