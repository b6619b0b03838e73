//! Turns streams of objects into streams of requests, for [`applier`](super::applier).

use super::{ReconcileReason, ReconcileRequest};
use crate::reflector::ObjectRef;
use futures::{Stream, TryStream, TryStreamExt, stream};
use kube::{Resource, ResourceExt};
use std::borrow::Borrow;

/// Requests for whatever `mapper` names for each item of `stream`.
pub fn trigger_with<T, K, I, S>(
    stream: S,
    mapper: impl Fn(T) -> I,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>>
where
    S: TryStream<Ok = T>,
    I: IntoIterator,
    I::Item: Into<ReconcileRequest<K>>,
    K: Resource,
{
    stream
        .map_ok(move |item| {
            let requests = mapper(item).into_iter().map(Into::into);
            stream::iter(requests.map(Ok).collect::<Vec<_>>())
        })
        .try_flatten()
}

/// A request for each object of `stream`.
pub fn trigger_self<K, S>(
    stream: S,
    dyntype: K::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<K>, S::Error>>
where
    S: TryStream,
    S::Ok: Borrow<K>,
    K: Resource,
    K::DynamicType: Clone,
{
    trigger_with(stream, move |obj: S::Ok| {
        Some(ReconcileRequest {
            obj_ref: ObjectRef::from_obj_with(obj.borrow(), dyntype.clone()),
            reason: ReconcileReason::ObjectUpdated,
        })
    })
}

/// A request for each owner of kind `KOwner` of each object of `stream`.
pub fn trigger_owners<KOwner, S>(
    stream: S,
    owner_type: KOwner::DynamicType,
    child_type: <S::Ok as Resource>::DynamicType,
) -> impl Stream<Item = Result<ReconcileRequest<KOwner>, S::Error>>
where
    S: TryStream,
    S::Ok: Resource,
    <S::Ok as Resource>::DynamicType: Clone,
    KOwner: Resource,
    KOwner::DynamicType: Clone,
{
    trigger_with(stream, move |child: S::Ok| {
        let namespace = child.namespace();
        let owners = child.owner_references().iter().filter_map(|owner| {
            ObjectRef::from_owner_ref(namespace.as_deref(), owner, owner_type.clone())
        });
        let requests = owners.map(|obj_ref| ReconcileRequest {
            obj_ref,
            reason: ReconcileReason::RelatedObjectUpdated {
                obj_ref: Box::new(ObjectRef::from_obj_with(&child, child_type.clone()).erase()),
            },
        });
        requests.collect::<Vec<_>>()
    })
}
