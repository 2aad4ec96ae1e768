//! From an HTTP request to what it asks for: verb, resource, name, parameters. Reads no state but the table of kinds.

use std::{collections::BTreeMap, sync::Arc};

use axum::extract::Query;
use http::{Method, header, request::Parts};
use serde_json::Value;

use super::{
    failure::Failure,
    kinds::{Kind, Kinds},
    selector::Selector,
    store::Key,
};

/// Who asks. Only the operator under test meets faults and may be crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) name: String,
    pub(crate) faults: bool,
}

/// What a request wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Replace,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The word of RBAC.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Replace => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it changes anything.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A parsed request to a resource.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) actor: Actor,
    pub(crate) verb: Verb,
    pub(crate) kind: Arc<Kind>,
    /// Empty for cluster-scoped kinds; `None` for a list over all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: String,
    /// The client asked for metadata only.
    pub(crate) metadata_only: bool,
}

/// The parts of a resource path.
struct Path {
    group: String,
    version: String,
    namespace: Option<String>,
    plural: String,
    name: Option<String>,
    subresource: Option<String>,
}

fn parse_path(path: &str) -> Option<Path> {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let (group, version) = match segments.next()? {
        "api" => (String::new(), segments.next()?.to_owned()),
        "apis" => (segments.next()?.to_owned(), segments.next()?.to_owned()),
        _ => return None,
    };
    let rest: Vec<&str> = segments.collect();
    let owned = |index: usize| rest.get(index).map(|text| (*text).to_owned());
    let scoped =
        rest.first() == Some(&"namespaces") && rest.len() > 2 && !matches!(rest[2], "status" | "finalize");
    let offset = if scoped { 2 } else { 0 };
    Some(Path {
        group,
        version,
        namespace: scoped.then(|| rest[1].to_owned()),
        plural: owned(offset)?,
        name: owned(offset + 1),
        subresource: owned(offset + 2),
    })
}

impl ApiRequest {
    /// Understands a request, or says why it leads nowhere.
    pub(crate) fn parse(kinds: &Kinds, actor: Actor, parts: &Parts, body: Vec<u8>) -> Result<Self, Failure> {
        let path = parse_path(parts.uri.path()).ok_or_else(Failure::no_resource)?;
        let kind = kinds
            .find(&path.group, &path.version, &path.plural)
            .ok_or_else(|| {
                if kinds.serves(&path.group, &path.version) {
                    Failure::no_resource()
                } else {
                    Failure::no_path()
                }
            })?;
        let query = Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri)
            .map_err(|error| Failure::bad_request(error.to_string()))?
            .0;
        let watching = query
            .get("watch")
            .is_some_and(|value| value == "true" || value == "1");
        let verb = match (&parts.method, path.name.is_some()) {
            (&Method::GET, true) => Verb::Get,
            (&Method::GET, false) if watching => Verb::Watch,
            (&Method::GET, false) => Verb::List,
            (&Method::POST, false) => Verb::Create,
            (&Method::PUT, true) => Verb::Replace,
            (&Method::PATCH, true) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => return Err(Failure::method_not_allowed()),
        };
        let header = |name| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let namespace = if kind.namespaced {
            path.namespace
        } else {
            Some(String::new())
        };
        if namespace.is_none() && !matches!(verb, Verb::List | Verb::Watch) {
            return Err(Failure::method_not_allowed());
        }
        if let Some(subresource) = &path.subresource
            && !(subresource == "status" && kind.status
                || subresource == "log" && kind.plural == "pods"
                || subresource == "finalize" && kind.plural == "namespaces")
        {
            return Err(Failure::no_resource());
        }
        Ok(Self {
            actor,
            verb,
            kind,
            namespace,
            name: path.name,
            subresource: path.subresource,
            query,
            body,
            content_type: header(header::CONTENT_TYPE),
            metadata_only: header(header::ACCEPT).contains("as=PartialObjectMetadata"),
        })
    }

    /// A query parameter, if it is there and not empty.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A numeric query parameter.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.parameter(name)
            .map(|text| {
                text.parse()
                    .map_err(|_| Failure::bad_request(format!("invalid {name} {text:?}: want a number")))
            })
            .transpose()
    }

    /// Label and field selectors.
    pub(crate) fn selector(&self) -> Result<Selector, Failure> {
        Selector::parse(self.parameter("labelSelector"), self.parameter("fieldSelector"))
    }

    /// Nothing is to be stored.
    pub(crate) fn dry_run(&self) -> bool {
        self.parameter("dryRun") == Some("All")
    }

    /// The key of a named object.
    pub(crate) fn key(&self) -> Key {
        Key {
            resource: self.kind.id,
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
        }
    }

    /// The body as JSON; `null` when empty.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::bad_request(format!("couldn't parse the body: {error}")))
    }
}
