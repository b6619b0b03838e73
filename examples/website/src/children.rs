//! The objects that a site should have. A pure function of the site.
//!
//! Names follow from the site's name, so that a reconcile that is interrupted and begins anew finds
//! what it made before. Nothing in here is random, depends on the time, or on the order of a hash
//! map: the same site has the same children, always.

use crate::{Theme, Website};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            ConfigMap, ConfigMapVolumeSource, Container, ContainerPort, PodSpec, PodTemplateSpec,
            Service, ServicePort, ServiceSpec, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use std::{collections::BTreeMap, io};

/// In whose name the operator writes. What it once applied and applies no more is removed.
pub const MANAGER: &str = "website";

/// Selects the children of all sites.
pub const SELECTOR: &str = "app.kubernetes.io/managed-by=website";

/// The annotation that says from which desired object a child was made; see `stamped`.
pub const DESIRED: &str = "demo.homeostat.dev/desired";

/// The annotation of pods that says which page they serve.
const PAGE: &str = "demo.homeostat.dev/page";

/// The objects that a site should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Children {
    /// The page.
    pub page: ConfigMap,
    /// The pods that serve it.
    pub deployment: Deployment,
    /// One address for all pods.
    pub service: Service,
}

// === impl Children ===

impl Children {
    /// The children of a site.
    #[must_use]
    pub fn of(site: &Website) -> Self {
        let page = page(site);
        Self {
            deployment: stamped(deployment(site, fingerprint(&page.data))),
            page: stamped(page),
            service: stamped(service(site)),
        }
    }
}

/// Namespace, name, labels and owner of every child.
fn metadata(site: &Website) -> ObjectMeta {
    ObjectMeta {
        name: Some(site.name_any()),
        namespace: site.namespace(),
        labels: Some(labels(site)),
        // The child is deleted with the site, and its events wake the site.
        owner_references: Some(site.controller_owner_ref(&()).into_iter().collect()),
        ..ObjectMeta::default()
    }
}

/// These select pods, and a deployment's selector can never be changed: nothing that may change
/// belongs in here, as a version.
fn labels(site: &Website) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".into(), "website".into()),
        ("app.kubernetes.io/instance".into(), site.name_any()),
        ("app.kubernetes.io/managed-by".into(), MANAGER.into()),
    ])
}

fn page(site: &Website) -> ConfigMap {
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
    ConfigMap {
        metadata: metadata(site),
        data: Some(BTreeMap::from([("index.html".into(), html)])),
        ..ConfigMap::default()
    }
}

fn deployment(site: &Website, page: String) -> Deployment {
    let container = Container {
        name: "web".into(),
        image: Some("nginx:1-alpine".into()),
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: 80,
            ..ContainerPort::default()
        }]),
        volume_mounts: Some(vec![VolumeMount {
            name: "page".into(),
            mount_path: "/usr/share/nginx/html".into(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let volume = Volume {
        name: "page".into(),
        config_map: Some(ConfigMapVolumeSource {
            name: site.name_any(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    };
    Deployment {
        metadata: metadata(site),
        spec: Some(DeploymentSpec {
            replicas: Some(site.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels(site)),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels(site)),
                    // Another page is another template, so the deployment rolls it out.
                    annotations: Some(BTreeMap::from([(PAGE.into(), page)])),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container],
                    volumes: Some(vec![volume]),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn service(site: &Website) -> Service {
    Service {
        metadata: metadata(site),
        spec: Some(ServiceSpec {
            selector: Some(labels(site)),
            ports: Some(vec![ServicePort {
                name: Some("http".into()),
                port: 80,
                target_port: Some(IntOrString::String("http".into())),
                ..ServicePort::default()
            }]),
            // No cluster IP and no node port: the server chooses them, and they are not ours.
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Marks a child with a fingerprint of itself.
///
/// Comparing the desired fields with the live object finds what somebody else changed. It does not
/// find a field that was desired before and is not any more, because that is not among the desired
/// ones; the fingerprint differs then, and applying the object removes the field.
fn stamped<K: Resource + Serialize>(mut child: K) -> K {
    let fingerprint = fingerprint(&child);
    child.annotations_mut().insert(DESIRED.into(), fingerprint);
    child
}

/// A fingerprint that is the same in every build: the hashes of `std` may change with the compiler,
/// and then an update of the operator would restart all pods. This is FNV-1a.
fn fingerprint(value: &impl Serialize) -> String {
    struct Hash(u64);
    impl io::Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    serde_json::to_writer(&mut hash, value)
        .expect("objects of Kubernetes have a JSON form, and hashing cannot fail");
    format!("{:016x}", hash.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Website {
        let mut site: Website = serde_saphyr::from_str(include_str!("../site.yaml")).unwrap();
        site.metadata.uid = Some("uid-1".into());
        site
    }

    fn template_of(children: &Children) -> &PodTemplateSpec {
        &children.deployment.spec.as_ref().unwrap().template
    }

    #[test]
    fn children_are_named_and_owned() {
        let children = Children::of(&site());
        for meta in [
            &children.page.metadata,
            &children.deployment.metadata,
            &children.service.metadata,
        ] {
            assert_eq!(meta.name.as_deref(), Some("blog"));
            assert_eq!(meta.namespace.as_deref(), Some("default"));
            let [owner] = meta.owner_references.as_deref().unwrap() else {
                panic!("one owner: {meta:?}");
            };
            assert_eq!(
                (owner.kind.as_str(), owner.uid.as_str()),
                ("Website", "uid-1")
            );
            assert_eq!(owner.controller, Some(true));
            let (key, value) = SELECTOR.split_once('=').unwrap();
            assert_eq!(meta.labels.as_ref().unwrap()[key], value);
        }
    }

    #[test]
    fn equal_sites_have_equal_children_whatever_the_status_says() {
        let mut later = site();
        later.metadata.resource_version = Some("9".into());
        later.metadata.generation = Some(3);
        later.status = Some(crate::WebsiteStatus::default());
        assert_eq!(Children::of(&site()), Children::of(&later));
    }

    /// Which children change with what, and which changes restart the pods.
    #[test]
    fn what_a_change_of_the_spec_changes() {
        type Change = fn(&mut Website);
        let table: [(&str, Change, [bool; 4]); 4] = [
            (
                "host",
                |site| site.spec.host = "x.example.com".into(),
                [false, false, false, false],
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
        let before = Children::of(&site());
        for (what, change, expected) in table {
            let mut site = site();
            change(&mut site);
            let after = Children::of(&site);
            let changed = [
                before.page != after.page,
                before.deployment != after.deployment,
                before.service != after.service,
                template_of(&before) != template_of(&after),
            ];
            assert_eq!(changed, expected, "{what}: page, deployment, service, pods");
        }
    }

    #[test]
    fn a_field_that_is_not_desired_any_more_changes_the_stamp() {
        let before = Children::of(&site()).service;
        let mut less = service(&site());
        less.spec.as_mut().unwrap().ports = None;
        let less = stamped(less);
        assert_ne!(before.annotations()[DESIRED], less.annotations()[DESIRED]);
    }

    /// The known values of the algorithm; another fingerprint would restart everybody's pods.
    #[test]
    fn the_fingerprint_is_fnv_1a() {
        assert_eq!(fingerprint(&1), "af63ac4c86019afc");
        assert_eq!(fingerprint(&serde_json::json!([])), "09612b07b5ecb5a5");
    }
}
