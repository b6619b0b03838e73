//! The objects that an object owns, kept as they should be.
//!
//! A reconciler says what should be there, and nothing is written while it is:
//!
//! ```no_run
//! use homeostat::{Action, children};
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::{Client, CustomResource, ResourceExt, api::ObjectMeta};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//!
//! #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
//! struct SiteSpec {
//!     page: String,
//! }
//!
//! async fn reconcile(site: Arc<Site>, client: Arc<Client>) -> Result<Action, children::Error> {
//!     let children = children::Set::new(&client, &*site, "site-operator");
//!     let page = ConfigMap {
//!         metadata: ObjectMeta {
//!             name: Some(children::name(&site.name_any(), "page")),
//!             ..ObjectMeta::default()
//!         },
//!         data: Some([("index.html".into(), site.spec.page.clone())].into()),
//!         ..ConfigMap::default()
//!     };
//!     children.apply(page).await?;
//!     // Those that earlier versions of the site or of this program wanted.
//!     children.prune::<ConfigMap>().await?;
//!     children.prune::<Secret>().await?;
//!     Ok(Action::await_change())
//! }
//! ```

mod applied;
mod error;
mod once;
mod wanted;

pub use self::{
    applied::Applied,
    error::{Error, FieldConflict},
};
pub use homeostat_core::children::{name, name_within};

use self::{
    applied::Done,
    error::{conflicts, is_outdated},
    wanted::Wanted,
};
use crate::{reflector::Store, target::Target};
use homeostat_core::children::{self, Owner, Step};
use kube::{
    Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
    core::{ObjectList, PartialObjectMeta, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    any::Any,
    collections::BTreeSet,
    fmt::{self, Debug},
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

/// How often a child is looked at anew because somebody else replaced it at the same time.
const ATTEMPTS: u32 = 8;

/// How many children are listed at once.
const PAGE: u32 = 500;

/// A short text that stands for a value: another one for another value, and the same in every build.
///
/// As an annotation of a pod template it restarts the pods when what they read has changed:
///
/// ```
/// use homeostat::children;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use std::collections::BTreeMap;
///
/// let page = ConfigMap::default();
/// let annotations = BTreeMap::from([("example.com/page", children::fingerprint(&page.data))]);
/// # drop(annotations);
/// ```
///
/// It is no protection against somebody who wants two values to look the same. The value should have
/// no hash map in it, for the order of its members would count.
pub fn fingerprint<T: Serialize + ?Sized>(value: &T) -> String {
    let json = json!({ "value": serde_json::to_value(value).ok() });
    children::fingerprint(&json.to_string())
}

/// The children of one object, in one run of its reconciler.
///
/// ```
/// use homeostat::{Action, children};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use kube::{Client, ResourceExt};
/// use std::sync::Arc;
///
/// async fn reconcile(owner: Arc<Deployment>, client: Arc<Client>) -> Result<Action, children::Error> {
///     let mut page = ConfigMap::default();
///     page.metadata.name = Some(children::name(&owner.name_any(), "page"));
///     page.data = Some([("index.html".to_owned(), "<h1>hello</h1>".to_owned())].into());
///
///     // Writes only if the ConfigMap is not there, or is not like this.
///     let children = children::Set::new(&client, &*owner, "page-operator");
///     children.apply(page).await?;
///     Ok(Action::await_change())
/// }
/// ```
///
/// # Guarantees
///
/// - A child that is as it should be costs no request that writes. What the server or others put next to
///   the desired fields is no difference; a field that was desired once and is not any more is one.
/// - Children name their owner as their controller, so they are deleted with it, and
///   [`Controller::owns`](crate::Controller::owns) hears of whatever happens to them.
/// - Objects of somebody else are left alone: those that another object controls, and fields that another
///   field manager owns. An object that nobody controls is adopted.
/// - Nothing is deleted but what is a child of this very owner at that moment, by its uid.
/// - Nothing is made for an owner that is being deleted; see [`for_cleanup`](Self::for_cleanup).
///
/// # Assumptions
///
/// - The owner comes from a server, so that it has a name and a uid.
/// - All children of an owner and kind are asked for by one set: to another one they are surplus.
/// - The controller watches its children, or looks at them from time to time.
/// - The program may get, patch, create and delete the children. Where the admission plugin
///   `OwnerReferencesPermissionEnforcement` is on, it may also update `finalizers` of the
///   owner.
pub struct Set {
    client: Client,
    /// `Err` with what it does not say.
    owner: Result<Owner, &'static str>,
    manager: String,
    force: bool,
    /// Whether the owner is being deleted, and nothing is made for it.
    leaving: bool,
    /// Each is a [`Store`] of some kind.
    caches: Vec<Box<dyn Any + Send + Sync>>,
    /// URL and name of each child that was asked for.
    wanted: Mutex<BTreeSet<(String, String)>>,
}

// === impl Set ===

impl Set {
    /// The children of `owner`, of which `field_manager` applies the fields.
    ///
    /// The name of the field manager should be that of the program, and stay: what another one has
    /// applied is not taken back.
    #[must_use]
    pub fn new<O>(client: &Client, owner: &O, field_manager: &str) -> Self
    where
        O: Resource<DynamicType: Default>,
    {
        Self::new_with(client, owner, &O::DynamicType::default(), field_manager)
    }

    /// The same as [`new`](Self::new), for an owner of a type known at run time.
    #[must_use]
    pub fn new_with<O: Resource>(
        client: &Client,
        owner: &O,
        dyntype: &O::DynamicType,
        field_manager: &str,
    ) -> Self {
        Self {
            client: client.clone(),
            owner: wanted::owner(owner, dyntype),
            manager: field_manager.to_owned(),
            force: false,
            leaving: owner.meta().deletion_timestamp.is_some(),
            caches: Vec::new(),
            wanted: Mutex::default(),
        }
    }

    /// Takes fields over that others own and want otherwise. Without this such a field is an
    /// [error](Error::Conflict), and the child stays as it is.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Lets children be made although the owner is being deleted, as a Job that cleans up. Without this
    /// that is an [error](Error::OwnerLeaving): what is made after the clean-up nobody cleans up.
    #[must_use]
    pub fn for_cleanup(mut self) -> Self {
        self.leaving = false;
        self
    }

    /// Looks for children of this kind in `store` first. One that is as it should be there costs no
    /// request at all, and [`prune`](Self::prune) lists nothing.
    ///
    /// The store should hold all children of the kind that the program makes, and their
    /// `managedFields`: a [`reflector`](crate::reflector()) keeps them, unless it is told not to. An
    /// object without them is looked up on the server.
    #[must_use]
    pub fn cache<K>(mut self, store: &Store<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Clone + Eq + Hash,
    {
        self.caches.push(Box::new(store.clone()));
        self
    }

    /// Makes a child be there as `child` says, by server-side apply. Returns what is there.
    ///
    /// The child needs a name (see [`name()`]). It is in the namespace of its owner, and the owner
    /// becomes its controller. Its `status` is not applied. `stringData` of a Secret becomes `data`,
    /// because the server does not keep the other.
    ///
    /// An object of that name that is being deleted is left alone, and so is one that an earlier owner
    /// of the same name has left to the garbage collector; see [`Applied::is_leaving`]. When it is gone,
    /// its deletion wakes the owner.
    ///
    /// # Caveats
    ///
    /// In doubt a child is applied, and then a request is sent that changes nothing. There is doubt where
    /// the server fills in defaults inside of a list or map that is owned as a whole: in a custom resource
    /// that is every list without `x-kubernetes-list-type`. Say the default in the child to spare the
    /// request. And there is doubt where the server writes a value in another way, as a quantity in a
    /// built-in kind that is not one of the usual places.
    ///
    /// # Errors
    ///
    /// See [`Error`]. Nothing was written then.
    pub async fn apply<K>(&self, child: K) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Default + Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.apply_with(child, &K::DynamicType::default()).await
    }

    /// The same as [`apply`](Self::apply), for a child of a type known at run time.
    ///
    /// # Errors
    ///
    /// See [`apply`](Self::apply).
    pub async fn apply_with<K>(
        &self,
        child: K,
        dyntype: &K::DynamicType,
    ) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let (owner, wanted, target) = self.wanted(&child, dyntype)?;
        drop(child);
        if let Some(kept) = self.kept::<K>(owner, &wanted, dyntype)? {
            return Ok(kept);
        }
        let mut attempt = 1;
        loop {
            let live = target.get_opt().await;
            let live = live.map_err(|source| wanted.failed(source))?;
            let step = match &live {
                None => Step::Apply,
                Some(live) => wanted.step(owner, live, &self.manager)?,
            };
            let uid = live
                .as_ref()
                .and_then(|live| live["metadata"]["uid"].as_str());
            match (step, &live) {
                (Step::Keep, Some(live)) => return wanted.read(live, Done::Kept),
                (Step::Await, Some(live)) => return wanted.read(live, Done::Leaving),
                (Step::Apply, _) | (Step::Keep | Step::Await, None) => {}
            }
            let params = PatchParams {
                force: self.force,
                ..PatchParams::apply(&self.manager)
            };
            let patch = Patch::Apply(wanted.body(uid));
            match target.patch(&params, &patch).await {
                Ok(live) => return wanted.read(&live, Done::Written),
                Err(error) if is_outdated(&error) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    return Err(match conflicts(&error) {
                        Some(conflicts) => wanted.conflicting(conflicts),
                        None => wanted.failed(error),
                    });
                }
            }
        }
    }

    /// Counts a child as asked for, so that [`prune`](Self::prune) leaves it. Nothing is sent.
    ///
    /// For children that are a record of what happened, such as the last three backup Jobs: they are made once, and no
    /// later run would make them again. Decide which of those that are there stay, keep these, and prune the rest.
    ///
    /// ```
    /// use homeostat::children;
    /// use k8s_openapi::api::batch::v1::Job;
    /// use kube::ResourceExt;
    ///
    /// async fn keep_the_last(
    ///     children: &children::Set,
    ///     mut jobs: Vec<Job>,
    ///     count: usize,
    /// ) -> Result<usize, children::Error> {
    ///     jobs.sort_by_key(|job| std::cmp::Reverse(job.creation_timestamp()));
    ///     for job in jobs.iter().take(count) {
    ///         children.keep(job)?;
    ///     }
    ///     children.prune::<Job>().await
    /// }
    /// # drop(keep_the_last);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::UnnamedChild`], [`Error::Misplaced`] and [`Error::UnknownOwner`].
    pub fn keep<K>(&self, child: &K) -> Result<(), Error>
    where
        K: Resource<DynamicType: Default> + Serialize + 'static,
    {
        self.keep_with(child, &K::DynamicType::default())
    }

    /// The same as [`keep`](Self::keep), for a child of a type known at run time.
    ///
    /// # Errors
    ///
    /// See [`keep`](Self::keep).
    pub fn keep_with<K>(&self, child: &K, dyntype: &K::DynamicType) -> Result<(), Error>
    where
        K: Resource + Serialize + 'static,
    {
        let wanted = Wanted::new(self.owner()?, child, dyntype)?;
        self.note(&wanted.target(&self.client));
        Ok(())
    }

    /// Deletes the children of this kind that this set was not asked for. Returns how many.
    ///
    /// Call it after all children of the run were applied: it then does not come to that if one of them
    /// failed. Children are found by the uid of their controller, and each is deleted only if it is still
    /// that object, in the state in which it is a child of this owner. What it owns itself goes after it.
    ///
    /// Without a [`cache`](Self::cache) this lists the metadata of all objects of the kind in the
    /// owner's namespace, or in all if it is in none.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] if something could not be listed or deleted; what was deleted before stays so.
    pub async fn prune<K>(&self) -> Result<usize, Error>
    where
        K: Resource<DynamicType: Default + Clone + Eq + Hash>,
        K: Send + Sync + 'static,
    {
        self.prune_with::<K>(&K::DynamicType::default()).await
    }

    /// The same as [`prune`](Self::prune), for a type known at run time.
    ///
    /// # Errors
    ///
    /// See [`prune`](Self::prune).
    pub async fn prune_with<K>(&self, dyntype: &K::DynamicType) -> Result<usize, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash>,
        K: Send + Sync + 'static,
    {
        let owner = self.owner()?;
        let candidates = match self.store::<K>(dyntype) {
            Some(store) => {
                let children = store.owned_by_uid(&owner.uid).into_iter();
                children.map(|child| json!(child.meta())).collect()
            }
            None => self.list::<K>(owner, dyntype).await?,
        };
        let mut pruned = 0;
        for metadata in candidates {
            let text = |name: &str| metadata[name].as_str().map(str::to_owned);
            let target = Target {
                client: self.client.clone(),
                url: K::url_path(dyntype, text("namespace").as_deref()),
                name: text("name").unwrap_or_default(),
            };
            if self.is_wanted(&target) {
                continue;
            }
            let deleted = delete(owner, &target, metadata).await;
            let failed = |source| Error::Api {
                child: format!("{} {}", K::kind(dyntype), target.name),
                source,
            };
            pruned += usize::from(deleted.map_err(failed)?);
        }
        Ok(pruned)
    }

    /// A child that is asked for. It is no surplus from then on, however that ends.
    fn wanted<K>(
        &self,
        child: &K,
        dyntype: &K::DynamicType,
    ) -> Result<(&Owner, Wanted, Target), Error>
    where
        K: Resource + Serialize + 'static,
    {
        let owner = self.owner()?;
        let wanted = Wanted::new(owner, child, dyntype)?;
        let target = wanted.target(&self.client);
        self.note(&target);
        if self.leaving {
            return Err(wanted.owner_leaving());
        }
        Ok((owner, wanted, target))
    }

    fn owner(&self) -> Result<&Owner, Error> {
        self.owner
            .as_ref()
            .map_err(|missing| Error::UnknownOwner { missing })
    }

    /// Remembers that a child was asked for.
    fn note(&self, target: &Target) {
        let child = (target.url.clone(), target.name.clone());
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.insert(child);
    }

    fn is_wanted(&self, target: &Target) -> bool {
        let child = (target.url.clone(), target.name.clone());
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.contains(&child)
    }

    fn store<K>(&self, dyntype: &K::DynamicType) -> Option<&Store<K>>
    where
        K: Resource<DynamicType: Clone + Eq + Hash> + 'static,
    {
        let stores = self.caches.iter();
        let mut stores = stores.filter_map(|cache| cache.downcast_ref::<Store<K>>());
        stores.find(|store| store.dyntype() == dyntype)
    }

    /// The child as it is in its cache, if nothing is to be done about it. Whatever else the cache
    /// says, the server knows better.
    fn kept<K>(
        &self,
        owner: &Owner,
        wanted: &Wanted,
        dyntype: &K::DynamicType,
    ) -> Result<Option<Applied<K>>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash> + Serialize + 'static,
    {
        let Some((cached, live)) = self.cached(wanted, dyntype)? else {
            return Ok(None);
        };
        let step = owner.step(&live, &wanted.desired, &self.manager);
        Ok((step == Ok(Step::Keep)).then(|| Applied::new(cached, Done::Kept)))
    }

    /// The child as it is in its cache.
    fn cached<K>(
        &self,
        wanted: &Wanted,
        dyntype: &K::DynamicType,
    ) -> Result<Option<(Arc<K>, Value)>, Error>
    where
        K: Resource<DynamicType: Clone + Eq + Hash> + Serialize + 'static,
    {
        let cached = self.store::<K>(dyntype).and_then(|store| {
            let reference = wanted.reference::<K>(dyntype.clone());
            store.get(&reference)
        });
        let Some(cached) = cached else {
            return Ok(None);
        };
        let live = wanted::json(&*cached).map_err(|source| wanted.failed(source))?;
        Ok(Some((cached, live)))
    }

    /// The metadata of the children of a kind, and of other objects.
    async fn list<K: Resource>(
        &self,
        owner: &Owner,
        dyntype: &K::DynamicType,
    ) -> Result<Vec<Value>, Error> {
        let failed = |source| Error::Api {
            child: format!("the {}", K::plural(dyntype)),
            source,
        };
        let url = K::url_path(dyntype, owner.namespace.as_deref());
        let mut params = ListParams::default().limit(PAGE);
        let mut found = Vec::new();
        loop {
            let request = Request::new(&*url).list_metadata(&params);
            let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
            let page = self
                .client
                .request::<ObjectList<PartialObjectMeta>>(request);
            let page = page.await.map_err(failed)?;
            let metadata = page.items.into_iter().map(|item| json!(item.metadata));
            found.extend(metadata.filter(|metadata| owner.has(metadata)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }
}

impl Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set")
            .field("owner", &self.owner)
            .field("manager", &self.manager)
            .field("force", &self.force)
            .field("leaving", &self.leaving)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

/// Deletes an object if it is a child of `owner`. `metadata` is the latest that is known of it.
async fn delete(owner: &Owner, target: &Target, metadata: Value) -> Result<bool, kube::Error> {
    let mut metadata = metadata;
    let mut attempt = 1;
    loop {
        if !owner.has(&metadata) {
            return Ok(false);
        }
        let text = |name: &str| metadata[name].as_str().map(str::to_owned);
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: text("uid"),
            // In another state it may belong to somebody else.
            resource_version: text("resourceVersion"),
        });
        match target.delete(&params).await {
            Ok(()) => return Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(false),
            Err(error) if is_outdated(&error) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
        match target.metadata().await? {
            Some(now) => metadata = json!(now),
            None => return Ok(false),
        }
    }
}
