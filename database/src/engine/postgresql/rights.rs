//! Whether a borrowed server's parameters can be set by this login, and whether that would be seen: the grants it lacks,
//! and values of a role's or a database's own that hide the server's.

use std::collections::{BTreeMap, BTreeSet};

use crds::target::Permissions;
use tokio_postgres::types::Type;

use super::apply::parameter;
use super::connection::{Wire, column, identifier};
use super::lasting::{look, unready};
use super::session::Session;
use crate::access::{DatabaseError, Result};

/// First version in which a parameter can be granted.
const GRANTED: i32 = 150_000;

/// What a login may, as far as borrowing needs it.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // one a privilege
struct Rights {
    login: String,
    version: i32,
    superuser: bool,
    makes_databases: bool,
    makes_schemas: bool,
    reads_files: bool,
    reloads: bool,
    alter_system: bool,
    /// Parameters that it may not set with `ALTER SYSTEM`.
    refused: Vec<String>,
}

async fn rights(home: &mut Wire, names: &[&str]) -> Result<Rights> {
    let doing = "look what the login may";
    let sql = "SELECT rolname::text, current_setting('server_version_num')::int4, rolsuper, rolcreatedb OR rolsuper, \
               has_database_privilege(current_database(), 'CREATE'), has_table_privilege('pg_catalog.pg_file_settings', \
               'SELECT') AND has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE'), \
               has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE'), \
               coalesce(current_setting('allow_alter_system', true), 'on') = 'on' FROM pg_roles WHERE rolname = current_user";
    let rows = home.rows(doing, sql, &[]).await?;
    let row = rows.first().ok_or_else(|| DatabaseError::Statement {
        statement: doing.to_owned(),
        message: "no answer".to_owned(),
    })?;
    let mut rights = Rights {
        login: column(row, 0, doing)?,
        version: column(row, 1, doing)?,
        superuser: column(row, 2, doing)?,
        makes_databases: column(row, 3, doing)?,
        makes_schemas: column(row, 4, doing)?,
        reads_files: column(row, 5, doing)?,
        reloads: column(row, 6, doing)?,
        alter_system: column(row, 7, doing)?,
        refused: Vec::new(),
    };
    rights.refused = refused(home, &rights, names).await?;
    Ok(rights)
}

async fn refused(home: &mut Wire, rights: &Rights, names: &[&str]) -> Result<Vec<String>> {
    if rights.superuser {
        return Ok(Vec::new());
    }
    if rights.version < GRANTED {
        return Ok(names.iter().map(|name| (*name).to_owned()).collect());
    }
    let sql =
        "SELECT name FROM unnest($1::text[]) AS name WHERE NOT has_parameter_privilege(name, 'ALTER SYSTEM')";
    let doing = "look which parameters the login may set";
    let rows = home.rows(doing, sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    rows.iter().map(|row| column(row, 0, doing)).collect()
}

impl Rights {
    /// Statements that would give what is missing.
    fn missing(&self) -> Vec<String> {
        let login = identifier(&self.login);
        let lacks = [
            (self.makes_databases, format!("ALTER ROLE {login} CREATEDB")),
            (
                self.makes_schemas,
                format!("GRANT CREATE ON DATABASE postgres TO {login}"),
            ),
            (
                self.reads_files,
                format!(
                    "GRANT SELECT ON pg_file_settings TO {login}; GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO \
                     {login}"
                ),
            ),
            (
                self.reloads,
                format!("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {login}"),
            ),
        ];
        lacks
            .into_iter()
            .filter(|(there, _)| !there)
            .map(|(_, grant)| grant)
            .chain(self.missing_parameters())
            .collect()
    }

    fn missing_parameters(&self) -> Vec<String> {
        let login = identifier(&self.login);
        if self.version < GRANTED && !self.refused.is_empty() {
            return vec![format!(
                "ALTER ROLE {login} SUPERUSER (before PostgreSQL 15 nobody else may ALTER SYSTEM)"
            )];
        }
        let grant = |name: &String| format!("GRANT ALTER SYSTEM ON PARAMETER {} TO {login}", parameter(name));
        self.refused.iter().map(grant).collect()
    }
}

/// Values that a role or the workload's database has of its own: they hide what `ALTER SYSTEM` sets. By parameter, with
/// the statement that takes one away.
async fn overrides(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let doing = "look for values that a role or a database has of its own";
    let sql = "SELECT lower(split_part(entry, '=', 1)), CASE WHEN setrole = 0 AND setdatabase = 0 THEN 'ALTER ROLE ALL' WHEN \
               setrole = 0 THEN format('ALTER DATABASE %I', datname) WHEN setdatabase = 0 THEN format('ALTER ROLE %I', \
               rolname) ELSE format('ALTER ROLE %I IN DATABASE %I', rolname, datname) END FROM pg_db_role_setting LEFT JOIN \
               pg_database ON pg_database.oid = setdatabase LEFT JOIN pg_roles ON pg_roles.oid = setrole, \
               unnest(setconfig) AS entry WHERE (setrole = 0 OR rolname = session_user) AND (setdatabase = 0 OR datname = $1)";
    let database = session.database().to_owned();
    let rows = session.home.rows(doing, sql, &[(&database, Type::TEXT)]).await?;
    rows.iter()
        .map(|row| {
            let (name, whose): (String, String) = (column(row, 0, doing)?, column(row, 1, doing)?);
            let statement = format!("{whose} RESET {}", parameter(&name));
            Ok((name, statement))
        })
        .collect()
}

/// Why these parameters cannot be set with `ALTER SYSTEM` by this login, by name.
pub(super) async fn objections(session: &mut Session, names: &[&str]) -> Result<Vec<(String, String)>> {
    let rights = rights(&mut session.home, names).await?;
    let mut found: Vec<(String, String)> = rights
        .refused
        .iter()
        .zip(rights.missing_parameters().iter().cycle())
        .map(|(name, grant)| (name.clone(), format!("{grant} is missing")))
        .collect();
    let hidden = overrides(session).await?;
    found.extend(names.iter().filter_map(|name| {
        let statement = hidden.get(*name)?;
        let why = format!("a value of its own hides what is set for the server: {statement}");
        Some(((*name).to_owned(), why))
    }));
    Ok(found)
}

/// Why a server cannot be borrowed, all of it at once: `names` are set whatever a campaign asks for.
pub(super) async fn borrowable(
    session: &mut Session,
    permissions: &Permissions,
    names: &BTreeSet<String>,
) -> Result<()> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rights = rights(&mut session.home, &names).await?;
    let missing = rights.missing();
    if !missing.is_empty() {
        return Err(session.refused(format!("the login lacks privileges: {}", missing.join("; "))));
    }
    let mut unready = unready(&look(session).await?, permissions.restart);
    if !(rights.alter_system || names.is_empty() && permissions.parameters.is_empty()) {
        unready.push(
            "allow_alter_system is off, and parameters are set by ALTER SYSTEM: switch it on".to_owned(),
        );
    }
    let hidden = overrides(session).await?;
    unready.extend(names.iter().filter_map(|name| {
        let statement = hidden.get(*name)?;
        Some(format!(
            "{name} has a value of its own that hides the server's: {statement}"
        ))
    }));
    if unready.is_empty() {
        Ok(())
    } else {
        Err(DatabaseError::Unsupported(unready.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(version: i32, refused: &[&str]) -> Rights {
        Rights {
            login: "bench".to_owned(),
            version,
            makes_databases: true,
            makes_schemas: true,
            reads_files: true,
            reloads: true,
            alter_system: true,
            refused: refused.iter().map(|name| (*name).to_owned()).collect(),
            ..Rights::default()
        }
    }

    #[test]
    fn each_missing_privilege_is_a_statement_that_a_superuser_can_run() {
        assert_eq!(rights(170_000, &[]).missing(), [""; 0]);
        assert_eq!(
            rights(170_000, &["pgaudit.log", "work_mem"]).missing(),
            [
                "GRANT ALTER SYSTEM ON PARAMETER \"pgaudit\".\"log\" TO \"bench\"",
                "GRANT ALTER SYSTEM ON PARAMETER \"work_mem\" TO \"bench\"",
            ]
        );
        let old = rights(140_000, &["work_mem"]).missing();
        assert!(old.len() == 1 && old[0].contains("SUPERUSER"), "{old:?}");
        let none = Rights {
            login: "it's".to_owned(),
            version: 170_000,
            ..Rights::default()
        };
        let all = none.missing().join("; ");
        for word in [
            "CREATEDB",
            "ON DATABASE postgres",
            "pg_file_settings",
            "pg_reload_conf",
            "\"it's\"",
        ] {
            assert!(all.contains(word), "{word}: {all}");
        }
    }
}
