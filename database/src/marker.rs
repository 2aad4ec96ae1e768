//! The marker schema: what data the database holds for us, who may use it now, and which server's data it is.
//! The truth of these lives in the database, so that a cluster that forgets, or two operators, do no harm.

use std::time::Duration;

use crds::parameter::ParameterValue;
use crds::target::Engine;
use crds::workload::{Pgbench, Workload, WorkloadType};

use crate::access::Result;
use crate::configuration::{canonical_name, hex_digest};
use crate::exclusive;
use crate::server::Server;

/// How long a runner waits for an operator that is at the server.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Name of the marker schema.
pub const SCHEMA: &str = "benchmark_campaign";

/// What a runner's claim of the fence row came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this start's: go on.
    Claimed,
    /// Another start of the same run had claimed it: measure nothing.
    AlreadyStarted,
    /// It is this run's, and what must be in force is not proved (any more): measure nothing.
    NotProved,
    /// The row belongs to another run.
    Fenced {
        /// UID of the run that holds it; empty where nobody ever held it.
        holder: String,
    },
}

/// How far the run that holds the fence row has come; the column `started`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server is being changed, or was left in the middle of it.
    Establishing,
    /// Everything is in force and proved on this boot: a runner may start.
    Proved,
    /// A runner has started: nothing may be changed any more for this run.
    Started,
}

impl Progress {
    /// As the column holds it.
    pub(crate) const fn column(self) -> i64 {
        match self {
            Self::Establishing => 0,
            Self::Proved => 1,
            Self::Started => 2,
        }
    }

    pub(crate) fn of_column(value: i64) -> Self {
        match value {
            0 => Self::Establishing,
            1 => Self::Proved,
            _ => Self::Started,
        }
    }
}

/// The fence row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Identity of the server's data.
    pub server_identity: String,
    /// UID of the run that holds it; empty where nobody ever held it.
    pub holder: String,
    /// Epoch of the holder.
    pub epoch: i64,
    /// How far it has come under this holder and epoch.
    pub progress: Progress,
}

impl Fence {
    /// Whether this run may write the row: a higher epoch takes it, the same run keeps it, everybody else is too late.
    pub fn admits(&self, run_uid: &str, epoch: i64) -> bool {
        epoch > self.epoch || self.is_of(run_uid, epoch)
    }

    /// Whether the row is this run's.
    pub fn is_of(&self, run_uid: &str, epoch: i64) -> bool {
        epoch == self.epoch && run_uid == self.holder
    }

    /// Whether a runner has started for this run: nothing may be changed any more.
    pub fn has_started(&self, run_uid: &str, epoch: i64) -> bool {
        self.progress == Progress::Started && self.is_of(run_uid, epoch)
    }
}

/// Says that everything is proved: the last statement of bringing it in force. Whether the row still was the run's.
pub(crate) async fn write_proved<S: Server>(session: &mut S, run_uid: &str, epoch: i64) -> Result<bool> {
    session
        .advance((run_uid, epoch), Progress::Establishing, Progress::Proved)
        .await
}

/// Claims the fence row for one start of a runner. An operator that is at the server is waited for a moment: it may be
/// proving the same run once more.
pub(crate) async fn claim<S: Server>(session: &mut S, run_uid: &str, epoch: i64) -> Result<Claim> {
    let locked = session.lock(exclusive::CHANGING, CLAIM_PATIENCE).await?;
    let claimed = session
        .advance((run_uid, epoch), Progress::Proved, Progress::Started)
        .await?;
    if locked {
        session.release(exclusive::CHANGING).await;
    }
    if claimed {
        return Ok(Claim::Claimed);
    }
    Ok(match session.read_fence().await? {
        Some(fence) if fence.has_started(run_uid, epoch) => Claim::AlreadyStarted,
        Some(fence) if fence.is_of(run_uid, epoch) => Claim::NotProved,
        Some(fence) => Claim::Fenced { holder: fence.holder },
        None => Claim::Fenced {
            holder: String::new(),
        },
    })
}

/// Options of sysbench's bundled OLTP scripts that shape the data they prepare. `rand_*` does: it draws column `k`.
const SHAPING: &[&str] = &[
    "auto_inc",
    "create_secondary",
    "create_table_options",
    "mysql_storage_engine",
    "secondary",
];

/// Hash of everything that shapes a workload's data: engine, tool, who prepares it, tables, rows, shaping options.
/// Workloads with the same hash share their data; 32 hexadecimal digits.
pub fn dataset_hash(engine: Engine, workload: &Workload, rows_per_table: i64) -> String {
    let mut parts: Vec<String> = vec![format!("{engine:?}")];
    match (workload.type_, &workload.sysbench, &workload.pgbench) {
        (WorkloadType::Sysbench, Some(sysbench), _) => {
            let script = sysbench.prepare_script.as_deref().unwrap_or(&sysbench.script);
            let family = prepared_by(script);
            parts.extend([
                rows_per_table.to_string(),
                "sysbench".to_owned(),
                family.to_owned(),
                sysbench.tables.to_string(),
            ]);
            let custom = is_custom(script);
            if custom {
                parts.push(sysbench.lua_config_map.clone().unwrap_or_default());
            }
            let mut options: Vec<(String, &ParameterValue)> = sysbench
                .options
                .iter()
                .map(|(name, value)| (canonical_name(name), value))
                .filter(|(name, _)| custom || name.starts_with("rand_") || SHAPING.contains(&name.as_str()))
                .collect();
            options.sort();
            parts.extend(options.iter().map(|(name, value)| format!("{name}={value}")));
        }
        // Every script of pgbench works on the same tables.
        (WorkloadType::Pgbench, _, Some(pgbench)) => parts.extend([
            pgbench_scale(pgbench, rows_per_table).to_string(),
            "pgbench".to_owned(),
        ]),
        _ => parts.extend([rows_per_table.to_string(), "none".to_owned()]),
    }
    // A separator that no part can hold keeps ["ab", "c"] and ["a", "bc"] apart.
    hex_digest(parts.join("\u{0}").as_bytes(), 32)
}

/// Whether a script is a file of somebody's own.
fn is_custom(script: &str) -> bool {
    std::path::Path::new(script)
        .extension()
        .is_some_and(|e| e == "lua")
}

/// Bundled scripts that share `oltp_common`'s tables; any other script prepares its own.
fn prepared_by(script: &str) -> &str {
    if is_custom(script) || script == "bulk_insert" {
        script
    } else if script.starts_with("oltp_") || script.starts_with("select_random_") {
        "oltp_common"
    } else {
        script
    }
}

/// Rows of `pgbench_accounts` for each unit of pgbench's scale factor.
pub const ACCOUNTS_PER_SCALE: i64 = 100_000;

/// pgbench's tables, with their rows for each unit of the scale factor; the last one grows with every transaction that
/// writes.
pub const PGBENCH_TABLES: &[(&str, i64)] = &[
    ("pgbench_branches", 1),
    ("pgbench_tellers", 10),
    ("pgbench_accounts", ACCOUNTS_PER_SCALE),
    ("pgbench_history", 0),
];

/// The scale factor: as the workload gives it, else from the resolved rows of `pgbench_accounts`; at least 1.
pub fn pgbench_scale(pgbench: &Pgbench, rows_per_table: i64) -> i64 {
    pgbench
        .scale
        .map_or(rows_per_table / ACCOUNTS_PER_SCALE, i64::from)
        .max(1)
}

/// Names of the tables that a workload uses (`sbtest1` to `sbtestN`, or pgbench's four); empty where the script alone
/// knows.
pub fn table_names(workload: &Workload) -> Vec<String> {
    match (workload.type_, &workload.sysbench) {
        (WorkloadType::Sysbench, Some(sysbench)) if !is_custom(&sysbench.script) => {
            (1..=sysbench.tables).map(|n| format!("sbtest{n}")).collect()
        }
        (WorkloadType::Pgbench, _) => {
            let names = PGBENCH_TABLES.iter();
            names.map(|(name, _)| (*name).to_owned()).collect()
        }
        (WorkloadType::Sysbench, _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::workload::Sysbench;

    fn workload(script: &str, options: &[(&str, &str)]) -> Workload {
        Workload {
            type_: WorkloadType::Sysbench,
            sysbench: Some(Sysbench {
                script: script.to_owned(),
                tables: 4,
                options: options
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).into()))
                    .collect(),
                ..Sysbench::default()
            }),
            ..Workload::default()
        }
    }

    #[test]
    fn workloads_with_the_same_data_share_their_hash() {
        let hash = |script: &str, options: &[(&str, &str)], rows| {
            dataset_hash(Engine::MariaDB, &workload(script, options), rows)
        };
        let base = hash("oltp_read_only", &[("rand-type", "uniform")], 100);
        assert_eq!(base.len(), 32);
        // The same tables, read or written otherwise.
        assert_eq!(
            base,
            hash(
                "oltp_read_write",
                &[("rand_type", "uniform"), ("skip_trx", "on")],
                100
            )
        );
        assert_eq!(
            base,
            hash("select_random_points", &[("rand-type", "uniform")], 100)
        );
        // Other tables.
        let others = [
            hash("oltp_read_only", &[("rand-type", "uniform")], 101),
            hash("oltp_read_only", &[("rand-type", "pareto")], 100),
            hash("oltp_read_only", &[], 100),
            hash(
                "oltp_read_only",
                &[("rand-type", "uniform"), ("create-secondary", "off")],
                100,
            ),
            hash("bulk_insert", &[("rand-type", "uniform")], 100),
            hash("mine.lua", &[("rand-type", "uniform")], 100),
            hash("mine.lua", &[("rand-type", "uniform"), ("anything", "1")], 100),
            dataset_hash(
                Engine::MySQL,
                &workload("oltp_read_only", &[("rand-type", "uniform")]),
                100,
            ),
        ];
        let mut all: Vec<&String> = others.iter().chain([&base]).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), others.len() + 1);
    }

    #[test]
    fn the_prepare_script_decides_and_the_hash_never_changes_by_itself() {
        let mut custom = workload("mine.lua", &[]);
        if let Some(sysbench) = custom.sysbench.as_mut() {
            sysbench.prepare_script = Some("oltp_common".to_owned());
        }
        assert_eq!(
            dataset_hash(Engine::MariaDB, &custom, 100),
            dataset_hash(Engine::MariaDB, &workload("oltp_insert", &[]), 100)
        );
        // Pinned: a hash that changes with a release would make every dataset again.
        assert_eq!(
            dataset_hash(Engine::MariaDB, &workload("oltp_read_only", &[]), 25_000),
            "c7f84cda9a5adef55b507ca85d319765"
        );
    }

    #[test]
    fn pgbench_data_is_shaped_by_its_scale_alone() {
        let of = |pgbench: Pgbench, rows| {
            let workload = Workload {
                type_: WorkloadType::Pgbench,
                pgbench: Some(pgbench),
                ..Workload::default()
            };
            assert_eq!(table_names(&workload).len(), PGBENCH_TABLES.len());
            dataset_hash(Engine::PostgreSQL, &workload, rows)
        };
        let scale = |scale| Pgbench {
            scale: Some(scale),
            ..Pgbench::default()
        };
        let own = Pgbench {
            script_config_map: Some("scripts".to_owned()),
            ..scale(10)
        };
        assert_eq!(of(scale(10), 0), of(own, 1_000_000));
        assert_eq!(of(scale(10), 0), of(Pgbench::default(), 1_000_000));
        assert_ne!(of(scale(10), 0), of(scale(11), 0));
        assert_eq!(pgbench_scale(&Pgbench::default(), 5), 1);
    }

    #[test]
    fn only_a_higher_epoch_or_the_same_run_is_admitted() {
        let fence = Fence {
            server_identity: String::new(),
            holder: "a".to_owned(),
            epoch: 5,
            progress: Progress::Started,
        };
        assert!(fence.has_started("a", 5) && !fence.has_started("a", 6) && !fence.has_started("b", 5));
        assert!(fence.admits("a", 5) && fence.admits("b", 6) && fence.admits("a", 6));
        assert!(!fence.admits("b", 5) && !fence.admits("a", 4) && !fence.admits("b", 4));
    }
}
