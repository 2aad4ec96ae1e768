//! What the server process and its node have used, as counters; the reader takes differences.

use crds::runner::AgentUsage;

use crate::procfs::Kernel;

/// Names of server processes.
pub(super) const SERVERS: &[&str] = &["mariadbd", "mysqld", "postgres"];

/// The counters now. Several processes (PostgreSQL has one a connection) count together, with those that have ended.
pub(super) fn read(kernel: &Kernel) -> AgentUsage {
    let servers = kernel.processes(SERVERS);
    let stats: Vec<_> = servers
        .iter()
        .filter_map(|id| kernel.process_stat(&id.to_string()))
        .collect();
    let first = servers.first().copied();
    let server_cpus = first
        .and_then(|id| kernel.cpus_allowed(&id.to_string()))
        .unwrap_or_default();
    let sum = |values: Vec<Option<i64>>| {
        values
            .into_iter()
            .collect::<Option<Vec<i64>>>()
            .map(|all| all.iter().sum())
    };
    AgentUsage {
        server_cpu_millis: (!stats.is_empty()).then(|| {
            stats
                .iter()
                .map(|stat| stat.cpu_millis + stat.children_cpu_millis)
                .sum()
        }),
        server_resident_bytes: first.and_then(|id| kernel.resident_bytes(id)),
        server_write_bytes: first
            .and_then(|_| sum(servers.iter().map(|id| kernel.write_bytes(*id)).collect())),
        cpu_busy_millis: kernel.cpu_busy_millis(),
        swapped_pages: kernel.vmstat(&["pswpin", "pswpout"]),
        oom_kills: kernel.vmstat(&["oom_kill"]),
        dirty_bytes: kernel.dirty_bytes(),
        throttled_millis: first.and_then(|id| kernel.throttled_millis(&id.to_string())),
        kernel: kernel.release(),
        cpu_model: kernel.cpu_model(),
        transparent_huge_pages: kernel.transparent_huge_pages(),
        cpu_governor: kernel.governor(server_cpus.first().copied().unwrap_or(0)),
        swap_used_bytes: kernel.swap_used_bytes(),
        server_cpus,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_and_a_kernel_whatever_else_it_has() {
        let usage = read(&Kernel::default());
        assert!(usage.cpu_busy_millis.values().any(|busy| *busy > 0));
        assert!(usage.kernel.is_some());
    }

    #[test]
    fn without_a_server_its_figures_are_absent() {
        let folder = tempfile::tempdir().unwrap();
        let usage = read(&Kernel::under(folder.path()));
        assert_eq!(usage, AgentUsage::default());
    }
}
