//! The status of disruption budgets: how many of the pods that they protect can go.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::actors::write_options;
use crate::object;
use crate::registry::{Registry, selects, set_condition};
use crate::storage::{Key, Object};

/// How long a pod that was evicted is taken for gone before it is.
const EVICTION_SECONDS: i64 = 120;

/// What a budget protects.
#[derive(Debug, Default)]
struct Protected {
    pods: Vec<Object>,
    /// How many replicas there are to be, by the uid of what makes them.
    wanted: BTreeMap<String, i64>,
    /// The pod whose maker nobody knows.
    stray: Option<String>,
}

/// Looks at a budget. True if its status said something else.
pub(super) fn look_at(registry: &mut Registry, key: &Key) -> bool {
    let Some(budget) = registry.store.get(key) else {
        return false;
    };
    if object::is_being_deleted(&budget) {
        return false;
    }
    let protected = protected(registry, key, &budget["spec"]["selector"]);
    let now = registry.timestamp();
    registry.edit_status(key, &write_options(), |budget| {
        observe(budget, &protected, now);
    })
}

/// The budgets that may protect pods of a namespace.
pub(super) fn of_namespace(registry: &Registry, namespace: &str) -> Vec<Key> {
    let Some(budgets) = registry
        .catalog
        .find("policy", "v1", "poddisruptionbudgets")
    else {
        return Vec::new();
    };
    let now = registry.store.revision();
    registry
        .store
        .scan(&budgets.storage, Some(namespace), now, None)
        .map(|(key, _)| key.clone())
        .collect()
}

fn protected(registry: &Registry, budget: &Key, selector: &Value) -> Protected {
    let mut protected = Protected::default();
    let Some(pods) = registry.catalog.find("", "v1", "pods") else {
        return protected;
    };
    let now = registry.store.revision();
    let all = registry
        .store
        .scan(&pods.storage, Some(&budget.namespace), now, None);
    let own = all.filter(|(_, pod)| selects(selector, pod));
    for (_, pod) in own {
        if let Some(maker) = object::controller(&pod) {
            match registry.wanted_replicas(&budget.namespace, maker) {
                Some((uid, replicas)) => {
                    protected.wanted.insert(uid, replicas);
                }
                None => protected.stray = Some(object::name(&pod).to_owned()),
            }
        }
        protected.pods.push(pod);
    }
    protected
}

/// Writes what is true of a budget.
fn observe(budget: &mut Value, protected: &Protected, now: Timestamp) {
    let generation = object::generation(budget);
    let evicted = evicted(budget, protected, now);
    let healthy = protected.pods.iter().filter(|pod| {
        !object::is_being_deleted(pod) && !evicted.contains_key(object::name(pod)) && is_ready(pod)
    });
    let healthy = count(healthy.count());
    let (expected, needed) = match expectation(&budget["spec"], protected) {
        Ok(expectation) => expectation,
        Err(why) => {
            budget["status"]["disruptionsAllowed"] = json!(0);
            note(budget, "False", "SyncFailed", &why, now);
            return;
        }
    };
    let allowed = if expected > 0 {
        (healthy - needed).max(0)
    } else {
        0
    };
    let status = object::member_mut(budget, "status");
    for (member, number) in [
        ("observedGeneration", generation),
        ("disruptionsAllowed", allowed),
        ("currentHealthy", healthy),
        ("desiredHealthy", needed),
        ("expectedPods", expected),
    ] {
        status.insert(member.to_owned(), json!(number));
    }
    if evicted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".to_owned(), Value::Object(evicted));
    }
    if allowed > 0 {
        note(budget, "True", "SufficientPods", "", now);
    } else {
        note(budget, "False", "InsufficientPods", "", now);
    }
}

/// The pods that were evicted and are not on their way yet.
fn evicted(budget: &Value, protected: &Protected, now: Timestamp) -> Map<String, Value> {
    let patience = SignedDuration::from_secs(EVICTION_SECONDS);
    let noted = budget["status"]["disruptedPods"].as_object();
    let is_awaited = |name: &str, time: &Value| {
        let pod = protected.pods.iter().find(|pod| object::name(pod) == name);
        let since = time.as_str().and_then(|time| time.parse().ok());
        pod.is_some_and(|pod| !object::is_being_deleted(pod))
            && since.is_some_and(|since: Timestamp| now.duration_since(since) < patience)
    };
    let awaited = noted.into_iter().flatten();
    let awaited = awaited.filter(|(name, time)| is_awaited(name, time));
    awaited
        .map(|(name, time)| (name.clone(), time.clone()))
        .collect()
}

/// How many pods there are to be, and how many of them healthy.
fn expectation(spec: &Value, protected: &Protected) -> Result<(i64, i64), String> {
    let wanted = || match &protected.stray {
        Some(pod) => Err(format!("found no controllers for pod {pod:?}")),
        None => Ok(protected.wanted.values().sum::<i64>()),
    };
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !most.is_null() {
        let expected = wanted()?;
        return Ok((expected, (expected - part(most, expected)).max(0)));
    }
    if least.is_string() {
        let expected = wanted()?;
        return Ok((expected, part(least, expected)));
    }
    match least.as_i64() {
        Some(needed) => Ok((count(protected.pods.len()), needed)),
        None => Ok((0, 0)),
    }
}

/// A number of pods, or a part of all of them, with a piece of one for a whole.
fn part(value: &Value, all: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent = percent.and_then(|number| number.parse::<i64>().ok());
    match percent {
        Some(percent) => all.saturating_mul(percent).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

fn note(budget: &mut Value, status: &str, reason: &str, message: &str, now: Timestamp) {
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": budget["status"]["observedGeneration"],
    });
    let now = crate::environment::seconds(now);
    set_condition(&mut budget["status"]["conditions"], condition, &now);
}

fn is_ready(pod: &Value) -> bool {
    object::elements(&pod["status"], "conditions")
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, ready: bool) -> Object {
        let status = if ready { "True" } else { "False" };
        Object::new(json!({
            "metadata": { "name": name },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        }))
    }

    fn protected(ready: usize, unready: usize, wanted: i64) -> Protected {
        let pods = (0..ready + unready).map(|number| pod(&number.to_string(), number < ready));
        Protected {
            pods: pods.collect(),
            wanted: BTreeMap::from([("u".to_owned(), wanted)]),
            stray: None,
        }
    }

    /// Expected, needed, healthy and spare pods.
    #[track_caller]
    fn check(spec: &Value, protected: &Protected, numbers: [i64; 4]) {
        let mut budget = json!({ "metadata": { "generation": 3 }, "spec": spec, "status": {} });
        observe(&mut budget, protected, Timestamp::UNIX_EPOCH);
        let status = &budget["status"];
        let members = [
            "expectedPods",
            "desiredHealthy",
            "currentHealthy",
            "disruptionsAllowed",
        ];
        let found = members.map(|member| status[member].as_i64().unwrap_or(-1));
        assert_eq!(found, numbers, "{status}");
        let condition = &status["conditions"][0];
        assert_eq!(condition["status"] == "True", numbers[3] > 0);
        assert_eq!(condition["observedGeneration"], 3);
    }

    #[test]
    fn what_can_go() {
        let least = |value: Value| json!({ "minAvailable": value });
        let most = |value: Value| json!({ "maxUnavailable": value });
        check(&least(json!(2)), &protected(3, 1, 9), [4, 2, 3, 1]);
        check(&least(json!(5)), &protected(3, 0, 9), [3, 5, 3, 0]);
        check(&least(json!("50%")), &protected(3, 0, 3), [3, 2, 3, 1]);
        check(&most(json!(1)), &protected(3, 0, 3), [3, 2, 3, 1]);
        check(&most(json!(1)), &protected(2, 1, 3), [3, 2, 2, 0]);
        check(&most(json!("34%")), &protected(3, 0, 3), [3, 1, 3, 2]);
        check(&most(json!("100%")), &protected(3, 0, 3), [3, 0, 3, 3]);
        check(&least(json!(0)), &protected(0, 0, 0), [0, 0, 0, 0]);
        check(&json!({}), &protected(3, 0, 3), [0, 0, 3, 0]);
    }

    #[test]
    fn a_pod_that_nobody_known_makes() {
        let mut protected = protected(3, 0, 3);
        protected.stray = Some("p".to_owned());
        let spec = json!({ "maxUnavailable": 1 });
        let mut budget = json!({ "metadata": {}, "spec": spec, "status": {} });
        observe(&mut budget, &protected, Timestamp::UNIX_EPOCH);
        assert_eq!(budget["status"]["disruptionsAllowed"], 0);
        let condition = &budget["status"]["conditions"][0];
        assert_eq!(
            (&condition["reason"], &condition["message"]),
            (
                &json!("SyncFailed"),
                &json!("found no controllers for pod \"p\"")
            )
        );
    }

    #[test]
    fn an_evicted_pod_counts_for_gone_for_a_while() {
        let protected = protected(2, 0, 2);
        let evicted = json!({ "0": "1970-01-01T00:00:00Z", "other": "1970-01-01T00:00:00Z" });
        let budget = json!({
            "metadata": {}, "spec": { "minAvailable": 1 }, "status": { "disruptedPods": evicted },
        });
        for (seconds, healthy, noted) in [
            (119, 1, json!({ "0": "1970-01-01T00:00:00Z" })),
            (120, 2, Value::Null),
        ] {
            let mut budget = budget.clone();
            let now = Timestamp::from_second(seconds).expect("it is in range");
            observe(&mut budget, &protected, now);
            assert_eq!(budget["status"]["currentHealthy"], healthy);
            assert_eq!(budget["status"]["disruptedPods"], noted);
        }
    }
}
