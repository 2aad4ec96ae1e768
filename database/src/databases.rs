//! [`Databases`]: every engine behind one value. Each call finds the engine in the list and hands on.

use crds::audit::AuditSetting;
use crds::dataset::DatasetStatus;
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::{OriginalState, Permissions};
use futures::future::{BoxFuture, FutureExt as _};

use crate::access::{
    DatabaseAccess, EstablishOrder, Established, Login, ParameterProblem, Result, ServerIdentity,
};
use crate::after::{AfterRun, Counters};
use crate::engine::{self, EngineSupport};
use crate::marker::Claim;
use crate::original::{Captured, Left};

/// Real databases. Holds nothing: every call opens its own connection and closes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Databases;

fn support(login: &Login) -> Result<&'static dyn EngineSupport> {
    engine::find(login.connection.engine)
}

impl Databases {
    /// Claims the fence row for this start of a runner. Only [`Claim::Claimed`] may measure.
    pub async fn claim(&self, login: &Login, run_uid: &str, epoch: i64) -> Result<Claim> {
        support(login)?.claim(login, run_uid, epoch).await
    }

    /// Before data is made: takes the fence row, removes the marker, drops the schema and makes it again, empty.
    /// Anything but [`Claim::Claimed`] means that nothing was touched.
    pub async fn begin_dataset(&self, login: &Login, run_uid: &str, epoch: i64) -> Result<Claim> {
        support(login)?.begin_dataset(login, run_uid, epoch).await
    }

    /// After data was made and its rows were counted: refreshes statistics (ANALYZE) and writes the marker. `None`: the
    /// fence row is no longer this run's (UID, epoch), and no marker was written.
    pub async fn finish_dataset(
        &self,
        login: &Login,
        run: (&str, i64),
        hash: &str,
        tables: &[String],
        rows_per_table: i64,
    ) -> Result<Option<DatasetStatus>> {
        support(login)?
            .finish_dataset(login, run, hash, tables, rows_per_table)
            .await
    }

    /// Rows of each table, counted one by one (a tool's exit code does not say that its rows are there).
    pub async fn row_counts(&self, login: &Login, tables: &[String]) -> Result<Vec<i64>> {
        support(login)?.row_counts(login, tables).await
    }

    /// Counters now; the last thing that is asked before load begins.
    pub async fn counters(&self, login: &Login) -> Result<Counters> {
        support(login)?.counters(login).await
    }

    /// Everything that is asked when load has ended: boot, settings, counters.
    pub async fn after_run(&self, login: &Login, order: &RunOrder, before: &Counters) -> Result<AfterRun> {
        support(login)?.after_run(login, order, before).await
    }
}

impl DatabaseAccess for Databases {
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity>> {
        async move { support(login)?.identify(login).await }.boxed()
    }

    fn check<'a>(
        &'a self,
        login: &'a Login,
        parameters: &'a [Parameters],
        audit: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>> {
        async move { support(login)?.check(login, parameters, audit).await }.boxed()
    }

    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established>> {
        async move { support(login)?.establish(login, order).await }.boxed()
    }

    fn capture<'a>(
        &'a self,
        login: &'a Login,
        permissions: &'a Permissions,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Captured>> {
        async move { support(login)?.capture(login, permissions, owner).await }.boxed()
    }

    fn restore<'a>(
        &'a self,
        login: &'a Login,
        original: Option<&'a OriginalState>,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Left>>> {
        async move { support(login)?.restore(login, original, owner).await }.boxed()
    }

    fn restart<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<()>> {
        async move { support(login)?.restart(login).await }.boxed()
    }
}
