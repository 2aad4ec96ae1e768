//! The live server's catalogue of parameters, and everything that follows from it without asking again: unknown names,
//! types, ranges, comparisons (values: [`value`]). Each engine loads it in its own way.

mod unit;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use crds::parameter::{ParameterValue, Parameters};

use crate::access::ParameterProblem;
use crate::configuration::{canonical_name, share};

pub use value::{Kind, Variable};

/// The parameters of a server by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    variables: BTreeMap<String, Variable>,
}

impl Catalogue {
    /// A catalogue of these parameters.
    pub fn from_variables(variables: impl IntoIterator<Item = Variable>) -> Self {
        Self {
            variables: variables.into_iter().map(|v| (v.name.clone(), v)).collect(),
        }
    }

    /// A parameter, by any spelling of its name.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.variables.get(&canonical_name(name))
    }

    /// Global values by name.
    pub fn values(&self) -> BTreeMap<String, String> {
        self.variables
            .iter()
            .map(|(name, v)| (name.clone(), v.value.clone()))
            .collect()
    }

    /// The parameter, or why there is none.
    pub fn known(&self, name: &str) -> std::result::Result<&Variable, ParameterProblem> {
        self.get(name).ok_or_else(|| {
            let hint = self
                .near(&canonical_name(name))
                .map_or_else(String::new, |near| format!(": did you mean {near}?"));
            ParameterProblem {
                name: name.to_owned(),
                message: format!("this server has no parameter {name}{hint}"),
            }
        })
    }

    /// What is wrong with setting this parameter to this value on this server, whenever it is set.
    pub fn problem(&self, name: &str, value: &ParameterValue) -> Option<ParameterProblem> {
        let variable = match self.known(name) {
            Ok(variable) => variable,
            Err(problem) => return Some(problem),
        };
        let message = if variable.fixed {
            format!("{name} only tells what the server is: nobody can set it; leave it out")
        } else if variable.session_only {
            format!("{name} exists per session only: a global value cannot be set")
        } else if value.relative().is_some() {
            share(name, value)
        } else {
            format!("{name}: {}", variable.canonical(&value.to_string()).err()?)
        };
        Some(ParameterProblem {
            name: name.to_owned(),
            message,
        })
    }

    /// Whether the value in force is the one wanted.
    pub fn in_force(&self, variable: &Variable, wanted: &str) -> bool {
        let Ok(wanted) = variable.canonical(wanted) else {
            return false;
        };
        // What the server has need not be what it would take: some start outside of their own range.
        let found = variable
            .canonical(&variable.value)
            .unwrap_or_else(|_| variable.value.clone());
        if wanted == found {
            return true;
        }
        match variable.kind {
            Kind::Switches => {
                let found: Vec<&str> = found.split(',').collect();
                wanted.split(',').all(|w| found.contains(&w))
            }
            // Older servers round the pool up to whole chunks.
            Kind::Integer if variable.name == "innodb_buffer_pool_size" => {
                let number = |text: &str| text.parse::<i128>().unwrap_or_default();
                let chunk = self
                    .get("innodb_buffer_pool_chunk_size")
                    .map_or(0, |v| number(&v.value));
                let (wanted, found) = (number(&wanted), number(&found));
                found >= wanted && found - wanted < chunk
            }
            // An audit setting and a cache state add their own.
            Kind::Text if variable.name == "shared_preload_libraries" => {
                let listed = |text: &str| -> BTreeSet<String> {
                    text.split(',').map(|l| l.trim().to_owned()).collect()
                };
                wanted.trim().is_empty() || listed(&wanted).is_subset(&listed(&found))
            }
            Kind::Text
                if variable.name.starts_with("character_set_") || variable.name.starts_with("collation_") =>
            {
                wanted.eq_ignore_ascii_case(&found)
            }
            _ => false,
        }
    }

    /// The known name that is nearest to an unknown one, if any is near enough to be meant.
    fn near(&self, name: &str) -> Option<&str> {
        let limit = (name.len() / 4).clamp(1, 4);
        self.variables
            .keys()
            .map(|known| (edit_distance(name, known), known.as_str()))
            .filter(|(distance, _)| *distance <= limit)
            .min()
            .map(|(_, known)| known)
            .or_else(|| {
                // A name that lost its prefix, such as buffer_pool_size.
                self.variables
                    .keys()
                    .map(String::as_str)
                    .find(|known| name.len() > 5 && known.ends_with(&format!("_{name}")))
            })
    }
}

/// Insertions, deletions, replacements and swaps of neighbours between two names.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Whether a parameter cannot matter to a load: the plan says so, and it is still read back.
pub fn inert(name: &str, binary_log: bool, read_only_load: bool) -> bool {
    match canonical_name(name).as_str() {
        "sync_binlog" | "binlog_format" | "binlog_row_image" | "expire_logs_days" | "binlog_cache_size" => {
            !binary_log || read_only_load
        }
        "innodb_flush_log_at_trx_commit"
        | "innodb_doublewrite"
        | "fsync"
        | "full_page_writes"
        | "synchronous_commit"
        | "wal_sync_method" => read_only_load,
        _ => false,
    }
}

/// Problems of one layer of parameters on this server.
pub fn check(catalogue: &Catalogue, parameters: &Parameters) -> Vec<ParameterProblem> {
    parameters
        .iter()
        .filter_map(|(name, value)| {
            catalogue.problem(name, value).or_else(|| {
                let message = catalogue.get(name)?.ambiguous(&value.to_string())?;
                Some(ParameterProblem {
                    name: name.clone(),
                    message,
                })
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
