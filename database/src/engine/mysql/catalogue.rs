//! MySQL's catalogue. No table says which variable can be set while the server runs, nor which words one may hold: the
//! server is asked with a statement that cannot succeed. Of several assignments in one `SET` either all are made or none
//! (MySQL 8.4 Reference Manual, 15.7.6.1, "SET Syntax for Variable Assignment", error handling), names are looked up
//! before values are checked, and the last value here is of the wrong type.

use std::collections::{BTreeMap, BTreeSet};

use crds::parameter::Parameters;

use crate::access::{DatabaseError, ParameterProblem, Result};
use crate::audit::Bound;
use crate::catalogue::{Catalogue, Kind, Variable};
use crate::engine::mysql_family::{Session, bound_value, quoted_variable};

/// What no assignment can do: the statement fails at it at the latest.
const NEVER: &str = "GLOBAL max_connections = 'not a number'";

/// Variables that only tell what the server is.
const FIXED: &[&str] = &[
    "hostname",
    "innodb_version",
    "license",
    "lower_case_file_system",
    "pid_file",
    "protocol_version",
    "server_uuid",
    "system_time_zone",
    "version",
    "version_comment",
    "version_compile_machine",
    "version_compile_os",
    "version_compile_zlib",
];

/// Variables that hold switches, `name=on,other=off`.
const SWITCHES: &[&str] = &["optimizer_switch"];

/// Rows of the catalogue: name, value, source, least, greatest, scope, type.
type Row = (
    String,
    Option<String>,
    String,
    Option<String>,
    Option<String>,
    String,
    String,
);

/// Reads the catalogue; whether a variable can be set while the server runs is asked of those of interest.
pub(super) async fn load(session: &mut Session, of_interest: &BTreeSet<String>) -> Result<Catalogue> {
    let doing = "read the catalogue of parameters";
    let version = session.version();
    let rows: Vec<Row> = if version >= (8, 0, 0) {
        // Types and scopes are told since 9.1.
        let (scope, kind, more) = if version >= (9, 1, 0) {
            (
                "m.VARIABLE_SCOPE",
                "m.DATA_TYPE",
                "LEFT JOIN performance_schema.variables_metadata m USING (VARIABLE_NAME)",
            )
        } else {
            ("''", "''", "")
        };
        let sql = format!(
            "SELECT i.VARIABLE_NAME, g.VARIABLE_VALUE, i.VARIABLE_SOURCE, i.MIN_VALUE, i.MAX_VALUE, COALESCE({scope}, ''), \
             COALESCE({kind}, '') FROM performance_schema.variables_info i LEFT JOIN performance_schema.global_variables g \
             USING (VARIABLE_NAME) {more}"
        );
        session.rows(doing, &sql).await?
    } else {
        let values: Vec<(String, String)> = session.rows(doing, "SHOW GLOBAL VARIABLES").await?;
        let empty = String::new;
        values
            .into_iter()
            .map(|(name, value)| (name, Some(value), empty(), None, None, empty(), empty()))
            .collect()
    };
    let mut variables: BTreeMap<String, Variable> = rows
        .into_iter()
        .map(variable)
        .map(|v| (v.name.clone(), v))
        .collect();
    for name in of_interest {
        let Some(variable) = variables.get_mut(name).filter(|v| !v.fixed) else {
            continue;
        };
        match probe(session, name, None).await? {
            Probe::ReadOnly => variable.read_only = true,
            Probe::SessionOnly => variable.session_only = true,
            Probe::Taken | Probe::Refused(_) => {}
        }
    }
    Ok(Catalogue::from_variables(variables.into_values()))
}

/// What the server has against values of variables that can be set while it runs.
pub(super) async fn objections(
    session: &mut Session,
    catalogue: &Catalogue,
    wanted: &Parameters,
) -> Result<Vec<ParameterProblem>> {
    let mut problems = Vec::new();
    for (name, value) in wanted {
        let Some(variable) = catalogue.get(name) else {
            continue;
        };
        let text = value.to_string();
        // What the catalogue refuses is said already.
        if variable.read_only || variable.session_only || catalogue.problem(name, value).is_some() {
            continue;
        }
        if let Ok(bound) = variable.bound(&text)
            && let Probe::Refused(message) = probe(session, &variable.name, Some(&bound)).await?
        {
            problems.push(ParameterProblem {
                name: name.clone(),
                message: format!("{name}: this server does not take {text}: {message}"),
            });
        }
    }
    Ok(problems)
}

/// What an assignment would come to.
#[derive(Debug, PartialEq, Eq)]
enum Probe {
    Taken,
    ReadOnly,
    SessionOnly,
    Refused(String),
}

/// Asks what setting a variable would come to, without setting it; `None`: to its default.
async fn probe(session: &mut Session, name: &str, value: Option<&Bound>) -> Result<Probe> {
    let doing = "ask what can be set";
    let variable = quoted_variable(name);
    let answer = match value {
        None => {
            let sql = format!("SET GLOBAL {variable} = DEFAULT, {NEVER}");
            session.query_drop(doing, &sql).await
        }
        Some(value) => {
            let sql = format!("SET GLOBAL {variable} = ?, {NEVER}");
            session.run_with(doing, &sql, (bound_value(value),)).await
        }
    };
    let message = match answer {
        Ok(_) => {
            return Err(DatabaseError::Statement {
                statement: doing.to_owned(),
                message: "the server accepted a number of connections that is no number".to_owned(),
            });
        }
        Err(DatabaseError::Statement { message, .. }) => message,
        Err(error) => return Err(error),
    };
    let code = message
        .strip_prefix("error ")
        .and_then(|rest| rest.split(':').next())
        .unwrap_or_default();
    Ok(match code {
        "1238" => Probe::ReadOnly,
        "1228" => Probe::SessionOnly,
        // The last assignment's: everything before it would have been made, perhaps cut.
        "1232" if message.contains("'max_connections'") && name != "max_connections" => {
            match cut(session, name).await? {
                Some(warning) if value.is_some() => Probe::Refused(warning),
                _ => Probe::Taken,
            }
        }
        "1232" if name == "max_connections" => Probe::Taken,
        _ => Probe::Refused(message),
    })
}

/// The warning with which the server would cut the value.
async fn cut(session: &mut Session, name: &str) -> Result<Option<String>> {
    let warnings: Vec<(String, u32, String)> = session.rows("read warnings", "SHOW WARNINGS").await?;
    // The pool is rounded up to whole pieces with this warning, which is what was asked for.
    Ok(warnings
        .into_iter()
        .find(|(_, code, _)| *code == 1292 && name != "innodb_buffer_pool_size")
        .map(|(_, code, message)| format!("warning {code}: {message}")))
}

fn variable(row: Row) -> Variable {
    let (name, value, origin, least, greatest, scope, kind) = row;
    let name = name.to_ascii_lowercase();
    let value = value.unwrap_or_default();
    let number = |text: Option<String>| text.and_then(|t| t.parse::<f64>().ok().map(|f| (t, f)));
    let whole = |(text, float): (String, f64)| text.parse::<i128>().unwrap_or(float as i128);
    let range = number(least)
        .map(whole)
        .zip(number(greatest).map(whole))
        // 0 to 0: the server does not say.
        .filter(|range| *range != (0, 0));
    Variable {
        kind: kind_of(&name, &kind, &value),
        range,
        block: 1,
        words: Vec::new(),
        fixed: FIXED.contains(&name.as_str()) || name.starts_with("have_"),
        read_only: false,
        session_only: scope == "SESSION_ONLY",
        origin,
        name,
        value,
    }
}

/// What a variable holds: as the server says, or as its value looks.
fn kind_of(name: &str, told: &str, value: &str) -> Kind {
    if SWITCHES.contains(&name) {
        return Kind::Switches;
    }
    match told.to_ascii_lowercase().as_str() {
        "boolean" => Kind::Boolean,
        "integer" => Kind::Integer,
        "numeric" => Kind::Real,
        // They come without their words: the server judges them.
        "enumeration" => Kind::Word,
        "set" => Kind::Set,
        "" => match value {
            "ON" | "OFF" => Kind::Boolean,
            _ if !value.is_empty() && value.parse::<i128>().is_ok() => Kind::Integer,
            _ if value.contains('.') && value.parse::<f64>().is_ok() => Kind::Real,
            _ => Kind::Text,
        },
        _ => Kind::Text,
    }
}
