//! The state of a cluster, without what differs from run to run by itself.

use crate::{
    hand::{ANNOTATION, FINALIZER},
    object::{ObjectId, Path, differences, metadata},
    recorder::{Names, Recorder, is_passing},
};
use homeostat_apiserver::ApiServer;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Objects by what they are called in every run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    objects: BTreeMap<ObjectId, Value>,
}

/// Where two states differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The object.
    pub object: ObjectId,
    /// The place in it; empty for the whole object.
    pub path: String,
    /// What was expected there; none for nothing.
    pub expected: Option<Value>,
    /// What is there; none for nothing.
    pub found: Option<Value>,
}

/// Places whose values differ between runs in which nothing was done to the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Varying {
    values: BTreeSet<(ObjectId, String)>,
    /// Paths that the user does not want to be compared, in every object.
    ignored: Vec<String>,
}

/// What the external world is called among the objects.
const EXTERNAL: &str = "(external)";

/// Members of `metadata` that are bookkeeping, or different in every run.
const RANDOM: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Kinds that say nothing of the operator.
const FURNITURE: &[&str] = &["customresourcedefinitions.apiextensions.k8s.io"];

/// Annotations in which the cluster's controllers count the revisions of a workload. How many there were depends on the
/// way to the present state, for an operator that is right as well.
const REVISIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
];

// === impl State ===

impl State {
    /// The state of a server, and of what the operator looks after besides.
    pub(crate) fn of(server: &ApiServer, recorder: &Recorder, external: Option<Value>) -> Self {
        recorder.with_names(|names| {
            let mut alive = BTreeSet::new();
            server.visit_objects(|stored| {
                alive.insert(metadata(stored.value, "uid").to_owned());
            });
            let reader = Reader { names, alive };
            let mut objects = BTreeMap::new();
            server.visit_objects(|stored| {
                let id =
                    ObjectId::new(stored.group, stored.resource, stored.namespace, stored.name);
                let is_furniture = FURNITURE.contains(&id.resource.as_str());
                if is_passing(&id) || is_furniture || is_history(&id, stored.value) {
                    return;
                }
                let mut stem = names.stem(&id);
                reader.text(&mut stem.name);
                let base = stem.name.clone();
                let mut count = 1;
                // Objects of one `generateName` are told apart by their order.
                while objects.contains_key(&stem) {
                    count += 1;
                    stem.name = format!("{base}{count}");
                }
                objects.insert(stem, reader.object(stored.value));
            });
            if let Some(mut value) = external {
                reader.value(&mut value, None);
                let id = ObjectId::new("", EXTERNAL, "", "");
                objects.insert(id, value);
            }
            Self { objects }
        })
    }

    /// The objects, in order.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectId, &Value)> {
        self.objects.iter()
    }

    /// What is outside of the cluster, if that is known.
    pub(crate) fn external(&self) -> Option<&Value> {
        let id = ObjectId::new("", EXTERNAL, "", "");
        self.objects.get(&id)
    }

    /// The object of a resource, namespace and name.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&ObjectId {
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Where `found` differs from this one.
    pub(crate) fn differences(&self, found: &Self, varying: &Varying) -> Vec<Difference> {
        let mut all = Vec::new();
        let ids: BTreeSet<&ObjectId> = self.objects.keys().chain(found.objects.keys()).collect();
        for id in ids {
            match (self.objects.get(id), found.objects.get(id)) {
                (Some(expected), Some(found)) => {
                    differences(expected, found, &Path::default(), &mut |path, a, b| {
                        if !varying.covers(id, path.as_str(), a.is_some() == b.is_some()) {
                            all.push(Difference {
                                object: id.clone(),
                                path: path.as_str().to_owned(),
                                expected: a.cloned(),
                                found: b.cloned(),
                            });
                        }
                    });
                }
                (expected, found) => all.push(Difference {
                    object: id.clone(),
                    path: String::new(),
                    expected: expected.cloned(),
                    found: found.cloned(),
                }),
            }
        }
        all
    }
}

/// Whether the cluster's controllers keep an object for the sake of an earlier revision of a workload only.
fn is_history(id: &ObjectId, object: &Value) -> bool {
    match id.resource.as_str() {
        "controllerrevisions.apps" => true,
        "replicasets.apps" => {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let is_made =
                owners.is_some_and(|owners| owners.iter().any(|it| it["kind"] == "Deployment"));
            is_made && object["spec"]["replicas"] == 0
        }
        _ => false,
    }
}

/// Knows what uids stand for, and the addresses of pods, which depend on how many pods there ever were.
struct Reader<'a> {
    names: &'a Names,
    alive: BTreeSet<String>,
}

impl Reader<'_> {
    fn object(&self, object: &Value) -> Value {
        let generation = object["metadata"]["generation"].as_i64();
        let members = object.as_object().into_iter().flatten();
        let members = members.map(|(name, member)| {
            let mut member = match member.as_object() {
                Some(metadata) if name == "metadata" => Value::Object(told(metadata)),
                Some(_) | None => member.clone(),
            };
            self.value(&mut member, generation);
            (name.clone(), member)
        });
        Value::Object(members.collect())
    }

    fn value(&self, value: &mut Value, generation: Option<i64>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "observedGeneration" && generation.is_some() {
                        let text = if member.as_i64() == generation {
                            "<the object's>"
                        } else {
                            "<an older one>"
                        };
                        *member = json!(text);
                    } else {
                        self.value(member, generation);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.value(item, generation);
                }
            }
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&self, text: &mut String) {
        const SHORTEST_TIME: usize = 20;
        let is_year = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
        if text.len() >= SHORTEST_TIME
            && text
                .as_bytes()
                .first_chunk::<4>()
                .is_some_and(|year| is_year(year))
            && text.parse::<jiff::Timestamp>().is_ok()
        {
            "<time>".clone_into(text);
        }
        self.addresses_in(text);
        self.uids_in(text);
    }

    /// Puts pods in the place of their addresses, also where a port is behind it.
    fn addresses_in(&self, text: &mut String) {
        let of_address = |c: char| c.is_ascii_digit() || c == '.';
        if text.bytes().filter(|byte| *byte == b'.').count() < 3 {
            return;
        }
        let parts = text.split(|c| !of_address(c));
        let found = parts.filter_map(|part| Some((part.to_owned(), self.names.of_address(part)?)));
        let found: Vec<(String, &ObjectId)> = found.collect();
        for (address, pod) in found {
            *text = text.replace(&address, &format!("<address of {pod}>"));
        }
    }

    /// Puts objects in the place of their uids.
    fn uids_in(&self, text: &mut String) {
        let mut at = 0;
        while at + LENGTH_OF_UID <= text.len() {
            let is_one = |uid: &&str| DASHES.iter().all(|place| uid.as_bytes()[*place] == b'-');
            let uid = text.get(at..at + LENGTH_OF_UID).filter(is_one);
            let Some((uid, object)) = uid.and_then(|uid| Some((uid, self.names.of_uid(uid)?)))
            else {
                at += 1;
                continue;
            };
            let which = if self.alive.contains(uid) {
                "uid"
            } else {
                "former uid"
            };
            let told = format!("<{which} of {object}>");
            text.replace_range(at..at + LENGTH_OF_UID, &told);
            at += told.len();
        }
    }
}

/// How long a uid is in bytes, and where its dashes are.
const LENGTH_OF_UID: usize = 36;
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The members of `metadata` that tell something.
fn told(metadata: &Map<String, Value>) -> Map<String, Value> {
    let members = metadata.iter();
    let members = members.filter(|(name, _)| !RANDOM.contains(&name.as_str()));
    let members = members.map(|(name, value)| (name.clone(), value.clone()));
    let mut told: Map<String, Value> = members.collect();
    without(&mut told, "annotations", |annotations| {
        let members = annotations.as_object_mut()?;
        members.retain(|name, _| name != ANNOTATION && !REVISIONS.contains(&name.as_str()));
        members.is_empty().then_some(())
    });
    without(&mut told, "finalizers", |finalizers| {
        finalizers.as_array_mut()?.retain(|item| item != FINALIZER);
        finalizers.as_array()?.is_empty().then_some(())
    });
    told
}

/// Changes a member, and removes it if nothing is left of it.
fn without(
    members: &mut Map<String, Value>,
    name: &str,
    change: impl FnOnce(&mut Value) -> Option<()>,
) {
    if members.get_mut(name).and_then(change).is_some() {
        members.remove(name);
    }
}

// === impl Varying ===

impl Varying {
    pub(crate) fn new(ignored: Vec<String>) -> Self {
        Self {
            values: BTreeSet::new(),
            ignored,
        }
    }

    /// Takes note of what differs between two states that should be equal. Answers what cannot be
    /// chance: objects that are there or not.
    pub(crate) fn learn(&mut self, one: &State, other: &State) -> Vec<Difference> {
        let all = one.differences(other, self);
        let (whole, values): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|found| found.path.is_empty());
        for found in values {
            self.values.insert((found.object, found.path));
        }
        whole
    }

    fn covers(&self, id: &ObjectId, path: &str, same_presence: bool) -> bool {
        let is_ignored = |ignored: &String| {
            path.strip_prefix(ignored.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let varies = || self.values.contains(&(id.clone(), path.to_owned()));
        self.ignored.iter().any(is_ignored) || (same_presence && varies())
    }
}

// === impl Difference ===

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            path,
            expected,
            found,
        } = self;
        if path.is_empty() {
            return match (expected, found) {
                (Some(_), _) => write!(f, "{object} is missing"),
                (None, _) => write!(f, "{object} is left over"),
            };
        }
        let text = |value: &Option<Value>| {
            let text = value.as_ref().map(Value::to_string);
            let text = text.unwrap_or_else(|| "nothing".into());
            let mut short: String = text.chars().take(100).collect();
            if short.len() < text.len() {
                short.push_str("...");
            }
            short
        };
        let (found, expected) = (text(found), text(expected));
        write!(f, "{object}: {path} is {found}, expected {expected}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_uids_and_addresses_stand_for() {
        const ALIVE: &str = "6f9b6dae-6f4c-47a8-8ab0-b385e95e528e";
        const GONE: &str = "00000000-6f4c-47a8-8ab0-b385e95e528e";
        let id = |resource: &str, name: &str| ObjectId::new("", resource, "check", name);
        let names = Names::of(
            [(ALIVE, id("secrets", "a")), (GONE, id("secrets", "b"))],
            [("10.244.0.2", id("pods", "web-*"))],
        );
        let reader = Reader {
            names: &names,
            alive: BTreeSet::from([ALIVE.to_owned()]),
        };
        for (text, expected) in [
            (ALIVE, "<uid of secrets check/a>"),
            (GONE, "<former uid of secrets check/b>"),
            (
                "x-6f9b6dae-6f4c-47a8-8ab0-b385e95e528e-\u{e9}",
                "x-<uid of secrets check/a>-\u{e9}",
            ),
            (
                "11111111-6f4c-47a8-8ab0-b385e95e528e",
                "11111111-6f4c-47a8-8ab0-b385e95e528e",
            ),
            (
                "\u{e9}-an-accent-in-a-text-that-is-as-long-as-a-uid",
                "\u{e9}-an-accent-in-a-text-that-is-as-long-as-a-uid",
            ),
            ("10.244.0.2", "<address of pods check/web-*>"),
            (
                "http://10.244.0.2:80/",
                "http://<address of pods check/web-*>:80/",
            ),
            ("10.244.0.20", "10.244.0.20"),
            ("2026-01-01T00:00:00Z", "<time>"),
            (
                "2026 was a good year for wine",
                "2026 was a good year for wine",
            ),
        ] {
            let mut found = text.to_owned();
            reader.text(&mut found);
            assert_eq!(found, expected, "{text}");
        }
    }
}
