//! Volatile parameters: SET GLOBAL with bound values where the value in force is not the one wanted, and the read-back
//! of all of them. A parameter that can only be set at start is never touched here.

use crds::parameter::Parameters;
use crds::run::ReadBack;
use mysql_async::Value;

use crate::access::{DatabaseError, ParameterProblem, Result};
use crate::audit::{Bound, Statement};
use crate::catalogue::{Catalogue, inert};
use crate::connection::{Session, identifier};

/// Statements that bring these parameters in force, and those that no statement can.
pub fn plan(catalogue: &Catalogue, wanted: &Parameters) -> (Vec<(String, Statement)>, Vec<ParameterProblem>) {
    let (mut statements, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in wanted {
        let value = value.to_string();
        let mut problem = |message: String| {
            problems.push(ParameterProblem {
                name: name.clone(),
                message,
            });
        };
        let variable = match catalogue.known(name) {
            Ok(variable) => variable,
            Err(unknown) => {
                problem(unknown.message);
                continue;
            }
        };
        if catalogue.in_force(variable, &value) {
            continue;
        }
        if variable.read_only || variable.session_only {
            problem(format!(
                "{name} is {}, wanted {value}: the server must be restarted with it",
                variable.value
            ));
            continue;
        }
        match variable.bound(&value) {
            Ok(bound) => statements.push((name.clone(), Statement::set(&identifier(&variable.name), bound))),
            Err(why) => problem(format!("{name}: {why}")),
        }
    }
    (statements, problems)
}

/// Runs one statement and looks at its warnings: a value that the server cut or changed is a problem.
pub(crate) async fn run(
    session: &mut Session,
    name: &str,
    statement: &Statement,
) -> Result<Vec<ParameterProblem>> {
    let doing = statement.sql.as_str();
    let answer = match &statement.value {
        None => session.run(doing, &statement.sql).await,
        Some(bound) => session.run_with(doing, &statement.sql, (sent(bound),)).await,
    };
    match answer {
        Ok(_) => {}
        // The server says no to this value: a finding about the setting, not a failure of ours.
        Err(DatabaseError::Statement { message, .. }) => {
            return Ok(vec![ParameterProblem {
                name: name.to_owned(),
                message: format!("{name}: {message}"),
            }]);
        }
        Err(error) => return Err(error),
    }
    let warnings: Vec<(String, u32, String)> = session.rows("read warnings", "SHOW WARNINGS").await?;
    Ok(warnings
        .into_iter()
        // 1292: cut to what is allowed; 1 and others of our own mechanisms: could not be done.
        .filter(|(level, code, _)| *code == 1292 || level == "Error" || *code == 1)
        .map(|(_, code, message)| ParameterProblem {
            name: name.to_owned(),
            message: format!(
                "{name}: the server changed the value or could not use it (warning {code}): {message}"
            ),
        })
        .collect())
}

fn sent(bound: &Bound) -> Value {
    match bound {
        Bound::Integer(number) => i64::try_from(*number)
            .map(Value::Int)
            .or_else(|_| u64::try_from(*number).map(Value::UInt))
            .unwrap_or(Value::NULL),
        Bound::Real(number) => Value::Double(*number),
        Bound::Text(text) => Value::from(text.as_str()),
    }
}

/// Compares every parameter with what is in force.
pub fn read_back(
    catalogue: &Catalogue,
    wanted: &Parameters,
    read_only_load: bool,
) -> (Vec<ReadBack>, Vec<ParameterProblem>) {
    let binary_log = catalogue.get("log_bin").is_some_and(|v| v.value == "ON");
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in wanted {
        let text = value.to_string();
        match catalogue.known(name) {
            Err(problem) => problems.push(problem),
            Ok(variable) => {
                let canonical = |value: &str| variable.canonical(value).unwrap_or_else(|_| value.to_owned());
                let entry = ReadBack {
                    name: name.clone(),
                    wanted: canonical(&text),
                    found: canonical(&variable.value),
                    inert: inert(name, binary_log, read_only_load),
                };
                if !catalogue.in_force(variable, &text) {
                    problems.push(ParameterProblem {
                        name: name.clone(),
                        message: format!("{name} reads back as {}, wanted {}", entry.found, entry.wanted),
                    });
                }
                found.push(entry);
            }
        }
    }
    (found, problems)
}
