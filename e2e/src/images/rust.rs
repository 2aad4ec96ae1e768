//! The project's own programs, built for images in the cache that all checkouts share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::command;
use crate::error::{Error, Result, at};
use crate::progress::step;

/// The checkout that this program was built from.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Says in the target folder which checkout its artefacts of the project's own crates come from.
const CHECKOUT: &str = "benchmark-campaign-checkout";

/// cargo as everything here calls it: one target folder for all checkouts, and no setting inherited that would make
/// it compile the dependencies anew. What another checkout left of the project's own crates goes first: cargo compares
/// times, not contents, and would take another checkout's program for this one's.
pub fn cargo(cache: &Cache) -> Result<Command> {
    let _lock = cache.lock("checkout")?;
    let here = repository();
    let stamp = cache.target().join(CHECKOUT);
    let mine = here.to_string_lossy();
    if fs::read_to_string(&stamp).is_ok_and(|last| last == mine) {
        return Ok(plain_cargo(cache));
    }
    fs::create_dir_all(cache.target()).map_err(at(&cache.target()))?;
    let log = cache.log("clean")?;
    for profile in ["dev", "release"] {
        let mut clean = plain_cargo(cache);
        clean.args(["clean", "--locked", "--workspace", "--profile", profile]);
        command::run("cargo clean", &mut clean, &log)?;
    }
    fs::write(&stamp, mine.as_bytes()).map_err(at(&stamp))?;
    Ok(plain_cargo(cache))
}

fn plain_cargo(cache: &Cache) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(repository())
        .env("CARGO_TARGET_DIR", cache.target())
        .env_remove("RUSTFLAGS");
    command
}

/// Names the cargo profile of the programs in images; `dev` builds faster while they are being changed.
const PROFILE_VARIABLE: &str = "IMAGE_PROFILE";

/// Builds `operator` and `runner` (cargo profile `release`, or that of `IMAGE_PROFILE`); their paths, in copies that
/// no other checkout touches.
pub fn release_binaries(cache: &Cache) -> Result<(PathBuf, PathBuf)> {
    let profile = std::env::var(PROFILE_VARIABLE).unwrap_or_else(|_| "release".into());
    // Two checkouts build to the same place: the lock is held until the results are copied.
    let _lock = cache.lock("release")?;
    let log = cache.log("release")?;
    step(
        &format!("building the operator and the runner ({profile}; a few minutes the first time)"),
        || {
            let mut build = cargo(cache)?;
            build.args([
                "build",
                "--locked",
                "--profile",
                &profile,
                "-p",
                "operator",
                "-p",
                "runner",
                "--bins",
            ]);
            command::run(&format!("cargo build --profile {profile}"), &mut build, &log)
        },
    )?;
    let copy = |name: &str| {
        let from = cache.target().join(folder_of(&profile)).join(name);
        let content = fs::read(&from).map_err(|source| {
            Error::Plain(format!(
                "{}: {source}: the build made no program of that name",
                from.display()
            ))
        })?;
        let folder = cache.build_once(
            "programs",
            &format!("{name}-{}", crate::cache::key([content.as_slice()])),
            |to| {
                let path = to.join(name);
                fs::copy(&from, &path).map(drop).map_err(at(&path))
            },
        )?;
        cache.keep_newest("programs", &format!("{name}-"), 4)?;
        Ok(folder.join(name))
    };
    Ok((copy("operator")?, copy("runner")?))
}

/// cargo's folder for a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dev_profile_has_a_folder_of_another_name() {
        assert_eq!((folder_of("dev"), folder_of("release")), ("debug", "release"));
        assert!(repository().join("Cargo.toml").exists());
    }

    #[test]
    fn what_another_checkout_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let left = cache.target().join("release/operator");
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        for (last, stays) in [
            ("/another/checkout", false),
            (repository().to_str().unwrap(), true),
        ] {
            fs::write(&left, "a program").unwrap();
            fs::write(cache.target().join(CHECKOUT), last).unwrap();
            cargo(&cache).unwrap();
            assert_eq!(left.exists(), stays, "{last}");
            let stamp = fs::read_to_string(cache.target().join(CHECKOUT)).unwrap();
            assert_eq!(stamp, repository().to_str().unwrap());
        }
    }
}
