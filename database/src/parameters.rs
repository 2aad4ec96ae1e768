//! Volatile parameters: what must be set where the value in force is not the one wanted, and the read-back of all of
//! them. A parameter that can only be set at start is never touched here.

use crds::parameter::Parameters;
use crds::run::ReadBack;

use crate::access::ParameterProblem;
use crate::audit::Statement;
use crate::catalogue::{Catalogue, inert};

/// Statements that bring these parameters in force, and those that no statement can.
pub fn plan(catalogue: &Catalogue, wanted: &Parameters) -> (Vec<(String, Statement)>, Vec<ParameterProblem>) {
    let (mut statements, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in wanted {
        let value = value.to_string();
        let mut problem = |message: String| {
            problems.push(ParameterProblem {
                name: name.clone(),
                message,
            });
        };
        let variable = match catalogue.known(name) {
            Ok(variable) => variable,
            Err(unknown) => {
                problem(unknown.message);
                continue;
            }
        };
        if catalogue.in_force(variable, &value) {
            continue;
        }
        if variable.read_only || variable.session_only {
            problem(format!(
                "{name} is {}, wanted {value}: the server must be restarted with it",
                variable.value
            ));
            continue;
        }
        match variable.bound(&value) {
            Ok(bound) => statements.push((name.clone(), Statement::set(&variable.name, bound))),
            Err(why) => problem(format!("{name}: {why}")),
        }
    }
    (statements, problems)
}

/// Compares every parameter with what is in force.
pub fn read_back(
    catalogue: &Catalogue,
    wanted: &Parameters,
    read_only_load: bool,
) -> (Vec<ReadBack>, Vec<ParameterProblem>) {
    let binary_log = catalogue.get("log_bin").is_some_and(|v| v.value == "ON");
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in wanted {
        let text = value.to_string();
        match catalogue.known(name) {
            Err(problem) => problems.push(problem),
            Ok(variable) => {
                let canonical = |value: &str| variable.canonical(value).unwrap_or_else(|_| value.to_owned());
                let entry = ReadBack {
                    name: name.clone(),
                    wanted: canonical(&text),
                    found: canonical(&variable.value),
                    inert: inert(name, binary_log, read_only_load),
                };
                if !catalogue.in_force(variable, &text) {
                    problems.push(ParameterProblem {
                        name: name.clone(),
                        message: format!("{name} reads back as {}, wanted {}", entry.found, entry.wanted),
                    });
                }
                found.push(entry);
            }
        }
    }
    (found, problems)
}
