//! Puts this checkout's operator into a cluster with helm, and makes the namespaces that campaigns run in.

use std::process::Command;

use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::command::{self, output, output_with_input};
use crate::error::Result;
use crate::images::repository;
use crate::machine::Images;
use crate::progress::step;

/// Name of the Helm release and of the chart.
pub const RELEASE: &str = "benchmark-campaign-operator";
/// Namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "benchmark-campaign-system";

/// Names of the images as the cluster's nodes know them, each with its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageNames {
    /// The operator.
    pub operator: String,
    /// The runner.
    pub runner: String,
    /// The database of the quickstart.
    pub mariadb: String,
}

/// Makes all images available to the cluster.
pub fn provide_images(cache: &Cache, cluster: &Cluster, images: &Images) -> Result<ImageNames> {
    step("bringing the images to the cluster", || {
        Ok(ImageNames {
            operator: cluster.provide(cache, &images.operator)?,
            runner: cluster.provide(cache, &images.runner)?,
            mariadb: cluster.provide(cache, &images.mariadb)?,
        })
    })
}

/// Installs or upgrades the operator and waits until it is ready.
pub fn operator(cache: &Cache, cluster: &Cluster, names: &ImageNames, watched: &[&str]) -> Result<()> {
    namespace(cluster, OPERATOR_NAMESPACE)?;
    for watched in watched {
        namespace(cluster, watched)?;
    }
    let log = cache.log("install")?;
    step("helm upgrade --install", || {
        let mut helm = cluster.helm();
        helm.args(["upgrade", "--install", RELEASE])
            .arg(repository().join("charts").join(RELEASE));
        helm.args([
            "--namespace",
            OPERATOR_NAMESPACE,
            "--timeout",
            "3m",
            "--wait",
            "--take-ownership",
            // The definitions may have been applied by `cargo verify` of an earlier checkout.
            "--force-conflicts",
        ]);
        helm.args(values(names, watched));
        command::run("helm upgrade --install", &mut helm, &log)
    })
}

/// Arguments that give the chart its values.
fn values(names: &ImageNames, watched: &[&str]) -> Vec<String> {
    let mut values = Vec::new();
    for (key, image) in [("operator", &names.operator), ("runner", &names.runner)] {
        let (repository, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
        values.push(format!("image.{key}.repository={repository}"));
        values.push(format!("image.{key}.tag={tag}"));
    }
    values.push(format!("watchNamespaces={{{}}}", watched.join(",")));
    values
        .into_iter()
        .flat_map(|value| ["--set".to_owned(), value])
        .collect()
}

/// Makes a namespace that enforces the restricted pod security level, as the operator's pods must satisfy it.
pub fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let manifest = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    });
    apply(
        cluster,
        &format!("making the namespace {name}"),
        &manifest.to_string(),
    )
}

/// Applies a manifest given as text.
pub fn apply(cluster: &Cluster, what: &str, manifest: &str) -> Result<()> {
    let mut kubectl = cluster.kubectl();
    kubectl.args([
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=benchmark-campaign-demo",
        "--filename",
        "-",
    ]);
    output_with_input(what, &mut kubectl, manifest).map(drop)
}

/// Removes the operator and the namespaces from a cluster that stays.
pub fn remove(cluster: &Cluster, watched: &[&str]) -> Result<()> {
    step("removing the operator and its namespaces", || {
        for namespace in watched {
            delete_namespace(cluster.kubectl(), namespace)?;
        }
        let mut helm = cluster.helm();
        helm.args([
            "uninstall",
            RELEASE,
            "--namespace",
            OPERATOR_NAMESPACE,
            "--ignore-not-found",
            "--wait",
        ]);
        output("helm uninstall", &mut helm)?;
        delete_namespace(cluster.kubectl(), OPERATOR_NAMESPACE)
    })
}

fn delete_namespace(mut kubectl: Command, name: &str) -> Result<()> {
    kubectl.args(["delete", "namespace", name, "--ignore-not-found", "--timeout=3m"]);
    output(&format!("deleting the namespace {name}"), &mut kubectl).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_each_image_by_repository_and_tag() {
        let names = ImageNames {
            operator: "localhost/bc/operator:aa".into(),
            runner: "registry:5000/runner:bb".into(),
            mariadb: "localhost/bc/mariadb:10.11".into(),
        };
        let values = values(&names, &["bench", "other"]);
        assert!(
            values.contains(&"image.runner.repository=registry:5000/runner".to_owned()),
            "{values:?}"
        );
        assert!(values.contains(&"image.operator.tag=aa".to_owned()));
        assert!(values.contains(&"watchNamespaces={bench,other}".to_owned()));
    }
}
