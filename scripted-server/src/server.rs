//! The model of a server: what it holds and how statements change it. Pure but for the clock.

mod administer;
mod data;
mod query;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::dialect::{Dialect, Plugin, Unloading};
use crate::fault::Fault;
use crate::sql::{Expression, Shown, Statement};
use crate::value::Value;

pub(crate) use data::Table;

type Result<T> = std::result::Result<T, Fault>;

/// Seconds that a server has run when it is made.
const RUNNING_FOR: i64 = 1_000;
/// Schemas that are the server's own.
const OWN_SCHEMAS: &[&str] = &["information_schema", "mysql", "performance_schema", "sys"];

/// Who may log in, and what they may do.
#[derive(Clone)]
pub struct Account {
    /// Login name.
    pub user: String,
    /// Password.
    pub password: String,
    /// Privileges on `*.*` in upper case; `ALL PRIVILEGES` stands for every one of them.
    pub privileges: BTreeSet<String>,
}

impl Account {
    /// An account that may do everything.
    pub fn all(user: &str, password: &str) -> Self {
        Self::with(user, password, &["ALL PRIVILEGES"])
    }

    /// An account that has these privileges on `*.*`.
    pub fn with(user: &str, password: &str, privileges: &[&str]) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
            privileges: privileges.iter().map(|p| (*p).to_owned()).collect(),
        }
    }

    fn has(&self, privilege: &str) -> bool {
        self.privileges.contains("ALL PRIVILEGES") || self.privileges.contains(privilege)
    }

    fn has_any(&self, privileges: &str) -> bool {
        privileges
            .split([',', ' '])
            .filter(|p| !p.is_empty() && *p != "or")
            .any(|p| self.has(p))
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// One connection's own state.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Number of the connection.
    pub id: u32,
    /// Schema in use.
    pub schema: Option<String>,
    /// Warnings of the last statement: level, number, text.
    pub warnings: Vec<(&'static str, u16, String)>,
    variables: BTreeMap<String, Value>,
}

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Done; so many rows were changed.
    Done(u64),
    /// Rows.
    Rows(Rows),
    /// Done, and the server ends (`true`: and comes back).
    Ends(bool),
    /// Another connection holds the lock: to be asked again for as many seconds.
    Wait(f64),
}

/// An answer with columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    /// Names.
    pub columns: Vec<String>,
    /// Values.
    pub rows: Vec<Vec<Value>>,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    dialect: &'static Dialect,
    account: Account,
    supervised: bool,
    started: i64,
    questions: u64,
    next_connection: u32,
    connections: BTreeSet<u32>,
    globals: BTreeMap<String, Value>,
    sources: BTreeMap<String, &'static str>,
    configured: BTreeMap<String, Value>,
    persisted: BTreeMap<String, Value>,
    plugins: Vec<&'static Plugin>,
    stopped: BTreeSet<&'static str>,
    missing_libraries: BTreeSet<String>,
    components: BTreeSet<&'static str>,
    schemas: BTreeMap<String, BTreeMap<String, Table>>,
    locks: BTreeMap<String, u32>,
    status: BTreeMap<String, String>,
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

impl Server {
    /// A server of a dialect that has run for a while.
    pub fn new(dialect: &'static Dialect, account: Account) -> Self {
        let mut server = Self {
            dialect,
            account,
            supervised: false,
            started: now() - RUNNING_FOR,
            questions: 0,
            next_connection: 8,
            connections: BTreeSet::new(),
            globals: BTreeMap::new(),
            sources: BTreeMap::new(),
            configured: BTreeMap::new(),
            persisted: BTreeMap::new(),
            plugins: Vec::new(),
            stopped: BTreeSet::new(),
            missing_libraries: BTreeSet::new(),
            components: BTreeSet::new(),
            schemas: OWN_SCHEMAS
                .iter()
                .map(|schema| ((*schema).to_owned(), BTreeMap::new()))
                .collect(),
            locks: BTreeMap::new(),
            status: BTreeMap::new(),
        };
        server.load_values();
        server
    }

    /// Whether something brings the server back when it ends by `RESTART`.
    pub fn supervise(&mut self, supervised: bool) {
        self.supervised = supervised;
    }

    /// Changes who may log in, and what they may do.
    pub fn set_account(&mut self, account: Account) {
        self.account = account;
    }

    /// Who may log in.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Which server this is.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Takes a library out of the plugin directory.
    pub fn remove_library(&mut self, library: &str) {
        self.missing_libraries.insert(library.to_owned());
    }

    /// Gives a variable a value in the configuration file: in force after the next start, or, of a plugin, as soon as it
    /// is loaded.
    pub fn configure(&mut self, name: &str, value: &str) {
        self.configured.insert(name.to_lowercase(), Value::text(value));
    }

    /// Sets a status variable (records lost).
    pub fn set_status(&mut self, name: &str, value: &str) {
        self.status.insert(name.to_owned(), value.to_owned());
    }

    /// Seconds since 1970 when it started.
    pub fn started(&self) -> i64 {
        self.started
    }

    /// Ends and starts: values come from the configuration and, over it, from what was persisted.
    pub fn boot(&mut self) {
        self.started = now();
        self.questions = 0;
        self.connections.clear();
        self.locks.clear();
        self.stopped.clear();
        self.status.clear();
        self.load_values();
    }

    /// A new connection.
    pub(crate) fn connect(&mut self) -> Session {
        self.next_connection += 1;
        self.connections.insert(self.next_connection);
        Session {
            id: self.next_connection,
            schema: None,
            warnings: Vec::new(),
            variables: BTreeMap::new(),
        }
    }

    /// Ends a connection: its locks become free.
    pub(crate) fn disconnect(&mut self, id: u32) {
        self.connections.remove(&id);
        self.locks.retain(|_, holder| *holder != id);
    }

    /// Whether a connection has not been ended by another.
    pub(crate) fn alive(&self, id: u32) -> bool {
        self.connections.contains(&id)
    }

    /// Runs a statement. `last`: waiting is over, answer as it is.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        values: &[Value],
        last: bool,
    ) -> Result<Outcome> {
        self.questions += 1;
        if !matches!(statement, Statement::Show(Shown::Warnings, _)) {
            session.warnings.clear();
        }
        let answer = self.run(session, statement, values, last);
        if let Err(fault) = &answer {
            session
                .warnings
                .push(("Error", fault.code, fault.message.clone()));
        }
        answer
    }

    fn run(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        values: &[Value],
        last: bool,
    ) -> Result<Outcome> {
        let changed = match statement {
            Statement::Select(select) => return self.select(session, select, values, last),
            Statement::Show(shown, filter) => return self.show(session, *shown, filter.as_ref()),
            Statement::Set(assignments) => {
                self.set(session, assignments, values)?;
                0
            }
            Statement::ResetPersist(name, lenient) => {
                self.reset_persist(session, name.as_deref(), *lenient)?;
                0
            }
            Statement::InstallPlugin(name, library) => {
                self.install_plugin(name, library)?;
                0
            }
            Statement::UninstallPlugin(name) => {
                self.uninstall_plugin(name)?;
                0
            }
            Statement::InstallComponent(urn) => {
                self.install_component(urn)?;
                0
            }
            Statement::UninstallComponent(urn) => {
                self.uninstall_component(urn)?;
                0
            }
            Statement::CreateDatabase(name, lenient) => self.create_schema(session, name, *lenient)?,
            Statement::DropDatabase(name, lenient) => self.drop_schema(session, name, *lenient)?,
            Statement::CreateTable(name, lenient, columns, primary) => {
                self.create_table(session, name, *lenient, columns, *primary)?
            }
            Statement::Put(put, name, columns, rows) => {
                let rows = rows
                    .iter()
                    .map(|row| {
                        row.iter()
                            .map(|value| self.value(session, value, values))
                            .collect()
                    })
                    .collect::<Result<Vec<Vec<Value>>>>()?;
                self.put(session, *put, name, columns, rows)?
            }
            Statement::PutSelected(put, name, columns, select) => {
                match self.select(session, select, values, last)? {
                    Outcome::Rows(rows) => self.put(session, *put, name, columns, rows.rows)?,
                    other => return Ok(other),
                }
            }
            Statement::Update(name, changes, condition) => {
                self.update(session, name, changes, condition.as_ref(), values)?
            }
            Statement::Delete(name, condition) => self.delete(session, name, condition.as_ref(), values)?,
            Statement::Kill(connection) => {
                let id = self
                    .value(session, connection, values)?
                    .number()
                    .unwrap_or_default();
                self.kill(id as u32)?;
                0
            }
            Statement::Analyze(name) => return self.analyze(session, name),
            Statement::Do(expressions) => {
                for expression in expressions {
                    if let Expression::Call(name, arguments) = expression
                        && name == "RELEASE_LOCK"
                    {
                        self.release_lock(session, arguments, values)?;
                    } else {
                        self.value(session, expression, values)?;
                    }
                }
                0
            }
            Statement::Use(schema) => {
                if !self.schemas.contains_key(schema) {
                    return Err(Fault::no_schema(schema));
                }
                session.schema = Some(schema.clone());
                0
            }
            Statement::Restart => return self.restart(),
            Statement::Shutdown => return self.shutdown(),
            Statement::Nothing => 0,
        };
        Ok(Outcome::Done(changed))
    }
}
