//! A borrowed server, reached by its host name, with values that somebody set by hand: after a campaign, after one that was
//! deleted in the middle and after an operator that was killed in the middle it is as it was.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bench::{Bench, bench, valid};
use crate::manifest;
use crate::measuring::no_password_can_be_found;

const NAMESPACE: &str = "e2e-external";
const POD: &str = "orders";

/// A server as its owner runs it, with a login of the owner's for us.
struct Foreign {
    engine: &'static str,
    image: String,
    port: u16,
    /// Makes the data directory and becomes the server.
    start: &'static str,
    /// Begins a command that makes a statement of its last argument, as the owner.
    client: &'static [&'static str],
    /// Makes the login.
    login: &'static [&'static str],
    /// What the owner set by hand.
    by_hand: &'static [&'static str],
    /// Shows everything that a person can see of the server.
    look: &'static [&'static str],
    /// What moves by itself: beginnings of lines.
    moves: &'static [&'static str],
    parameter: (&'static str, &'static str),
    audit: (&'static str, Value),
}

fn mariadb(bench: &Bench) -> Foreign {
    Foreign {
        engine: "MariaDB",
        image: bench.database_image().to_owned(),
        port: 3306,
        start: "mariadb-install-db --no-defaults --datadir=/data/db --auth-root-authentication-method=normal --skip-test-db \
                >/dev/null && exec mariadbd --no-defaults --datadir=/data/db --socket=/tmp/s --bind-address=*",
        client: &[
            "mariadb",
            "--no-defaults",
            "--socket=/tmp/s",
            "--user=root",
            "--batch",
            "--skip-column-names",
            "--execute",
        ],
        login: MYSQL_LOGIN,
        by_hand: MYSQL_BY_HAND,
        look: MYSQL_LOOK,
        moves: MYSQL_MOVES,
        parameter: ("max_prepared_stmt_count", "100000"),
        audit: ("ServerAudit", json!({"serverAudit": {"events": ["All"]}})),
    }
}

fn mysql(bench: &Bench) -> Foreign {
    Foreign {
        engine: "MySQL",
        image: bench.mysql_image(),
        port: 3306,
        start: "mysqld --no-defaults --initialize-insecure --secure-file-priv= --datadir=/data/db && exec mysqld \
                --no-defaults --secure-file-priv= --datadir=/data/db \
                --socket=/tmp/s --bind-address=* --mysqlx=OFF",
        client: &[
            "mysql",
            "--no-defaults",
            "--socket=/tmp/s",
            "--user=root",
            "--batch",
            "--skip-column-names",
            "--execute",
        ],
        login: MYSQL_LOGIN,
        by_hand: MYSQL_BY_HAND,
        look: MYSQL_LOOK,
        moves: MYSQL_MOVES,
        parameter: ("max_prepared_stmt_count", "100000"),
        audit: ("GeneralLog", json!({})),
    }
}

const MYSQL_LOGIN: &[&str] = &[
    "CREATE USER bench@'%' IDENTIFIED BY 'of the owner'",
    "GRANT ALL PRIVILEGES ON *.* TO bench@'%'",
    "CREATE DATABASE orders",
];

const MYSQL_BY_HAND: &[&str] = &[
    "SET GLOBAL max_prepared_stmt_count = 12345, GLOBAL innodb_io_capacity = 333, GLOBAL long_query_time = 3.5, GLOBAL \
     slow_query_log = ON, GLOBAL log_output = 'TABLE'",
];

const MYSQL_LOOK: &[&str] = &[
    "SHOW GLOBAL VARIABLES; SELECT CONCAT('plugin ', PLUGIN_NAME, ' ', PLUGIN_STATUS) FROM information_schema.PLUGINS; SHOW \
     DATABASES",
];

const MYSQL_MOVES: &[&str] = &["timestamp\t", "gtid_"];

fn postgresql(bench: &Bench) -> Foreign {
    Foreign {
        engine: "PostgreSQL",
        image: bench.postgresql_image(),
        port: 5432,
        start: "initdb --pgdata=/data/db --username=postgres --auth-local=trust --auth-host=scram-sha-256 >/dev/null && echo \
                'host all all all scram-sha-256' >>/data/db/pg_hba.conf && exec postgres -D /data/db -c listen_addresses=* -c \
                unix_socket_directories=/tmp",
        client: &[
            "psql",
            "--no-psqlrc",
            "--host=/tmp",
            "--username=postgres",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--command",
        ],
        login: &[
            "CREATE ROLE bench LOGIN SUPERUSER PASSWORD 'of the owner'",
            "CREATE DATABASE orders",
        ],
        by_hand: &[
            "ALTER SYSTEM SET work_mem = '7MB'",
            "ALTER SYSTEM SET log_min_duration_statement = 60000",
            "SELECT pg_reload_conf()",
        ],
        look: &[
            "SELECT name, setting, reset_val, source, pending_restart FROM pg_settings",
            "SELECT pg_read_file('postgresql.auto.conf')",
            "SELECT 'database', datname, datacl, datallowconn FROM pg_database",
            "SELECT 'own value', s.* FROM pg_db_role_setting s",
            "SELECT 'role', rolname FROM pg_roles",
            "SELECT 'schema', nspname FROM pg_namespace",
        ],
        moves: &[],
        parameter: ("work_mem", "16MB"),
        audit: ("LogStatement", json!({"logStatement": {"statements": "All"}})),
    }
}

impl Foreign {
    fn start(&self, bench: &Bench) {
        let ask = [self.client, &["SELECT 1"]].concat();
        let container = json!({
            "name": "db", "image": self.image,
            "command": ["sh", "-c", self.start],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "startupProbe": {"exec": {"command": ask},
                             "periodSeconds": 1, "failureThreshold": 120},
            // Guaranteed, with a core of its own: the load generator needs the other.
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        });
        let meta = |name: &str| json!({"name": name, "namespace": NAMESPACE, "labels": {"app": POD, "suite": "foreign"}});
        let mut secret = meta("orders-login");
        secret["labels"]["benchmark-campaign.dev/credentials"] = "true".into();
        for object in [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret,
                   "stringData": {"username": "bench", "password": "of the owner"}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(POD),
                   "spec": {"clusterIP": "None", "selector": {"app": POD}, "ports": [{"port": self.port}]}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta(POD), "spec": {
                "containers": [container],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "terminationGracePeriodSeconds": 3,
                "securityContext": {"runAsUser": 999, "runAsGroup": 999, "runAsNonRoot": true, "fsGroup": 999,
                                    "seccompProfile": {"type": "RuntimeDefault"}},
            }}),
        ] {
            bench.apply(&object);
        }
        bench.kubectl(&[
            "wait",
            "--namespace",
            NAMESPACE,
            "--for=condition=Ready",
            "--timeout=120s",
            "pod/orders",
        ]);
        for statement in self.login.iter().chain(self.by_hand) {
            self.sql(bench, statement);
        }
    }

    fn sql(&self, bench: &Bench, statement: &str) -> String {
        let exec = ["exec", "--namespace", NAMESPACE, POD, "--"];
        bench.kubectl(&[&exec, self.client, &[statement]].concat())
    }

    /// Everything that a person can see of the server but its clock.
    fn look(&self, bench: &Bench) -> BTreeSet<String> {
        let shown = self.look.iter().map(|statement| self.sql(bench, statement));
        shown
            .collect::<String>()
            .lines()
            .filter(|line| !self.moves.iter().any(|start| line.starts_with(start)))
            .map(str::to_owned)
            .collect()
    }

    fn target(&self) -> Value {
        json!({
            "apiVersion": "benchmark-campaign.dev/v1alpha1", "kind": "BenchmarkTarget",
            "metadata": {"name": "orders", "namespace": NAMESPACE},
            "spec": {"engine": self.engine, "type": "External", "external": {
                "host": format!("{POD}.{NAMESPACE}.svc"),
                "tls": {"mode": "Disabled"},
                "credentialsSecretRef": {"name": "orders-login"},
                "permissions": {
                    "parameters": [self.parameter.0], "audit": [self.audit.0], "datasetSchema": "sbtest",
                },
            }},
        })
    }

    fn campaign(&self, bench: &Bench, name: &str) -> Value {
        let mut manifest = manifest::campaign(bench, NAMESPACE, name);
        let spec = &mut manifest["spec"];
        spec["databases"] = json!([{
            "name": "orders", "engine": self.engine, "type": "External",
            "external": {"targets": [{"instanceSize": "1u1g", "targetRef": {"name": "orders"}}]},
        }]);
        let (parameter, value) = self.parameter;
        spec["parameterTemplates"] = json!([{"name": "default", "parameters": {parameter: value}}]);
        let (kind, settings) = &self.audit;
        let mut audited = settings.clone();
        audited["name"] = "audit-all".into();
        audited["type"] = (*kind).into();
        spec["auditSettings"] = json!([{"name": "no-audit", "type": "None"}, audited]);
        spec["threads"] = json!([2]);
        spec["repetitions"]["blocks"] = 1.into();
        spec["restart"] = json!({"policy": "Never", "settle": {"timeout": "5s"}});
        manifest
    }

    /// Measures a campaign to its end, and sees the server as it was before.
    fn whole_campaign(&self, bench: &Bench) {
        let before = self.look(bench);
        bench.apply(&self.target());
        bench.apply(&self.campaign(bench, "whole"));
        bench.completed(NAMESPACE, "whole", 300);
        let runs = bench.list(NAMESPACE, "benchmarkruns");
        let evidence: BTreeSet<String> = runs
            .iter()
            .filter(|run| valid(run))
            .map(|run| {
                let status = &run["status"]["evidence"];
                format!("{} {}", status["level"], status["audit"]["recording"])
            })
            .collect();
        let wanted = ["\"ReadBack\" false", "\"ReadBack\" true"].map(str::to_owned);
        assert_eq!(
            evidence,
            BTreeSet::from(wanted),
            "a log that is not read proves nothing"
        );
        let target = given_back(bench);
        assert!(
            target["status"]["conditions"].as_array().is_some_and(|all| all
                .iter()
                .any(|c| c["type"] == "OriginalStateRestored" && c["status"] == "True")),
            "{target:#}"
        );
        assert_eq!(self.look(bench), before, "after a campaign");
    }
}

/// Waits until the target has nothing left to put back, and returns it.
fn given_back(bench: &Bench) -> Value {
    bench.wait(NAMESPACE, "what the server had is put back", 120, || {
        let target = bench.get(NAMESPACE, "benchmarktarget", "orders")?;
        let free = target["status"]["originalState"].is_null()
            && target["metadata"]["finalizers"].is_null()
            && target["status"]["holder"]["uid"]
                .as_str()
                .is_none_or(str::is_empty);
        free.then_some(target)
    })
}

/// Waits until load is applied to the borrowed server.
fn measured(bench: &Bench) {
    bench.wait(NAMESPACE, "load is applied", 120, || {
        let runs = bench.list(NAMESPACE, "benchmarkruns");
        runs.iter()
            .any(|run| run["status"]["step"] == "Measuring")
            .then_some(())
    });
}

#[test]
fn a_borrowed_server_is_as_it_was_after_a_campaign_a_deleted_one_and_a_killed_operator() {
    let (bench, _alone) = bench();
    bench.clear();
    let foreign = mariadb(bench);
    foreign.start(bench);
    let before = foreign.look(bench);
    foreign.whole_campaign(bench);
    no_password_can_be_found(bench, NAMESPACE, |pod| {
        (pod["metadata"]["name"] == POD).then(|| {
            let what = "cat /data/db/server_audit.log*; cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
            bench.kubectl(&["exec", POD, "-n", NAMESPACE, "--", "sh", "-c", what])
        })
    });

    // Deleted in the middle.
    bench.apply(&foreign.campaign(bench, "deleted"));
    measured(bench);
    assert_ne!(foreign.look(bench), before);
    bench.kubectl(&["delete", "--namespace", NAMESPACE, "benchmarkcampaign", "deleted"]);
    given_back(bench);
    assert_eq!(foreign.look(bench), before, "after a deleted campaign");

    // The operator is killed in the middle, and the target deleted.
    bench.apply(&foreign.campaign(bench, "killed"));
    measured(bench);
    bench.kill_operator();
    bench.completed(NAMESPACE, "killed", 300);
    given_back(bench);
    assert_eq!(foreign.look(bench), before, "after a killed operator");
    bench.kubectl(&[
        "delete",
        "--namespace",
        NAMESPACE,
        "--timeout=60s",
        "benchmarktarget",
        "orders",
    ]);
}

#[test]
fn a_borrowed_mysql_9_is_as_it_was_after_a_campaign() {
    let (bench, _alone) = bench();
    bench.clear();
    let foreign = mysql(bench);
    foreign.start(bench);
    foreign.whole_campaign(bench);
}

#[test]
fn a_borrowed_postgresql_17_is_as_it_was_after_a_campaign() {
    let (bench, _alone) = bench();
    bench.clear();
    let foreign = postgresql(bench);
    foreign.start(bench);
    foreign.whole_campaign(bench);
}
