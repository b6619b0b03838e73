//! Which objects belong together.

use super::{
    super::{Lookup, key::ObjectKey, names_kind},
    Store,
};
use kube::{Resource, ResourceExt};
use std::{hash::Hash, sync::Arc};

impl<K: 'static + Lookup> Store<K>
where
    K::DynamicType: Eq + Hash,
{
    /// The objects that `owner` owns: those with its uid in their owner references.
    ///
    /// The first call makes an index, which the store keeps from then on.
    pub fn owned_by<O: Resource>(&self, owner: &O) -> Vec<Arc<K>>
    where
        K: Resource + Send + Sync,
    {
        let uid = owner.meta().uid.as_deref();
        uid.map(|uid| self.owned_by_uid(uid)).unwrap_or_default()
    }

    /// The objects with this uid in their owner references.
    pub(crate) fn owned_by_uid(&self, uid: &str) -> Vec<Arc<K>>
    where
        K: Resource + Send + Sync,
    {
        self.note();
        let known = self.shared.read().owners.clone();
        let owners = known.unwrap_or_else(|| {
            let mut state = self.shared.write();
            // Somebody else may have made it meanwhile.
            let known = state.owners.clone();
            known.unwrap_or_else(|| {
                let uids = |obj: &K| {
                    let owners = obj.owner_references().iter();
                    owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
                };
                let made = state.index(uids);
                state.owners = Some(Arc::clone(&made));
                made
            })
        });
        self.get_all(|| owners.keys_of(&uid.to_owned()))
    }

    /// The object that owns `child`: the one that an owner reference of `child` names by kind, name
    /// and uid. An object with the owner's name and another uid is another object.
    pub fn owner_of<C: Resource>(&self, child: &C) -> Option<Arc<K>> {
        let namespace = child.meta().namespace.as_deref();
        child.owner_references().iter().find_map(|owner| {
            if !names_kind::<K>(owner, self.dyntype()) {
                return None;
            }
            let found = self.get_named(namespace.unwrap_or_default(), &owner.name)?;
            (found.uid().as_deref() == Some(&owner.uid)).then_some(found)
        })
    }

    /// The objects in a namespace, ordered by name.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.note();
        let cache = &self.shared.read().objects;
        let first = ObjectKey::new(Some(namespace), "");
        let from = cache.iter_from(&first);
        let there = from.take_while(|(key, _)| key.namespace() == namespace);
        there.filter_map(|(_, obj)| obj.object().cloned()).collect()
    }
}
