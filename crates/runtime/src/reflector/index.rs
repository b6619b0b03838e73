//! Finds the objects of a store by a property of theirs.

use super::{Lookup, Store, entries::Entries};
use std::{
    collections::BTreeSet,
    fmt::{self, Debug},
    hash::Hash,
    sync::Arc,
};

/// The objects of a [`Store`] by a property of theirs: see [`Store::index`].
///
/// Clones share one index. It costs nothing when all of them are dropped.
pub struct Index<K: Lookup + 'static, V>
where
    K::DynamicType: Eq + Hash,
{
    store: Store<K>,
    entries: Arc<Entries<K, V>>,
}

// === impl Store ===

impl<K: Lookup + 'static> Store<K>
where
    K::DynamicType: Eq + Hash,
{
    /// An index of the objects by a property: `property` names the values that an object has.
    ///
    /// ```
    /// use homeostat::reflector;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let (store, _writer) = reflector::store::<Pod>();
    /// let by_node = store.index(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    /// let on_node = by_node.get(&"node-1".to_owned());
    /// assert!(on_node.is_empty());
    /// ```
    ///
    /// # Guarantees
    ///
    /// - The index changes together with the store. Looking up costs nothing for other objects.
    /// - It is dropped from the store with its last handle.
    ///
    /// `property` runs under the store's lock, so keep it short, and it must say the same each time
    /// that it sees an object.
    pub fn index<V, I>(&self, property: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        K: Send + Sync,
        V: Ord + Send + 'static,
        I: IntoIterator<Item = V>,
    {
        let entries = self.entries(property);
        Index::new(self.clone(), entries)
    }
}

// === impl Index ===

impl<K: Lookup + 'static, V: Ord> Index<K, V>
where
    K::DynamicType: Eq + Hash,
{
    pub(super) fn new(store: Store<K>, entries: Arc<Entries<K, V>>) -> Self {
        Self { store, entries }
    }

    /// The objects that have this value, ordered by namespace and name.
    pub fn get(&self, value: &V) -> Vec<Arc<K>> {
        self.store.get_all(|| self.entries.keys_of(value))
    }

    /// Number of objects that have this value.
    pub fn count(&self, value: &V) -> usize {
        self.store.note();
        self.entries.lock().get(value).map_or(0, BTreeSet::len)
    }
}

impl<K: Lookup + 'static, V> Clone for Index<K, V>
where
    K::DynamicType: Eq + Hash,
{
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            entries: Arc::clone(&self.entries),
        }
    }
}

impl<K: Lookup + 'static, V> Debug for Index<K, V>
where
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("store", &self.store)
            .field("values", &self.entries.lock().len())
            .finish()
    }
}
