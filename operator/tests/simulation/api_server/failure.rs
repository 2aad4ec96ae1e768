//! Failures as the API server words them: a `Status` object with code, reason, message and details.

use serde_json::{Value, json};

use super::cause::Cause;
use super::kinds::Kind;

/// A refused request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Seconds for the `Retry-After` header.
    pub(crate) retry_after: Option<u32>,
    /// Answered in plain text instead of a `Status`.
    pub(crate) plain: bool,
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: None,
            retry_after: None,
            plain: false,
        }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = Some(json!({"name": name, "group": kind.group, "kind": kind.plural}));
        self
    }

    /// The `Status` object.
    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        status
    }

    /// The sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn because(mut self, causes: &[Cause]) -> Self {
        let causes: Vec<Value> = causes.iter().map(Cause::to_value).collect();
        let mut details = self.details.take().unwrap_or_else(|| json!({}));
        details["causes"] = json!(causes);
        self.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified_plural());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_plural());
        Self::new(404, "NotFound", message).about(kind, name)
    }

    /// A path below no served group: the real server answers in plain text.
    pub(crate) fn no_path() -> Self {
        let mut failure = Self::new(404, "", "404 page not found".to_owned());
        failure.plain = true;
        failure
    }

    /// A path that leads to no resource.
    pub(crate) fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message.to_owned())
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message.to_owned())
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified_plural());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// 409 with the real server's opening words.
    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified_plural()
        );
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// 409 because the caller's `resourceVersion` is not the stored one.
    pub(crate) fn stale(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409 of a server-side apply without force; the fields that another manager applied.
    pub(crate) fn apply_conflict(fields: &[String]) -> Self {
        let message = format!(
            "Apply failed with {} conflict(s): {}",
            fields.len(),
            fields.join(", ")
        );
        let causes: Vec<Cause> = fields
            .iter()
            .map(|field| Cause::new(field, "FieldManagerConflict", "conflict with another manager"))
            .collect();
        Self::new(409, "Conflict", message).because(&causes)
    }

    /// 422 of a server-side apply that names no manager.
    pub(crate) fn no_field_manager() -> Self {
        let cause = Cause::new(
            "fieldManager",
            "FieldValueRequired",
            "Required value: is required for apply patch",
        );
        let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {}", cause.line());
        Self::new(422, "Invalid", message).because(&[cause])
    }

    /// 403 of a creation in a namespace that is being terminated.
    pub(crate) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause::new(
            "metadata.namespace",
            "NamespaceTerminating",
            format!("namespace {namespace} is being terminated"),
        );
        Self::forbidden(kind, name, &why).because(&[cause])
    }

    /// 410 in the body of a watch or list that asks for forgotten history.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    pub(crate) fn unsupported_media_type(found: &str, allowed: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {allowed} (found {found})"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422 with one cause a message.
    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let lines: Vec<String> = causes.iter().map(Cause::line).collect();
        let text = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {text}", kind.qualified_kind());
        let failure = Self::new(422, "Invalid", message);
        let details = json!({"name": name, "group": kind.group, "kind": kind.kind});
        Self {
            details: Some(details),
            ..failure
        }
        .because(causes)
    }

    /// 422 of a JSON patch whose operations do not apply.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message.into())
    }

    pub(crate) fn too_many_requests(seconds: u32) -> Self {
        let message = "The apiserver has received too many requests; please try again later";
        let mut failure = Self::new(429, "TooManyRequests", message.to_owned());
        failure.retry_after = Some(seconds);
        failure
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message.into())
    }

    pub(crate) fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(503, "ServiceUnavailable", message.to_owned())
    }
}
