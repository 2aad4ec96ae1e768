//! What study 1 did, measured beside ours on the same node: edit my.cnf, restart the server, `sleep 30`, sysbench, again.
//! The script writes one line a load; reading those lines is pure.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::gaps::median;
use super::testbed::{NAMESPACE, Testbed};
use super::timeline::Millis;
use crate::error::{Error, Result};
use crate::progress::step;

const POD: &str = "shell-loop";

/// The server, kept alive as systemd would. It dies with its pod.
const SERVER: &str = "while true; do mariadbd --defaults-file=/loop/my.cnf; sleep 0.1; done";

/// Makes an empty server and its configuration. Without names, its anonymous user of `localhost` is not ours.
const INITIALISE: &str = "set -e
mariadb-install-db --no-defaults --datadir=/loop/data --auth-root-authentication-method=normal >/loop/install.log
cat > /loop/init.sql <<'SQL'
CREATE DATABASE IF NOT EXISTS sbtest;
CREATE USER IF NOT EXISTS bench@'%';
GRANT ALL ON sbtest.* TO bench@'%';
SQL
cat > /loop/my.cnf <<'CNF'
[mariadbd]
datadir=/loop/data
socket=/loop/server.sock
pid-file=/loop/server.pid
init-file=/loop/init.sql
bind-address=127.0.0.1
skip-name-resolve
innodb_buffer_pool_size=512M
max_prepared_stmt_count=1048576
innodb_flush_log_at_trx_commit=1
CNF";

/// The loop. `systemctl restart` returns when the server takes connections; so does the `until`.
const LOOP: &str = "set -e
up() { until (exec 3<>/dev/tcp/127.0.0.1/3306) 2>/dev/null; do sleep 0.1; done; }
load() { sysbench --db-driver=mysql --mysql-host=127.0.0.1 --mysql-user=bench --mysql-db=sbtest --tables=4 --table-size=25000 \"$@\" >/loop/sysbench.log || { cat /loop/sysbench.log; exit 1; }; }
up
load oltp_read_only prepare
for i in $(seq 0 $ITERATIONS); do
  if [ $i -gt 0 ]; then
    sed -i \"s/^innodb_flush_log_at_trx_commit=.*/innodb_flush_log_at_trx_commit=$((i % 3))/\" /loop/my.cnf
    pid=$(cat /loop/server.pid)
    kill -TERM $pid
    while kill -0 $pid 2>/dev/null; do sleep 0.1; done
    up
    sleep 30
  fi
  started=$(date +%s%3N)
  load --threads=2 --time=5 oltp_read_only run
  echo \"load $started $(date +%s%3N)\"
done
echo done";

/// Dead time of the shell loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellLoop {
    /// From the end of one sysbench to the start of the next, milliseconds.
    pub gaps_millis: Vec<Millis>,
    /// Their median.
    pub median_millis: Millis,
}

/// Runs the loop.
pub fn run(testbed: &Testbed, iterations: u32) -> Result<ShellLoop> {
    remove(testbed)?;
    let patience = Duration::from_secs(120 + 60 * u64::from(iterations));
    testbed.apply(
        "starting the shell loop",
        &pod(&testbed.names.mariadb, &testbed.names.runner, iterations),
    )?;
    let what = format!("the shell loop of study 1, {iterations} restarts with `sleep 30`");
    let log = step(&what, || {
        let deadline = Instant::now() + patience;
        let logs = ["logs", POD, "--container=loop", "--namespace", NAMESPACE];
        loop {
            sleep(Duration::from_secs(3));
            let log = testbed.try_kubectl(&logs).unwrap_or_default();
            let phase = testbed.kubectl(&[
                "get",
                "pod",
                POD,
                "--namespace",
                NAMESPACE,
                "--output=jsonpath={.status.containerStatuses[?(@.name=='loop')].state}",
            ])?;
            if log.lines().any(|line| line == "done") {
                return Ok(log);
            }
            if Instant::now() > deadline || phase.contains("terminated") {
                let seconds = patience.as_secs();
                return Err(Error::Timeout {
                    what: "the shell loop".into(),
                    seconds,
                    tail: format!("{log}\n{phase}"),
                    log: None,
                });
            }
        }
    })?;
    remove(testbed)?;
    read(&log).ok_or_else(|| Error::Plain(format!("the shell loop printed no two loads:\n{log}")))
}

fn remove(testbed: &Testbed) -> Result<()> {
    testbed
        .kubectl(&[
            "delete",
            "pod",
            POD,
            "--namespace",
            NAMESPACE,
            "--ignore-not-found",
            "--grace-period=1",
            "--timeout=60s",
        ])
        .map(drop)
}

/// Reads the lines `load STARTED ENDED`.
fn read(log: &str) -> Option<ShellLoop> {
    let loads: Vec<(Millis, Millis)> = log
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("load ")?.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect();
    let gaps_millis: Vec<Millis> = loads.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
    Some(ShellLoop {
        median_millis: median(&gaps_millis)?,
        gaps_millis,
    })
}

/// A server equal to the quickstart's (1 CPU of its own, 1 GiB) with the loop beside it.
fn pod(mariadb: &str, runner: &str, iterations: u32) -> Value {
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let mounts = json!([{"name": "work", "mountPath": "/loop"}]);
    // Requests are limits, or the server would have no core of its own.
    let resources = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}});
    let container = |name: &str, image: &str, script: &str, resources: Value| {
        json!({
            "name": name, "image": image, "imagePullPolicy": "IfNotPresent",
            "command": ["bash", "-c", script],
            "env": [{"name": "ITERATIONS", "value": iterations.to_string()}],
            "resources": resources, "securityContext": security, "volumeMounts": mounts,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            // The loop stops the server by a signal.
            "shareProcessNamespace": true,
            "automountServiceAccountToken": false,
            "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999, "runAsNonRoot": true,
                                "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [container("initialise", mariadb, INITIALISE, resources("1", "1Gi"))],
            "containers": [
                container("database", mariadb, SERVER, resources("1", "1Gi")),
                container("loop", runner, LOOP, resources("250m", "128Mi")),
            ],
            "volumes": [{"name": "work", "emptyDir": {}}],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_time_lies_between_the_lines_of_two_loads() {
        let log = "load 1000 6000\nload 37500 42500\nload 73500 78500\ndone\n";
        assert_eq!(
            read(log),
            Some(ShellLoop {
                gaps_millis: vec![31_500, 31_000],
                median_millis: 31_250
            })
        );
        assert_eq!(read("load 1000 6000\ndone\n"), None);
        assert_eq!(read("FATAL: unable to connect\n"), None);
    }

    #[test]
    fn the_server_gets_a_core_of_its_own_and_the_scripts_parse() {
        let pod = pod("m", "r", 3);
        for container in pod["spec"]["containers"].as_array().unwrap() {
            assert_eq!(
                container["resources"]["requests"], container["resources"]["limits"],
                "else not Guaranteed"
            );
        }
        for script in [SERVER, INITIALISE, LOOP] {
            let parsed = std::process::Command::new("bash")
                .args(["-n", "-c", script])
                .output()
                .unwrap();
            assert!(
                parsed.status.success(),
                "{}",
                String::from_utf8_lossy(&parsed.stderr)
            );
        }
    }
}
