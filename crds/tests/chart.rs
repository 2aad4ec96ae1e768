//! The Helm chart, rendered by the real helm with every file of its folder `ci`: no permission too many, every pod
//! restricted, every image from the values. helm comes from the environment variable `HELM` or from the cache that
//! `cargo verify` fills.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

const CHART: &str = "charts/benchmark-campaign-operator";

/// The helm to use. Without one these tests fail: a chart that was not rendered was not tested.
fn helm() -> PathBuf {
    if let Some(helm) = std::env::var_os("HELM") {
        return helm.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    let folder = cache.join("benchmark-campaign/bin");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path().join("helm"))
        .filter(|helm| helm.is_file())
        .collect();
    found.sort_by_key(|helm| helm.metadata().and_then(|data| data.modified()).unwrap());
    found.pop().unwrap_or_else(|| {
        panic!(
            "no helm in {}: run `cargo verify`, which builds one there, or set HELM to the path of helm 3 or 4",
            folder.display()
        )
    })
}

/// What `helm template` prints, or what it says is wrong.
fn template(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(helm())
        .current_dir(admission::table::repository())
        .args(["template", "benchmark-campaign-operator", CHART])
        .args(["--namespace", "operator-namespace", "--kube-version", "1.33.0"])
        .args(arguments)
        .output()
        .expect("helm runs");
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn objects(arguments: &[&str]) -> Vec<Value> {
    let text = template(arguments).unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
    let documents: Vec<Value> = serde_yaml::from_multiple(&text).unwrap();
    documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect()
}

/// The default values and every file of `ci`, with what they render; rendered once for all tests.
fn variants() -> &'static [(String, Vec<Value>)] {
    static VARIANTS: LazyLock<Vec<(String, Vec<Value>)>> = LazyLock::new(render_variants);
    &VARIANTS
}

fn render_variants() -> Vec<(String, Vec<Value>)> {
    let folder = admission::table::repository().join(CHART).join("ci");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| format!("{CHART}/ci/{}", entry.unwrap().file_name().to_string_lossy()))
        .collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    let mut variants = vec![("default values".to_owned(), objects(&[]))];
    variants.extend(files.into_iter().map(|file| {
        let objects = objects(&["--values", &file]);
        (file, objects)
    }));
    variants
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    of_kind(objects, kind)
        .into_iter()
        .find(|object| object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn pods(objects: &[Value]) -> Vec<&Value> {
    objects
        .iter()
        .filter_map(|object| object.pointer("/spec/template/spec"))
        .filter(|spec| spec["containers"].is_array())
        .collect()
}

#[test]
fn no_rule_holds_a_wildcard_and_every_rule_says_what_it_is_for() {
    for (values, objects) in variants() {
        let mut rules = 0;
        for role in [of_kind(objects, "Role"), of_kind(objects, "ClusterRole")].concat() {
            for rule in role["rules"].as_array().unwrap() {
                for part in ["apiGroups", "resources", "verbs"] {
                    let names = texts(&rule[part]);
                    assert!(!names.is_empty(), "{values}: {part} of {rule}");
                    assert!(names.iter().all(|name| !name.contains('*')), "{values}: {rule}");
                }
                rules += 1;
            }
        }
        assert!(rules >= 8, "{values}: {rules} rules");
    }
    let folder = admission::table::repository().join(CHART).join("templates");
    for file in ["_helpers.tpl", "rbac/operator-namespace.yaml", "rbac/people.yaml"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let mut before = "";
        for line in text.lines() {
            if line.starts_with("- apiGroups") {
                assert!(before.starts_with("# "), "{file}: no comment before `{line}`");
            }
            before = line;
        }
    }
}

/// Secrets are read only where a `RoleBinding` says so, and are listed nowhere: a list would read all of them.
#[test]
fn secrets_are_never_read_cluster_wide_nor_listed() {
    for (values, objects) in variants() {
        let holds_secrets = |role: &Value| {
            role["rules"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|rule| texts(&rule["resources"]).contains(&"secrets"))
        };
        for binding in of_kind(objects, "ClusterRoleBinding") {
            let role = named(
                objects,
                "ClusterRole",
                binding["roleRef"]["name"].as_str().unwrap(),
            );
            assert!(!holds_secrets(role), "{values}: {binding}");
        }
        for role in of_kind(objects, "ClusterRole") {
            let aggregated = role["metadata"]["labels"]
                .as_object()
                .unwrap()
                .keys()
                .any(|label| label.starts_with("rbac.authorization.k8s.io/aggregate-to-"));
            assert!(!(aggregated && holds_secrets(role)), "{values}: {role}");
        }
        for role in [of_kind(objects, "Role"), of_kind(objects, "ClusterRole")].concat() {
            for rule in role["rules"].as_array().unwrap() {
                if texts(&rule["resources"]).contains(&"secrets") {
                    let verbs = texts(&rule["verbs"]);
                    assert!(
                        !verbs.contains(&"list") && !verbs.contains(&"watch"),
                        "{values}: {rule}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_namespaced_operator_has_no_permission_that_reaches_the_whole_cluster() {
    let values = format!("{CHART}/ci/namespaced-values.yaml");
    let objects = objects(&["--values", &values]);
    assert!(of_kind(&objects, "ClusterRoleBinding").is_empty());
    let mut bound: Vec<&str> = of_kind(&objects, "RoleBinding")
        .iter()
        .map(|binding| binding["metadata"]["namespace"].as_str().unwrap())
        .collect();
    bound.sort_unstable();
    assert_eq!(bound, ["bench", "operator-namespace", "team-b"]);
}

#[test]
fn a_cluster_wide_operator_reads_secrets_in_the_listed_namespaces_only() {
    let values = format!("{CHART}/ci/cluster-wide-values.yaml");
    let objects = objects(&["--values", &values]);
    assert_eq!(of_kind(&objects, "ClusterRoleBinding").len(), 1);
    let mut bound: Vec<&str> = of_kind(&objects, "RoleBinding")
        .iter()
        .filter(|binding| binding["roleRef"]["name"] == "benchmark-campaign-operator-secrets")
        .map(|binding| binding["metadata"]["namespace"].as_str().unwrap())
        .collect();
    bound.sort_unstable();
    assert_eq!(bound, ["bench", "team-b"]);
}

/// What the restricted pod security level asks, and more: a numeric user, a read-only root, resources.
#[test]
fn every_pod_is_restricted() {
    for (values, objects) in variants() {
        let pods = pods(objects);
        assert!(!pods.is_empty(), "{values}");
        for pod in pods {
            let context = &pod["securityContext"];
            assert_eq!(context["runAsNonRoot"], true, "{values}: {pod}");
            assert!(
                context["runAsUser"].as_i64().is_some_and(|user| user > 0),
                "{values}: {pod}"
            );
            assert_eq!(
                context["seccompProfile"]["type"], "RuntimeDefault",
                "{values}: {pod}"
            );
            for absent in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
                assert!(pod[absent].is_null(), "{values}: {absent} in {pod}");
            }
            for container in pod["containers"].as_array().unwrap() {
                let context = &container["securityContext"];
                assert_eq!(
                    context["allowPrivilegeEscalation"], false,
                    "{values}: {container}"
                );
                assert_eq!(context["readOnlyRootFilesystem"], true, "{values}: {container}");
                assert_eq!(
                    texts(&context["capabilities"]["drop"]),
                    ["ALL"],
                    "{values}: {container}"
                );
                for part in [
                    "/resources/requests/cpu",
                    "/resources/requests/memory",
                    "/resources/limits/memory",
                ] {
                    assert!(
                        container.pointer(part).is_some(),
                        "{values}: no {part} in {container}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_deployment_is_one_replica_recreated_with_probes_and_its_own_name() {
    for (values, objects) in variants() {
        let [deployment] = of_kind(objects, "Deployment")[..] else {
            panic!("{values}: not one Deployment");
        };
        assert_eq!(deployment["spec"]["replicas"], 1, "{values}");
        assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate", "{values}");
        let selector = deployment["spec"]["selector"]["matchLabels"].as_object().unwrap();
        let labels = deployment["spec"]["template"]["metadata"]["labels"]
            .as_object()
            .unwrap();
        assert!(
            selector.iter().all(|(key, value)| labels.get(key) == Some(value)),
            "{values}"
        );
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(
            container["livenessProbe"]["httpGet"]["path"], "/healthz",
            "{values}"
        );
        assert_eq!(
            container["readinessProbe"]["httpGet"]["path"], "/readyz",
            "{values}"
        );
        let variables: Vec<&str> = container["env"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        assert_eq!(variables, ["POD_NAME", "POD_NAMESPACE"], "{values}");
    }
}

#[test]
fn images_come_from_the_values_and_from_nowhere_else() {
    let set = "image.operator.repository=a.example/o,image.operator.tag=1,image.runner.repository=b.example/r,image.runner.tag=2";
    let objects = objects(&["--set-string", set, "--set", "watchNamespaces={bench}"]);
    let mut images = Vec::new();
    for pod in pods(&objects) {
        for container in pod["containers"].as_array().unwrap() {
            images.push(container["image"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        images,
        ["a.example/o:1", "a.example/o:1"],
        "the operator and the drain Job"
    );
    let deployment = of_kind(&objects, "Deployment")[0];
    let arguments = texts(&deployment["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(
        arguments.contains(&"--runner-image=b.example/r:2"),
        "{arguments:?}"
    );
    assert!(arguments.contains(&"--watch-namespaces=bench"), "{arguments:?}");
}

#[test]
fn an_uninstall_drains_first_and_keeps_the_definitions() {
    for (values, objects) in variants() {
        for job in of_kind(objects, "Job") {
            assert_eq!(
                job["metadata"]["annotations"]["helm.sh/hook"], "pre-delete",
                "{values}"
            );
            let container = &job["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(container["args"][0], "drain", "{values}");
        }
        for definition in of_kind(objects, "CustomResourceDefinition") {
            assert_eq!(
                definition["metadata"]["annotations"]["helm.sh/resource-policy"], "keep",
                "{values}"
            );
        }
    }
    let default = objects(&[]);
    assert_eq!(of_kind(&default, "Job").len(), 1);
    assert_eq!(of_kind(&default, "CustomResourceDefinition").len(), 4);
    let least = objects(&["--values", &format!("{CHART}/ci/least-values.yaml")]);
    assert_eq!(of_kind(&least, "Job").len(), 0);
    assert_eq!(of_kind(&least, "CustomResourceDefinition").len(), 0);
}

/// Helm reads braces in descriptions: what comes out must be what the generator wrote.
#[test]
fn the_chart_installs_exactly_the_definitions_of_the_types() {
    let objects = objects(&[]);
    for definition in crds::all() {
        let expected = serde_json::to_value(&definition).unwrap();
        let rendered = named(
            &objects,
            "CustomResourceDefinition",
            definition.metadata.name.as_deref().unwrap(),
        );
        assert_eq!(rendered["spec"], expected["spec"]);
    }
}

#[test]
fn a_misspelt_or_contradictory_value_is_refused() {
    for (set, said) in [
        ("watchNamespace={bench}", "watchNamespace"),
        ("image.operator.tga=1", "tga"),
        ("logFormat=xml", "logFormat"),
        ("watchNamespaces={Bench}", "watchNamespaces"),
        ("watchNamespaces={a},secretNamespaces={b}", "secretNamespaces"),
        ("drain.timeoutSeconds=1", "timeoutSeconds"),
    ] {
        let why = template(&["--set", set]).expect_err(set);
        assert!(why.contains(said), "{set}: {why}");
    }
    let values =
        std::fs::read_to_string(admission::table::repository().join(CHART).join("values.yaml")).unwrap();
    let values: Value = serde_yaml::from_str(&values).unwrap();
    let schema = std::fs::read_to_string(
        admission::table::repository()
            .join(CHART)
            .join("values.schema.json"),
    )
    .unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for name in values.as_object().unwrap().keys() {
        assert!(
            schema["properties"][name].is_object(),
            "{name} is not in values.schema.json"
        );
    }
}

#[test]
fn options_add_what_they_promise_and_nothing_before() {
    let default = objects(&["--set", "watchNamespaces={bench}"]);
    for kind in ["NetworkPolicy", "ServiceMonitor"] {
        assert!(of_kind(&default, kind).is_empty(), "{kind}");
    }
    let all = objects(&["--values", &format!("{CHART}/ci/everything-values.yaml")]);
    assert_eq!(of_kind(&all, "NetworkPolicy").len(), 3);
    assert_eq!(of_kind(&all, "ServiceMonitor").len(), 1);
    let service = named(&all, "Service", "campaigns-metrics");
    let deployment = named(&all, "Deployment", "campaigns");
    let selector = service["spec"]["selector"].as_object().unwrap();
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert!(selector.iter().all(|(key, value)| labels[key.as_str()] == *value));
}

#[test]
fn the_notes_name_the_next_command() {
    for (values, said) in [
        (
            "watchNamespaces={team}",
            vec![
                "kubectl apply --namespace team --filename examples/quickstart.yaml",
                "kubectl wait --namespace team",
            ],
        ),
        (
            "watchNamespaces=null",
            vec!["no campaign can run without", "secretNamespaces={NAMESPACE}"],
        ),
        (
            "secretNamespaces={bench}",
            vec![
                "secretNamespaces={bench,NAMESPACE}",
                "kubectl apply --namespace bench",
            ],
        ),
        (
            "watchNamespaces={team},crds.install=false",
            vec!["kubectl apply --server-side --filename crds/yaml"],
        ),
    ] {
        let output = Command::new(helm())
            .current_dir(admission::table::repository())
            .args([
                "install",
                "benchmark-campaign-operator",
                CHART,
                "--dry-run=client",
                "--namespace",
                "sys",
                "--set",
                values,
            ])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let notes = text
            .split("NOTES:")
            .nth(1)
            .unwrap_or_else(|| panic!("{values}: no notes: {}", String::from_utf8_lossy(&output.stderr)));
        for part in said {
            assert!(notes.contains(part), "{values}: `{part}` is not in {notes}");
        }
    }
}
