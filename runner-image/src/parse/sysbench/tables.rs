//! Judges `prepare`, `prewarm` and `cleanup` by the lines that name tables. sysbench exits 0 when a parallel prepare
//! fails, so its word is taken only if every table went through every step; the rows themselves are counted by
//! `runner prepare`, over a connection.

use std::collections::BTreeSet;

use super::super::Command;
use super::super::decimal::count;
use super::super::result::{Flag, Reason, TableWork, ToolResult};
use super::super::text::Line;

#[derive(Default)]
struct Seen<'a> {
    created: BTreeSet<&'a str>,
    filled: BTreeSet<&'a str>,
    indexed: BTreeSet<&'a str>,
    prewarmed: BTreeSet<&'a str>,
    dropped: BTreeSet<&'a str>,
    rows: u64,
}

/// Judges a command other than `run`.
pub(super) fn judge(result: &mut ToolResult, lines: &[Line<'_>]) {
    let seen = seen(lines);
    match result.command {
        Command::Prepare => judge_prepare(result, &seen),
        Command::Prewarm => judge_some(result, &seen.prewarmed, "no 'Prewarming table' line"),
        Command::Cleanup => judge_some(result, &seen.dropped, "no 'Dropping table' line"),
        Command::Run => {}
    }
    result.tables = Some(TableWork {
        created: seen.created.len() as u64,
        filled: seen.filled.len() as u64,
        indexed: seen.indexed.len() as u64,
        prewarmed: seen.prewarmed.len() as u64,
        dropped: seen.dropped.len() as u64,
        rows: seen.rows,
    });
}

fn judge_some(result: &mut ToolResult, tables: &BTreeSet<&str>, nothing: &str) {
    if tables.is_empty() {
        result.refuse_because(Reason::IncompleteTables, nothing);
    }
}

/// Every created table is filled (unless none is: `--table-size=0`, `bulk_insert`) and indexed (unless none is:
/// `--create-secondary=off`).
fn judge_prepare(result: &mut ToolResult, seen: &Seen<'_>) {
    if seen.created.is_empty() {
        result.refuse_because(Reason::IncompleteTables, "no 'Creating table' line");
        return;
    }
    for (done, step) in [(&seen.filled, "inserted into"), (&seen.indexed, "indexed")] {
        let missing: Vec<&str> = seen.created.difference(done).copied().collect();
        if !done.is_empty() && !missing.is_empty() {
            let text = format!("created and not {step}: {}", missing.join(", "));
            result.refuse_because(Reason::IncompleteTables, &text);
        }
    }
    if seen.indexed.is_empty() {
        result.flag(Flag::NoSecondaryIndex);
    }
}

/// Threads print into each other's lines (`Creating table 'sbtest2'...Creating table 'sbtest1'...`), so each phrase is
/// looked for wherever it stands. Dialect 0.4 fills with `Creating N records in table 'x'...` and indexes at creation.
fn seen<'a>(lines: &[Line<'a>]) -> Seen<'a> {
    let mut seen = Seen::default();
    for line in lines {
        let text = line.text;
        seen.created.extend(quoted_after(text, "Creating table '"));
        let old = text.contains(" records in table '");
        for (table, rows) in rows_into(text, "Inserting ", " records into '").chain(rows_into(
            text,
            "Creating ",
            " records in table '",
        )) {
            if seen.filled.insert(table) {
                seen.rows = seen.rows.saturating_add(rows);
            }
            if old {
                seen.indexed.insert(table);
            }
        }
        seen.indexed
            .extend(quoted_after(text, "Creating a secondary index on '"));
        seen.indexed
            .extend(quoted_after(text, "Creating secondary indexes on '"));
        seen.dropped.extend(quoted_after(text, "Dropping table '"));
        for phrase in ["Prewarming table ", "Preloading table "] {
            // Not followed by a quote: the name ends the line.
            if let Some((_, name)) = text.split_once(phrase) {
                seen.prewarmed.insert(name.trim());
            }
        }
    }
    seen
}

fn quoted_after<'a>(text: &'a str, phrase: &'static str) -> impl Iterator<Item = &'a str> {
    text.match_indices(phrase)
        .filter_map(move |(start, _)| quoted(&text[start + phrase.len()..]))
}

fn rows_into<'a>(
    text: &'a str,
    verb: &'static str,
    phrase: &'static str,
) -> impl Iterator<Item = (&'a str, u64)> {
    text.match_indices(phrase).filter_map(move |(start, _)| {
        let (_, number) = text[..start].rsplit_once(verb)?;
        Some((quoted(&text[start + phrase.len()..])?, count(number)?))
    })
}

/// Text up to the closing quote; none if the line was cut off before it.
fn quoted(text: &str) -> Option<&str> {
    text.split_once('\'').map(|(name, _)| name)
}
