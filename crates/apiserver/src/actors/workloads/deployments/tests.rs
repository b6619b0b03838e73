use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("it is in range")
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "c", "image": image }] },
    })
}

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "d", "uid": "u", "generation": 1,
            "annotations": { "note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
        },
        "spec": {
            "replicas": 2,
            "progressDeadlineSeconds": 600,
            "selector": { "matchLabels": { "app": "a" } },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": {
                "maxSurge": 1, "maxUnavailable": 0,
            } },
            "template": template(image),
        },
    })
}

/// A set as it is after a while in which nothing is in its way.
fn set(image: &str, name: &str, revision: i64, replicas: i64) -> Object {
    let mut template = template(image);
    template["metadata"]["labels"][HASH] = json!(name);
    Object::new(json!({
        "metadata": {
            "name": name, "uid": name, "generation": 1,
            "annotations": { REVISION: revision.to_string(), DESIRED: "2", MAX: "3", "note": "x" },
        },
        "spec": { "replicas": replicas, "template": template },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas,
        },
    }))
}

/// The status that a plan writes last.
#[track_caller]
fn status_of(plan: &Plan) -> (&Value, &Value) {
    match plan.steps.last() {
        Some(Step::Status(_, _, status, metadata)) => (status, metadata),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn progress(plan: &Plan) -> (String, String) {
    let (status, _) = status_of(plan);
    let found = object::elements(status, "conditions").find(|one| one["type"] == "Progressing");
    let found = found.expect("there is one");
    let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn the_first_set() {
    let found = plan(&deployment("a"), &[], at(0));
    let Step::Create(REPLICA_SET, set) = &found.steps[0] else {
        panic!("{:?}", found.steps);
    };
    let hash = hash::name(&template("a"));
    assert_eq!(set["metadata"]["name"], format!("d-{hash}"));
    assert_eq!(set["spec"]["replicas"], 2);
    for labels in [
        &set["metadata"]["labels"],
        &set["spec"]["selector"]["matchLabels"],
        &set["spec"]["template"]["metadata"]["labels"],
    ] {
        assert_eq!(*labels, json!({ "app": "a", HASH: hash }));
    }
    let expected = json!({ "note": "x", REVISION: "1", DESIRED: "2", MAX: "3" });
    assert_eq!(set["metadata"]["annotations"], expected);
    assert_eq!(set["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(
        progress(&found),
        ("True".into(), "NewReplicaSetCreated".into())
    );
    assert_eq!(status_of(&found).1["annotations"][REVISION], "1");
    assert_eq!(found.wake, Some(at(600)));
}

#[test]
fn a_rollout_is_complete_then_late_or_rolled_back() {
    let done = [set("a", "one", 1, 2)];
    let found = plan(&deployment("a"), &done, at(0));
    assert_eq!(
        progress(&found),
        ("True".into(), "NewReplicaSetAvailable".into())
    );
    let mut complete = deployment("a");
    complete["status"] = status_of(&found).0.clone();
    complete["metadata"]["annotations"][REVISION] = json!("1");
    assert_eq!(plan(&complete, &done, at(9)), Plan::default());

    // Another template, of which no pod ever becomes available.
    let mut changed = complete.clone();
    changed["spec"]["template"] = template("b");
    let found = plan(&changed, &done, at(10));
    assert_eq!(
        progress(&found),
        ("True".into(), "NewReplicaSetCreated".into())
    );
    changed["status"] = status_of(&found).0.clone();
    let mut stuck = Value::clone(&set("b", "two", 2, 1));
    stuck["status"]["availableReplicas"] = json!(0);
    stuck["status"]["readyReplicas"] = json!(0);
    let sets = [done[0].clone(), Object::new(stuck)];
    let found = plan(&changed, &sets, at(11));
    assert_eq!(
        progress(&found),
        ("True".into(), "ReplicaSetUpdated".into())
    );
    changed["status"] = status_of(&found).0.clone();
    changed["metadata"]["annotations"][REVISION] = json!("2");
    let found = plan(&changed, &sets, at(610));
    assert_eq!((found.steps, found.wake), (Vec::new(), Some(at(611))));
    let found = plan(&changed, &sets, at(611));
    assert_eq!(
        progress(&found),
        ("False".into(), "ProgressDeadlineExceeded".into())
    );
    changed["status"] = status_of(&found).0.clone();
    assert_eq!(plan(&changed, &sets, at(612)), Plan::default());

    // Back to the first one, which is the newest revision then.
    changed["spec"]["template"] = template("a");
    let found = plan(&changed, &sets, at(700));
    let Step::Patch(_, _, patch) = &found.steps[0] else {
        panic!("{:?}", found.steps);
    };
    let expected = json!({ REVISION: "3", HISTORY: "1" });
    assert_eq!(patch["metadata"]["annotations"], expected);
    assert_eq!(
        progress(&found),
        ("True".into(), "FoundNewReplicaSet".into())
    );
}

#[test]
fn one_that_recreates_waits_for_the_last_pod() {
    let mut deployment = deployment("b");
    deployment["spec"]["strategy"] = json!({ "type": "Recreate" });
    let scales = |found: &Plan| match &found.steps[0] {
        Step::Patch(_, _, patch) => patch["spec"]["replicas"].as_i64(),
        Step::Create(..) | Step::Status(..) | Step::Delete(..) => None,
    };
    let running = set("a", "one", 1, 2);
    assert_eq!(scales(&plan(&deployment, &[running], at(0))), Some(0));
    let mut ending = Value::clone(&set("a", "one", 1, 0));
    ending["status"]["terminatingReplicas"] = json!(1);
    let found = plan(&deployment, &[Object::new(ending.clone())], at(0));
    assert!(matches!(&found.steps[..], [Step::Status(..)]), "{found:?}");
    ending["status"]["terminatingReplicas"] = json!(0);
    let found = plan(&deployment, &[Object::new(ending)], at(0));
    let Step::Create(_, created) = &found.steps[0] else {
        panic!("{found:?}");
    };
    assert_eq!(created["spec"]["replicas"], 2);
}

#[test]
fn one_that_is_paused_is_scaled_and_not_rolled_out() {
    let mut paused = deployment("b");
    paused["spec"]["paused"] = json!(true);
    paused["spec"]["replicas"] = json!(5);
    let found = plan(&paused, &[set("a", "one", 1, 2)], at(0));
    let Step::Patch(_, _, patch) = &found.steps[0] else {
        panic!("{found:?}");
    };
    assert_eq!(patch["spec"]["replicas"], 5);
    assert_eq!(
        progress(&found),
        ("Unknown".into(), "DeploymentPaused".into())
    );
}

#[test]
fn old_sets_are_forgotten() {
    let mut deployment = deployment("d");
    deployment["spec"]["revisionHistoryLimit"] = json!(1);
    let sets = [
        set("a", "one", 2, 0),
        set("b", "two", 1, 0),
        set("c", "three", 3, 0),
        set("d", "four", 4, 2),
    ];
    let found = plan(&deployment, &sets, at(0));
    deployment["status"] = status_of(&found).0.clone();
    let found = plan(&deployment, &sets, at(0));
    let deleted: Vec<&Step> = found
        .steps
        .iter()
        .filter(|step| matches!(step, Step::Delete(..)))
        .collect();
    let expected = [&sets[1], &sets[0]].map(|set| Step::Delete(REPLICA_SET, Subject::of(set)));
    assert_eq!(deleted, expected.iter().collect::<Vec<_>>());
}

#[test]
fn one_that_is_deleted_only_tells_what_there_is() {
    let mut deployment = deployment("b");
    deployment["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    let found = plan(&deployment, &[set("a", "one", 1, 2)], at(0));
    assert!(matches!(&found.steps[..], [Step::Status(..)]), "{found:?}");
}
