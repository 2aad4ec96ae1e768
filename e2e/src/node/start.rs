//! Starting the node's components, in the order in which they need each other, and waiting until each serves.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::config;
use super::daemon::{Daemon, Place};
use super::network::{self, NODE_ADDRESS, SERVICES};
use super::pki::{self, NODE};
use super::record::Record;
use crate::binaries::Binaries;
use crate::command::{self, answer, last_lines, system};
use crate::error::{Error, Result, at};
use crate::images::Archive;

/// The components of one node that is being started.
pub(super) struct Start<'a> {
    pub(super) binaries: &'a Binaries,
    pub(super) record: Record,
    pub(super) namespace: PathBuf,
}

impl Start<'_> {
    /// Starts everything; returns when pods can run, volumes are provisioned and names are resolved.
    pub(super) fn all(mut self, pause: &Archive, volumes_helper: &Archive) -> Result<Record> {
        let state = self.record.state.clone();
        for folder in [
            "logs",
            "etcd",
            "containerd",
            "cni",
            "kubelet",
            "pod-logs",
            "volumes",
        ] {
            let path = state.join(folder);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        self.record.write()?;
        network::make()?;
        pki::make(&state.join("pki"))?;
        let admin = state.join("pki/admin.conf");
        fs::copy(&admin, state.join("kubeconfig")).map_err(at(&admin))?;

        self.control_plane(&state)?;
        self.container_runtime(&state, &pause.name)?;
        for archive in [pause, volumes_helper] {
            self.load(archive)?;
        }
        self.wait("the API server", "apiserver", 90, |start| {
            answer(start.kubectl().args(["get", "--raw", "/readyz"])).ok_or_else(String::new)
        })?;
        self.write(
            "cluster.yaml",
            &config::cluster_objects(&state, &volumes_helper.name),
        )?;
        let objects = state.join("cluster.yaml");
        command::output(
            "making the node's DNS and volume objects",
            self.kubectl().arg("apply").arg("-f").arg(&objects),
        )?;
        self.controllers(&state)?;
        self.kubelet(&state)?;
        self.addons(&state, &volumes_helper.name)?;
        self.wait("the node", "kubelet", 90, |start| {
            let path = "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}";
            match answer(start.kubectl().args(["get", "node", NODE, path])) {
                Some(status) if status == "True" => Ok(status),
                other => Err(other.unwrap_or_default()),
            }
        })?;
        self.wait("DNS", "coredns", 60, |start| {
            start.answers_http("127.0.0.1:8181/ready")
        })?;
        self.wait("the default service account", "controller-manager", 60, |start| {
            answer(
                start
                    .kubectl()
                    .args(["get", "serviceaccount", "default", "--output=name"]),
            )
            .ok_or_else(String::new)
        })?;
        self.record.complete = true;
        self.record.write()?;
        Ok(self.record)
    }

    fn control_plane(&mut self, state: &Path) -> Result<()> {
        let (data, pki) = (state.join("etcd"), state.join("pki"));
        let (data, pki) = (data.display(), pki.display());
        // Nothing here must survive a power cut, and fsync would disturb a measurement on the same disk.
        self.spawn(
            "etcd",
            &format!(
                "--data-dir={data} --unsafe-no-fsync --listen-client-urls=http://127.0.0.1:2379 \
                 --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380"
            ),
        )?;
        // The kubelet is called by address: `kubectl logs` would look the node's name up in DNS otherwise.
        self.spawn(
            "kube-apiserver",
            &format!(
                "--etcd-servers=http://127.0.0.1:2379 --advertise-address={NODE_ADDRESS} --bind-address={NODE_ADDRESS} \
                 --secure-port=6443 --tls-cert-file={pki}/apiserver.crt --tls-private-key-file={pki}/apiserver.key \
                 --client-ca-file={pki}/ca.crt --service-account-key-file={pki}/sa.pub \
                 --service-account-signing-key-file={pki}/sa.key \
                 --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range={SERVICES} \
                 --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
                 --kubelet-client-certificate={pki}/apiserver-kubelet.crt --kubelet-client-key={pki}/apiserver-kubelet.key \
                 --kubelet-certificate-authority={pki}/ca.crt --kubelet-preferred-address-types=InternalIP \
                 --allow-privileged=true"
            ),
        )
    }

    fn container_runtime(&mut self, state: &Path, pause: &str) -> Result<()> {
        let runc = ["/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"]
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| Error::Missing {
                tool: "runc".into(),
                remedy: "install Debian's package runc".into(),
            })?;
        let text = config::containerd(state, self.binaries.folder(), &runc, pause, snapshotter(state));
        self.write("containerd/config.toml", &text)?;
        self.write("cni/10-pods.conflist", &config::cni(state))?;
        self.spawn(
            "containerd",
            &format!("--config={}/containerd/config.toml", state.display()),
        )?;
        let socket = state.join("containerd/containerd.sock");
        self.wait("containerd", "containerd", 30, |start| {
            if socket.exists() && answer(start.ctr().arg("version")).is_some() {
                Ok(String::new())
            } else {
                Err(String::new())
            }
        })
    }

    fn controllers(&mut self, state: &Path) -> Result<()> {
        let pki = state.join("pki");
        let pki = pki.display();
        self.spawn(
            "kube-controller-manager",
            &format!(
                "--kubeconfig={pki}/controller-manager.conf --service-account-private-key-file={pki}/sa.key \
                 --root-ca-file={pki}/ca.crt --use-service-account-credentials --cluster-signing-cert-file={pki}/ca.crt \
                 --cluster-signing-key-file={pki}/ca.key --leader-elect=false --bind-address=127.0.0.1"
            ),
        )?;
        self.spawn(
            "kube-scheduler",
            &format!("--kubeconfig={pki}/scheduler.conf --leader-elect=false --bind-address=127.0.0.1"),
        )
    }

    fn kubelet(&mut self, state: &Path) -> Result<()> {
        self.write("kubelet/config.yaml", &config::kubelet(state))?;
        self.write("kubelet/proxy.yaml", &config::kube_proxy(state))?;
        let state = state.display();
        self.spawn(
            "kubelet",
            &format!(
                "--config={state}/kubelet/config.yaml --kubeconfig={state}/pki/node.conf --root-dir={state}/kubelet/root \
                 --hostname-override={NODE} --node-ip={NODE_ADDRESS}"
            ),
        )?;
        self.spawn("kube-proxy", &format!("--config={state}/kubelet/proxy.yaml"))
    }

    fn addons(&mut self, state: &Path, helper_image: &str) -> Result<()> {
        self.write("Corefile", &config::coredns(state))?;
        self.write("local-path.json", &config::local_path(state))?;
        let state = state.display();
        self.spawn("coredns", &format!("-conf {state}/Corefile"))?;
        self.spawn(
            "local-path-provisioner",
            &format!(
                "start --config {state}/local-path.json --configmap-name local-path-config \
                 --namespace {} --helper-image {helper_image} --kubeconfig {state}/pki/admin.conf",
                config::VOLUMES_NAMESPACE
            ),
        )
    }

    /// Starts a program and records it before anything else can fail. Paths hold no spaces: `Node::up` has checked.
    fn spawn(&mut self, program: &str, args: &str) -> Result<()> {
        let logs = self.record.state.join("logs");
        let place = Place {
            namespace: &self.namespace,
            logs: &logs,
            binaries: self.binaries.folder(),
        };
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let daemon = Daemon::spawn(program, &self.binaries.path(program), &args, &place)?;
        self.record.daemons.push(daemon);
        self.record.write()
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        super::import(self.binaries, &mut self.record, archive)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.record.state.join(name);
        fs::write(&path, text).map_err(at(&path))
    }

    fn kubectl(&self) -> std::process::Command {
        super::kubectl(self.binaries, &self.record.state)
    }

    fn ctr(&self) -> std::process::Command {
        super::ctr(self.binaries, &self.record.state)
    }

    fn answers_http(&self, address_and_path: &str) -> std::result::Result<String, String> {
        let (address, path) = address_and_path.split_once('/').unwrap_or((address_and_path, ""));
        let (host, port) = address.split_once(':').unwrap_or((address, "80"));
        let script = format!(
            "exec 3<>/dev/tcp/{host}/{port} && printf 'GET /{path} HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep ' 200 '"
        );
        let mut command = system("nsenter");
        command
            .arg(format!("--net={}", self.namespace.display()))
            .args(["bash", "-c", &script]);
        answer(&mut command).ok_or_else(|| format!("no answer at {address_and_path}"))
    }

    /// Asks until `ready` says yes, a daemon has ended, or the time is over.
    fn wait<T>(
        &self,
        what: &str,
        daemon: &str,
        seconds: u64,
        ready: impl Fn(&Self) -> std::result::Result<T, String>,
    ) -> Result<()> {
        let start = Instant::now();
        loop {
            let Err(last) = ready(self) else { return Ok(()) };
            let dead = self.record.daemons.iter().find(|daemon| !daemon.alive());
            if start.elapsed() > Duration::from_secs(seconds) || dead.is_some() {
                let name = dead.map_or(daemon, |dead| dead.name.as_str());
                let log = self.record.state.join(format!("logs/{name}.log"));
                let text = fs::read_to_string(&log).unwrap_or_default();
                let tail = format!("{last}\n{}", last_lines(&text, 8));
                return Err(match dead {
                    Some(_) => Error::Command {
                        what: name.into(),
                        status: "it ended".into(),
                        tail,
                        log: Some(log),
                    },
                    None => Error::Timeout {
                        what: what.into(),
                        seconds,
                        tail,
                        log: Some(log),
                    },
                });
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// overlayfs cannot lie on overlayfs (a cache inside a container): copy whole layers there.
fn snapshotter(state: &Path) -> &'static str {
    let kind = answer(system("stat").args(["--file-system", "--format=%T"]).arg(state)).unwrap_or_default();
    if kind.trim() == "overlayfs" {
        "native"
    } else {
        "overlayfs"
    }
}
