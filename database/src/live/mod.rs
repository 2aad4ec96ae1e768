//! Tests against a real server (see [`crate::testing`]): what the pure parts assume of MariaDB is what MariaDB does.

mod catalogue;
mod establish;
mod exclusive;
mod fence;
mod mysql;
mod original;
mod postgresql;
mod reach;
mod scripted;

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::load::{CacheState, Settle};
use crds::parameter::Parameters;
use crds::target::{BootRequest, Engine};
use crds::workload::{Sysbench, Workload, WorkloadType};

use crate::access::EstablishOrder;
use crate::marker;

const TABLES: i32 = 2;
const ROWS: i64 = 2_000;

fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    pairs
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).into()))
        .collect()
}

fn setting(type_: AuditType, state: AuditState) -> AuditSetting {
    AuditSetting {
        name: "level".to_owned(),
        type_,
        state,
        ..AuditSetting::default()
    }
}

fn request(parameters: Parameters, audit: &AuditSetting) -> BootRequest {
    BootRequest {
        serial: 1,
        parameters,
        audit: Some(audit.clone()),
    }
}

fn workload() -> Workload {
    Workload {
        type_: WorkloadType::Sysbench,
        sysbench: Some(Sysbench {
            script: "oltp_read_only".to_owned(),
            tables: TABLES,
            table_size: Some(ROWS),
            ..Sysbench::default()
        }),
        ..Workload::default()
    }
}

fn order(epoch: i64, audit: &AuditSetting) -> EstablishOrder {
    EstablishOrder {
        run_uid: format!("run-{epoch}"),
        epoch,
        parameters: Parameters::new(),
        audit: audit.clone(),
        workload: workload(),
        rows_per_table: ROWS,
        dataset_hash: marker::dataset_hash(Engine::MariaDB, &workload(), ROWS),
        rebuild_when_grown: Some(0.1),
        settle: Settle::default(),
        cache: CacheState::Prewarmed,
        fresh_boot: true,
    }
}
