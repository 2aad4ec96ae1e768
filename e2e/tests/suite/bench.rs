//! The cluster under test, made ready once for the whole suite, and the few things that tests do with it. Everything
//! goes through kubectl, as a user's hands would.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use e2e::cache::{Cache, Lock};
use e2e::cluster::{Choice, Cluster, Consent};
use e2e::install::{self, ImageNames, OPERATOR_NAMESPACE};
use e2e::machine;
use e2e::node::measuring_lock;
use e2e::progress::elapsed;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

/// Namespaces of the tests, and the demo's, so that its campaign stays watched.
pub(crate) const NAMESPACES: &[&str] = &[
    "bench",
    "e2e-studies",
    "e2e-load",
    "e2e-external",
    "e2e-agreement",
    "e2e-kills",
    "e2e-deletion",
    "e2e-gone",
    "e2e-refusal",
    "e2e-wrong",
    "e2e-conformance",
];

/// Selects the operator's pods.
const OPERATOR: &str =
    "app.kubernetes.io/name=benchmark-campaign-operator,app.kubernetes.io/component=operator";

/// The cluster under test.
pub(crate) struct Bench {
    cache: Cache,
    cluster: Cluster,
    names: ImageNames,
    /// Program of `kubectl campaign`.
    plugin: PathBuf,
    /// Only one measures on this machine at a time.
    _machine: Lock,
}

static BENCH: OnceLock<Bench> = OnceLock::new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The right to use the cluster alone. When it is given back it tells how long it was held: where the suite's minutes go.
pub(crate) struct Alone {
    since: Instant,
    _guard: MutexGuard<'static, ()>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        let test = std::thread::current();
        let took = elapsed(self.since.elapsed());
        // Not by a macro: what those print of a test that passes is not shown.
        let _ = writeln!(
            std::io::stderr(),
            "  {} took {took}",
            test.name().unwrap_or("a test")
        );
    }
}

/// The cluster, with the right to use it alone. A test that failed before does not stop the others.
pub(crate) fn bench() -> (&'static Bench, Alone) {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // What a test starts stays on core 0, as all that is not the measured database: the other core is the database's.
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores).expect("core 0");
    let bench = BENCH.get_or_init(Bench::new);
    let alone = Alone {
        since: Instant::now(),
        _guard: guard,
    };
    (bench, alone)
}

impl Bench {
    fn new() -> Self {
        let cache = Cache::of_user().expect("the cache folder");
        let lock = measuring_lock().expect("the machine's measuring lock");
        let choice = match (std::env::var_os("E2E_CLUSTER"), std::env::var_os("KUBECONFIG")) {
            (Some(_), Some(kubeconfig)) => Choice::Elsewhere(kubeconfig.into()),
            _ => Choice::Local,
        };
        let consent = Consent {
            yes: true,
            image_prefix: std::env::var("E2E_IMAGE_PREFIX").ok(),
        };
        let cluster = Cluster::ready(&cache, &choice, &consent).expect("a cluster");
        let images = machine::project_images(&cache).expect("the project's images");
        let plugin = plugin(&cache);
        let names = install::provide_images(&cache, &cluster, &images).expect("images in the cluster");
        for namespace in NAMESPACES {
            install::namespace(&cluster, namespace).expect("a namespace");
        }
        install::operator(&cache, &cluster, &names, NAMESPACES).expect("the operator, by its chart");
        Self {
            cache,
            cluster,
            names,
            plugin,
            _machine: lock,
        }
    }

    /// Image of the database.
    pub(crate) fn database_image(&self) -> &str {
        &self.names.mariadb
    }

    /// Image of a newer major version of the database, built when it is asked for first.
    pub(crate) fn newer_database_image(&self) -> String {
        let archive = e2e::images::mariadb_11(&self.cache).expect("an image of MariaDB 11.8");
        self.cluster
            .provide(&self.cache, &archive)
            .expect("the image in the cluster")
    }

    /// Image of `MySQL`, built when it is asked for first.
    pub(crate) fn mysql_image(&self) -> String {
        let archive = e2e::images::mysql(&self.cache).expect("an image of MySQL");
        self.cluster
            .provide(&self.cache, &archive)
            .expect("the image in the cluster")
    }

    /// Image of `PostgreSQL` 17 with pgaudit, built when it is asked for first.
    pub(crate) fn postgresql_image(&self) -> String {
        let archive = e2e::images::postgresql(&self.cache).expect("an image of PostgreSQL");
        self.cluster
            .provide(&self.cache, &archive)
            .expect("the image in the cluster")
    }

    /// Image of the runner.
    pub(crate) fn runner_image(&self) -> &str {
        &self.names.runner
    }

    /// Path of the kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &std::path::Path {
        self.cluster.kubeconfig()
    }

    /// Runs kubectl, whatever it answers.
    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        self.cluster.kubectl().args(arguments).output().expect("kubectl")
    }

    /// Runs kubectl and returns what it printed; fails the test if it failed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.try_kubectl(arguments);
        assert!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `kubectl campaign` and returns what it printed; fails the test if it failed.
    pub(crate) fn plugin(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.plugin)
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .expect("kubectl campaign");
        assert!(
            output.status.success(),
            "kubectl campaign {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Objects of a kind in a namespace.
    pub(crate) fn list(&self, namespace: &str, kind: &str) -> Vec<Value> {
        let text = self.kubectl(&["get", kind, "-n", namespace, "-o", "json"]);
        let list: Value = serde_json::from_str(&text).expect("JSON from kubectl");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// One object, if it is there.
    pub(crate) fn get(&self, namespace: &str, kind: &str, name: &str) -> Option<Value> {
        let text = self.kubectl(&[
            "get",
            kind,
            name,
            "-n",
            namespace,
            "-o",
            "json",
            "--ignore-not-found",
        ]);
        serde_json::from_str(&text).ok()
    }

    /// Applies a manifest.
    pub(crate) fn apply(&self, manifest: &Value) {
        install::apply(&self.cluster, "applying a manifest", &manifest.to_string()).expect("applied");
    }

    /// Applies a manifest and returns what kubectl said against it, if it did.
    pub(crate) fn refused_at_apply(&self, manifest: &Value) -> Option<String> {
        self.refused(manifest, &["apply"])
    }

    /// The same without keeping what is accepted.
    pub(crate) fn refused_dry(&self, manifest: &Value) -> Option<String> {
        self.refused(manifest, &["apply", "--dry-run=server"])
    }

    fn refused(&self, manifest: &Value, command: &[&str]) -> Option<String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), manifest.to_string()).expect("written");
        let path = file.path().to_string_lossy().into_owned();
        let output = self.try_kubectl(&[command, &["--filename", &path]].concat());
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Makes a namespace that the operator does not watch.
    pub(crate) fn namespace(&self, name: &str) {
        install::namespace(&self.cluster, name).expect("a namespace");
    }

    /// Removes what earlier tests left, also those that failed: a database of theirs would keep its core.
    pub(crate) fn clear(&self) {
        let all = "bc,br,bt,jobs,pods,persistentvolumeclaims";
        let used = self.kubectl(&["get", all, "-A", "-o", "jsonpath={.items[*].metadata.namespace}"]);
        let used: BTreeSet<&str> = used.split_whitespace().collect();
        for namespace in used.into_iter().filter(|name| name.starts_with("e2e-")) {
            // A borrowed server must be there until what it had is put back.
            for kinds in ["bc,br,bt", "jobs,pods"] {
                let wait = "--timeout=120s";
                self.kubectl(&["delete", kinds, "--all", "-n", namespace, "--wait=true", wait]);
            }
            self.wait(namespace, "nothing left of an earlier test", 120, || {
                self.list(namespace, "pods,pvc").is_empty().then_some(())
            });
        }
    }

    /// Kills the operator's process, which the cluster starts again.
    pub(crate) fn kill_operator(&self) {
        // Grace 0 is SIGKILL at once.
        self.kubectl(&[
            "delete",
            "pod",
            "-n",
            OPERATOR_NAMESPACE,
            "-l",
            OPERATOR,
            "--force",
            "--grace-period=0",
        ]);
    }

    /// Waits until a look gives something; fails with the story of the namespace otherwise.
    pub(crate) fn wait<T>(
        &self,
        namespace: &str,
        what: &str,
        seconds: u64,
        mut look: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "not within {seconds} s: {what}\n{}",
                self.story(namespace)
            );
            // Every look costs the machine that measures.
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Waits for the end of a campaign and returns it.
    pub(crate) fn finished(&self, namespace: &str, name: &str, seconds: u64) -> Value {
        self.ended(namespace, "benchmarkcampaign", name, seconds)
    }

    /// Waits for the end of a campaign, which must have done all that was planned, and returns it.
    pub(crate) fn completed(&self, namespace: &str, name: &str, seconds: u64) -> Value {
        let campaign = self.finished(namespace, name, seconds);
        assert_eq!(
            campaign["status"]["state"],
            "Completed",
            "{}",
            self.story(namespace)
        );
        campaign
    }

    /// Waits, by a watch, until an object is finished, and returns it.
    pub(crate) fn ended(&self, namespace: &str, kind: &str, name: &str, seconds: u64) -> Value {
        let (object, timeout) = (format!("{kind}/{name}"), format!("--timeout={seconds}s"));
        let waited = self.try_kubectl(&[
            "wait",
            "--for=condition=Finished",
            &object,
            "-n",
            namespace,
            &timeout,
        ]);
        assert!(
            waited.status.success(),
            "not finished within {seconds} s: {object}\n{}\n{}",
            String::from_utf8_lossy(&waited.stderr),
            self.story(namespace)
        );
        self.get(namespace, kind, name).expect("it was there")
    }

    /// What a person would look at first.
    pub(crate) fn story(&self, namespace: &str) -> String {
        let mut story = String::new();
        for arguments in [
            vec!["get", "bc,br,bt,jobs,pods", "-n", namespace, "-o", "wide"],
            vec!["describe", "bc", "-n", namespace],
            vec![
                "logs",
                "-n",
                OPERATOR_NAMESPACE,
                "-l",
                "app.kubernetes.io/name=benchmark-campaign-operator",
                "--tail=60",
            ],
        ] {
            let output = self.try_kubectl(&arguments);
            story.push_str(&format!("$ kubectl {}\n", arguments.join(" ")));
            story.push_str(&String::from_utf8_lossy(&output.stdout));
            story.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        story
    }
}

/// Builds the plugin with what the tests were built of: another selection of packages would compile everything anew.
fn plugin(cache: &Cache) -> PathBuf {
    let built = e2e::images::cargo(cache)
        .expect("cargo")
        .args([
            "build",
            "--locked",
            "--quiet",
            "--workspace",
            "--bin",
            "kubectl-campaign",
        ])
        .status()
        .expect("cargo build");
    assert!(built.success(), "the plugin is built");
    cache.target().join("debug/kubectl-campaign")
}

/// A condition of an object.
pub(crate) fn condition(object: &Value, type_: &str) -> Option<Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == type_)
        .cloned()
}

/// The runs that count or not, by their place in the plan.
pub(crate) fn by_place(runs: &[Value]) -> std::collections::BTreeMap<i64, Vec<&Value>> {
    let mut places = std::collections::BTreeMap::<i64, Vec<&Value>>::new();
    for run in runs {
        places
            .entry(run["spec"]["visit"]["sequence"].as_i64().expect("a place"))
            .or_default()
            .push(run);
    }
    places
}

/// Each place of the plan was measured once in each attempt at its block, and the last attempt counts. Attempts before
/// it are there only because a busy machine disturbed a run of their block.
pub(crate) fn assert_each_place_measured_once(runs: &[Value]) {
    for (place, attempts) in by_place(runs) {
        let mut numbers: Vec<i64> = attempts
            .iter()
            .map(|run| run["spec"]["attempt"].as_i64().unwrap_or(1))
            .collect();
        numbers.sort_unstable();
        let expected: Vec<i64> = (1..).take(attempts.len()).collect();
        assert_eq!(numbers, expected, "attempts at place {place}");
        let last = attempts.iter().max_by_key(|run| run["spec"]["attempt"].as_i64());
        assert!(
            last.is_some_and(|run| valid(run)),
            "place {place}: {:#}",
            last.expect("one at least")["status"]
        );
        for run in attempts {
            let reasons = run["status"]["validity"]["reasons"].as_array().cloned();
            let of_machine = |reason: &Value| {
                ["NodeDisturbed", "GeneratorStarved"].contains(&reason["reason"].as_str().unwrap_or_default())
            };
            assert!(
                reasons.unwrap_or_default().iter().all(of_machine),
                "place {place}: {:#}",
                run["status"]
            );
        }
    }
}

/// Whether a run has ended and is valid by itself.
pub(crate) fn valid(run: &Value) -> bool {
    run["status"]["validity"]["verdict"] == "Valid"
}
