//! Settling and the buffers.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::connection::{STATEMENT_LIMIT, column, identifier, literal};
use super::facts;
use super::session::Session;
use crate::access::{DatabaseError, Result};
use crate::cache::Reads;
use crate::settle::Sample;

/// First version with a way to hand in statistics at once.
const FLUSH: i32 = 150_000;
/// How long the statistics of older servers may be behind.
const STATISTICS_DELAY: Duration = Duration::from_millis(600);

/// How long loading what was dumped is waited for.
const LOAD_LIMIT: Duration = Duration::from_mins(1);

/// Work of the server's own that is not finished, by kind of process, in words.
const UNFINISHED: &str = "SELECT 'in recovery' WHERE pg_is_in_recovery() UNION ALL SELECT count(*) || ' autovacuum workers run' \
                          FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' HAVING count(*) > 0 UNION ALL \
                          SELECT 'a checkpoint is being written' FROM pg_stat_activity WHERE backend_type = 'checkpointer' \
                          AND wait_event IS DISTINCT FROM 'CheckpointerMain' UNION ALL SELECT 'the buffers are being loaded' \
                          FROM pg_stat_activity WHERE backend_type = 'autoprewarm worker'";
const POSITION: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8, \
                        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::int8 FROM pg_control_checkpoint() WHERE NOT \
                        pg_is_in_recovery()";

/// Writes everything that is dirty now, so that it is not written while load is measured.
pub(super) async fn checkpoint(session: &mut Session, limit: Duration) -> Result<()> {
    match session
        .home
        .run_within(limit, "write a checkpoint", "CHECKPOINT")
        .await
    {
        // A borrowed server may keep that to itself; whether one runs is looked at all the same.
        Err(DatabaseError::Refused { .. }) => Ok(()),
        other => other,
    }
}

pub(super) async fn sample(session: &mut Session) -> Result<Sample> {
    let doing = "look whether the server has settled";
    let mut sample = Sample::default();
    for row in session.home.rows(doing, UNFINISHED, &[]).await? {
        sample.unfinished.push(column(&row, 0, doing)?);
    }
    if let Some(row) = session.home.rows(doing, POSITION, &[]).await?.first() {
        sample.written = Some(column(row, 0, doing)?);
        sample.checkpoint_age = Some(column(row, 1, doing)?);
    }
    Ok(sample)
}

/// Blocks of tables and indexes of the workload's database that were asked for and those that were not there.
pub(super) async fn reads(session: &mut Session) -> Result<Reads> {
    if facts::version(&mut session.home).await? < FLUSH {
        // Handed in half a second after the last time, written down half a second later.
        sleep(STATISTICS_DELAY).await;
        session.alive().await?;
        sleep(STATISTICS_DELAY).await;
    } else {
        let doing = "hand in the cache's counters";
        let sql = "SELECT pg_stat_force_next_flush()::text";
        session.in_workload(STATEMENT_LIMIT, doing, sql, &[]).await?;
    }
    let doing = "read the cache's counters";
    let sql = "SELECT coalesce(sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + \
               coalesce(idx_blks_read, 0)), 0)::int8, coalesce(sum(coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, \
               0)), 0)::int8 FROM pg_statio_user_tables";
    let rows = session.in_workload(STATEMENT_LIMIT, doing, sql, &[]).await?;
    let mut reads = Reads::default();
    if let Some(row) = rows.unwrap_or_default().first() {
        reads.requests = column(row, 0, doing)?;
        reads.misses = column(row, 1, doing)?;
    }
    Ok(reads)
}

/// One reading of every table and index. A sequential scan of a table that is larger than a quarter of the buffers goes
/// through a small ring and leaves nothing there, so `pg_prewarm` is used wherever the server has it.
pub(super) async fn scans(session: &mut Session) -> Result<Vec<String>> {
    let prewarm = prewarm(session).await?;
    let doing = "list what is to be warmed";
    let sql = "SELECT nspname, pg_class.relname, relkind = 'i' FROM pg_class JOIN pg_namespace ON pg_namespace.oid = \
               relnamespace WHERE relkind IN ('r', 'm', 'i') AND relpersistence <> 't' AND nspname NOT IN ('pg_catalog', \
               'information_schema') AND nspname NOT LIKE 'pg\\_toast%' ORDER BY 1, 2";
    let rows = session.in_workload(STATEMENT_LIMIT, doing, sql, &[]).await?;
    let mut scans = Vec::new();
    for row in rows.unwrap_or_default() {
        let (schema, relation, index): (String, String, bool) = (
            column(&row, 0, doing)?,
            column(&row, 1, doing)?,
            column(&row, 2, doing)?,
        );
        let name = format!("{}.{}", identifier(&schema), identifier(&relation));
        if prewarm {
            scans.push(format!("SELECT public.pg_prewarm({}::regclass)", literal(&name)));
        } else if !index {
            // The planner chooses an index for the second.
            scans.push(format!(
                "SET enable_seqscan = on; SELECT count(*) FROM {name}; SET enable_seqscan = off; SELECT count(*) FROM {name}; \
                 SET enable_seqscan = on"
            ));
        }
    }
    Ok(scans)
}

/// Whether `pg_prewarm` can be used in the workload's database; made there if the server has it and we may.
async fn prewarm(session: &mut Session) -> Result<bool> {
    let doing = "look for pg_prewarm";
    let sql = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_prewarm'), EXISTS (SELECT FROM \
               pg_available_extensions WHERE name = 'pg_prewarm')";
    let rows = session.in_workload(STATEMENT_LIMIT, doing, sql, &[]).await?;
    let rows = rows.unwrap_or_default();
    let Some(row) = rows.first() else { return Ok(false) };
    let (made, shipped): (bool, bool) = (column(row, 0, doing)?, column(row, 1, doing)?);
    if made || !shipped {
        return Ok(made);
    }
    let sql = "CREATE EXTENSION IF NOT EXISTS pg_prewarm WITH SCHEMA public";
    match session
        .run_in_workload(STATEMENT_LIMIT, "make pg_prewarm", sql)
        .await
    {
        Ok(()) => Ok(true),
        Err(DatabaseError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the buffers that were dumped at the last shutdown have been loaded, as the server says at the begin of its
/// log; waited for, because it answers before it has loaded them.
pub(super) async fn dump_loaded(session: &mut Session) -> Result<bool> {
    let limit = Instant::now() + LOAD_LIMIT;
    let sql = "SELECT position('autoprewarm successfully prewarmed'::bytea IN pg_read_binary_file(pg_current_logfile(), 0, \
               65536)) > 0 WHERE current_setting('pg_prewarm.autoprewarm', true) = 'on' AND (pg_stat_file(\
               'autoprewarm.blocks', true)).size > 0";
    loop {
        let doing = "look whether the buffers were loaded";
        match session.home.one(doing, sql, &[]).await {
            Ok(Some(true)) => return Ok(true),
            Ok(Some(false)) if Instant::now() < limit => sleep(Duration::from_millis(200)).await,
            // A borrowed server's log may not be ours to read.
            Ok(_) | Err(DatabaseError::Refused { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
