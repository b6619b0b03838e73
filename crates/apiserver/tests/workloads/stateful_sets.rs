//! `StatefulSet`s, their pods and their claims.

use homeostat_apiserver::{Fate, PodRule};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::world::{World, assert_condition, assert_owner, numbers, template};

fn spec(replicas: i64, image: &str) -> Value {
    json!({
        "replicas": replicas,
        "serviceName": "db",
        "selector": { "matchLabels": { "app": "db" } },
        "template": template("db", image),
        "volumeClaimTemplates": [{
            "metadata": { "name": "data" },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        }],
    })
}

const COUNTS: [&str; 5] = [
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "currentReplicas",
    "updatedReplicas",
];

#[tokio::test(start_paused = true)]
async fn pods_and_claims_are_made_in_order() {
    let world = World::new();
    let slow = Fate::ReadyAfter(std::time::Duration::from_secs(10));
    let _slow = world.server.workloads().inject(PodRule::any(), slow);
    world.create("StatefulSet", "db", spec(3, "db:1")).await;
    for (seconds, pods) in [(0, 1), (9, 1), (1, 2), (10, 3), (10, 3)] {
        world.pass(seconds).await;
        assert_eq!(world.names("Pod").await.len(), pods);
    }
    let set = world.get("StatefulSet", "db").await;
    assert_eq!(numbers(&set, COUNTS), [3, 3, 3, 3, 3]);
    assert_eq!(set["status"]["observedGeneration"], 1);
    assert_eq!(
        set["status"]["currentRevision"],
        set["status"]["updateRevision"]
    );
    for (number, pod) in world.list("Pod").await.iter().enumerate() {
        assert_eq!(pod["metadata"]["name"], format!("db-{number}"));
        assert_owner(pod, "StatefulSet", "db");
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["apps.kubernetes.io/pod-index"], number.to_string());
        assert_eq!(
            labels["controller-revision-hash"],
            set["status"]["updateRevision"]
        );
        assert_eq!(pod["spec"]["hostname"], format!("db-{number}"));
        assert_eq!(pod["spec"]["subdomain"], "db");
        let claim = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        assert_eq!(*claim, format!("data-db-{number}"));
    }
    for claim in world.list("PersistentVolumeClaim").await {
        assert_eq!(claim["status"]["phase"], "Bound");
        assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
        let volume = claim["spec"]["volumeName"].as_str().unwrap();
        let volume = world.get("PersistentVolume", volume).await;
        assert_eq!(volume["status"]["phase"], "Bound");
    }

    // Claims stay, whatever becomes of the pods.
    world
        .patch("StatefulSet", "db", json!({ "spec": { "replicas": 1 } }))
        .await;
    world.settle().await;
    assert_eq!(world.names("Pod").await, ["db-0"]);
    world
        .delete("StatefulSet", "db", &DeleteParams::background())
        .await;
    world.settle().await;
    assert_eq!(world.names("Pod").await.len(), 0);
    assert_eq!(world.names("ControllerRevision").await.len(), 0);
    let claims = world.names("PersistentVolumeClaim").await;
    assert_eq!(claims, ["data-db-0", "data-db-1", "data-db-2"]);
    world
        .delete(
            "PersistentVolumeClaim",
            "data-db-1",
            &DeleteParams::default(),
        )
        .await;
    world.settle().await;
    assert_eq!(world.names("PersistentVolumeClaim").await.len(), 2);
    assert_eq!(world.names("PersistentVolume").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_template_is_rolled_out_down_to_the_partition() {
    let world = World::new();
    let mut spec = spec(3, "db:1");
    spec["updateStrategy"] = json!({ "rollingUpdate": { "partition": 2 } });
    world.create("StatefulSet", "db", spec).await;
    world.settle().await;
    let images = async |world: &World| -> Vec<String> {
        let pods = world.list("Pod").await;
        let image = |pod: &Value| {
            pod["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        pods.iter().map(image).collect()
    };
    world
        .patch(
            "StatefulSet",
            "db",
            json!({ "spec": { "template": template("db", "db:2") } }),
        )
        .await;
    world.settle().await;
    assert_eq!(images(&world).await, ["db:1", "db:1", "db:2"]);
    let set = world.get("StatefulSet", "db").await;
    assert_eq!(numbers(&set, COUNTS), [3, 3, 3, 2, 1]);
    assert_ne!(
        set["status"]["currentRevision"],
        set["status"]["updateRevision"]
    );
    // One below the partition comes back as it was.
    world.delete("Pod", "db-0", &DeleteParams::default()).await;
    world.settle().await;
    assert_eq!(images(&world).await, ["db:1", "db:1", "db:2"]);

    let everywhere =
        json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } });
    let broken = PodRule::any().image("db:2");
    let broken = world.server.workloads().inject(broken, Fate::CrashLoop);
    world.patch("StatefulSet", "db", everywhere).await;
    world.pass(60).await;
    // The one that crashes is not followed by others.
    assert_eq!(images(&world).await, ["db:1", "db:1", "db:2"]);
    drop(broken);
    world.settle().await;
    assert_eq!(images(&world).await, ["db:2", "db:2", "db:2"]);
    let set = world.get("StatefulSet", "db").await;
    assert_eq!(numbers(&set, COUNTS), [3, 3, 3, 3, 3]);
    assert_eq!(
        set["status"]["currentRevision"],
        set["status"]["updateRevision"]
    );
    assert_eq!(world.names("ControllerRevision").await.len(), 2);
}

/// Where it is wanted, the claims go with the pods and with the set.
#[tokio::test(start_paused = true)]
async fn claims_go_if_that_is_wanted() {
    let world = World::new();
    let mut spec = spec(2, "db:1");
    spec["podManagementPolicy"] = json!("Parallel");
    spec["persistentVolumeClaimRetentionPolicy"] =
        json!({ "whenDeleted": "Delete", "whenScaled": "Delete" });
    world.create("StatefulSet", "db", spec).await;
    world.settle().await;
    world
        .patch("StatefulSet", "db", json!({ "spec": { "replicas": 1 } }))
        .await;
    world.settle().await;
    assert_eq!(world.names("PersistentVolumeClaim").await, ["data-db-0"]);
    world
        .delete("StatefulSet", "db", &DeleteParams::foreground())
        .await;
    world.settle().await;
    assert_eq!(world.names("StatefulSet").await.len(), 0);
    assert_eq!(world.names("PersistentVolumeClaim").await.len(), 0);
    assert_eq!(world.names("PersistentVolume").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_away_is_made_again_under_its_name() {
    let world = World::new();
    world.create("StatefulSet", "db", spec(2, "db:1")).await;
    world.settle().await;
    let before = world.get("Pod", "db-0").await;
    let slow = Fate::EndAfter(std::time::Duration::from_secs(5));
    let _slow = world.server.workloads().inject(PodRule::any(), slow);
    world.delete("Pod", "db-0", &DeleteParams::default()).await;
    world.settle().await;
    let ending = world.get("Pod", "db-0").await;
    assert_eq!(ending["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    let set = world.get("StatefulSet", "db").await;
    assert_eq!(numbers(&set, COUNTS), [2, 1, 1, 1, 1]);
    world.pass(5).await;
    let after = world.get("Pod", "db-0").await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_condition(&after, "Ready", "True", "");
}
