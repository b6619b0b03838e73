//! Sees what happens on the server, and tells it.

use super::narrator::{Narrator, Who};
use futures::{StreamExt, stream::BoxStream};
use homeostat::{WatchStreamExt, utils::Change, watcher};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, fmt::Debug};
use tokio::sync::watch;
use website::{RECONCILED, Website, children, status::READY};

/// The versions of sites and their children, by kind and name.
pub(super) type Seen = BTreeMap<(String, String), String>;

/// What became of an object.
struct Happened {
    object: (String, String),
    /// `None` if it is gone.
    version: Option<String>,
    /// What is worth telling.
    told: Option<(Who, String)>,
}

/// The versions that are there now.
pub(super) async fn look(client: &Client) -> Result<Seen, kube::Error> {
    let ours = || ListParams::default().labels(children::SELECTOR);
    let mut seen = Seen::new();
    versions::<Website>(client, ListParams::default(), &mut seen).await?;
    versions::<ConfigMap>(client, ours(), &mut seen).await?;
    versions::<Deployment>(client, ours(), &mut seen).await?;
    versions::<Secret>(client, ours(), &mut seen).await?;
    versions::<Service>(client, ours(), &mut seen).await?;
    Ok(seen)
}

async fn versions<K>(
    client: &Client,
    params: ListParams,
    seen: &mut Seen,
) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let list = Api::<K>::all(client.clone()).list_metadata(&params).await?;
    seen.extend(
        list.items
            .iter()
            .map(|it| (object(&K::kind(&()), it), version(it))),
    );
    Ok(())
}

fn object(kind: &str, it: &impl ResourceExt) -> (String, String) {
    let name = format!("{}/{}", it.namespace().unwrap_or_default(), it.name_any());
    (kind.to_owned(), name)
}

fn version(it: &impl ResourceExt) -> String {
    it.resource_version().unwrap_or_default()
}

/// Tells of all changes of sites and their children until it is dropped.
pub(super) async fn watch(client: Client, narrator: Narrator, seen: watch::Sender<Seen>) {
    let ours = || watcher::Config::default().labels(children::SELECTOR);
    let mut told = futures::stream::select_all([
        changes::<Website>(client.clone(), watcher::Config::default(), site),
        changes::<ConfigMap>(client.clone(), ours(), |_, _| None),
        changes::<Deployment>(client.clone(), ours(), deployment),
        changes::<Secret>(client.clone(), ours(), |_, _| None),
        changes::<Service>(client, ours(), |_, _| None),
    ]);
    while let Some(happened) = told.next().await {
        let Happened {
            object,
            version,
            told,
        } = happened;
        if let Some((who, what)) = told {
            narrator.tell(who, what);
        }
        seen.send_modify(|seen| {
            match version {
                Some(version) => seen.insert(object, version),
                None => seen.remove(&object),
            };
        });
    }
}

/// What becomes of the objects of one kind. `modified` says what is worth telling of a change.
fn changes<K>(
    client: Client,
    config: watcher::Config,
    modified: fn(&K, &K) -> Option<(Who, String)>,
) -> BoxStream<'static, Happened>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let kind = K::kind(&());
    watcher(Api::<K>::all(client), config)
        .changes()
        .map(move |change| match change {
            Ok(Change::Added(new)) => Happened {
                object: object(&kind, &*new),
                version: Some(version(&*new)),
                told: Some((author(&kind), format!("created {kind} {}", new.name_any()))),
            },
            Ok(Change::Modified(old, new)) => Happened {
                object: object(&kind, &*new),
                version: Some(version(&*new)),
                told: modified(&old, &new),
            },
            Ok(Change::Deleted(last)) => Happened {
                object: object(&kind, &*last),
                version: None,
                told: Some((Who::Cluster, format!("removed {kind} {}", last.name_any()))),
            },
            Err(error) => Happened {
                object: (kind.to_string(), String::new()),
                version: None,
                told: Some((Who::Cluster, error.to_string())),
            },
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
        let what = format!("marked Website {name} for deletion; its finalizer held it");
        return Some((Who::Cluster, what));
    }
    if old.finalizers().is_empty() && !new.finalizers().is_empty() {
        let what = format!("put its finalizer on Website {name}, before anything else");
        return Some((Who::Operator, what));
    }
    let told = |site: &Website, type_: &str| {
        let condition = site.status.as_ref()?.condition(type_)?;
        let (status, reason, message) = (&condition.status, &condition.reason, &condition.message);
        Some(format!("{type_}={status} {reason}: {message}"))
    };
    let news = |type_| told(new, type_).filter(|now| told(old, type_).as_ref() != Some(now));
    let news: Vec<String> = [READY, RECONCILED].into_iter().filter_map(news).collect();
    let news = (!news.is_empty()).then(|| news.join("; "))?;
    Some((Who::Operator, format!("wrote the status of {name}: {news}")))
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
        format!("brought {now} pods of Deployment {name} up"),
    ))
}
