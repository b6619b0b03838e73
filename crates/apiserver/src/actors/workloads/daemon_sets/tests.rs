use super::*;

/// A set on some nodes. Pods are ready as soon as they are made, but for those of an image that is not.
struct World {
    set: Value,
    nodes: Vec<Object>,
    own: Vec<Object>,
    made: usize,
}

impl World {
    fn new(nodes: &[&str], strategy: &Value) -> Self {
        let node = |name: &&str| Object::new(json!({ "metadata": { "name": name } }));
        Self {
            set: json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": { "name": "d", "uid": "u", "generation": 1 },
                "spec": {
                    "updateStrategy": strategy,
                    "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "image": "1" } },
                },
                "status": {},
            }),
            nodes: nodes.iter().map(node).collect(),
            own: Vec::new(),
            made: 0,
        }
    }

    /// Follows the plan once. Answers how many pods were made and given up.
    fn step(&mut self, ready: bool) -> (usize, usize) {
        let around = Around {
            own: &self.own,
            claims: &[],
            nodes: &self.nodes,
            now: Timestamp::UNIX_EPOCH,
        };
        let (mut made, mut given_up) = (0, 0);
        for step in plan(&self.set, &around).steps {
            match step {
                Step::Create(POD, mut pod) => {
                    self.made += 1;
                    made += 1;
                    let status = if ready { "True" } else { "False" };
                    pod["kind"] = json!("Pod");
                    pod["metadata"]["name"] = json!(self.made.to_string());
                    pod["metadata"]["uid"] = json!(self.made.to_string());
                    pod["status"] = json!({ "phase": "Running", "conditions": [{
                        "type": "Ready", "status": status,
                        "lastTransitionTime": "1970-01-01T00:00:00Z",
                    }] });
                    self.own.push(Object::new(pod));
                }
                Step::Create(_, mut revision) => {
                    revision["kind"] = json!("ControllerRevision");
                    self.own.push(Object::new(revision));
                }
                Step::Delete(_, subject) => {
                    given_up += 1;
                    self.own.retain(|pod| Subject::of(pod) != subject);
                }
                Step::Status(_, _, status, _) => self.set["status"] = status,
                Step::Patch(..) => panic!("{step:?}"),
            }
        }
        (made, given_up)
    }

    fn settle(&mut self) {
        for _ in 0..50 {
            // The first step makes a revision and nothing else.
            let before = (self.set.clone(), self.own.len());
            if self.step(true) == (0, 0) && before == (self.set.clone(), self.own.len()) {
                return;
            }
        }
        panic!("it never rests");
    }

    fn numbers(&self) -> [i64; 4] {
        [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberAvailable",
        ]
        .map(|member| number(&self.set["status"], member, 0))
    }
}

#[test]
fn each_node_that_takes_it_has_a_pod() {
    let mut world = World::new(&["a", "b"], &Value::Null);
    world.settle();
    assert_eq!(world.numbers(), [2, 2, 2, 2]);
    let pods: Vec<String> = world.own.iter().skip(1).map(|pod| node_of(pod)).collect();
    assert_eq!(pods, ["a", "b"]);
    let taint = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] });
    let tainted = json!({ "metadata": { "name": "b" }, "spec": taint });
    world.nodes[1] = Object::new(tainted);
    world
        .nodes
        .push(Object::new(json!({ "metadata": { "name": "c" } })));
    assert_eq!(world.step(true), (1, 1));
    world.settle();
    assert_eq!(world.numbers(), [2, 2, 2, 2]);
    world.nodes.clear();
    world.settle();
    assert_eq!(world.numbers(), [0, 0, 0, 0]);
}

/// At most as many nodes as allowed are without a pod that is available, or with two, and it ends.
#[test]
fn a_rollout_goes_from_node_to_node() {
    for (unavailable, surge) in [(1, 0), (2, 0), (0, 1), (0, 2), (4, 0)] {
        let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
        let mut world = World::new(&["a", "b", "c", "d"], &json!({ "rollingUpdate": rolling }));
        world.settle();
        world.set["spec"]["template"]["spec"]["image"] = json!("2");
        let mut ready = false;
        for step in 0..60 {
            world.step(ready);
            ready = step % 3 == 2;
            let on = |node: &str| -> Vec<&Object> {
                let pods = world.own.iter().filter(|one| one["kind"] == "Pod");
                pods.filter(|pod| node_of(pod) == node).collect()
            };
            let nodes = ["a", "b", "c", "d"];
            let away = nodes
                .iter()
                .filter(|node| !on(node).iter().any(|pod| is_ready(pod)));
            let twice = nodes.iter().filter(|node| on(node).len() > 1);
            assert!(count(away.count()) <= unavailable.max(1), "{rolling}");
            assert!(count(twice.count()) <= surge, "{rolling}");
            for pod in world.own.iter_mut().filter(|_| ready) {
                let mut value = Value::clone(pod);
                if value["kind"] == "Pod" {
                    value["status"]["conditions"][0]["status"] = json!("True");
                }
                *pod = Object::new(value);
            }
        }
        assert_eq!(world.numbers(), [4, 4, 4, 4], "{rolling}");
    }
}
