//! Counts the records of an audit log by class, from an offset to the end. One pass, one buffer: a log may have
//! gigabytes, the agent has 64 MiB. What a record looks like is the mechanism's business (`database::audit`), found by
//! the log's name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crds::runner::AgentAudit;
use database::audit::{Mechanism, by_log_name};

/// Offset that asks for the size only.
const END: u64 = database::agent::END.unsigned_abs();
/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes of a line that are looked at; the rest of a long statement is skipped.
const LINE_BYTES: usize = 64 << 10;

/// What a log holds from `from` to its end. A log that is not there is empty.
///
/// # Errors
/// If the file can't be read.
pub(super) fn count(file: &Path, from: u64, canary: Option<&str>) -> io::Result<AgentAudit> {
    let mut log = match File::open(file) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(AgentAudit {
                truncated: from > 0 && from != END,
                canary_found: canary.map(|_| false),
                ..AgentAudit::default()
            });
        }
        Err(error) => return Err(error),
    };
    let size = log.metadata()?.len();
    let mut answer = AgentAudit {
        size: signed(size),
        truncated: size < from && from != END,
        ..AgentAudit::default()
    };
    if from == END {
        // Only the size was asked for: a log may have gigabytes.
        answer.canary_found = canary.map(|_| false);
        return Ok(answer);
    }
    // A log that is shorter than it was has been cut or replaced: all that is left is new.
    let start = if answer.truncated { 0 } else { from };
    answer.bytes = signed(size - start);
    log.seek(SeekFrom::Start(start))?;
    // Only up to the size seen: a server that still writes would otherwise keep the agent busy.
    let log = BufReader::with_capacity(BUFFER_BYTES, io::Read::take(log, size - start));
    let mechanism = by_log_name(&file.to_string_lossy());
    let (events, found) = count_lines(log, mechanism, canary)?;
    answer.events = events;
    answer.canary_found = canary.map(|_| found);
    Ok(answer)
}

fn count_lines(
    mut log: impl BufRead,
    mechanism: Option<&'static dyn Mechanism>,
    canary: Option<&str>,
) -> io::Result<(BTreeMap<String, i64>, bool)> {
    let canary = canary.map(str::as_bytes).filter(|canary| !canary.is_empty());
    let mut counts: Vec<(&'static str, i64)> = Vec::new();
    let mut found = false;
    let mut line = Vec::with_capacity(1 << 10);
    loop {
        line.clear();
        if io::Read::take(&mut log, LINE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let whole = line.ends_with(b"\n");
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some(class) = mechanism.and_then(|mechanism| mechanism.classify(text)) {
            // A handful of classes: a scan is quicker than hashing.
            match counts.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => counts.push((class, 1)),
            }
        }
        if let Some(canary) = canary {
            found |= text.windows(canary.len()).any(|window| window == canary);
        }
        if !whole {
            skip_rest_of_line(&mut log)?;
        }
    }
    Ok((
        counts
            .into_iter()
            .map(|(class, count)| (class.to_owned(), count))
            .collect(),
        found,
    ))
}

fn skip_rest_of_line(log: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = log.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (used, done) = end.map_or((buffer.len(), buffer.is_empty()), |end| (end + 1, true));
        log.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// Removes the logs in `folders` that no process in `open` writes to: files named as a mechanism names its log, and what
/// rotation left beside them (`server_audit.log.1`). Answers the bytes freed.
///
/// # Errors
/// If a file can't be removed.
pub(super) fn discard(folders: &[PathBuf], open: &BTreeSet<(u64, u64)>) -> io::Result<AgentAudit> {
    let mut bytes = 0;
    for folder in folders {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let found = entry.metadata()?;
            let ours = entry.file_name().to_str().is_some_and(is_log);
            if ours && found.is_file() && !open.contains(&(found.dev(), found.ino())) {
                fs::remove_file(entry.path())?;
                bytes += found.len();
            }
        }
    }
    Ok(AgentAudit {
        bytes: signed(bytes),
        ..AgentAudit::default()
    })
}

fn is_log(name: &str) -> bool {
    let digits = |suffix: &str| !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
    by_log_name(name).is_some()
        || name
            .rsplit_once('.')
            .is_some_and(|(log, suffix)| digits(suffix) && by_log_name(log).is_some())
}

/// A log's path below the volume; `name` may be relative to it or absolute. `None` for anything outside, also through
/// `..` or a symbolic link, and for what is no log.
pub(super) fn locate(volume: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let climbs = name.components().any(|part| matches!(part, Component::ParentDir));
    if climbs || !is_log(name.file_name()?.to_str()?) {
        return None;
    }
    let path = if name.is_absolute() {
        name.to_owned()
    } else {
        volume.join(name)
    };
    match path.canonicalize() {
        Ok(real) => real.starts_with(volume.canonicalize().ok()?).then_some(real),
        // Not there yet; its folder must be ours all the same.
        Err(_) => path.starts_with(volume).then_some(path),
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_AUDIT: &str = "20261130 17:20:49,vm,root,localhost,91,996761,QUERY,,'set global x=\\'/tmp/a,b\\'',0\n\
        20261130 17:20:49,vm,root,localhost,91,0,DISCONNECT,,,0\n\
        20261130 17:20:49,vm,sb,127.0.0.1,94,996924,READ,sbtest,sbtest1,\n\
        20261130 17:20:49,vm,sb,127.0.0.1,94,996924,QUERY,sbtest,'SELECT c FROM sbtest1 WHERE id=?',0\n";

    fn log(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server_audit.log");
        fs::write(&file, text).unwrap();
        (folder, file)
    }

    #[test]
    fn counts_from_an_offset_and_tells_a_cut_log() {
        let (_folder, file) = log(SERVER_AUDIT);
        let first_line = SERVER_AUDIT.find('\n').unwrap() as u64 + 1;
        let answer = count(&file, first_line, Some("sbtest1 WHERE")).unwrap();
        assert_eq!(
            answer.events,
            BTreeMap::from([("DISCONNECT".into(), 1), ("QUERY".into(), 1), ("READ".into(), 1)])
        );
        assert_eq!((answer.truncated, answer.canary_found), (false, Some(true)));
        assert_eq!(answer.bytes, SERVER_AUDIT.len() as i64 - first_line as i64);
        let answer = count(&file, 1_000_000, Some("no such canary")).unwrap();
        assert_eq!(
            (answer.truncated, answer.canary_found, answer.events.get("QUERY")),
            (true, Some(false), Some(&2))
        );
        assert_eq!(count(&file, answer.size as u64, None).unwrap().bytes, 0);
        let size = count(&file, END, None).unwrap();
        assert_eq!(
            (size.size, size.bytes, size.truncated, size.events.len()),
            (answer.size, 0, false, 0)
        );
    }

    #[test]
    fn a_missing_log_is_empty_and_another_file_has_no_classes() {
        let (folder, file) = log(SERVER_AUDIT);
        let absent = count(&folder.path().join("general.log"), 0, Some("x")).unwrap();
        assert_eq!(
            (absent.size, absent.truncated, absent.canary_found),
            (0, false, Some(false))
        );
        let other = folder.path().join("other.txt");
        fs::copy(file, &other).unwrap();
        assert!(count(&other, 0, None).unwrap().events.is_empty());
    }

    #[test]
    fn a_long_statement_counts_once() {
        let long = format!(
            "20261130 17:20:49,vm,sb,1,9,9,QUERY,d,'{}',0\n",
            "x,".repeat(LINE_BYTES)
        );
        let (_folder, file) = log(&format!("{long}{SERVER_AUDIT}"));
        assert_eq!(count(&file, 0, None).unwrap().events.get("QUERY"), Some(&3));
    }

    #[test]
    fn discarding_spares_what_is_written_to_and_what_is_no_log() {
        let (folder, file) = log("0123456789");
        for (name, text) in [
            ("server_audit.log.1", "old"),
            ("general.log", "four"),
            ("keep.txt", "kept"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let written = fs::metadata(folder.path().join("general.log")).unwrap();
        let folders = [folder.path().to_owned(), folder.path().join("absent")];
        let freed = discard(&folders, &BTreeSet::from([(written.dev(), written.ino())])).unwrap();
        assert_eq!(freed.bytes, 13);
        assert!(
            !file.exists()
                && folder.path().join("general.log").exists()
                && folder.path().join("keep.txt").exists()
        );
    }

    #[test]
    fn only_logs_below_the_volume_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        fs::create_dir_all(volume.join("log")).unwrap();
        fs::write(volume.join("log/server_audit.log"), "x").unwrap();
        fs::write(folder.path().join("general.log"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("general.log"), volume.join("log/slow.log")).unwrap();
        let real = volume.join("log/server_audit.log").canonicalize().unwrap();
        assert_eq!(locate(&volume, "log/server_audit.log"), Some(real.clone()));
        assert_eq!(
            locate(&volume, volume.join("log/server_audit.log").to_str().unwrap()),
            Some(real)
        );
        assert_eq!(
            locate(&volume, "log/general.log"),
            Some(volume.join("log/general.log"))
        );
        for outside in [
            "../general.log",
            "log/slow.log",
            "log/passwd",
            "",
            "/etc/passwd",
            "/etc/general.log",
            ".",
        ] {
            assert_eq!(locate(&volume, outside), None, "{outside}");
        }
    }
}
