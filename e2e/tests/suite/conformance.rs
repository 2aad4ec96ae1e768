//! The API server of the simulation answers small scripts as the real one does: the same scripts, against the real one.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::bench::bench;

#[path = "../../../operator/tests/simulation/conformance.rs"]
#[allow(dead_code, reason = "shared with the simulation, which uses all of it")]
mod scripts;

const NAMESPACE: &str = "e2e-conformance";

#[test]
fn the_real_api_server_leaves_the_transcripts_that_the_simulated_one_leaves() {
    let (bench, _alone) = bench();
    bench.clear();
    bench.apply(&scripts::definition());
    bench.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/samples.conformance.benchmark-campaign.dev",
        "--timeout=30s",
    ]);
    // Two TLS providers could be meant in this process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let kubeconfig = Kubeconfig::read_from(bench.kubeconfig()).expect("a kubeconfig");
    runtime.block_on(async {
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client");
        for script in scripts::SCRIPTS {
            let namespace = format!("{NAMESPACE}-{}", script.name.replace('_', "-"));
            bench.kubectl(&[
                "delete",
                "namespace",
                &namespace,
                "--ignore-not-found",
                "--timeout=60s",
            ]);
            bench.kubectl(&["create", "namespace", &namespace]);
            let transcript = script.run(client.clone(), &namespace).await;
            bench.kubectl(&["delete", "namespace", &namespace, "--wait=false"]);
            assert_eq!(transcript, script.expected, "script {}", script.name);
        }
    });
    bench.kubectl(&[
        "delete",
        "crd",
        "samples.conformance.benchmark-campaign.dev",
        "--wait=false",
    ]);
}
