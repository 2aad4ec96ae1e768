//! One thing that is wrong with a spec, said so that a person can mend it: where, what was found, what is allowed,
//! what to do.

use std::fmt;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path of the field: `spec.auditSettings[1].type`.
    pub field: String,
    /// What was found there.
    pub found: String,
    /// What is allowed, and why.
    pub allowed: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    /// A problem from its four parts.
    pub fn new(
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            found: found.into(),
            allowed: allowed.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {}; {}",
            self.field, self.found, self.allowed, self.remedy
        )
    }
}
