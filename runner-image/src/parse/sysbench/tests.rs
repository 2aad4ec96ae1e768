//! Every capture in `fixtures/sysbench`, with the exit code of its README, and what damage to a capture may not do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rstest::rstest;

use super::super::{Capture, Command, Flag, Reason, ToolResult, text};
use super::parse;
use Reason::*;

mod variants;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sysbench")
}

fn read(name: &str) -> String {
    fs::read(folder().join(name))
        .map(|bytes| text::decode(&bytes))
        .unwrap_or_default()
}

/// Names and exit codes from the tables of the READMEs.
fn exit_codes() -> BTreeMap<String, i32> {
    let mut codes = BTreeMap::new();
    for (readme, folder) in [("README.md", ""), ("edge/README.md", "edge/")] {
        let rows = read(readme);
        codes.extend(rows.lines().filter_map(|line| {
            let mut columns = line.strip_prefix("| ")?.split(" | ");
            Some((
                format!("{folder}{}", columns.next()?),
                columns.next()?.trim().parse::<i32>().ok()?,
            ))
        }));
    }
    for name in ["v0_4_oltp_nontrx", "v0_5_oltp", "v1_1_read_write"] {
        codes.insert(format!("synthetic_from_source/{name}"), 0);
    }
    codes
}

fn command(name: &str) -> Command {
    let name = name.trim_start_matches("pgsql_").trim_start_matches("edge/");
    if name.starts_with("prepare_") || name == "prepare" {
        Command::Prepare
    } else if name.starts_with("cleanup_") {
        Command::Cleanup
    } else if name == "prewarm" {
        Command::Prewarm
    } else {
        Command::Run
    }
}

fn parsed(name: &str) -> ToolResult {
    let exit_code = exit_codes()[name];
    parse(&Capture {
        stdout: &read(&format!("{name}.txt")),
        stderr: &read(&format!("{name}.stderr.txt")),
        exit_code,
        command: command(name),
    })
}

fn run(stdout: &str) -> ToolResult {
    parse(&Capture {
        stdout,
        stderr: "",
        exit_code: 0,
        command: Command::Run,
    })
}

/// Outcome of each capture: reasons (none: acceptable) and flags.
#[rustfmt::skip]
const OUTCOMES: &[(&str, &[Reason], &[Flag])] = &[
    ("cleanup_missing_tables", &[], &[]),
    ("cleanup_only4", &[], &[]),
    ("conn_killed_ignored_reconnects", &[NoReport, ExitCode, Crashed], &[]),
    ("conn_killed_not_ignored", &[NoReport, ExitCode, Fatal, ConnectionLost], &[]),
    ("edge/checkpoint_never_reached", &[], &[]),
    ("edge/cpu", &[], &[]),
    ("edge/db_debug", &[], &[]),
    ("edge/forced_shutdown", &[NoEvents, ExitCode, Fatal, ForcedShutdown], &[Flag::Stalled]),
    ("edge/forced_shutdown_crash", &[ExitCode, Fatal, Crashed, ForcedShutdown], &[]),
    ("edge/help", &[NoReport], &[]),
    ("edge/hook_csv_intervals", &[], &[]),
    ("edge/hook_default_intervals", &[], &[]),
    ("edge/hook_json_report", &[NoReport], &[]),
    ("edge/lua_error", &[NoReport, ExitCode, Fatal, ScriptError], &[]),
    ("edge/lua_no_event", &[NoReport, ExitCode, Fatal, ScriptError], &[]),
    ("edge/lua_syntax", &[NoReport, ExitCode, Fatal, ScriptError], &[]),
    ("edge/percentile100", &[], &[]),
    ("edge/percentile101", &[NoReport, ExitCode, Fatal, InvalidOption], &[]),
    ("edge/prepare_bulk_insert", &[], &[Flag::NoSecondaryIndex]),
    ("edge/prepare_no_secondary", &[], &[Flag::NoSecondaryIndex]),
    ("edge/rate1", &[], &[]),
    ("edge/two_checkpoints", &[], &[]),
    ("edge/unknown_driver", &[NoReport, ExitCode, Fatal, InvalidOption], &[]),
    ("edge/unknown_host", &[NoReport, ExitCode, Fatal, UnknownHost], &[]),
    ("edge/unrecognized_argument", &[NoReport, ExitCode, UnknownOption], &[]),
    ("edge/verbosity0", &[NoReport], &[]),
    ("edge/verbosity5", &[], &[]),
    ("fail_1040_too_many_connections", &[NoReport, ExitCode, Fatal, TooManyConnections], &[]),
    ("fail_1461_max_prepared_stmt", &[NoReport, ExitCode, Fatal, MaxPreparedStmtCount], &[]),
    ("fail_access_denied", &[NoReport, ExitCode, Fatal, AccessDenied], &[]),
    ("fail_connect_refused", &[NoReport, ExitCode, Fatal, ConnectionRefused], &[]),
    ("fail_missing_table", &[NoReport, ExitCode, Fatal, MissingTable], &[]),
    ("fail_no_command", &[NoReport, ExitCode, Fatal, NoCommand], &[]),
    ("fail_no_such_test", &[NoReport, ExitCode, Fatal, UnknownScript], &[]),
    ("fail_unknown_db", &[NoReport, ExitCode, Fatal, UnknownDatabase], &[]),
    ("fail_unknown_option", &[NoReport, ExitCode, UnknownOption], &[]),
    ("legacy_aliases", &[], &[Flag::Warnings]),
    ("legacy_test_flag", &[NoReport, ExitCode, Fatal, UnknownScript], &[Flag::Warnings]),
    ("pgsql_fail_refused", &[NoReport, ExitCode, Fatal, ConnectionRefused], &[]),
    ("pgsql_prepare", &[], &[]),
    ("pgsql_rw", &[], &[Flag::IgnoredErrors]),
    ("pgsql_rw_log_statement_all", &[], &[Flag::IgnoredErrors]),
    ("prepare_exists_fail", &[Fatal, TableExists], &[Flag::NoSecondaryIndex]),
    ("prepare_oltp_common", &[], &[]),
    ("prepare_refused_threads1", &[ExitCode, Fatal, IncompleteTables, ConnectionRefused], &[]),
    ("prepare_refused_threads2", &[Fatal, IncompleteTables, ConnectionRefused], &[]),
    ("prepare_wo_threads4", &[], &[]),
    ("prewarm", &[], &[]),
    ("ps_mode_disable_under_1461", &[], &[]),
    ("ps_percentile0", &[], &[]),
    ("ps_percentile99_9", &[NoReport, ExitCode, InvalidOption], &[]),
    ("ps_rate100", &[], &[]),
    ("reconnect_pointselect_auto", &[NoReport, ExitCode, Crashed], &[]),
    ("ro_default", &[], &[]),
    ("ro_skiptrx_norange", &[], &[]),
    ("run_debug_tail", &[], &[]),
    ("rw_audit_server_audit", &[], &[Flag::IgnoredErrors]),
    ("rw_deadlock_not_ignored", &[NoReport, ExitCode, Fatal, Deadlock], &[]),
    ("rw_deadlocks_ignored", &[], &[Flag::IgnoredErrors]),
    ("rw_general_log_file", &[], &[]),
    ("rw_interval1_p95", &[], &[]),
    ("rw_noninterval", &[], &[]),
    ("rw_rate_overload", &[NoReport, ExitCode, Fatal, RateOverload], &[]),
    ("rw_slow_log_lqt0", &[], &[]),
    ("server_killed_ignore_all", &[NoReport, ExitCode, Crashed], &[]),
    ("server_killed_midrun", &[NoReport, ExitCode, Fatal, ConnectionLost], &[]),
    ("server_shutdown_midrun", &[NoReport, ExitCode, Fatal, ConnectionLost], &[]),
    ("server_stalled_3s", &[], &[Flag::Stalled]),
    ("sigint_ignored_full_run", &[], &[]),
    ("sigint_midrun", &[NoReport, ExitCode, Interrupted], &[]),
    ("sigkill_midrun", &[NoReport, ExitCode, Killed], &[]),
    ("sigterm_midrun", &[NoReport, ExitCode, Killed], &[]),
    ("synthetic_from_source/v0_4_oltp_nontrx", &[], &[]),
    ("synthetic_from_source/v0_5_oltp", &[], &[Flag::IgnoredErrors]),
    ("synthetic_from_source/v1_1_read_write", &[], &[]),
    ("thread_init_timeout_30s", &[NoReport, ExitCode, Fatal, ThreadInitTimeout], &[]),
    ("time0_events0_help_limits", &[NoReport, ExitCode, Fatal, InvalidOption], &[]),
    ("version", &[NoReport], &[]),
    ("warmup_checkpoint_histogram_ro", &[], &[]),
    ("warmup_checkpoint_histogram_rw", &[], &[]),
    ("wo_dup_key_1062", &[NoReport, ExitCode, Fatal, DuplicateKey], &[]),
    ("wo_histogram", &[], &[]),
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
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_of_the_readme_is_in_the_table() {
    let mut missing: Vec<String> = exit_codes().into_keys().collect();
    missing.retain(|name| !OUTCOMES.iter().any(|(known, ..)| known == name));
    assert!(missing.is_empty(), "{missing:?}");
}

/// All figures of all captures; series and histograms by their length, ends and sums.
#[test]
fn every_capture_has_its_figures() {
    let mut all = serde_json::Map::new();
    for (name, ..) in OUTCOMES {
        let result = parsed(name);
        let mut json = serde_json::to_value(&result).unwrap();
        let object = json.as_object_mut().unwrap();
        object.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        object.remove("histogram");
        for key in ["series", "warmupSeries"] {
            if let Some(series) = object.get_mut(key) {
                let list = series.as_array().cloned().unwrap_or_default();
                *series =
                    serde_json::json!({"count": list.len(), "first": list.first(), "last": list.last()});
            }
        }
        if !result.histogram.is_empty() {
            let counted: u64 = result.histogram.iter().map(|bucket| bucket.count).sum();
            object.insert(
                "histogram".to_owned(),
                serde_json::json!({"buckets": result.histogram.len(), "events": counted}),
            );
        }
        all.insert((*name).to_owned(), json);
    }
    insta::assert_yaml_snapshot!("figures", all);
}

#[rstest]
#[case("warmup_checkpoint_histogram_ro", 9282, 7_003_600, 4_003_400)]
#[case("warmup_checkpoint_histogram_rw", 5436, 7_004_400, 4_004_200)]
fn the_window_follows_the_checkpoint(
    #[case] name: &str,
    #[case] events: u64,
    #[case] total: u64,
    #[case] window: u64,
) {
    let result = parsed(name);
    let figures = &result.figures;
    assert_eq!(
        (figures.events, figures.total_time_micros, figures.window_micros),
        (Some(events), Some(total), Some(window))
    );
    assert!(
        figures.queries_sent.unwrap() > figures.queries.unwrap(),
        "the warm-up's queries count here"
    );
    // The printed rate is the window's, not that of the total time.
    let rate = figures.tps_milli.unwrap();
    assert!(rate.abs_diff(events * 1_000_000_000 / window) < 100, "{rate}");
    // The line of second 3 comes after the checkpoint's report and belongs to the warm-up.
    let seconds =
        |series: &[super::super::result::Interval]| series.iter().map(|line| line.second).collect::<Vec<_>>();
    assert_eq!(
        (seconds(&result.warmup_series), seconds(&result.series)),
        (vec![1, 2, 3], vec![4, 5, 6, 7])
    );
    let mean = result
        .series
        .iter()
        .filter_map(|line| line.tps_milli)
        .sum::<u64>()
        / 4;
    assert!(rate.abs_diff(mean) < rate / 50, "{rate} {mean}");
    assert_eq!(
        result.histogram.iter().map(|bucket| bucket.count).sum::<u64>(),
        events
    );
    // The interpolated percentile lies within the printed one's bucket, or the neighbour's edge.
    let printed = figures.latency_p95_micros.unwrap() as f64;
    let interpolated = figures.latency_percentile_interpolated_micros.unwrap() as f64;
    assert!(
        (interpolated / printed - 1.0).abs() < 0.0125,
        "{printed} {interpolated}"
    );
}
