//! A watch delivers our own writes later than the API server answers them: the newer of the two counts.

use kube::ResourceExt;

/// The newer of what a watch delivered and what a write answered: resource versions of one kind can be compared as
/// numbers. A decision about an older state would do again what is done.
pub(crate) fn newer<K: ResourceExt + Clone>(watched: &K, written: Option<&K>) -> K {
    let version = |object: &K| object.resource_version().and_then(|v| v.parse::<u128>().ok());
    match written {
        Some(written) if written.uid() == watched.uid() && version(written) > version(watched) => {
            written.clone()
        }
        _ => watched.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn the_newer_state_counts_and_only_of_the_same_object() {
        let object = |uid: &str, version: &str| {
            let mut object = ConfigMap::default();
            object.metadata.uid = Some(uid.into());
            object.metadata.resource_version = Some(version.into());
            object
        };
        let version = |o: &ConfigMap| o.resource_version().unwrap();
        let watched = object("a", "9");
        assert_eq!(version(&newer(&watched, Some(&object("a", "10")))), "10");
        assert_eq!(version(&newer(&watched, Some(&object("a", "8")))), "9");
        assert_eq!(version(&newer(&watched, Some(&object("b", "10")))), "9");
        assert_eq!(version(&newer(&watched, None)), "9");
    }
}
