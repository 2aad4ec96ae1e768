//! `cargo demo`: from a bare machine to the cost of `MariaDB` auditing. `cargo demo -- --down` leaves nothing behind.

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use e2e::cache::Cache;
use e2e::cluster::{self, Choice, Cluster, Consent};
use e2e::error::{Error, Result, at};
use e2e::node::Node;
use e2e::progress::elapsed;
use e2e::view::Campaign;
use e2e::{answer_table, images, install, live, machine};

const NAMESPACE: &str = "bench";
const CAMPAIGN: &str = "audit-cost";
const MANIFEST: &str = "examples/quickstart.yaml";

/// Measures what auditing costs a `MariaDB` server, on a real Kubernetes node made on this machine.
#[derive(Parser)]
struct Arguments {
    /// Stop the local node and remove all it left (with a cluster in KUBECONFIG: remove the operator from it).
    #[arg(long)]
    down: bool,
    /// Only follow the campaign that runs, or show how the last one ended; build and change nothing.
    #[arg(long, conflicts_with = "down")]
    watch: bool,
    /// Use the cluster in KUBECONFIG without asking.
    #[arg(long)]
    yes: bool,
    /// Registry and path that images are pushed to for a cluster in KUBECONFIG, such as `ghcr.io/you`.
    #[arg(long)]
    image_prefix: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(e2e::arguments());
    let outcome = if arguments.down {
        down(arguments.yes)
    } else {
        demo(arguments)
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo(arguments: Arguments) -> Result<()> {
    let start = Instant::now();
    let cache = Cache::of_user()?;
    let consent = Consent {
        yes: arguments.yes,
        image_prefix: arguments.image_prefix,
    };
    let choice = cluster::choose(&consent)?;
    eprintln!("1. The cluster");
    let cluster = Cluster::ready(&cache, &choice, &consent)?;
    let request = if arguments.watch {
        None
    } else {
        install_and_begin(&cache, &cluster)?
    };
    eprintln!("  (Ctrl-C ends this view, not the campaign; `cargo demo -- --watch` shows it again)");
    let campaign = live::follow(&cluster, NAMESPACE, CAMPAIGN, request.as_deref())?;
    println!();
    print!("{}", answer_table::render(&campaign));
    if !arguments.watch {
        println!("\nAll of it took {}.", elapsed(start.elapsed()));
    }
    println!("\nThe cluster stays up; to look further:");
    println!("  export KUBECONFIG={}", cluster.kubeconfig().display());
    println!("  export PATH={}:$PATH", cluster.binaries().folder().display());
    println!("  kubectl -n {NAMESPACE} describe bc/{CAMPAIGN}   # the story, every answer and condition");
    println!("  kubectl -n {NAMESPACE} get br                   # every run");
    println!("  cargo demo -- --down                       # remove everything");
    judge(&campaign)
}

/// Puts this checkout's operator into the cluster and lets the campaign begin.
fn install_and_begin(cache: &Cache, cluster: &Cluster) -> Result<Option<String>> {
    eprintln!("2. The images");
    let images = machine::project_images(cache)?;
    let names = install::provide_images(cache, cluster, &images)?;
    eprintln!("3. The operator");
    install::operator(cache, cluster, &names, &[NAMESPACE])?;
    eprintln!("4. The campaign {CAMPAIGN} in the namespace {NAMESPACE}");
    begin(cluster)
}

/// Applies the manifest, or asks a finished campaign to run again. Returns the token of such a request.
fn begin(cluster: &Cluster) -> Result<Option<String>> {
    let get = [
        "get",
        "benchmarkcampaign",
        CAMPAIGN,
        "--namespace",
        NAMESPACE,
        "--ignore-not-found",
        "--output=json",
    ];
    let before = cluster.ask("looking for the campaign", &get)?;
    let before: Option<Campaign> = serde_json::from_str(&before).ok();
    let ended = before.as_ref().is_some_and(|campaign| campaign.finished(None));
    let started = before
        .as_ref()
        .is_some_and(|campaign| campaign.status.progress.total > 0);
    if started && !ended {
        eprintln!("  it runs already: following it");
        return Ok(None);
    }
    let path = images::repository().join(MANIFEST);
    let manifest = std::fs::read_to_string(&path).map_err(at(&path))?;
    install::apply(
        cluster,
        &format!("applying {MANIFEST}"),
        &cluster.localised(&manifest),
    )
    .map_err(|error| {
        if ended {
            Error::Plain(format!(
                "{error}\n  A campaign of that name has run with another spec: \
                 remove it with `kubectl -n {NAMESPACE} delete bc/{CAMPAIGN}` and try again."
            ))
        } else {
            error
        }
    })?;
    if !(ended && started) {
        return Ok(None);
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let token = format!("demo-{now}");
    eprintln!("  it has run before: asking for another run ({token})");
    let annotation = format!("benchmark-campaign.dev/run-request={token}");
    let annotate = [
        "annotate",
        "benchmarkcampaign",
        CAMPAIGN,
        "--namespace",
        NAMESPACE,
        "--overwrite",
        annotation.as_str(),
    ];
    cluster.ask("requesting another run", &annotate)?;
    Ok(Some(token))
}

/// A demo has done its work if it ended with an answer, also with the one that this machine was too noisy to tell.
fn judge(campaign: &Campaign) -> Result<()> {
    if campaign.holds("Succeeded").is_some() {
        return Ok(());
    }
    let blocks_lost = campaign
        .holds("Finished")
        .is_some_and(|condition| condition.reason == "BlocksLost");
    if blocks_lost && !campaign.status.answers.is_empty() {
        println!(
            "\nBlocks were given up: their runs did not count, were measured again, and did not count again. None of them is \
             in the answer; `kubectl -n {NAMESPACE} describe bc/{CAMPAIGN}` says why. If it was other work on this machine, \
             let it rest and run `cargo demo` again."
        );
        return Ok(());
    }
    let why = ["Stalled", "Finished"]
        .into_iter()
        .find_map(|type_| campaign.holds(type_))
        .map_or_else(String::new, |condition| {
            format!(" ({}: {})", condition.reason, condition.message)
        });
    Err(Error::Plain(format!(
        "the campaign ended as {}{why}",
        campaign.status.state
    )))
}

fn down(yes: bool) -> Result<()> {
    let cache = Cache::of_user()?;
    let consent = Consent {
        yes,
        image_prefix: Some(String::new()),
    };
    match cluster::choose(&consent)? {
        choice @ Choice::Elsewhere(_) => {
            install::remove(&Cluster::ready(&cache, &choice, &consent)?, &[NAMESPACE])
        }
        Choice::Local => {
            if !Node::down(&cache)? {
                println!("there is no local node");
            }
            Ok(())
        }
    }
}
