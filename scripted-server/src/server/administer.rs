//! Plugins, components, connections, locks, the end of the server.

use super::{Outcome, Result, Server, Session, Unloading, Value};
use crate::fault::Fault;
use crate::sql::Expression;

impl Server {
    fn may_write_mysql(&self, privilege: &str, table: &str) -> Result<()> {
        if self.account.has(privilege) {
            return Ok(());
        }
        Err(Fault::new(
            1142,
            "42000",
            format!(
                "{privilege} command denied to user '{}'@'localhost' for table '{table}'",
                self.account.user
            ),
        ))
    }

    pub(super) fn install_plugin(&mut self, name: &str, library: &str) -> Result<()> {
        self.may_write_mysql("INSERT", "plugin")?;
        let plugin = self.dialect.plugins.iter().find(|p| p.library == library);
        let Some(plugin) = plugin.filter(|_| !self.missing_libraries.contains(library)) else {
            return Err(Fault::new(
                1126,
                "HY000",
                format!(
                    "Can't open shared library '/usr/lib/mysql/plugin/{library}' (errno: 2 \
                     /usr/lib/mysql/plugin/{library}: cannot open shared object file: No such file or directory)"
                ),
            ));
        };
        if self.plugins.iter().any(|p| p.name.eq_ignore_ascii_case(name)) {
            return Err(Fault::new(
                1125,
                "HY000",
                format!("Function '{name}' already exists"),
            ));
        }
        if !plugin.name.eq_ignore_ascii_case(name) {
            return Err(Fault::new(
                1127,
                "HY000",
                format!("Can't find symbol '{name}' in library"),
            ));
        }
        self.plugins.push(plugin);
        for variable in plugin.variables {
            self.load_value(variable);
        }
        Ok(())
    }

    pub(super) fn uninstall_plugin(&mut self, name: &str) -> Result<()> {
        self.may_write_mysql("DELETE", "plugin")?;
        let Some(at) = self
            .plugins
            .iter()
            .position(|p| p.name.eq_ignore_ascii_case(name))
        else {
            return Err(Fault::new(1305, "42000", format!("PLUGIN {name} does not exist")));
        };
        let plugin = self.plugins[at];
        if let Unloading::TwiceIf(variable) = plugin.unloading {
            // is_remove_patches in the plugin's source.
            let allowed = self.globals.get(variable).and_then(Value::shown);
            if allowed.as_deref() != Some("ON") {
                let said = format!("Uninstall {} plugin disabled", plugin.name);
                return Err(Fault::new(1148, "42000", said));
            }
            if self.stopped.insert(plugin.name) {
                let said = format!(
                    "Uninstall {} plugin must be called again to complete",
                    plugin.name
                );
                return Err(Fault::new(1620, "HY000", said));
            }
        }
        self.plugins.remove(at);
        for variable in plugin.variables {
            self.globals.remove(variable.name);
            self.sources.remove(variable.name);
        }
        for (name, _) in plugin.status {
            self.status.remove(*name);
        }
        Ok(())
    }

    pub(super) fn install_component(&mut self, urn: &str) -> Result<()> {
        if !self.dialect.is_8() {
            return Err(Fault::syntax("COMPONENT"));
        }
        self.may_write_mysql("INSERT", "component")?;
        let Some(component) = self.dialect.components.iter().find(|c| c.urn == urn) else {
            let said = format!("Cannot load component from specified URN: '{urn}'.");
            return Err(Fault::new(3529, "HY000", said));
        };
        if !self.components.insert(component.urn) {
            let said = format!("Cannot load component from specified URN: '{urn}'.");
            return Err(Fault::new(3529, "HY000", said));
        }
        for variable in component.variables {
            self.load_value(variable);
        }
        Ok(())
    }

    pub(super) fn uninstall_component(&mut self, urn: &str) -> Result<()> {
        if !self.dialect.is_8() {
            return Err(Fault::syntax("COMPONENT"));
        }
        self.may_write_mysql("DELETE", "component")?;
        let Some(component) = self.dialect.components.iter().find(|c| c.urn == urn) else {
            return Err(not_loaded(urn));
        };
        if !self.components.remove(component.urn) {
            return Err(not_loaded(urn));
        }
        for variable in component.variables {
            self.globals.remove(variable.name);
            self.sources.remove(variable.name);
        }
        Ok(())
    }

    /// Every login is this account's, so that it may end its own sessions.
    pub(super) fn kill(&mut self, id: u32) -> Result<()> {
        if !self.connections.contains(&id) {
            return Err(Fault::new(1094, "HY000", format!("Unknown thread id: {id}")));
        }
        self.disconnect(id);
        Ok(())
    }

    pub(super) fn release_lock(
        &mut self,
        session: &Session,
        arguments: &[Expression],
        values: &[Value],
    ) -> Result<Value> {
        let name = self.lock_name(session, arguments, values)?;
        match self.locks.get(&name) {
            Some(holder) if *holder == session.id => {
                self.locks.remove(&name);
                Ok(Value::Integer(1))
            }
            Some(_) => Ok(Value::Integer(0)),
            None => Ok(Value::Null),
        }
    }

    /// `GET_LOCK`; `None`: another connection holds it.
    pub(super) fn get_lock(
        &mut self,
        session: &Session,
        arguments: &[Expression],
        values: &[Value],
    ) -> Result<Option<Value>> {
        let name = self.lock_name(session, arguments, values)?;
        // Since 5.7.5 a session may hold several.
        if self.dialect.numbers < (5, 7, 5) {
            self.locks.retain(|_, holder| *holder != session.id);
        }
        let holder = *self.locks.entry(name).or_insert(session.id);
        Ok((holder == session.id).then_some(Value::Integer(1)))
    }

    pub(super) fn lock_name(
        &self,
        session: &Session,
        arguments: &[Expression],
        values: &[Value],
    ) -> Result<String> {
        let name = arguments.first().ok_or_else(|| Fault::syntax(")"))?;
        Ok(self.value(session, name, values)?.shown().unwrap_or_default())
    }

    /// `RESTART`: needs the `SHUTDOWN` privilege and something that brings the server back.
    pub(super) fn restart(&mut self) -> Result<Outcome> {
        if !self.dialect.is_8() {
            return Err(Fault::syntax("RESTART"));
        }
        if !self.account.has("SHUTDOWN") {
            return Err(Fault::needs("SHUTDOWN"));
        }
        if !self.supervised {
            return Err(Fault::new(
                3707,
                "HY000",
                "Restart server failed (mysqld is not managed by supervisor process).",
            ));
        }
        Ok(Outcome::Ends(true))
    }

    /// `SHUTDOWN`, a statement since 5.7.9.
    pub(super) fn shutdown(&mut self) -> Result<Outcome> {
        if self.dialect.numbers < (5, 7, 9) {
            return Err(Fault::syntax("SHUTDOWN"));
        }
        if !self.account.has("SHUTDOWN") {
            return Err(Fault::needs("SHUTDOWN"));
        }
        Ok(Outcome::Ends(false))
    }
}

fn not_loaded(urn: &str) -> Fault {
    let said = format!("Component specified by URN '{urn}' to unload has not been loaded before.");
    Fault::new(3537, "HY000", said)
}
