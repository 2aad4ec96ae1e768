//! What is wrong with one field, as a status of the API server lists it.

use serde_json::{Value, json};

/// One field that a validation refuses.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Cause {
    /// `FieldValueInvalid` and the like; `message` as the real server words it.
    pub(crate) fn new(field: &str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            reason,
            message: message.into(),
        }
    }

    /// A value that may not be, with the value printed.
    pub(crate) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self::new(
            field,
            "FieldValueInvalid",
            format!("Invalid value: {value}: {why}"),
        )
    }

    /// A change that is not allowed.
    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {why}"))
    }

    /// Whether the rules of a schema cannot be evaluated on an object with this fault.
    pub(crate) fn blocks_rules(&self) -> bool {
        !matches!(
            self.reason,
            "FieldValueInvalid" | "FieldValueDuplicate" | "FieldValueForbidden"
        )
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }

    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}
