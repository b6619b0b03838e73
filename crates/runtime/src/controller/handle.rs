//! What can be done with a controller that runs.

use super::{
    counts::Counts,
    draft::{self, Draft},
    history::{Explanation, Histories},
    source::{self, Source},
};
use crate::{
    reflector::{ObjectKey, ObjectRef},
    watcher,
};
use futures::{Stream, StreamExt};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{
    fmt::{self, Debug},
    hash::Hash,
};
use tokio::sync::mpsc;

/// Asks a controller that runs what happened, and adds watches to it. Clones are of the same controller.
///
/// Watches are added for kinds that appear later, as the CRDs of another operator, or whose names are part of an
/// object. What is added is what the method of the same name adds to a
/// [`Controller`](super::Controller); runs go on while its first list is not complete.
///
/// When the controller has stopped, nothing happens any more.
pub struct Handle<K: Resource> {
    sources: mpsc::UnboundedSender<Draft>,
    histories: Histories,
    dyntype: K::DynamicType,
}

// === impl Handle ===

impl<K> Handle<K>
where
    K: Resource + 'static,
    K::DynamicType: Clone,
{
    pub(super) fn new(
        sources: mpsc::UnboundedSender<Draft>,
        histories: Histories,
        dyntype: K::DynamicType,
    ) -> Self {
        Self {
            sources,
            histories,
            dyntype,
        }
    }

    /// What happened to an object lately: its last runs with their causes and outcomes, what they
    /// wrote, and how it was waited for caches to see that. It is remembered for those objects that
    /// ran last, about a thousand.
    ///
    /// ```
    /// # use homeostat::{controller::Handle, reflector::ObjectRef};
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// fn explain(handle: &Handle<Deployment>) {
    ///     print!("{}", handle.explain(&ObjectRef::new("web").within("default")));
    /// }
    /// ```
    #[must_use]
    pub fn explain(&self, object: &ObjectRef<K>) -> Explanation {
        self.histories.explain(&ObjectKey::of_ref(object))
    }

    /// What the controller has counted until now: runs, those that only their own object's writes have led to,
    /// waits for caches and how many of these were in vain, loops.
    ///
    /// ```
    /// # use homeostat::controller::Handle;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// fn tell(handle: &Handle<Deployment>) {
    ///     let counts = handle.counts();
    ///     println!("homeostat_runs_total {}", counts.runs);
    ///     println!("homeostat_self_triggered_runs_total {}", counts.self_triggered_runs);
    ///     println!("homeostat_overdue_waits_total {}", counts.overdue_waits);
    /// }
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.histories.counts()
    }

    /// See [`Controller::owns_with`](super::Controller::owns_with).
    pub fn owns<Child>(&self, api: Api<Child>, dyntype: Child::DynamicType, wc: watcher::Config)
    where
        Child: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        Child::DynamicType: Debug + Eq + Hash + Clone,
    {
        self.add(draft::owned::<K, Child>(
            api,
            wc,
            dyntype,
            self.dyntype.clone(),
        ));
    }

    /// See [`Controller::watches_with`](super::Controller::watches_with).
    pub fn watches<Other, I>(
        &self,
        api: Api<Other>,
        dyntype: Other::DynamicType,
        wc: watcher::Config,
        mapper: impl Fn(Other) -> I + Sync + Send + 'static,
    ) where
        Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        Other::DynamicType: Debug + Clone + Eq + Hash,
        I: 'static + IntoIterator<Item = ObjectRef<K>>,
    {
        let relate = move |other| source::keys(mapper(other));
        self.add(Draft::of_related_watch(api, wc, dyntype, relate));
    }

    /// See [`Controller::reconcile_on`](super::Controller::reconcile_on).
    pub fn reconcile_on(&self, trigger: impl Stream<Item = ObjectRef<K>> + Send + 'static) {
        let signals = trigger.map(|reference| source::requested(&reference));
        self.add(Source::of_signals("reconcile_on", signals).into());
    }

    fn add(&self, source: Draft) {
        // A controller that has stopped takes nothing in, as the type says.
        drop(self.sources.send(source));
    }
}

impl<K: Resource> Clone for Handle<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            sources: self.sources.clone(),
            histories: self.histories.clone(),
            dyntype: self.dyntype.clone(),
        }
    }
}

impl<K: Resource> Debug for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("kind", &K::kind(&self.dyntype))
            .finish_non_exhaustive()
    }
}
