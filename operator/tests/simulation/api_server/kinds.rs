//! The table of served resources: built-in ones and those that a `CustomResourceDefinition` adds.
//! Only facts that the real API server has about a kind; behaviour is in the other modules.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::validation::Schema;

/// Index of a resource in the registry; part of every object's key.
pub(crate) type ResourceId = usize;

/// What the server knows about one resource.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) id: ResourceId,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Has a `/status` subresource, so the main endpoint ignores status.
    pub(crate) status: bool,
    /// Counts `metadata.generation`.
    pub(crate) generation: bool,
    /// A finished delete answers with the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// A replace without `resourceVersion` is accepted.
    pub(crate) unconditional_update: bool,
    /// The schema of a custom resource; none for built-in kinds.
    pub(crate) schema: Option<Arc<Schema>>,
}

impl Kind {
    /// The kind of a `CustomResourceDefinition` (as JSON): its first served version, the schema compiled.
    pub(crate) fn defined_by(definition: &Value) -> Option<Self> {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = spec["versions"]
            .as_array()
            .and_then(|versions| versions.iter().find(|version| version["served"] == true))?;
        let schema = &version["schema"]["openAPIV3Schema"];
        Some(Kind {
            id: 0,
            group: text(&spec["group"]),
            version: text(&version["name"]),
            plural: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            namespaced: spec["scope"] == "Namespaced",
            status: version["subresources"]["status"].is_object(),
            generation: true,
            returns_deleted: false,
            unconditional_update: false,
            schema: schema.is_object().then(|| Arc::new(Schema::compile(schema))),
        })
    }

    /// `apiVersion` as objects carry it.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group` as error messages print it.
    pub(crate) fn qualified_plural(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `Kind.group` as validation messages print it.
    pub(crate) fn qualified_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

/// Everything served, by group and plural.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    all: Vec<Arc<Kind>>,
    by_name: BTreeMap<(String, String), ResourceId>,
}

/// group, version, plural, kind, then traits by letter: N namespaced, S status subresource, G generation,
/// R returns the deleted object, U unconditional update.
const BUILT_IN: &[(&str, &str, &str, &str, &str)] = &[
    ("", "v1", "namespaces", "Namespace", "SU"),
    ("", "v1", "nodes", "Node", "SU"),
    ("", "v1", "pods", "Pod", "NSGRU"),
    ("", "v1", "services", "Service", "NSRU"),
    ("", "v1", "configmaps", "ConfigMap", "NU"),
    ("", "v1", "secrets", "Secret", "NU"),
    ("", "v1", "serviceaccounts", "ServiceAccount", "NRU"),
    (
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "NSRU",
    ),
    ("", "v1", "persistentvolumes", "PersistentVolume", "SRU"),
    ("", "v1", "events", "Event", "NU"),
    ("events.k8s.io", "v1", "events", "Event", "NU"),
    ("batch", "v1", "jobs", "Job", "NSGU"),
    ("coordination.k8s.io", "v1", "leases", "Lease", "N"),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", "RU"),
    (
        "networking.k8s.io",
        "v1",
        "networkpolicies",
        "NetworkPolicy",
        "NGU",
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "SG",
    ),
];

impl Kinds {
    /// The built-in kinds only.
    pub(crate) fn built_in() -> Self {
        let mut kinds = Self::default();
        for (group, version, plural, kind, traits) in BUILT_IN {
            let has = |letter: char| traits.contains(letter);
            kinds.add(Kind {
                id: 0,
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                plural: (*plural).to_owned(),
                kind: (*kind).to_owned(),
                namespaced: has('N'),
                status: has('S'),
                generation: has('G'),
                returns_deleted: has('R'),
                unconditional_update: has('U'),
                schema: None,
            });
        }
        kinds
    }

    /// Serves the kind that a `CustomResourceDefinition` (as JSON) describes.
    pub(crate) fn add_custom(&mut self, definition: &Value) {
        if let Some(kind) = Kind::defined_by(definition) {
            self.add(kind);
        }
    }

    /// Serves a kind.
    pub(crate) fn add(&mut self, mut kind: Kind) -> ResourceId {
        let name = (kind.group.clone(), kind.plural.clone());
        let id = self.by_name.get(&name).copied().unwrap_or(self.all.len());
        kind.id = id;
        if id == self.all.len() {
            self.all.push(Arc::new(kind));
            self.by_name.insert(name, id);
        } else {
            self.all[id] = Arc::new(kind);
        }
        id
    }

    /// The resource with this group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let id = self.by_name.get(&(group.to_owned(), plural.to_owned()))?;
        let kind = &self.all[*id];
        (kind.version == version).then(|| kind.clone())
    }

    /// Whether anything of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all
            .iter()
            .any(|kind| kind.group == group && kind.version == version)
    }

    /// The resource of an object by its own words; used for owner references.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.all
            .iter()
            .find(|candidate| candidate.kind == kind && candidate.api_version() == api_version)
            .cloned()
    }

    /// The resource with this id.
    pub(crate) fn get(&self, id: ResourceId) -> &Arc<Kind> {
        &self.all[id]
    }

    /// All resources, in order of registration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.all.iter()
    }
}
