//! The command line.

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
