//! Writes what is generated from the types: the custom resource definitions (`crds/yaml` and the chart) and the API
//! reference (`docs/api.md`). With `--check` it only says which of them are not in step.

mod reference;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let check = std::env::args().any(|a| a == "--check");
    match crds_out_of_step(check) {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) if check => {
            eprintln!(
                "not in step with crds/src: {}\nrun: cargo run -p crds --bin crdgen",
                stale.join(", ")
            );
            ExitCode::FAILURE
        }
        Ok(stale) => {
            println!("wrote {}", stale.join(", "));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Files that differ from what they should be; written unless `check`.
fn crds_out_of_step(check: bool) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("the crate has no parent folder")?;
    let mut stale = Vec::new();
    for (path, content) in generated()? {
        let file = root.join(&path);
        if std::fs::read_to_string(&file).ok().as_deref() != Some(&content) {
            if !check {
                std::fs::create_dir_all(file.parent().ok_or("no folder")?)?;
                std::fs::write(&file, content)?;
            }
            stale.push(path);
        }
    }
    Ok(stale)
}

/// Every generated file, by its path in the repository.
fn generated() -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut files = vec![("docs/api.md".to_owned(), reference::page(&crds::all())?)];
    for mut definition in crds::all() {
        let plural = definition.spec.names.plural.clone();
        files.push((
            format!("crds/yaml/{plural}.yaml"),
            serde_yaml::to_string(&definition)?,
        ));
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert("helm.sh/resource-policy".into(), "keep".into());
        // Helm reads braces; descriptions may hold some.
        let kept = serde_yaml::to_string(&definition)?.replace("{{", "{{ \"{{\" }}");
        files.push((
            format!("charts/benchmark-campaign-operator/templates/crds/{plural}.yaml"),
            format!("{{{{- if .Values.crds.install }}}}\n{kept}{{{{- end }}}}\n"),
        ));
    }
    Ok(files)
}
