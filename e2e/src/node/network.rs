//! The network namespace that holds the whole node, and the one link into it.
//! Addresses come from the range reserved for benchmarks (198.18.0.0/15); there is no way out to any other network.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{answer, output, system};
use crate::error::Result;

/// Name of the network namespace.
pub const NAMESPACE: &str = "benchmark-campaign";
/// Our end of the link.
pub const LINK: &str = "bench-node";
/// Our address on it.
pub const HOST_ADDRESS: &str = "198.18.0.1";
/// The node's address: API server, DNS.
pub const NODE_ADDRESS: &str = "198.18.0.2";
/// Addresses of services.
pub const SERVICES: &str = "198.18.128.0/17";
/// The first of them: `kubernetes.default`.
pub const KUBERNETES_SERVICE: &str = "198.18.128.1";
/// Addresses of pods.
pub const PODS: &str = "198.19.0.0/16";

/// The namespace's file.
pub fn namespace_file() -> PathBuf {
    Path::new("/run/netns").join(NAMESPACE)
}

/// Makes namespace, link and routes. Pods and services can be reached from here through the node's address.
pub fn make() -> Result<()> {
    ip(&["netns", "add", NAMESPACE])?;
    ip(&[
        "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE,
    ])?;
    ip(&["addr", "add", &format!("{HOST_ADDRESS}/24"), "dev", LINK])?;
    ip(&["link", "set", LINK, "up"])?;
    ip(&[
        "-n",
        NAMESPACE,
        "addr",
        "add",
        &format!("{NODE_ADDRESS}/24"),
        "dev",
        "eth0",
    ])?;
    ip(&["-n", NAMESPACE, "link", "set", "eth0", "up"])?;
    ip(&["-n", NAMESPACE, "link", "set", "lo", "up"])?;
    // Without a default route a packet to a service would be refused before kube-proxy's rules could change it.
    ip(&["-n", NAMESPACE, "route", "add", SERVICES, "dev", "lo"])?;
    for range in [PODS, SERVICES] {
        ip(&["route", "add", range, "via", NODE_ADDRESS])?;
    }
    let mut forward = system("nsenter");
    forward.arg(format!("--net={}", namespace_file().display()));
    forward.args(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    output(
        "switching on forwarding in the node's network namespace",
        &mut forward,
    )?;
    Ok(())
}

/// Removes them; links and rules inside go with the namespace.
pub fn remove(unmount_netns: bool) -> Result<()> {
    if exists_link() {
        ip(&["link", "delete", LINK])?;
    }
    if namespace_file().exists() {
        ip(&["netns", "delete", NAMESPACE])?;
    }
    if unmount_netns && fs::read_dir("/run/netns").is_ok_and(|mut entries| entries.next().is_none()) {
        // `ip netns add` had bound the folder onto itself.
        while is_mounted("/run/netns") && answer(system("umount").arg("/run/netns")).is_some() {}
    }
    Ok(())
}

/// Whether anything of it is there.
pub fn exists() -> bool {
    namespace_file().exists() || exists_link()
}

/// Whether a folder is a mount point.
pub fn is_mounted(folder: &str) -> bool {
    mounts_under(folder).iter().any(|mount| mount == folder)
}

/// Mount points that are this folder or lie under it, deepest first.
pub fn mounts_under(folder: &str) -> Vec<String> {
    select_mounts(
        &fs::read_to_string("/proc/self/mounts").unwrap_or_default(),
        folder,
    )
}

fn select_mounts(table: &str, folder: &str) -> Vec<String> {
    let mut mounts: Vec<String> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(|mount| mount.replace("\\040", " "))
        .filter(|mount| Path::new(mount).starts_with(folder))
        .collect();
    mounts.sort();
    mounts.reverse();
    mounts
}

fn exists_link() -> bool {
    Path::new("/sys/class/net").join(LINK).exists()
}

fn ip(args: &[&str]) -> Result<()> {
    output(&format!("ip {}", args.join(" ")), system("ip").args(args)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_selected_by_whole_path_parts_and_deepest_first() {
        let table = "tmpfs /c/node/a tmpfs rw 0 0\nproc /c/node/a/b proc rw 0 0\nx /c/node2 ext4 rw 0 0\ny /c/node/with\\040space x 0 0\n";
        assert_eq!(
            select_mounts(table, "/c/node"),
            ["/c/node/with space", "/c/node/a/b", "/c/node/a"]
        );
    }
}
