//! Writes the condition.

use super::Finding;
use crate::{
    Classify, ErrorClass, clock,
    reflector::{ObjectRef, Store},
    status::merge,
    target::Target,
};
use homeostat_core::{
    compare::Shape,
    conditions::{self, same_but_numbers},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Resource};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tracing::{debug, warn};

/// How long the condition may take, with all that is read in between. A server that does not answer
/// must not keep the place of a run.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes the condition of one type for the objects of one controller.
pub(super) struct Writer<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    client: Option<Client>,
    type_: String,
    store: Store<K>,
    dyntype: K::DynamicType,
    /// Whether the kind cannot have the condition. Nothing is written any more then.
    unsupported: AtomicBool,
    /// Whether somebody was told that the server refuses it.
    refused: AtomicBool,
}

/// What became of a condition.
enum Written {
    /// It is there.
    Done,
    /// The object is not.
    Gone,
    /// The kind cannot have it.
    Unsupported(&'static str),
    /// The server does not want it now, and not later either as things stand.
    Refused(kube::Error),
    /// It has to be tried again.
    Later(String),
}

// === impl Writer ===

impl<K> Writer<K>
where
    K: Resource + Clone + Serialize + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    pub(super) fn new(
        client: Option<Client>,
        type_: String,
        store: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        Self {
            client,
            type_,
            store,
            dyntype,
            unsupported: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        }
    }

    /// Writes the condition if it says something new. Answers whether it is still to be written.
    pub(super) async fn write(&self, obj: &Arc<K>, finding: Finding) -> bool {
        if self.unsupported.load(Ordering::Relaxed) {
            return false;
        }
        let Some(target) = self.target(obj) else {
            self.give_up("there is no client; name one with StatusConditions::client");
            return false;
        };
        let written = timeout(PATIENCE, self.attempt(&target, obj, finding)).await;
        let written = written.unwrap_or_else(|_| Written::Later("no answer".to_owned()));
        match written {
            Written::Done | Written::Gone => {}
            Written::Unsupported(why) => self.give_up(why),
            Written::Refused(error) => {
                if !self.refused.swap(true, Ordering::Relaxed) {
                    let (kind, type_) = (K::kind(&self.dyntype), &self.type_);
                    let error = told(&error);
                    warn!(%kind, condition = %type_, error, "a status condition cannot be written; this is said once");
                }
            }
            Written::Later(error) => {
                debug!(condition = %self.type_, error, "a status condition is to be written later");
                return true;
            }
        }
        false
    }

    async fn attempt(&self, target: &Target, obj: &Arc<K>, finding: Finding) -> Written {
        let live = match serde_json::to_value(&*self.latest(obj)) {
            Ok(live) => live,
            Err(error) => return Written::Refused(kube::Error::SerdeError(error)),
        };
        let now = clock::now();
        let desired = |status: &Value| self.desired(status, &finding, now);
        if desired(&live["status"]).is_none() {
            return Written::Unsupported("its status has something else by the name of conditions");
        }
        let desired = |status: &Value| desired(status).unwrap_or_else(|| status.clone());
        match merge(target, &Shape::of_status(), live, desired).await {
            Ok(None) => Written::Done,
            Ok(Some(answer)) if self.is_in(&answer) => Written::Done,
            Ok(Some(_)) => Written::Unsupported("its status has no conditions"),
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.not_found(target, obj).await
            }
            Err(error) => refused_or_later(error),
        }
    }

    /// What it means that the status was not found.
    async fn not_found(&self, target: &Target, obj: &Arc<K>) -> Written {
        match target.get().await {
            Ok(found) if found["metadata"]["uid"].as_str() == obj.meta().uid.as_deref() => {
                Written::Unsupported("it has no status subresource")
            }
            Ok(_) => Written::Gone,
            Err(kube::Error::Api(status)) if status.is_not_found() => Written::Gone,
            Err(error) => refused_or_later(error),
        }
    }

    /// The status that is there, with the condition in it; `None` if it has no place for one.
    fn desired(&self, status: &Value, finding: &Finding, now: Timestamp) -> Option<Value> {
        let mut condition = json!(finding.condition(&self.type_).at(now));
        let list = status["conditions"].as_array().into_iter().flatten();
        let before = list
            .into_iter()
            .find(|old| old["type"] == condition["type"]);
        if let Some(message) = before.and_then(|old| kept_message(old, &condition)) {
            condition["message"] = message;
        }
        let list = conditions::overlaid(&status["conditions"], &json!([condition]))?;
        let mut members = if status.is_null() {
            Map::new()
        } else {
            status.as_object()?.clone()
        };
        members.insert("conditions".to_owned(), list);
        Some(Value::Object(members))
    }

    /// Whether the server has kept the condition, and not dropped it as a field that it does not know.
    fn is_in(&self, answer: &Value) -> bool {
        let type_ = conditions::fit_type(&self.type_);
        let list = answer["status"]["conditions"].as_array();
        list.is_some_and(|list| list.iter().any(|condition| condition["type"] == *type_))
    }

    /// The latest that is known of the object: the run may have changed it.
    fn latest(&self, obj: &Arc<K>) -> Arc<K> {
        let reference = ObjectRef::from_obj_with(&**obj, self.dyntype.clone());
        let latest = self.store.get(&reference);
        let latest = latest.filter(|latest| latest.meta().uid == obj.meta().uid);
        latest.unwrap_or_else(|| Arc::clone(obj))
    }

    fn target(&self, obj: &K) -> Option<Target> {
        let client = self.client.clone()?;
        Some(Target::new(client, &self.dyntype, obj))
    }

    fn give_up(&self, why: &str) {
        if !self.unsupported.swap(true, Ordering::Relaxed) {
            let (kind, type_) = (K::kind(&self.dyntype), &self.type_);
            warn!(%kind, condition = %type_, "no status conditions for this kind: {why}");
        }
    }
}

/// The message that stays because the new one says the same of the same generation, in other numbers.
fn kept_message(old: &Value, new: &Value) -> Option<Value> {
    let members = ["status", "reason", "observedGeneration"];
    let same = members.into_iter().all(|name| old[name] == new[name]);
    let (before, after) = (old["message"].as_str()?, new["message"].as_str()?);
    (same && same_but_numbers(before, after)).then(|| old["message"].clone())
}

fn refused_or_later(error: kube::Error) -> Written {
    // No watch tells of a permission that is granted, but neither does a run help to get it.
    let forbidden = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
    match error.classify() {
        ErrorClass::Permanent { .. } => Written::Refused(error),
        _ if forbidden => Written::Refused(error),
        ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::Throttled { .. } => {
            Written::Later(told(&error))
        }
    }
}

/// What may stand in a log: not what the server answered, for it may quote what was sent.
fn told(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        format!("{} {}", status.code, status.reason)
    } else {
        error.to_string()
    }
}
