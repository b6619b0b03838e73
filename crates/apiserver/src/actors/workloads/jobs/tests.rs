use super::*;

/// A job and its pods, which end as the script says.
struct World {
    job: Value,
    pods: Vec<Value>,
    seconds: i64,
    made: usize,
}

impl World {
    fn new(spec: &Value) -> Self {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "j", "uid": "u" }, "spec": spec, "status": {},
        });
        job["spec"]["template"] = json!({
            "metadata": { "labels": { "job-name": "j" } },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] },
        });
        Self {
            job,
            pods: Vec::new(),
            seconds: 0,
            made: 0,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).expect("it is in range")
    }

    /// Follows the plan until it rests. False if the job is deleted.
    fn settle(&mut self) -> bool {
        for _ in 0..20 {
            let own: Vec<Object> = self.pods.iter().cloned().map(Object::new).collect();
            let around = Around {
                own: &own,
                claims: &[],
                nodes: &[],
                now: self.now(),
            };
            let steps = plan(&self.job, &around).steps;
            if steps.is_empty() {
                return true;
            }
            for step in steps {
                if matches!(step, Step::Delete(JOB, _)) {
                    return false;
                }
                self.follow(step);
            }
        }
        panic!("it never rests: {:#}", self.job);
    }

    fn follow(&mut self, step: Step) {
        match step {
            Step::Create(_, mut pod) => {
                let base = pod["metadata"]["generateName"].as_str().unwrap_or_default();
                pod["metadata"]["name"] = json!(format!("{base}{}", self.made));
                pod["metadata"]["uid"] = json!(self.made.to_string());
                pod["status"] = json!({ "phase": "Running" });
                self.made += 1;
                self.pods.push(pod);
            }
            Step::Status(_, _, status, _) => self.job["status"] = status,
            Step::Patch(_, subject, patch) => {
                let finalizers = &patch["metadata"]["finalizers"];
                for pod in self
                    .pods
                    .iter_mut()
                    .filter(|pod| Subject::of(pod) == subject)
                {
                    pod["metadata"]["finalizers"] = finalizers.clone();
                }
            }
            Step::Delete(_, subject) => {
                for pod in self
                    .pods
                    .iter_mut()
                    .filter(|pod| Subject::of(pod) == subject)
                {
                    pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
                    pod["status"]["phase"] = json!("Failed");
                }
                self.drop_gone();
            }
        }
        self.drop_gone();
    }

    fn drop_gone(&mut self) {
        self.pods.retain(|pod| {
            !object::is_being_deleted(pod) || object::finalizers(pod).next().is_some()
        });
    }

    /// Lets the first pod that runs end.
    fn end(&mut self, phase: &str) {
        let now = self.now().to_string();
        let running = self
            .pods
            .iter_mut()
            .find(|pod| pod["status"]["phase"] == "Running");
        let pod = running.expect("one runs");
        pod["status"] = json!({ "phase": phase, "containerStatuses": [
            { "state": { "terminated": { "finishedAt": now } } },
        ] });
        self.settle();
    }

    fn numbers(&self) -> [i64; 3] {
        ["active", "succeeded", "failed"].map(|member| number(&self.job["status"], member, 0))
    }

    fn condition(&self) -> String {
        let conditions = object::elements(&self.job["status"], "conditions");
        let held = conditions.filter(|one| one["status"] == "True");
        let told = held.map(|one| {
            let text = |member: &str| one[member].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("type"), text("reason"))
        });
        told.last().unwrap_or_default()
    }
}

#[test]
fn as_many_run_as_are_missing() {
    let mut world = World::new(&json!({ "completions": 3, "parallelism": 2 }));
    world.settle();
    assert_eq!(world.numbers(), [2, 0, 0]);
    world.end("Succeeded");
    assert_eq!(world.numbers(), [2, 1, 0]);
    world.end("Succeeded");
    assert_eq!(
        (world.numbers(), world.condition()),
        ([1, 2, 0], String::new())
    );
    world.end("Succeeded");
    assert_eq!(world.numbers(), [0, 3, 0]);
    assert_eq!(world.condition(), "Complete CompletionsReached");
    assert!(world.pods.iter().all(|pod| release(pod).is_none()));
    assert_eq!(world.job["status"]["uncountedTerminatedPods"], json!({}));
}

#[test]
fn failures_are_spaced_and_at_last_too_many() {
    let mut world = World::new(&json!({ "completions": 1, "parallelism": 1, "backoffLimit": 2 }));
    world.settle();
    for (pause, failed) in [(10, 1), (20, 2)] {
        world.end("Failed");
        assert_eq!(world.numbers(), [0, 0, failed]);
        world.seconds += pause - 1;
        world.settle();
        assert_eq!(world.numbers(), [0, 0, failed]);
        world.seconds += 1;
        world.settle();
        assert_eq!(world.numbers(), [1, 0, failed]);
    }
    world.end("Failed");
    assert_eq!(world.numbers(), [0, 0, 3]);
    assert_eq!(world.condition(), "Failed BackoffLimitExceeded");
}

#[test]
fn one_that_takes_too_long() {
    let spec =
        json!({ "completions": 1, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5 });
    let mut world = World::new(&spec);
    world.settle();
    world.seconds = 59;
    world.settle();
    assert_eq!(world.numbers(), [1, 0, 0]);
    world.seconds = 60;
    world.settle();
    assert_eq!(world.numbers(), [0, 0, 1]);
    assert_eq!(world.condition(), "Failed DeadlineExceeded");
    world.seconds = 64;
    assert!(world.settle());
    world.seconds = 65;
    assert!(!world.settle());
}

#[test]
fn one_that_is_suspended_loses_its_pods_and_nothing_else() {
    let mut world = World::new(&json!({ "completions": 2, "parallelism": 1 }));
    world.settle();
    world.end("Succeeded");
    world.job["spec"]["suspend"] = json!(true);
    world.settle();
    assert_eq!(world.numbers(), [0, 1, 0]);
    assert_eq!(world.condition(), "Suspended JobSuspended");
    assert_eq!(world.job["status"]["startTime"], Value::Null);
    world.job["spec"]["suspend"] = json!(false);
    world.settle();
    assert_eq!(world.numbers(), [1, 1, 0]);
    assert!(world.job["status"]["startTime"].is_string());
}

#[test]
fn without_completions_the_first_that_succeeds_says_that_it_is_enough() {
    let mut world = World::new(&json!({ "parallelism": 3 }));
    world.settle();
    assert_eq!(world.numbers(), [3, 0, 0]);
    world.end("Succeeded");
    assert_eq!(
        (world.numbers(), world.condition()),
        ([2, 1, 0], String::new())
    );
    world.end("Failed");
    world.end("Succeeded");
    assert_eq!(world.numbers(), [0, 2, 1]);
    assert_eq!(world.condition(), "Complete CompletionsReached");
}

#[test]
fn each_part_of_the_work_is_done_once() {
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed" });
    let mut world = World::new(&spec);
    world.settle();
    let indexes: Vec<Option<i64>> = world.pods.iter().map(index_of).collect();
    assert_eq!(indexes, [Some(0), Some(1), Some(2)]);
    assert_eq!(world.pods[1]["spec"]["hostname"], "j-1");
    let env = &world.pods[1]["spec"]["containers"][0]["env"][0]["name"];
    assert_eq!(env, "JOB_COMPLETION_INDEX");
    world.end("Succeeded");
    world.end("Failed");
    world.seconds = 10;
    world.settle();
    let last = world.pods.last().and_then(index_of);
    assert_eq!(last, Some(1));
    assert_eq!(world.job["status"]["completedIndexes"], "0");
    world.end("Succeeded");
    world.end("Succeeded");
    assert_eq!(world.job["status"]["completedIndexes"], "0-2");
    assert_eq!(world.condition(), "Complete CompletionsReached");
}

/// However pods end, and in whatever order, each counts once, and the job comes to an end.
#[test]
fn every_order_of_ends() {
    for completions in 1..=3 {
        for parallelism in 1..=3 {
            for script in 0..64_u32 {
                let spec = json!({
                    "completions": completions, "parallelism": parallelism, "backoffLimit": 3,
                });
                let mut world = World::new(&spec);
                world.settle();
                let (mut good, mut bad) = (0, 0);
                for step in 0.. {
                    let [active, succeeded, failed] = world.numbers();
                    assert!(active <= parallelism && active <= completions - succeeded);
                    assert_eq!((succeeded, failed), (good, bad));
                    if world
                        .pods
                        .iter()
                        .all(|pod| pod["status"]["phase"] != "Running")
                    {
                        break;
                    }
                    let ends_well = step >= 6 || script & (1 << step) != 0;
                    world.end(if ends_well { "Succeeded" } else { "Failed" });
                    good += i64::from(ends_well);
                    bad += i64::from(!ends_well);
                    if bad > 3 {
                        break;
                    }
                    world.seconds += LONGEST_PAUSE;
                    world.settle();
                }
                let expected = if bad > 3 {
                    "Failed BackoffLimitExceeded"
                } else {
                    "Complete CompletionsReached"
                };
                assert_eq!(
                    world.condition(),
                    expected,
                    "{completions} {parallelism} {script}"
                );
            }
        }
    }
}
