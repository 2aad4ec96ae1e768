//! What each stage runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Stage;
use super::openapi::{self, LOCATION};
use super::tally::{Tally, failures};
use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::cluster::{Choice, Cluster, Consent};
use crate::command::{self, output, output_with_input};
use crate::error::{Error, Result, at};
use crate::images::{cargo, repository};
use crate::install::{self, RELEASE};
use crate::packages::{self, Package};
use crate::progress::step;

/// What stages share.
pub(super) struct Context<'a> {
    cache: &'a Cache,
    foreign_cluster: bool,
    cluster: Option<Cluster>,
}

impl<'a> Context<'a> {
    pub(super) fn new(cache: &'a Cache, foreign_cluster: bool) -> Self {
        Self {
            cache,
            foreign_cluster,
            cluster: None,
        }
    }

    pub(super) fn run(&mut self, stage: Stage) -> Result<Tally> {
        match stage {
            Stage::Format => self.cargo_check("cargo fmt", &["fmt", "--all", "--check"]),
            // The suite is no default test (it needs the node), so `--all-targets` does not mean it.
            Stage::Lint => {
                self.clippy(&["--all-targets"])?;
                self.clippy(&["--test", "suite"])
            }
            Stage::Generated => self.cargo_check(
                "the definitions in crds/yaml and the chart",
                &[
                    "run",
                    "--locked",
                    "--quiet",
                    "--package",
                    "crds",
                    "--bin",
                    "crdgen",
                    "--",
                    "--check",
                ],
            ),
            Stage::Tests => {
                let wanted: Vec<&Package> = packages::TESTS.iter().collect();
                packages::ensure(self.cache, &wanted)?;
                self.cargo_test("tests", &["test", "--locked", "--workspace", "--no-fail-fast"])
            }
            Stage::Node => {
                let choice = match std::env::var_os("KUBECONFIG") {
                    Some(kubeconfig) if self.foreign_cluster => Choice::Elsewhere(kubeconfig.into()),
                    None if self.foreign_cluster => {
                        return Err(Error::Plain(
                            "--cluster uses the cluster in KUBECONFIG, which is not set".into(),
                        ));
                    }
                    _ => Choice::Local,
                };
                // Stages here need no images; the suite brings its own.
                let consent = Consent {
                    yes: true,
                    image_prefix: Some(String::new()),
                };
                self.cluster = Some(Cluster::ready(self.cache, &choice, &consent)?);
                Ok(Tally::PASSED)
            }
            Stage::Chart => self.chart(),
            Stage::Definitions => self.definitions(),
            Stage::Schemas => self.schemas(),
            // The same selection of packages as above: another one would compile the dependencies with other features.
            Stage::Suite => self.cargo_test(
                "suite",
                &[
                    "test",
                    "--locked",
                    "--workspace",
                    "--test",
                    "suite",
                    "--no-fail-fast",
                ],
            ),
        }
    }

    fn cluster(&self) -> Result<&Cluster> {
        self.cluster
            .as_ref()
            .ok_or_else(|| Error::Plain("the stage `node` did not run".into()))
    }

    fn clippy(&self, targets: &[&str]) -> Result<Tally> {
        let head = ["clippy", "--locked", "--workspace"];
        let arguments = [&head[..], targets, &["--", "--deny", "warnings"]].concat();
        self.cargo_check(&format!("cargo clippy {}", targets.join(" ")), &arguments)
    }

    fn cargo_check(&self, what: &str, args: &[&str]) -> Result<Tally> {
        let log = self.cache.log("verify-check")?;
        step(what, || command::run(what, cargo(self.cache)?.args(args), &log))?;
        Ok(Tally::PASSED)
    }

    fn cargo_test(&self, name: &str, args: &[&str]) -> Result<Tally> {
        let log = self.cache.log(&format!("verify-{name}"))?;
        let file = File::create(&log).map_err(at(&log))?;
        let err = file.try_clone().map_err(at(&log))?;
        let mut test = cargo(self.cache)?;
        test.args(args).stdin(Stdio::null()).stdout(file).stderr(err);
        // The chart's tests render it with helm.
        test.env("HELM", Binaries::ensure(self.cache)?.folder().join("helm"));
        if self.foreign_cluster {
            test.env("E2E_CLUSTER", "1");
        }
        let status = step(&format!("cargo {}", args.join(" ")), || {
            test.status().map_err(at("cargo"))
        })?;
        let bytes = fs::read(&log).map_err(at(&log))?;
        let printed = String::from_utf8_lossy(&bytes);
        let tally = Tally::of_tests(&printed, status.success());
        if !tally.good() {
            println!("{}\nall of the output: {}", failures(&printed), log.display());
        }
        Ok(tally)
    }

    /// Lints and renders the chart with its default values and with every file of its folder `ci`.
    fn chart(&self) -> Result<Tally> {
        for values in value_files()? {
            let shown = values
                .as_ref()
                .map_or_else(|| "default values".into(), |path| name_of(path));
            let mut lint = self.helm("lint", values.as_deref())?;
            output(&format!("helm lint --strict, {shown}"), lint.arg("--strict"))?;
            self.rendered(values.as_deref())?;
            println!("  lints and renders with {shown}");
        }
        Ok(Tally::PASSED)
    }

    fn rendered(&self, values: Option<&Path>) -> Result<String> {
        let shown = values.map_or_else(|| "default values".into(), name_of);
        output(
            &format!("helm template, {shown}"),
            &mut self.helm("template", values)?,
        )
    }

    fn helm(&self, task: &str, values: Option<&Path>) -> Result<Command> {
        let mut helm = self.cluster()?.helm();
        helm.arg(task);
        if task == "template" {
            helm.args([
                RELEASE,
                "--namespace",
                "benchmark-campaign-system",
                "--kube-version",
                crate::binaries::KUBERNETES,
            ]);
        }
        helm.arg(chart_folder());
        if let Some(values) = values {
            helm.arg("--values").arg(values);
        }
        Ok(helm)
    }

    /// The API server computes what each rule may cost only when it really reads the definitions.
    fn definitions(&self) -> Result<Tally> {
        let folder = repository().join("crds/yaml");
        for dry_run in ["--dry-run=server", "--dry-run=none"] {
            let mut apply = self.cluster()?.kubectl();
            apply.args([
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=verify",
                dry_run,
                "--filename",
            ]);
            output(
                &format!("kubectl apply {dry_run} of crds/yaml"),
                apply.arg(&folder),
            )?;
        }
        let mut wait = self.cluster()?.kubectl();
        wait.args([
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "--filename",
        ])
        .arg(&folder);
        output("waiting for the definitions", &mut wait)?;
        Ok(Tally::PASSED)
    }

    fn schemas(&self) -> Result<Tally> {
        let folder = self.cache.path("schemas");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(at(&folder))?;
        }
        let count = step("reading the API's schemas", || {
            self.until_told_of_our_kinds()?;
            self.write_schemas(&folder)
        })?;
        println!("  {count} kinds");
        for values in value_files()? {
            let shown = values
                .as_ref()
                .map_or_else(|| "default values".into(), |path| name_of(path));
            let manifests = self.rendered(values.as_deref())?;
            let mut check = self.kubeconform(&folder)?;
            let out = output_with_input(
                &format!("kubeconform, chart with {shown}"),
                check.arg("-"),
                &manifests,
            )?;
            println!("  chart with {shown}: {}", out.trim());
        }
        for files in ["examples", "crds/yaml"] {
            let mut check = self.kubeconform(&folder)?;
            let out = output(
                &format!("kubeconform, {files}"),
                check.arg(repository().join(files)),
            )?;
            println!("  {files}: {}", out.trim());
        }
        let count = self.examples()?;
        println!("  examples: {count} files accepted by the API server");
        Ok(Tally::PASSED)
    }

    /// Rules across fields are known to the API server only: it is asked, and stores nothing.
    fn examples(&self) -> Result<usize> {
        const NAMESPACE: &str = "verify-examples";
        let cluster = self.cluster()?;
        install::namespace(cluster, NAMESPACE)?;
        let files = files_below(&repository().join("examples"))?;
        let refused = files.iter().find_map(|file| {
            let manifest = fs::read_to_string(file).map_err(at(file));
            let ask = |manifest: String| {
                let mut create = cluster.kubectl();
                create.args(["create", "--dry-run=server", "--filename", "-"]);
                let here = manifest.replace("namespace: bench", &format!("namespace: {NAMESPACE}"));
                output_with_input(
                    &format!("kubectl create --dry-run=server of {}", name_of(file)),
                    &mut create,
                    &here,
                )
            };
            manifest.and_then(ask).err()
        });
        cluster.ask(
            "deleting the namespace",
            &["delete", "namespace", NAMESPACE, "--wait=false"],
        )?;
        refused.map_or(Ok(files.len()), Err)
    }

    fn kubeconform(&self, schemas: &Path) -> Result<Command> {
        let mut command = self.cluster()?.binaries().command("kubeconform");
        // Unknown fields are refused by the schemas; `-strict` would also refuse YAML's merge keys, which examples use.
        command
            .args(["-summary", "-schema-location"])
            .arg(format!("{}/{LOCATION}", schemas.display()));
        // Its definition belongs to another product and is in no cluster of ours.
        command.args(["-skip", "monitoring.coreos.com/v1/ServiceMonitor"]);
        Ok(command)
    }

    /// The API server publishes the schemas of a new definition some seconds after it serves its kind.
    fn until_told_of_our_kinds(&self) -> Result<()> {
        const PATIENCE: Duration = Duration::from_mins(1);
        let mut get = self.cluster()?.kubectl();
        get.args(["get", "--output=json", "--filename"])
            .arg(repository().join("crds/yaml"));
        let listed = output("reading the definitions", &mut get)?;
        let listed: Value = serde_json::from_str(&listed)
            .map_err(|error| Error::Plain(format!("the definitions: {error}")))?;
        let wanted = openapi::kinds(&listed);
        let start = Instant::now();
        loop {
            let missing = self.untold(&wanted)?;
            if missing.is_empty() {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::Plain(format!(
                    "after {} s the API server's /openapi/v3 still has no schema for {}",
                    PATIENCE.as_secs(),
                    missing.join(", ")
                )));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn untold(&self, wanted: &BTreeMap<String, Vec<String>>) -> Result<Vec<String>> {
        let index = self.document("/openapi/v3")?;
        let mut missing = Vec::new();
        for (group_version, files) in wanted {
            let path = index["paths"][format!("apis/{group_version}")]["serverRelativeURL"].as_str();
            let told = match path {
                Some(path) => openapi::schemas(&self.document(path)?),
                None => openapi::Schemas::new(),
            };
            missing.extend(files.iter().filter(|file| !told.contains_key(*file)).cloned());
        }
        Ok(missing)
    }

    fn write_schemas(&self, folder: &Path) -> Result<usize> {
        let index = self.document("/openapi/v3")?;
        let mut count = 0;
        for path in index["paths"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, at)| at["serverRelativeURL"].as_str())
        {
            for (file, schema) in openapi::schemas(&self.document(path)?) {
                let to = folder.join(file);
                let parent = to.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(at(parent))?;
                fs::write(&to, schema.to_string()).map_err(at(&to))?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn document(&self, path: &str) -> Result<Value> {
        let text = self
            .cluster()?
            .ask(&format!("reading {path}"), &["get", "--raw", path])?;
        serde_json::from_str(&text).map_err(|error| Error::Plain(format!("{path}: {error}")))
    }
}

fn chart_folder() -> PathBuf {
    repository().join("charts").join(RELEASE)
}

/// The default values (`None`), then every file of the chart's folder `ci`, as chart testing tools have it.
fn value_files() -> Result<Vec<Option<PathBuf>>> {
    let folder = chart_folder().join("ci");
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(Some(path));
            }
        }
    }
    files.sort();
    files.insert(0, None);
    Ok(files)
}

/// Every YAML file of a folder and the folders in it.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
