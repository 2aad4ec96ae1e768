//! The matrix: which cells a campaign's spec describes, with which parameters. Refuses what cannot be measured, naming
//! every problem at once. It knows the spec only: no server was asked.

mod check;
mod inert;
mod nearest;
mod parameters;
mod problem;
pub(crate) mod relative;
mod select;
pub mod supported;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use parameters::in_force;
pub use parameters::{Layer, Resolved};
pub use problem::Problem;

use crds::BenchmarkCampaignSpec;
use crds::audit::AuditSetting;
use crds::campaign::{Axis, Database, InstanceSize, ParameterTemplate};
use crds::run::Cell;
use crds::target::TargetType;
use crds::workload::Workload;

/// One level of every axis but threads, by its place in the spec's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Levels {
    /// Place in `databases`.
    pub database: usize,
    /// Place in `instanceSizes`.
    pub size: usize,
    /// Place in `workloads`.
    pub workload: usize,
    /// Place in `parameterTemplates`.
    pub template: usize,
    /// Place in `auditSettings`.
    pub audit: usize,
}

impl Levels {
    /// The level of an axis, by its place.
    pub fn on(&self, axis: Axis) -> usize {
        match axis {
            Axis::Database => self.database,
            Axis::InstanceSize => self.size,
            Axis::ParameterTemplate => self.template,
            Axis::AuditSetting => self.audit,
        }
    }

    /// The same levels but for one axis.
    #[must_use]
    pub fn with(mut self, axis: Axis, level: usize) -> Self {
        match axis {
            Axis::Database => self.database = level,
            Axis::InstanceSize => self.size = level,
            Axis::ParameterTemplate => self.template = level,
            Axis::AuditSetting => self.audit = level,
        }
        self
    }

    /// The database instance: place in `databases` and in `instanceSizes`.
    pub fn instance(&self) -> (usize, usize) {
        (self.database, self.size)
    }
}

/// The cells of one combination of levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The levels.
    pub levels: Levels,
    /// Thread counts, as declared, none twice.
    pub threads: Vec<i32>,
}

/// The expanded matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<'a> {
    /// The spec that it was made from.
    pub spec: &'a BenchmarkCampaignSpec,
    /// Cells by levels, in the order of the axes: database, size, workload, template, audit setting.
    pub rows: Vec<Row>,
    /// What overrode what, and other things worth knowing.
    pub notes: Vec<String>,
}

/// Expands a spec, or names everything that is wrong with it.
///
/// # Errors
/// Every problem found, in the order of the spec's fields.
pub fn expand(spec: &BenchmarkCampaignSpec) -> Result<Matrix<'_>, Vec<Problem>> {
    let mut problems = check::spec(spec);
    let rows = match select::rows(spec) {
        Ok(rows) => rows,
        Err(problem) => {
            problems.push(problem);
            Vec::new()
        }
    };
    if problems.is_empty() {
        problems.extend(parameters::carried_over(spec, &rows));
        problems.extend(parameters::unresolved(spec, &rows));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut matrix = Matrix {
        spec,
        rows,
        notes: Vec::new(),
    };
    matrix.notes = parameters::notes(&matrix);
    matrix.notes.extend(check::notes(spec));
    Ok(matrix)
}

impl<'a> Matrix<'a> {
    /// The database of a row.
    pub fn database(&self, levels: Levels) -> &'a Database {
        &self.spec.databases[levels.database]
    }
    /// The instance size of a row.
    pub fn size(&self, levels: Levels) -> &'a InstanceSize {
        &self.spec.instance_sizes[levels.size]
    }
    /// The parameter template of a row.
    pub fn template(&self, levels: Levels) -> &'a ParameterTemplate {
        &self.spec.parameter_templates[levels.template]
    }
    /// The audit setting of a row.
    pub fn audit(&self, levels: Levels) -> &'a AuditSetting {
        &self.spec.audit_settings[levels.audit]
    }
    /// The workload of a row.
    pub fn workload(&self, levels: Levels) -> &'a Workload {
        &self.spec.workloads[levels.workload]
    }

    /// Parameters of a row by precedence: template < its part for the database < instance size < audit setting.
    pub fn parameters(&self, levels: Levels) -> Resolved {
        parameters::resolve(self, levels)
    }

    /// The audit setting of a row as a run is told it: its parameters as they come to on the row's instance.
    pub fn audit_on(&self, levels: Levels) -> AuditSetting {
        let mut audit = self.audit(levels).clone();
        audit.parameters =
            relative::all_on_instance(&audit.parameters, self.database(levels), self.size(levels));
        audit
    }

    /// A cell by the names of its levels.
    pub fn cell(&self, levels: Levels, threads: i32) -> Cell {
        Cell {
            database: self.database(levels).name.clone(),
            instance_size: self.size(levels).name.clone(),
            parameter_template: self.template(levels).name.clone(),
            audit_setting: self.audit(levels).name.clone(),
            workload: self.workload(levels).name.clone(),
            threads,
        }
    }

    /// Name of the level of an axis.
    pub fn level_name(&self, levels: Levels, axis: Axis) -> &'a str {
        match axis {
            Axis::Database => &self.database(levels).name,
            Axis::InstanceSize => &self.size(levels).name,
            Axis::ParameterTemplate => &self.template(levels).name,
            Axis::AuditSetting => &self.audit(levels).name,
        }
    }

    /// The levels in words, one axis left out: `mariadb-11-8, 4u16g, default, read-only`.
    pub fn context(&self, levels: Levels, without: Option<Axis>) -> String {
        let axes = [
            Axis::Database,
            Axis::InstanceSize,
            Axis::ParameterTemplate,
            Axis::AuditSetting,
        ];
        let mut names: Vec<&str> = axes
            .into_iter()
            .filter(|axis| Some(*axis) != without)
            .map(|axis| self.level_name(levels, axis))
            .collect();
        names.push(&self.workload(levels).name);
        names.join(", ")
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rows.iter().map(|row| row.threads.len()).sum()
    }

    /// Whether the operator runs the database of a row.
    pub fn managed(&self, levels: Levels) -> bool {
        self.database(levels).type_ == TargetType::Managed
    }

    /// The distinct instances, in the order of the axes.
    pub fn instances(&self) -> Vec<(usize, usize)> {
        let mut instances: Vec<_> = self.rows.iter().map(|row| row.levels.instance()).collect();
        instances.dedup();
        instances
    }
}
