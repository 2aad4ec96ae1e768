//! What differs harmlessly, what is damaged, and what sysbench prints that no capture holds.

use proptest::prelude::*;
use rstest::rstest;

use super::super::super::{Capture, Command, Flag, Reason, text};
use super::super::parse;
use super::{parsed, read, run};
use Reason::*;

#[test]
fn only_a_checkpoint_report_is_no_report() {
    let whole = read("warmup_checkpoint_histogram_ro.txt");
    let end = whole.find("Latency histogram").unwrap();
    let result = run(&whole[..end]);
    assert_eq!(
        (result.reasons.as_slice(), result.figures.tps_milli),
        ([NoReport].as_slice(), None)
    );
    assert_eq!(result.series.len(), 4);
}

#[test]
fn zero_intervals_are_counted_as_stalled_seconds() {
    assert_eq!(parsed("server_stalled_3s").figures.stalled_seconds, Some(2));
}

#[rstest]
#[case("\n", "\r\n")]
#[case("\n", "\r")]
#[case("sysbench 1.0.20", "sysbench 1.0.17")]
#[case(
    "Threads started!",
    "ALERT: attempt to free an invalid result set\nThreads started!"
)]
#[case("err/s: ", "err/s ")]
fn harmless_differences_change_no_figure(#[case] from: &str, #[case] to: &str) {
    let original = run(&read("rw_interval1_p95.txt"));
    let changed = run(&read("rw_interval1_p95.txt").replace(from, to));
    assert!(changed.acceptable, "{:?}", changed.details);
    assert_eq!(
        (original.figures, original.series),
        (changed.figures, changed.series)
    );
}

#[test]
fn a_comma_as_decimal_separator_changes_no_figure() {
    let text = read("rw_interval1_p95.txt");
    let comma = regex_free_comma(&text);
    let (original, changed) = (run(&text), run(&comma));
    assert!(changed.acceptable);
    assert_eq!(
        (original.figures, original.series),
        (changed.figures, changed.series)
    );
}

/// Every dot between two digits becomes a comma, except in the version.
fn regex_free_comma(text: &str) -> String {
    let (head, tail) = text.split_once('\n').unwrap();
    let bytes = tail.as_bytes();
    let changed: String = tail
        .char_indices()
        .map(|(at, found)| {
            let digit = |index: Option<usize>| {
                index
                    .and_then(|index| bytes.get(index))
                    .is_some_and(u8::is_ascii_digit)
            };
            if found == '.' && digit(at.checked_sub(1)) && digit(Some(at + 1)) {
                ','
            } else {
                found
            }
        })
        .collect();
    format!("{head}\n{changed}")
}

#[test]
fn without_its_last_newline_a_report_is_complete() {
    assert!(run(read("rw_interval1_p95.txt").trim_end()).acceptable);
}

#[test]
fn cut_off_anywhere_it_is_never_acceptable_and_never_shows_half_a_number() {
    for name in [
        "rw_interval1_p95",
        "warmup_checkpoint_histogram_ro",
        "synthetic_from_source/v0_5_oltp",
    ] {
        let whole = read(&format!("{name}.txt"));
        let complete = run(&whole);
        // The last line's last digit is where it becomes complete.
        for end in 0..whole.trim_end().len() {
            let Some(part) = whole.get(..end) else { continue };
            let result = run(part);
            assert!(!result.acceptable, "{name} cut at {end}");
            let (got, want) = (&result.figures, &complete.figures);
            for (got, want) in [
                (got.transactions, want.transactions),
                (got.tps_milli, want.tps_milli),
                (got.events, want.events),
                (got.latency_p95_micros, want.latency_p95_micros),
            ] {
                assert!(got.is_none() || got == want, "{name} cut at {end}: {got:?}");
            }
        }
    }
}

#[test]
fn fatal_anywhere_is_unacceptable() {
    let text = read("rw_interval1_p95.txt");
    for (stdout, stderr) in [
        (format!("FATAL: x\n{text}"), ""),
        (format!("{text}FATAL: x"), ""),
        (
            text.replace("SQL statistics:", "SQL statistics:\nmy hook FATAL: x"),
            "",
        ),
        (text.clone(), "FATAL: x"),
    ] {
        let result = parse(&Capture {
            stdout: &stdout,
            stderr,
            exit_code: 0,
            command: Command::Run,
        });
        assert_eq!(result.reasons, [Fatal]);
        assert_eq!(result.figures.tps_milli, Some(2_007_690));
    }
}

#[test]
fn another_exit_code_is_unacceptable() {
    for exit_code in [1, 2, 130, 137, 139, 143, 255, -9] {
        let stdout = read("rw_interval1_p95.txt");
        let result = parse(&Capture {
            stdout: &stdout,
            stderr: "",
            exit_code,
            command: Command::Run,
        });
        assert!(!result.acceptable && result.reasons.contains(&ExitCode));
    }
}

#[test]
fn no_events_is_unacceptable_and_nan_is_no_figure() {
    let text = read("rw_noninterval.txt")
        .replace("3719   (1855.18", "0      (-nan")
        .replace(
            "total number of events:              3719",
            "total number of events:              0",
        )
        .replace("74380  (37103.54 per", "0      (inf per");
    let result = run(&text);
    assert_eq!(result.reasons, [NoEvents]);
    assert_eq!(result.figures.tps_milli, Some(0));
}

#[test]
fn a_log_of_several_processes_counts_the_last_only() {
    let text = format!("{}{}", read("rw_interval1_p95.txt"), read("sigterm_midrun.txt"));
    assert_eq!(run(&text).reasons, [NoReport]);
    let text = format!("{}{}", read("sigterm_midrun.txt"), read("ro_default.txt"));
    let result = run(&text);
    assert!(result.acceptable);
    assert_eq!(
        (result.percentile, result.figures.latency_p95_micros),
        (Some(99), None)
    );
    assert_eq!(
        result.figures.latency_percentile_micros,
        run(&read("ro_default.txt")).figures.latency_percentile_micros
    );
}

#[test]
fn a_script_without_a_database_has_no_queries() {
    let text = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 1\n\n\
        Prime numbers limit: 10000\n\nThreads started!\n\n[ 1s ] thds: 1 eps: 999.50 lat (ms,95%): 1.10\nCPU speed:\n    events per second:  1000.25\n\n\
        General statistics:\n    total time:                          2.0006s\n    total number of events:              2001\n\n\
        Latency (ms):\n         min:  0.97\n         avg:  1.00\n         max:  1.50\n         95th percentile:  1.10\n         sum:  2000.00\n\n\
        Threads fairness:\n    events (avg/stddev):           2001.0000/0.00\n    execution time (avg/stddev):   2.0000/0.00\n";
    let result = run(text);
    assert!(result.acceptable, "{:?}", result.details);
    assert_eq!(
        (
            result.figures.tps_milli,
            result.figures.qps_milli,
            result.figures.queries
        ),
        (Some(1_000_250), None, None)
    );
    assert_eq!(result.series[0].tps_milli, Some(999_500));
    // Without its first line it could have lost the SQL section.
    assert_eq!(run(text.split_once('\n').unwrap().1).reasons, [IncompleteReport]);
}

#[test]
fn a_lost_first_line_leaves_the_dialect_to_the_report() {
    for (name, dialect) in [
        ("rw_noninterval", "1.0"),
        ("synthetic_from_source/v1_1_read_write", "1.1"),
        ("synthetic_from_source/v0_5_oltp", "0.5"),
        ("synthetic_from_source/v0_4_oltp_nontrx", "0.4"),
    ] {
        let text = read(&format!("{name}.txt"));
        let result = run(text.split_once('\n').unwrap().1);
        assert_eq!(
            (
                result.version.as_deref(),
                result.dialect.as_deref(),
                result.acceptable
            ),
            (None, Some(dialect), true)
        );
    }
}

#[test]
fn a_forced_shutdown_prints_a_report_and_is_unacceptable() {
    let text = read("rw_noninterval.txt").replace(
        "SQL statistics:",
        "FATAL: The --max-time limit has expired, forcing shutdown...\nSQL statistics:",
    );
    let result = parse(&Capture {
        stdout: &text,
        stderr: "",
        exit_code: 2,
        command: Command::Run,
    });
    assert_eq!(result.reasons, [ExitCode, Fatal, ForcedShutdown]);
    assert_eq!(result.figures.tps_milli, Some(1_855_180));
}

#[test]
fn prepare_must_finish_every_table() {
    let whole = read("prepare_oltp_common.txt");
    let prepare = |stdout: &str| {
        parse(&Capture {
            stdout,
            stderr: "",
            exit_code: 0,
            command: Command::Prepare,
        })
    };
    let tables = prepare(&whole).tables.unwrap();
    assert_eq!(
        (tables.created, tables.filled, tables.indexed, tables.rows),
        (4, 4, 4, 100_000)
    );
    let without = |lost: &str| {
        whole
            .lines()
            .filter(|line| !line.starts_with(lost))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        prepare(&without("Creating a secondary index on 'sbtest3'")).reasons,
        [IncompleteTables]
    );
    assert_eq!(
        prepare(&without("Inserting 25000 records into 'sbtest3'")).reasons,
        [IncompleteTables]
    );
    let result = prepare(&without("Creating a secondary index"));
    assert_eq!(
        (result.acceptable, result.flags),
        (true, vec![Flag::NoSecondaryIndex])
    );
    assert_eq!(prepare("").reasons, [IncompleteTables]);
    assert!(!run(&whole).acceptable);
}

#[test]
fn alerts_name_the_cause_in_old_dialects() {
    let text = "sysbench 0.5:  multi-threaded system evaluation benchmark\n\nThreads started!\n\n\
        ALERT: mysql_drv_query() for query 'UPDATE sbtest1 SET k=k+1' failed: 1213 Deadlock found\n\
        FATAL: failed to execute function `event': 3\n";
    let result = parse(&Capture {
        stdout: text,
        stderr: "",
        exit_code: 1,
        command: Command::Run,
    });
    assert_eq!(result.reasons, [NoReport, ExitCode, Fatal, Deadlock]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_never_panic_and_are_never_acceptable(bytes in proptest::collection::vec(any::<u8>(), 0..2000), exit_code: i32) {
        let stdout = text::decode(&bytes);
        for command in [Command::Run, Command::Prepare, Command::Prewarm, Command::Cleanup] {
            let result = parse(&Capture { stdout: &stdout, stderr: &stdout, exit_code, command });
            prop_assert!(!result.acceptable);
        }
    }

    #[test]
    fn damaged_reports_never_panic(cuts in proptest::collection::vec((0usize..3000, 0usize..80, ".{0,12}"), 1..6)) {
        let mut text = read("warmup_checkpoint_histogram_ro.txt");
        for (start, length, insert) in cuts {
            let clip = |index: usize| (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let range = clip(start)..clip(start + length);
            text.replace_range(range, &insert);
        }
        let result = run(&text);
        prop_assert_eq!(result.acceptable, result.reasons.is_empty());
    }

    #[test]
    fn without_report_lines_nothing_is_acceptable(lines in proptest::collection::vec("(\\[ [0-9]{1,3}s \\] thds: [0-9] tps: [0-9]\\.[0-9]{2}|SQL statistics:|Threads fairness:|General statistics:|min: 1.0|transactions: 5 \\(1.00 per sec.\\))", 0..30)) {
        prop_assert!(!run(&lines.join("\n")).acceptable);
    }
}
