//! Which reason an error message or an exit code stands for; one table of server error numbers, one of phrases.
//! It names causes; whether a message matters at all is the tool parser's decision.

use super::result::{Flag, Reason, ToolResult};

/// MySQL and MariaDB error numbers (server 1000-1999, client 2000-2999) and their reasons.
const ERROR_NUMBERS: &[(u32, Reason)] = &[
    (1021, Reason::DiskFull),
    (1037, Reason::OutOfMemory),
    (1038, Reason::OutOfMemory),
    (1040, Reason::TooManyConnections),
    (1041, Reason::OutOfMemory),
    (1044, Reason::AccessDenied),
    (1045, Reason::AccessDenied),
    (1046, Reason::UnknownDatabase),
    (1049, Reason::UnknownDatabase),
    (1050, Reason::TableExists),
    (1051, Reason::MissingTable),
    (1053, Reason::ConnectionLost),
    (1062, Reason::DuplicateKey),
    (1114, Reason::DiskFull),
    (1129, Reason::AccessDenied),
    (1130, Reason::AccessDenied),
    (1135, Reason::OutOfMemory),
    (1142, Reason::AccessDenied),
    (1146, Reason::MissingTable),
    (1203, Reason::TooManyConnections),
    (1205, Reason::LockWaitTimeout),
    (1213, Reason::Deadlock),
    (1226, Reason::TooManyConnections),
    (1227, Reason::AccessDenied),
    (1251, Reason::AccessDenied),
    (1290, Reason::ReadOnlyServer),
    (1461, Reason::MaxPreparedStmtCount),
    (1698, Reason::AccessDenied),
    (1792, Reason::ReadOnlyServer),
    (1836, Reason::ReadOnlyServer),
    (1927, Reason::ConnectionLost),
    (2002, Reason::ConnectionRefused),
    (2003, Reason::ConnectionRefused),
    (2005, Reason::UnknownHost),
    (2006, Reason::ConnectionLost),
    (2011, Reason::ConnectionLost),
    (2013, Reason::ConnectionLost),
    (2026, Reason::TlsFailed),
    (2055, Reason::ConnectionLost),
    (2059, Reason::AccessDenied),
];

/// Words that precede an error number in a message of sysbench 0.4 to 1.1.
const NUMBER_MARKS: &[&str] = &[
    "returned error ",
    "MySQL error: ",
    "errno = ",
    "FATAL: error ",
    "failed: ",
    "Err",
    "error: ",
];

/// Phrases (lower case) and their reasons; the first match counts, so the particular stand before the general.
const PHRASES: &[(&str, Reason)] = &[
    ("event queue is full", Reason::RateOverload),
    ("failed to initialize within", Reason::ThreadInitTimeout),
    ("forcing shutdown", Reason::ForcedShutdown),
    ("cannot find benchmark", Reason::UnknownScript),
    ("invalid test name", Reason::UnknownScript),
    ("command is required", Reason::NoCommand),
    ("missing required command argument", Reason::NoCommand),
    ("invalid option", Reason::UnknownOption),
    ("unrecognized option", Reason::UnknownOption),
    ("unknown option", Reason::UnknownOption),
    ("invalid value for", Reason::InvalidOption),
    ("invalid database driver name", Reason::InvalidOption),
    ("unrecognized command line argument", Reason::UnknownOption),
    ("too many command-line arguments", Reason::UnknownOption),
    ("must be in range", Reason::InvalidOption),
    (
        "can't create more than max_prepared_stmt_count",
        Reason::MaxPreparedStmtCount,
    ),
    ("too many connections", Reason::TooManyConnections),
    ("too many clients", Reason::TooManyConnections),
    (
        "remaining connection slots are reserved",
        Reason::TooManyConnections,
    ),
    ("too many connections for", Reason::TooManyConnections),
    ("access denied", Reason::AccessDenied),
    ("authentication failed", Reason::AccessDenied),
    ("no password supplied", Reason::AccessDenied),
    ("no pg_hba.conf entry", Reason::AccessDenied),
    ("permission denied", Reason::AccessDenied),
    ("is not permitted to log in", Reason::AccessDenied),
    ("could not translate host name", Reason::UnknownHost),
    ("unknown mysql server host", Reason::UnknownHost),
    ("unknown server host", Reason::UnknownHost),
    ("timeout expired", Reason::ConnectionTimeout),
    ("connection timed out", Reason::ConnectionTimeout),
    ("connection refused", Reason::ConnectionRefused),
    ("unknown database", Reason::UnknownDatabase),
    ("deadlock", Reason::Deadlock),
    ("lock wait timeout", Reason::LockWaitTimeout),
    ("lock timeout", Reason::LockWaitTimeout),
    ("could not serialize", Reason::SerializationFailure),
    ("duplicate entry", Reason::DuplicateKey),
    ("duplicate key", Reason::DuplicateKey),
    ("no space left", Reason::DiskFull),
    ("out of memory", Reason::OutOfMemory),
    ("memory allocation fail", Reason::OutOfMemory),
    ("read-only", Reason::ReadOnlyServer),
    ("ssl error", Reason::TlsFailed),
    ("ssl connection error", Reason::TlsFailed),
    ("server does not support ssl", Reason::TlsFailed),
    ("lost connection", Reason::ConnectionLost),
    ("server has gone away", Reason::ConnectionLost),
    ("server closed the connection", Reason::ConnectionLost),
    ("terminating connection", Reason::ConnectionLost),
    ("backend died", Reason::ConnectionLost),
    ("backend may have died", Reason::ConnectionLost),
    ("could not receive data from server", Reason::ConnectionLost),
    ("could not send data to server", Reason::ConnectionLost),
    ("no connection to the server", Reason::ConnectionLost),
    ("connection was killed", Reason::ConnectionLost),
    ("server shutdown in progress", Reason::ConnectionLost),
    ("the database system is shutting down", Reason::ConnectionLost),
    ("the database system is starting up", Reason::ConnectionRefused),
    ("can't connect to", Reason::ConnectionRefused),
];

/// The reason that an error message stands for, if it names a cause.
pub fn cause(message: &str) -> Option<Reason> {
    if let Some(number) = error_number(message) {
        let known = ERROR_NUMBERS
            .iter()
            .find(|(code, _)| *code == number)
            .map(|(_, reason)| *reason);
        // A refused connection and one that timed out share their numbers; the system's errno tells them apart.
        if known == Some(Reason::ConnectionRefused)
            && (message.contains("(110)") || message.contains("timed out"))
        {
            return Some(Reason::ConnectionTimeout);
        }
        return Some(known.unwrap_or(Reason::SqlError));
    }
    let lower = message.to_lowercase();
    if lower.contains("does not exist") {
        return if lower.contains("database \"") {
            Some(Reason::UnknownDatabase)
        } else if lower.contains("relation \"") {
            Some(Reason::MissingTable)
        } else if lower.contains("role \"") {
            Some(Reason::AccessDenied)
        } else {
            Some(Reason::SqlError)
        };
    }
    if lower.contains("already exists") {
        return Some(Reason::TableExists);
    }
    if let Some((_, reason)) = PHRASES.iter().find(|(phrase, _)| lower.contains(phrase)) {
        return Some(*reason);
    }
    if message.contains("ERROR:  ") || message.contains("SQL error") {
        return Some(Reason::SqlError);
    }
    None
}

/// The server's or client library's error number in a message.
fn error_number(message: &str) -> Option<u32> {
    NUMBER_MARKS.iter().find_map(|mark| {
        let (_, rest) = message.split_once(mark)?;
        let end = rest
            .find(|found: char| !found.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u32 = rest[..end].parse().ok()?;
        (1000..4000).contains(&number).then_some(number)
    })
}

/// Adds what the exit code says. `0` says nothing.
pub fn judge_exit_code(result: &mut ToolResult) {
    let code = result.exit_code;
    if code == 0 {
        return;
    }
    // A shell reports a signal as 128 + number, a parent process in some languages as its negative.
    let signal = if code < 0 {
        code.checked_neg()
    } else {
        code.checked_sub(128).filter(|signal| (1..=64).contains(signal))
    };
    let named = match signal {
        Some(2) => Some((Reason::Interrupted, "SIGINT")),
        Some(9) => Some((Reason::Killed, "SIGKILL: stopped by force, or out of memory")),
        Some(15) => Some((Reason::Killed, "SIGTERM")),
        Some(1) => Some((Reason::Killed, "SIGHUP")),
        Some(3) => Some((Reason::Crashed, "SIGQUIT")),
        Some(4) => Some((Reason::Crashed, "SIGILL")),
        Some(6) => Some((Reason::Crashed, "SIGABRT")),
        Some(7) => Some((Reason::Crashed, "SIGBUS")),
        Some(8) => Some((Reason::Crashed, "SIGFPE")),
        Some(11) => Some((Reason::Crashed, "SIGSEGV")),
        Some(_) => Some((Reason::Killed, "a signal")),
        None => None,
    };
    if let Some((reason, signal)) = named {
        result.refuse_because(reason, &format!("ended by {signal} (exit code {code})"));
    }
    result.refuse_because(Reason::ExitCode, &format!("exit code {code}"));
}

/// Adds what a shell said about the process: it survives where the exit code was lost.
pub fn judge_shell_message(result: &mut ToolResult, line: &str) {
    if line.contains("Segmentation fault") || line.contains("core dumped") {
        result.refuse_because(Reason::Crashed, line);
    }
}

/// Whether `line` holds a message of level FATAL, wherever in the line: threads print into each other's lines.
pub fn is_fatal(line: &str) -> bool {
    line.match_indices("FATAL:").any(|(start, _)| {
        let before = &line[..start];
        before.ends_with("FATAL") || !before.ends_with(|found: char| found.is_alphanumeric() || found == '_')
    })
}

/// Flags an ALERT or WARNING message.
pub fn flag_message(result: &mut ToolResult, line: &str) {
    if line.trim_start().starts_with("ALERT:") {
        result.flag(Flag::Alerts);
    } else if line.trim_start().starts_with("WARNING:") {
        result.flag(Flag::Warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "FATAL: error 2002: Can't connect to server on '127.0.0.1' (115)",
        Some(Reason::ConnectionRefused)
    )]
    #[case(
        "FATAL: error 2002: Can't connect to server on '10.0.0.9' (110)",
        Some(Reason::ConnectionTimeout)
    )]
    #[case(
        "FATAL: MySQL error: 1461 \"Can't create more than\"",
        Some(Reason::MaxPreparedStmtCount)
    )]
    #[case(
        "FATAL: mysql_drv_query() returned error 1050 (Table 'sbtest1' already exists)",
        Some(Reason::TableExists)
    )]
    #[case(
        "ALERT: mysql_drv_query() for query 'X' failed: 1213 Deadlock found",
        Some(Reason::Deadlock)
    )]
    #[case(
        "ALERT: failed to execute mysql_stmt_execute(): Err1317 Query execution was interrupted",
        Some(Reason::SqlError)
    )]
    #[case(
        "pgbench: error: connection to server failed: FATAL:  role \"x\" does not exist",
        Some(Reason::AccessDenied)
    )]
    #[case(
        "FATAL:  password authentication failed for user \"sb\"",
        Some(Reason::AccessDenied)
    )]
    #[case(
        "FATAL: `thread_init' function failed: x.lua:3: attempt to index a nil value",
        None
    )]
    #[case("FATAL: Thread initialization failed!", None)]
    fn names_the_cause(#[case] message: &str, #[case] expected: Option<Reason>) {
        assert_eq!(cause(message), expected);
    }

    #[rstest]
    #[case("FATAL: x", true)]
    #[case("Creating table 'sbtest2'...FATAL: x", true)]
    #[case("FATALFATAL: x", true)]
    #[case("NONFATAL: 0", false)]
    #[case("fatal errors: 0", false)]
    fn finds_fatal_messages(#[case] line: &str, #[case] expected: bool) {
        assert_eq!(is_fatal(line), expected);
    }

    #[rstest]
    #[case(0, &[])]
    #[case(1, &[Reason::ExitCode])]
    #[case(137, &[Reason::Killed, Reason::ExitCode])]
    #[case(-9, &[Reason::Killed, Reason::ExitCode])]
    #[case(139, &[Reason::Crashed, Reason::ExitCode])]
    #[case(143, &[Reason::Killed, Reason::ExitCode])]
    #[case(130, &[Reason::Interrupted, Reason::ExitCode])]
    #[case(255, &[Reason::ExitCode])]
    #[case(i32::MIN, &[Reason::ExitCode])]
    fn exit_codes(#[case] code: i32, #[case] expected: &[Reason]) {
        let mut result = ToolResult::new("sysbench", super::super::Command::Run, code);
        judge_exit_code(&mut result);
        assert_eq!(result.reasons, expected);
    }
}
