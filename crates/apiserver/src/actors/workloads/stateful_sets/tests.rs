use super::*;

fn at() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// A set whose present template has this image, and what it has: pods and revisions.
struct World {
    set: Value,
    own: Vec<Object>,
    claims: Vec<Object>,
}

impl World {
    fn new(policy: &str, replicas: i64) -> Self {
        Self {
            set: json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": { "name": "s", "uid": "u", "generation": 1 },
                "spec": {
                    "replicas": replicas,
                    "podManagementPolicy": policy,
                    "serviceName": "svc",
                    "selector": { "matchLabels": { "app": "a" } },
                    "updateStrategy": { "rollingUpdate": { "partition": 0 } },
                    "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "image": "1" } },
                    "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {} }],
                },
                "status": {},
            }),
            own: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Follows the plan once. Answers the names of what was made and given up.
    fn step(&mut self) -> Vec<String> {
        let around = Around {
            own: &self.own,
            claims: &self.claims,
            nodes: &[],
            now: at(),
        };
        let mut told = Vec::new();
        for step in plan(&self.set, &around).steps {
            match step {
                Step::Create(POD, mut pod) => {
                    told.push(format!("+{}", object::name(&pod)));
                    pod["kind"] = json!("Pod");
                    pod["metadata"]["uid"] = pod["metadata"]["name"].clone();
                    self.own.push(Object::new(pod));
                }
                Step::Create(CLAIM, claim) => self.claims.push(Object::new(claim)),
                Step::Create(_, mut revision) => {
                    revision["kind"] = json!("ControllerRevision");
                    self.own.push(Object::new(revision));
                }
                Step::Delete(POD, subject) => {
                    let pod = self.own.iter().find(|pod| Subject::of(pod) == subject);
                    let name = object::name(pod.expect("it is there")).to_owned();
                    self.own.retain(|pod| Subject::of(pod) != subject);
                    told.push(format!("-{name}"));
                }
                Step::Status(_, _, status, _) => self.set["status"] = status,
                Step::Patch(..) | Step::Delete(..) => panic!("{step:?}"),
            }
        }
        told
    }

    /// Lets a pod be ready or not.
    fn set_ready(&mut self, name: &str, ready: bool) {
        for pod in self.own.iter_mut().filter(|pod| object::name(pod) == name) {
            let mut value = Value::clone(pod);
            let ready = if ready { "True" } else { "False" };
            value["status"] = json!({ "phase": "Running", "conditions": [
                { "type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:00:00Z" },
            ] });
            *pod = Object::new(value);
        }
    }

    /// Follows the plan, with each new pod ready at once, until nothing happens. Answers what happened.
    fn settle(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for _ in 0..50 {
            let before = (self.set.clone(), self.own.len());
            let done = self.step();
            for name in &done {
                self.set_ready(&name[1..], true);
            }
            let is_at_rest = done.is_empty() && before == (self.set.clone(), self.own.len());
            told.extend(done);
            if is_at_rest {
                return told;
            }
        }
        panic!("it never rests: {told:?}");
    }

    fn status(&self, member: &str) -> &Value {
        &self.set["status"][member]
    }
}

#[test]
fn pods_are_made_one_after_the_other() {
    let mut world = World::new("OrderedReady", 2);
    assert_eq!(world.step(), Vec::<String>::new()); // the revision
    assert_eq!(world.step(), ["+s-0"]);
    assert_eq!(world.step(), Vec::<String>::new());
    world.set_ready("s-0", true);
    assert_eq!(world.step(), ["+s-1"]);
    world.set_ready("s-1", true);
    assert_eq!(world.step(), Vec::<String>::new());
    let names: Vec<&str> = world
        .claims
        .iter()
        .map(|claim| object::name(claim))
        .collect();
    assert_eq!(names, ["data-s-0", "data-s-1"]);
    assert_eq!(world.claims[0]["metadata"]["labels"], json!({ "app": "a" }));
    let pod = world.own.iter().find(|one| object::name(one) == "s-1");
    let pod = pod.expect("it was made");
    assert_eq!(
        pod["spec"],
        json!({
            "image": "1", "hostname": "s-1", "subdomain": "svc",
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-s-1" } }],
        })
    );
    assert_eq!(
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"],
        "1"
    );

    world.set["spec"]["replicas"] = json!(0);
    assert_eq!(world.settle(), ["-s-1", "-s-0"]);
    assert_eq!(world.claims.len(), 2);
}

#[test]
fn in_parallel_nobody_waits() {
    let mut world = World::new("Parallel", 3);
    world.set["spec"]["ordinals"] = json!({ "start": 5 });
    world.step();
    assert_eq!(world.step(), ["+s-5", "+s-6", "+s-7"]);
    world.set["spec"]["replicas"] = json!(1);
    assert_eq!(world.step(), ["-s-7", "-s-6"]);
}

#[test]
fn a_template_is_rolled_out_from_the_highest_number_down() {
    let mut world = World::new("OrderedReady", 3);
    world.settle();
    let first = world.status("updateRevision").clone();
    assert_eq!(*world.status("currentRevision"), first);
    world.set["spec"]["template"]["spec"]["image"] = json!("2");
    world.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    assert_eq!(world.settle(), ["-s-2", "+s-2"]);
    let second = world.status("updateRevision").clone();
    assert_ne!(first, second);
    assert_eq!(*world.status("currentRevision"), first);
    assert_eq!(
        (
            world.status("updatedReplicas"),
            world.status("currentReplicas")
        ),
        (&json!(1), &json!(2))
    );
    world.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(0);
    assert_eq!(world.settle(), ["-s-1", "+s-1", "-s-0", "+s-0"]);
    assert_eq!(*world.status("currentRevision"), second);
    assert_eq!(*world.status("currentReplicas"), 3);

    world.set["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    world.set["spec"]["template"]["spec"]["image"] = json!("3");
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(*world.status("currentRevision"), second);
}

/// Whichever pods are ready, at most as many as allowed are away because of a rollout, and it ends.
#[test]
fn a_rollout_takes_no_more_than_allowed() {
    for policy in ["OrderedReady", "Parallel"] {
        for most in 1..=3 {
            for unready in 0..8_u32 {
                let mut world = World::new(policy, 3);
                world.settle();
                let rolling = json!({ "partition": 0, "maxUnavailable": most });
                world.set["spec"]["updateStrategy"]["rollingUpdate"] = rolling;
                world.set["spec"]["template"]["spec"]["image"] = json!("2");
                let is_unready = |ordinal: i64| unready & (1 << ordinal) != 0;
                for ordinal in (0..3).filter(|ordinal| is_unready(*ordinal)) {
                    world.set_ready(&format!("s-{ordinal}"), false);
                }
                world.step(); // the revision
                let given_up = world.step();
                let ready = given_up.iter().filter(|name| {
                    let ordinal = name
                        .rsplit_once('-')
                        .and_then(|(_, number)| number.parse().ok());
                    ordinal.is_some_and(|ordinal| !is_unready(ordinal))
                });
                let away = i64::from(unready.count_ones());
                let allowed = usize::try_from((most - away).max(0)).expect("it is small");
                assert!(
                    ready.count() <= allowed,
                    "{policy} {most} {unready}: {given_up:?}"
                );
                for ordinal in 0..3 {
                    world.set_ready(&format!("s-{ordinal}"), true);
                }
                world.settle();
                assert_eq!(
                    *world.status("updatedReplicas"),
                    3,
                    "{policy} {most} {unready}"
                );
            }
        }
    }
}
