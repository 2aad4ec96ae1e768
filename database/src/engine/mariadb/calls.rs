//! What is asked of a MariaDB server, call by call; each opens its connection and closes it.

use std::time::Duration;

use crds::audit::AuditSetting;
use crds::dataset::DatasetStatus;
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::{BootRequest, Engine};
use futures::future::{BoxFuture, FutureExt as _};

use super::MariaDb;
use crate::access::{
    DatabaseAccess, DatabaseError, EstablishOrder, Established, Login, ParameterProblem, Result,
    ServerIdentity,
};
use crate::after::{self, AfterRun, Counters};
use crate::audit::{self, Found};
use crate::catalogue::{self, Catalogue};
use crate::configuration::{ConfigurationError, ConfigurationFile};
use crate::connection::{Session, identifier, in_session};
use crate::engine::{EngineSupport, Layout, ManagedServer};
use crate::exclusive;
use crate::marker::{self, Claim};
use crate::{environment, establish, identity};

/// How long counting or analysing one table may take.
const TABLE_LIMIT: Duration = Duration::from_mins(30);
/// How long making data waits for somebody who is at the server for the same run.
const PREPARE_PATIENCE: Duration = Duration::from_secs(10);

impl DatabaseAccess for MariaDb {
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity>> {
        async move { in_session!(login, session => identity::identify(session, login).await) }.boxed()
    }

    fn check<'a>(
        &'a self,
        login: &'a Login,
        parameters: &'a [Parameters],
        settings: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>> {
        async move { in_session!(login, session => check(session, login, parameters, settings).await) }
            .boxed()
    }

    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established>> {
        establish::establish(Engine::MariaDB, login, order).boxed()
    }
}

async fn check(
    session: &mut Session,
    login: &Login,
    parameters: &[Parameters],
    settings: &[AuditSetting],
) -> Result<Vec<ParameterProblem>> {
    let catalogue = Catalogue::load(session).await?;
    let identity = identity::identify(session, login).await?;
    let managed = login.connection.agent.is_some();
    let mut problems = Vec::new();
    for layer in parameters.iter().chain(settings.iter().map(|s| &s.parameters)) {
        problems.extend(
            catalogue::check(&catalogue, layer)
                .into_iter()
                // A plugin's own parameters are known only where it is loaded.
                .filter(|p| !p.name.starts_with("server_audit_") || catalogue.get(&p.name).is_some()),
        );
        for name in layer.keys() {
            let canonical = crate::configuration::canonical_name(name);
            problems.extend(super::reserved(&canonical));
            if !managed && catalogue.get(name).is_some_and(|v| v.read_only) {
                problems.push(ParameterProblem {
                    name: name.clone(),
                    message: format!(
                        "{name} can only be set when the server starts, and this server's file is not ours"
                    ),
                });
            }
        }
    }
    for setting in settings {
        match audit::find(Engine::MariaDB, setting.type_) {
            Err(error) => problems.push(ParameterProblem {
                name: setting.name.clone(),
                message: format!("audit setting {}: {error}", setting.name),
            }),
            Ok(mechanism) => {
                problems.extend(mechanism.problems(setting));
                if !identity.capabilities.audit.contains(&setting.type_) {
                    problems.push(ParameterProblem {
                        name: setting.name.clone(),
                        message: format!(
                            "audit setting {}: this server has no plugin {}: use an image that ships it",
                            setting.name,
                            mechanism.plugin().unwrap_or_default()
                        ),
                    });
                }
            }
        }
        let excluded = setting.server_audit.iter().flat_map(|s| &s.exclude_users);
        if excluded.into_iter().any(|user| *user == login.username) {
            problems.push(ParameterProblem {
                name: setting.name.clone(),
                message: format!(
                    "audit setting {}: excludeUsers names {}, the load generator's own login: nothing would be recorded",
                    setting.name, login.username
                ),
            });
        }
    }
    problems.sort_by(|a, b| (&a.name, &a.message).cmp(&(&b.name, &b.message)));
    problems.dedup();
    Ok(problems)
}

impl EngineSupport for MariaDb {
    fn engine(&self) -> Engine {
        Engine::MariaDB
    }

    fn default_port(&self) -> u16 {
        super::PORT
    }

    fn managed(&self, layout: &Layout) -> ManagedServer {
        super::managed(layout)
    }

    fn init_sql(&self, username: &str, password: &str) -> String {
        super::init_sql(username, password)
    }

    fn configuration(
        &self,
        layout: &Layout,
        base: &Parameters,
        request: Option<&BootRequest>,
        memory_bytes: i64,
    ) -> std::result::Result<ConfigurationFile, ConfigurationError> {
        super::configuration(layout, base, request, memory_bytes)
    }

    fn cache_parameters(&self, state: CacheState) -> Parameters {
        super::cache_parameters(state)
    }

    fn claim<'a>(&'a self, login: &'a Login, run_uid: &'a str, epoch: i64) -> BoxFuture<'a, Result<Claim>> {
        async move { in_session!(login, session => marker::claim(session, run_uid, epoch).await) }.boxed()
    }

    fn begin_dataset<'a>(
        &'a self,
        login: &'a Login,
        run_uid: &'a str,
        epoch: i64,
    ) -> BoxFuture<'a, Result<Claim>> {
        async move {
            in_session!(login, session => {
                exclusive::changing(
                    session,
                    (run_uid, epoch),
                    PREPARE_PATIENCE,
                    |holder| Claim::Fenced { holder },
                    async |session| begin_dataset(session, login, run_uid, epoch).await,
                )
                .await
            })
        }
        .boxed()
    }

    fn finish_dataset<'a>(
        &'a self,
        login: &'a Login,
        run: (&'a str, i64),
        hash: &'a str,
        tables: &'a [String],
        rows_per_table: i64,
    ) -> BoxFuture<'a, Result<Option<DatasetStatus>>> {
        async move {
            in_session!(login, session => {
                finish_dataset(session, login, run, hash, tables, rows_per_table).await
            })
        }
        .boxed()
    }

    fn row_counts<'a>(&'a self, login: &'a Login, tables: &'a [String]) -> BoxFuture<'a, Result<Vec<i64>>> {
        async move { in_session!(login, session => row_counts(session, login, tables).await) }.boxed()
    }

    fn counters<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Counters>> {
        async move {
            in_session!(login, session => {
                match establish::found(session, login).await {
                    Ok(found) => counters(session, login, &found).await,
                    Err(error) => Err(error),
                }
            })
        }
        .boxed()
    }

    fn after_run<'a>(
        &'a self,
        login: &'a Login,
        order: &'a RunOrder,
        before: &'a Counters,
    ) -> BoxFuture<'a, Result<AfterRun>> {
        async move { in_session!(login, session => after_run(session, login, order, before).await) }.boxed()
    }
}

async fn begin_dataset(session: &mut Session, login: &Login, run_uid: &str, epoch: i64) -> Result<Claim> {
    if marker::read_fence(session).await?.is_none() {
        marker::ensure_schema(session).await?;
    }
    let schema = login.connection.schema.as_str();
    if schema.is_empty()
        || schema == marker::SCHEMA
        || ["mysql", "sys", "information_schema", "performance_schema"].contains(&schema)
    {
        return Err(DatabaseError::Unsupported(format!(
            "schema `{schema}` belongs to the server: data is made in a schema of its own"
        )));
    }
    let fence = marker::take_fence(session, run_uid, epoch).await?;
    if fence.has_started(run_uid, epoch) {
        return Ok(Claim::AlreadyStarted);
    }
    if !fence.is_of(run_uid, epoch) {
        return Ok(Claim::Fenced { holder: fence.holder });
    }
    marker::forget_dataset(session, schema).await?;
    let name = identifier(schema);
    session
        .run_within(
            TABLE_LIMIT,
            "drop the schema",
            &format!("DROP DATABASE IF EXISTS {name}"),
        )
        .await?;
    session
        .run("make the schema", &format!("CREATE DATABASE {name}"))
        .await?;
    Ok(Claim::Claimed)
}

async fn finish_dataset(
    session: &mut Session,
    login: &Login,
    run: (&str, i64),
    hash: &str,
    tables: &[String],
    rows_per_table: i64,
) -> Result<Option<DatasetStatus>> {
    let schema = login.connection.schema.as_str();
    for table in tables {
        let sql = format!("ANALYZE TABLE {}.{}", identifier(schema), identifier(table));
        session
            .run_within(TABLE_LIMIT, "refresh statistics", &sql)
            .await?;
    }
    let made = DatasetStatus {
        hash: hash.to_owned(),
        tables: i64::try_from(tables.len()).unwrap_or(i64::MAX),
        rows_per_table,
        bytes: environment::table_bytes(session, schema).await?,
    };
    let ours = marker::write_dataset(session, schema, &made, run).await?;
    Ok(ours.then_some(made))
}

async fn row_counts(session: &mut Session, login: &Login, tables: &[String]) -> Result<Vec<i64>> {
    let schema = identifier(&login.connection.schema);
    let mut counts = Vec::with_capacity(tables.len());
    for table in tables {
        let sql = format!("SELECT COUNT(*) FROM {schema}.{}", identifier(table));
        let rows: Vec<i64> = session.rows_within(TABLE_LIMIT, "count rows", &sql).await?;
        counts.push(rows.first().copied().unwrap_or_default());
    }
    Ok(counts)
}

async fn counters(session: &mut Session, login: &Login, found: &Found) -> Result<Counters> {
    let number = |name: &str| found.status(name).parse::<i64>().unwrap_or_default();
    let lost: Vec<i64> = audit::mechanisms(login.connection.engine)
        .filter_map(|m| m.lost(found))
        .collect();
    Ok(Counters {
        started: identity::started(session, found).await?,
        rows_written: ["handler_write", "handler_update", "handler_delete"]
            .into_iter()
            .map(number)
            .sum(),
        questions: number("questions"),
        audit_lost: (!lost.is_empty()).then(|| lost.iter().sum()),
    })
}

async fn after_run(
    session: &mut Session,
    login: &Login,
    order: &RunOrder,
    before: &Counters,
) -> Result<AfterRun> {
    // Counters first: what follows must not be counted as the load's.
    let found = establish::found(session, login).await?;
    let now = counters(session, login, &found).await?;
    let (_, problems) =
        establish::still_in_force(Engine::MariaDB, login, session, &order.parameters, &order.audit).await?;
    let changed = after::findings(problems, &order.audit);
    Ok(after::compare(order.server_started, before, now, changed))
}
