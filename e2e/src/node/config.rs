//! The configuration files of the node's components, as text. Why each unusual line is there stands beside it.

use std::path::Path;

use super::network::{NODE_ADDRESS, PODS};
use super::pki::NODE;

/// Where the volume provisioner's helper pods run.
pub const VOLUMES_NAMESPACE: &str = "local-path-storage";

/// containerd, format 4: the sockets' addresses are settings of plugins there.
pub fn containerd(
    state: &Path,
    binaries: &Path,
    runc: &Path,
    pause_image: &str,
    snapshotter: &str,
) -> String {
    let (state, binaries, runc) = (state.display(), binaries.display(), runc.display());
    format!(
        r#"version = 4
root = "{state}/containerd/root"
state = "{state}/containerd/state"
# Not needed here, and they would write outside the state folder.
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing"]

[plugins."io.containerd.server.v1.grpc"]
address = "{state}/containerd/containerd.sock"

[plugins."io.containerd.server.v1.ttrpc"]
address = "{state}/containerd/containerd.sock.ttrpc"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "{snapshotter}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause_image}"

[plugins."io.containerd.cri.v1.runtime"]
# A machine without CAP_SYS_RESOURCE cannot lower oom_score_adj: without this line its pods do not start.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{binaries}"]
conf_dir = "{state}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"#
    )
}

/// Pod network: a routed link per pod, so that replies pass the node's rules as requests do (a bridge would bypass them).
pub fn cni(state: &Path) -> String {
    let data = state.join("ipam");
    serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "dataDir": data,
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
    .to_string()
}

/// The kubelet.
pub fn kubelet(state: &Path) -> String {
    let state = state.display();
    format!(
        r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# Some machines have only cgroup v1.
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: "unix://{state}/containerd/containerd.sock"
clusterDNS: ["{NODE_ADDRESS}"]
clusterDomain: cluster.local
resolvConf: ""
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: "{state}/pki/ca.crt"}}}}
authorization: {{mode: Webhook}}
tlsCertFile: "{state}/pki/node.crt"
tlsPrivateKeyFile: "{state}/pki/node.key"
# Images come from archives, not from a registry: none may be collected as garbage.
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
volumePluginDir: "{state}/kubelet/plugins"
podLogsDir: "{state}/pod-logs"
address: "{NODE_ADDRESS}"
healthzBindAddress: 127.0.0.1
# A Guaranteed pod that asks for whole CPUs gets cores of its own. A part of a CPU kept for the system makes core 0 the
# shared one; `reservedSystemCPUs` would keep a whole one. What is left beside a database is enough for two load generators:
# one that has just ended counts until its pod is gone, and the next one would wait for the scheduler to try again.
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
systemReserved: {{cpu: 300m}}
"#
    )
}

/// kube-proxy.
pub fn kube_proxy(state: &Path) -> String {
    let state = state.display();
    format!(
        r#"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: "{PODS}"
clientConnection: {{kubeconfig: "{state}/pki/proxy.conf"}}
hostnameOverride: {NODE}
# The limit is the machine's, not the namespace's: leave it alone.
conntrack: {{maxPerCore: 0}}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
"#
    )
}

/// `CoreDNS`: cluster names only; there is no other network to ask.
pub fn coredns(state: &Path) -> String {
    let state = state.display();
    format!(
        ".:53 {{
  bind {NODE_ADDRESS}
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {state}/pki/coredns.conf {NODE}
    pods insecure
    ttl 5
  }}
  cache 5
}}
"
    )
}

/// The volume provisioner's node paths.
pub fn local_path(state: &Path) -> String {
    let paths = [state.join("volumes")];
    serde_json::json!({"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": paths}]})
        .to_string()
}

/// What DNS and volumes need in the cluster. The storage class is the default one and is called `standard`, as in kind.
pub fn cluster_objects(state: &Path, helper_image: &str) -> String {
    let paths = local_path(state);
    // The script makes the folder writable for pods that are not root; no provisioner of this kind enforces sizes.
    format!(
        r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: "system:coredns"}}
rules:
- {{apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: "system:coredns"}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}}
subjects: [{{kind: User, name: "system:coredns", apiGroup: rbac.authorization.k8s.io}}]
---
apiVersion: v1
kind: Namespace
metadata: {{name: {VOLUMES_NAMESPACE}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: local-path-provisioner-service-account, namespace: {VOLUMES_NAMESPACE}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: standard, annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}}}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: local-path-config, namespace: {VOLUMES_NAMESPACE}}}
data:
  config.json: '{paths}'
  setup: |
    #!/bin/sh
    set -eu
    mkdir -m 0777 -p "$VOL_DIR"
  teardown: |
    #!/bin/sh
    set -eu
    rm -rf "$VOL_DIR"
  helperPod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {{name: helper-pod}}
    spec:
      containers:
      # Folders of volumes belong to root, and the image's own user is another.
      - {{name: helper-pod, image: "{helper_image}", imagePullPolicy: IfNotPresent, securityContext: {{runAsUser: 0}}}}
"#
    )
}
