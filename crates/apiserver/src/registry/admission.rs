//! What is checked beyond the object itself.

use serde_json::json;

use super::{Registry, Target, defaults, pods};
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
    ///
    /// # Errors
    ///
    /// 422 where what the object asks for is taken.
    pub(super) fn allocate(
        &mut self,
        target: &Target,
        body: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let resource = &target.resource;
        if resource.is("", "services") {
            return self.allocate_for_service(target, body, old);
        }
        if old.is_some() && resource.is_definition() {
            super::definitions::note_storage(body);
        }
        if old.is_some() || resource.is_custom() {
            return Ok(());
        }
        if resource.is("", "pods") {
            self.admit_priority(target, body)?;
        }
        defaults::fill_by_admission(resource, body);
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "namespaces") => {
                defaults::label_namespace(body);
                body["spec"]["finalizers"] = json!(["kubernetes"]);
                body["status"] = json!({ "phase": "Active" });
            }
            ("", "pods") => self.complete_pod(body),
            ("", "persistentvolumes") => {
                body["status"]["lastPhaseTransitionTime"] = json!(self.now());
            }
            ("apiextensions.k8s.io", "customresourcedefinitions") => {
                super::definitions::prepare(body);
            }
            ("batch", "jobs") => label_job(body),
            _ => {}
        }
        Ok(())
    }
}

impl Registry {
    /// What a new pod gets when it is taken in.
    fn complete_pod(&self, pod: &mut Value) {
        pod["status"]["qosClass"] = json!(pods::class(pod));
        let grace = &mut pod["spec"]["terminationGracePeriodSeconds"];
        if grace.as_i64().is_some_and(|seconds| seconds < 0) {
            *grace = json!(1);
        }
        if object::elements(&pod["spec"], "schedulingGates")
            .next()
            .is_some()
        {
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null,
                "lastTransitionTime": self.now(),
            }]);
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
    // A job without labels of its own has those of its pods.
    let own = &job["metadata"]["labels"];
    let has_own = own.as_object().is_some_and(|own| !own.is_empty())
        && *own != job["spec"]["template"]["metadata"]["labels"];
    object::member_mut(&mut job["spec"]["template"], "metadata");
    let of_pods = object::member_mut(&mut job["spec"]["template"]["metadata"], "labels");
    of_pods.extend(labels.map(|(label, value)| (label.to_owned(), value.clone())));
    if !has_own {
        let all = of_pods.clone();
        object::metadata_mut(job).insert("labels".to_owned(), Value::Object(all));
    }
    let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    job["spec"]["selector"] = selector;
}
