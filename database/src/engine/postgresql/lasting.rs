//! What `ALTER SYSTEM` wrote, on a borrowed server: the only thing that we change of its parameters. It is kept as the
//! text that stands in `postgresql.auto.conf`, so that putting it back leaves the file as it was. Every reload also takes
//! what somebody else left in the files: a server whose files and values differ already is not borrowed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::target::OriginalState;
use tokio::time::{Instant, sleep};

use super::apply::{assignment, parameter};
use super::catalogue;
use super::connection::{Wire, column};
use super::session::Session;
use crate::access::{DatabaseError, Result};
use crate::catalogue::{Catalogue, Variable};
use crate::original::Left;

/// The file that `ALTER SYSTEM` writes.
const AUTO_FILE: &str = "postgresql.auto.conf";
/// How long the server may need to read its files again.
const RELOADED: Duration = Duration::from_secs(5);
/// What the server says of a line that waits for a restart, and of a value that it does not understand.
const WAITS: &str = "setting could not be applied";

/// One line of the server's configuration files, in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    file: String,
    number: i32,
    name: String,
    text: String,
    error: Option<String>,
}

impl Line {
    fn place(&self) -> String {
        format!("{} line {}", self.file, self.number)
    }
}

/// Where a session that begins has a value from.
#[derive(Clone, Debug, Default, PartialEq)]
struct Origin {
    source: String,
    pending_restart: bool,
}

/// The files, and what a session that begins now has.
pub(super) struct Look {
    lines: Vec<Line>,
    catalogue: Catalogue,
    origins: BTreeMap<String, Origin>,
}

pub(super) async fn look(session: &mut Session) -> Result<Look> {
    let lines = lines(&mut session.home).await?;
    let mut fresh = session.fresh_home().await?;
    let (catalogue, origins) = (catalogue::load(&mut fresh).await, origins(&mut fresh).await);
    fresh.close().await;
    Ok(Look {
        lines,
        catalogue: catalogue?,
        origins: origins?,
    })
}

async fn lines(home: &mut Wire) -> Result<Vec<Line>> {
    let doing = "read what stands in the configuration files";
    let sql = "SELECT coalesce(sourcefile, ''), coalesce(sourceline, 0), lower(coalesce(name, '')), coalesce(setting, ''), \
               error FROM pg_file_settings ORDER BY seqno";
    let rows = home.rows(doing, sql, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Line {
                file: column(row, 0, doing)?,
                number: column(row, 1, doing)?,
                name: column(row, 2, doing)?,
                text: column(row, 3, doing)?,
                error: column(row, 4, doing)?,
            })
        })
        .collect()
}

async fn origins(fresh: &mut Wire) -> Result<BTreeMap<String, Origin>> {
    let doing = "read where values come from";
    let sql = "SELECT lower(name), source, pending_restart FROM pg_settings";
    let rows = fresh.rows(doing, sql, &[]).await?;
    rows.iter()
        .map(|row| {
            let origin = Origin {
                source: column(row, 1, doing)?,
                pending_restart: column(row, 2, doing)?,
            };
            Ok((column(row, 0, doing)?, origin))
        })
        .collect()
}

/// What stands in the file of `ALTER SYSTEM`, by name; the last line of a name counts.
fn written(lines: &[Line]) -> BTreeMap<String, String> {
    lines
        .iter()
        .filter(|line| line.file.rsplit('/').next() == Some(AUTO_FILE))
        .map(|line| (line.name.clone(), line.text.clone()))
        .collect()
}

/// The line of each name that counts.
fn last_lines(lines: &[Line]) -> BTreeMap<&str, &Line> {
    lines.iter().map(|line| (line.name.as_str(), line)).collect()
}

/// Whether a text in a file means the value that a session has.
fn means(variable: &Variable, text: &str) -> bool {
    let octal = text.strip_prefix('0').filter(|rest| !rest.is_empty());
    if let Some(number) = octal.and_then(|digits| i64::from_str_radix(digits, 8).ok()) {
        return number.to_string() == variable.value;
    }
    let form = |value: &str| {
        let form = variable.canonical(value).unwrap_or_else(|_| value.to_owned());
        // The server writes some lists and names in its own way: `iso, mdy` is `ISO, MDY`.
        let plain = form.chars().filter(|c| !c.is_whitespace() && !"'\"".contains(*c));
        plain.collect::<String>().to_ascii_lowercase()
    };
    form(text) == form(&variable.value)
}

/// Parameters of which the files say something else than sessions have, each with what is to be done.
fn not_loaded(look: &Look, of: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let last = last_lines(&look.lines);
    let mut found = Vec::new();
    for (name, origin) in look.origins.iter().filter(|(name, _)| of(name)) {
        let Some(variable) = look.catalogue.get(name) else {
            continue;
        };
        let from_file = origin.source == "configuration file";
        if variable.fixed || origin.pending_restart {
            continue;
        }
        match last.get(name.as_str()) {
            None if from_file && !variable.read_only => found.push((
                name.clone(),
                format!(
                    "{name} is {} and no configuration file says so any more",
                    variable.value
                ),
            )),
            Some(line)
                if line.error.is_none()
                    && (from_file || origin.source == "default")
                    && !means(variable, &line.text) =>
            {
                found.push((
                    name.clone(),
                    format!(
                        "{name} is {} and {} says {}",
                        variable.value,
                        line.place(),
                        line.text
                    ),
                ));
            }
            _ => {}
        }
    }
    found
}

/// Why a reload would do more, or less, than we mean it to.
pub(super) fn unready(look: &Look, restarts: bool) -> Vec<String> {
    let broken = look.lines.iter().filter_map(|line| {
        let error = line.error.as_deref()?;
        let waits = look.catalogue.get(&line.name).is_some_and(|v| v.read_only);
        if error == WAITS && waits {
            return None;
        }
        Some(format!(
            "{}: {error}: correct it, or nothing that is set comes in force",
            line.place()
        ))
    });
    let waiting = look
        .origins
        .iter()
        .filter(|(_, origin)| restarts && origin.pending_restart);
    broken
        .chain(not_loaded(look, |_| true).into_iter().map(|(_, what)| {
            format!("{what}: SELECT pg_reload_conf(), or correct the file; a reload of ours would change it")
        }))
        .chain(waiting.map(|(name, _)| {
            format!("{name} waits for a restart: restart the server, or correct the file; a restart of ours would change it")
        }))
        .collect()
}

/// What `ALTER SYSTEM` wrote of these parameters; none where nothing is written.
pub(super) async fn persisted(
    session: &mut Session,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, Option<String>>> {
    let mut written = written(&lines(&mut session.home).await?);
    Ok(names
        .iter()
        .map(|name| (name.clone(), written.remove(name)))
        .collect())
}

/// Statements that make the file say what it said.
fn statements(
    written: &BTreeMap<String, String>,
    original: &BTreeMap<String, Option<String>>,
) -> BTreeMap<String, String> {
    original
        .iter()
        .filter(|(name, was)| written.get(*name) != was.as_ref())
        .map(|(name, was)| {
            let statement = match was {
                Some(text) => format!("ALTER SYSTEM SET {}", assignment(name, text)),
                None => format!("ALTER SYSTEM RESET {}", parameter(name)),
            };
            (name.clone(), statement)
        })
        .collect()
}

/// Puts the lines back and waits until the server has read them. What it does not take is found by [`not_put_back`].
pub(super) async fn put_back(session: &mut Session, original: &OriginalState) -> Result<()> {
    if original.persisted.is_empty() {
        return Ok(());
    }
    let before = look(session).await?;
    let statements = statements(&written(&before.lines), &original.persisted);
    for (name, statement) in &statements {
        match session.home.run(&format!("put back {name}"), statement).await {
            Ok(()) | Err(DatabaseError::Statement { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    // A line that was put back and not yet read: somebody was killed in between.
    let unread = not_loaded(&before, |name| original.persisted.contains_key(name));
    if statements.is_empty() && unread.is_empty() {
        return Ok(());
    }
    reload(session).await
}

async fn reload(session: &mut Session) -> Result<()> {
    let before = loaded_at(session).await?;
    session
        .home
        .rows("reload the configuration", "SELECT pg_reload_conf()", &[])
        .await?;
    let limit = Instant::now() + RELOADED;
    while loaded_at(session).await? == before && Instant::now() < limit {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// When the files were read that a session beginning now goes by.
async fn loaded_at(session: &mut Session) -> Result<Option<String>> {
    let mut fresh = session.fresh_home().await?;
    let at = fresh
        .one(
            "look when the files were read",
            "SELECT pg_conf_load_time()::text",
            &[],
        )
        .await;
    fresh.close().await;
    at
}

/// Parameters that are not as they were, with the statement for a person. A value that the owner changed meanwhile in a
/// file of theirs is not ours to undo: the file of `ALTER SYSTEM` is as it was, and it has been read.
pub(super) async fn not_put_back(session: &mut Session, original: &OriginalState) -> Result<Vec<Left>> {
    if original.persisted.is_empty() {
        return Ok(Vec::new());
    }
    let look = look(session).await?;
    let written = written(&look.lines);
    let statements = statements(&written, &original.persisted);
    let said = |text: Option<&String>| text.map_or("nothing".to_owned(), |text| format!("`{text}`"));
    let mut left: Vec<Left> = statements
        .iter()
        .map(|(name, statement)| Left {
            what: format!(
                "{AUTO_FILE} says {} for {name}, it was {}",
                said(written.get(name)),
                said(original.persisted.get(name).and_then(Option::as_ref))
            ),
            statement: format!("{statement}; SELECT pg_reload_conf()"),
        })
        .collect();
    let unread = not_loaded(&look, |name| {
        original.persisted.contains_key(name) && !statements.contains_key(name)
    });
    left.extend(unread.into_iter().map(|(_, what)| Left {
        what,
        statement: "SELECT pg_reload_conf()".to_owned(),
    }));
    Ok(left)
}

#[cfg(test)]
mod tests;
