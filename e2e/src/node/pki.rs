//! Certificates and kubeconfigs of the node's components, made anew for every node and never leaving its state folder.

use std::fs;
use std::path::Path;

use super::network::{KUBERNETES_SERVICE, NODE_ADDRESS};
use crate::command::{output, system};
use crate::error::{Result, at};

/// Name of the node object.
pub const NODE: &str = "bench";

/// Writes the certificate authority, all certificates, and a kubeconfig `NAME.conf` for each client.
pub fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut authority = openssl(folder);
    authority.args([
        "req",
        "-x509",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=benchmark-campaign",
        "-days",
        "3650",
    ]);
    output("making the certificate authority", authority.args(NEW_KEY))?;
    let mut account_key = openssl(folder);
    account_key.args([
        "ecparam",
        "-name",
        "prime256v1",
        "-genkey",
        "-noout",
        "-out",
        "sa.key",
    ]);
    output("making the service account key", &mut account_key)?;
    let mut public = openssl(folder);
    output(
        "making the service account key",
        public.args(["ec", "-in", "sa.key", "-pubout", "-out", "sa.pub"]),
    )?;

    let names = format!(
        "IP:{NODE_ADDRESS},IP:{KUBERNETES_SERVICE},IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,\
         DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
    );
    certificate(folder, "apiserver", "/CN=kube-apiserver", Some(&names))?;
    certificate(
        folder,
        "apiserver-kubelet",
        "/O=system:masters/CN=apiserver-kubelet",
        None,
    )?;
    let clients = [
        ("admin", "/O=system:masters/CN=admin".to_owned(), None),
        (
            "controller-manager",
            "/CN=system:kube-controller-manager".to_owned(),
            None,
        ),
        ("scheduler", "/CN=system:kube-scheduler".to_owned(), None),
        ("proxy", "/CN=system:kube-proxy".to_owned(), None),
        ("coredns", "/CN=system:coredns".to_owned(), None),
        (
            "node",
            format!("/O=system:nodes/CN=system:node:{NODE}"),
            Some(format!("IP:{NODE_ADDRESS},DNS:{NODE}")),
        ),
    ];
    for (name, subject, names) in clients {
        certificate(folder, name, &subject, names.as_deref())?;
        let path = folder.join(format!("{name}.conf"));
        fs::write(&path, kubeconfig(folder, name)).map_err(at(&path))?;
    }
    Ok(())
}

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

fn certificate(folder: &Path, name: &str, subject: &str, alternative_names: Option<&str>) -> Result<()> {
    let what = format!("making the certificate of {name}");
    let (key, request, cert) = (
        format!("{name}.key"),
        format!("{name}.csr"),
        format!("{name}.crt"),
    );
    let mut make = openssl(folder);
    make.args(["req", "-new", "-keyout", &key, "-out", &request, "-subj", subject])
        .args(NEW_KEY);
    make.args(["-addext", "extendedKeyUsage=serverAuth,clientAuth"]);
    if let Some(names) = alternative_names {
        make.args(["-addext", &format!("subjectAltName={names}")]);
    }
    output(&what, &mut make)?;
    let mut sign = openssl(folder);
    sign.args([
        "x509",
        "-req",
        "-in",
        &request,
        "-out",
        &cert,
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
    ]);
    output(&what, sign.args(["-days", "3650", "-copy_extensions", "copyall"]))?;
    Ok(())
}

fn openssl(folder: &Path) -> std::process::Command {
    let mut command = system("openssl");
    command.current_dir(folder);
    command
}

fn kubeconfig(folder: &Path, name: &str) -> String {
    let folder = folder.display();
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {NODE}
  cluster: {{server: \"https://{NODE_ADDRESS}:6443\", certificate-authority: \"{folder}/ca.crt\"}}
users:
- name: {name}
  user: {{client-certificate: \"{folder}/{name}.crt\", client-key: \"{folder}/{name}.key\"}}
contexts:
- name: {NODE}
  context: {{cluster: {NODE}, user: {name}}}
current-context: {NODE}
"
    )
}
