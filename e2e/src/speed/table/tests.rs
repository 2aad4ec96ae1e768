use super::*;
use crate::speed::campaign::{Between, Quiet};
use crate::speed::gaps::StepMedian;
use crate::speed::shell_loop::ShellLoop;

fn dead_time(median_millis: i64) -> DeadTime {
    DeadTime {
        gaps: 12,
        median_millis,
        shortest_millis: median_millis - 100,
        longest_millis: median_millis + 100,
        steps: vec![StepMedian {
            step: "end of load to the kubelet's report",
            millis: 812,
        }],
    }
}

fn memory(megabytes: u64) -> Memory {
    Memory {
        resident_bytes: megabytes * 1_000_000,
        anonymous_bytes: 4_000_000,
        peak_bytes: megabytes * 1_000_000,
    }
}

fn report() -> Report {
    Report {
        idle: Some(memory(11)),
        between: Some(Between {
            runs: 26,
            invalid_runs: 3,
            state: "Completed".into(),
            with_restart: Some(dead_time(8_250)),
            within_visit: Some(dead_time(1_530)),
            requests: vec![RequestCount {
                verb: "update".into(),
                resource: "leases".into(),
                count: 60,
                counted: false,
            }],
            requests_per_run_milli: 11_500,
            memory: memory(13),
        }),
        quiet: Some(Quiet {
            cpu_micros_per_second: 150.0,
            seconds: 20.0,
            requests: Vec::new(),
        }),
        shell_loop: Some(ShellLoop {
            gaps_millis: vec![31_300],
            median_millis: 31_300,
        }),
        stored: None,
        failures: Vec::new(),
    }
}

#[test]
fn a_figure_over_its_target_is_missed_and_one_that_was_not_taken_is_neither() {
    let figures = figures(&report());
    let met: Vec<Option<bool>> = figures.iter().map(Figure::met).collect();
    assert_eq!(
        met,
        [Some(false), Some(true), Some(true), Some(true), Some(true), None]
    );
    assert_eq!(figures[0].shell_loop, Some(31.3));
    assert!(figures[1..].iter().all(|f| f.shell_loop.is_none()));
}

#[test]
fn the_table_shows_every_figure_and_says_what_was_not_measured_here() {
    let text = render(&report());
    let line = |start: &str| {
        text.lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{start}\n{text}"))
    };
    assert!(
        text.lines()
            .next()
            .unwrap()
            .contains("reference, not measured here")
    );
    let first = line("dead time with restart");
    for word in ["8.25 s", "at most 8 s", "MISSED", "31.3 s", "31.2 s"] {
        assert!(first.contains(word), "{word}: {first}");
    }
    assert!(
        line("3 of 26 runs").contains("not quiet"),
        "figures from a noisy machine say so"
    );
    assert!(line("operator CPU").contains("0.150 ms"));
    assert!(line("API requests a run").contains("11.5"));
    assert!(line("operator memory, 10000").contains(" -"));
    assert!(line("end of load to the kubelet's report").contains("0.812 s"));
    assert!(line("update").contains("leases *"));
    assert!(line("after the small campaign").contains("13.0 MB"));
}

#[test]
fn columns_stand_under_their_heads() {
    let text = aligned(
        &["a", "bb"],
        &[["long".into(), "x".into()], ["s".into(), "y".into()]],
    );
    assert_eq!(text, "a     bb\nlong  x\ns     y\n");
}
