//! `cargo run -p e2e --bin node -- COMMAND`: starts, shows and stops the local node by hand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use e2e::binaries::Binaries;
use e2e::cache::Cache;
use e2e::error::{Error, Result};
use e2e::images::Archive;
use e2e::machine;
use e2e::node::{Health, Node};

/// The local Kubernetes node, one per machine.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Start it, or reuse the running one.
    Up,
    /// Stop it and remove all it left.
    Down,
    /// Say how it is; fails if it is not healthy.
    Status,
    /// Print the path of its kubeconfig.
    Kubeconfig,
    /// Print shell lines that point kubectl and helm at it: `eval "$(… env)"`.
    Env,
    /// Build this checkout's operator and runner images and bring them in.
    Images,
    /// Bring an image archive (OCI or docker) in under the name it carries.
    LoadImage {
        /// Full name with tag.
        name: String,
        /// The archive.
        archive: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    let cache = Cache::of_user()?;
    match task {
        Task::Up => {
            let node = machine::local_node(&cache)?;
            println!("{}", node.kubeconfig().display());
        }
        Task::Down => {
            if !Node::down(&cache)? {
                println!("there is no local node");
            }
        }
        Task::Status => match Node::health() {
            Health::Healthy => println!("healthy"),
            Health::Absent => return Err(Error::Plain("there is no local node".into())),
            Health::Broken(why) => return Err(Error::Plain(format!("the local node is broken: {why}"))),
        },
        Task::Kubeconfig => println!("{}", existing(&cache)?.kubeconfig().display()),
        Task::Env => {
            let binaries = Binaries::ensure(&cache)?;
            println!("export KUBECONFIG={}", existing(&cache)?.kubeconfig().display());
            println!("export PATH={}:$PATH", binaries.folder().display());
        }
        Task::Images => {
            let node = existing(&cache)?;
            let images = machine::project_images(&cache)?;
            for archive in [&images.operator, &images.runner, &images.mariadb] {
                node.load(archive)?;
                println!("{}", archive.name);
            }
        }
        Task::LoadImage { name, archive } => {
            existing(&cache)?.load(&Archive {
                name: name.clone(),
                path: archive.clone(),
            })?;
        }
    }
    Ok(())
}

fn existing(cache: &Cache) -> Result<Node> {
    let absent = || Error::Plain("there is no healthy local node: start it with `node up`".into());
    Node::existing(&Binaries::ensure(cache)?).ok_or_else(absent)
}
