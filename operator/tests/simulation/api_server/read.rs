//! Get and list, with selectors, pages and, where the caller allows it, answers from the past.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    State,
    failure::Failure,
    kinds::Kind,
    request::ApiRequest,
    store::{Key, Version},
};

impl State {
    /// GET of a named object.
    pub(crate) fn get(&self, request: &ApiRequest) -> Result<String, Failure> {
        let key = request.key();
        let version = self
            .store
            .get(&key)
            .ok_or_else(|| Failure::not_found(&request.kind, &key.name))?;
        if request.subresource.as_deref() == Some("log") {
            return self.log(request, &version);
        }
        Ok(render(&version, request.metadata_only))
    }

    fn log(&self, request: &ApiRequest, pod: &Version) -> Result<String, Failure> {
        let container = match request.parameter("container") {
            Some(name) => name.to_owned(),
            None => pod.value["spec"]["containers"][0]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let log = self.logs.get(&(pod.uid().to_owned(), container.clone()));
        let Some(log) = log else {
            return Err(Failure::bad_request(format!(
                "container \"{container}\" in pod \"{}\" is waiting to start: ContainerCreating",
                request.key().name
            )));
        };
        let lines: Vec<&str> = log.lines().collect();
        let tail = request.number("tailLines")?.unwrap_or(u64::MAX) as usize;
        let mut text = lines[lines.len().saturating_sub(tail)..].join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(limit) = request.number("limitBytes")? {
            text.truncate(limit as usize);
        }
        Ok(text)
    }

    /// GET of a collection. `stale` is a revision that the caller would accept, if it asked for any.
    pub(crate) fn list(&self, request: &ApiRequest, stale: Option<u64>) -> Result<String, Failure> {
        let selector = request.selector()?;
        let namespace = request.namespace.as_deref();
        let limit = request.number("limit")?.filter(|limit| *limit > 0);
        let start = request.parameter("continue").map(parse_token).transpose()?;
        let exact = request.parameter("resourceVersionMatch") == Some("Exact");
        let revision = match &start {
            Some((revision, _)) => *revision,
            None if exact => request.number("resourceVersion")?.unwrap_or(0),
            None => stale.unwrap_or(self.store.revision()),
        };
        let objects: Vec<(Key, Arc<Version>)> = if revision == self.store.revision() {
            self.store
                .list(request.kind.id, namespace)
                .map(|(key, version)| (key.clone(), version.clone()))
                .collect()
        } else {
            self.store
                .list_at(request.kind.id, namespace, revision)
                .ok_or_else(|| {
                    Failure::expired("The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.")
                })?
        };
        let mut selected = objects.into_iter().filter(|(key, version)| {
            start
                .as_ref()
                .is_none_or(|(_, after)| (&key.namespace, &key.name) > (&after.0, &after.1))
                && selector.matches(&version.value)
        });
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        let mut items = Vec::new();
        let mut last = None;
        for (key, version) in selected.by_ref() {
            items.push(render(&version, request.metadata_only));
            last = Some(key);
            if limit.is_some_and(|limit| items.len() as u64 >= limit) {
                break;
            }
        }
        let remaining = selected.count();
        if let (true, Some(last)) = (remaining > 0, last) {
            metadata["continue"] = json!(format!("{revision}/{}/{}", last.namespace, last.name));
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(remaining);
            }
        }
        let (api_version, kind) = if request.metadata_only {
            (
                "meta.k8s.io/v1".to_owned(),
                "PartialObjectMetadataList".to_owned(),
            )
        } else {
            (request.kind.api_version(), format!("{}List", request.kind.kind))
        };
        Ok(format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":[{}]}}"#,
            items.join(",")
        ))
    }
}

fn parse_token(token: &str) -> Result<(u64, (String, String)), Failure> {
    let mut parts = token.splitn(3, '/');
    let parsed = (|| {
        let revision = parts.next()?.parse().ok()?;
        Some((revision, (parts.next()?.to_owned(), parts.next()?.to_owned())))
    })();
    parsed.ok_or_else(|| Failure::bad_request("continue key is not valid"))
}

/// The JSON of a version, whole or only its metadata.
pub(crate) fn render(version: &Version, metadata_only: bool) -> String {
    if metadata_only {
        json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": version.value["metadata"],
        })
        .to_string()
    } else {
        version.json.clone()
    }
}

/// The answer to a request for what the server serves, used by discovery.
pub(crate) fn resource_list<'a>(group_version: &str, kinds: impl Iterator<Item = &'a Arc<Kind>>) -> Value {
    let verbs = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    let resources: Vec<Value> = kinds
        .filter(|kind| kind.api_version() == group_version)
        .flat_map(|kind| {
            let entry = |name: String| {
                json!({
                    "name": name, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced,
                    "kind": kind.kind, "verbs": verbs,
                })
            };
            let status = kind.status.then(|| entry(format!("{}/status", kind.plural)));
            std::iter::once(entry(kind.plural.clone())).chain(status)
        })
        .collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}
