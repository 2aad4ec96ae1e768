//! What a borrowed server had before the first change, and putting it back. Both only look at what may be changed: the
//! parameters that the owner permits and the variables of the audit mechanisms that the owner permits. Putting back can be
//! repeated from any point: each step looks first and does only what is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::audit::{AuditSetting, AuditType};
use crds::target::{Engine, OriginalState, Permissions};
use tokio::time::{Instant, sleep};

use crate::access::{DatabaseError, Login, Result};
use crate::audit::{self, Bound, Found, Mechanism, Statement};
use crate::catalogue::{Catalogue, Kind};
use crate::exclusive;
use crate::marker;
use crate::server::{Server, in_session};

/// How long a plugin that somebody still uses may need until it is gone.
const UNINSTALL_LIMIT: Duration = Duration::from_secs(10);
/// How long dropping a schema may take.
const DROP_LIMIT: Duration = Duration::from_mins(10);
/// How long the session of an operator that was there before may need to end.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// What came of borrowing a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// It is the target's, and this is what it had.
    Ours {
        /// What will be put back.
        state: Box<OriginalState>,
        /// Mechanisms that are there already and may not be switched: no arm without them could be measured.
        not_permitted: Vec<AuditType>,
    },
    /// Another target has it, perhaps of another cluster.
    Taken {
        /// UID of that target.
        owner: String,
    },
}

/// What could not be put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// What is not as it was, in words.
    pub what: String,
    /// The statement that a person can run.
    pub statement: String,
}

fn permitted(engine: Engine, permissions: &Permissions) -> Vec<&'static dyn Mechanism> {
    audit::mechanisms(engine)
        .filter(|m| permissions.audit.contains(&m.kind()))
        .collect()
}

/// Variables that switching a mechanism may change, whatever its setting.
fn variables_of(mechanism: &dyn Mechanism, found: &Found) -> BTreeSet<String> {
    let setting = AuditSetting {
        type_: mechanism.kind(),
        ..AuditSetting::default()
    };
    let own = mechanism.prefix().into_iter().flat_map(|prefix| {
        let names = found.variables.keys();
        names.filter(move |name| name.starts_with(prefix)).cloned()
    });
    let named = mechanism.wanted(&setting).into_iter().chain(mechanism.silenced());
    named
        .map(|wanted| wanted.name.to_owned())
        .chain(own)
        .filter(|name| found.variables.contains_key(name))
        .collect()
}

/// Variables of every mechanism that may be switched.
fn switches(engine: Engine, permissions: &Permissions, found: &Found) -> BTreeSet<String> {
    let mechanisms = permitted(engine, permissions);
    mechanisms.iter().flat_map(|m| variables_of(*m, found)).collect()
}

/// See [`crate::DatabaseAccess::capture`].
pub(crate) async fn capture<S: Server>(
    engine: Engine,
    login: &Login,
    permissions: &Permissions,
    owner: &str,
) -> Result<Captured> {
    in_session!(S, login, session => {
        let found = session.found(login).await?;
        let switches = switches(engine, permissions, &found);
        session.borrowable(permissions, &switches).await?;
        // Whoever reads the values must be the only one who changes them from then on.
        match session.own_marker(owner).await {
            Ok(whose) if whose == owner => capture_in(engine, login, permissions, session).await,
            Ok(whose) => Ok(Captured::Taken { owner: whose }),
            Err(error) => Err(error),
        }
    })
}

async fn capture_in<S: Server>(
    engine: Engine,
    login: &Login,
    permissions: &Permissions,
    session: &mut S,
) -> Result<Captured> {
    let found = session.found(login).await?;
    let permitted_names = found
        .variables
        .keys()
        .filter(|name| permissions.permits_parameter(name));
    let mut names: BTreeSet<String> = permitted_names.cloned().collect();
    names.extend(switches(engine, permissions, &found));
    let catalogue = session.catalogue(&names).await?;
    let settable = |name: &&String| {
        catalogue
            .get(name)
            .is_some_and(|v| !v.read_only && !v.fixed && !v.session_only)
    };
    let names: BTreeSet<String> = names.iter().filter(settable).cloned().collect();
    let parameters = names
        .iter()
        .map(|name| {
            let value = catalogue.get(name).map(|v| v.value.clone());
            (name.clone(), value.unwrap_or_default())
        })
        .collect();
    let active = found.plugins.iter().filter(|(_, status)| *status == "ACTIVE");
    let mut schemas = session.schemas().await?;
    schemas.retain(|schema| schema != marker::SCHEMA);
    Ok(Captured::Ours {
        not_permitted: audit::mechanisms(engine)
            .filter(|m| !permissions.audit.contains(&m.kind()))
            .filter(|m| m.recording(&found) || m.plugin().is_some_and(|p| found.plugin_active(p)))
            .map(Mechanism::kind)
            .collect(),
        state: Box::new(OriginalState {
            parameters,
            persisted: session.persisted(&names).await?,
            plugins: active.map(|(name, _)| name.clone()).collect(),
            schemas,
            ..OriginalState::default()
        }),
    })
}

/// See [`crate::DatabaseAccess::restore`].
pub(crate) async fn restore<S: Server>(
    engine: Engine,
    login: &Login,
    original: Option<&OriginalState>,
    owner: &str,
) -> Result<Vec<Left>> {
    in_session!(S, login, session => {
        if session.marker_owner().await?.is_some_and(|whose| whose != owner) {
            // Another target's: nothing here is ours to put back any more.
            return Ok(Vec::new());
        }
        // Whoever was at it before has lost the target; what it had begun must not go on beside this.
        if !session.lock(exclusive::CHANGING, Duration::ZERO).await? {
            session.end_holder(exclusive::CHANGING).await?;
            if !session.lock(exclusive::CHANGING, TAKE_OVER).await? {
                return Err(DatabaseError::Busy("another session still changes this server".to_owned()));
            }
        }
        session.end_holder(exclusive::SCANNING).await?;
        let left = match original {
            Some(original) => restore_in(engine, login, original, session).await,
            // It was said to be ours, and nothing else was done.
            None => session.drop_marker(DROP_LIMIT).await.map(|()| Vec::new()),
        };
        session.release(exclusive::CHANGING).await;
        left
    })
}

async fn restore_in<S: Server>(
    engine: Engine,
    login: &Login,
    original: &OriginalState,
    session: &mut S,
) -> Result<Vec<Left>> {
    // Plugins that an arm without them unloaded, so that their variables are there.
    let found = session.found(login).await?;
    for mechanism in unloaded_since(engine, &found, original) {
        for statement in mechanism.install(&found) {
            session.apply("plugin", &statement).await?;
        }
    }
    let catalogue = session.catalogue(&BTreeSet::new()).await?;
    for statement in parameters(&catalogue, original) {
        // What the server does not take is found by the read-back below.
        session.apply("original value", &statement).await?;
    }
    session.put_back(original).await?;
    let ours = installed_since(engine, &session.found(login).await?, original);
    for (_, statement) in &ours {
        let _ = session.run("unload a plugin", statement).await;
    }
    let until = Instant::now() + UNINSTALL_LIMIT;
    while !ours.is_empty()
        && Instant::now() < until
        && !installed_since(engine, &session.found(login).await?, original).is_empty()
    {
        sleep(Duration::from_millis(200)).await;
    }
    let data = login.connection.schema.as_str();
    let made = !data.is_empty()
        && data != marker::SCHEMA
        && !S::belongs_to_server(data)
        && !original.schemas.iter().any(|s| s == data)
        && session.schemas().await?.iter().any(|s| s == data);
    if made && original.retain {
        session.leave_data().await?;
    } else if made {
        session.drop_schema(data, DROP_LIMIT).await?;
    }
    // The marker says what the data is: it goes last.
    session.drop_marker(DROP_LIMIT).await?;
    left(engine, login, original, session).await
}

/// Parameters whose values are put back: of the others it is what was persisted.
fn by_value(original: &OriginalState) -> impl Iterator<Item = (&String, &String)> {
    let persisted = &original.persisted;
    original
        .parameters
        .iter()
        .filter(|(name, _)| !persisted.contains_key(*name))
}

/// Statements that put back the values that differ.
fn parameters(catalogue: &Catalogue, original: &OriginalState) -> Vec<Statement> {
    by_value(original)
        .filter_map(|(name, value)| {
            let variable = catalogue.get(name)?;
            if variable.value == *value {
                return None;
            }
            let bound = variable
                .bound(value)
                .unwrap_or_else(|_| Bound::Text(value.clone()));
            Some(Statement::set(name, bound))
        })
        .collect()
}

/// Mechanisms whose plugin was there and is not any more.
fn unloaded_since(engine: Engine, found: &Found, original: &OriginalState) -> Vec<&'static dyn Mechanism> {
    audit::mechanisms(engine)
        .filter(|m| {
            // What we cannot unload, we have not.
            m.uninstall().is_some()
                && m.plugin()
                    .is_some_and(|p| original.plugins.iter().any(|o| o == p) && !found.plugin_active(p))
        })
        .collect()
}

/// Plugins of ours that were not there, with the statement that unloads each.
fn installed_since(engine: Engine, found: &Found, original: &OriginalState) -> Vec<(String, String)> {
    let mut plugins: Vec<(String, String)> = audit::mechanisms(engine)
        .filter_map(|m| Some((m.plugin()?.to_owned(), m.uninstall()?)))
        .filter(|(plugin, _)| found.plugins.contains_key(plugin) && !original.plugins.contains(plugin))
        .collect();
    plugins.dedup();
    plugins
}

/// What is still not as it was.
async fn left<S: Server>(
    engine: Engine,
    login: &Login,
    original: &OriginalState,
    session: &mut S,
) -> Result<Vec<Left>> {
    let catalogue = session.catalogue(&BTreeSet::new()).await?;
    let mut left: Vec<Left> = by_value(original)
        .filter_map(|(name, value)| {
            let now = &catalogue.get(name)?.value;
            (now != value).then(|| Left {
                what: format!("{name} is `{now}`, it was `{value}`"),
                statement: set_by_hand(&catalogue, name, value),
            })
        })
        .collect();
    let plugins = installed_since(engine, &session.found(login).await?, original);
    left.extend(plugins.into_iter().map(|(plugin, statement)| Left {
        what: format!("plugin {plugin} is still loaded"),
        statement,
    }));
    let found = session.found(login).await?;
    left.extend(
        unloaded_since(engine, &found, original)
            .into_iter()
            .map(|mechanism| Left {
                what: format!(
                    "plugin {} is not loaded any more",
                    mechanism.plugin().unwrap_or_default()
                ),
                statement: mechanism
                    .install(&found)
                    .into_iter()
                    .map(|statement| match statement {
                        Statement::Sql(sql) => sql,
                        Statement::Set { name, .. } => name,
                    })
                    .collect::<Vec<_>>()
                    .join("; "),
            }),
    );
    left.extend(session.not_put_back(original).await?);
    let data = &login.connection.schema;
    let there = session.schemas().await?;
    if !original.retain && there.contains(data) && !original.schemas.contains(data) {
        left.push(Left {
            what: format!("schema {data} is still there"),
            statement: format!("DROP DATABASE {data}"),
        });
    }
    if session.has_marker().await? {
        left.push(Left {
            what: format!("schema {} is still there", marker::SCHEMA),
            statement: S::drop_marker_by_hand(),
        });
    }
    Ok(left)
}

/// The statement for a person: the value as a literal.
fn set_by_hand(catalogue: &Catalogue, name: &str, value: &str) -> String {
    let numeric = catalogue
        .get(name)
        .is_some_and(|v| matches!(v.kind, Kind::Integer | Kind::Real));
    if numeric {
        format!("SET GLOBAL {name} = {value}")
    } else {
        format!(
            "SET GLOBAL {name} = '{}'",
            value.replace('\\', "\\\\").replace('\'', "''")
        )
    }
}
