//! PostgreSQL, against a real server: what the pure parts assume of it is what it does.

mod audit;
mod borrowed;
mod establish;
mod parameters;
mod reach;

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::Engine;

use super::{ROWS, TABLES, request, setting, workload};
use crate::testing::{TestAgent, TestServer};
use crate::{Claim, DatabaseAccess as _, Databases, EstablishOrder, Established, Login, Proof, marker};

fn start(base: &Parameters) -> TestServer {
    TestServer::start_of(Engine::PostgreSQL, base, None)
}

fn order(epoch: i64, audit: &AuditSetting) -> EstablishOrder {
    EstablishOrder {
        dataset_hash: marker::dataset_hash(Engine::PostgreSQL, &workload(), ROWS),
        ..super::order(epoch, audit)
    }
}

/// A server started for this setting, with data.
async fn prepared(audit: &AuditSetting, wanted: &Parameters) -> (TestServer, TestAgent, Login) {
    let server = TestServer::start_of(
        Engine::PostgreSQL,
        &Parameters::new(),
        Some(&request(wanted.clone(), audit)),
    );
    let agent = TestAgent::start(&server.layout().volume).await;
    let login = server.login(Some(&agent));
    make_data(&server, &login, 1).await;
    (server, agent, login)
}

async fn make_data(server: &TestServer, login: &Login, epoch: i64) {
    let run = format!("run-{epoch}");
    assert_eq!(
        Databases.begin_dataset(login, &run, epoch).await.unwrap(),
        Claim::Claimed
    );
    let options = [format!("--tables={TABLES}"), format!("--table-size={ROWS}")];
    server.sysbench(
        "oltp_read_only",
        "prepare",
        &options.each_ref().map(String::as_str),
    );
    let tables = marker::table_names(&workload());
    assert_eq!(Databases.row_counts(login, &tables).await.unwrap(), [ROWS, ROWS]);
    let hash = marker::dataset_hash(Engine::PostgreSQL, &workload(), ROWS);
    let made = Databases
        .finish_dataset(login, (&run, epoch), &hash, &tables, ROWS)
        .await
        .unwrap()
        .unwrap();
    assert!(made.bytes > 2 * ROWS * 180, "{made:?}");
}

async fn ready(login: &Login, order: &EstablishOrder) -> Proof {
    match Databases.establish(login, order).await.unwrap() {
        Established::Ready(proof) => *proof,
        other => panic!("{other:?}"),
    }
}

fn run_order(login: &Login, order: &EstablishOrder, proof: &Proof) -> RunOrder {
    RunOrder {
        connection: login.connection.clone(),
        run_uid: order.run_uid.clone(),
        epoch: order.epoch,
        workload: order.workload.clone(),
        server_started: Some(proof.started),
        parameters: order.parameters.clone(),
        audit: order.audit.clone(),
        audit_log: proof.audit_log.clone(),
        ..RunOrder::default()
    }
}

fn none() -> AuditSetting {
    setting(AuditType::None, AuditState::On)
}
