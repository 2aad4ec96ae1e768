use super::*;

fn samples(written: &[i64]) -> Vec<Sample> {
    written
        .iter()
        .enumerate()
        .map(|(i, written)| Sample {
            at: INTERVAL * u32::try_from(i).unwrap(),
            history: Some(0),
            checkpoint_age: Some(6_534_732),
            written: Some(*written),
            load_status: "Buffer pool(s) load completed at 261130 17:16:33".to_owned(),
            unfinished: Vec::new(),
            node_dirty: None,
        })
        .collect()
}

#[test]
fn three_quiet_samples_are_rest() {
    assert_eq!(unmet(&samples(&[5, 5, 5])), Vec::<String>::new());
    // 400 KiB in half a second is less than a MiB a second.
    assert!(unmet(&samples(&[0, 400 << 10, 800 << 10])).is_empty());
    assert_eq!(unmet(&samples(&[5, 5])).len(), 1);
    assert_eq!(unmet(&[]), ["not looked at"]);
}

#[test]
fn every_measure_can_fail_and_is_named() {
    let quiet = || samples(&[5, 5, 5]);
    let last = |change: fn(&mut Sample)| {
        let mut samples = quiet();
        change(samples.last_mut().unwrap());
        unmet(&samples)
    };
    for (found, word) in [
        (unmet(&samples(&[0, 600 << 10, 600 << 10])), "bytes written"),
        (last(|s| s.checkpoint_age = Some(0)), "checkpoint"),
        (last(|s| s.history = Some(1001)), "purge"),
        (
            last(|s| s.load_status = "Loaded 12/300 pages".to_owned()),
            "buffer pool",
        ),
        (last(|s| s.node_dirty = Some(65 << 20)), "MiB of the node"),
    ] {
        assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
    }
}

#[test]
fn only_the_last_three_samples_count_and_what_cannot_be_read_does_not() {
    assert!(unmet(&samples(&[0, 100 << 20, 200 << 20, 200 << 20, 200 << 20])).is_empty());
    let blind = vec![Sample::default(); 3];
    assert!(unmet(&blind).is_empty());
}

#[test]
fn a_load_that_ended_or_never_began_is_over() {
    for status in [
        "",
        "Buffer pool(s) load completed at 1",
        "Loading of buffer pool not started",
        "Cannot open 'x' for reading",
    ] {
        assert!(!loading(status), "{status}");
    }
    assert!(loading("Loading buffer pool(s) from ib_buffer_pool"));
}
