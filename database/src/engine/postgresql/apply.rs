//! Bringing one setting in force: `ALTER SYSTEM`, a reload, and waiting until a session that begins has it. A value
//! cannot be bound there, so it is written as a literal; list parameters need one literal for each of their parts.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

use super::catalogue;
use super::connection::{STATEMENT_LIMIT, identifier, literal};
use super::session::Session;
use crate::access::{DatabaseError, ParameterProblem, Result};
use crate::audit::{Bound, Statement};

/// How long the server may need to read its files again.
const IN_FORCE: Duration = Duration::from_secs(5);
/// Parameters whose parts are quoted one by one: `'a, b'` would be one strange name.
const LISTS: &[&str] = &[
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

pub(super) async fn apply(
    session: &mut Session,
    name: &str,
    statement: &Statement,
) -> Result<Vec<ParameterProblem>> {
    let problem = |message: String| {
        vec![ParameterProblem {
            name: name.to_owned(),
            message: format!("{name}: {message}"),
        }]
    };
    let answer = match statement {
        Statement::Sql(sql) => session.run_in_workload(STATEMENT_LIMIT, sql, sql).await,
        Statement::Set { name, value } => set(session, name, value).await,
    };
    match answer {
        Ok(()) => {}
        // The server says no to this value: a finding about the setting, not a failure of ours.
        Err(DatabaseError::Statement { message, .. }) => return Ok(problem(message)),
        Err(error) => return Err(error),
    }
    match statement {
        Statement::Sql(_) => Ok(Vec::new()),
        Statement::Set { name, value } => Ok(in_force(session, name, &text(value))
            .await?
            .map(problem)
            .unwrap_or_default()),
    }
}

async fn set(session: &mut Session, name: &str, value: &Bound) -> Result<()> {
    let sql = alter_system(name, value);
    session.home.run(&format!("set {name}"), &sql).await?;
    session
        .home
        .rows("reload the configuration", "SELECT pg_reload_conf()", &[])
        .await
        .map(drop)
}

fn alter_system(name: &str, value: &Bound) -> String {
    format!("ALTER SYSTEM SET {}", assignment(name, &text(value)))
}

/// A parameter's name in quotes, each of its parts.
pub(super) fn parameter(name: &str) -> String {
    let parts: Vec<String> = name.split('.').map(identifier).collect();
    parts.join(".")
}

/// A parameter and its value as `SET` wants them.
pub(super) fn assignment(name: &str, text: &str) -> String {
    let value = if LISTS.contains(&name) && !text.trim().is_empty() {
        // The server puts quotes around what needs them.
        let items = items(text);
        items
            .iter()
            .map(|item| literal(item))
            .collect::<Vec<_>>()
            .join(", ")
    } else {
        literal(text)
    };
    format!("{} = {value}", parameter(name))
}

/// The names of a list; quotes around one keep its commas and blanks.
fn items(text: &str) -> Vec<String> {
    let (mut items, mut item, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.next_if_eq(&'"').is_some() => item.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            c if c.is_whitespace() && !quoted => {}
            c => item.push(c),
        }
    }
    items.push(item);
    items
}

fn text(value: &Bound) -> String {
    match value {
        Bound::Integer(number) => number.to_string(),
        Bound::Real(number) => number.to_string(),
        Bound::Text(text) => text.clone(),
    }
}

/// Waits until a session that begins has the value; why it has not, if it has not.
async fn in_force(session: &mut Session, name: &str, wanted: &str) -> Result<Option<String>> {
    let limit = Instant::now() + IN_FORCE;
    loop {
        let mut fresh = session.fresh().await?;
        let found = catalogue::one(&mut fresh, name).await;
        fresh.close().await;
        let Some(variable) = found? else {
            return Ok(Some("this server has no such parameter".to_owned()));
        };
        let form = |value: &str| variable.canonical(value).unwrap_or_else(|_| value.to_owned());
        if form(wanted) == form(&variable.value) {
            return Ok(None);
        }
        if variable.read_only {
            return Ok(Some(format!(
                "it is {}, wanted {wanted}: the server must be restarted with it",
                variable.value
            )));
        }
        if Instant::now() >= limit {
            return Ok(Some(not_in_force(session, name, wanted, &variable).await?));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn not_in_force(
    session: &mut Session,
    name: &str,
    wanted: &str,
    variable: &crate::catalogue::Variable,
) -> Result<String> {
    let sql = "SELECT error FROM pg_file_settings WHERE lower(name) = lower($1) AND error IS NOT NULL";
    let error = session
        .home
        .one::<String>("look what is wrong with the file", sql, &[(&name, Type::TEXT)])
        .await;
    let because = match error {
        Ok(Some(error)) => error,
        Ok(None) | Err(DatabaseError::Refused { .. }) => format!("its value comes from {}", variable.origin),
        Err(error) => return Err(error),
    };
    Ok(format!(
        "it was set to {wanted} and sessions that begin have {}: {because}",
        variable.value
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_literal_and_a_list_has_one_for_each_part() {
        let set = |name: &str, value: &str| alter_system(name, &Bound::Text(value.to_owned()));
        assert_eq!(
            set("pgaudit.log", "read, write"),
            "ALTER SYSTEM SET \"pgaudit\".\"log\" = 'read, write'"
        );
        assert_eq!(
            set("search_path", "\"$user\", public"),
            "ALTER SYSTEM SET \"search_path\" = '$user', 'public'"
        );
        assert_eq!(
            set("search_path", "a,  \"Odd, \"\"name\"\"\" , b"),
            "ALTER SYSTEM SET \"search_path\" = 'a', 'Odd, \"name\"', 'b'"
        );
        assert_eq!(
            set("log_line_prefix", "'; DROP"),
            "ALTER SYSTEM SET \"log_line_prefix\" = '''; DROP'"
        );
        assert_eq!(
            alter_system("work_mem", &Bound::Integer(4096)),
            "ALTER SYSTEM SET \"work_mem\" = '4096'"
        );
    }
}
