//! One session at a server, as everything in this crate that knows the order of steps sees it. What an engine family says
//! in its own SQL is behind this trait; the steps themselves (`establish`, `exclusive`, `settle`, `cache`, `calls`) exist
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::dataset::DatasetStatus;
use crds::environment::Environment;
use crds::parameter::Parameters;
use crds::target::{OriginalState, Permissions};

use crate::access::{Login, ParameterProblem, Result, ServerIdentity};
use crate::after::Counters;
use crate::audit::{Found, Statement};
use crate::cache::Reads;
use crate::catalogue::Catalogue;
use crate::marker::{Fence, Progress};
use crate::original::Left;
use crate::settle::Sample;

/// How often a session that waits for something else says that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// An open session. Each method is one question or one change; none decides anything.
pub(crate) trait Server: Sized + Send {
    /// Connects and logs in.
    fn open(login: &Login) -> impl Future<Output = Result<Self>> + Send;

    /// Says goodbye; a server that does not answer is left alone.
    fn close(self) -> impl Future<Output = ()> + Send;

    /// Runs a statement without values, rows discarded.
    fn run(&mut self, doing: &str, sql: &str) -> impl Future<Output = Result<u64>> + Send;

    /// The same for a statement that may take long.
    fn run_within(
        &mut self,
        limit: Duration,
        doing: &str,
        sql: &str,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Brings one setting in force and looks at what the server says of it: a value that it cut, changed or refused is a
    /// problem of `name`.
    fn apply(
        &mut self,
        name: &str,
        statement: &Statement,
    ) -> impl Future<Output = Result<Vec<ParameterProblem>>> + Send;

    /// Takes an advisory lock for this session; `false` if it was not free within the time.
    fn lock(&mut self, name: &str, patience: Duration) -> impl Future<Output = Result<bool>> + Send;

    /// Gives an advisory lock back; one that cannot be given back goes with the session.
    fn release(&mut self, name: &str) -> impl Future<Output = ()> + Send;

    /// Ends the session that holds an advisory lock, if one does. A session that has gone meanwhile, or is another
    /// login's, is left: what counts is whether the lock becomes free.
    fn end_holder(&mut self, name: &str) -> impl Future<Output = Result<()>> + Send;

    /// Makes the marker schema where the boot could not (borrowed servers).
    fn ensure_marker(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Makes the marker schema of a borrowed server and says in it whose it is, unless somebody has; whose it is then.
    fn own_marker(&mut self, owner: &str) -> impl Future<Output = Result<String>> + Send;

    /// Whose the marker schema of a borrowed server is; `None` where nobody said so.
    fn marker_owner(&mut self) -> impl Future<Output = Result<Option<String>>> + Send;

    /// Whether there is a marker schema.
    fn has_marker(&mut self) -> impl Future<Output = Result<bool>> + Send;

    /// Drops the marker schema.
    fn drop_marker(&mut self, limit: Duration) -> impl Future<Output = Result<()>> + Send;

    /// The statement by which a person drops the marker schema.
    fn drop_marker_by_hand() -> String {
        format!("DROP DATABASE {}", crate::marker::SCHEMA)
    }

    /// Fails, and says why, where a borrowed server could not be left as it was or its login may not do what borrowing
    /// takes. `names` are parameters that are set whatever a campaign asks for. Nothing is changed.
    fn borrowable(
        &mut self,
        _permissions: &Permissions,
        _names: &BTreeSet<String>,
    ) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// What is persisted of parameters, where setting one persists it. Empty where what is set lasts as long as the server
    /// runs: then values are put back, not texts.
    fn persisted(
        &mut self,
        _names: &BTreeSet<String>,
    ) -> impl Future<Output = Result<BTreeMap<String, Option<String>>>> + Send {
        async { Ok(BTreeMap::new()) }
    }

    /// Puts back what was persisted, and waits until it is in force.
    fn put_back(&mut self, _original: &OriginalState) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// What of that is still not as it was.
    fn not_put_back(&mut self, _original: &OriginalState) -> impl Future<Output = Result<Vec<Left>>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Takes out of data that is kept what an audit mechanism put there.
    fn leave_data(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// The fence row; `None` where there is no marker schema.
    fn read_fence(&mut self) -> impl Future<Output = Result<Option<Fence>>> + Send;

    /// Takes the fence row for a run if it admits it ([`Fence::admits`]) and no runner has started for it; gives the row
    /// as it is afterwards. What was proved before counts no more; a start is never undone.
    fn take_fence(&mut self, run_uid: &str, epoch: i64) -> impl Future<Output = Result<Fence>> + Send;

    /// Moves the fence row of a run from one state to the next; whether it was in the first.
    fn advance(
        &mut self,
        run: (&str, i64),
        from: Progress,
        to: Progress,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// What the marker says of a schema's data; `None` where nothing was finished there.
    fn read_dataset(&mut self, schema: &str) -> impl Future<Output = Result<Option<DatasetStatus>>> + Send;

    /// Says what a schema holds now, if the fence row still is the run's that made it; whether it was.
    fn write_dataset(
        &mut self,
        schema: &str,
        made: &DatasetStatus,
        run: (&str, i64),
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Says that a schema holds nothing that is finished.
    fn forget_dataset(&mut self, schema: &str) -> impl Future<Output = Result<()>> + Send;

    /// Whether a schema is the server's own: no data is made there.
    fn belongs_to_server(schema: &str) -> bool;

    /// Names of all schemas.
    fn schemas(&mut self) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Drops a schema that we made.
    fn drop_schema(&mut self, schema: &str, limit: Duration) -> impl Future<Output = Result<()>> + Send;

    /// Asks the server to end and to come back, where it can, or to end, where something brings it back.
    fn restart(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Drops the workload's schema and makes it again, empty.
    fn make_empty(&mut self, schema: &str, limit: Duration) -> impl Future<Output = Result<()>> + Send;

    /// Refreshes a table's statistics.
    fn analyse(
        &mut self,
        schema: &str,
        table: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Counts a table's rows, one by one.
    fn count_rows(
        &mut self,
        schema: &str,
        table: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<i64>> + Send;

    /// How many tables a schema has.
    fn table_count(&mut self, schema: &str) -> impl Future<Output = Result<i64>> + Send;

    /// Bytes of a schema's tables and indexes by the server's own figures.
    fn table_bytes(&mut self, schema: &str) -> impl Future<Output = Result<i64>> + Send;

    /// Who the server is.
    fn identify(&mut self, login: &Login) -> impl Future<Output = Result<ServerIdentity>> + Send;

    /// Variables, status and plugins.
    fn found(&mut self, login: &Login) -> impl Future<Output = Result<Found>> + Send;

    /// The catalogue of parameters. Whether a parameter can be set while the server runs need only be known of those
    /// `of_interest` (canonical names).
    fn catalogue(&mut self, of_interest: &BTreeSet<String>)
    -> impl Future<Output = Result<Catalogue>> + Send;

    /// What the server itself has against values that the catalogue cannot judge; nothing is set.
    fn objections(
        &mut self,
        catalogue: &Catalogue,
        wanted: &Parameters,
    ) -> impl Future<Output = Result<Vec<ParameterProblem>>> + Send;

    /// When the server started, seconds since 1970 by its own clock, from what was found a moment ago.
    fn started(&mut self, found: &Found) -> impl Future<Output = Result<i64>> + Send;

    /// Whether the server follows another; `None` where the login may not know.
    fn is_replica(&mut self) -> impl Future<Output = Result<Option<bool>>> + Send;

    /// Counters of the server; `audit_lost` is not its to say.
    fn counters(&mut self) -> impl Future<Output = Result<Counters>> + Send;

    /// The surroundings of a run as the server says them.
    fn surroundings(&self, found: &Found) -> Environment;

    /// A file's path relative to the volume of a managed server; `None` outside of it.
    fn on_volume(&self, found: &Found, path: &str) -> Option<String>;

    /// Begins what the server would otherwise do while load is measured.
    fn calm(&mut self, _limit: Duration) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// One look whether the server has settled; `at` and `node_dirty` are the caller's.
    fn sample(&mut self) -> impl Future<Output = Result<Sample>> + Send;

    /// Bytes that the server's cache may hold.
    fn cache_bytes(&self, catalogue: &Catalogue) -> Option<i64>;

    /// The cache's counters.
    fn cache_reads(&mut self, schema: &str) -> impl Future<Output = Result<Reads>> + Send;

    /// Statements that read every row and index of a schema once.
    fn cache_scans(&mut self, schema: &str) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Whether what was dumped at the last shutdown has been loaded.
    fn dump_loaded(&mut self) -> impl Future<Output = Result<bool>> + Send;

    /// Keeps the session open until something else has ended; fails soon after somebody else ended it.
    fn keep_while<T: Send>(
        &mut self,
        other: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T>> + Send {
        async move {
            let mut other = std::pin::pin!(other);
            loop {
                if let Ok(ended) = tokio::time::timeout(SIGN_OF_LIFE, &mut other).await {
                    return Ok(ended);
                }
                self.run("keep the session open", "SELECT 1").await?;
            }
        }
    }
}

/// Opens a session of a type, evaluates the expression with it, closes it, and gives the expression's result.
macro_rules! in_session {
    ($type:ty, $login:expr, $session:ident => $body:expr) => {{
        let mut opened = <$type as $crate::server::Server>::open($login).await?;
        let result = {
            let $session = &mut opened;
            $body
        };
        $crate::server::Server::close(opened).await;
        result
    }};
}
pub(crate) use in_session;
