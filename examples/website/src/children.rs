//! The objects that a site should have. Pure functions of the site.
//!
//! Names follow from the site's name, so that a reconcile that is interrupted and begins anew finds
//! what it made before. Nothing in here is random (the token comes from outside, and is made once), depends on the time, or on the order of a hash
//! map: the same site has the same children, always.

use crate::{Theme, Website};
use homeostat::children::{fingerprint, name};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// In whose name the operator writes. What it once applied and applies no more is removed.
pub const MANAGER: &str = "website";

/// Selects the children of all sites.
pub const SELECTOR: &str = "app.kubernetes.io/managed-by=website";

/// The page.
#[must_use]
pub fn page(site: &Website) -> ConfigMap {
    let (background, text) = match site.spec.theme {
        Theme::Light => ("white", "black"),
        Theme::Dark => ("black", "white"),
    };
    let html = format!(
        "<!doctype html>\n\
         <style>body {{ background: {background}; color: {text} }}</style>\n\
         {}\n",
        site.spec.html.trim_end()
    );
    child(site, json!({ "data": { "index.html": html } }))
}

/// The pods that serve it.
#[must_use]
pub fn deployment(site: &Website) -> Deployment {
    let page = fingerprint(&page(site).data);
    let container = json!({
        "name": "web",
        "image": "nginx:1-alpine",
        "ports": [{ "name": "http", "containerPort": 80 }],
        "volumeMounts": [{ "name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": true }],
    });
    let spec = json!({
        "replicas": site.spec.replicas,
        "selector": { "matchLabels": labels(site) },
        "template": {
            "metadata": {
                "labels": labels(site),
                // Another page is another template, so the deployment rolls it out.
                "annotations": { "demo.homeostat.dev/page": page },
            },
            "spec": {
                "containers": [container],
                "volumes": [{ "name": "page", "configMap": { "name": site.name_any() } }],
            },
        },
    });
    child(site, json!({ "spec": spec }))
}

/// A token for links that show a page before it is published. It is made once.
#[must_use]
pub fn preview(site: &Website, token: &str) -> Secret {
    let mut secret: Secret = child(site, json!({ "stringData": { "token": token } }));
    secret.metadata.name = Some(name(&site.name_any(), "preview"));
    secret
}

/// One address for all pods.
#[must_use]
pub fn service(site: &Website) -> Service {
    let ports = json!([{ "name": "http", "port": 80, "targetPort": "http" }]);
    // No cluster IP and no node port: the server chooses them, and they are not ours.
    child(
        site,
        json!({ "spec": { "selector": labels(site), "ports": ports } }),
    )
}

/// An object with name and labels. In which namespace it is and who owns it is seen to when it is
/// applied.
fn child<K: DeserializeOwned>(site: &Website, mut content: Value) -> K {
    content["metadata"] = json!({ "name": site.name_any(), "labels": labels(site) });
    serde_json::from_value(content).expect("the manifests in this file fit, as its tests show")
}

/// These select pods, and a deployment's selector can never be changed: nothing that may change
/// belongs in here, as a version.
fn labels(site: &Website) -> Value {
    json!({
        "app.kubernetes.io/name": "website",
        "app.kubernetes.io/instance": site.name_any(),
        "app.kubernetes.io/managed-by": MANAGER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Website {
        serde_saphyr::from_str(include_str!("../site.yaml")).unwrap()
    }

    /// Which children change with what, and which changes restart the pods.
    #[test]
    fn what_a_change_of_the_spec_changes() {
        type Change = fn(&mut Website);
        let table: [(&str, Change, [bool; 4]); 5] = [
            (
                "status",
                |site| site.status = Some(crate::WebsiteStatus::default()),
                [false; 4],
            ),
            (
                "host",
                |site| site.spec.host = "x.example.com".into(),
                [false; 4],
            ),
            (
                "replicas",
                |site| site.spec.replicas = 5,
                [false, true, false, false],
            ),
            (
                "html",
                |site| site.spec.html = "<p>New".into(),
                [true, true, false, true],
            ),
            (
                "theme",
                |site| site.spec.theme = Theme::Dark,
                [true, true, false, true],
            ),
        ];
        let template = |site: &Website| deployment(site).spec.unwrap().template;
        for (what, change, expected) in table {
            let (before, mut after) = (site(), site());
            change(&mut after);
            let changed = [
                page(&before) != page(&after),
                deployment(&before) != deployment(&after),
                service(&before) != service(&after),
                template(&before) != template(&after),
            ];
            assert_eq!(changed, expected, "{what}: page, deployment, service, pods");
        }
    }

    #[test]
    fn the_selector_finds_all_children() {
        let (key, value) = SELECTOR.split_once('=').unwrap();
        assert_eq!(labels(&site())[key], value);
    }
}
