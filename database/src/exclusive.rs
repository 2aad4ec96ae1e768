//! One session at a time changes a server: an advisory lock in the database, which lives and dies with its session.
//! The fence row says who may; the lock says that nobody else is at it. Whoever has a higher epoch than the row ends the
//! session that holds the lock: once the lock is free, no statement of that session runs any more.

use std::time::Duration;

use crate::access::{DatabaseError, Result};
use crate::marker::Fence;
use crate::server::Server;

/// Name of the lock under which a server is changed.
pub(crate) const CHANGING: &str = "benchmark_campaign";
/// Name of the lock that a second session holds while it scans tables for the one that changes the server: whoever
/// comes next finds it by this name, and ends it.
pub(crate) const SCANNING: &str = "benchmark_campaign_scan";

/// How long a session that was ended may need to let go: its statement is rolled back first.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// What asking to change a server came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Nobody else changes the server until this session ends or gives the lock back.
    Granted,
    /// The fence row does not admit this run.
    Fenced {
        /// UID of the run that holds it.
        holder: String,
    },
}

/// Asks to change the server for a run. Another session of the same epoch is waited for as long as `patience`; one of a
/// lower epoch is ended. The fence row must be looked at again afterwards: the session before may have written it.
pub(crate) async fn acquire<S: Server>(
    session: &mut S,
    run_uid: &str,
    epoch: i64,
    patience: Duration,
) -> Result<Right> {
    if !session.lock(CHANGING, Duration::ZERO).await? {
        let fence = session.read_fence().await?;
        let granted = match standing(fence.as_ref(), run_uid, epoch) {
            Standing::Fenced(holder) => return Ok(Right::Fenced { holder }),
            Standing::Same => session.lock(CHANGING, patience).await?,
            Standing::Newer => {
                session.end_holder(CHANGING).await?;
                session.lock(CHANGING, TAKE_OVER).await?
            }
        };
        if !granted {
            return Err(DatabaseError::Busy(
                "another operator is establishing this run, or its session has not ended yet".to_owned(),
            ));
        }
    }
    // What an earlier holder had begun beside its own session.
    session.end_holder(SCANNING).await?;
    Ok(Right::Granted)
}

/// Does the work that changes the server, under the lock; `fenced` says what is answered where the row belongs to
/// another run, whose UID it is given.
pub(crate) async fn changing<S: Server, T>(
    session: &mut S,
    (run_uid, epoch): (&str, i64),
    patience: Duration,
    fenced: impl FnOnce(String) -> T,
    work: impl AsyncFnOnce(&mut S) -> Result<T>,
) -> Result<T> {
    match acquire(session, run_uid, epoch, patience).await? {
        Right::Granted => {
            let answer = work(session).await;
            session.release(CHANGING).await;
            answer
        }
        Right::Fenced { holder } => Ok(fenced(holder)),
    }
}

/// How a run stands to the one whose session holds the lock.
enum Standing {
    Fenced(String),
    Same,
    Newer,
}

fn standing(fence: Option<&Fence>, run_uid: &str, epoch: i64) -> Standing {
    match fence {
        Some(fence) if !fence.admits(run_uid, epoch) => Standing::Fenced(fence.holder.clone()),
        Some(fence) if epoch > fence.epoch => Standing::Newer,
        // Without a row the marker schema is being made at this moment.
        Some(_) | None => Standing::Same,
    }
}
