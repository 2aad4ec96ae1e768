//! Values as the server keeps and compares them.

use std::cmp::Ordering;

/// A value of a row or an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Real(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// Text of a literal.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// As text, the way the server prints it; `None` for `NULL`.
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Integer(number) => Some(number.to_string()),
            Self::Real(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
        }
    }

    /// As a number, where it is one or looks like one; text that does not counts as zero, as in MySQL.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Null => None,
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Text(text) => Some(text.trim().parse().unwrap_or_default()),
        }
    }

    /// Whether a condition of this value holds.
    pub fn holds(&self) -> bool {
        self.number().is_some_and(|n| n != 0.0)
    }

    /// Compares as MySQL does with a collation that does not tell upper case from lower; `None` beside a `NULL`.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => None,
            (Self::Text(a), Self::Text(b)) => Some(a.to_lowercase().cmp(&b.to_lowercase())),
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(i128::from(value))
    }
}
