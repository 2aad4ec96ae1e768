//! What the server says when it does not do something. Numbers, states and texts: MySQL 8.0 Error Message Reference,
//! "Server Error Message Reference" (the same numbers in 5.7 and 8.4).

/// An error as a packet carries it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({state}): {message}")]
pub struct Fault {
    /// Number.
    pub code: u16,
    /// SQLSTATE.
    pub state: &'static str,
    /// Text.
    pub message: String,
}

impl Fault {
    /// An error.
    pub fn new(code: u16, state: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            state,
            message: message.into(),
        }
    }

    /// 1064: what was sent is no statement that this server knows.
    pub fn syntax(near: &str) -> Self {
        let near: String = near.chars().take(80).collect();
        Self::new(
            1064,
            "42000",
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for \
                 the right syntax to use near '{near}' at line 1"
            ),
        )
    }

    /// 1227: privileges of which one is missing.
    pub fn needs(privileges: &str) -> Self {
        Self::new(
            1227,
            "42000",
            format!(
                "Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
            ),
        )
    }

    /// 1193: no such variable.
    pub fn unknown_variable(name: &str) -> Self {
        Self::new(1193, "HY000", format!("Unknown system variable '{name}'"))
    }

    /// 1231: a value that the variable cannot have.
    pub fn wrong_value(name: &str, value: &str) -> Self {
        Self::new(
            1231,
            "42000",
            format!("Variable '{name}' can't be set to the value of '{value}'"),
        )
    }

    /// 1232: a value of another type.
    pub fn wrong_type(name: &str) -> Self {
        Self::new(
            1232,
            "42000",
            format!("Incorrect argument type to variable '{name}'"),
        )
    }

    /// 1146: no such table.
    pub fn no_table(schema: &str, table: &str) -> Self {
        Self::new(1146, "42S02", format!("Table '{schema}.{table}' doesn't exist"))
    }

    /// 1049: no such schema.
    pub fn no_schema(schema: &str) -> Self {
        Self::new(1049, "42000", format!("Unknown database '{schema}'"))
    }
}
