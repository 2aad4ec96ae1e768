//! The programs of the local node, built from their Go modules: no release archive and no image is fetched.
//! They lie in one folder of the cache, named by the recipe below; another version is another folder.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Cache, key};
use crate::command;
use crate::error::{Error, Result, at};
use crate::progress::step;

/// How a module's programs are built.
#[derive(Debug)]
enum Via {
    /// `go install PACKAGE@VERSION`.
    Install,
    /// A module of our own that names them as tools, because theirs has `replace` lines, which `go install` refuses.
    Tool {
        /// The module that is required.
        module: &'static str,
    },
    /// As `Tool`, with the staging modules replaced by their released versions.
    Kubernetes,
}

/// One `go` build: some programs of one module at one version.
#[derive(Debug)]
struct GoBuild {
    what: &'static str,
    expect: &'static str,
    via: Via,
    version: &'static str,
    packages: &'static [&'static str],
    /// Program name as built and as wanted.
    rename: Option<(&'static str, &'static str)>,
}

/// The version of Kubernetes that the local node runs.
pub const KUBERNETES: &str = "1.36.3";

const BUILDS: &[GoBuild] = &[
    GoBuild {
        what: "Kubernetes 1.36.3 (six programs)",
        expect: "about 5 min",
        via: Via::Kubernetes,
        version: KUBERNETES,
        packages: &[
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kubelet",
            "k8s.io/kubernetes/cmd/kube-proxy",
            "k8s.io/kubernetes/cmd/kubectl",
        ],
        rename: None,
    },
    GoBuild {
        what: "etcd 3.7.3",
        expect: "about 30 s",
        via: Via::Tool {
            module: "go.etcd.io/etcd/server/v3",
        },
        version: "3.7.3",
        packages: &["go.etcd.io/etcd/server/v3"],
        rename: Some(("server", "etcd")),
    },
    GoBuild {
        what: "containerd 2.4.2",
        expect: "about 1 min",
        via: Via::Install,
        version: "2.4.2",
        packages: &[
            "github.com/containerd/containerd/v2/cmd/containerd",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/ctr",
        ],
        rename: None,
    },
    GoBuild {
        what: "network plugins 1.10.0",
        expect: "about 10 s",
        via: Via::Install,
        version: "1.10.0",
        packages: &[
            "github.com/containernetworking/plugins/plugins/main/ptp",
            "github.com/containernetworking/plugins/plugins/main/loopback",
            "github.com/containernetworking/plugins/plugins/ipam/host-local",
        ],
        rename: None,
    },
    GoBuild {
        what: "CoreDNS 1.15.0",
        expect: "about 2 min",
        via: Via::Install,
        version: "1.15.0",
        packages: &["github.com/coredns/coredns"],
        rename: None,
    },
    GoBuild {
        what: "local-path-provisioner 0.0.30",
        expect: "about 1 min",
        via: Via::Install,
        version: "0.0.30",
        packages: &["github.com/rancher/local-path-provisioner"],
        rename: None,
    },
    GoBuild {
        what: "Helm 4.3.1",
        expect: "about 2 min",
        via: Via::Install,
        version: "4.3.1",
        packages: &["helm.sh/helm/v4/cmd/helm"],
        rename: None,
    },
    GoBuild {
        what: "kubeconform 0.7.0",
        expect: "about 10 s",
        via: Via::Install,
        version: "0.7.0",
        packages: &["github.com/yannh/kubeconform/cmd/kubeconform"],
        rename: None,
    },
];

const FLAGS: &str = "-trimpath -buildvcs=false";

/// The folder with all programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Builds what the cache lacks.
    pub fn ensure(cache: &Cache) -> Result<Self> {
        let folder = cache.build_once("bin", &recipe_key(), |to| build_all(cache, to))?;
        Ok(Self { folder })
    }

    /// The folder, for search paths.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of one program.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command that runs one of them.
    pub fn command(&self, name: &str) -> Command {
        Command::new(self.path(name))
    }
}

/// Names the folder: it changes with any version, flag or list above.
pub fn recipe_key() -> String {
    key([
        format!("{BUILDS:?}").as_bytes(),
        FLAGS.as_bytes(),
        kubernetes_ldflags().as_bytes(),
    ])
}

fn build_all(cache: &Cache, to: &Path) -> Result<()> {
    let version =
        command::output("go version", Command::new("go").arg("version")).map_err(|_| Error::Missing {
            tool: "go".into(),
            remedy: "install Go 1.26 or newer (https://go.dev/dl) and add it to PATH".into(),
        })?;
    eprintln!(
        "Building the local node's programs with {} (once; about 12 minutes on two cores):",
        version.trim()
    );
    let log = cache.log("binaries")?;
    let work = to.join("work");
    for build in BUILDS {
        fs::create_dir_all(&work).map_err(at(&work))?;
        step(&format!("{}, {}", build.what, build.expect), || {
            build_one(build, to, &work, &log)
        })?;
        fs::remove_dir_all(&work).map_err(at(&work))?;
        if let Some((from, name)) = build.rename {
            fs::rename(to.join(from), to.join(name)).map_err(at(to.join(from)))?;
        }
    }
    Ok(())
}

fn build_one(build: &GoBuild, to: &Path, work: &Path, log: &Path) -> Result<()> {
    let go = || {
        let mut command = Command::new("go");
        command
            .current_dir(work)
            .env("CGO_ENABLED", "0")
            .env("GOBIN", to)
            .env("GOFLAGS", FLAGS);
        command
    };
    let go_mod = match build.via {
        Via::Install => {
            for package in build.packages {
                let at_version = format!("{package}@v{}", build.version);
                let mut install = go();
                install.args(["install", "-ldflags", "-s -w", &at_version]);
                command::run(&format!("go install {at_version}"), &mut install, log)?;
            }
            return Ok(());
        }
        Via::Tool { module } => tool_module(build.packages, module, build.version, &[]),
        Via::Kubernetes => {
            let module = "k8s.io/kubernetes";
            let mut download = go();
            download.args([
                "mod",
                "download",
                "-json",
                &format!("{module}@v{}", build.version),
            ]);
            let listing = command::output("go mod download k8s.io/kubernetes", &mut download)?;
            let listing: serde_json::Value = serde_json::from_str(&listing)
                .map_err(|error| Error::Plain(format!("go mod download: {error}")))?;
            let path = listing["GoMod"].as_str().unwrap_or_default();
            let upstream = fs::read_to_string(path).map_err(at(path))?;
            let staging: Vec<(String, String)> = staging_modules(&upstream)
                .into_iter()
                .map(|name| (name, build.version.replacen("1.", "0.", 1)))
                .collect();
            tool_module(build.packages, module, build.version, &staging)
        }
    };
    fs::write(work.join("go.mod"), go_mod).map_err(at(work))?;
    command::run("go mod tidy", go().args(["mod", "tidy"]), log)?;
    let ldflags = if matches!(build.via, Via::Kubernetes) {
        kubernetes_ldflags()
    } else {
        "-s -w".into()
    };
    command::run(
        &format!("go install {}", build.what),
        go().args(["install", "-ldflags", &ldflags, "tool"]),
        log,
    )
}

/// A go.mod that requires one module and names some of its programs as tools.
fn tool_module(packages: &[&str], module: &str, version: &str, replace: &[(String, String)]) -> String {
    let mut text = String::from("module node\n\ngo 1.26.0\n\ngodebug default=go1.26\n\ntool (\n");
    for package in packages {
        let _ = writeln!(text, "\t{package}");
    }
    let _ = writeln!(text, ")\n\nrequire {module} v{version}");
    if !replace.is_empty() {
        text.push_str("\nreplace (\n");
        for (name, version) in replace {
            let _ = writeln!(text, "\t{name} => {name} v{version}");
        }
        text.push_str(")\n");
    }
    text
}

/// The modules that a go.mod replaces by a folder of its own repository.
fn staging_modules(go_mod: &str) -> Vec<String> {
    go_mod
        .lines()
        .filter_map(|line| line.split_once("=>"))
        .filter(|(_, to)| to.trim().starts_with("./staging/"))
        .filter_map(|(from, _)| {
            from.trim()
                .trim_start_matches("replace")
                .split_whitespace()
                .next()
        })
        .map(str::to_owned)
        .collect()
}

/// Without these the programs would call themselves v0.0.0 and clients would refuse them.
fn kubernetes_ldflags() -> String {
    let component = "k8s.io/component-base/version";
    let minor = KUBERNETES.split('.').nth(1).unwrap_or_default();
    format!(
        "-s -w -X {component}.gitVersion=v{KUBERNETES} -X {component}.gitMajor=1 -X {component}.gitMinor={minor} \
         -X {component}.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=v{KUBERNETES}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_modules_are_those_replaced_by_a_folder() {
        let go_mod = "module k8s.io/kubernetes\nrequire k8s.io/api v0.0.0\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\
                      \texample.com/fork => example.com/other v1.0.0\n)\nreplace k8s.io/klog => ./staging/src/k8s.io/klog\n";
        assert_eq!(staging_modules(go_mod), ["k8s.io/api", "k8s.io/klog"]);
    }

    #[test]
    fn the_tool_module_pins_version_and_replacements() {
        let text = tool_module(&["a/cmd/x"], "a", "1.2.3", &[("b".into(), "0.2.3".into())]);
        assert!(text.contains("tool (\n\ta/cmd/x\n)"), "{text}");
        assert!(text.contains("require a v1.2.3\n"), "{text}");
        assert!(text.contains("replace (\n\tb => b v0.2.3\n)"), "{text}");
    }

    #[test]
    fn the_recipe_key_is_stable_and_flags_name_the_version() {
        assert_eq!(recipe_key(), recipe_key());
        assert!(kubernetes_ldflags().contains("gitMinor=36 "));
    }
}
