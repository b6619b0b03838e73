//! A controller that marks old secrets and never sees what is in them.

use super::runtime::{
    Controller,
    controller::Action,
    reflector::{Lookup, ObjectRef},
    watcher,
};
use crate::{
    cluster::{Cluster, an_hour, annotation, create, during, from, merge, until},
    journal::Journal,
};
use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
};
use serde_json::json;
use std::sync::Arc;

const REVIEWED: &str = "example.com/reviewed";

type Meta = PartialObjectMeta<Secret>;

async fn review(secret: Arc<Meta>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let generation = annotation(&*secret, "example.com/rotation").unwrap_or("0");
    if annotation(&*secret, REVIEWED) != Some(generation) {
        let namespace = ResourceExt::namespace(&*secret).unwrap_or_default();
        let api = Api::<Secret>::namespaced(Client::clone(&client), &namespace);
        let patch = json!({ "metadata": { "annotations": { REVIEWED: generation } } });
        let name = secret.name_any();
        api.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
    }
    Ok(Action::await_change())
}

async fn run(client: Client, output: Journal) {
    let secrets = Api::<Meta>::all(client.clone());
    let controller = Controller::new(secrets, watcher::Config::default());
    let store = controller.store();
    controller
        .run(review, |_, _, _| Action::await_change(), Arc::new(client))
        .for_each(|reviewed| {
            if let Ok((reference, _)) = reviewed {
                let known = store.get(&reference);
                let known = known.map(|secret| secret.to_object_ref(()) == reference);
                output.say(format!("{reference} {}", known == Some(true)));
            }
            future::ready(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn secrets_are_marked_unseen() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let secrets = cluster.api::<Secret>();
    let secret = json!({ "metadata": { "name": "key" }, "stringData": { "key": "hidden" } });
    create(&secrets, &from(secret)).await;
    let reviewed = |generation: &'static str| {
        move |secret: &Secret| annotation(secret, REVIEWED) == Some(generation)
    };

    during(run(cluster.program(), output.clone()), async {
        let secret = until(&secrets, "key", reviewed("0")).await;
        assert_eq!(secret.data.expect("it is still there")["key"].0, b"hidden");
        let rotation = json!({ "metadata": { "annotations": { "example.com/rotation": "1" } } });
        merge(&secrets, "key", rotation).await;
        until(&secrets, "key", reviewed("1")).await;
        an_hour().await;
    })
    .await;
    let writes = cluster.take_writes();
    assert_eq!(
        writes,
        ["patch secrets default/key", "patch secrets default/key"]
    );
    let accepted = cluster.accepted();
    let metadata = |accept: &&String| accept.contains("as=PartialObjectMetadata");
    assert_eq!(accepted.iter().filter(metadata).count(), accepted.len());

    let reference = ObjectRef::<Meta>::new("key").within("default");
    assert_eq!(reference.to_string(), "Secret.v1./key.default");
    let said = format!("{reference} true");
    assert!(
        output.lines().iter().all(|line| *line == said),
        "{:?}",
        output.lines()
    );
}
