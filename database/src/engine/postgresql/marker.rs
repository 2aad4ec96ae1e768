//! The marker schema, in the database `postgres`: the workload's own is dropped and made again.

use std::time::Duration;

use crds::dataset::DatasetStatus;
use tokio_postgres::types::Type;

use super::connection::{NO_SCHEMA, NO_TABLE, Wire, column, failed_with};
use super::session::key;
use crate::access::{DatabaseError, Result};
use crate::marker::{Fence, Progress, SCHEMA};

/// Name of the lock under which the owner's row is made.
const OWNING: &str = "benchmark_campaign_owner";

/// Statements that make the marker schema; repeating them changes nothing. The server's identity is that of its data.
pub(super) fn schema_statements() -> Vec<String> {
    vec![
        format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.fence (id bigint NOT NULL PRIMARY KEY, server_identity text NOT NULL, \
             holder text NOT NULL, epoch bigint NOT NULL, started bigint NOT NULL, updated_at timestamptz NOT NULL \
             DEFAULT now())"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.dataset (schema_name text NOT NULL PRIMARY KEY, hash text NOT NULL, \
             tables bigint NOT NULL, rows_per_table bigint NOT NULL, bytes bigint NOT NULL, made_at timestamptz NOT NULL \
             DEFAULT now())"
        ),
        format!(
            "INSERT INTO {SCHEMA}.fence (id, server_identity, holder, epoch, started) SELECT 1, system_identifier::text, \
             '', 0, 0 FROM pg_control_system() ON CONFLICT DO NOTHING"
        ),
    ]
}

/// Run at every boot of a managed server: what was proved, was proved on the boot before.
pub(super) fn forget_proof_statement() -> String {
    format!(
        "UPDATE {SCHEMA}.fence SET started = {} WHERE started = {}",
        Progress::Establishing.column(),
        Progress::Proved.column()
    )
}

pub(super) async fn ensure(wire: &mut Wire) -> Result<()> {
    for statement in schema_statements() {
        wire.run("make the marker schema", &statement).await?;
    }
    Ok(())
}

/// The first to write its row is the owner; everybody reads the same. Two at once wait for each other: making what is made
/// at the same time would fail.
pub(super) async fn own(wire: &mut Wire, owner: &str) -> Result<String> {
    let doing = "say whose the server is";
    let statements = format!(
        "SELECT pg_advisory_xact_lock({}); CREATE SCHEMA IF NOT EXISTS {SCHEMA}; CREATE TABLE IF NOT EXISTS {SCHEMA}.owner \
         (id bigint NOT NULL PRIMARY KEY, target_uid text NOT NULL)",
        key(OWNING)
    );
    // One message: the server makes one transaction of it.
    wire.run(doing, &statements).await?;
    let sql = format!("INSERT INTO {SCHEMA}.owner (id, target_uid) VALUES (1, $1) ON CONFLICT DO NOTHING");
    wire.rows(doing, &sql, &[(&owner, Type::TEXT)]).await?;
    self::owner(wire).await?.ok_or_else(|| DatabaseError::Statement {
        statement: doing.to_owned(),
        message: format!("{SCHEMA}.owner has no row 1"),
    })
}

pub(super) async fn owner(wire: &mut Wire) -> Result<Option<String>> {
    let doing = "read whose the server is";
    let sql = format!("SELECT target_uid FROM {SCHEMA}.owner WHERE id = 1");
    let rows = absent_if_no_table(wire.rows(doing, &sql, &[]).await)?;
    rows.first().map(|row| column(row, 0, doing)).transpose()
}

pub(super) async fn exists(wire: &mut Wire) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    let found = wire
        .one("look for the marker schema", sql, &[(&SCHEMA, Type::TEXT)])
        .await?;
    Ok(found.unwrap_or_default())
}

pub(super) async fn drop(wire: &mut Wire, limit: Duration) -> Result<()> {
    let sql = format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE");
    wire.run_within(limit, "drop the marker schema", &sql).await
}

pub(super) async fn read_fence(wire: &mut Wire) -> Result<Option<Fence>> {
    let doing = "read the fence row";
    let sql = format!("SELECT server_identity, holder, epoch, started FROM {SCHEMA}.fence WHERE id = 1");
    let Some(row) = absent_if_no_table(wire.rows(doing, &sql, &[]).await)?
        .into_iter()
        .next()
    else {
        return Ok(None);
    };
    Ok(Some(Fence {
        server_identity: column(&row, 0, doing)?,
        holder: column(&row, 1, doing)?,
        epoch: column(&row, 2, doing)?,
        progress: Progress::of_column(column(&row, 3, doing)?),
    }))
}

pub(super) async fn take_fence(wire: &mut Wire, run_uid: &str, epoch: i64) -> Result<Fence> {
    let sql = format!(
        "UPDATE {SCHEMA}.fence SET holder = $1, epoch = $2, started = {}, updated_at = now() WHERE id = 1 AND (epoch < $2 \
         OR (holder = $1 AND epoch = $2 AND started <> {}))",
        Progress::Establishing.column(),
        Progress::Started.column()
    );
    let values = [
        (&run_uid as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&epoch, Type::INT8),
    ];
    wire.rows("write the fence row", &sql, &values).await?;
    read_fence(wire).await?.ok_or_else(|| DatabaseError::Statement {
        statement: "write the fence row".to_owned(),
        message: format!("{SCHEMA}.fence has no row 1"),
    })
}

pub(super) async fn advance(
    wire: &mut Wire,
    (run_uid, epoch): (&str, i64),
    from: Progress,
    to: Progress,
) -> Result<bool> {
    let sql = format!(
        "UPDATE {SCHEMA}.fence SET started = {}, updated_at = now() WHERE id = 1 AND holder = $1 AND epoch = $2 AND \
         started = {} RETURNING id",
        to.column(),
        from.column()
    );
    let values = [
        (&run_uid as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&epoch, Type::INT8),
    ];
    let rows = wire.rows("write into the fence row", &sql, &values).await?;
    Ok(rows.len() == 1)
}

pub(super) async fn read_dataset(wire: &mut Wire, schema: &str) -> Result<Option<DatasetStatus>> {
    let doing = "read the dataset's marker";
    let sql =
        format!("SELECT hash, tables, rows_per_table, bytes FROM {SCHEMA}.dataset WHERE schema_name = $1");
    let rows = wire.rows(doing, &sql, &[(&schema, Type::TEXT)]).await;
    let Some(row) = absent_if_no_table(rows)?.into_iter().next() else {
        return Ok(None);
    };
    Ok(Some(DatasetStatus {
        hash: column(&row, 0, doing)?,
        tables: column(&row, 1, doing)?,
        rows_per_table: column(&row, 2, doing)?,
        bytes: column(&row, 3, doing)?,
    }))
}

pub(super) async fn write_dataset(
    wire: &mut Wire,
    schema: &str,
    made: &DatasetStatus,
    (run_uid, epoch): (&str, i64),
) -> Result<bool> {
    let sql = format!(
        "INSERT INTO {SCHEMA}.dataset (schema_name, hash, tables, rows_per_table, bytes) SELECT $1, $2, $3, $4, $5 FROM \
         {SCHEMA}.fence WHERE id = 1 AND holder = $6 AND epoch = $7 ON CONFLICT (schema_name) DO UPDATE SET hash = \
         excluded.hash, tables = excluded.tables, rows_per_table = excluded.rows_per_table, bytes = excluded.bytes, \
         made_at = now() RETURNING schema_name"
    );
    let values = [
        (&schema as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&made.hash, Type::TEXT),
        (&made.tables, Type::INT8),
        (&made.rows_per_table, Type::INT8),
        (&made.bytes, Type::INT8),
        (&run_uid, Type::TEXT),
        (&epoch, Type::INT8),
    ];
    let rows = wire.rows("write the dataset's marker", &sql, &values).await?;
    Ok(!rows.is_empty())
}

pub(super) async fn forget_dataset(wire: &mut Wire, schema: &str) -> Result<()> {
    let sql = format!("DELETE FROM {SCHEMA}.dataset WHERE schema_name = $1");
    wire.rows("remove the dataset's marker", &sql, &[(&schema, Type::TEXT)])
        .await
        .map(|_| ())
}

/// Without the table or its schema there is no marker.
fn absent_if_no_table<T>(rows: Result<Vec<T>>) -> Result<Vec<T>> {
    match rows {
        Err(error) if failed_with(&error, NO_TABLE) || failed_with(&error, NO_SCHEMA) => Ok(Vec::new()),
        other => other,
    }
}
