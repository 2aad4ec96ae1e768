//! Every capture in `fixtures/pgbench`, with the exit code of its README.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::super::{Capture, Command, Flag, Reason, ToolResult, text};
use super::parse;
use Reason::*;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/pgbench")
        .join(name);
    fs::read(path)
        .map(|bytes| text::decode(&bytes))
        .unwrap_or_default()
}

fn exit_codes() -> BTreeMap<String, i32> {
    let rows = read("README.md");
    rows.lines()
        .filter_map(|line| {
            let mut columns = line.strip_prefix("| ")?.split(" | ");
            Some((columns.next()?.to_owned(), columns.next()?.trim().parse().ok()?))
        })
        .collect()
}

fn parsed(name: &str) -> ToolResult {
    let command = if name.starts_with("init_") {
        Command::Prepare
    } else {
        Command::Run
    };
    parse(&Capture {
        stdout: &read(&format!("{name}.txt")),
        stderr: &read(&format!("{name}.stderr.txt")),
        exit_code: exit_codes()[name],
        command,
    })
}

fn run(stdout: &str, stderr: &str, exit_code: i32) -> ToolResult {
    parse(&Capture {
        stdout,
        stderr,
        exit_code,
        command: Command::Run,
    })
}

#[rustfmt::skip]
const OUTCOMES: &[(&str, &[Reason], &[Flag])] = &[
    ("connect_per_txn", &[], &[]),
    ("fail_no_db", &[NoReport, ExitCode, Fatal, UnknownDatabase], &[]),
    ("fail_not_initialised", &[NoReport, ExitCode, Fatal, MissingTable], &[]),
    ("fail_refused", &[NoReport, ExitCode, Fatal, ConnectionRefused], &[]),
    ("fail_too_many_clients", &[NoReport, ExitCode, Fatal, TooManyConnections], &[]),
    ("init_s10", &[], &[]),
    ("log_file", &[], &[]),
    ("script_error", &[NoEvents, ExitCode, Aborted, SqlError], &[]),
    ("select_only_builtin_mix", &[], &[]),
    ("select_only_prepared", &[], &[]),
    ("serializable_retries", &[], &[Flag::Retries, Flag::FailedTransactions]),
    ("server_killed_midrun", &[ExitCode, Aborted, ConnectionLost], &[Flag::Warnings]),
    ("sigint_midrun", &[NoReport, ExitCode, Interrupted], &[]),
    ("tpcb_progress_latency", &[], &[]),
    ("transactions_mode", &[], &[]),
    ("version", &[NoReport], &[]),
];

#[test]
fn every_capture_has_its_outcome() {
    let mut wrong = Vec::new();
    for (name, reasons, flags) in OUTCOMES {
        let result = parsed(name);
        if result.reasons != *reasons || result.flags != *flags || result.acceptable != reasons.is_empty() {
            wrong.push(format!(
                "{name}: {:?} {:?} {:?}",
                result.reasons, result.flags, result.details
            ));
        }
    }
    let known: Vec<&str> = OUTCOMES.iter().map(|(name, ..)| *name).collect();
    wrong.extend(
        exit_codes()
            .into_keys()
            .filter(|name| !known.contains(&name.as_str())),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_has_its_figures() {
    let mut all = serde_json::Map::new();
    for (name, ..) in OUTCOMES {
        let mut json = serde_json::to_value(parsed(name)).unwrap();
        json.as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        all.insert((*name).to_owned(), json);
    }
    insta::assert_yaml_snapshot!("figures", all);
}

#[test]
fn progress_in_the_same_file_is_read_too() {
    let both = format!(
        "{}{}",
        read("tpcb_progress_latency.stderr.txt"),
        read("tpcb_progress_latency.txt")
    );
    let result = run(&both.replace('\n', "\r\n"), "", 0);
    assert!(result.acceptable, "{:?}", result.details);
    assert_eq!(
        (result.series.len(), result.figures.tps_milli),
        (6, Some(1_062_349))
    );
    assert_eq!(result.statements, parsed("tpcb_progress_latency").statements);
}

#[test]
fn before_postgresql_14_the_rate_without_connecting_counts() {
    for order in [["excluding", "including"], ["including", "excluding"]] {
        let rate = |which: &str| if which == "excluding" { "200.5" } else { "100.5" };
        let text = format!(
            "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 1\nquery mode: simple\nnumber of clients: 1\nnumber of threads: 1\n\
             duration: 2 s\nnumber of transactions actually processed: 401\nlatency average: 4.988 ms\n\
             tps = {} ({} connections establishing)\ntps = {} ({} connections establishing)\n",
            rate(order[0]),
            order[0],
            rate(order[1]),
            order[1]
        );
        let result = run(&text, "", 0);
        assert_eq!(
            (result.acceptable, result.figures.tps_milli),
            (true, Some(200_500))
        );
        assert_eq!(result.figures.latency_mean_micros, Some(4_988));
    }
}

#[test]
fn aborted_clients_are_unacceptable_even_with_exit_code_0() {
    // Before PostgreSQL 12.
    let result = run(
        &read("server_killed_midrun.txt"),
        &read("server_killed_midrun.stderr.txt"),
        0,
    );
    assert_eq!(result.reasons, [Aborted, ConnectionLost]);
    assert_eq!(result.figures.tps_milli, Some(1_477_071));
    let result = run(
        &read("tpcb_progress_latency.txt"),
        "Client 3 aborted in state 8. Probably the backend died while processing.",
        0,
    );
    assert!(!result.acceptable);
}

#[test]
fn numbers_that_are_none_are_absent() {
    let text = read("select_only_prepared.txt").replace("tps = 42713.789359", "tps = inf");
    let result = run(
        &text,
        "progress: 1.0 s, 0.0 tps, lat NaN ms stddev -nan, 0 failed",
        0,
    );
    assert_eq!(
        (result.reasons.as_slice(), result.figures.tps_milli),
        ([IncompleteReport].as_slice(), None)
    );
    assert_eq!(
        (result.series[0].tps_milli, result.series[0].latency_micros),
        (Some(0), None)
    );
    assert_eq!(result.flags, [Flag::Stalled]);
}

#[test]
fn cut_off_anywhere_before_the_rate_it_is_never_acceptable() {
    let whole = read("select_only_prepared.txt");
    for end in 0..whole.find("(without initial").unwrap() {
        let result = run(&whole[..end], "", 0);
        assert!(!result.acceptable, "cut at {end}");
        assert!(
            result.figures.transactions.is_none_or(|done| done == 170_536),
            "cut at {end}"
        );
    }
    assert!(run(whole.trim_end(), "", 0).acceptable);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_never_panic_and_are_never_acceptable(bytes in proptest::collection::vec(any::<u8>(), 0..2000), exit_code: i32) {
        let stdout = text::decode(&bytes);
        for command in [Command::Run, Command::Prepare] {
            let result = parse(&Capture { stdout: &stdout, stderr: &stdout, exit_code, command });
            prop_assert!(!result.acceptable);
        }
    }
}
