//! `cargo verify`: every check of the project; the last line counts them.

use std::process::ExitCode;

use clap::Parser;
use e2e::cache::Cache;
use e2e::verify::{self, Stage};

/// Checks everything: format, lints, generated files, tests, chart, schemas, and the suite on a real node.
#[derive(Parser)]
struct Arguments {
    /// Only these stages, with what they need (may be given more than once).
    #[arg(long, value_enum)]
    only: Vec<Stage>,
    /// Run the suite on the cluster in KUBECONFIG instead of the local node; it kills pods and deletes namespaces there.
    #[arg(long)]
    cluster: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(e2e::arguments());
    let cache = match Cache::of_user() {
        Ok(cache) => cache,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcomes = verify::run(&cache, &Stage::selection(&arguments.only), arguments.cluster);
    println!("\n{}", verify::summary(&outcomes));
    if verify::total(&outcomes).good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
