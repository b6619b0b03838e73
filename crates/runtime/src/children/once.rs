//! Children that are made once.

use super::{ATTEMPTS, Applied, Error, Set, applied::Done, error::is_outdated, wanted::Wanted};
use crate::target::Target;
use homeostat_core::children::{Owner, Standing, absent};
use kube::{
    Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::hash::Hash;

/// What is done about an object that is there.
#[derive(Clone, Copy)]
enum Presence {
    /// Nothing.
    Kept,
    /// It gets what it does not have.
    Completed,
}

impl Set {
    /// Makes a child if there is none, and never changes one that is there. Returns what is there.
    ///
    /// For what must stay as it was made: a generated password, a token, a certificate. What you hand in is
    /// forgotten if the child exists, so make it anew in each run, and read from the answer what counts:
    ///
    /// ```
    /// use homeostat::children;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::{ResourceExt, api::ObjectMeta};
    ///
    /// # fn generate_password() -> String { String::new() }
    /// async fn password(
    ///     children: &children::Set,
    ///     owner: &ConfigMap,
    /// ) -> Result<Option<Vec<u8>>, children::Error> {
    ///     let secret = Secret {
    ///         metadata: ObjectMeta {
    ///             name: Some(children::name(&owner.name_any(), "admin")),
    ///             ..ObjectMeta::default()
    ///         },
    ///         string_data: Some([("password".into(), generate_password())].into()),
    ///         ..Secret::default()
    ///     };
    ///     let secret = children.create(secret).await?;
    ///     let data = secret.data.as_ref();
    ///     Ok(data.and_then(|data| data.get("password")).map(|password| password.0.clone()))
    /// }
    /// ```
    ///
    /// # Guarantees
    ///
    /// - The server decides whether there is one: a cache that is behind, and another replica that creates the
    ///   child at the same time, change nothing. The one that was made first stays, and all get to see it.
    /// - The child names its owner as its controller, is deleted with it, and is
    ///   [pruned](Self::prune) when it is not asked for any more. One that somebody deletes is made anew, with
    ///   new content.
    /// - An object that nobody controls, as a Secret that a person has put there, is used as it is and not
    ///   adopted, so it stays when the owner goes. One of another owner is an [error](Error::Taken).
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn create<K>(&self, child: K) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Default + Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.create_with(child, &K::DynamicType::default()).await
    }

    /// The same as [`create`](Self::create), for a child of a type known at run time.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn create_with<K>(
        &self,
        child: K,
        dyntype: &K::DynamicType,
    ) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.made(child, dyntype, Presence::Kept).await
    }

    /// Makes a child if there is none, and adds to one that is there what it does not have: keys of `data`,
    /// labels, annotations, and other members of maps. What is there stays, whatever it says. Returns what is
    /// there then.
    ///
    /// For a Secret or config map that others extend, or that gets another generated key with a new version of
    /// the program. The rest is as with [`create`](Self::create): the server decides what is there, so two
    /// replicas with two generated values agree on the one that was written first.
    ///
    /// Lists and scalars count as a whole. They are there or not.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn complete<K>(&self, child: K) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Default + Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.complete_with(child, &K::DynamicType::default()).await
    }

    /// The same as [`complete`](Self::complete), for a child of a type known at run time.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn complete_with<K>(
        &self,
        child: K,
        dyntype: &K::DynamicType,
    ) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.made(child, dyntype, Presence::Completed).await
    }

    async fn made<K>(
        &self,
        child: K,
        dyntype: &K::DynamicType,
        presence: Presence,
    ) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let (owner, wanted, target) = self.wanted(&child, dyntype)?;
        drop(child);
        // That it is there is true for long; that it is not the server knows better.
        if let Some((cached, live)) = self.cached(&wanted, dyntype)?
            && owner.standing(&live) == Ok(Standing::Ours)
            && presence.missing(&live, &wanted).is_none()
        {
            return Ok(Applied::new(cached, Done::Kept));
        }
        let mut attempt = 1;
        loop {
            let live = target.get_opt().await;
            let live = live.map_err(|source| wanted.failed(source))?;
            let is_there = live.is_some();
            let written = match live {
                None => self.create_now(&target, &wanted).await,
                Some(live) => match patch(owner, &wanted, &live, presence)? {
                    Ok(patch) => target.patch(&self.patch_params(), &patch).await,
                    Err(done) => return wanted.read(&live, done),
                },
            };
            match written {
                Ok(live) => return wanted.read(&live, Done::Written),
                // Somebody else has made it, changed it or deleted it in between: what is there counts.
                Err(error) if is_overtaken(&error, is_there) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(wanted.failed(error)),
            }
        }
    }

    async fn create_now(&self, target: &Target, wanted: &Wanted) -> Result<Value, kube::Error> {
        let params = PostParams {
            field_manager: Some(self.manager.clone()),
            ..PostParams::default()
        };
        target.create(&params, &wanted.body(None)).await
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.manager.clone()),
            ..PatchParams::default()
        }
    }
}

// === impl Presence ===

impl Presence {
    /// What is missing in an object that is there.
    fn missing(self, live: &Value, wanted: &Wanted) -> Option<Value> {
        match self {
            Self::Kept => None,
            Self::Completed => {
                let patch = absent(live, &wanted.desired)?;
                Some(if patch["metadata"].is_null() {
                    let mut patch = patch;
                    patch["metadata"] = json!({});
                    patch
                } else {
                    patch
                })
            }
        }
    }
}

/// What an object that is there has to get; or what was done about it if that is nothing.
fn patch(
    owner: &Owner,
    wanted: &Wanted,
    live: &Value,
    presence: Presence,
) -> Result<Result<Patch<Value>, Done>, Error> {
    if wanted.standing(owner, live)? == Standing::Leaving {
        return Ok(Err(Done::Leaving));
    }
    let Some(mut patch) = presence.missing(live, wanted) else {
        return Ok(Err(Done::Kept));
    };
    // It holds for this very state: what is missing in it may be there in the next.
    for name in ["uid", "resourceVersion"] {
        patch["metadata"][name] = live["metadata"][name].clone();
    }
    Ok(Ok(Patch::Merge(patch)))
}

/// Whether the server refused a request because somebody else was faster. An object that was there may be gone; of
/// one that was not it is the namespace that is not found.
fn is_overtaken(error: &kube::Error, was_there: bool) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let gone = was_there && status.is_not_found();
    gone || status.is_already_exists() || is_outdated(error)
}
