//! The Debian packages that the local node, the images and the tests against real servers need.
//! Installs what is missing and nothing else, and says so first.

use std::path::Path;
use std::process::Command;

use crate::cache::Cache;
use crate::command::{self, system};
use crate::error::{Error, Result};
use crate::progress::step;

/// A package and what it is for.
pub struct Package {
    /// Debian's name.
    pub name: &'static str,
    /// Why it is needed, shown when it is installed.
    pub purpose: &'static str,
}

const fn package(name: &'static str, purpose: &'static str) -> Package {
    Package { name, purpose }
}

/// What the local node and its images need.
pub const NODE: &[Package] = &[
    package("runc", "starts the containers"),
    package("nftables", "services inside the node's network namespace"),
    package("iproute2", "the node's network namespace and link"),
    package("openssl", "the node's certificates"),
    package("buildah", "builds the images"),
    package("mmdebstrap", "makes the images' root file systems"),
    package("gcc", "the pause image"),
    package("libc6-dev", "the pause image"),
];

/// Packages with a server, and the service that Debian makes of each.
const SERVERS: &[(&str, &str)] = &[("mariadb-server", "mariadb"), ("postgresql", "postgresql")];

/// What the tests of `verify` need besides: a real server and a real load generator, started privately by the tests.
pub const TESTS: &[Package] = &[
    package("mariadb-server", "tests against a private real server"),
    package("sysbench", "tests of the runner"),
    package("postgresql", "tests of the runner with pgbench"),
    package("mmdebstrap", "servers of other Debian releases for the tests"),
];

/// Installs those of `wanted` that are missing.
pub fn ensure(cache: &Cache, wanted: &[&Package]) -> Result<()> {
    let names: Vec<&str> = wanted.iter().map(|package| package.name).collect();
    let missing = missing(&names, &installed(&names)?);
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Missing {
            tool: missing.join("`, `"),
            remedy: format!("run `apt-get install {}` as root", missing.join(" ")),
        });
    }
    eprintln!("Installing {} Debian package(s):", missing.len());
    for package in wanted.iter().filter(|package| missing.contains(&package.name)) {
        eprintln!("  {:<16} {}", package.name, package.purpose);
    }
    let log = cache.log("packages")?;
    let _lock = cache.lock("packages")?;
    let install = || {
        let mut apt = apt_get();
        apt.args(["install", "--yes", "--no-install-recommends"])
            .args(&missing);
        command::run("apt-get install", &mut apt, &log)
    };
    step("apt-get install", || {
        // A fresh machine has no package index or an old one: then the first try fails and an update helps.
        install().or_else(|_| {
            command::run("apt-get update", apt_get().arg("update"), &log)?;
            install()
        })
    })?;
    let with_services = Path::new("/run/systemd/system").exists();
    for (package, service) in SERVERS {
        if with_services && missing.contains(package) {
            // The tests start private servers; the package's own, which nobody asked for, must not stay running.
            command::run(
                &format!("stopping Debian's {service} service"),
                system("systemctl").args(["disable", "--now", service]),
                &log,
            )?;
        }
    }
    Ok(())
}

fn apt_get() -> Command {
    let mut command = system("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
    command
}

fn installed(names: &[&str]) -> Result<String> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat=${Package} ${db:Status-Abbrev}\n"])
        .args(names);
    let out = query.output().map_err(|_| Error::Missing {
        tool: "dpkg-query".into(),
        remedy: "the local node is prepared on Debian only; point KUBECONFIG at a cluster instead".into(),
    })?;
    // It fails when any name is unknown, yet lists the others: the listing is the answer.
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The names that dpkg's listing does not show as installed (`ii`).
fn missing<'a>(names: &[&'a str], listing: &str) -> Vec<&'a str> {
    let present: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| status.trim() == "ii")
        .map(|(name, _)| name)
        .collect();
    names
        .iter()
        .copied()
        .filter(|name| !present.contains(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fully_installed_packages_count() {
        let listing = "runc ii \ngcc rc \nopenssl ii \nbuildah un \n";
        assert_eq!(
            missing(&["runc", "gcc", "openssl", "buildah", "nftables"], listing),
            ["gcc", "buildah", "nftables"]
        );
    }
}
