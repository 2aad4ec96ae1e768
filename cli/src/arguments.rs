//! The command line.

// The words below are printed as help, where backticks are in the way.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Plans, follows and reports benchmark campaigns.
#[derive(Debug, Parser)]
#[command(name = "kubectl-campaign", bin_name = "kubectl campaign", version, about)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows what a campaign would do: cells, order, budgets, time; or everything for which it would be refused.
    Plan {
        /// Name of a campaign in the cluster.
        #[arg(required_unless_present = "file", conflicts_with = "file")]
        name: Option<String>,
        /// Manifest to plan without a cluster; `-` reads standard input.
        #[arg(short, long)]
        file: Option<PathBuf>,
        #[command(flatten)]
        scope: Scope,
    },
    /// Prints what a campaign found, or how far it is.
    Report {
        /// Name of the campaign.
        name: String,
        /// Text, the status as JSON, or every run as comma-separated values.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        #[command(flatten)]
        scope: Scope,
    },
    /// Prints a campaign's cells as tables, in the layout of the campaign's annotation, of its comparisons, or as asked.
    ///
    /// Axes: Database, InstanceSize, Workload, ParameterTemplate, AuditSetting, Threads. An axis that is named for neither
    /// rows nor columns makes a table for each of its levels.
    Table {
        /// Names of campaigns, one after another.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        layout: LayoutOptions,
        /// Form of the tables.
        #[arg(short, long, value_enum, default_value_t = TableOutput::Text)]
        output: TableOutput,
        #[command(flatten)]
        scope: Scope,
    },
    /// Follows a campaign to its end, then prints the report; fails if the campaign did not succeed.
    Watch {
        /// Name of the campaign.
        name: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Runs a campaign that has ended once more.
    Run {
        /// Name of the campaign.
        name: String,
        /// Token of the request: one already seen never runs again. The time of the call if absent.
        #[arg(long)]
        token: Option<String>,
        #[command(flatten)]
        scope: Scope,
    },
}

/// Where to look.
#[derive(Args, Debug)]
pub(crate) struct Scope {
    /// Namespace; that of the current context if absent.
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
}

/// The layout of a table; what is not given follows from the campaign's comparisons.
#[derive(Args, Debug, Default)]
pub(crate) struct LayoutOptions {
    /// Axes whose levels are rows, with commas; the last changes fastest.
    #[arg(long, value_name = "AXES")]
    pub(crate) rows: Option<String>,
    /// Axes whose levels are columns, with commas; `none` for none.
    #[arg(long, value_name = "AXES")]
    pub(crate) columns: Option<String>,
    /// Figures, with commas: Tps, Qps, Transactions, LatencyMean, LatencyP95, CpuPerStatement, LogBytes (for each
    /// statement), LogBytesPerRecord, LogPerDay, QueriesPerTransaction.
    #[arg(long = "metric", value_name = "FIGURES")]
    pub(crate) metrics: Option<String>,
    /// Level that the first figure is a percentage of: a name, or AXIS=NAME.
    #[arg(long, value_name = "LEVEL", conflicts_with = "difference_from")]
    pub(crate) percent_of: Option<String>,
    /// Level that the first figure's difference is from, in percent; `none` for no such column.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) difference_from: Option<String>,
    /// Statements a day, for LogPerDay.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) statements_a_day: Option<String>,
    /// Comparison whose cells alone are shown.
    #[arg(long, value_name = "NAME")]
    pub(crate) comparison: Option<String>,
}

/// Forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableOutput {
    /// Columns of text.
    Text,
    /// Comma-separated values, with the number of runs and what was left out.
    Csv,
    /// Markdown.
    Markdown,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables and sentences.
    Text,
    /// The campaign's status.
    Json,
    /// Every run.
    Csv,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Arguments, Command};

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_table_has_one_baseline() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' '));
        let asked = "kubectl-campaign table a b --rows Threads --columns AuditSetting --metric Tps,Qps --percent-of base -o markdown";
        assert!(matches!(
            parse(asked).unwrap().command,
            Command::Table { names, layout, output: super::TableOutput::Markdown, .. }
                if names == ["a", "b"] && layout.metrics.as_deref() == Some("Tps,Qps")
        ));
        assert!(parse("kubectl-campaign table").is_err());
        assert!(parse("kubectl-campaign table a --percent-of b --difference-from c").is_err());
    }

    #[test]
    fn a_plan_is_of_a_file_or_of_a_name() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' '));
        assert!(matches!(
            parse("kubectl-campaign plan -f a.yaml").unwrap().command,
            Command::Plan {
                name: None,
                file: Some(_),
                ..
            }
        ));
        assert!(matches!(
            parse("kubectl-campaign plan audit -n bench").unwrap().command,
            Command::Plan {
                name: Some(_),
                file: None,
                ..
            }
        ));
        assert!(parse("kubectl-campaign plan").is_err());
        assert!(parse("kubectl-campaign plan audit -f a.yaml").is_err());
    }
}
