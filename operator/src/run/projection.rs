//! What is kept in memory of runs, Jobs and pods: 10,000 finished runs would be 170 MB whole, and are a few as kept.
//! A finished run is never written again, so what is dropped here is never written back.

use std::collections::BTreeMap;

use crds::BenchmarkRun;
use crds::audit::AuditSetting;
use crds::load::LoadGenerator;
use crds::run::{BenchmarkRunStatus, Step};
use crds::workload::Workload;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt as _;

/// A run: whole while it is open; of a finished one, that it has finished and on which target.
pub(super) fn of_run(run: &mut BenchmarkRun) {
    run.managed_fields_mut().clear();
    if !run.has_ended() {
        return;
    }
    run.annotations_mut().clear();
    run.spec.parameters = BTreeMap::new();
    run.spec.audit = AuditSetting::default();
    run.spec.workload = Workload::default();
    run.spec.load_generator = LoadGenerator::default();
    run.spec.requires_boot = None;
    let status = run.status.take().unwrap_or_default();
    run.status = Some(BenchmarkRunStatus {
        step: Step::Finished,
        epoch: status.epoch,
        ..BenchmarkRunStatus::default()
    });
}

/// A Job: identity and status.
pub(super) fn of_job(job: &mut Job) {
    job.managed_fields_mut().clear();
    job.annotations_mut().clear();
    job.spec = Some(JobSpec::default());
}

/// A pod: identity, node and status.
pub(super) fn of_pod(pod: &mut Pod) {
    pod.managed_fields_mut().clear();
    pod.annotations_mut().clear();
    let node_name = pod.spec.take().and_then(|spec| spec.node_name);
    pod.spec = Some(PodSpec {
        node_name,
        ..PodSpec::default()
    });
}
