//! The calls of every engine, in terms of a session; each opens its session and closes it.

use std::time::Duration;

use crds::audit::AuditSetting;
use crds::dataset::DatasetStatus;
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::{OriginalState, Permissions};
use futures::future::{BoxFuture, FutureExt as _};

use crate::access::{
    DatabaseAccess, DatabaseError, EstablishOrder, Established, Login, ParameterProblem, Result,
    ServerIdentity,
};
use crate::after::{self, AfterRun, Counters};
use crate::audit::{self, Found};
use crate::catalogue;
use crate::configuration::canonical_name;
use crate::engine::{EngineFacts, EngineSupport, Live};
use crate::marker::{self, Claim};
use crate::original::{self, Captured, Left};
use crate::server::{Server, in_session};
use crate::{establish, exclusive};

/// How long counting or analysing one table may take.
const TABLE_LIMIT: Duration = Duration::from_mins(30);
/// How long making data waits for somebody who is at the server for the same run.
const PREPARE_PATIENCE: Duration = Duration::from_secs(10);

impl<E: Live> DatabaseAccess for E {
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity>> {
        async move { in_session!(E::Session, login, session => session.identify(login).await) }.boxed()
    }

    fn check<'a>(
        &'a self,
        login: &'a Login,
        parameters: &'a [Parameters],
        settings: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>> {
        async move {
            in_session!(E::Session, login, session => check(self, session, login, parameters, settings).await)
        }
        .boxed()
    }

    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established>> {
        establish::establish::<E::Session>(self.engine(), login, order).boxed()
    }

    fn capture<'a>(
        &'a self,
        login: &'a Login,
        permissions: &'a Permissions,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Captured>> {
        original::capture::<E::Session>(self.engine(), login, permissions, owner).boxed()
    }

    fn restore<'a>(
        &'a self,
        login: &'a Login,
        original: Option<&'a OriginalState>,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Left>>> {
        original::restore::<E::Session>(self.engine(), login, original, owner).boxed()
    }

    fn restart<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<()>> {
        async move { in_session!(E::Session, login, session => session.restart().await) }.boxed()
    }
}

async fn check<S: Server>(
    engine: &impl EngineFacts,
    session: &mut S,
    login: &Login,
    parameters: &[Parameters],
    settings: &[AuditSetting],
) -> Result<Vec<ParameterProblem>> {
    let layers = || parameters.iter().chain(settings.iter().map(|s| &s.parameters));
    let names = layers().flat_map(Parameters::keys).map(|n| canonical_name(n));
    let catalogue = session.catalogue(&names.collect()).await?;
    let identity = session.identify(login).await?;
    let found = session.found(login).await?;
    let managed = login.connection.agent.is_some();
    let mut problems = Vec::new();
    for layer in layers() {
        problems.extend(
            catalogue::check(&catalogue, layer)
                .into_iter()
                // A plugin's own parameters are known only where it is loaded.
                .filter(|p| {
                    catalogue.get(&p.name).is_some()
                        || !(audit::owned(engine.engine(), &p.name) || engine.comes_with(&p.name, layer))
                }),
        );
        problems.extend(session.objections(&catalogue, layer).await?);
        for name in layer.keys() {
            problems.extend(engine.reserved(&canonical_name(name)));
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
        match audit::find(engine.engine(), setting.type_) {
            Err(error) => problems.push(ParameterProblem {
                name: setting.name.clone(),
                message: format!("audit setting {}: {error}", setting.name),
            }),
            Ok(mechanism) => {
                problems.extend(mechanism.problems(setting));
                let plugin = mechanism.plugin().unwrap_or_default();
                let mut problem = |message: String| {
                    problems.push(ParameterProblem {
                        name: setting.name.clone(),
                        message: format!("audit setting {}: {message}", setting.name),
                    });
                };
                let loaded = mechanism.plugin().is_none_or(|p| found.plugin_active(p));
                if !managed && !loaded && mechanism.uninstall().is_none() {
                    problem(format!(
                        "this server has not loaded {plugin} and no statement loads it: its owner must add it to {} and \
                         restart it",
                        engine.loads_at_start()
                    ));
                } else if !identity.capabilities.audit.contains(&setting.type_) {
                    problem(format!(
                        "this server has no plugin {plugin}: use an image that ships it"
                    ));
                }
                if !managed {
                    for other in audit::stays(engine.engine(), setting, &found) {
                        problem(format!(
                            "this server has loaded {other:?} and no statement unloads it: use {{type: {other:?}, state: \
                             InstalledOff}} as the level that does not record"
                        ));
                    }
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

impl<E: Live> EngineSupport for E {
    fn claim<'a>(&'a self, login: &'a Login, run_uid: &'a str, epoch: i64) -> BoxFuture<'a, Result<Claim>> {
        async move { in_session!(E::Session, login, session => marker::claim(session, run_uid, epoch).await) }
            .boxed()
    }

    fn begin_dataset<'a>(
        &'a self,
        login: &'a Login,
        run_uid: &'a str,
        epoch: i64,
    ) -> BoxFuture<'a, Result<Claim>> {
        async move {
            in_session!(E::Session, login, session => {
                exclusive::changing(
                    session,
                    (run_uid, epoch),
                    PREPARE_PATIENCE,
                    |holder| Claim::Fenced { holder },
                    async |session: &mut E::Session| begin_dataset(session, login, run_uid, epoch).await,
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
            in_session!(E::Session, login, session => {
                finish_dataset(session, login, run, hash, tables, rows_per_table).await
            })
        }
        .boxed()
    }

    fn row_counts<'a>(&'a self, login: &'a Login, tables: &'a [String]) -> BoxFuture<'a, Result<Vec<i64>>> {
        async move { in_session!(E::Session, login, session => row_counts(session, login, tables).await) }
            .boxed()
    }

    fn counters<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Counters>> {
        async move {
            in_session!(E::Session, login, session => {
                counters(session, login).await
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
        async move {
            in_session!(E::Session, login, session => after_run(self, session, login, order, before).await)
        }
        .boxed()
    }
}

async fn begin_dataset<S: Server>(
    session: &mut S,
    login: &Login,
    run_uid: &str,
    epoch: i64,
) -> Result<Claim> {
    if session.read_fence().await?.is_none() {
        session.ensure_marker().await?;
    }
    let schema = login.connection.schema.as_str();
    if schema.is_empty() || schema == marker::SCHEMA || S::belongs_to_server(schema) {
        return Err(DatabaseError::Unsupported(format!(
            "schema `{schema}` belongs to the server: data is made in a schema of its own"
        )));
    }
    let fence = session.take_fence(run_uid, epoch).await?;
    if fence.has_started(run_uid, epoch) {
        return Ok(Claim::AlreadyStarted);
    }
    if !fence.is_of(run_uid, epoch) {
        return Ok(Claim::Fenced { holder: fence.holder });
    }
    session.forget_dataset(schema).await?;
    session.make_empty(schema, TABLE_LIMIT).await?;
    Ok(Claim::Claimed)
}

async fn finish_dataset<S: Server>(
    session: &mut S,
    login: &Login,
    run: (&str, i64),
    hash: &str,
    tables: &[String],
    rows_per_table: i64,
) -> Result<Option<DatasetStatus>> {
    let schema = login.connection.schema.as_str();
    for table in tables {
        session.analyse(schema, table, TABLE_LIMIT).await?;
    }
    let made = DatasetStatus {
        hash: hash.to_owned(),
        tables: i64::try_from(tables.len()).unwrap_or(i64::MAX),
        rows_per_table,
        bytes: session.table_bytes(schema).await?,
    };
    let ours = session.write_dataset(schema, &made, run).await?;
    Ok(ours.then_some(made))
}

async fn row_counts<S: Server>(session: &mut S, login: &Login, tables: &[String]) -> Result<Vec<i64>> {
    let mut counts = Vec::with_capacity(tables.len());
    for table in tables {
        let schema = &login.connection.schema;
        counts.push(session.count_rows(schema, table, TABLE_LIMIT).await?);
    }
    Ok(counts)
}

/// Counters as the last thing before load: what was asked to find `audit_lost` is not in them (a look at the plugins writes
/// rows of a temporary table that MySQL counts).
async fn counters<S: Server>(session: &mut S, login: &Login) -> Result<Counters> {
    let found = session.found(login).await?;
    Ok(Counters {
        audit_lost: audit_lost(login, &found),
        ..session.counters().await?
    })
}

fn audit_lost(login: &Login, found: &Found) -> Option<i64> {
    let lost: Vec<i64> = audit::mechanisms(login.connection.engine)
        .filter_map(|m| m.lost(found))
        .collect();
    (!lost.is_empty()).then(|| lost.iter().sum())
}

async fn after_run<S: Server>(
    engine: &impl EngineFacts,
    session: &mut S,
    login: &Login,
    order: &RunOrder,
    before: &Counters,
) -> Result<AfterRun> {
    // Counters first: what follows must not be counted as the load's.
    let mut now = session.counters().await?;
    let (found, problems) =
        establish::still_in_force(engine.engine(), login, session, &order.parameters, &order.audit).await?;
    now.audit_lost = audit_lost(login, &found);
    let changed = after::findings(problems, &order.audit);
    Ok(after::compare(order.server_started, before, now, changed))
}
