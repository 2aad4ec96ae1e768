//! Bringing everything wanted in force before load, in the one order that keeps what we do out of what is measured:
//! look (fence, data) > take the fence > silence > parameters > settle and warm > audit > proof > fence says proved. Any
//! prefix of it can be repeated: each step looks first and does only what is missing. All of it happens under the lock of
//! [`crate::exclusive`], and a runner starts only where the last step was reached.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::audit::{AuditState, AuditType};
use crds::dataset::DatasetStatus;
use crds::parameter::Parameters;
use crds::run::{AuditEvidence, CacheEvidence, Evidence, EvidenceLevel};
use crds::runner::{AgentUsage, AuditLogPosition};
use crds::target::{CleanShutdown, Engine};
use crds::workload::{Workload, WorkloadType};
use tokio::sync::oneshot;

use crate::access::{EstablishOrder, Established, Login, ParameterProblem, Proof, Result};
use crate::agent::{self, Agent};
use crate::audit::{self, Found};
use crate::exclusive;
use crate::marker::Fence;
use crate::server::{Server, in_session};
use crate::{cache, configuration, environment, marker, parameters, settle};

/// How long a canary may need from the server's log buffer to the file.
const CANARY_TRIES: u32 = 10;
const CANARY_INTERVAL: Duration = Duration::from_millis(100);

/// See [`crate::DatabaseAccess::establish`].
pub(crate) async fn establish<S: Server>(
    engine: Engine,
    login: &Login,
    order: &EstablishOrder,
) -> Result<Established> {
    in_session!(S, login, session => {
        exclusive::changing(
            session,
            (&order.run_uid, order.epoch),
            Duration::ZERO,
            |holder| Established::Fenced { holder },
            async |session: &mut S| steps(engine, login, order, session).await,
        )
        .await
    })
}

async fn steps<S: Server>(
    engine: Engine,
    login: &Login,
    order: &EstablishOrder,
    session: &mut S,
) -> Result<Established> {
    let schema = login.connection.schema.as_str();
    let agent = Agent::of(login);
    let wanted = match configuration::merge([&order.parameters, &order.audit.parameters]) {
        Ok(wanted) => wanted,
        Err(problems) => return Ok(Established::NotInForce { problems }),
    };

    // Looking only: whose server is it, is the data there.
    if let Some(fence) = session.read_fence().await?
        && let Some(refused) = refused(fence, |fence| fence.admits(&order.run_uid, order.epoch), order)
    {
        return Ok(refused);
    }
    let dataset = match dataset(session, schema, order).await? {
        Ok(dataset) => dataset,
        Err(found) => return Ok(Established::DatasetNeeded { found }),
    };

    // From here on the server is changed: first the fence, so that nobody else does.
    if agent.is_none() {
        session.ensure_marker().await?;
    }
    let fence = session.take_fence(&order.run_uid, order.epoch).await?;
    if let Some(refused) = refused(fence, |fence| fence.is_of(&order.run_uid, order.epoch), order) {
        return Ok(refused);
    }

    let mut problems = Vec::new();
    let found = session.found(login).await?;
    // Within a visit the mechanism keeps recording; after a boot nothing records until it is switched on.
    if order.fresh_boot || !audit::verify(engine, &order.audit, &found)?.problems.is_empty() {
        for statement in audit::silence(engine, &found) {
            problems.extend(session.apply(&order.audit.name, &statement).await?);
        }
        if let Some(agent) = &agent {
            agent.rotate().await?;
        }
    }
    let names = wanted.keys().cloned().collect();
    let catalogue = session.catalogue(&names).await?;
    let (statements, unreachable) = parameters::plan(&catalogue, &wanted);
    problems.extend(unreachable);
    for (name, statement) in &statements {
        problems.extend(session.apply(name, statement).await?);
    }
    if !problems.is_empty() {
        return Ok(Established::NotInForce { problems });
    }

    let pool = session.cache_bytes(&catalogue).unwrap_or(i64::MAX);
    let limit = cache::limit(order.settle.timeout.into(), dataset.bytes, pool);
    let look_only = !order.fresh_boot;
    let (settled, cached) = if look_only || order.settle.fixed_sleep.is_some() {
        let settled = settle::wait(session, agent.as_ref(), &order.settle, look_only).await?;
        (
            settled,
            cache::bring(session, schema, order.cache, look_only, limit).await?,
        )
    } else {
        // Scanning overlaps settling: it reads, settling looks at what is written.
        let (told, warmed) = oneshot::channel::<()>();
        let warming = async {
            let cached = in_session!(S, login, second => scan(second, order, schema, limit).await);
            let _ = told.send(());
            cached
        };
        let settling = async {
            let settled = settle::wait(session, agent.as_ref(), &order.settle, false).await?;
            let _ = session.keep_while(warmed).await?;
            Ok(settled)
        };
        // If one fails the other is not waited for: whoever has taken the lock meanwhile must not be disturbed.
        tokio::try_join!(settling, warming)?
    };

    let (evidence, audit_log) = match audit_in_force(engine, login, order, session, agent.as_ref()).await? {
        Ok(proved) => proved,
        Err(problems) => return Ok(Established::NotInForce { problems }),
    };

    // The proof: everything once more, as it is now.
    let catalogue = session.catalogue(&BTreeSet::new()).await?;
    let (read_back, problems) = parameters::read_back(&catalogue, &wanted, read_only(&order.workload));
    if !problems.is_empty() {
        return Ok(Established::NotInForce { problems });
    }
    let usage = usage(agent.as_ref()).await;
    let found = session.found(login).await?;
    let started = session.started(&found).await?;
    let bytes = session.table_bytes(schema).await?;
    let replica = session.is_replica().await?;
    let canary_decided = evidence.canary_found.is_some();
    if !marker::write_proved(session, &order.run_uid, order.epoch).await? {
        let holder = session.read_fence().await?.map(|fence| fence.holder);
        return Ok(Established::Fenced {
            holder: holder.unwrap_or_default(),
        });
    }
    Ok(Established::Ready(Box::new(Proof {
        started,
        audit_log,
        environment: environment::complete(session.surroundings(&found), replica, bytes, usage.as_ref()),
        evidence: Evidence {
            level: if canary_decided {
                EvidenceLevel::Proved
            } else {
                EvidenceLevel::ReadBack
            },
            boot_identity: String::new(),
            parameters: read_back,
            audit: evidence,
            settle: settled,
            cache: cached,
            dataset: Some(dataset.clone()),
            clean_shutdown: CleanShutdown::Unknown,
            proved_at: None,
        },
        dataset,
    })))
}

/// Why nothing may be changed for this run, if so.
fn refused(fence: Fence, permits: impl Fn(&Fence) -> bool, order: &EstablishOrder) -> Option<Established> {
    if fence.has_started(&order.run_uid, order.epoch) {
        return Some(Established::Started);
    }
    (!permits(&fence)).then_some(Established::Fenced { holder: fence.holder })
}

/// Warms the cache in a session of its own, which whoever takes over can find and end.
async fn scan<S: Server>(
    session: &mut S,
    order: &EstablishOrder,
    schema: &str,
    limit: Duration,
) -> Result<CacheEvidence> {
    session.lock(exclusive::SCANNING, Duration::ZERO).await?;
    cache::bring(session, schema, order.cache, false, limit).await
}

/// The data that is there, or what was found instead.
async fn dataset<S: Server>(
    session: &mut S,
    schema: &str,
    order: &EstablishOrder,
) -> Result<std::result::Result<DatasetStatus, String>> {
    let Some(made) = session.read_dataset(schema).await? else {
        return Ok(Err(format!("schema {schema} holds no finished data")));
    };
    let tables = session.table_count(schema).await?;
    let bytes = session.table_bytes(schema).await?;
    Ok(judge_dataset(&made, tables, bytes, order).map_or(Ok(made), Err))
}

/// Why the data must be made (again), if it must.
fn judge_dataset(made: &DatasetStatus, tables: i64, bytes: i64, order: &EstablishOrder) -> Option<String> {
    if made.hash != order.dataset_hash {
        return Some(format!(
            "data of another shape: {} tables of {} rows, made as {}",
            made.tables, made.rows_per_table, made.hash
        ));
    }
    if tables < made.tables {
        return Some(format!("{tables} tables, {} were made", made.tables));
    }
    let share = order.rebuild_when_grown?;
    let (then, now) = (made.bytes.max(1) as f64, bytes as f64);
    (now > (then * (1.0 + share)).round()).then(|| {
        format!(
            "the data has grown by {:.1} % since it was made, {:.1} % is allowed",
            (now / then - 1.0) * 100.0,
            share * 100.0
        )
    })
}

/// Switches the mechanism on (or proves that nothing records), sends the canary and looks for it.
async fn audit_in_force<S: Server>(
    engine: Engine,
    login: &Login,
    order: &EstablishOrder,
    session: &mut S,
    agent: Option<&Agent>,
) -> Result<std::result::Result<(AuditEvidence, Option<AuditLogPosition>), Vec<ParameterProblem>>> {
    let mut problems = Vec::new();
    let before = session.found(login).await?;
    for statement in audit::statements(engine, &order.audit, &before)? {
        problems.extend(session.apply(&order.audit.name, &statement).await?);
    }
    let found = session.found(login).await?;
    let verdict = audit::verify(engine, &order.audit, &found)?;
    problems.extend(verdict.problems);
    if !problems.is_empty() {
        return Ok(Err(problems));
    }
    let mut evidence = AuditEvidence {
        installed: verdict.installed,
        recording: verdict.recording,
        settings: verdict.settings,
        ..AuditEvidence::default()
    };
    let on = order.audit.state == AuditState::On && order.audit.type_ != AuditType::None;
    let logs = logs(engine, session, &found);
    let mut sizes = Vec::with_capacity(logs.len());
    if let Some(agent) = agent {
        for (_, file) in &logs {
            sizes.push(agent.audit(agent::END, file, None).await?.size);
        }
    }
    // Thresholds are copied into a session when it connects: the canary comes from a new one, as load will.
    let word = audit::canary_word(&order.run_uid, order.epoch);
    let statement = audit::canary(engine, &order.audit, &word)?;
    in_session!(S, login, fresh => fresh.run("send the canary", &statement).await)?;
    let Some(agent) = agent else {
        return Ok(Ok((evidence, None)));
    };
    if on && !logs.iter().any(|(kind, _)| *kind == order.audit.type_) {
        // It writes where the agent cannot look: read back is all there is.
        return Ok(Ok((evidence, None)));
    }
    let mut position = None;
    for ((kind, file), from) in logs.into_iter().zip(sizes) {
        let expected = on && kind == order.audit.type_;
        let mut log = agent.audit(from, &file, Some(&word)).await?;
        for _ in 0..CANARY_TRIES {
            if !expected || log.canary_found == Some(true) {
                break;
            }
            tokio::time::sleep(CANARY_INTERVAL).await;
            log = agent.audit(from, &file, Some(&word)).await?;
        }
        let canary = log.canary_found.unwrap_or_default();
        if canary != expected {
            problems.push(ParameterProblem {
                name: order.audit.name.clone(),
                message: if expected {
                    format!(
                        "the canary statement is not in {file}: {kind:?} says that it records and does not"
                    )
                } else {
                    format!("the canary statement is in {file}: {kind:?} records although it should not")
                },
            });
        }
        if expected {
            evidence.log_file = Some(file.clone());
            evidence.log_offset = Some(log.size);
            position = Some(AuditLogPosition {
                file,
                offset: log.size,
            });
        }
        evidence.canary_found = Some(evidence.canary_found.unwrap_or_default() || canary);
    }
    // With no log anywhere, a canary that nobody could have written was not found.
    evidence.canary_found = Some(evidence.canary_found.unwrap_or_default());
    if problems.is_empty() {
        Ok(Ok((evidence, position)))
    } else {
        Ok(Err(problems))
    }
}

/// Every log on the volume that could hold the canary, by mechanism, as the agent names it.
fn logs<S: Server>(engine: Engine, session: &S, found: &Found) -> Vec<(AuditType, String)> {
    audit::mechanisms(engine)
        .filter_map(|m| Some((m.kind(), session.on_volume(found, &m.log_path(found)?)?)))
        .collect()
}

async fn usage(agent: Option<&Agent>) -> Option<AgentUsage> {
    agent?.usage().await.ok()
}

/// Whether a load only reads. A script of somebody's own is taken to write.
pub fn read_only(workload: &Workload) -> bool {
    match (workload.type_, &workload.sysbench, &workload.pgbench) {
        (WorkloadType::Sysbench, Some(sysbench), _) => matches!(
            sysbench.script.as_str(),
            "oltp_read_only" | "oltp_point_select" | "select_random_points" | "select_random_ranges"
        ),
        (WorkloadType::Pgbench, _, Some(pgbench)) => {
            pgbench.script_config_map.is_none()
                && pgbench.builtin == Some(crds::workload::PgbenchScript::SelectOnly)
        }
        _ => false,
    }
}

/// Compares parameters and audit setting with what is in force now; used when load has ended.
pub(crate) async fn still_in_force<S: Server>(
    engine: Engine,
    login: &Login,
    session: &mut S,
    wanted: &Parameters,
    setting: &crds::audit::AuditSetting,
) -> Result<(Found, Vec<ParameterProblem>)> {
    let catalogue = session.catalogue(&BTreeSet::new()).await?;
    let mut problems = match configuration::merge([wanted, &setting.parameters]) {
        Ok(wanted) => parameters::read_back(&catalogue, &wanted, false).1,
        Err(problems) => problems,
    };
    let found = session.found(login).await?;
    problems.extend(audit::verify(engine, setting, &found)?.problems);
    Ok((found, problems))
}

#[cfg(test)]
mod tests;
