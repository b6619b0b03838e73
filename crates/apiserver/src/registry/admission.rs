//! What is checked beyond the object itself.

use serde_json::json;

use super::{Registry, Target, defaults};
use crate::object;
use crate::status::{Cause, Status};
use crate::storage::Key;
use serde_json::Value;

/// Namespaces that cannot be deleted.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Registry {
    /// Whether an object may be created: its namespace exists and stays, and its definition too.
    ///
    /// # Errors
    ///
    /// 404 without the namespace, 403 where it or the definition is being deleted.
    pub(super) fn admit_creation(&self, target: &Target, body: &Value) -> Result<(), Status> {
        let resource = &target.resource;
        let name = object::name(body);
        if resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.terminating)
        {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(resource.subject(name), why));
        }
        if !resource.namespaced {
            return Ok(());
        }
        let namespace = &target.namespace;
        let Some(namespaces) = self.catalog.find("", "v1", "namespaces") else {
            return Ok(());
        };
        let key = Key::new(&namespaces.storage, "", namespace);
        let Some(found) = self.store.get(&key) else {
            return Err(Status::not_found(namespaces.subject(namespace)));
        };
        if found["status"]["phase"] == "Terminating" {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being \
                 terminated"
            );
            return Err(
                Status::forbidden(resource.subject(name), &why).with_cause(Cause {
                    reason: "NamespaceTerminating",
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                }),
            );
        }
        Ok(())
    }

    /// Whether an object may be deleted.
    ///
    /// # Errors
    ///
    /// 403 for the namespaces that every cluster needs.
    pub(super) fn admit_deletion(target: &Target) -> Result<(), Status> {
        let resource = &target.resource;
        if resource.is("", "namespaces") && PROTECTED_NAMESPACES.contains(&target.name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(resource.subject(&target.name), why));
        }
        Ok(())
    }

    /// Sets what the server allocates or decides for a new object or a new state of an old one.
    pub(super) fn allocate(&mut self, target: &Target, body: &mut Value, old: Option<&Value>) {
        let resource = &target.resource;
        if resource.is("", "services") {
            self.allocate_addresses(body, old);
        } else if resource.is("", "pods") && old.is_none() {
            defaults::fill_late(resource, body);
        } else if resource.is("batch", "jobs") && old.is_none() {
            label_job(body);
        } else if resource.is("", "namespaces") && old.is_none() {
            defaults::label_namespace(body);
            body["spec"]["finalizers"] = json!(["kubernetes"]);
            body["status"] = json!({ "phase": "Active" });
        } else if resource.is("apiextensions.k8s.io", "customresourcedefinitions") && old.is_none()
        {
            super::definitions::prepare(body);
        }
    }

    fn allocate_addresses(&mut self, body: &mut Value, old: Option<&Value>) {
        if body["spec"]["type"] == "ExternalName" {
            return;
        }
        if body["spec"]["clusterIP"].as_str().is_none_or(str::is_empty) {
            let kept = old.and_then(|old| old["spec"]["clusterIP"].as_str());
            let address = kept.map_or_else(|| self.free_address(), str::to_owned);
            body["spec"]["clusterIP"] = json!(address);
        }
        body["spec"]["clusterIPs"] = json!([body["spec"]["clusterIP"]]);
        // A headless service without a selector is for every family.
        let anywhere = body["spec"]["clusterIP"] == "None" && body["spec"]["selector"].is_null();
        let (families, policy) = if anywhere {
            (json!(["IPv4", "IPv6"]), "RequireDualStack")
        } else {
            (json!(["IPv4"]), "SingleStack")
        };
        for (member, value) in [("ipFamilies", families), ("ipFamilyPolicy", json!(policy))] {
            if body["spec"][member].is_null() {
                body["spec"][member] = value;
            }
        }
    }

    /// An address of 10.96.0.0/12 that no service has.
    fn free_address(&mut self) -> String {
        loop {
            let host = self.entropy.below(1 << 20);
            let address = format!(
                "10.{}.{}.{}",
                96 + (host >> 16),
                (host >> 8) & 0xff,
                host & 0xff
            );
            let taken = self
                .catalog
                .find("", "v1", "services")
                .is_some_and(|services| {
                    let revision = self.store.revision();
                    let mut all = self.store.scan(&services.storage, None, revision, None);
                    all.any(|(_, service)| service["spec"]["clusterIP"] == address.as_str())
                });
            if !taken {
                return address;
            }
        }
    }
}

/// Makes a job's pods its own, by labels that name the job and its uid.
fn label_job(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (json!(object::uid(job)), json!(object::name(job)));
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    for place in ["/metadata", "/spec/template/metadata"] {
        if place != "/metadata" {
            object::member_mut(&mut job["spec"]["template"], "metadata");
        }
        let Some(metadata) = job.pointer_mut(place) else {
            continue;
        };
        let own = object::member_mut(metadata, "labels");
        own.extend(labels.map(|(label, value)| (label.to_owned(), value.clone())));
    }
    let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    job["spec"]["selector"] = selector;
}
