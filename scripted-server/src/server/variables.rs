//! System variables: looked up, checked, set, persisted.

use super::{Result, Server, Session, Value};
use crate::dialect::{Exists, Kind, Variable};
use crate::fault::Fault;
use crate::sql::{Assignment, Scope};

/// A value that may be set, and the warning with which it was cut.
struct Checked {
    value: Value,
    cut: Option<String>,
}

impl Server {
    /// Every variable that is there now: the server's and those of what is loaded.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &'static Variable> + '_ {
        let components = self
            .dialect
            .components
            .iter()
            .filter(|c| self.components.contains(c.urn))
            .flat_map(|c| c.variables);
        self.dialect
            .variables
            .iter()
            .flat_map(|list| list.iter())
            .chain(self.plugins.iter().flat_map(|p| p.variables))
            .chain(components)
    }

    fn definition(&self, name: &str) -> Result<&'static Variable> {
        self.definitions()
            .find(|variable| variable.name == name)
            .ok_or_else(|| Fault::unknown_variable(name))
    }

    /// Gives every variable the value that it has after a start.
    pub(super) fn load_values(&mut self) {
        self.globals.clear();
        self.sources.clear();
        let names: Vec<&'static Variable> = self.definitions().collect();
        for variable in names {
            self.load_value(variable);
        }
    }

    /// The value of one variable as it is loaded: persisted, configured, compiled in.
    pub(super) fn load_value(&mut self, variable: &'static Variable) {
        let name = variable.name.to_owned();
        let (text, source) = if let Some(value) = self.persisted.get(&name) {
            (value.clone(), "PERSISTED")
        } else if let Some(value) = self.configured.get(&name) {
            (value.clone(), "GLOBAL")
        } else {
            (Value::text(variable.default), "COMPILED")
        };
        let value = match (variable.kind, &text) {
            (Kind::Integer(..), Value::Text(text)) => text.parse().map_or(Value::Null, Value::Integer),
            (Kind::Real(..), Value::Text(text)) => text.parse().map_or(Value::Null, Value::Real),
            _ => text,
        };
        self.sources.insert(name.clone(), source);
        self.globals.insert(name, value);
    }

    /// What only tells what the server is.
    fn told(&self, name: &str) -> Option<String> {
        Some(match name {
            "version" => self.dialect.version.to_owned(),
            "version_comment" => self.dialect.comment.to_owned(),
            "hostname" => "scripted".to_owned(),
            "server_uuid" => "5c719ed0-0000-4000-8000-000000000001".to_owned(),
            _ => return None,
        })
    }

    /// Every global variable with its value as text.
    pub(super) fn global_values(&self) -> Vec<(String, String)> {
        let told = ["hostname", "server_uuid", "version", "version_comment"];
        let mut all: Vec<(String, String)> = told
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.told(name)?)))
            .chain(
                self.definitions()
                    .filter(|variable| variable.exists != Exists::Session)
                    .map(|variable| (variable.name.to_owned(), self.shown(variable))),
            )
            .collect();
        all.sort();
        all
    }

    fn shown(&self, variable: &Variable) -> String {
        match (variable.kind, self.globals.get(variable.name)) {
            (Kind::Real(..), Some(value)) => format!("{:.6}", value.number().unwrap_or_default()),
            (_, Some(value)) => value.shown().unwrap_or_default(),
            (_, None) => String::new(),
        }
    }

    /// `@@name`.
    pub(super) fn variable(&self, session: &Session, scope: Option<Scope>, name: &str) -> Result<Value> {
        if let Some(told) = self.told(name) {
            return Ok(Value::Text(told));
        }
        let variable = self.definition(name)?;
        if scope != Some(Scope::Global)
            && let Some(own) = session.variables.get(name)
        {
            return Ok(own.clone());
        }
        let value = self.globals.get(name).cloned().unwrap_or(Value::Null);
        // As a number where the server keeps a number of it.
        Ok(match (variable.kind, value.shown().as_deref()) {
            (Kind::Boolean, Some("ON")) => Value::Integer(1),
            (Kind::Boolean, Some("OFF")) => Value::Integer(0),
            _ => value,
        })
    }

    /// `SET`: all names are looked up, then all values checked, then all are set; none is set if one fails.
    pub(super) fn set(
        &mut self,
        session: &mut Session,
        assignments: &[Assignment],
        values: &[Value],
    ) -> Result<()> {
        let mut targets = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            targets.push(self.target(assignment)?);
        }
        let mut checked = Vec::with_capacity(assignments.len());
        for (assignment, variable) in assignments.iter().zip(&targets) {
            let wanted = match &assignment.value {
                Some(expression) => self.value(session, expression, values)?,
                None => default_of(variable),
            };
            let value = check(variable, &wanted, assignment.value.is_none())?;
            if let Some(text) = &value.cut {
                let strict = session
                    .variables
                    .get("sql_mode")
                    .or_else(|| self.globals.get("sql_mode"))
                    .and_then(Value::shown)
                    .is_some_and(|mode| mode.contains("STRICT_ALL_TABLES"));
                if strict {
                    return Err(Fault::wrong_value(variable.name, text));
                }
                session.warnings.push((
                    "Warning",
                    1292,
                    format!("Truncated incorrect {} value: '{text}'", variable.name),
                ));
            }
            self.conflict(variable, &value.value)?;
            checked.push(value.value);
        }
        for ((assignment, variable), value) in assignments.iter().zip(targets).zip(checked) {
            let name = variable.name.to_owned();
            if matches!(assignment.scope, Scope::Persist | Scope::PersistOnly) {
                self.persisted.insert(name.clone(), value.clone());
            }
            match assignment.scope {
                Scope::Session => {
                    session.variables.insert(name, value);
                }
                Scope::Global | Scope::Persist => {
                    self.sources.insert(name.clone(), "DYNAMIC");
                    self.globals.insert(name, value);
                }
                Scope::PersistOnly => {}
            }
        }
        Ok(())
    }

    /// The variable of an assignment, if it may be set there by this account.
    fn target(&self, assignment: &Assignment) -> Result<&'static Variable> {
        let name = assignment.name.as_str();
        if self.told(name).is_some() {
            return Err(read_only(name));
        }
        let variable = self.definition(name)?;
        let persists = matches!(assignment.scope, Scope::Persist | Scope::PersistOnly);
        if persists && !self.dialect.is_8() {
            return Err(Fault::syntax(&format!("{name} =")));
        }
        if !variable.dynamic && assignment.scope != Scope::PersistOnly {
            return Err(read_only(name));
        }
        match (assignment.scope, variable.exists) {
            (Scope::Session, Exists::Global) => {
                return Err(Fault::new(
                    1229,
                    "HY000",
                    format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
                ));
            }
            (Scope::Session, _) => return Ok(variable),
            (_, Exists::Session) => {
                return Err(Fault::new(
                    1228,
                    "HY000",
                    format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
                ));
            }
            _ => {}
        }
        let enough = match assignment.scope {
            Scope::PersistOnly => {
                self.account.has("SYSTEM_VARIABLES_ADMIN") && self.account.has("PERSIST_RO_VARIABLES_ADMIN")
            }
            _ => self.account.has_any(self.dialect.to_set),
        };
        if !enough {
            return Err(Fault::needs(if assignment.scope == Scope::PersistOnly {
                "SYSTEM_VARIABLES_ADMIN and PERSIST_RO_VARIABLES_ADMIN"
            } else {
                self.dialect.to_set
            }));
        }
        Ok(variable)
    }

    /// Percona Server's manual, "Audit log plugin", "Filter methods": of an include and an exclude list one must be empty.
    fn conflict(&self, variable: &Variable, value: &Value) -> Result<()> {
        let other = if variable.name.starts_with("audit_log_include_") {
            variable.name.replace("_include_", "_exclude_")
        } else if variable.name.starts_with("audit_log_exclude_") {
            variable.name.replace("_exclude_", "_include_")
        } else {
            return Ok(());
        };
        let filled =
            |value: Option<&Value>| value.and_then(Value::shown).is_some_and(|text| !text.is_empty());
        if filled(Some(value)) && filled(self.globals.get(&other)) {
            return Err(Fault::wrong_value(
                variable.name,
                &value.shown().unwrap_or_default(),
            ));
        }
        Ok(())
    }

    pub(super) fn reset_persist(
        &mut self,
        session: &mut Session,
        name: Option<&str>,
        lenient: bool,
    ) -> Result<()> {
        if !self.dialect.is_8() {
            return Err(Fault::syntax("PERSIST"));
        }
        let Some(name) = name else {
            self.persisted.clear();
            return Ok(());
        };
        if self.persisted.remove(name).is_none() {
            let said = format!("Variable {name} does not exist in persisted config file");
            if !lenient {
                return Err(Fault::new(3615, "HY000", said));
            }
            session.warnings.push(("Warning", 3615, said));
        }
        Ok(())
    }
}

fn read_only(name: &str) -> Fault {
    Fault::new(
        1238,
        "HY000",
        format!("Variable '{name}' is a read only variable"),
    )
}

fn default_of(variable: &Variable) -> Value {
    match variable.kind {
        Kind::Integer(..) => variable.default.parse().map_or(Value::Null, Value::Integer),
        Kind::Real(..) => variable.default.parse().map_or(Value::Null, Value::Real),
        _ => Value::text(variable.default),
    }
}

/// What a variable takes: the value as it keeps it.
fn check(variable: &Variable, wanted: &Value, default: bool) -> Result<Checked> {
    let kept = |value: Value| Ok(Checked { value, cut: None });
    let shown = wanted.shown().unwrap_or_else(|| "NULL".to_owned());
    let wrong = || Fault::wrong_value(variable.name, &shown);
    match variable.kind {
        Kind::Integer(least, most, block) => {
            let Value::Integer(number) = wanted else {
                return Err(Fault::wrong_type(variable.name));
            };
            let value = (*number).clamp(least, most);
            let value = value / block * block;
            Ok(Checked {
                value: Value::Integer(value),
                cut: (value != *number && !default).then_some(shown),
            })
        }
        Kind::Real(least, most) => {
            let number = match wanted {
                Value::Integer(number) => *number as f64,
                Value::Real(number) => *number,
                Value::Text(_) | Value::Null => return Err(Fault::wrong_type(variable.name)),
            };
            let value = number.clamp(least, most);
            Ok(Checked {
                value: Value::Real(value),
                cut: ((value - number).abs() > f64::EPSILON).then_some(shown),
            })
        }
        Kind::Boolean => match shown.to_ascii_uppercase().as_str() {
            "1" | "ON" | "TRUE" => kept(Value::text("ON")),
            "0" | "OFF" | "FALSE" => kept(Value::text("OFF")),
            _ => Err(wrong()),
        },
        Kind::Text => match wanted {
            Value::Text(text) => kept(Value::text(text)),
            Value::Null => kept(Value::text("")),
            Value::Integer(_) | Value::Real(_) => Err(Fault::wrong_type(variable.name)),
        },
        Kind::Word(words) => {
            let word = match wanted {
                Value::Integer(at) => usize::try_from(*at).ok().and_then(|at| words.get(at)),
                _ => words.iter().find(|word| word.eq_ignore_ascii_case(&shown)),
            };
            word.map(|word| Checked {
                value: Value::text(*word),
                cut: None,
            })
            .ok_or_else(wrong)
        }
        Kind::Words(words) => {
            let Value::Text(text) = wanted else {
                return Err(Fault::wrong_type(variable.name));
            };
            let mut all = Vec::new();
            for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(part));
                all.push(*word.ok_or_else(|| Fault::wrong_value(variable.name, part))?);
            }
            kept(Value::Text(all.join(",")))
        }
    }
}
