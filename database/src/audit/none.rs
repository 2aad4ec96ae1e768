//! No mechanism: nothing is installed and nothing records. An arm of its own, proved like the others.

use crds::audit::{AuditSetting, AuditState, AuditType};
use crds::target::Engine;

use super::{Found, Mechanism, Wanted};
use crate::access::ParameterProblem;
use crate::engine::Layout;

/// See the module.
pub(super) struct Nothing;

impl Mechanism for Nothing {
    fn kind(&self) -> AuditType {
        AuditType::None
    }
    fn engines(&self) -> &'static [Engine] {
        &[Engine::MariaDB, Engine::MySQL, Engine::PostgreSQL]
    }
    fn log_name(&self) -> Option<&'static str> {
        None
    }
    fn configuration(&self, _: Option<&AuditSetting>, _: &Layout) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        if setting.state == AuditState::InstalledOff {
            return vec![ParameterProblem {
                name: setting.name.clone(),
                message: format!(
                    "audit setting {}: state InstalledOff needs a mechanism to install: type None is the arm without one",
                    setting.name
                ),
            }];
        }
        Vec::new()
    }
    fn wanted(&self, _: &AuditSetting) -> Vec<Wanted> {
        Vec::new()
    }
    fn silenced(&self) -> Vec<Wanted> {
        Vec::new()
    }
    fn recording(&self, _: &Found) -> bool {
        false
    }
    fn log_path(&self, _: &Found) -> Option<String> {
        None
    }
    fn statement_classes(&self, _: &AuditSetting) -> Option<&'static [&'static str]> {
        None
    }
    fn classify(&self, _: &[u8]) -> Option<&'static str> {
        None
    }
}
