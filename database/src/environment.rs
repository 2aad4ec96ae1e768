//! The surroundings of a run as the server and its agent say them.

use crds::environment::Environment;
use crds::runner::AgentUsage;

/// What the server said of itself, completed by what else was found, as every run records it.
pub(crate) fn complete(
    mut environment: Environment,
    replica: Option<bool>,
    table_bytes: i64,
    usage: Option<&AgentUsage>,
) -> Environment {
    environment.role = replica.map(|replica| if replica { "Replica" } else { "Primary" }.to_owned());
    environment.table_bytes = Some(table_bytes);
    if let Some(usage) = usage {
        environment.kernel.clone_from(&usage.kernel);
        environment.cpu_model.clone_from(&usage.cpu_model);
        environment.database_cpus = Some(cpu_list(&usage.server_cpus)).filter(|l| !l.is_empty());
        environment
            .transparent_huge_pages
            .clone_from(&usage.transparent_huge_pages);
        environment.cpu_governor.clone_from(&usage.cpu_governor);
        environment.swap_used_bytes = usage.swap_used_bytes;
    }
    environment
}

/// CPUs as the kernel lists them: `0-3,8`.
pub fn cpu_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if cpu == *last + 1 => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    ranges
        .iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_as_the_kernel_does() {
        assert_eq!(cpu_list(&[3, 0, 1, 2, 8, 8]), "0-3,8");
        assert_eq!(cpu_list(&[]), "");
        assert_eq!(cpu_list(&[5]), "5");
    }
}
