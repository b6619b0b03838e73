//! Subresources that take a request of a kind of their own and do something: a pod is bound to a
//! node or evicted, a service account gets a token.

mod eviction;
mod token;

use serde_json::{Value, json};

use super::{Registry, Reply, Target, WriteOptions, set_condition};
use crate::object;
use crate::resource::{Subresource, api_version};
use crate::schema::{Schema, decode_builtin};
use crate::status::{Cause, Status, Subject};
use crate::storage::Object;

/// The types of the requests, by the name of the subresource.
const TYPES: [(&str, &str); 3] = [
    ("binding", "io.k8s.api.core.v1.Binding"),
    ("eviction", "io.k8s.api.policy.v1.Eviction"),
    ("token", "io.k8s.api.authentication.v1.TokenRequest"),
];

impl Registry {
    /// Does what a request to a subresource asks for.
    ///
    /// # Errors
    ///
    /// 400 for a body of another type or name, 404 without the object, and what the subresource
    /// answers.
    pub(super) fn act(
        &mut self,
        target: &Target,
        mut body: Value,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let name = target.subresource.as_deref().unwrap_or_default();
        let Some(subresource) = target.resource.subresource(name) else {
            return Err(Status::no_such_resource());
        };
        take_in(target, subresource, &mut body)?;
        match name {
            "binding" => self.bind(target, &body, options),
            "eviction" => self.evict(target, &body, options),
            "token" => self.issue_token(target, body, &options.requester),
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Puts a pod on a node.
    fn bind(
        &mut self,
        target: &Target,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Reply, Status> {
        let node = &binding["target"];
        let kind = node["kind"].as_str().unwrap_or_default();
        let node = node["name"].as_str().unwrap_or_default();
        let mut causes = Vec::new();
        if !["", "Node"].contains(&kind) {
            causes.push(Cause::not_supported("target.kind", &json!(kind), &["Node"]));
        }
        if node.is_empty() {
            causes.push(Cause::required("target.name", ""));
        }
        if !causes.is_empty() {
            let subject = Subject {
                group: "",
                kind: "Binding",
                name: &target.name,
            };
            return Err(Status::invalid(subject, causes));
        }
        let mut pod = Value::clone(&*self.stored(&target.main())?);
        if let Some(why) = why_not_bound(&pod, object::uid(binding)) {
            let subject = Subject {
                group: "",
                kind: "pods/binding",
                name: &target.name,
            };
            return Err(Status::conflict(subject, &why));
        }
        pod["spec"]["nodeName"] = json!(node);
        let condition = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null });
        let now = self.now();
        set_condition(&mut pod["status"]["conditions"], condition, &now);
        if !options.dry_run {
            self.store.put(target.key(), pod);
        }
        Ok(done())
    }
}

/// Checks the type and the name of a request and brings it into its canonical form.
fn take_in(target: &Target, subresource: &Subresource, body: &mut Value) -> Result<(), Status> {
    object::check_shape(body)?;
    let group = subresource.group.as_deref();
    let version = subresource.version.as_deref();
    let expected = api_version(
        group.unwrap_or(&target.resource.group),
        version.unwrap_or(&target.resource.version),
    );
    for (member, expected) in [("apiVersion", &expected), ("kind", &subresource.kind)] {
        let given = body[member].as_str().unwrap_or_default();
        if given.is_empty() {
            body[member] = json!(expected);
        } else if given != expected.as_str() {
            let (version, kind) = (&body["apiVersion"], &body["kind"]);
            return Err(Status::bad_request(format!(
                "{kind} in version {version} cannot be handled as a {}",
                subresource.kind
            )));
        }
    }
    let name = object::name(body);
    if !name.is_empty() && name != target.name {
        return Err(Status::bad_request(format!(
            "name in URL does not match name in {} object",
            subresource.kind
        )));
    }
    let known = TYPES.iter().find(|(name, _)| *name == subresource.name);
    if let Some((_, type_name)) = known {
        let schema = Schema::reference_to((*type_name).to_owned());
        if let Some(problem) = decode_builtin(body, &schema).problem {
            let kind = &subresource.kind;
            return Err(Status::bad_request(format!(
                "{kind} in version {expected:?} cannot be handled as a {kind}: {problem}"
            )));
        }
    }
    Ok(())
}

/// Why a pod cannot be put on a node, if it cannot.
fn why_not_bound(pod: &Value, uid: &str) -> Option<String> {
    let name = object::name(pod);
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != object::uid(pod) {
        let found = object::uid(pod);
        return Some(format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        ));
    }
    if object::is_being_deleted(pod) {
        return Some(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let is_gated = object::elements(&pod["spec"], "schedulingGates")
        .next()
        .is_some();
    is_gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// The answer to a request that is done.
fn done() -> Reply {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Reply {
        code: 201,
        body: Object::new(body),
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_cannot_be_bound() {
        for (pod, why) in [
            (json!({}), None),
            (json!({ "metadata": { "uid": "2" } }), Some("Precondition")),
            (
                json!({ "metadata": { "uid": "1", "deletionTimestamp": "t" } }),
                Some("being deleted"),
            ),
            (
                json!({ "metadata": { "uid": "1" }, "spec": { "nodeName": "n" } }),
                Some("assigned to node \"n\""),
            ),
            (
                json!({ "metadata": { "uid": "1" }, "spec": { "schedulingGates": [{}] } }),
                Some("schedulingGates"),
            ),
        ] {
            let uid = if why.is_none() { "" } else { "1" };
            let found = why_not_bound(&pod, uid);
            assert_eq!(found.is_some(), why.is_some(), "{pod}");
            let found = found.unwrap_or_default();
            assert!(found.contains(why.unwrap_or_default()), "{found}");
        }
    }
}
