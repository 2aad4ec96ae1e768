//! The images that pods run, built on this machine from Containerfiles and brought to the node as archives.
//! No registry is asked: their base is a root filesystem made from Debian packages, given as the argument `BASE`.

mod root;
mod rust;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Cache, file_key, key};
use crate::command::{self, output, system};
use crate::error::{Result, at};
use crate::progress::step;

pub use root::host_suite;
pub use rust::{cargo, release_binaries, repository};

/// First part of every image's name here; a cluster elsewhere needs another one that it can pull from.
pub const LOCAL_PREFIX: &str = "localhost/benchmark-campaign";

/// Images of earlier code that stay in the cache: switching back and forth between two changes costs nothing.
const KEPT: usize = 4;

/// An image in a file (OCI archive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Full name with tag.
    pub name: String,
    /// The archive; its file name changes with its content.
    pub path: PathBuf,
}

impl Archive {
    /// The name without its tag.
    pub fn repository(&self) -> &str {
        self.name
            .rsplit_once(':')
            .map_or(self.name.as_str(), |(repository, _)| repository)
    }

    /// The tag.
    pub fn tag(&self) -> &str {
        self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag)
    }
}

/// One image to build.
struct Recipe<'a> {
    /// Last part of the name.
    name: &'a str,
    /// Fixed tag, or none: then the content's key is the tag, so that changed code is a new image.
    tag: Option<&'a str>,
    containerfile: PathBuf,
    /// Release and packages of the base; none: from scratch.
    base: Option<(&'a str, &'a [&'a str])>,
    /// Files of the build context.
    context: Vec<PathBuf>,
}

/// The process that holds a pod's namespaces.
pub fn pause(cache: &Cache) -> Result<Archive> {
    let folder = repository().join("e2e/images/pause");
    let source = folder.join("pause.c");
    let program = cache.build_once("images", &format!("pause-program-{}", file_key(&source)?), |to| {
        let mut gcc = system("gcc");
        gcc.args(["-static", "-Os", "-Wall", "-o"])
            .arg(to.join("pause"))
            .arg(&source);
        output("compiling the pause program", &mut gcc).map(drop)
    })?;
    build(
        cache,
        &Recipe {
            name: "pause",
            tag: Some("1"),
            containerfile: folder.join("Containerfile"),
            base: None,
            context: vec![program.join("pause")],
        },
    )
}

/// `MariaDB` 10.11 with its client programs, as Debian 12 has it: the database of the quickstart.
pub fn mariadb(cache: &Cache) -> Result<Archive> {
    mariadb_of(cache, "10.11", "bookworm")
}

/// `MariaDB` 11.8, as Debian 13 has it.
pub fn mariadb_11(cache: &Cache) -> Result<Archive> {
    mariadb_of(cache, "11.8", "trixie")
}

/// `MySQL` 9, as Debian's development release has it: no stable one ships `MySQL`.
pub fn mysql(cache: &Cache) -> Result<Archive> {
    build(
        cache,
        &Recipe {
            name: "mysql",
            tag: Some("9"),
            containerfile: repository().join("e2e/images/mysql/Containerfile"),
            base: Some(("sid", &["mysql-server-core", "mysql-client-core"])),
            context: Vec::new(),
        },
    )
}

/// `PostgreSQL` 17 with pgaudit and pgbench, as Debian 13 has them.
pub fn postgresql(cache: &Cache) -> Result<Archive> {
    build(
        cache,
        &Recipe {
            name: "postgresql",
            tag: Some("17"),
            containerfile: repository().join("e2e/images/postgresql/Containerfile"),
            base: Some(("trixie", &["postgresql-17", "postgresql-17-pgaudit"])),
            context: Vec::new(),
        },
    )
}

fn mariadb_of(cache: &Cache, version: &str, suite: &str) -> Result<Archive> {
    build(
        cache,
        &Recipe {
            name: "mariadb",
            tag: Some(version),
            containerfile: repository().join("e2e/images/mariadb/Containerfile"),
            base: Some((suite, &["mariadb-server", "mariadb-client"])),
            context: Vec::new(),
        },
    )
}

/// The runner with sysbench and pgbench, from this checkout's code.
pub fn runner(cache: &Cache, binary: &Path) -> Result<Archive> {
    build(
        cache,
        &Recipe {
            name: "runner",
            tag: None,
            containerfile: repository().join("runner-image/Containerfile"),
            base: Some((host_suite()?, &["sysbench", "pgbench"])),
            context: vec![binary.into()],
        },
    )
}

/// The operator, from this checkout's code.
pub fn operator(cache: &Cache, binary: &Path) -> Result<Archive> {
    build(
        cache,
        &Recipe {
            name: "operator",
            tag: None,
            containerfile: repository().join("operator/Containerfile"),
            base: Some((host_suite()?, &["ca-certificates"])),
            context: vec![binary.into()],
        },
    )
}

/// Copies an image to a registry that a cluster elsewhere can pull from, under another prefix; the new name.
pub fn push(cache: &Cache, archive: &Archive, prefix: &str) -> Result<String> {
    let name = archive
        .name
        .replacen(LOCAL_PREFIX, prefix.trim_end_matches('/'), 1);
    let storage = cache.path("push-storage");
    let log = cache.log("images")?;
    let pushed = step(&format!("pushing {name}"), || {
        let id = output(
            "reading the image",
            buildah(&storage)
                .arg("pull")
                .arg(format!("oci-archive:{}", archive.path.display())),
        )?;
        let mut push = buildah(&storage);
        push.arg("push").arg(id.trim()).arg(format!("docker://{name}"));
        command::run(&format!("buildah push {name}"), &mut push, &log)
    });
    let _ = fs::remove_dir_all(&storage);
    pushed.map(|()| name)
}

fn build(cache: &Cache, recipe: &Recipe) -> Result<Archive> {
    let base = recipe
        .base
        .map(|(suite, packages)| root::filesystem(cache, suite, packages))
        .transpose()?;
    let mut parts = vec![
        recipe.name.as_bytes().to_vec(),
        fs::read(&recipe.containerfile).map_err(at(&recipe.containerfile))?,
    ];
    // The base's folder is named by its own recipe.
    parts.extend(
        base.iter()
            .filter_map(|path| Some(path.parent()?.file_name()?.as_encoded_bytes().to_vec())),
    );
    for file in &recipe.context {
        parts.push(fs::read(file).map_err(at(file))?);
    }
    let key = key(parts.iter().map(Vec::as_slice));
    let name = format!("{LOCAL_PREFIX}/{}:{}", recipe.name, recipe.tag.unwrap_or(&key));
    let file = format!("{}-{key}.oci", recipe.name);
    let log = cache.log("images")?;
    let folder = cache.build_once("images", &format!("{}-{key}", recipe.name), |to| {
        step(&format!("building the image {}", recipe.name), || {
            assemble(recipe, base.as_deref(), &name, &to.join(&file), to, &log)
        })
    })?;
    if recipe.tag.is_none() {
        cache.keep_newest("images", &format!("{}-", recipe.name), KEPT)?;
    }
    Ok(Archive {
        name,
        path: folder.join(file),
    })
}

fn assemble(
    recipe: &Recipe,
    base: Option<&Path>,
    name: &str,
    archive: &Path,
    work: &Path,
    log: &Path,
) -> Result<()> {
    let storage = work.join("storage");
    let context = work.join("context");
    fs::create_dir_all(&context).map_err(at(&context))?;
    for file in &recipe.context {
        let to = context.join(file.file_name().unwrap_or_default());
        fs::copy(file, &to).map_err(at(file))?;
    }
    let mut build = buildah(&storage);
    build
        .args(["build", "--pull=never", "--tag", name, "--file"])
        .arg(&recipe.containerfile);
    if let Some(base) = base {
        let local = "localhost/base";
        let container = output(
            "buildah from scratch",
            buildah(&storage).args(["from", "scratch"]),
        )?;
        let container = container.trim();
        command::run(
            "buildah add",
            buildah(&storage).args(["add", "--quiet", container]).arg(base),
            log,
        )?;
        command::run(
            "buildah commit",
            buildah(&storage).args(["commit", "--quiet", "--rm", container, local]),
            log,
        )?;
        build.arg("--build-arg").arg(format!("BASE={local}"));
    }
    build.arg(&context);
    command::run(&format!("buildah build {name}"), &mut build, log)?;
    let mut save = buildah(&storage);
    save.args(["push", "--quiet", "--disable-compression", name])
        .arg(format!("oci-archive:{}:{name}", archive.display()));
    command::run(&format!("buildah push {name} to an archive"), &mut save, log)?;
    for left in [storage, context] {
        fs::remove_dir_all(&left).map_err(at(&left))?;
    }
    Ok(())
}

/// buildah with a storage of its own that needs neither overlayfs nor a daemon, and is thrown away afterwards.
fn buildah(storage: &Path) -> Command {
    let mut command = system("buildah");
    command
        .arg("--root")
        .arg(storage.join("root"))
        .arg("--runroot")
        .arg(storage.join("run"));
    command
        .env("STORAGE_DRIVER", "vfs")
        .env("BUILDAH_ISOLATION", "chroot");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_splits_at_its_tag() {
        let archive = Archive {
            name: "localhost:5000/a/runner:0123".into(),
            path: PathBuf::new(),
        };
        assert_eq!(
            (archive.repository(), archive.tag()),
            ("localhost:5000/a/runner", "0123")
        );
    }
}
