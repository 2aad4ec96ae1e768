//! The marker schema in the family's SQL.

use crds::dataset::DatasetStatus;

use super::Session;
use crate::access::{DatabaseError, Result};
use crate::marker::{Fence, Progress, SCHEMA};

/// Statements that make the marker schema; repeating them changes nothing. The identity is drawn once, with the data.
pub(super) fn schema_statements() -> Vec<String> {
    vec![
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.fence (id TINYINT NOT NULL PRIMARY KEY, server_identity CHAR(36) \
             CHARACTER SET ascii NOT NULL, holder VARCHAR(64) CHARACTER SET ascii NOT NULL, epoch BIGINT NOT NULL, \
             started TINYINT NOT NULL, updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE \
             CURRENT_TIMESTAMP(6)) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.dataset (schema_name VARCHAR(64) NOT NULL PRIMARY KEY, hash \
             VARCHAR(64) CHARACTER SET ascii NOT NULL, tables BIGINT NOT NULL, rows_per_table BIGINT NOT NULL, bytes \
             BIGINT NOT NULL, made_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE=InnoDB"
        ),
        format!(
            "INSERT IGNORE INTO {SCHEMA}.fence (id, server_identity, holder, epoch, started) VALUES (1, UUID(), '', 0, 0)"
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

pub(super) async fn ensure(session: &mut Session) -> Result<()> {
    for statement in schema_statements() {
        session.query_drop("make the marker schema", &statement).await?;
    }
    Ok(())
}

/// The first to write its row is the owner; everybody reads the same.
pub(super) async fn own(session: &mut Session, owner: &str) -> Result<String> {
    let doing = "say whose the server is";
    for statement in [
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.owner (id TINYINT NOT NULL PRIMARY KEY, target_uid VARCHAR(64) CHARACTER \
             SET ascii NOT NULL) ENGINE=InnoDB"
        ),
    ] {
        session.query_drop(doing, &statement).await?;
    }
    let sql = format!("INSERT IGNORE INTO {SCHEMA}.owner (id, target_uid) VALUES (1, ?)");
    session.run_with(doing, &sql, (owner,)).await?;
    self::owner(session)
        .await?
        .ok_or_else(|| DatabaseError::Statement {
            statement: doing.to_owned(),
            message: format!("{SCHEMA}.owner has no row 1"),
        })
}

pub(super) async fn owner(session: &mut Session) -> Result<Option<String>> {
    let sql = format!("SELECT target_uid FROM {SCHEMA}.owner WHERE id = 1");
    let rows = session.rows::<String>("read whose the server is", &sql).await;
    Ok(absent_if_no_table(rows)?.into_iter().flatten().next())
}

pub(super) async fn read_fence(session: &mut Session) -> Result<Option<Fence>> {
    let sql = format!("SELECT server_identity, holder, epoch, started FROM {SCHEMA}.fence WHERE id = 1");
    let rows = session
        .rows::<(String, String, i64, i64)>("read the fence row", &sql)
        .await;
    Ok(absent_if_no_table(rows)?.into_iter().flatten().next().map(
        |(server_identity, holder, epoch, started)| Fence {
            server_identity,
            holder,
            epoch,
            progress: Progress::of_column(started),
        },
    ))
}

pub(super) async fn take_fence(session: &mut Session, run_uid: &str, epoch: i64) -> Result<Fence> {
    let sql = format!(
        "UPDATE {SCHEMA}.fence SET holder = ?, epoch = ?, started = {} WHERE id = 1 AND (epoch < ? OR (holder = ? AND \
         epoch = ? AND started <> {}))",
        Progress::Establishing.column(),
        Progress::Started.column()
    );
    session
        .run_with(
            "write the fence row",
            &sql,
            (run_uid, epoch, epoch, run_uid, epoch),
        )
        .await?;
    read_fence(session)
        .await?
        .ok_or_else(|| DatabaseError::Statement {
            statement: "write the fence row".to_owned(),
            message: format!("{SCHEMA}.fence has no row 1"),
        })
}

pub(super) async fn advance(
    session: &mut Session,
    (run_uid, epoch): (&str, i64),
    from: Progress,
    to: Progress,
) -> Result<bool> {
    let sql = format!(
        "UPDATE {SCHEMA}.fence SET started = {} WHERE id = 1 AND holder = ? AND epoch = ? AND started = {}",
        to.column(),
        from.column()
    );
    let changed = session
        .run_with("advance the fence row", &sql, (run_uid, epoch))
        .await?;
    Ok(changed == 1)
}

pub(super) async fn read_dataset(session: &mut Session, schema: &str) -> Result<Option<DatasetStatus>> {
    let sql =
        format!("SELECT hash, tables, rows_per_table, bytes FROM {SCHEMA}.dataset WHERE schema_name = ?");
    let rows = session
        .rows_with::<(String, i64, i64, i64)>("read the dataset's marker", &sql, (schema,))
        .await;
    Ok(absent_if_no_table(rows)?
        .into_iter()
        .flatten()
        .next()
        .map(|(hash, tables, rows_per_table, bytes)| DatasetStatus {
            hash,
            tables,
            rows_per_table,
            bytes,
        }))
}

pub(super) async fn write_dataset(
    session: &mut Session,
    schema: &str,
    made: &DatasetStatus,
    (run_uid, epoch): (&str, i64),
) -> Result<bool> {
    let sql = format!(
        "REPLACE INTO {SCHEMA}.dataset (schema_name, hash, tables, rows_per_table, bytes) SELECT ?, ?, ?, ?, ? FROM \
         {SCHEMA}.fence WHERE id = 1 AND holder = ? AND epoch = ?"
    );
    let values = (
        schema,
        &made.hash,
        made.tables,
        made.rows_per_table,
        made.bytes,
        run_uid,
        epoch,
    );
    let changed = session
        .run_with("write the dataset's marker", &sql, values)
        .await?;
    Ok(changed > 0)
}

pub(super) async fn forget_dataset(session: &mut Session, schema: &str) -> Result<()> {
    let sql = format!("DELETE FROM {SCHEMA}.dataset WHERE schema_name = ?");
    session
        .run_with("remove the dataset's marker", &sql, (schema,))
        .await?;
    Ok(())
}

/// 1146 (no such table) and 1049 (no such schema) mean that there is no marker.
fn absent_if_no_table<T>(rows: Result<Vec<T>>) -> Result<Option<Vec<T>>> {
    match rows {
        Ok(rows) => Ok(Some(rows)),
        Err(DatabaseError::Statement { message, .. })
            if message.starts_with("error 1146") || message.starts_with("error 1049") =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
