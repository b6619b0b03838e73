//! Sees what happens on the server, and tells it.

use super::narrator::{Narrator, Who};
use futures::{StreamExt, stream::BoxStream};
use homeostat::{WatchStreamExt, utils::Change, watcher};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use website::{Website, children};

/// Tells of all changes of sites and their children until it is dropped.
pub(super) async fn watch(client: Client, narrator: Narrator) {
    let ours = || watcher::Config::default().labels(children::SELECTOR);
    let mut told = futures::stream::select_all([
        changes::<Website>(client.clone(), watcher::Config::default(), site),
        changes::<ConfigMap>(client.clone(), ours(), |_, _| None),
        changes::<Deployment>(client.clone(), ours(), deployment),
        changes::<Service>(client, ours(), |_, _| None),
    ]);
    while let Some((who, what)) = told.next().await {
        narrator.tell(who, what);
    }
}

/// What becomes of the objects of one kind. `modified` says what is worth telling of a change.
fn changes<K>(
    client: Client,
    config: watcher::Config,
    modified: fn(&K, &K) -> Option<(Who, String)>,
) -> BoxStream<'static, (Who, String)>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let kind = K::kind(&());
    watcher(Api::<K>::all(client), config)
        .changes()
        .filter_map(move |change| {
            let what = match change {
                Ok(Change::Added(new)) => {
                    Some((author(&kind), format!("created {kind} {}", new.name_any())))
                }
                Ok(Change::Modified(old, new)) => modified(&old, &new),
                Ok(Change::Deleted(last)) => {
                    Some((Who::Cluster, format!("{kind} {} is gone", last.name_any())))
                }
                Err(error) => Some((Who::Cluster, error.to_string())),
            };
            std::future::ready(what)
        })
        .boxed()
}

/// Who creates objects of a kind here.
fn author(kind: &str) -> Who {
    if kind == "Website" {
        Who::You
    } else {
        Who::Operator
    }
}

fn site(old: &Website, new: &Website) -> Option<(Who, String)> {
    let name = new.name_any();
    if old.metadata.deletion_timestamp.is_none() && new.metadata.deletion_timestamp.is_some() {
        let what = format!("Website {name} is marked for deletion; its finalizer holds it");
        return Some((Who::Cluster, what));
    }
    if old.finalizers().is_empty() && !new.finalizers().is_empty() {
        let what = format!("put its finalizer on Website {name}, before anything else");
        return Some((Who::Operator, what));
    }
    let ready = |site: &Website| {
        let condition = site.status.as_ref()?.condition("Ready")?;
        let (status, reason, message) = (&condition.status, &condition.reason, &condition.message);
        Some(format!("Ready={status} {reason}: {message}"))
    };
    let (before, now) = (ready(old), ready(new));
    let now = now.filter(|now| before.as_ref() != Some(now))?;
    Some((Who::Operator, format!("status of {name}: {now}")))
}

fn deployment(old: &Deployment, new: &Deployment) -> Option<(Who, String)> {
    let name = new.name_any();
    let replicas = |it: &Deployment| it.spec.as_ref()?.replicas;
    if let (Some(before), Some(now)) = (replicas(old), replicas(new))
        && before != now
    {
        let what = format!("scaled Deployment {name} from {before} to {now}");
        return Some((Who::Operator, what));
    }
    let ready = |it: &Deployment| it.status.as_ref()?.ready_replicas;
    let now = ready(new).filter(|now| ready(old) != Some(*now))?;
    Some((
        Who::Cluster,
        format!("{now} pods of Deployment {name} are ready"),
    ))
}
