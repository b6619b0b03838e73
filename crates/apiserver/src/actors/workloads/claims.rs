//! Claims of volumes: each is bound to a volume of its own, which grows and goes with it.

use serde_json::{Value, json};

use super::step::{CLAIM, Plan, Step, Subject, VOLUME};
use crate::object;
use crate::storage::Object;

/// Who has made a volume.
const PROVISIONER: &str = "pv.kubernetes.io/provisioned-by";
const OWN: &str = "homeostat.dev/pretended";

/// What keeps a claim while pods use it, and a volume while a claim does.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// The condition of a claim whose volume has grown, while its file system has not.
const PENDING: &str = "FileSystemResizePending";

/// Binds a claim that waits, lets its volume grow, and lets one go that nobody uses any more.
pub(super) fn plan(claim: &Value, pods: &[Object], volume: Option<&Value>, now: &str) -> Plan {
    if object::is_being_deleted(claim) {
        let is_used = pods.iter().any(|pod| uses(pod, object::name(claim)));
        if is_used {
            return Plan::default();
        }
        let steps = without(claim, CLAIM_PROTECTION).map(|rest| release(CLAIM, claim, &rest));
        return Plan::of(steps.into_iter().collect());
    }
    let bound_to = claim["spec"]["volumeName"].as_str().unwrap_or_default();
    if bound_to.is_empty() {
        let name = volume_name(claim);
        let patch = json!({ "spec": { "volumeName": name } });
        let mut steps = Vec::new();
        if volume.is_none() {
            steps.push(Step::Create(VOLUME, volume_of(claim, &name)));
        }
        steps.push(Step::Patch(CLAIM, Subject::of(claim), patch));
        return Plan::of(steps);
    }
    if claim["status"]["phase"] == "Bound" {
        return Plan::of(volume.map_or_else(Vec::new, |volume| grow(claim, pods, volume, now)));
    }
    if claim["status"]["phase"] != "Pending" {
        return Plan::default();
    }
    let mut status = claim["status"].clone();
    status["phase"] = json!("Bound");
    status["accessModes"] = claim["spec"]["accessModes"].clone();
    status["capacity"] = claim["spec"]["resources"]["requests"].clone();
    Plan::of(Step::status(CLAIM, claim, status).into_iter().collect())
}

/// What a claim asks for that is larger than it was: first the volume grows, and then, where a pod runs with it, its file
/// system.
fn grow(claim: &Value, pods: &[Object], volume: &Value, now: &str) -> Vec<Step> {
    let wanted = &claim["spec"]["resources"]["requests"]["storage"];
    let mut status = claim["status"].clone();
    let other = |condition: &&Value| condition["type"] != PENDING;
    let others = object::elements(&claim["status"], "conditions").filter(other);
    let mut conditions: Vec<Value> = others.cloned().collect();
    if status["capacity"]["storage"] == *wanted
        || volume["metadata"]["annotations"][PROVISIONER] != OWN
    {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if volume["spec"]["capacity"]["storage"] != *wanted {
        let patch = json!({ "spec": { "capacity": { "storage": wanted } } });
        steps.push(Step::Patch(VOLUME, Subject::of(volume), patch));
    }
    let told = object::elements(&claim["status"], "conditions").find(|one| one["type"] == PENDING);
    let runs = |pod: &Object| uses(pod, object::name(claim)) && pod["status"]["phase"] == "Running";
    // One look says that it is pending, and the next one mends that, as clients of a cluster see it.
    if told.is_some() && pods.iter().any(runs) {
        status["capacity"]["storage"] = wanted.clone();
    } else if told.is_none() {
        conditions.push(json!({
            "type": PENDING, "status": "True", "lastTransitionTime": now,
        }));
    } else {
        return steps;
    }
    if conditions.is_empty() {
        if let Some(members) = status.as_object_mut() {
            members.remove("conditions");
        }
    } else {
        status["conditions"] = json!(conditions);
    }
    steps.extend(Step::status(CLAIM, claim, status));
    steps
}

/// Lets a volume be bound, and go when its claim is gone.
pub(super) fn plan_volume(volume: &Value, has_claim: bool) -> Plan {
    let is_own = volume["metadata"]["annotations"][PROVISIONER] == OWN;
    if !is_own {
        return Plan::default();
    }
    if has_claim && !object::is_being_deleted(volume) {
        let mut status = volume["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        status["phase"] = json!("Bound");
        return Plan::of(Step::status(VOLUME, volume, status).into_iter().collect());
    }
    if has_claim {
        return Plan::default();
    }
    if !object::is_being_deleted(volume) {
        return Plan::of(vec![Step::Delete(VOLUME, Subject::of(volume))]);
    }
    let steps = without(volume, VOLUME_PROTECTION).map(|rest| release(VOLUME, volume, &rest));
    Plan::of(steps.into_iter().collect())
}

/// The name of the volume of a claim.
pub(super) fn volume_name(claim: &Value) -> String {
    format!("pvc-{}", object::uid(claim))
}

fn volume_of(claim: &Value, name: &str) -> Value {
    let spec = &claim["spec"];
    let mut volume = json!({
        "metadata": { "name": name, "annotations": { PROVISIONER: OWN } },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": object::name(claim),
                "namespace": object::namespace(claim),
                "uid": object::uid(claim),
            },
            "hostPath": { "path": format!("/pretended/{name}") },
            "persistentVolumeReclaimPolicy": "Delete",
        },
    });
    for member in ["storageClassName", "volumeMode"] {
        if let Some(value) = spec.get(member) {
            volume["spec"][member] = value.clone();
        }
    }
    volume
}

/// Whether a pod that has not ended mounts a claim.
fn uses(pod: &Value, claim: &str) -> bool {
    !super::pods::has_ended(pod) && mounts(pod, claim)
}

/// Whether a pod mounts a claim.
pub(super) fn mounts(pod: &Value, claim: &str) -> bool {
    let mut volumes = object::elements(&pod["spec"], "volumes");
    volumes.any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim)
}

/// The finalizers without one that is among them.
fn without(object: &Value, finalizer: &str) -> Option<Vec<String>> {
    let all = || object::finalizers(object);
    let rest = all().filter(|one| *one != finalizer);
    all()
        .any(|one| one == finalizer)
        .then(|| rest.map(str::to_owned).collect())
}

fn release(kind: super::step::Kind, object: &Value, rest: &[String]) -> Step {
    let rest = if rest.is_empty() {
        Value::Null
    } else {
        json!(rest)
    };
    let patch = json!({ "metadata": { "finalizers": rest } });
    Step::Patch(kind, Subject::of(object), patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> &'static str {
        "2026-01-01T00:00:00Z"
    }

    fn claim() -> Value {
        json!({
            "metadata": {
                "name": "c", "namespace": "n", "uid": "u", "finalizers": [CLAIM_PROTECTION],
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            },
            "status": { "phase": "Pending" },
        })
    }

    #[test]
    fn a_claim_is_bound() {
        let mut claim = claim();
        let steps = plan(&claim, &[], None, now()).steps;
        let [Step::Create(VOLUME, volume), Step::Patch(..)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(volume["metadata"]["name"], "pvc-u");
        let volume = volume.clone();
        assert_eq!(volume["spec"]["claimRef"]["uid"], "u");
        claim["spec"]["volumeName"] = json!("pvc-u");
        let steps = plan(&claim, &[], Some(&volume), now()).steps;
        let [Step::Status(_, _, status, _)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(status["capacity"], json!({ "storage": "1Gi" }));
        claim["status"] = status.clone();
        assert_eq!(plan(&claim, &[], Some(&volume), now()), Plan::default());
    }

    #[test]
    fn a_claim_grows_after_its_volume_and_with_a_pod() {
        let mut claim = claim();
        let mut volume = volume_of(&claim, "pvc-u");
        claim["spec"]["volumeName"] = json!("pvc-u");
        claim["status"] = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
        claim["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
        let steps = plan(&claim, &[], Some(&volume), now()).steps;
        let [Step::Patch(VOLUME, _, grown), Step::Status(_, _, status, _)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(grown["spec"]["capacity"]["storage"], "2Gi");
        assert_eq!(status["capacity"]["storage"], "1Gi");
        assert_eq!(status["conditions"][0]["type"], PENDING);
        volume["spec"]["capacity"]["storage"] = json!("2Gi");
        claim["status"] = status.clone();
        assert_eq!(plan(&claim, &[], Some(&volume), now()), Plan::default());
        let pod = Object::new(json!({
            "spec": { "volumes": [{ "persistentVolumeClaim": { "claimName": "c" } }] },
            "status": { "phase": "Running" },
        }));
        let steps = plan(&claim, &[pod], Some(&volume), now()).steps;
        let [Step::Status(_, _, status, _)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(
            *status,
            json!({ "phase": "Bound", "capacity": { "storage": "2Gi" } })
        );
        // Nobody knows how somebody else's volume grows.
        volume["metadata"]["annotations"] = json!({});
        assert_eq!(plan(&claim, &[], Some(&volume), now()), Plan::default());
    }

    #[test]
    fn a_claim_stays_while_a_pod_uses_it() {
        let mut claim = claim();
        claim["metadata"]["deletionTimestamp"] = json!("t");
        let volumes = json!([{ "persistentVolumeClaim": { "claimName": "c" } }]);
        let pod = |phase: &str| {
            Object::new(json!({ "spec": { "volumes": volumes }, "status": { "phase": phase } }))
        };
        assert_eq!(
            plan(&claim, &[pod("Running")], None, now()),
            Plan::default()
        );
        let steps = plan(&claim, &[pod("Succeeded")], None, now()).steps;
        assert!(matches!(&steps[..], [Step::Patch(..)]), "{steps:?}");
    }

    #[test]
    fn a_volume_goes_with_its_claim() {
        let mut volume = volume_of(&claim(), "pvc-u");
        volume["metadata"]["finalizers"] = json!([VOLUME_PROTECTION]);
        let steps = plan_volume(&volume, true).steps;
        assert!(matches!(&steps[..], [Step::Status(..)]), "{steps:?}");
        let steps = plan_volume(&volume, false).steps;
        assert!(matches!(&steps[..], [Step::Delete(..)]), "{steps:?}");
        volume["metadata"]["deletionTimestamp"] = json!("t");
        let steps = plan_volume(&volume, false).steps;
        assert!(matches!(&steps[..], [Step::Patch(..)]), "{steps:?}");
        volume["metadata"]["annotations"] = json!({});
        assert_eq!(plan_volume(&volume, false), Plan::default());
    }
}
