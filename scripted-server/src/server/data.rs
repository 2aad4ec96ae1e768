//! Schemas, tables and rows: as much as a marker and a dataset need.

use std::collections::BTreeMap;

use super::{OWN_SCHEMAS, Outcome, Result, Rows, Server, Session, Value};
use crate::fault::Fault;
use crate::sql::{Expression, Name, Put};

/// Bytes of an empty table; each row adds as many as a row of sysbench takes.
const EMPTY: i128 = 16_384;
const ROW: i128 = 241;

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) primary: Option<usize>,
    pub(super) rows: Vec<Vec<Value>>,
}

impl Table {
    pub(super) fn bytes(&self) -> i128 {
        EMPTY + ROW * i128::try_from(self.rows.len()).unwrap_or_default()
    }
}

pub(super) fn schema_of<'a>(session: &'a Session, name: &'a Name) -> Result<&'a str> {
    name.schema
        .as_deref()
        .or(session.schema.as_deref())
        .ok_or_else(|| Fault::new(1046, "3D000", "No database selected"))
}

impl Server {
    fn may_change(&self, schema: &str, privilege: &str) -> Result<()> {
        let whole = format!("{privilege} ON {schema}");
        if self.account.has(privilege) || self.account.privileges.contains(&whole) {
            return Ok(());
        }
        Err(Fault::new(
            1044,
            "42000",
            format!(
                "Access denied for user '{}'@'%' to database '{schema}'",
                self.account.user
            ),
        ))
    }

    pub(super) fn create_schema(&mut self, session: &mut Session, name: &str, lenient: bool) -> Result<u64> {
        self.may_change(name, "CREATE")?;
        if self.schemas.contains_key(name) {
            let said = format!("Can't create database '{name}'; database exists");
            if !lenient {
                return Err(Fault::new(1007, "HY000", said));
            }
            session.warnings.push(("Note", 1007, said));
            return Ok(1);
        }
        self.schemas.insert(name.to_owned(), BTreeMap::new());
        Ok(1)
    }

    pub(super) fn drop_schema(&mut self, session: &mut Session, name: &str, lenient: bool) -> Result<u64> {
        self.may_change(name, "DROP")?;
        if OWN_SCHEMAS.contains(&name) {
            return Err(Fault::new(
                3552,
                "HY000",
                format!("Access to system schema '{name}' is rejected."),
            ));
        }
        if let Some(tables) = self.schemas.remove(name) {
            Ok(u64::try_from(tables.len()).unwrap_or(u64::MAX))
        } else {
            let said = format!("Can't drop database '{name}'; database doesn't exist");
            if !lenient {
                return Err(Fault::new(1008, "HY000", said));
            }
            session.warnings.push(("Note", 1008, said));
            Ok(0)
        }
    }

    pub(super) fn create_table(
        &mut self,
        session: &mut Session,
        name: &Name,
        lenient: bool,
        columns: &[String],
        primary: Option<usize>,
    ) -> Result<u64> {
        let schema = schema_of(session, name)?.to_owned();
        self.may_change(&schema, "CREATE")?;
        let tables = self
            .schemas
            .get_mut(&schema)
            .ok_or_else(|| Fault::no_schema(&schema))?;
        if tables.contains_key(&name.table) {
            let said = format!("Table '{}' already exists", name.table);
            if !lenient {
                return Err(Fault::new(1050, "42S01", said));
            }
            session.warnings.push(("Note", 1050, said));
            return Ok(0);
        }
        tables.insert(
            name.table.clone(),
            Table {
                columns: columns.to_vec(),
                primary,
                rows: Vec::new(),
            },
        );
        Ok(0)
    }

    pub(super) fn table(&self, session: &Session, name: &Name) -> Result<&Table> {
        let schema = schema_of(session, name)?;
        self.schemas
            .get(schema)
            .ok_or_else(|| Fault::no_schema(schema))?
            .get(&name.table)
            .ok_or_else(|| Fault::no_table(schema, &name.table))
    }

    fn table_mut(&mut self, session: &Session, name: &Name) -> Result<&mut Table> {
        let schema = schema_of(session, name)?.to_owned();
        self.may_change(&schema, "INSERT")?;
        self.schemas
            .get_mut(&schema)
            .ok_or_else(|| Fault::no_schema(&schema))?
            .get_mut(&name.table)
            .ok_or_else(|| Fault::no_table(&schema, &name.table))
    }

    pub(super) fn put(
        &mut self,
        session: &mut Session,
        put: Put,
        name: &Name,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<u64> {
        let table = self.table_mut(session, name)?;
        let mut changed = 0;
        for row in rows {
            let mut new = vec![Value::Null; table.columns.len()];
            for (at, value) in row.into_iter().enumerate() {
                let place = match columns.get(at) {
                    Some(column) => table.columns.iter().position(|c| c == column),
                    None => (columns.is_empty() && at < new.len()).then_some(at),
                };
                let Some(place) = place else {
                    let said = "Column count doesn't match value count at row 1";
                    return Err(Fault::new(1136, "21S01", said));
                };
                new[place] = value;
            }
            let same = table.primary.and_then(|key| {
                table
                    .rows
                    .iter()
                    .position(|row| row[key].compare(&new[key]) == Some(std::cmp::Ordering::Equal))
            });
            match (same, put) {
                (None, _) => {
                    table.rows.push(new);
                    changed += 1;
                }
                (Some(at), Put::Replace) => {
                    table.rows[at] = new;
                    changed += 2;
                }
                (Some(_), Put::Ignore) => {
                    session
                        .warnings
                        .push(("Warning", 1062, "Duplicate entry for key 'PRIMARY'".to_owned()));
                }
                (Some(_), Put::Insert) => {
                    return Err(Fault::new(1062, "23000", "Duplicate entry for key 'PRIMARY'"));
                }
            }
        }
        Ok(changed)
    }

    pub(super) fn update(
        &mut self,
        session: &Session,
        name: &Name,
        changes: &[(String, Expression)],
        condition: Option<&Expression>,
        values: &[Value],
    ) -> Result<u64> {
        let old = self.table(session, name)?.clone();
        let mut rows = Vec::with_capacity(old.rows.len());
        let mut rows_changed = 0;
        for row in &old.rows {
            let named = named(&old.columns, row);
            let mut new = row.clone();
            if self.holds(session, condition, &named, values)? {
                for (column, value) in changes {
                    let place = old.columns.iter().position(|c| c == column).ok_or_else(|| {
                        Fault::new(
                            1054,
                            "42S22",
                            format!("Unknown column '{column}' in 'field list'"),
                        )
                    })?;
                    new[place] = self.evaluate(session, value, &named, values)?;
                }
                rows_changed += u64::from(new != *row);
            }
            rows.push(new);
        }
        self.table_mut(session, name)?.rows = rows;
        Ok(rows_changed)
    }

    pub(super) fn delete(
        &mut self,
        session: &Session,
        name: &Name,
        condition: Option<&Expression>,
        values: &[Value],
    ) -> Result<u64> {
        let old = self.table(session, name)?.clone();
        let mut kept = Vec::new();
        for row in &old.rows {
            if !self.holds(session, condition, &named(&old.columns, row), values)? {
                kept.push(row.clone());
            }
        }
        let gone = u64::try_from(old.rows.len() - kept.len()).unwrap_or_default();
        self.table_mut(session, name)?.rows = kept;
        Ok(gone)
    }

    pub(super) fn analyze(&self, session: &Session, name: &Name) -> Result<Outcome> {
        self.table(session, name)?;
        let full = format!("{}.{}", schema_of(session, name)?, name.table);
        Ok(Outcome::Rows(Rows {
            columns: ["Table", "Op", "Msg_type", "Msg_text"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![vec![
                Value::Text(full),
                Value::text("analyze"),
                Value::text("status"),
                Value::text("OK"),
            ]],
        }))
    }
}

/// A row by the names of its columns.
pub(super) fn named(columns: &[String], row: &[Value]) -> BTreeMap<String, Value> {
    columns.iter().cloned().zip(row.iter().cloned()).collect()
}
