//! What the buffer pool holds when load starts: empty, what was dumped, or the tables, scanned until reads hit.

use std::time::Duration;

use crds::load::CacheState;
use crds::run::CacheEvidence;
use tokio::time::Instant;

use crate::access::Result;
use crate::server::Server;

/// Share of reads that may miss in a scan of tables that are warm, parts per million.
const WARM_MISS_PPM: i64 = 10_000;
/// Bytes a second at which even a slow disk is read; bounds how long warming may take.
const SLOW_DISK: i64 = 20 << 20;
/// Scans after which more of them would only push out what the ones before brought in.
const SCANS: usize = 4;

/// Reads and misses of the buffer pool since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Logical reads.
    pub requests: i64,
    /// Reads that went to the disk.
    pub misses: i64,
    /// Pages with data; `None` where the server does not count them.
    pub pages: Option<i64>,
    /// Pages that hold nothing yet.
    pub free: i64,
}

/// Share of reads that missed between two looks, parts per million; `None` where nothing was read.
pub fn miss_ppm(before: Reads, after: Reads) -> Option<i64> {
    let requests = after.requests - before.requests;
    (requests > 0).then(|| (after.misses - before.misses).max(0) * 1_000_000 / requests)
}

/// Whether warming is over: the last scan hit.
pub fn warm(miss_ppm: Option<i64>) -> bool {
    miss_ppm.is_some_and(|ppm| ppm < WARM_MISS_PPM)
}

/// How long warming may take: the settle limit, or as long as a slow disk needs for the data twice.
pub fn limit(settle: Duration, table_bytes: i64, pool_bytes: i64) -> Duration {
    let bytes = table_bytes.min(pool_bytes.max(1)).max(0);
    settle.max(Duration::from_secs((2 * bytes / SLOW_DISK) as u64))
}

/// Brings the cache into the state wanted and says what it holds. `look_only` (no boot before this run) scans nothing.
pub(crate) async fn bring<S: Server>(
    session: &mut S,
    schema: &str,
    state: CacheState,
    look_only: bool,
    limit: Duration,
) -> Result<CacheEvidence> {
    let first = session.cache_reads(schema).await?;
    let mut evidence = CacheEvidence {
        reached: !look_only,
        miss_ppm: None,
        pages: first.pages,
    };
    match state {
        CacheState::Cold => {}
        CacheState::Dumped => {
            evidence.reached = session.dump_loaded().await?;
        }
        CacheState::Prewarmed if look_only => {
            // The runs before on this boot read the tables: nothing may be scanned now, what is there is recorded.
            evidence.reached = true;
        }
        CacheState::Prewarmed => {
            let statements = session.cache_scans(schema).await?;
            let (start, mut before) = (Instant::now(), first);
            evidence.reached = statements.is_empty();
            for _ in 0..SCANS {
                for statement in &statements {
                    let left = limit.saturating_sub(start.elapsed()).max(Duration::from_secs(1));
                    session
                        .run_within(left, "scan the tables into the cache", statement)
                        .await?;
                }
                let after = session.cache_reads(schema).await?;
                evidence.miss_ppm = miss_ppm(before, after);
                evidence.pages = after.pages;
                evidence.reached |= warm(evidence.miss_ppm);
                if evidence.reached || start.elapsed() >= limit {
                    break;
                }
                before = after;
            }
        }
    }
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_that_hits_is_warm_and_one_that_read_nothing_says_nothing() {
        let reads = |requests, misses| Reads {
            requests,
            misses,
            ..Reads::default()
        };
        assert_eq!(miss_ppm(reads(0, 0), reads(1000, 10)), Some(10_000));
        assert!(!warm(miss_ppm(reads(0, 0), reads(1000, 10))));
        assert!(warm(miss_ppm(reads(1000, 10), reads(2000, 19))));
        assert_eq!(miss_ppm(reads(5, 1), reads(5, 1)), None);
        assert!(!warm(None));
    }

    #[test]
    fn warming_may_take_as_long_as_a_slow_disk_needs() {
        let settle = Duration::from_mins(1);
        assert_eq!(limit(settle, 10 << 20, 1 << 30), settle);
        assert_eq!(limit(settle, 40 << 30, 20 << 30), Duration::from_secs(2048));
    }
}
