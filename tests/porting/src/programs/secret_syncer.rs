//! A controller that copies secrets into another namespace, and takes the copies away again.

use super::runtime::{
    Controller,
    controller::Action,
    finalizer::{self, Event, finalizer},
    watcher,
};
use crate::cluster::{Cluster, an_hour, create, delete, during, from, merge, until, until_gone};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

const FINALIZER: &str = "example.com/copies";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot copy: {0}")]
    Copy(#[source] kube::Error),
    #[error("cannot remove the copy: {0}")]
    Remove(#[source] kube::Error),
}

type SyncError = finalizer::Error<Error>;

/// Copies from one namespace to another.
struct Syncer {
    originals: Api<Secret>,
    copies: Api<Secret>,
}

impl Syncer {
    async fn copy(&self, original: &Secret) -> Result<Action, kube::Error> {
        let name = original.name_any();
        let mut copy = Secret {
            data: original.data.clone(),
            type_: original.type_.clone(),
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        match self.copies.get_opt(&name).await? {
            Some(found) if found.data == copy.data => {}
            Some(found) => {
                copy.metadata.resource_version = found.resource_version();
                let params = PostParams::default();
                self.copies.replace(&name, &params, &copy).await?;
            }
            None => {
                self.copies.create(&PostParams::default(), &copy).await?;
            }
        }
        Ok(Action::requeue(Duration::from_secs(600)))
    }

    async fn remove(&self, original: &Secret) -> Result<Action, kube::Error> {
        let params = DeleteParams::default();
        match self.copies.delete(&original.name_any(), &params).await {
            Ok(_) => Ok(Action::await_change()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
            Err(error) => Err(error),
        }
    }
}

async fn reconcile(secret: Arc<Secret>, syncer: Arc<Syncer>) -> Result<Action, SyncError> {
    finalizer(&syncer.originals, FINALIZER, secret, |event| async {
        match event {
            Event::Apply(secret) => syncer.copy(&secret).await.map_err(Error::Copy),
            Event::Cleanup(secret) => syncer.remove(&secret).await.map_err(Error::Remove),
        }
    })
    .await
}

async fn run(client: Client) {
    let originals = Api::<Secret>::namespaced(client.clone(), "default");
    let syncer = Syncer {
        originals: originals.clone(),
        copies: Api::namespaced(client, "blue"),
    };
    Controller::new(originals, watcher::Config::default().labels("copy=yes"))
        .run(
            reconcile,
            |_, error, _| {
                let ours = matches!(
                    error,
                    SyncError::AddFinalizer(_) | SyncError::RemoveFinalizer(_)
                );
                Action::requeue(Duration::from_secs(if ours { 1 } else { 30 }))
            },
            Arc::new(syncer),
        )
        .for_each(|_| async {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn copies_come_and_go_with_their_originals() {
    let cluster = Cluster::start();
    let namespaces = Api::<Namespace>::all(cluster.client());
    create(
        &namespaces,
        &from(json!({ "metadata": { "name": "blue" } })),
    )
    .await;
    let originals = cluster.api::<Secret>();
    let copies = Api::<Secret>::namespaced(cluster.client(), "blue");
    let says = |word: &'static str| {
        move |secret: &Secret| {
            let data = secret.data.as_ref().and_then(|data| data.get("token"));
            data.is_some_and(|data| data.0 == word.as_bytes())
        }
    };

    during(run(cluster.program()), async {
        let foreign = "example.com/foreign";
        let original = json!({
            "metadata": { "name": "a", "labels": { "copy": "yes" }, "finalizers": [foreign] },
            "stringData": { "token": "one" },
        });
        let private = json!({ "metadata": { "name": "b" }, "stringData": { "token": "none" } });
        create(&originals, &from(original)).await;
        create(&originals, &from(private)).await;
        until(&copies, "a", says("one")).await;
        let finalizers = originals.get("a").await.expect("it is there");
        assert_eq!(finalizers.finalizers(), [foreign, FINALIZER]);
        let expected = ["patch secrets default/a", "create secrets blue"];
        assert_eq!(
            cluster.take_writes(),
            expected,
            "nothing before the finalizer"
        );

        merge(&originals, "a", json!({ "stringData": { "token": "two" } })).await;
        until(&copies, "a", says("two")).await;
        assert_eq!(cluster.take_writes(), ["update secrets blue/a"]);

        delete(&originals, "a").await;
        until_gone(&copies, "a").await;
        let original = until(&originals, "a", |secret| secret.finalizers().len() == 1).await;
        assert_eq!(original.finalizers(), [foreign]);
        an_hour().await;
        let expected = ["delete secrets blue/a", "patch secrets default/a"];
        assert_eq!(cluster.take_writes(), expected);

        merge(
            &originals,
            "a",
            json!({ "metadata": { "finalizers": null } }),
        )
        .await;
        until_gone(&originals, "a").await;
        an_hour().await;
        assert!(
            copies
                .list(&ListParams::default())
                .await
                .expect("a list")
                .items
                .is_empty()
        );
    })
    .await;
    assert!(cluster.take_writes().is_empty());
}
