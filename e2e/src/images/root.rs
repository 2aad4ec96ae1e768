//! Root filesystems of images, made from Debian packages by mmdebstrap.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, key};
use crate::command::{self, system};
use crate::error::{Error, Result};
use crate::progress::step;

/// What pods never read.
const LEFT_OUT: [&str; 4] = [
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
];

/// Makes what the package's own installation script made for a server of its own unnecessary to carry.
const EMPTIED: &str = r#"find "$1/var/lib/mysql" -mindepth 1 -delete 2>/dev/null || true"#;

/// A program that is taken alone out of a package that is large for other reasons: named like a package.
struct Extracted {
    name: &'static str,
    /// Package with the libraries that it needs.
    needs: &'static str,
    /// Puts it into the new root.
    hook: &'static str,
}

const EXTRACTED: &[Extracted] = &[Extracted {
    name: "pgbench",
    needs: "libpq5",
    // The server's package, whose number is the release's.
    hook: r#"chroot "$1" sh -ec 'cd /tmp
package=$(apt-cache depends postgresql | sed -n "s/.*Depends: \(postgresql-[0-9]*\)\$/\1/p")
apt-get --quiet download "$package"
dpkg-deb --extract "$package"_*.deb server
install server/usr/lib/postgresql/*/bin/pgbench /usr/local/bin/pgbench
rm -rf server "$package"_*.deb'"#,
}];

/// A mirror may be some days behind, which matters to releases that are not stable.
const MIRROR: &str = "--aptopt=Acquire::Check-Valid-Until \"false\"";

/// The tar file of a minimal Debian of this release with these packages.
pub(super) fn filesystem(cache: &Cache, suite: &str, packages: &[&str]) -> Result<PathBuf> {
    let extracted = |name: &&str| EXTRACTED.iter().find(|program| program.name == *name);
    let names: Vec<&str> = packages
        .iter()
        .map(|name| extracted(name).map_or(*name, |program| program.needs))
        .collect();
    let hooks: Vec<&str> = packages
        .iter()
        .filter_map(|name| extracted(name).map(|program| program.hook))
        .collect();
    let include = names.join(",");
    let excluded = LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}"));
    let mut parts = vec![suite, include.as_str(), EMPTIED];
    parts.extend(excluded.iter().map(String::as_str));
    parts.extend(&hooks);
    let key = key(parts.into_iter().map(str::as_bytes));
    let log = cache.log("images")?;
    let folder = cache.build_once("roots", &format!("{suite}-{key}"), |to| {
        step(
            &format!("root filesystem of {suite} with {include}, about 1 min"),
            || {
                let mut command = system("mmdebstrap");
                command
                    .args(["--quiet", "--variant=minbase", MIRROR])
                    .arg(format!("--include={include}"))
                    .args(&excluded);
                for hook in hooks {
                    command.arg(format!("--customize-hook={hook}"));
                }
                command
                    .arg(format!("--customize-hook={EMPTIED}"))
                    .arg(suite)
                    .arg(to.join("root.tar"));
                command::run("mmdebstrap", &mut command, &log)
            },
        )
    })?;
    Ok(folder.join("root.tar"))
}

/// The release of this machine: images that carry our programs must not have an older C library than they were linked to.
pub fn host_suite() -> Result<&'static str> {
    let text = std::fs::read_to_string(Path::new("/etc/os-release")).unwrap_or_default();
    suite_of(&text).ok_or_else(|| {
        Error::Plain(
            "images are built on Debian 12 (bookworm) or 13 (trixie) only, and /etc/os-release names another system: \
             build them elsewhere from operator/Containerfile and runner-image/Containerfile"
                .into(),
        )
    })
}

fn suite_of(os_release: &str) -> Option<&'static str> {
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    ["bookworm", "trixie"]
        .into_iter()
        .find(|suite| *suite == name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_releases_are_built_on() {
        assert_eq!(
            suite_of("NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\n"),
            Some("bookworm")
        );
        assert_eq!(suite_of("VERSION_CODENAME=\"trixie\"\n"), Some("trixie"));
        assert_eq!(suite_of("VERSION_CODENAME=jammy\n"), None);
        assert_eq!(suite_of(""), None);
    }
}
