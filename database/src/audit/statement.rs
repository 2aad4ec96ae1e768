//! Statements as data, and the variables that a setting wants: what is run, and how its answer is compared.

/// A value bound to a statement. The server refuses a number that is sent as a string (error 1232).
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A whole number.
    Integer(i128),
    /// A decimal number.
    Real(f64),
    /// Text.
    Text(String),
}

/// One change of a server, as data: each engine says it in its own words.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A global variable; the name is one of ours or the catalogue's.
    Set {
        /// Name.
        name: String,
        /// Value to set.
        value: Bound,
    },
    /// A statement as it is.
    Sql(String),
}

impl Statement {
    /// Sets a global variable.
    pub fn set(name: &str, value: Bound) -> Self {
        Self::Set {
            name: name.to_owned(),
            value,
        }
    }
}

/// A global variable that a setting needs, and what it must read back as.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Name.
    pub name: &'static str,
    /// Value to set.
    pub value: Bound,
    /// Whether it is a list whose order does not matter.
    pub set: bool,
    /// Whether servers without this variable need nothing instead.
    pub optional: bool,
    /// Whether only the start of the server sets it: it is read back, not set.
    pub at_start: bool,
}

impl Wanted {
    pub(super) fn text(name: &'static str, value: &str) -> Self {
        Self {
            name,
            value: Bound::Text(value.to_owned()),
            set: false,
            optional: false,
            at_start: false,
        }
    }
    pub(super) fn list(name: &'static str, values: &[&str]) -> Self {
        Self {
            name,
            value: Bound::Text(values.join(",")),
            set: true,
            optional: false,
            at_start: false,
        }
    }
    pub(super) fn integer(name: &'static str, value: i64) -> Self {
        Self {
            name,
            value: Bound::Integer(i128::from(value)),
            set: false,
            optional: false,
            at_start: false,
        }
    }

    /// The same of a variable that only the start of the server sets.
    pub(super) fn at_start(self) -> Self {
        Self {
            at_start: true,
            ..self
        }
    }

    /// The same where the server has the variable at all.
    pub(super) fn where_known(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// Whether the server has what is wanted or, if that is optional, cannot have it.
    pub(super) fn met(&self, found: &super::Found) -> bool {
        let absent = self.optional && !found.variables.contains_key(self.name);
        absent || self.matches(found.variable(self.name))
    }

    /// Whether the server's answer is this value.
    pub(super) fn matches(&self, found: &str) -> bool {
        match &self.value {
            Bound::Integer(wanted) => {
                found.parse::<i128>().is_ok_and(|f| f == *wanted)
                    || found
                        .parse::<f64>()
                        .is_ok_and(|f| (f - *wanted as f64).abs() < 1e-9)
            }
            Bound::Real(wanted) => found.parse::<f64>().is_ok_and(|f| (f - wanted).abs() < 1e-9),
            Bound::Text(wanted) if self.set => sorted(wanted) == sorted(found),
            Bound::Text(wanted) => {
                wanted.eq_ignore_ascii_case(found)
                    || (wanted == "ON" && found == "1")
                    || (wanted == "OFF" && found == "0")
            }
        }
    }
}

fn sorted(list: &str) -> Vec<String> {
    let mut items: Vec<String> = list
        .split(',')
        .map(|i| i.trim().to_ascii_uppercase())
        .filter(|i| !i.is_empty())
        .collect();
    items.sort();
    items
}
