//! Writes the condition.

use super::Finding;
use crate::{
    Classify, ErrorClass, clock,
    conditions::Status,
    reflector::{ObjectRef, Store},
    status::merge,
    target::Target,
};
use homeostat_core::{
    compare::Shape,
    conditions::{self, same_but_numbers},
    telling::{Said, Telling, Verdict},
    time::Time,
};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};
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
    /// The time of the first condition, because this may be made outside of a runtime.
    origin: OnceLock<Instant>,
    /// What the Rust type of the objects keeps of a condition.
    kept: OnceLock<Kept>,
    told: Mutex<Told>,
}

/// What is left to be done about a condition after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// It could not be written.
    Unwritten,
    /// It is to be looked at again after this time.
    Later(Duration),
}

/// What a Rust type keeps of a condition, besides its type, status and reason.
#[derive(Debug, Clone, Copy)]
struct Kept {
    message: bool,
    generation: bool,
}

/// What was told of objects, by their uids. Of most there is nothing to remember.
#[derive(Default)]
struct Told {
    objects: BTreeMap<String, Telling>,
    /// At how many of them those that are gone are looked for.
    sweep: usize,
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
    Failed(String),
    /// It is not to be written yet.
    Later(Duration),
}

/// How many objects are remembered before those that are gone are looked for.
const FIRST_SWEEP: usize = 1024;

// === impl Writer ===

impl<K> Writer<K>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
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
            origin: OnceLock::new(),
            kept: OnceLock::new(),
            told: Mutex::default(),
        }
    }

    /// Writes the condition if it says something new. Answers what is left to be done about it.
    pub(super) async fn write(&self, obj: &Arc<K>, finding: Finding) -> Rest {
        if self.unsupported.load(Ordering::Relaxed) {
            return Rest::Nothing;
        }
        let Some(target) = self.target(obj) else {
            self.give_up("there is no client; name one with StatusConditions::client");
            return Rest::Nothing;
        };
        let written = timeout(PATIENCE, self.attempt(&target, obj, finding)).await;
        let written = written.unwrap_or_else(|_| Written::Failed("no answer".to_owned()));
        match written {
            Written::Done | Written::Gone => {}
            Written::Later(time) => return Rest::Later(time),
            Written::Unsupported(why) => self.give_up(why),
            Written::Refused(error) => {
                if !self.refused.swap(true, Ordering::Relaxed) {
                    let (kind, type_) = (K::kind(&self.dyntype), &self.type_);
                    let error = told(&error);
                    warn!(%kind, condition = %type_, error, "a status condition cannot be written; this is said once");
                }
            }
            Written::Failed(error) => {
                debug!(condition = %self.type_, error, "a status condition is to be written later");
                return Rest::Unwritten;
            }
        }
        Rest::Nothing
    }

    async fn attempt(&self, target: &Target, obj: &Arc<K>, finding: Finding) -> Written {
        let live = match serde_json::to_value(&*self.latest(obj)) {
            Ok(live) => live,
            Err(error) => return Written::Refused(kube::Error::SerdeError(error)),
        };
        let origin = self.origin.get_or_init(Instant::now);
        let (time, now) = (clock::now(), Time::ORIGIN + origin.elapsed());
        let desired = |status: &Value| self.desired(status, &finding, time);
        let Some(probe) = desired(&live["status"]) else {
            return Written::Unsupported("its status has something else by the name of conditions");
        };
        let kept = match self.kept(&live, probe) {
            Ok(kept) => kept,
            Err(why) => return Written::Unsupported(why),
        };
        let uid = obj.meta().uid.clone().unwrap_or_default();
        let (before, new) = (
            self.said(&live["status"], kept),
            self.to_say(&finding, kept),
        );
        match self.decide(&uid, now, before.as_ref(), &new) {
            Verdict::Tell => {}
            Verdict::Keep => return Written::Done,
            Verdict::Later(time) => return Written::Later(time),
        }
        let desired = |status: &Value| desired(status).unwrap_or_else(|| status.clone());
        match merge(target, &Shape::of_status(), live, desired).await {
            Ok(Some(answer)) if !self.is_in(&answer) => {
                Written::Unsupported("its status has no conditions")
            }
            Ok(_) => {
                self.note(uid, now, before.as_ref(), &new);
                Written::Done
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.not_found(target, obj).await
            }
            Err(error) => refused_or_later(error),
        }
    }

    /// What the Rust type keeps of a condition, given an object with a condition in its status; or why it can
    /// have none. What a type does not keep would look as if it were not there, and be written for ever.
    fn kept(&self, live: &Value, status: Value) -> Result<Kept, &'static str> {
        if let Some(kept) = self.kept.get() {
            return Ok(*kept);
        }
        let all = Kept {
            message: true,
            generation: true,
        };
        let condition = |object: &Value| self.condition(&object["status"]).cloned();
        let mut object = live.clone();
        object["status"] = status;
        let mut sent = condition(&object).unwrap_or_default();
        // Whatever has a value is kept or not; an absent one could be either.
        sent["observedGeneration"] = json!(1);
        if let Some(list) = object["status"]["conditions"].as_array_mut() {
            let mut list = list.iter_mut();
            if let Some(condition) = list.find(|condition| condition["type"] == sent["type"]) {
                *condition = sent.clone();
            }
        }
        let read = K::deserialize(&object).and_then(|read| serde_json::to_value(&read));
        let read = match read {
            Ok(read) => read,
            // Something else is missing in a status that was never written. The server knows what.
            Err(_) if live["status"].is_null() => return Ok(all),
            Err(_) => return Err("its Rust type cannot read such a condition"),
        };
        let Some(read) = condition(&read) else {
            return Err("its Rust type has no status.conditions");
        };
        let same = |name: &str| read[name] == sent[name];
        if !(same("status") && same("reason")) {
            return Err("its Rust type does not keep the status and the reason of a condition");
        }
        let kept = Kept {
            message: same("message"),
            generation: same("observedGeneration"),
        };
        Ok(*self.kept.get_or_init(|| kept))
    }

    /// What the condition says, if there is one.
    fn said(&self, status: &Value, kept: Kept) -> Option<Said> {
        let condition = self.condition(status)?;
        let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        Some(Said {
            generation: condition["observedGeneration"].as_i64(),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        })
        .map(|said| kept.of(said))
    }

    /// What it is to say.
    fn to_say(&self, finding: &Finding, kept: Kept) -> Said {
        let condition = json!(finding.condition(&self.type_).at(Timestamp::UNIX_EPOCH));
        let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        kept.of(Said {
            generation: finding.observed_generation,
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        })
    }

    fn condition<'v>(&self, status: &'v Value) -> Option<&'v Value> {
        let type_ = conditions::fit_type(&self.type_);
        let mut list = status["conditions"].as_array()?.iter();
        list.find(|condition| condition["type"] == *type_)
    }

    fn decide(&self, uid: &str, now: Time, live: Option<&Said>, new: &Said) -> Verdict {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(telling) = told.objects.get_mut(uid) {
            return telling.decide(now, live, new);
        }
        let mut telling = Telling::default();
        let verdict = telling.decide(now, live, new);
        if telling.counts() {
            told.objects.insert(uid.to_owned(), telling);
        }
        verdict
    }

    /// Takes in that the condition was written.
    fn note(&self, uid: String, now: Time, before: Option<&Said>, new: &Said) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut telling = told.objects.remove(&uid).unwrap_or_default();
        telling.told(now, before, new);
        if telling.counts() || new.status != Status::True.as_str() {
            told.objects.insert(uid, telling);
        }
        if told.objects.len() > told.sweep.max(FIRST_SWEEP) {
            let there = self.store.state().into_iter();
            let there: BTreeSet<_> = there.filter_map(|obj| obj.meta().uid.clone()).collect();
            told.objects.retain(|uid, _| there.contains(uid));
            told.sweep = told.objects.len() * 2;
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
        self.condition(&answer["status"]).is_some()
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

// === impl Kept ===

impl Kept {
    /// What can be compared of it.
    fn of(self, said: Said) -> Said {
        let Said {
            generation,
            status,
            reason,
            message,
        } = said;
        Said {
            generation: generation.filter(|_| self.generation),
            status,
            reason,
            message: if self.message { message } else { String::new() },
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
            Written::Failed(told(&error))
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
