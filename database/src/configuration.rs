//! Configuration files of managed servers: names, values, what a person may not set. Pure: the file of one boot
//! follows from the target's base, the boot request and the memory, and its hash names it.

use std::collections::BTreeMap;

use crds::parameter::{ParameterValue, Parameters};
use crds::target::{BootRequest, Engine};
use sha2::{Digest as _, Sha256};

use crate::access::{DatabaseError, ParameterProblem};
use crate::engine::{self, Layout};

/// The complete configuration of one boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationFile {
    /// Content of the file.
    pub text: String,
    /// First 16 hexadecimal digits of the content's SHA-256.
    pub hash: String,
}

impl ConfigurationFile {
    /// The file with its hash.
    pub fn new(text: String) -> Self {
        let hash = hex_digest(text.as_bytes(), 16);
        Self { text, hash }
    }
}

/// Why no configuration can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The engine or the audit mechanism is not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// Parameters that cannot be written into a file.
    #[error("{}", .0.iter().map(|p| p.message.as_str()).collect::<Vec<_>>().join("; "))]
    Refused(Vec<ParameterProblem>),
}

impl From<ConfigurationError> for DatabaseError {
    fn from(error: ConfigurationError) -> Self {
        Self::Unsupported(error.to_string())
    }
}

/// The complete configuration of a managed server for one boot.
///
/// `base` is the target's own `managed.configuration`, `request` what the holder asks for (none: base only),
/// `memory_bytes` the pod's limit, from which the cache is sized unless a parameter says its size. The same arguments
/// give the same text.
pub fn render(
    engine: Engine,
    base: &Parameters,
    request: Option<&BootRequest>,
    memory_bytes: i64,
) -> Result<ConfigurationFile, ConfigurationError> {
    let support = engine::find(engine).map_err(|e| ConfigurationError::Unsupported(e.to_string()))?;
    support.configuration(&Layout::pod(support.default_port()), base, request, memory_bytes)
}

/// Parameters that a cache state needs in the file of *every* boot (the dump is written by the boot before). To be
/// laid under the run's own parameters in a [`BootRequest`].
pub fn cache_parameters(
    engine: Engine,
    state: crds::load::CacheState,
) -> Result<Parameters, ConfigurationError> {
    engine::find(engine)
        .map(|support| support.cache_parameters(state))
        .map_err(|e| ConfigurationError::Unsupported(e.to_string()))
}

/// The name as the MySQL family keeps it: lower case, underscores.
pub fn canonical_name(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

/// Lays layers of parameters over each other, later ones winning, by canonical name.
///
/// Names that cannot be names, names spelled twice in one layer, and values that are not known yet are problems.
pub fn merge<'a>(
    layers: impl IntoIterator<Item = &'a Parameters>,
) -> Result<Parameters, Vec<ParameterProblem>> {
    let mut merged = Parameters::new();
    let mut problems = Vec::new();
    for layer in layers {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (name, value) in layer {
            let canonical = canonical_name(name);
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if canonical.is_empty() || canonical.len() > 128 || !canonical.chars().all(plain) {
                problems.push(ParameterProblem {
                    name: name.clone(),
                    message: format!(
                        "`{}` is not a parameter's name: letters, digits, underscores, dashes and dots are allowed",
                        name.escape_default()
                    ),
                });
                continue;
            }
            if value.relative().is_some() {
                problems.push(ParameterProblem {
                    name: name.clone(),
                    message: share(name, value),
                });
            }
            if let Some(other) = seen.insert(canonical.clone(), name) {
                problems.push(ParameterProblem {
                    name: name.clone(),
                    message: format!("{other} and {name} are the same parameter: keep one"),
                });
            }
            merged.insert(canonical, value.clone());
        }
    }
    if problems.is_empty() {
        Ok(merged)
    } else {
        Err(problems)
    }
}

/// Why a share of the instance is no value here.
pub(crate) fn share(name: &str, value: &ParameterValue) -> String {
    format!(
        "{name}: `{value}` is a share of an instance, which only a campaign knows by its instance sizes: write the number"
    )
}

/// One value as an option file needs it: bare where possible, else quoted. `None` where no quoting can express it.
pub(crate) fn quoted(value: &str) -> Option<String> {
    if value.chars().any(char::is_control) {
        return None;
    }
    let bare = |c: char| c.is_ascii_alphanumeric() || "_.,:/@%+-".contains(c);
    if value.chars().all(bare) {
        return Some(value.to_owned());
    }
    let escaped = value.replace('\\', "\\\\");
    let quote = ['"', '\''].into_iter().find(|q| !escaped.contains(*q))?;
    Some(format!("{quote}{escaped}{quote}"))
}

/// The first `digits` hexadecimal digits of the SHA-256 of `bytes`.
pub(crate) fn hex_digest(bytes: &[u8], digits: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(digits);
    text
}

#[cfg(test)]
mod tests;
