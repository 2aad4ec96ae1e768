//! One session at a time changes a server: an advisory lock in the database, which lives and dies with its session.
//! The fence row says who may; the lock says that nobody else is at it. Whoever has a higher epoch than the row ends the
//! session that holds the lock: once the lock is free, no statement of that session runs any more.

use std::time::Duration;

use crate::access::{DatabaseError, Result};
use crate::connection::Session;
use crate::marker::{self, Fence};

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
pub(crate) async fn acquire(
    session: &mut Session,
    run_uid: &str,
    epoch: i64,
    patience: Duration,
) -> Result<Right> {
    if !lock(session, CHANGING, Duration::ZERO).await? {
        let fence = marker::read_fence(session).await?;
        let granted = match standing(fence.as_ref(), run_uid, epoch) {
            Standing::Fenced(holder) => return Ok(Right::Fenced { holder }),
            Standing::Same => lock(session, CHANGING, patience).await?,
            Standing::Newer => {
                end_session(session, CHANGING).await?;
                lock(session, CHANGING, TAKE_OVER).await?
            }
        };
        if !granted {
            return Err(DatabaseError::Busy(
                "another operator is establishing this run, or its session has not ended yet".to_owned(),
            ));
        }
    }
    // What an earlier holder had begun beside its own session.
    end_session(session, SCANNING).await?;
    Ok(Right::Granted)
}

/// Does the work that changes the server, under the lock; `fenced` says what is answered where the row belongs to
/// another run, whose UID it is given.
pub(crate) async fn changing<T>(
    session: &mut Session,
    (run_uid, epoch): (&str, i64),
    patience: Duration,
    fenced: impl FnOnce(String) -> T,
    work: impl AsyncFnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    match acquire(session, run_uid, epoch, patience).await? {
        Right::Granted => {
            let answer = work(session).await;
            release(session, CHANGING).await;
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

/// Takes a lock for this session; `false` if it was not free within the time.
pub(crate) async fn lock(session: &mut Session, name: &str, patience: Duration) -> Result<bool> {
    let doing = "take the lock under which the server is changed";
    let sql = format!("SELECT GET_LOCK('{name}', {})", patience.as_secs());
    let limit = crate::connection::STATEMENT_LIMIT + patience;
    let answer: Vec<Option<i64>> = session.rows_within(limit, doing, &sql).await?;
    Ok(answer == [Some(1)])
}

/// Gives a lock back; one that cannot be given back goes with the session.
pub(crate) async fn release(session: &mut Session, name: &str) {
    let sql = format!("DO RELEASE_LOCK('{name}')");
    let _ = session.run("give the lock back", &sql).await;
}

/// Ends the session that holds a lock, if one does. A session that has gone meanwhile, or is another login's, is left:
/// what counts is whether the lock becomes free.
async fn end_session(session: &mut Session, name: &str) -> Result<()> {
    let sql = format!("SELECT CAST(IS_USED_LOCK('{name}') AS SIGNED)");
    let holder: Vec<Option<i64>> = session.rows("look who changes the server", &sql).await?;
    if let Some(connection) = holder.into_iter().flatten().next() {
        let _ = session
            .run("end an older session", &format!("KILL CONNECTION {connection}"))
            .await;
    }
    Ok(())
}
