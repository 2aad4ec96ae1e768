//! Questions: `SELECT` over tables and over what the server tells of itself, `SHOW`, expressions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::data::{named, schema_of};
use super::{Outcome, Result, Rows, Server, Session, Shown, Value, now};
use crate::dialect::{Kind, Variable};
use crate::fault::Fault;
use crate::sql::{Expression, Name, Operator, Select};

type Row = BTreeMap<String, Value>;

/// `information_schema.PLUGINS` of plugins that every server has, for queries that look for others.
const BUILT_IN: &[(&str, &str)] = &[("InnoDB", "STORAGE ENGINE"), ("binlog", "STORAGE ENGINE")];

impl Server {
    pub(super) fn show(
        &mut self,
        session: &mut Session,
        shown: Shown,
        filter: Option<&Expression>,
    ) -> Result<Outcome> {
        let text = |pairs: Vec<(String, String)>| -> Vec<Vec<Value>> {
            pairs
                .into_iter()
                .map(|(name, value)| vec![Value::Text(name), Value::Text(value)])
                .collect()
        };
        let pair = || vec!["Variable_name".to_owned(), "Value".to_owned()];
        let (columns, rows) = match shown {
            Shown::GlobalVariables | Shown::SessionVariables => (pair(), text(self.global_values())),
            Shown::Status => (pair(), text(self.status_values())),
            Shown::Databases => (
                vec!["Database".to_owned()],
                self.schemas
                    .keys()
                    .map(|schema| vec![Value::text(schema)])
                    .collect(),
            ),
            Shown::Warnings => (
                ["Level", "Code", "Message"].map(str::to_owned).to_vec(),
                session
                    .warnings
                    .iter()
                    .map(|(level, code, message)| {
                        vec![
                            Value::text(*level),
                            Value::Integer(i128::from(*code)),
                            Value::text(message),
                        ]
                    })
                    .collect(),
            ),
            Shown::Grants => {
                let user = &self.account.user;
                let privileges: Vec<&str> = self.account.privileges.iter().map(String::as_str).collect();
                let list = if privileges.is_empty() {
                    "USAGE".to_owned()
                } else {
                    privileges.join(", ")
                };
                (
                    vec![format!("Grants for {user}@%")],
                    vec![vec![Value::Text(format!("GRANT {list} ON *.* TO `{user}`@`%`"))]],
                )
            }
            Shown::ReplicaStatus | Shown::SlaveStatus => {
                // SHOW REPLICA STATUS came with 8.0.22, SHOW SLAVE STATUS went with 8.4.0.
                let known = match shown {
                    Shown::ReplicaStatus => self.dialect.numbers >= (8, 0, 22),
                    _ => self.dialect.numbers < (8, 4, 0),
                };
                if !known {
                    return Err(Fault::syntax("STATUS"));
                }
                if !self.account.has_any("SUPER, REPLICATION_CLIENT") {
                    return Err(Fault::needs("SUPER, REPLICATION CLIENT"));
                }
                (vec!["Replica_IO_State".to_owned()], Vec::new())
            }
        };
        let lower: Vec<String> = columns.iter().map(|c| c.to_lowercase()).collect();
        let mut kept = Vec::new();
        for row in rows {
            if self.holds(session, filter, &named(&lower, &row), &[])? {
                kept.push(row);
            }
        }
        Ok(Outcome::Rows(Rows { columns, rows: kept }))
    }

    fn status_values(&self) -> Vec<(String, String)> {
        let components = self
            .dialect
            .components
            .iter()
            .filter(|c| self.components.contains(c.urn))
            .flat_map(|c| c.status);
        let mut all: BTreeMap<String, String> = self
            .dialect
            .status
            .iter()
            .chain(self.plugins.iter().flat_map(|p| p.status))
            .chain(components)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        all.insert("Uptime".to_owned(), (now() - self.started).to_string());
        all.insert("Questions".to_owned(), self.questions.to_string());
        all.insert("Threads_connected".to_owned(), self.connections.len().to_string());
        for (name, value) in &self.status {
            all.insert(name.clone(), value.clone());
        }
        all.into_iter().collect()
    }

    pub(super) fn select(
        &mut self,
        session: &Session,
        select: &Select,
        values: &[Value],
        last: bool,
    ) -> Result<Outcome> {
        let columns: Vec<String> = select.items.iter().map(|(_, name)| name.clone()).collect();
        // Taking a lock changes the server: it stands alone.
        if let [(Expression::Call(name, arguments), _)] = select.items.as_slice() {
            let answer = match name.as_str() {
                "GET_LOCK" => {
                    if let Some(value) = self.get_lock(session, arguments, values)? {
                        Some(value)
                    } else {
                        let patience = match arguments.get(1) {
                            Some(patience) => self.value(session, patience, values)?.number(),
                            None => None,
                        }
                        .unwrap_or_default();
                        if !last && patience > 0.0 {
                            return Ok(Outcome::Wait(patience));
                        }
                        Some(Value::Integer(0))
                    }
                }
                "RELEASE_LOCK" => Some(self.release_lock(session, arguments, values)?),
                _ => None,
            };
            if let Some(value) = answer {
                let rows = vec![vec![value]];
                return Ok(Outcome::Rows(Rows { columns, rows }));
            }
        }
        let mut found = Vec::new();
        for row in self.rows_of(session, select)? {
            if self.holds(session, select.condition.as_ref(), &row, values)? {
                found.push(row);
            }
        }
        let mut rows: Vec<(Vec<Value>, Row)> = if select.items.iter().any(|(item, _)| aggregates(item)) {
            let one = select
                .items
                .iter()
                .map(|(item, _)| self.aggregate(session, item, &found, values))
                .collect::<Result<Vec<Value>>>()?;
            vec![(one, Row::new())]
        } else {
            let mut rows = Vec::with_capacity(found.len());
            for row in found {
                let mut one = Vec::with_capacity(select.items.len());
                for (item, _) in &select.items {
                    one.push(self.evaluate(session, item, &row, values)?);
                }
                rows.push((one, row));
            }
            rows
        };
        if select.distinct {
            let mut seen: Vec<Vec<Value>> = Vec::new();
            rows.retain(|(row, _)| {
                let new = !seen.contains(row);
                if new {
                    seen.push(row.clone());
                }
                new
            });
        }
        for (by, descending) in select.order.iter().rev() {
            let mut keyed = Vec::with_capacity(rows.len());
            for (shown, row) in rows {
                let key = match by {
                    Expression::Literal(Value::Integer(at)) => usize::try_from(*at - 1)
                        .ok()
                        .and_then(|at| shown.get(at).cloned())
                        .unwrap_or(Value::Null),
                    by => self.evaluate(session, by, &row, values)?,
                };
                keyed.push((key, shown, row));
            }
            keyed.sort_by(|(a, ..), (b, ..)| {
                let order = a.compare(b).unwrap_or(Ordering::Equal);
                if *descending { order.reverse() } else { order }
            });
            rows = keyed.into_iter().map(|(_, shown, row)| (shown, row)).collect();
        }
        let rows = rows.into_iter().map(|(shown, _)| shown).collect();
        Ok(Outcome::Rows(Rows { columns, rows }))
    }

    fn rows_of(&self, session: &Session, select: &Select) -> Result<Vec<Row>> {
        let Some(from) = &select.from else {
            return Ok(vec![Row::new()]);
        };
        let mut rows = self.rows_in(session, from)?;
        for join in &select.joins {
            let others = self.rows_in(session, &join.table)?;
            let mut joined = Vec::new();
            for row in rows {
                let key = row.get(&join.using);
                let mut matched = false;
                for other in &others {
                    let same = key
                        .zip(other.get(&join.using))
                        .is_some_and(|(a, b)| a.compare(b) == Some(Ordering::Equal));
                    if same {
                        matched = true;
                        let mut both = other.clone();
                        both.extend(row.clone());
                        joined.push(both);
                    }
                }
                if !matched && join.left {
                    // Columns of the other table are NULL.
                    let mut alone: Row = others
                        .first()
                        .map(|other| other.keys().map(|name| (name.clone(), Value::Null)).collect())
                        .unwrap_or_default();
                    alone.extend(row);
                    joined.push(alone);
                }
            }
            rows = joined;
        }
        Ok(rows)
    }

    /// Rows of a table, or of what the server tells as one.
    fn rows_in(&self, session: &Session, name: &Name) -> Result<Vec<Row>> {
        let schema = schema_of(session, name)?;
        let full = format!("{schema}.{}", name.table).to_lowercase();
        let row = |pairs: &[(&str, Value)]| -> Row {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect()
        };
        Ok(match full.as_str() {
            "information_schema.plugins" => {
                let built_in = BUILT_IN.iter().map(|(name, kind)| (*name, *kind, None));
                let loaded = self.plugins.iter().map(|p| (p.name, "AUDIT", Some(p.library)));
                built_in
                    .chain(loaded)
                    .map(|(name, kind, library)| {
                        row(&[
                            ("plugin_name", Value::text(name)),
                            ("plugin_status", Value::text("ACTIVE")),
                            ("plugin_type", Value::text(kind)),
                            ("plugin_library", library.map_or(Value::Null, Value::text)),
                        ])
                    })
                    .collect()
            }
            "information_schema.tables" => self
                .tables()
                .map(|(schema, name, table)| {
                    row(&[
                        ("table_schema", Value::text(schema)),
                        ("table_name", Value::text(name)),
                        ("table_type", Value::text("BASE TABLE")),
                        ("data_length", Value::Integer(table.bytes())),
                        ("index_length", Value::Integer(0)),
                    ])
                })
                .collect(),
            "information_schema.statistics" => self
                .tables()
                .filter(|(_, _, table)| table.primary.is_some())
                .map(|(schema, name, _)| {
                    row(&[
                        ("table_schema", Value::text(schema)),
                        ("table_name", Value::text(name)),
                        ("index_name", Value::text("PRIMARY")),
                        ("index_type", Value::text("BTREE")),
                    ])
                })
                .collect(),
            "information_schema.innodb_metrics" => vec![row(&[
                ("name", Value::text("trx_rseg_history_len")),
                ("count", Value::Integer(0)),
            ])],
            "performance_schema.variables_info" if self.dialect.is_8() => self
                .definitions()
                .map(|variable| {
                    let (least, most) = range(variable);
                    let source = self.sources.get(variable.name).copied().unwrap_or("COMPILED");
                    row(&[
                        ("variable_name", Value::text(variable.name)),
                        ("variable_source", Value::text(source)),
                        ("min_value", Value::Text(least)),
                        ("max_value", Value::Text(most)),
                    ])
                })
                .chain(
                    ["hostname", "server_uuid", "version", "version_comment"].map(|name| {
                        row(&[
                            ("variable_name", Value::text(name)),
                            ("variable_source", Value::text("COMPILED")),
                            ("min_value", Value::text("0")),
                            ("max_value", Value::text("0")),
                        ])
                    }),
                )
                .collect(),
            "performance_schema.global_variables" if self.dialect.numbers >= (5, 7, 6) => self
                .global_values()
                .into_iter()
                .map(|(name, value)| {
                    row(&[
                        ("variable_name", Value::Text(name)),
                        ("variable_value", Value::Text(value)),
                    ])
                })
                .collect(),
            "performance_schema.persisted_variables" if self.dialect.is_8() => self
                .persisted
                .iter()
                .map(|(name, value)| {
                    row(&[
                        ("variable_name", Value::text(name)),
                        ("variable_value", Value::Text(value.shown().unwrap_or_default())),
                    ])
                })
                .collect(),
            "mysql.component" if self.dialect.is_8() => self
                .components
                .iter()
                .map(|urn| row(&[("component_urn", Value::text(*urn))]))
                .collect(),
            _ => {
                let table = self.table(session, name)?;
                table.rows.iter().map(|row| named(&table.columns, row)).collect()
            }
        })
    }

    fn tables(&self) -> impl Iterator<Item = (&str, &str, &super::Table)> {
        self.schemas.iter().flat_map(|(schema, tables)| {
            tables
                .iter()
                .map(|(name, table)| (schema.as_str(), name.as_str(), table))
        })
    }

    /// An expression outside of any row.
    pub(super) fn value(
        &self,
        session: &Session,
        expression: &Expression,
        values: &[Value],
    ) -> Result<Value> {
        self.evaluate(session, expression, &Row::new(), values)
    }

    /// Whether a condition holds; none always does.
    pub(super) fn holds(
        &self,
        session: &Session,
        condition: Option<&Expression>,
        row: &Row,
        values: &[Value],
    ) -> Result<bool> {
        match condition {
            None => Ok(true),
            Some(condition) => Ok(self.evaluate(session, condition, row, values)?.holds()),
        }
    }

    fn aggregate(
        &self,
        session: &Session,
        expression: &Expression,
        rows: &[Row],
        values: &[Value],
    ) -> Result<Value> {
        let Expression::Call(name, arguments) = expression else {
            return self.value(session, expression, values);
        };
        match (name.as_str(), arguments.as_slice()) {
            ("COUNT", [Expression::All]) => {
                Ok(Value::Integer(i128::try_from(rows.len()).unwrap_or_default()))
            }
            ("SUM", [argument]) => {
                let mut sum = Value::Null;
                for row in rows {
                    let one = self.evaluate(session, argument, row, values)?;
                    sum = match (sum, one) {
                        (sum, Value::Null) => sum,
                        (Value::Null, one) => one,
                        (sum, one) => arithmetic(Operator::Plus, &sum, &one),
                    };
                }
                Ok(sum)
            }
            ("CAST" | "CONVERT", [argument]) => self.aggregate(session, argument, rows, values),
            _ => Err(Fault::syntax(name)),
        }
    }

    pub(super) fn evaluate(
        &self,
        session: &Session,
        expression: &Expression,
        row: &Row,
        values: &[Value],
    ) -> Result<Value> {
        let one = |expression: &Expression| self.evaluate(session, expression, row, values);
        Ok(match expression {
            Expression::Literal(value) => value.clone(),
            Expression::Placeholder(at) => values.get(*at).cloned().unwrap_or(Value::Null),
            Expression::UserVariable => Value::Null,
            Expression::Variable(scope, name) => self.variable(session, *scope, name)?,
            Expression::Column(name) => row.get(name).cloned().ok_or_else(|| {
                Fault::new(1054, "42S22", format!("Unknown column '{name}' in 'field list'"))
            })?,
            Expression::Not(inner) => match one(inner)? {
                Value::Null => Value::Null,
                value => (!value.holds()).into(),
            },
            Expression::IsNull(inner) => (one(inner)? == Value::Null).into(),
            Expression::In(left, all) => {
                let left = one(left)?;
                let mut found = false;
                for other in all {
                    found |= left.compare(&one(other)?) == Some(Ordering::Equal);
                }
                found.into()
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (one(left)?, one(right)?);
                binary(*operator, &left, &right)
            }
            Expression::Call(name, arguments) => {
                let arguments = arguments.iter().map(one).collect::<Result<Vec<Value>>>()?;
                self.call(session, name, &arguments)?
            }
            Expression::All => return Err(Fault::syntax("*")),
        })
    }

    fn call(&self, session: &Session, name: &str, arguments: &[Value]) -> Result<Value> {
        let first = arguments.first().cloned().unwrap_or(Value::Null);
        Ok(match name {
            "UNIX_TIMESTAMP" => Value::Integer(i128::from(now())),
            "UUID" => Value::Text(format!("6ccd780c-0000-4000-8000-{:012x}", self.questions)),
            "CONNECTION_ID" => Value::Integer(i128::from(session.id)),
            "CURRENT_USER" | "USER" => Value::Text(format!("{}@%", self.account.user)),
            "UPPER" => first
                .shown()
                .map_or(Value::Null, |t| Value::Text(t.to_uppercase())),
            "LOWER" => first
                .shown()
                .map_or(Value::Null, |t| Value::Text(t.to_lowercase())),
            "CAST" | "CONVERT" => first,
            "CONCAT" => arguments
                .iter()
                .map(Value::shown)
                .collect::<Option<String>>()
                .map_or(Value::Null, Value::Text),
            "COALESCE" | "IFNULL" => arguments
                .iter()
                .find(|value| **value != Value::Null)
                .cloned()
                .unwrap_or(Value::Null),
            "IS_USED_LOCK" => {
                let holder = first.shown().and_then(|name| self.locks.get(&name));
                holder.map_or(Value::Null, |id| Value::Integer(i128::from(*id)))
            }
            "LOAD_FILE" => Value::Null,
            _ => {
                return Err(Fault::new(
                    1305,
                    "42000",
                    format!("FUNCTION {} does not exist", name.to_lowercase()),
                ));
            }
        })
    }
}

/// Whether an expression is about all rows together.
fn aggregates(expression: &Expression) -> bool {
    match expression {
        Expression::Call(name, arguments) => {
            matches!(name.as_str(), "COUNT" | "SUM") || arguments.iter().any(aggregates)
        }
        _ => false,
    }
}

/// `MIN_VALUE` and `MAX_VALUE` of `variables_info`: 0 for what has no range.
fn range(variable: &Variable) -> (String, String) {
    match variable.kind {
        Kind::Integer(least, most, _) => (least.to_string(), most.to_string()),
        Kind::Real(least, most) => (format!("{least:.6}"), format!("{most:.6}")),
        _ => ("0".to_owned(), "0".to_owned()),
    }
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(match operator {
            Operator::Minus => a - b,
            _ => a + b,
        }),
        _ => match left.number().zip(right.number()) {
            None => Value::Null,
            Some((a, b)) => Value::Real(if operator == Operator::Minus { a - b } else { a + b }),
        },
    }
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Value {
    let compared = |holds: fn(Ordering) -> bool| match left.compare(right) {
        None => Value::Null,
        Some(order) => holds(order).into(),
    };
    match operator {
        Operator::Or => (left.holds() || right.holds()).into(),
        Operator::And => (left.holds() && right.holds()).into(),
        Operator::Equal => compared(Ordering::is_eq),
        Operator::Unequal => compared(Ordering::is_ne),
        Operator::Less => compared(Ordering::is_lt),
        Operator::AtMost => compared(Ordering::is_le),
        Operator::Greater => compared(Ordering::is_gt),
        Operator::AtLeast => compared(Ordering::is_ge),
        Operator::Like => match (left.shown(), right.shown()) {
            (Some(text), Some(pattern)) => like(&text.to_lowercase(), &pattern.to_lowercase()).into(),
            _ => Value::Null,
        },
        Operator::Plus | Operator::Minus => arithmetic(operator, left, right),
    }
}

/// `LIKE`: `%` is any text, `_` one character.
fn like(text: &str, pattern: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    if first == '%' {
        return text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .any(|at| like(&text[at..], rest));
    }
    text.chars()
        .next()
        .is_some_and(|c| (first == '_' || c == first) && like(&text[c.len_utf8()..], rest))
}
