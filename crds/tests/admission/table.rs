//! The table of wrong manifests (`crds/tests/wrong`), for the check against the definitions alone and for the one of the
//! end-to-end suite against a real API server.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the repository")
        .to_path_buf()
}

/// Every document of a YAML file.
pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One line of the table.
pub(crate) struct Case {
    /// File and name.
    pub(crate) name: String,
    /// Where it is to be refused: `schema`, `rule`, `update`, `plan`, `catalogue`.
    pub(crate) stage: String,
    /// The object before the change, right in itself.
    pub(crate) before: Value,
    /// The object with the change.
    pub(crate) wrong: Value,
    /// Texts that must be said.
    pub(crate) expect: Vec<String>,
}

impl Case {
    /// The first text that is not said, in words.
    pub(crate) fn missing(&self, said: &str) -> Option<String> {
        let wanted = self.expect.iter().find(|part| !said.contains(part.as_str()))?;
        Some(format!("{}: `{wanted}` is not said, but: {said}", self.name))
    }
}

/// All of the table, in order.
pub(crate) fn cases() -> Vec<Case> {
    let folder = repository().join("crds/tests/wrong");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the table")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.iter().flat_map(|file| of_file(file)).collect()
}

/// A file of the table: `base`, a manifest of the repository, and `cases`.
fn of_file(path: &Path) -> Vec<Case> {
    let table = documents(path).remove(0);
    let base = repository().join(table["base"].as_str().expect("a base"));
    let base = documents(&base)
        .into_iter()
        .find(|document| document["apiVersion"] == "benchmark-campaign.dev/v1alpha1")
        .expect("the base holds one of our kinds");
    let file = path.file_name().expect("a name").to_string_lossy().into_owned();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let case = |case: &Value| {
        let before = patched(&base, &case["given"]);
        Case {
            name: format!("{file}: {}", text(&case["name"])),
            stage: text(&case["stage"]),
            wrong: patched(&before, &case["patch"]),
            before,
            expect: serde_json::from_value(case["expect"].clone()).expect("what is expected"),
        }
    };
    table["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(case)
        .collect()
}

/// The object with the changes of an RFC 6902 patch, if there is one.
fn patched(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    if patch.is_array() {
        let patch: json_patch::Patch =
            serde_json::from_value(patch.clone()).unwrap_or_else(|error| panic!("{patch}: {error}"));
        json_patch::patch(&mut object, &patch).unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    object
}
