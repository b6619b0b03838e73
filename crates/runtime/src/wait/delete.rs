//! Deletes an object and waits until it is gone.

use super::{await_condition, conditions};
use crate::readable;
use kube::{
    Api, Resource,
    api::{DeleteParams, Preconditions},
};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Why an object may still be there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server accepted the deletion without saying of which object, so there is nothing to wait
    /// for.
    #[error("deleted object has no UID to wait for")]
    NoUid,
    /// The object could not be deleted. One that does not exist is such an error (404).
    #[error("failed to delete object: {}", readable(.0))]
    Delete(#[source] kube::Error),
    /// The object is being deleted, but nobody could see it go.
    #[error("failed to wait for object to be deleted: {0}")]
    Await(#[source] super::Error),
}

/// Deletes an object, and waits until it is gone: its finalizers are removed and, with foreground
/// deletion, its children are gone.
///
/// ```no_run
/// use homeostat::wait::delete::delete_and_finalize;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client, api::DeleteParams};
///
/// # async fn remove(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let maps: Api<ConfigMap> = Api::default_namespaced(client);
/// delete_and_finalize(maps, "settings", &DeleteParams::foreground()).await?;
/// # Ok(())
/// # }
/// ```
///
/// What is deleted is the object that has the name when this begins: its uid is read first and becomes a
/// precondition, unless `delete_params` has preconditions already. Another object that takes the name in
/// between is neither deleted, which is an error (409), nor waited for. A dry run is only that: nothing is
/// waited for either.
///
/// # Caveats
///
/// The program has to be allowed to get the object, too. It waits as long as it takes, and with a finalizer that nobody removes that is for ever.
///
/// # Errors
///
/// See [`Error`]; what can go wrong while waiting is said at
/// [`await_condition`](super::await_condition#errors).
pub async fn delete_and_finalize<K>(
    api: Api<K>,
    name: &str,
    delete_params: &DeleteParams,
) -> Result<(), Error>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    let mut delete_params = delete_params.clone();
    if delete_params.preconditions.is_none() {
        let object = api.get_metadata(name).await.map_err(Error::Delete)?;
        delete_params.preconditions = Some(Preconditions {
            uid: object.metadata.uid,
            resource_version: None,
        });
    }
    let deleted = api
        .delete(name, &delete_params)
        .await
        .map_err(Error::Delete)?;
    if delete_params.dry_run {
        return Ok(());
    }
    let uid = deleted.either(
        |object| object.meta().uid.clone(),
        |status| status.details.map(|details| details.uid),
    );
    let uid = uid.filter(|uid| !uid.is_empty()).ok_or(Error::NoUid)?;
    await_condition(api, name, conditions::is_deleted(&uid))
        .await
        .map_err(Error::Await)?;
    Ok(())
}
