//! A private server of an engine with a login of the test's own, an agent beside it, and what the operator does before a
//! run's Job.

use std::path::Path;

use crds::audit::{AuditSetting, AuditType};
use crds::load::{CacheState, Settle};
use crds::parameter::Parameters;
use crds::runner::{PrepareOrder, RunOrder, RunReport};
use crds::target::{BootRequest, Engine};
use crds::workload::Workload;
use database::testing::TestServer;
use database::{DatabaseAccess as _, Databases, EstablishOrder, Established, Login, dataset_hash};
use runner::agent::{Agent, Token};
use runner::load::Site;
use runner::procfs::Kernel;
use runner::stop::Stop;
use runner::{prepare, run};
use tokio::net::TcpListener;

pub(super) const TOKEN: &str = "a-token";
/// A password that must survive every tool's file.
pub(super) const PASSWORD: &str = "p#a\"s:s, word";

pub(super) fn audit(type_: AuditType) -> AuditSetting {
    AuditSetting {
        name: "audit".to_owned(),
        type_,
        ..AuditSetting::default()
    }
}

/// A server with a login of the test's own, and an agent beside it.
pub(super) struct Bench {
    engine: Engine,
    workload: Workload,
    rows: i64,
    pub(super) server: TestServer,
    pub(super) login: Login,
    pub(super) scratch: tempfile::TempDir,
}

impl Bench {
    /// `rows` are those of each table.
    pub(super) async fn on(engine: Engine, type_: AuditType, workload: Workload, rows: i64) -> Self {
        let request = BootRequest {
            serial: 1,
            audit: Some(audit(type_)),
            ..BootRequest::default()
        };
        let server = TestServer::start_of(engine, &Parameters::new(), Some(&request));
        server.sql(&if engine == Engine::PostgreSQL {
            format!("CREATE ROLE runner SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        } else {
            format!("CREATE USER runner@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO runner@'%'")
        });
        let agent = Agent::new(
            Token::new(TOKEN).unwrap(),
            Path::new(&server.layout().volume),
            Kernel::default(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(agent.serve(listener, std::future::pending()));
        let mut login = server.login(None);
        login.connection.agent = Some(format!("http://{address}"));
        login.agent_token = Some(TOKEN.to_owned());
        (login.username, login.password) = ("runner".to_owned(), PASSWORD.to_owned());
        Self {
            engine,
            workload,
            rows,
            server,
            login,
            scratch: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn prepare_order(&self, epoch: i64) -> PrepareOrder {
        PrepareOrder {
            connection: self.login.connection.clone(),
            run_uid: format!("run-{epoch}"),
            epoch,
            workload: self.workload.clone(),
            rows_per_table: self.rows,
            dataset_hash: dataset_hash(self.engine, &self.workload, self.rows),
        }
    }

    pub(super) async fn prepare(&self, order: &PrepareOrder) -> RunReport {
        let site = self.site();
        prepare::prepare(order, &self.login, &site, &Stop::on(std::future::pending()))
            .await
            .report
    }

    /// What the operator does before a run's Job.
    pub(super) async fn proved(&self, epoch: i64, type_: AuditType) -> RunOrder {
        let order = EstablishOrder {
            run_uid: format!("run-{epoch}"),
            epoch,
            parameters: Parameters::new(),
            audit: audit(type_),
            workload: self.workload.clone(),
            rows_per_table: self.rows,
            dataset_hash: dataset_hash(self.engine, &self.workload, self.rows),
            rebuild_when_grown: None,
            settle: Settle::default(),
            cache: CacheState::Prewarmed,
            fresh_boot: true,
        };
        let Established::Ready(proof) = Databases.establish(&self.login, &order).await.unwrap() else {
            panic!("nothing stands in the way");
        };
        RunOrder {
            connection: self.login.connection.clone(),
            run_uid: order.run_uid,
            epoch,
            workload: order.workload,
            rows_per_table: self.rows,
            threads: 2,
            warmup_seconds: 1,
            duration_seconds: 3,
            report_interval_seconds: 1,
            seed: 7,
            server_started: Some(proof.started),
            audit: order.audit,
            audit_log: proof.audit_log,
            ..RunOrder::default()
        }
    }

    pub(super) fn site(&self) -> Site<'_> {
        Site {
            login: &self.login,
            scratch: self.scratch.path(),
            scripts: self.scratch.path(),
            cpus: 2,
        }
    }

    pub(super) async fn run(&self, order: &RunOrder, stop: &Stop) -> run::Told {
        run::run(order, None, &self.login, &self.site(), stop).await
    }

    /// One of several runners of an order, with a folder of its own.
    pub(super) async fn part(&self, order: &RunOrder, index: i32, stop: &Stop) -> RunReport {
        let scratch = tempfile::tempdir().unwrap();
        let site = Site {
            scratch: scratch.path(),
            ..self.site()
        };
        run::run(order, Some(index), &self.login, &site, stop)
            .await
            .report
    }
}
