//! The per-user cache outside the clone: what is dear to build is built once, under a name made from its content.
//! A result appears by rename when it is complete, so a kill leaves nothing half-made; a file lock lets one build at a time.

use std::fmt::Write;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result, at};

/// The cache's folder, `$XDG_CACHE_HOME/benchmark-campaign` or `~/.cache/benchmark-campaign`.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Held while something must not happen twice at once; released on drop and on death of the process.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock, which ends with it")] File);

impl Cache {
    /// The cache of the user who runs this process.
    pub fn of_user() -> Result<Self> {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .filter(|value| Path::new(value).is_absolute())
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
            .ok_or_else(|| Error::Plain("neither XDG_CACHE_HOME nor HOME is set: set one of them".into()))?;
        Self::at(base.join("benchmark-campaign"))
    }

    /// A cache in the given folder.
    pub fn at(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(&root).map_err(at(&root))?;
        Ok(Self { root })
    }

    /// A file or folder of the cache.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where Rust artefacts are kept for every checkout.
    pub fn target(&self) -> PathBuf {
        self.path("target")
    }

    /// The log file of one step; its folder exists.
    pub fn log(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path("log");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(folder.join(format!("{name}.log")))
    }

    /// Takes a named lock of this cache, saying so when another process holds it.
    pub fn lock(&self, name: &str) -> Result<Lock> {
        lock_file(&self.path(&format!("{name}.lock")))
    }

    /// The folder `kind/key`, made by `build` in a temporary folder first if it is not there yet.
    pub fn build_once(
        &self,
        kind: &str,
        key: &str,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let parent = self.path(kind);
        let done = parent.join(key);
        if done.exists() {
            return Ok(done);
        }
        fs::create_dir_all(&parent).map_err(at(&parent))?;
        let _lock = self.lock(kind)?;
        if done.exists() {
            return Ok(done);
        }
        let partial = parent.join(format!(".partial-{key}"));
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(at(&partial))?;
        }
        fs::create_dir_all(&partial).map_err(at(&partial))?;
        build(&partial)?;
        fs::rename(&partial, &done).map_err(at(&done))?;
        Ok(done)
    }
}

impl Cache {
    /// Keeps the newest results of a kind whose keys begin so; every change of the code makes another one.
    pub fn keep_newest(&self, kind: &str, prefix: &str, keep: usize) -> Result<()> {
        let parent = self.path(kind);
        let _lock = self.lock(kind)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&parent).map_err(at(&parent))? {
            let entry = entry.map_err(at(&parent))?;
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                let made = entry
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .map_err(at(entry.path()))?;
                found.push((made, entry.path()));
            }
        }
        found.sort();
        found.reverse();
        for (_, old) in found.into_iter().skip(keep) {
            fs::remove_dir_all(&old).map_err(at(&old))?;
        }
        Ok(())
    }
}

/// Takes an exclusive lock on a file, waiting for its holder.
pub fn lock_file(path: &Path) -> Result<Lock> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(at(path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another process that holds {}", path.display());
            file.lock().map_err(at(path))?;
        }
        Err(TryLockError::Error(source)) => return Err(at(path)(source)),
    }
    Ok(Lock(file))
}

/// The first 16 hex digits of the SHA-256 of these parts; the parts' borders count.
pub fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let mut text = String::new();
    for byte in hash.finalize().iter().take(8) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The key of a file's content.
pub fn file_key(path: &Path) -> Result<String> {
    let content = fs::read(path).map_err(at(path))?;
    Ok(key([content.as_slice()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_content_and_on_where_parts_end() {
        let of = |parts: &[&str]| key(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
        assert_eq!(of(&["ab"]).len(), 16);
    }

    #[test]
    fn only_the_newest_of_a_name_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().into()).unwrap();
        for (age, key) in ["runner-a", "runner-b", "runner-c", "operator-a"]
            .into_iter()
            .enumerate()
        {
            let made = cache.build_once("images", key, |_| Ok(())).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64 * 60);
            File::open(made).unwrap().set_modified(time).unwrap();
        }
        cache.keep_newest("images", "runner-", 2).unwrap();
        let left = ["runner-a", "runner-b", "runner-c", "operator-a"]
            .map(|key| cache.path("images").join(key).exists());
        assert_eq!(left, [false, true, true, true]);
    }

    #[test]
    fn a_failed_build_leaves_no_result_and_the_next_one_starts_clean() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("cache")).unwrap();
        let failed = cache.build_once("bin", "k1", |to| {
            fs::write(to.join("half"), "x").unwrap();
            Err(Error::Plain("killed".into()))
        });
        assert!(failed.is_err());
        assert!(!cache.path("bin/k1").exists());
        let made = cache.build_once("bin", "k1", |to| {
            assert!(!to.join("half").exists(), "what the failed build left is gone");
            fs::write(to.join("whole"), "x").map_err(at(to))
        });
        assert!(made.unwrap().join("whole").exists());
        let again = cache.build_once("bin", "k1", |_| Err(Error::Plain("built twice".into())));
        assert!(again.is_ok());
    }
}
