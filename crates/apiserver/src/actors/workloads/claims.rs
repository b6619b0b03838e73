//! Claims of volumes: each is bound to a volume of its own, which goes with it.

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

/// Binds a claim that waits, and lets one go that nobody uses any more.
pub(super) fn plan(claim: &Value, pods: &[Object], has_volume: bool) -> Plan {
    if object::is_being_deleted(claim) {
        let is_used = pods.iter().any(|pod| uses(pod, object::name(claim)));
        if is_used {
            return Plan::default();
        }
        let steps = without(claim, CLAIM_PROTECTION).map(|rest| release(CLAIM, claim, &rest));
        return Plan::of(steps.into_iter().collect());
    }
    let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
    if volume.is_empty() {
        let name = volume_name(claim);
        let patch = json!({ "spec": { "volumeName": name } });
        let mut steps = Vec::new();
        if !has_volume {
            steps.push(Step::Create(VOLUME, volume_of(claim, &name)));
        }
        steps.push(Step::Patch(CLAIM, Subject::of(claim), patch));
        return Plan::of(steps);
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
        let steps = plan(&claim, &[], false).steps;
        let [Step::Create(VOLUME, volume), Step::Patch(..)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(volume["metadata"]["name"], "pvc-u");
        assert_eq!(volume["spec"]["claimRef"]["uid"], "u");
        claim["spec"]["volumeName"] = json!("pvc-u");
        let steps = plan(&claim, &[], true).steps;
        let [Step::Status(_, _, status, _)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(status["capacity"], json!({ "storage": "1Gi" }));
        claim["status"] = status.clone();
        assert_eq!(plan(&claim, &[], true), Plan::default());
    }

    #[test]
    fn a_claim_stays_while_a_pod_uses_it() {
        let mut claim = claim();
        claim["metadata"]["deletionTimestamp"] = json!("t");
        let volumes = json!([{ "persistentVolumeClaim": { "claimName": "c" } }]);
        let pod = |phase: &str| {
            Object::new(json!({ "spec": { "volumes": volumes }, "status": { "phase": phase } }))
        };
        assert_eq!(plan(&claim, &[pod("Running")], true), Plan::default());
        let steps = plan(&claim, &[pod("Succeeded")], true).steps;
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
