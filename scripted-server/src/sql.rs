//! The part of SQL that administration needs, as a tree.

mod parse;
mod token;

pub(crate) use parse::parse;

use crate::value::Value;

/// Where a variable is looked for or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `GLOBAL`.
    Global,
    /// `SESSION`, `LOCAL` or nothing.
    Session,
    /// `PERSIST`.
    Persist,
    /// `PERSIST_ONLY`.
    PersistOnly,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// A literal.
    Literal(Value),
    /// The n-th placeholder of a prepared statement.
    Placeholder(usize),
    /// A column by the last part of its name, in lower case.
    Column(String),
    /// `@@name`.
    Variable(Option<Scope>, String),
    /// `@name`: always `NULL`.
    UserVariable,
    /// A function by its name in upper case.
    Call(String, Vec<Expression>),
    /// An operator between two.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `IN`.
    In(Box<Expression>, Vec<Expression>),
    /// `NOT`.
    Not(Box<Expression>),
    /// `IS NULL`.
    IsNull(Box<Expression>),
    /// `*`.
    All,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `OR`.
    Or,
    /// `AND`.
    And,
    /// `=`.
    Equal,
    /// `<>`.
    Unequal,
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>`.
    Greater,
    /// `>=`.
    AtLeast,
    /// `LIKE`.
    Like,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
}

/// A table by its schema (the session's own if absent) and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Schema.
    pub schema: Option<String>,
    /// Name.
    pub table: String,
}

/// A table joined to those before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Join {
    /// The table.
    pub table: Name,
    /// Whether rows without a match stay.
    pub left: bool,
    /// Column that both have.
    pub using: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    /// Whether equal rows appear once.
    pub distinct: bool,
    /// What is asked for, with the name of each column.
    pub items: Vec<(Expression, String)>,
    /// The first table.
    pub from: Option<Name>,
    /// The others.
    pub joins: Vec<Join>,
    /// Condition.
    pub condition: Option<Expression>,
    /// Order; `true`: descending.
    pub order: Vec<(Expression, bool)>,
}

/// What `SHOW` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// `GLOBAL VARIABLES`.
    GlobalVariables,
    /// `VARIABLES`.
    SessionVariables,
    /// `STATUS`.
    Status,
    /// `DATABASES`.
    Databases,
    /// `WARNINGS`.
    Warnings,
    /// `GRANTS`.
    Grants,
    /// `REPLICA STATUS`.
    ReplicaStatus,
    /// `SLAVE STATUS`.
    SlaveStatus,
}

/// One assignment of a `SET`; `None`: to its default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    /// Scope.
    pub scope: Scope,
    /// Variable in lower case; a component's has two parts.
    pub name: String,
    /// Value.
    pub value: Option<Expression>,
}

/// How rows are put into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// `INSERT`.
    Insert,
    /// `INSERT IGNORE`.
    Ignore,
    /// `REPLACE`.
    Replace,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// `SELECT`.
    Select(Select),
    /// `SHOW` with the pattern or condition.
    Show(Shown, Option<Expression>),
    /// `SET`.
    Set(Vec<Assignment>),
    /// `RESET PERSIST`: one variable or all; whether it need not be there.
    ResetPersist(Option<String>, bool),
    /// `INSTALL PLUGIN`: name and library.
    InstallPlugin(String, String),
    /// `UNINSTALL PLUGIN`.
    UninstallPlugin(String),
    /// `INSTALL COMPONENT`.
    InstallComponent(String),
    /// `UNINSTALL COMPONENT`.
    UninstallComponent(String),
    /// `CREATE DATABASE`; whether it may be there.
    CreateDatabase(String, bool),
    /// `DROP DATABASE`; whether it need not be there.
    DropDatabase(String, bool),
    /// `CREATE TABLE`: whether it may be there, columns, column of the primary key.
    CreateTable(Name, bool, Vec<String>, Option<usize>),
    /// `INSERT` and `REPLACE`.
    Put(Put, Name, Vec<String>, Vec<Vec<Expression>>),
    /// The same from a query.
    PutSelected(Put, Name, Vec<String>, Select),
    /// `UPDATE`.
    Update(Name, Vec<(String, Expression)>, Option<Expression>),
    /// `DELETE`.
    Delete(Name, Option<Expression>),
    /// `KILL`.
    Kill(Expression),
    /// `ANALYZE TABLE`.
    Analyze(Name),
    /// `DO`.
    Do(Vec<Expression>),
    /// `USE`.
    Use(String),
    /// `RESTART`.
    Restart,
    /// `SHUTDOWN`.
    Shutdown,
    /// What changes nothing here: `FLUSH`, `BEGIN`, `COMMIT`, `ROLLBACK`.
    Nothing,
}
