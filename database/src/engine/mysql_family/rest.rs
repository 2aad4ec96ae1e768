//! Settling and the buffer pool.

use super::{Session, identifier};
use crate::access::Result;
use crate::cache::Reads;
use crate::settle::Sample;

/// The status variables that a sample is made of, for dialects that have all of them there.
pub(crate) async fn status_sample(session: &mut Session) -> Result<Sample> {
    let rows: Vec<(String, String)> = session
        .rows(
            "look whether the server has settled",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_history_list_length', 'Innodb_checkpoint_age', \
             'Innodb_redo_log_current_lsn', 'Innodb_redo_log_checkpoint_lsn', 'Innodb_data_written', \
             'Innodb_os_log_written', 'Innodb_buffer_pool_load_status')",
        )
        .await?;
    let mut sample = Sample::default();
    let (mut current, mut checkpoint) = (None, None);
    for (name, value) in rows {
        let number: Option<i64> = value.parse().ok();
        match name.to_ascii_lowercase().as_str() {
            "innodb_history_list_length" => sample.history = number,
            "innodb_checkpoint_age" => sample.checkpoint_age = number,
            "innodb_redo_log_current_lsn" => current = number,
            "innodb_redo_log_checkpoint_lsn" => checkpoint = number,
            "innodb_data_written" | "innodb_os_log_written" => {
                sample.written = number.map(|n| n + sample.written.unwrap_or_default());
            }
            "innodb_buffer_pool_load_status" => sample.load_status = value,
            _ => {}
        }
    }
    sample.checkpoint_age = sample
        .checkpoint_age
        .or_else(|| current.zip(checkpoint).map(|(now, then)| now - then));
    Ok(sample)
}

/// One scan of every index of every table: the primary key holds the rows.
pub(super) async fn scans(session: &mut Session, schema: &str) -> Result<Vec<String>> {
    let indexes: Vec<(String, String)> = session
        .rows_with(
            "list the indexes to warm",
            "SELECT DISTINCT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND \
             INDEX_TYPE = 'BTREE' ORDER BY 1, INDEX_NAME = 'PRIMARY' DESC, 2",
            (schema,),
        )
        .await?;
    Ok(indexes
        .into_iter()
        .map(|(table, index)| {
            format!(
                "SELECT COUNT(*) FROM {}.{} FORCE INDEX ({})",
                identifier(schema),
                identifier(&table),
                identifier(&index)
            )
        })
        .collect())
}

pub(super) async fn load_completed(session: &mut Session) -> Result<bool> {
    let rows: Vec<(String, String)> = session
        .rows(
            "look whether the dump was loaded",
            "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'",
        )
        .await?;
    Ok(rows
        .iter()
        .any(|(_, status)| status.to_ascii_lowercase().contains("completed")))
}

pub(super) async fn reads(session: &mut Session) -> Result<Reads> {
    let rows: Vec<(String, String)> = session
        .rows(
            "read the cache's counters",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_buffer_pool_read_requests', \
             'Innodb_buffer_pool_reads', 'Innodb_buffer_pool_pages_data', 'Innodb_buffer_pool_pages_free')",
        )
        .await?;
    let mut reads = Reads::default();
    for (name, value) in rows {
        let number = value.parse().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "innodb_buffer_pool_read_requests" => reads.requests = number,
            "innodb_buffer_pool_reads" => reads.misses = number,
            "innodb_buffer_pool_pages_data" => reads.pages = Some(number),
            "innodb_buffer_pool_pages_free" => reads.free = number,
            _ => {}
        }
    }
    Ok(reads)
}
