//! The targets of a campaign: what they are called, and what managed ones are made like.

use crds::campaign::BenchmarkCampaign;
use crds::names::LABEL_CAMPAIGN;
use crds::target::{Managed, Storage, TargetType};
use crds::{BenchmarkRun, BenchmarkTarget, BenchmarkTargetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource as _, ResourceExt as _};

use crate::budget::{Budget, engines};
use crate::matrix::relative::all_on_instance;
use crate::matrix::{Matrix, expand};
use crate::naming;

/// Names of all targets that a campaign uses, for observing; empty while its spec is refused.
pub fn target_names(campaign: &BenchmarkCampaign) -> Vec<String> {
    let Ok(matrix) = expand(&campaign.spec) else {
        return Vec::new();
    };
    matrix
        .instances()
        .into_iter()
        .map(|instance| name_of(campaign, &matrix, instance))
        .collect()
}

/// Name of the target of an instance.
pub(super) fn name_of(
    campaign: &BenchmarkCampaign,
    matrix: &Matrix<'_>,
    (database, size): (usize, usize),
) -> String {
    let database = &matrix.spec.databases[database];
    let size = &matrix.spec.instance_sizes[size];
    let borrowed = database.external.as_ref().and_then(|external| {
        external
            .targets
            .iter()
            .find(|target| target.instance_size == size.name)
    });
    match borrowed {
        Some(target) => target.target_ref.name.clone(),
        None => naming::target_name(
            &campaign.name_any(),
            &campaign.uid().unwrap_or_default(),
            &database.name,
            &size.name,
        ),
    }
}

/// The managed target of an instance; None for a borrowed one.
pub(super) fn managed(
    campaign: &BenchmarkCampaign,
    matrix: &Matrix<'_>,
    budget: &Budget,
    instance: (usize, usize),
) -> Option<BenchmarkTarget> {
    let database = &matrix.spec.databases[instance.0];
    let size = &matrix.spec.instance_sizes[instance.1];
    if database.type_ != TargetType::Managed {
        return None;
    }
    let managed = database.managed.as_ref()?;
    let given = budget.instances.get(&instance).copied().unwrap_or_default();
    let mut configuration = all_on_instance(&managed.configuration, database, size);
    if let Some(pool) = given.buffer_pool {
        let engine = engines::of(database.engine);
        configuration
            .entry(engine.pool.to_owned())
            .or_insert_with(|| engine.size_value(pool));
    }
    let spec = BenchmarkTargetSpec {
        engine: database.engine,
        type_: TargetType::Managed,
        expect: database.expect.clone(),
        managed: Some(Managed {
            image: managed.image.clone(),
            cpu: size.cpu.clone(),
            memory: size.memory.clone(),
            configuration,
            storage: managed.storage.clone(),
            log_storage: given.log_storage.map(|bytes| Storage {
                size: Quantity(format!(
                    "{}Mi",
                    bytes.div_euclid(1 << 20) + i64::from(bytes % (1 << 20) != 0)
                )),
                storage_class_name: managed.storage.storage_class_name.clone(),
            }),
            node_selector: managed.node_selector.clone(),
            tolerations: managed.tolerations.clone(),
            idle: matrix.spec.idle_targets,
            run_as_user: None,
        }),
        external: None,
    };
    let mut target = BenchmarkTarget::new(&name_of(campaign, matrix, instance), spec);
    target.metadata.namespace = campaign.namespace();
    target.metadata.owner_references = Some(vec![owner(campaign)]);
    target
        .labels_mut()
        .insert(LABEL_CAMPAIGN.to_owned(), campaign.name_any());
    Some(target)
}

/// The reference that makes an object go with its campaign.
pub(super) fn owner(campaign: &BenchmarkCampaign) -> OwnerReference {
    OwnerReference {
        api_version: BenchmarkCampaign::api_version(&()).into_owned(),
        kind: BenchmarkCampaign::kind(&()).into_owned(),
        name: campaign.name_any(),
        uid: campaign.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether the campaign owns a target.
pub(super) fn owned(campaign: &BenchmarkCampaign, target: &BenchmarkTarget) -> bool {
    let uid = campaign.uid().unwrap_or_default();
    target.owner_references().iter().any(|owner| owner.uid == uid)
}

/// Whether the campaign holds a target.
pub(super) fn holds(campaign: &BenchmarkCampaign, target: &BenchmarkTarget) -> bool {
    let uid = campaign.uid().unwrap_or_default();
    let holder = target.status.as_ref().and_then(|status| status.holder.as_ref());
    holder.is_some_and(|holder| !holder.uid.is_empty() && holder.uid == uid)
}

/// Marks a run as the campaign's.
pub(super) fn adopt(campaign: &BenchmarkCampaign, run: &mut BenchmarkRun) {
    run.metadata.namespace = campaign.namespace();
    run.metadata.owner_references = Some(vec![owner(campaign)]);
    let target = run.spec.target_ref.name.clone();
    let labels = run.labels_mut();
    labels.insert(LABEL_CAMPAIGN.to_owned(), campaign.name_any());
    labels.insert(crds::names::LABEL_TARGET.to_owned(), target);
}
