//! `reflector`.

use super::{
    DynamicObject, ObjectReference, Selector, clone, debug, default, display, eq, error, full_eq,
    hash, into,
    reflector::{self, Lookup, ObjectRef, ObjectRefExtra, ReflectHandle, Store, store},
    send, sync, watcher,
};
use futures::Stream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use std::{borrow::Cow, fmt::Debug, hash::Hash, sync::Arc};

fn reflect<K, W>(writer: store::Writer<K>, stream: W) -> impl Stream<Item = W::Item>
where
    K: Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
    W: Stream<Item = watcher::Result<watcher::Event<K>>>,
{
    reflector::reflector(writer, stream)
}

fn stores<K>() -> [(Store<K>, store::Writer<K>); 4]
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    [
        reflector::store(),
        store::store(),
        reflector::store_shared(1),
        store::store_shared(1),
    ]
}

fn writers<K>(dyntype: K::DynamicType, event: &watcher::Event<K>) -> Option<ReflectHandle<K>>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    let _ = [
        store::Writer::<K>::default(),
        store::Writer::new(dyntype.clone()),
    ];
    let mut writer = store::Writer::new_shared(1, dyntype);
    writer.apply_watcher_event(event);
    let _: Store<K> = writer.as_reader();
    writer.subscribe()
}

async fn read<K>(store: &Store<K>, key: &ObjectRef<K>) -> Result<usize, store::WriterDropped>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    store.wait_until_ready().await?;
    let one: [Option<Arc<K>>; 2] = [store.get(key), store.find(|obj| obj.name().is_some())];
    let many: [Vec<Arc<K>>; 2] = [
        store.state(),
        store.state_filter(|obj| obj.name().is_some()),
    ];
    Ok(one.len() + many.len() + store.len() + usize::from(store.is_empty()))
}

fn select<K>(store: &Store<K>, selector: &Selector) -> Vec<Arc<K>>
where
    K: Lookup + Clone + ResourceExt + 'static,
    <K as Lookup>::DynamicType: Eq + Hash + Clone,
{
    store.state_filter_selector(selector)
}

fn subscribed<K>(handle: &ReflectHandle<K>) -> (Store<K>, impl Stream<Item = Arc<K>>)
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone + Default,
{
    (handle.reader(), handle.clone())
}

/// A type with a `Lookup` of its own, which is no `Resource`.
#[derive(Clone, Debug)]
struct Entry(String);

impl Lookup for Entry {
    type DynamicType = ();

    fn kind((): &()) -> Cow<'_, str> {
        "Entry".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "entries".into()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(self.0.as_str().into())
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        None
    }
}

#[test]
fn what_is_no_resource_has_references_and_stores() {
    let reference = ObjectRef::from_obj(&Entry("a".into()));
    assert_eq!(reference.to_string(), "Entry.v1.example.com/a");
    assert_eq!(Entry::api_version(&()), "example.com/v1");
    let (reader, mut writer) = reflector::store::<Entry>();
    writer.apply_watcher_event(&watcher::Event::Init);
    writer.apply_watcher_event(&watcher::Event::InitApply(Entry("a".into())));
    writer.apply_watcher_event(&watcher::Event::InitDone);
    assert_eq!(
        reader
            .get(&reference)
            .map(|entry| entry.0.clone())
            .as_deref(),
        Some("a")
    );
}

fn references<K: Lookup>(
    obj: &K,
    dyntype: K::DynamicType,
    owner: &OwnerReference,
) -> [ObjectRef<K>; 4]
where
    K::DynamicType: Clone,
{
    let from_owner = ObjectRef::from_owner_ref(Some("a"), owner, dyntype.clone());
    let named = ObjectRef::new_with("a", dyntype.clone()).within("b");
    [
        from_owner.unwrap_or_else(|| named.clone()),
        ObjectRef::from_obj_with(obj, dyntype.clone()),
        obj.to_object_ref(dyntype),
        named,
    ]
}

fn default_references<K: Lookup>(obj: &K) -> [ObjectRef<K>; 2]
where
    K::DynamicType: Default,
{
    let new: fn(&str) -> ObjectRef<K> = ObjectRef::new;
    let from_obj: fn(&K) -> ObjectRef<K> = ObjectRef::from_obj;
    [new("a"), from_obj(obj)]
}

fn parts<K: Lookup>(reference: ObjectRef<K>) -> (String, Option<String>, [Option<String>; 2]) {
    let ObjectRefExtra {
        resource_version,
        uid,
        ..
    } = reference.extra;
    let _: K::DynamicType = reference.dyntype;
    (reference.name, reference.namespace, [resource_version, uid])
}

fn other_kinds<K: Lookup, K2: Lookup>(
    reference: ObjectRef<K>,
    dyntype: K2::DynamicType,
) -> (ObjectRef<K2>, ObjectRef<DynamicObject>)
where
    K::DynamicType: Clone,
{
    let other = reference.clone().into_kind_unchecked::<K2>(dyntype);
    (other, reference.erase())
}

fn of_reflectors<K>()
where
    K: Lookup + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Default + Send + Sync,
{
    into::<&K, ObjectRef<K>>();
    into::<ObjectRef<K>, ObjectReference>();
    clone::<ObjectRef<K>>();
    debug::<ObjectRef<K>>();
    display::<ObjectRef<K>>();
    full_eq::<ObjectRef<K>>();
    hash::<ObjectRef<K>>();
    clone::<ObjectRefExtra>();
    debug::<ObjectRefExtra>();
    default::<ObjectRefExtra>();
    clone::<Store<K>>();
    debug::<Store<K>>();
    send::<Store<K>>();
    sync::<Store<K>>();
    default::<store::Writer<K>>();
    debug::<store::Writer<K>>();
    send::<store::Writer<K>>();
    clone::<ReflectHandle<K>>();
    send::<ReflectHandle<K>>();
    error::<store::WriterDropped>();
    eq::<ObjectRef<K>>();
}
