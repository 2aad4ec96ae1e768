//! The scripts of the conformance test and what a real API server (v1.36) answers.

use serde_json::{Value, json};

use super::{Bench, GROUP, Script, boxed};

const NONE: Value = Value::Null;

/// Every script, in the order in which they are run.
pub(crate) const SCRIPTS: &[Script] = &[
    Script {
        name: "create_and_replace",
        run: |bench| boxed(create_and_replace(bench)),
        expected: &[
            "POST configmaps 201 k=\"1\" generation=null",
            "POST configmaps 409 AlreadyExists",
            "GET configmaps/missing 404 NotFound name=\"missing\" kind=\"configmaps\"",
            "POST configmaps 422 Invalid metadata.name",
            "POST configmaps 201 generateName=\"gen-\"",
            "generated 5 letters after gen-",
            "PUT configmaps/a 200 k=\"2\"",
            "PUT configmaps/a 409 Conflict",
            "PUT configmaps/a 200",
            "an equal replace keeps the version: true",
            "PUT configmaps/a 200 k=\"3\"",
            "PUT configmaps/a 409 Conflict",
            "PUT configmaps/b 400 BadRequest",
            "PUT configmaps/missing 404 NotFound",
            "PUT samples/missing 404 NotFound",
            "POST samples 201",
            "PUT samples/s 422 Invalid metadata.resourceVersion",
            "POST configmaps?dryRun=All 201 k=\"1\"",
            "GET configmaps/dry 404 NotFound",
            "METADATA configmaps/a 200 kind=\"PartialObjectMetadata\" name=\"a\" data=null",
        ],
    },
    Script {
        name: "generation_and_status",
        run: |bench| boxed(generation_and_status(bench)),
        expected: &[
            "POST samples 201 generation=1 size=1 phase=null",
            "MERGE samples/g 200 generation=1 size=1 phase=null",
            "MERGE samples/g 200 generation=2 size=2 phase=null",
            "MERGE samples/g/status 200 generation=2 size=2 phase=\"Running\"",
            "MERGE samples/g 200 generation=2 size=2 phase=\"Running\"",
            "GET samples/g/status 200 generation=2 size=2 phase=\"Running\"",
            "MERGE samples/g/status 200 generation=2 size=2 phase=\"Running\"",
            "an equal patch keeps the version: true",
            "PUT samples/g/status 200 generation=2 size=2 phase=\"Done\"",
            "PUT samples/g/status 409 Conflict",
            "MERGE samples/missing/status 404 NotFound",
        ],
    },
    Script {
        name: "defaults_and_validation",
        run: |bench| boxed(defaults_and_validation(bench)),
        expected: &[
            "POST samples 201 spec={\"color\":\"red\",\"parts\":[{\"name\":\"p\",\"share\":1}],\"size\":1}",
            "POST samples?fieldValidation=Strict 400 BadRequest",
            "POST samples 422 Invalid spec.size <nil>",
            "POST samples 422 Invalid spec.size",
            "POST samples 422 Invalid spec.size",
            "POST samples 422 Invalid spec.size <nil>",
            "POST samples 422 Invalid spec.color <nil>",
            "POST samples 422 Invalid spec.name",
            "POST samples 422 Invalid spec.name <nil>",
            "POST samples 422 Invalid spec",
            "POST samples 422 Invalid spec.parts[1]",
            "POST samples 422 Invalid spec.parts[0].name <nil>",
            "MERGE samples/d/status 200 status={\"started\":true}",
            "MERGE samples/d 422 Invalid <nil>",
            "MERGE samples/d 200 color=\"blue\"",
            "MERGE samples/d 200 color=\"red\"",
            "MERGE samples/d/status 422 Invalid status.phase <nil>",
        ],
    },
    Script {
        name: "finalizers",
        run: |bench| boxed(finalizers(bench)),
        expected: &[
            "POST samples 201 finalizers=[\"example.com/one\",\"example.com/two\"]",
            "DELETE samples/f 200 kind=\"Sample\" generation=2 deletionGracePeriodSeconds=0",
            "marked: true",
            "DELETE samples/f 200 kind=\"Sample\"",
            "POST samples 409 AlreadyExists",
            "MERGE samples/f 422 Invalid metadata.finalizers metadata.finalizers",
            "MERGE samples/f 200 finalizers=[\"example.com/one\"]",
            "MERGE samples/f 200 generation=3",
            "MERGE samples/f 200 name=\"f\"",
            "GET samples/f 404 NotFound",
            "DELETE samples/f 404 NotFound",
        ],
    },
    Script {
        name: "delete_preconditions",
        run: |bench| boxed(delete_preconditions(bench)),
        expected: &[
            "POST configmaps 201",
            "DELETE configmaps/p 409 Conflict",
            "DELETE configmaps/p 409 Conflict",
            "DELETE configmaps/p 200 kind=\"Status\" status=\"Success\" name=\"p\"",
            "DELETE configmaps/p 404 NotFound",
            "POST configmaps 201",
            "POST configmaps 201",
            "POST configmaps 201",
            "DELETE configmaps?labelSelector=set%3Done 200 kind=\"ConfigMapList\"",
            "GET configmaps/x 404 NotFound",
            "GET configmaps/z 200",
        ],
    },
    Script {
        name: "patch_types",
        run: |bench| boxed(patch_types(bench)),
        expected: &[
            "POST configmaps 201",
            "MERGE configmaps/m 200 data={\"b\":\"2\",\"c\":\"3\"}",
            "JSONPATCH configmaps/m 200 data={\"b\":\"4\",\"c\":\"3\"}",
            "JSONPATCH configmaps/m 422 Invalid",
            "JSONPATCH configmaps/m 422 Invalid",
            "STRATEGIC configmaps/m 200 data={\"c\":\"3\",\"d\":\"5\"}",
            "MERGE configmaps/m 409 Conflict",
            "MERGE configmaps/m 400 BadRequest",
            "MERGE configmaps/missing 404 NotFound",
            "POST samples 201",
            "STRATEGIC samples/m 415 UnsupportedMediaType",
            "JSONPATCH samples/m 200 size=2",
            "JSONPATCH samples/m 422 Invalid spec.size",
        ],
    },
    Script {
        name: "server_side_apply",
        run: |bench| boxed(server_side_apply(bench)),
        expected: &[
            "APPLY configmaps/s 422 Invalid fieldManager",
            "APPLY configmaps/s?fieldManager=one 201 data={\"a\":\"1\",\"b\":\"1\"}",
            "APPLY configmaps/s?fieldManager=two 409 Conflict .data.a",
            "APPLY configmaps/s?fieldManager=two 200 data={\"a\":\"1\",\"b\":\"1\",\"c\":\"2\"}",
            "APPLY configmaps/s?fieldManager=two&force=true 200 data={\"a\":\"3\",\"b\":\"1\",\"c\":\"2\"}",
            "APPLY configmaps/s?fieldManager=one&force=true 200 data={\"a\":\"3\",\"c\":\"2\"}",
            "APPLY configmaps/s?fieldManager=one&force=true 200 data={\"a\":\"3\",\"c\":\"2\"}",
            "an equal apply keeps the version: true",
            "APPLY configmaps/s?fieldManager=two 200 data={\"a\":\"3\"}",
            "APPLY configmaps/s?fieldManager=two 400 BadRequest",
            "APPLY samples/s?fieldManager=one 201 parts=[{\"name\":\"a\",\"share\":1},{\"name\":\"b\",\"share\":1}] generation=1",
            "APPLY samples/s?fieldManager=two 200 parts=[{\"name\":\"a\",\"share\":1},{\"name\":\"b\",\"share\":1},{\"name\":\"c\",\"share\":2}] generation=2",
            "APPLY samples/s?fieldManager=one 200 parts=[{\"name\":\"b\",\"share\":1},{\"name\":\"c\",\"share\":2}] generation=3",
            "APPLY samples/s/status?fieldManager=one&force=true 200 status={\"phase\":\"Running\"} generation=3",
            "APPLY samples/s?fieldManager=one 200 parts=[{\"name\":\"c\",\"share\":2}] status={\"phase\":\"Running\"}",
            "APPLY samples/missing/status?fieldManager=one&force=true 404 NotFound",
        ],
    },
    Script {
        name: "lists",
        run: |bench| boxed(lists(bench)),
        expected: &[
            "POST samples 201",
            "POST samples 201",
            "POST samples 201",
            "GET samples 200 kind=\"SampleList\"",
            "a b c",
            "GET samples?labelSelector=tier%3Done 200 kind=\"SampleList\"",
            "a c",
            "GET samples?labelSelector=tier%20in%20(two) 200 kind=\"SampleList\"",
            "b",
            "GET samples?labelSelector=!tier 200 kind=\"SampleList\"",
            "",
            "GET samples?fieldSelector=metadata.name%3Db 200 kind=\"SampleList\"",
            "b",
            "GET samples?limit=2 200 remainingItemCount=1",
            "a b",
            "DELETE samples/c 200",
            "next page 200: c",
            "a bad token 400",
        ],
    },
    Script {
        name: "watches",
        run: |bench| boxed(watches(bench)),
        expected: &[
            "GET configmaps?labelSelector=watched%3Dyes 200 items=[]",
            "POST configmaps 201",
            "MERGE configmaps/w 200",
            "MERGE configmaps/w 200",
            "MERGE configmaps/w 200",
            "MERGE configmaps/w 200",
            "DELETE configmaps/w 200",
            "ADDED w",
            "MODIFIED w",
            "DELETED w",
            "ADDED w",
            "DELETED w",
            "POST configmaps 201",
            "ADDED w",
            "ADDED w",
            "ADDED w",
            "BOOKMARK -",
        ],
    },
    Script {
        name: "garbage",
        run: |bench| boxed(garbage(bench)),
        expected: &[
            "POST samples 201",
            "POST configmaps 201",
            "POST configmaps 201",
            "configmaps/child after 3 s 200",
            "DELETE samples/owner 200 status=\"Success\"",
            "configmaps/child became 404",
            "GET configmaps/held 200",
            "held is marked: true",
            "MERGE configmaps/held 200",
            "configmaps/held became 404",
            "POST configmaps 201",
            "configmaps/late became 404",
        ],
    },
    Script {
        name: "foreground",
        run: |bench| boxed(foreground(bench)),
        expected: &[
            "POST samples 201",
            "POST configmaps 201",
            "DELETE samples/owner 200 kind=\"Sample\" finalizers=[\"foregroundDeletion\"]",
            "samples/owner after 3 s 200",
            "MERGE configmaps/held 200",
            "configmaps/held became 404",
            "samples/owner became 404",
            "POST samples 201",
            "POST configmaps 201",
            "DELETE samples/parent 200 finalizers=[\"orphan\"]",
            "samples/parent became 404",
            "GET configmaps/stays 200 ownerReferences=null",
        ],
    },
    Script {
        name: "job_orphans",
        run: |bench| boxed(job_orphans(bench)),
        expected: &[
            "POST jobs 201 generation=1 parallelism=1 completionMode=\"NonIndexed\" podReplacementPolicy=\"TerminatingOrFailed\" terminationGracePeriodSeconds=30",
            "POST configmaps 201",
            "DELETE jobs/j 200",
            "jobs/j became 404",
            "configmaps/of-j after 3 s 200",
            "POST jobs 201",
            "POST configmaps 201",
            "DELETE jobs/k 200",
            "configmaps/of-k became 404",
        ],
    },
    Script {
        name: "namespace_ends",
        run: |bench| boxed(namespace_ends(bench)),
        expected: &[
            "POST /api/v1/namespaces/NAMESPACE-ends/configmaps 404 NotFound",
            "POST /api/v1/namespaces 201 finalizers=[\"kubernetes\"] phase=\"Active\"",
            "POST /api/v1/namespaces/NAMESPACE-ends/configmaps 201",
            "POST /api/v1/namespaces/NAMESPACE-ends/configmaps 201",
            "DELETE /api/v1/namespaces/NAMESPACE-ends 200 kind=\"Namespace\" phase=\"Terminating\"",
            "POST /api/v1/namespaces/NAMESPACE-ends/configmaps 403 Forbidden metadata.namespace",
            "/api/v1/namespaces/NAMESPACE-ends/configmaps/plain became 404",
            "MERGE /api/v1/namespaces/NAMESPACE-ends/configmaps/held 200",
            "/api/v1/namespaces/NAMESPACE-ends became 404",
        ],
    },
    Script {
        name: "immutability",
        run: |bench| boxed(immutability(bench)),
        expected: &[
            "POST secrets 201 data={\"a\":\"MQ==\"} stringData=null type=\"Opaque\"",
            "MERGE secrets/s 422 Invalid data",
            "MERGE secrets/s 200 labels={\"l\":\"1\"}",
            "POST configmaps 201",
            "MERGE configmaps/c 422 Invalid data",
            "POST jobs 201",
            "MERGE jobs/j 200 parallelism=2",
            "MERGE jobs/j 422 Invalid spec.completions",
            "POST jobs 422 Invalid spec.template.spec.restartPolicy",
            "DELETE jobs/j 200",
        ],
    },
    Script {
        name: "paths_and_names",
        run: |bench| boxed(paths_and_names(bench)),
        expected: &[
            "POST configmaps 422 Invalid metadata.name",
            "POST configmaps 422 Invalid metadata.name",
            "POST configmaps 422 Invalid metadata.labels",
            "POST configmaps/a 405 MethodNotAllowed",
            "PUT configmaps 405 MethodNotAllowed",
            "GET /apis/nothing.example.com/v1/things 404 -",
            "GET configmaps/a/status 404 NotFound",
            "POST configmaps 400 BadRequest",
            "POST configmaps 400 BadRequest",
        ],
    },
    Script {
        name: "leases",
        run: |bench| boxed(leases(bench)),
        expected: &[
            "POST leases 201 holderIdentity=\"one\"",
            "PUT leases/l 200 holderIdentity=\"two\"",
            "PUT leases/l 409 Conflict",
            "PUT leases/l 422 Invalid metadata.resourceVersion",
            "MERGE leases/l 200 holderIdentity=\"four\"",
        ],
    },
    Script {
        name: "unscheduled_pod",
        run: |bench| boxed(unscheduled_pod(bench)),
        expected: &[
            "POST pods 201 phase=\"Pending\" restartPolicy=\"Always\" terminationGracePeriodSeconds=30 qosClass=\"BestEffort\"",
            "MERGE pods/p 422 Invalid spec",
            "POST pods 422 Invalid spec.containers",
            "POST pods 422 Invalid spec.containers[0].volumeMounts[0].name",
            "DELETE pods/p 200 kind=\"Pod\" deletionGracePeriodSeconds=0",
            "GET pods/p 404 NotFound",
        ],
    },
];

fn configmap(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

fn sample(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Sample", "metadata": {"name": name}, "spec": spec})
}

fn owned_by(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }]);
    object
}

async fn create_and_replace(bench: &mut Bench) {
    let first = bench
        .call(
            "POST",
            "configmaps",
            configmap("a", "1"),
            &["/data/k", "/metadata/generation"],
        )
        .await;
    bench.call("POST", "configmaps", configmap("a", "2"), &[]).await;
    bench
        .call(
            "GET",
            "configmaps/missing",
            NONE,
            &["/details/name", "/details/kind"],
        )
        .await;
    bench
        .call("POST", "configmaps", json!({"metadata": {}}), &[])
        .await;
    let made = bench
        .call(
            "POST",
            "configmaps",
            json!({"metadata": {"generateName": "gen-"}}),
            &["/metadata/generateName"],
        )
        .await;
    let name = made["metadata"]["name"].as_str().unwrap_or_default();
    bench.note(format!(
        "generated {} letters after {}",
        name.len() - 4,
        &name[..4]
    ));
    let mut second = first.clone();
    second["data"]["k"] = json!("2");
    let stored = bench
        .call("PUT", "configmaps/a", second.clone(), &["/data/k"])
        .await;
    bench.call("PUT", "configmaps/a", second.clone(), &[]).await;
    let same = bench.call("PUT", "configmaps/a", stored.clone(), &[]).await;
    bench.note(format!(
        "an equal replace keeps the version: {}",
        same["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    ));
    second["metadata"]["resourceVersion"] = NONE;
    second["data"]["k"] = json!("3");
    bench
        .call("PUT", "configmaps/a", second.clone(), &["/data/k"])
        .await;
    second["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    bench.call("PUT", "configmaps/a", second.clone(), &[]).await;
    bench.call("PUT", "configmaps/b", second, &[]).await;
    bench
        .call("PUT", "configmaps/missing", configmap("missing", "1"), &[])
        .await;
    bench
        .call(
            "PUT",
            "samples/missing",
            sample("missing", &json!({"size": 1})),
            &[],
        )
        .await;
    bench
        .call("POST", "samples", sample("s", &json!({"size": 1})), &[])
        .await;
    bench
        .call("PUT", "samples/s", sample("s", &json!({"size": 2})), &[])
        .await;
    bench
        .call(
            "POST",
            "configmaps?dryRun=All",
            configmap("dry", "1"),
            &["/data/k"],
        )
        .await;
    bench.call("GET", "configmaps/dry", NONE, &[]).await;
    bench
        .call(
            "METADATA",
            "configmaps/a",
            NONE,
            &["/kind", "/metadata/name", "/data"],
        )
        .await;
}

async fn generation_and_status(bench: &mut Bench) {
    let show = &["/metadata/generation", "/spec/size", "/status/phase"];
    let mut object = sample("g", &json!({"size": 1}));
    object["status"] = json!({"phase": "ignored"});
    bench.call("POST", "samples", object, show).await;
    bench
        .call(
            "MERGE",
            "samples/g",
            json!({"metadata": {"labels": {"a": "b"}}}),
            show,
        )
        .await;
    bench
        .call("MERGE", "samples/g", json!({"spec": {"size": 2}}), show)
        .await;
    bench
        .call(
            "MERGE",
            "samples/g/status",
            json!({"status": {"phase": "Running"}, "spec": {"size": 3}}),
            show,
        )
        .await;
    bench
        .call(
            "MERGE",
            "samples/g",
            json!({"status": {"phase": "ignored"}}),
            show,
        )
        .await;
    let before = bench.call("GET", "samples/g/status", NONE, show).await;
    let after = bench
        .call(
            "MERGE",
            "samples/g/status",
            json!({"status": {"phase": "Running"}}),
            show,
        )
        .await;
    bench.note(format!(
        "an equal patch keeps the version: {}",
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    ));
    let mut stale = before.clone();
    stale["status"]["phase"] = json!("Done");
    bench.call("PUT", "samples/g/status", stale.clone(), show).await;
    bench.call("PUT", "samples/g/status", stale, &[]).await;
    bench
        .call("MERGE", "samples/missing/status", json!({"status": {}}), &[])
        .await;
}

async fn defaults_and_validation(bench: &mut Bench) {
    bench
        .call(
            "POST",
            "samples",
            sample("d", &json!({"size": 1, "odd": 1, "parts": [{"name": "p"}]})),
            &["/spec"],
        )
        .await;
    bench
        .call(
            "POST",
            "samples?fieldValidation=Strict",
            sample("e", &json!({"size": 1, "odd": 1})),
            &[],
        )
        .await;
    for spec in [
        json!({}),
        json!({"size": 0}),
        json!({"size": 10}),
        json!({"size": "1"}),
        json!({"size": 1, "color": "green"}),
        json!({"size": 2, "name": "A"}),
        json!({"size": 2, "name": "abcdef"}),
        json!({"size": 1, "name": "a"}),
        json!({"size": 1, "parts": [{"name": "p"}, {"name": "p"}]}),
        json!({"size": 1, "parts": [{}]}),
    ] {
        bench.call("POST", "samples", sample("e", &spec), &[]).await;
    }
    bench
        .call(
            "MERGE",
            "samples/d/status",
            json!({"status": {"started": true}}),
            &["/status"],
        )
        .await;
    bench
        .call("MERGE", "samples/d", json!({"spec": {"size": 2}}), &[])
        .await;
    bench
        .call(
            "MERGE",
            "samples/d",
            json!({"spec": {"color": "blue"}}),
            &["/spec/color"],
        )
        .await;
    bench
        .call(
            "MERGE",
            "samples/d",
            json!({"spec": {"color": null}}),
            &["/spec/color"],
        )
        .await;
    bench
        .call("MERGE", "samples/d/status", json!({"status": {"phase": 1}}), &[])
        .await;
}

async fn finalizers(bench: &mut Bench) {
    let mut object = sample("f", &json!({"size": 1}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    bench
        .call("POST", "samples", object, &["/metadata/finalizers"])
        .await;
    let deleted = bench
        .call(
            "DELETE",
            "samples/f",
            NONE,
            &[
                "/kind",
                "/metadata/generation",
                "/metadata/deletionGracePeriodSeconds",
            ],
        )
        .await;
    bench.note(format!(
        "marked: {}",
        deleted["metadata"]["deletionTimestamp"].is_string()
    ));
    bench.call("DELETE", "samples/f", NONE, &["/kind"]).await;
    bench
        .call("POST", "samples", sample("f", &json!({"size": 1})), &[])
        .await;
    bench
        .call(
            "MERGE",
            "samples/f",
            json!({"metadata": {"finalizers": ["example.com/one", "example.com/three"]}}),
            &[],
        )
        .await;
    bench
        .call(
            "MERGE",
            "samples/f",
            json!({"metadata": {"finalizers": ["example.com/one"]}}),
            &["/metadata/finalizers"],
        )
        .await;
    bench
        .call(
            "MERGE",
            "samples/f",
            json!({"spec": {"size": 2}}),
            &["/metadata/generation"],
        )
        .await;
    bench
        .call(
            "MERGE",
            "samples/f",
            json!({"metadata": {"finalizers": null}}),
            &["/metadata/name"],
        )
        .await;
    bench.call("GET", "samples/f", NONE, &[]).await;
    bench.call("DELETE", "samples/f", NONE, &[]).await;
}

async fn delete_preconditions(bench: &mut Bench) {
    let made = bench.call("POST", "configmaps", configmap("p", "1"), &[]).await;
    let wrong = json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}});
    bench.call("DELETE", "configmaps/p", wrong, &[]).await;
    bench
        .call(
            "DELETE",
            "configmaps/p",
            json!({"preconditions": {"resourceVersion": "1"}}),
            &[],
        )
        .await;
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}});
    bench
        .call(
            "DELETE",
            "configmaps/p",
            right,
            &["/kind", "/status", "/details/name"],
        )
        .await;
    bench.call("DELETE", "configmaps/p", NONE, &[]).await;
    for name in ["x", "y"] {
        let mut object = configmap(name, "1");
        object["metadata"]["labels"] = json!({"set": "one"});
        bench.call("POST", "configmaps", object, &[]).await;
    }
    bench.call("POST", "configmaps", configmap("z", "1"), &[]).await;
    bench
        .call("DELETE", "configmaps?labelSelector=set%3Done", NONE, &["/kind"])
        .await;
    bench.call("GET", "configmaps/x", NONE, &[]).await;
    bench.call("GET", "configmaps/z", NONE, &[]).await;
}

async fn patch_types(bench: &mut Bench) {
    bench
        .call(
            "POST",
            "configmaps",
            json!({"metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}}),
            &[],
        )
        .await;
    bench
        .call(
            "MERGE",
            "configmaps/m",
            json!({"data": {"a": null, "c": "3"}}),
            &["/data"],
        )
        .await;
    bench.call("JSONPATCH", "configmaps/m", json!([{"op": "test", "path": "/data/b", "value": "2"}, {"op": "replace", "path": "/data/b", "value": "4"}]), &["/data"]).await;
    bench
        .call(
            "JSONPATCH",
            "configmaps/m",
            json!([{"op": "test", "path": "/data/b", "value": "2"}]),
            &[],
        )
        .await;
    bench
        .call(
            "JSONPATCH",
            "configmaps/m",
            json!([{"op": "remove", "path": "/data/none"}]),
            &[],
        )
        .await;
    bench
        .call(
            "STRATEGIC",
            "configmaps/m",
            json!({"data": {"b": null, "d": "5"}}),
            &["/data"],
        )
        .await;
    bench
        .call(
            "MERGE",
            "configmaps/m",
            json!({"metadata": {"resourceVersion": "1"}, "data": {"e": "6"}}),
            &[],
        )
        .await;
    bench
        .call(
            "MERGE",
            "configmaps/m",
            json!({"metadata": {"name": "other"}}),
            &[],
        )
        .await;
    bench
        .call("MERGE", "configmaps/missing", json!({"data": {}}), &[])
        .await;
    bench
        .call("POST", "samples", sample("m", &json!({"size": 1})), &[])
        .await;
    bench
        .call("STRATEGIC", "samples/m", json!({"spec": {"size": 2}}), &[])
        .await;
    bench
        .call(
            "JSONPATCH",
            "samples/m",
            json!([{"op": "add", "path": "/spec/size", "value": 2}]),
            &["/spec/size"],
        )
        .await;
    bench
        .call(
            "JSONPATCH",
            "samples/m",
            json!([{"op": "add", "path": "/spec/size", "value": 20}]),
            &[],
        )
        .await;
}

async fn server_side_apply(bench: &mut Bench) {
    let applied = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": data});
    bench
        .call("APPLY", "configmaps/s", applied(json!({"a": "1"})), &[])
        .await;
    bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=one",
            applied(json!({"a": "1", "b": "1"})),
            &["/data"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=two",
            applied(json!({"a": "2"})),
            &[],
        )
        .await;
    bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=two",
            applied(json!({"a": "1", "c": "2"})),
            &["/data"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=two&force=true",
            applied(json!({"a": "3", "c": "2"})),
            &["/data"],
        )
        .await;
    let before = bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=one&force=true",
            applied(json!({"a": "3"})),
            &["/data"],
        )
        .await;
    let after = bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=one&force=true",
            applied(json!({"a": "3"})),
            &["/data"],
        )
        .await;
    bench.note(format!(
        "an equal apply keeps the version: {}",
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    ));
    bench
        .call(
            "APPLY",
            "configmaps/s?fieldManager=two",
            applied(json!({"a": "3"})),
            &["/data"],
        )
        .await;
    bench
        .call("APPLY", "configmaps/s?fieldManager=two", json!({"data": {}}), &[])
        .await;
    bench
        .call(
            "APPLY",
            "samples/s?fieldManager=one",
            sample("s", &json!({"size": 1, "parts": [{"name": "a"}, {"name": "b"}]})),
            &["/spec/parts", "/metadata/generation"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "samples/s?fieldManager=two",
            sample("s", &json!({"parts": [{"name": "c", "share": 2}]})),
            &["/spec/parts", "/metadata/generation"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "samples/s?fieldManager=one",
            sample("s", &json!({"size": 1, "parts": [{"name": "b"}]})),
            &["/spec/parts", "/metadata/generation"],
        )
        .await;
    let status = |phase: &str| json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Sample", "status": {"phase": phase}});
    bench
        .call(
            "APPLY",
            "samples/s/status?fieldManager=one&force=true",
            status("Running"),
            &["/status", "/metadata/generation"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "samples/s?fieldManager=one",
            sample("s", &json!({"size": 2})),
            &["/spec/parts", "/status"],
        )
        .await;
    bench
        .call(
            "APPLY",
            "samples/missing/status?fieldManager=one&force=true",
            status("Running"),
            &[],
        )
        .await;
}

async fn lists(bench: &mut Bench) {
    for (name, tier) in [("a", "one"), ("b", "two"), ("c", "one")] {
        let mut object = sample(name, &json!({"size": 1}));
        object["metadata"]["labels"] = json!({"tier": tier});
        bench.call("POST", "samples", object, &[]).await;
    }
    let names = |list: &Value| -> String {
        let items = list["items"].as_array().into_iter().flatten();
        items
            .filter_map(|item| item["metadata"]["name"].as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for query in [
        "",
        "?labelSelector=tier%3Done",
        "?labelSelector=tier%20in%20(two)",
        "?labelSelector=!tier",
        "?fieldSelector=metadata.name%3Db",
    ] {
        let list = bench
            .call("GET", &format!("samples{query}"), NONE, &["/kind"])
            .await;
        bench.note(names(&list));
    }
    let page = bench
        .call("GET", "samples?limit=2", NONE, &["/metadata/remainingItemCount"])
        .await;
    bench.note(names(&page));
    let token = page["metadata"]["continue"]
        .as_str()
        .unwrap_or_default()
        .replace('/', "%2F")
        .replace('=', "%3D")
        .replace('+', "%2B");
    bench.call("DELETE", "samples/c", NONE, &[]).await;
    let (code, rest) = bench
        .send("GET", &format!("samples?limit=2&continue={token}"), None)
        .await;
    bench.note(format!("next page {code}: {}", names(&rest)));
    let (code, _) = bench.send("GET", "samples?limit=2&continue=nonsense", None).await;
    bench.note(format!("a bad token {code}"));
}

async fn watches(bench: &mut Bench) {
    let list = bench
        .call("GET", "configmaps?labelSelector=watched%3Dyes", NONE, &["/items"])
        .await;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut object = configmap("w", "1");
    bench.call("POST", "configmaps", object.clone(), &[]).await;
    bench
        .call(
            "MERGE",
            "configmaps/w",
            json!({"metadata": {"labels": {"watched": "yes"}}}),
            &[],
        )
        .await;
    bench
        .call("MERGE", "configmaps/w", json!({"data": {"k": "2"}}), &[])
        .await;
    bench
        .call(
            "MERGE",
            "configmaps/w",
            json!({"metadata": {"labels": {"watched": null}}}),
            &[],
        )
        .await;
    bench
        .call(
            "MERGE",
            "configmaps/w",
            json!({"metadata": {"labels": {"watched": "yes"}}}),
            &[],
        )
        .await;
    bench.call("DELETE", "configmaps/w", NONE, &[]).await;
    bench
        .watch(
            &format!(
                "configmaps?watch=true&resourceVersion={version}&labelSelector=watched%3Dyes&timeoutSeconds=5"
            ),
            5,
        )
        .await;
    object["metadata"]["labels"] = json!({"watched": "yes"});
    bench.call("POST", "configmaps", object, &[]).await;
    bench
        .watch(
            "configmaps?watch=true&labelSelector=watched%3Dyes&timeoutSeconds=5",
            1,
        )
        .await;
    bench
        .watch(
            "configmaps?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dw&timeoutSeconds=5",
            1,
        )
        .await;
    bench.watch("configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dw&timeoutSeconds=5", 2).await;
}

async fn garbage(bench: &mut Bench) {
    let owner = bench
        .call("POST", "samples", sample("owner", &json!({"size": 1})), &[])
        .await;
    bench
        .call(
            "POST",
            "configmaps",
            owned_by(configmap("child", "1"), &owner),
            &[],
        )
        .await;
    let mut held = owned_by(configmap("held", "1"), &owner);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    bench.call("POST", "configmaps", held, &[]).await;
    bench.stays("configmaps/child").await;
    bench.call("DELETE", "samples/owner", NONE, &["/status"]).await;
    bench.wait_for("configmaps/child", 404).await;
    let held = bench.call("GET", "configmaps/held", NONE, &[]).await;
    bench.note(format!(
        "held is marked: {}",
        held["metadata"]["deletionTimestamp"].is_string()
    ));
    bench
        .call(
            "MERGE",
            "configmaps/held",
            json!({"metadata": {"finalizers": null}}),
            &[],
        )
        .await;
    bench.wait_for("configmaps/held", 404).await;
    // An owner that is already gone: collected as well.
    bench
        .call(
            "POST",
            "configmaps",
            owned_by(configmap("late", "1"), &owner),
            &[],
        )
        .await;
    bench.wait_for("configmaps/late", 404).await;
}

async fn foreground(bench: &mut Bench) {
    let owner = bench
        .call("POST", "samples", sample("owner", &json!({"size": 1})), &[])
        .await;
    let mut held = owned_by(configmap("held", "1"), &owner);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    bench.call("POST", "configmaps", held, &[]).await;
    bench
        .call(
            "DELETE",
            "samples/owner",
            json!({"propagationPolicy": "Foreground"}),
            &["/kind", "/metadata/finalizers"],
        )
        .await;
    bench.stays("samples/owner").await;
    bench
        .call(
            "MERGE",
            "configmaps/held",
            json!({"metadata": {"finalizers": null}}),
            &[],
        )
        .await;
    bench.wait_for("configmaps/held", 404).await;
    bench.wait_for("samples/owner", 404).await;
    let owner = bench
        .call("POST", "samples", sample("parent", &json!({"size": 1})), &[])
        .await;
    bench
        .call(
            "POST",
            "configmaps",
            owned_by(configmap("stays", "1"), &owner),
            &[],
        )
        .await;
    bench.pause().await;
    bench
        .call(
            "DELETE",
            "samples/parent",
            json!({"propagationPolicy": "Orphan"}),
            &["/metadata/finalizers"],
        )
        .await;
    bench.wait_for("samples/parent", 404).await;
    bench
        .call("GET", "configmaps/stays", NONE, &["/metadata/ownerReferences"])
        .await;
}

fn suspended_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"suspend": true, "backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "localhost/none"}],
        }}},
    })
}

async fn job_orphans(bench: &mut Bench) {
    let job = bench
        .call(
            "POST",
            "jobs",
            suspended_job("j"),
            &[
                "/metadata/generation",
                "/spec/parallelism",
                "/spec/completionMode",
                "/spec/podReplacementPolicy",
                "/spec/template/spec/terminationGracePeriodSeconds",
            ],
        )
        .await;
    bench
        .call("POST", "configmaps", owned_by(configmap("of-j", "1"), &job), &[])
        .await;
    bench.pause().await;
    bench.call("DELETE", "jobs/j", NONE, &[]).await;
    bench.wait_for("jobs/j", 404).await;
    bench.stays("configmaps/of-j").await;
    let job = bench.call("POST", "jobs", suspended_job("k"), &[]).await;
    bench
        .call("POST", "configmaps", owned_by(configmap("of-k", "1"), &job), &[])
        .await;
    bench
        .call(
            "DELETE",
            "jobs/k",
            json!({"propagationPolicy": "Background"}),
            &[],
        )
        .await;
    bench.wait_for("configmaps/of-k", 404).await;
}

async fn namespace_ends(bench: &mut Bench) {
    let name = format!("{}-ends", bench.namespace);
    let home = format!("/api/v1/namespaces/{name}");
    bench
        .call(
            "POST",
            &format!("{home}/configmaps"),
            configmap("early", "1"),
            &[],
        )
        .await;
    bench
        .call(
            "POST",
            "/api/v1/namespaces",
            json!({"metadata": {"name": name}}),
            &["/spec/finalizers", "/status/phase"],
        )
        .await;
    let mut object = configmap("held", "1");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    bench
        .call("POST", &format!("{home}/configmaps"), object, &[])
        .await;
    bench
        .call(
            "POST",
            &format!("{home}/configmaps"),
            configmap("plain", "1"),
            &[],
        )
        .await;
    bench
        .call("DELETE", &home, NONE, &["/kind", "/status/phase"])
        .await;
    bench
        .call("POST", &format!("{home}/configmaps"), configmap("late", "1"), &[])
        .await;
    bench.wait_for(&format!("{home}/configmaps/plain"), 404).await;
    bench
        .call(
            "MERGE",
            &format!("{home}/configmaps/held"),
            json!({"metadata": {"finalizers": null}}),
            &[],
        )
        .await;
    bench.wait_for(&home, 404).await;
}

async fn immutability(bench: &mut Bench) {
    let secret = json!({"metadata": {"name": "s"}, "immutable": true, "stringData": {"a": "1"}});
    bench
        .call("POST", "secrets", secret, &["/data", "/stringData", "/type"])
        .await;
    bench
        .call("MERGE", "secrets/s", json!({"stringData": {"a": "2"}}), &[])
        .await;
    bench
        .call(
            "MERGE",
            "secrets/s",
            json!({"metadata": {"labels": {"l": "1"}}}),
            &["/metadata/labels"],
        )
        .await;
    bench
        .call(
            "POST",
            "configmaps",
            json!({"metadata": {"name": "c"}, "immutable": true, "data": {"a": "1"}}),
            &[],
        )
        .await;
    bench
        .call("MERGE", "configmaps/c", json!({"data": {"a": "2"}}), &[])
        .await;
    bench.call("POST", "jobs", suspended_job("j"), &[]).await;
    bench
        .call(
            "MERGE",
            "jobs/j",
            json!({"spec": {"parallelism": 2}}),
            &["/spec/parallelism"],
        )
        .await;
    bench
        .call("MERGE", "jobs/j", json!({"spec": {"completions": 3}}), &[])
        .await;
    let mut job = suspended_job("k");
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    bench.call("POST", "jobs", job, &[]).await;
    bench
        .call(
            "DELETE",
            "jobs/j",
            json!({"propagationPolicy": "Background"}),
            &[],
        )
        .await;
}

async fn paths_and_names(bench: &mut Bench) {
    bench
        .call("POST", "configmaps", configmap("Upper", "1"), &[])
        .await;
    bench
        .call("POST", "configmaps", configmap("under_score", "1"), &[])
        .await;
    let mut labelled = configmap("l", "1");
    labelled["metadata"]["labels"] = json!({"k": "not a label"});
    bench.call("POST", "configmaps", labelled, &[]).await;
    bench.call("POST", "configmaps/a", configmap("a", "1"), &[]).await;
    bench.call("PUT", "configmaps", configmap("a", "1"), &[]).await;
    bench
        .call("GET", "/apis/nothing.example.com/v1/things", NONE, &[])
        .await;
    bench.call("GET", "configmaps/a/status", NONE, &[]).await;
    bench
        .call(
            "POST",
            "configmaps",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
            &[],
        )
        .await;
    bench
        .call(
            "POST",
            "configmaps",
            json!({"metadata": {"name": "a", "namespace": "other"}}),
            &[],
        )
        .await;
}

async fn leases(bench: &mut Bench) {
    let lease = |holder: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
    let show = &["/spec/holderIdentity"];
    let made = bench.call("POST", "leases", lease("one"), show).await;
    let mut mine = made.clone();
    mine["spec"]["holderIdentity"] = json!("two");
    bench.call("PUT", "leases/l", mine.clone(), show).await;
    bench.call("PUT", "leases/l", mine, &[]).await;
    bench.call("PUT", "leases/l", lease("three"), &[]).await;
    bench
        .call(
            "MERGE",
            "leases/l",
            json!({"spec": {"holderIdentity": "four"}}),
            show,
        )
        .await;
}

async fn unscheduled_pod(bench: &mut Bench) {
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeSelector": {"example.com/none": "here"}, "containers": [{"name": "c", "image": "localhost/none"}]},
    });
    bench
        .call(
            "POST",
            "pods",
            pod,
            &[
                "/status/phase",
                "/spec/restartPolicy",
                "/spec/terminationGracePeriodSeconds",
                "/status/qosClass",
            ],
        )
        .await;
    bench
        .call(
            "MERGE",
            "pods/p",
            json!({"spec": {"restartPolicy": "Never"}}),
            &[],
        )
        .await;
    bench
        .call(
            "POST",
            "pods",
            json!({"metadata": {"name": "q"}, "spec": {"containers": []}}),
            &[],
        )
        .await;
    bench.call("POST", "pods", json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}}), &[]).await;
    bench
        .call(
            "DELETE",
            "pods/p",
            NONE,
            &["/kind", "/metadata/deletionGracePeriodSeconds"],
        )
        .await;
    bench.call("GET", "pods/p", NONE, &[]).await;
}
