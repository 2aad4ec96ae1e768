//! What a campaign asks of a borrowed database, against what its owner permits. Each refusal says what would permit it.

use std::collections::BTreeSet;

use crds::audit::AuditType;
use crds::load::RestartWhen;
use crds::target::{Engine, External, RouteType};

use crate::matrix::Matrix;

/// Everything that the owner does not permit, one sentence each; empty where all is permitted.
pub(super) fn refused(matrix: &Matrix<'_>, instance: (usize, usize), external: &External) -> Vec<String> {
    let permissions = &external.permissions;
    let mut parameters = BTreeSet::new();
    let mut mechanisms = BTreeSet::new();
    for row in matrix.rows.iter().filter(|row| row.levels.instance() == instance) {
        parameters.extend(matrix.parameters(row.levels).parameters.into_keys());
        let audit = matrix.audit(row.levels);
        parameters.extend(audit.parameters.keys().cloned());
        mechanisms.insert(audit.type_);
    }
    let mut refused: Vec<String> = parameters
        .iter()
        .filter(|name| !permissions.permits_parameter(name))
        .map(|name| {
            format!(
                "its owner does not permit to change {name}: add it to spec.external.permissions.parameters of the target, \
                 or leave it out"
            )
        })
        .collect();
    refused.extend(
        mechanisms
            .iter()
            .filter(|type_| **type_ != AuditType::None && !permissions.audit.contains(type_))
            .map(|type_| {
                format!(
                    "its owner does not permit to switch {type_:?}: add it to spec.external.permissions.audit of the target, \
                     or leave it out"
                )
            }),
    );
    if permissions.dataset_schema.is_none() {
        refused.push(
            "its owner permits no schema to be made: set spec.external.permissions.datasetSchema of the target, such as \
             sbtest; it is dropped and made again"
                .to_owned(),
        );
    }
    if matrix.spec.restart.policy != RestartWhen::Never {
        let policy = matrix.spec.restart.policy;
        let route = external.restart.as_ref().map(|route| route.type_);
        let engine = matrix
            .spec
            .databases
            .get(instance.0)
            .map(|database| database.engine);
        if let Some(why) = engine
            .zip(route)
            .and_then(|(engine, route)| no_such_route(engine, route))
        {
            refused.push(why);
        } else if !permissions.restart {
            refused.push(format!(
                "restart.policy {policy:?} and its owner permits no restart: set spec.external.permissions.restart: true \
                 and spec.external.restart of the target, or use restart: {{policy: Never}}"
            ));
        } else if route.is_none() {
            refused.push(format!(
                "restart.policy {policy:?} and the target does not say how it is restarted: set spec.external.restart, or \
                 use restart: {{policy: Never}}"
            ));
        } else if route != Some(RouteType::Statement) {
            refused.push(format!(
                "spec.external.restart.type {:?}: this release restarts borrowed servers by type Statement only, or use \
                 restart: {{policy: Never}}",
                route.unwrap_or_default()
            ));
        }
    }
    if external.topology.is_some() {
        refused
            .push("spec.external.topology: this release does not look at replicas: leave it out".to_owned());
    }
    if let Some(hook) = [
        ("setParameters", external.hooks.set_parameters.is_some()),
        ("setAudit", external.hooks.set_audit.is_some()),
    ]
    .into_iter()
    .find_map(|(name, set)| set.then_some(name))
    {
        refused.push(format!(
            "spec.external.hooks.{hook}: this release sets parameters and audit by SQL only: leave it out"
        ));
    }
    refused
}

/// Why servers of an engine are not restarted by a route, if they are not.
fn no_such_route(engine: Engine, route: RouteType) -> Option<String> {
    (engine == Engine::PostgreSQL && route == RouteType::Statement).then(|| {
        "spec.external.restart.type Statement: no statement restarts a PostgreSQL server: use Workload, Job or Http, or \
         restart: {policy: Never}"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::expand;
    use crate::matrix::tests::changed;
    use crds::target::{Permissions, RestartRoute};
    use serde_json::json;

    fn words(external: &External, restart: &str) -> Vec<String> {
        let spec = changed(&[
            (
                "/databases/0",
                json!({"name": "borrowed", "engine": "MariaDB", "type": "External",
                       "external": {"targets": [{"instanceSize": "1u1g", "targetRef": {"name": "t"}}]}}),
            ),
            (
                "/instanceSizes",
                json!([{"name": "1u1g", "cpu": "1", "memory": "1Gi"}]),
            ),
            ("/restart/policy", json!(restart)),
        ]);
        let matrix = expand(&spec).unwrap();
        refused(&matrix, (0, 0), external)
    }

    #[test]
    fn nothing_is_permitted_until_the_owner_says_so() {
        let nothing = External::default();
        let said = words(&nothing, "BeforeEachArm");
        for part in [
            "change max_prepared_stmt_count: add it to spec.external.permissions.parameters",
            "switch ServerAudit: add it to spec.external.permissions.audit",
            "permissions.datasetSchema",
            "permissions.restart: true",
        ] {
            assert_eq!(
                said.iter().filter(|s| s.contains(part)).count(),
                1,
                "{part}: {said:#?}"
            );
        }
        assert_eq!(said.len(), 4, "{said:#?}");
    }

    #[test]
    fn no_statement_restarts_postgresql() {
        let why = no_such_route(Engine::PostgreSQL, RouteType::Statement);
        assert!(why.is_some_and(|why| why.contains("Workload, Job or Http")));
        assert_eq!(no_such_route(Engine::PostgreSQL, RouteType::Workload), None);
        assert_eq!(no_such_route(Engine::MySQL, RouteType::Statement), None);
    }

    #[test]
    fn what_is_permitted_is_not_refused() {
        let mut external = External {
            permissions: Permissions {
                parameters: vec!["max_*".to_owned()],
                audit: vec![AuditType::ServerAudit],
                restart: false,
                dataset_schema: Some("sbtest".to_owned()),
            },
            ..External::default()
        };
        assert_eq!(words(&external, "Never"), Vec::<String>::new());
        external.permissions.restart = true;
        assert!(words(&external, "BeforeEachArm")[0].contains("does not say how it is restarted"));
        external.restart = Some(RestartRoute::default());
        assert_eq!(words(&external, "BeforeEachArm"), Vec::<String>::new());
        external.topology = Some(crds::target::Topology::default());
        assert!(words(&external, "Never")[0].contains("spec.external.topology"));
        external.topology = None;
        external.restart = Some(RestartRoute {
            type_: RouteType::Workload,
            ..RestartRoute::default()
        });
        assert!(words(&external, "BeforeEachArm")[0].contains("type Statement only"));
    }
}
