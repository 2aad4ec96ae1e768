//! What a run's Job must be, whatever the run asks for.

use crds::audit::AuditSetting;
use crds::load::{Cache, LoadGenerator, RestartPolicy, RunSettings};
use crds::run::{BenchmarkRunSpec, Cell, Visit};
use crds::runner::RunOrder;
use crds::target::{BenchmarkTargetSpec, Engine, LocalReference, TargetType};
use crds::workload::{Sysbench, Workload};

use super::*;
use crate::target::pod::tests::assert_restricted;

fn target() -> BenchmarkTarget {
    let spec = BenchmarkTargetSpec {
        engine: Engine::MariaDB,
        type_: TargetType::Managed,
        expect: None,
        managed: None,
        external: None,
    };
    BenchmarkTarget::new("audit-db", spec)
}

fn run(lua: Option<&str>) -> BenchmarkRun {
    let sysbench = Sysbench {
        lua_config_map: lua.map(str::to_owned),
        ..Sysbench::default()
    };
    let mut run = BenchmarkRun::new(
        "audit-1",
        BenchmarkRunSpec {
            target_ref: LocalReference {
                name: "audit-db".into(),
            },
            cell: Cell::default(),
            visit: Visit::default(),
            attempt: 1,
            seed: 1,
            parameters: crds::parameter::Parameters::new(),
            audit: AuditSetting::default(),
            workload: Workload {
                sysbench: Some(sysbench),
                ..Workload::default()
            },
            threads: 4,
            rows_per_table: 1,
            run: RunSettings::default(),
            restart: RestartPolicy::default(),
            restart_before: true,
            requires_boot: None,
            cache: Cache::default(),
            dataset: crds::dataset::DatasetPolicy::default(),
            load_generator: LoadGenerator::default(),
        },
    );
    run.metadata.namespace = Some("bench".into());
    run.metadata.uid = Some("run-uid".into());
    run.labels_mut().insert(LABEL_CAMPAIGN.into(), "audit".into());
    run
}

fn job(run: &BenchmarkRun, purpose: Purpose) -> Job {
    let order = serde_json::to_string(&RunOrder {
        run_uid: "run-uid".into(),
        ..RunOrder::default()
    })
    .unwrap();
    build(&Order {
        purpose,
        name: "audit-1",
        run,
        target: &target(),
        json: &order,
        runner_image: "runner:1",
        deadline_seconds: 1080,
        ttl_seconds: 600,
    })
}

#[test]
fn it_starts_once_and_fails_whole() {
    let job = job(&run(None), Purpose::Run);
    assert_eq!(job.owner_references()[0].uid, "run-uid");
    let spec = job.spec.unwrap();
    assert_eq!(
        (spec.backoff_limit, spec.completions, spec.parallelism),
        (Some(0), Some(1), Some(1))
    );
    assert_eq!(spec.pod_replacement_policy.as_deref(), Some("Failed"));
    assert_eq!(
        (spec.active_deadline_seconds, spec.ttl_seconds_after_finished),
        (Some(1080), Some(600))
    );
    let rule = &spec.pod_failure_policy.unwrap().rules[0];
    assert_eq!(rule.action, "FailJob");
    assert_eq!(
        rule.on_pod_conditions.as_ref().unwrap()[0].type_,
        "DisruptionTarget"
    );
    assert_eq!(
        spec.template.spec.unwrap().restart_policy.as_deref(),
        Some("Never")
    );
}

#[test]
fn it_is_restricted_and_knows_the_login_only_as_files() {
    let job = job(&run(Some("scripts")), Purpose::Run);
    let template = job.spec.unwrap().template;
    let spec = template.spec.unwrap();
    assert_restricted(&spec);
    let volumes = spec.volumes.unwrap();
    let credentials = volumes
        .iter()
        .find(|v| v.name == "credentials")
        .unwrap()
        .secret
        .as_ref()
        .unwrap();
    assert_eq!(credentials.secret_name.as_deref(), Some("audit-db"));
    let keys: Vec<&str> = credentials
        .items
        .as_ref()
        .unwrap()
        .iter()
        .map(|item| item.key.as_str())
        .collect();
    assert_eq!(
        keys,
        ["username", "password", "agent-token"],
        "not the SQL that makes the login"
    );
    let scratch = volumes
        .iter()
        .find(|v| v.name == "scratch")
        .unwrap()
        .empty_dir
        .as_ref()
        .unwrap();
    assert_eq!(
        scratch.medium.as_deref(),
        Some("Memory"),
        "what holds the login never reaches a disk"
    );
    let mounted: Vec<&String> = spec.containers[0]
        .volume_mounts
        .iter()
        .flatten()
        .map(|mount| &mount.name)
        .collect();
    assert_eq!(mounted.len(), volumes.len());
    assert!(
        mounted
            .iter()
            .all(|name| volumes.iter().any(|v| v.name == **name))
    );
}

#[test]
fn its_order_is_a_file_from_an_annotation_that_parses_back() {
    for purpose in [Purpose::Run, Purpose::Prepare] {
        let job = job(&run(None), purpose);
        let template = job.spec.unwrap().template;
        let metadata = template.metadata.unwrap();
        let order: RunOrder = serde_json::from_str(&metadata.annotations.unwrap()[ANNOTATION_ORDER]).unwrap();
        assert_eq!(order.run_uid, "run-uid");
        let labels = metadata.labels.unwrap();
        assert_eq!(labels[LABEL_ROLE], purpose.word());
        assert_eq!(
            (labels[LABEL_RUN].as_str(), labels[LABEL_CAMPAIGN].as_str()),
            ("audit-1", "audit")
        );
        let container = &template.spec.unwrap().containers[0];
        assert_eq!(container.args.as_ref().unwrap()[0], purpose.word());
        assert_eq!(container.image.as_deref(), Some("runner:1"));
        assert!(container.resources.as_ref().unwrap().limits.is_some());
    }
}

#[test]
fn several_generators_are_one_indexed_job_whose_first_pod_has_a_name() {
    let mut run = run(None);
    run.spec.load_generator.count = 3;
    let spec = job(&run, Purpose::Run).spec.unwrap();
    assert_eq!((spec.completions, spec.parallelism), (Some(3), Some(3)));
    assert_eq!(
        (spec.completion_mode.as_deref(), spec.backoff_limit),
        (Some("Indexed"), Some(0))
    );
    let pod = spec.template.spec.unwrap();
    let service = meeting_service(&target());
    assert_eq!(pod.subdomain, service.metadata.name);
    let service = service.spec.unwrap();
    let labels = spec.template.metadata.unwrap().labels.unwrap();
    let selector = service.selector.unwrap();
    assert!(selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    assert_eq!(service.publish_not_ready_addresses, Some(true));
    // One alone needs none of it, nor does what makes the data.
    let prepare = job(&run, Purpose::Prepare).spec.unwrap();
    assert_eq!((prepare.completions, prepare.completion_mode), (Some(1), None));
    run.spec.load_generator.count = 1;
    let alone = job(&run, Purpose::Run).spec.unwrap();
    assert_eq!(alone.template.spec.unwrap().subdomain, None);
}

#[test]
fn its_own_image_resources_and_node_are_the_runs() {
    let mut run = run(None);
    run.spec.load_generator.image = "own:2".into();
    run.spec
        .load_generator
        .node_selector
        .insert("role".into(), "client".into());
    let spec = job(&run, Purpose::Run).spec.unwrap().template.spec.unwrap();
    assert_eq!(spec.containers[0].image.as_deref(), Some("own:2"));
    assert_eq!(spec.node_selector.unwrap()["role"], "client");
}
