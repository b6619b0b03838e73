//! Acting as somebody else, as `kubectl --as` asks for it.

use http::{HeaderMap, HeaderName};

use super::{ANONYMOUS, AUTHENTICATED, Attributes, Requester, UNAUTHENTICATED, User};
use crate::status::Status;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const EXTRA: &str = "impersonate-extra-";

/// Whom a request is to be made as, if it says so. `need` refuses what the requester may not.
///
/// # Errors
///
/// 403 if the requester may not be that user or in one of those groups, 500 for groups without a user.
pub(crate) fn impersonated(
    headers: &HeaderMap,
    requester: &Requester,
    need: impl Fn(&Attributes<'_>) -> Result<(), Status>,
) -> Result<Option<User>, Status> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let groups = headers.get_all(&GROUP).iter();
    let groups: Vec<&str> = groups.filter_map(|value| value.to_str().ok()).collect();
    let uid = text(&UID);
    let extras: Vec<(&str, &str)> = headers
        .iter()
        .filter_map(|(name, value)| {
            let key = name.as_str().strip_prefix(EXTRA)?;
            Some((key, value.to_str().ok()?))
        })
        .collect();
    let Some(name) = text(&USER) else {
        if groups.is_empty() && uid.is_none() && extras.is_empty() {
            return Ok(None);
        }
        let why = format!("requested {groups:?} without impersonating a user");
        return Err(Status::internal_error(&why));
    };
    let mut user = User {
        name: name.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
    };
    let wanted = |resource, name| Attributes {
        resource,
        name,
        ..Attributes::of(&requester.user, "impersonate")
    };
    match user.account() {
        Some((namespace, name)) => need(&Attributes {
            namespace,
            ..wanted("serviceaccounts", name)
        })?,
        None => need(&wanted("users", name))?,
    }
    for group in groups {
        need(&wanted("groups", group))?;
    }
    for (resource, subresource, name) in uid.map(|uid| ("uids", "", uid)).into_iter().chain(
        extras
            .iter()
            .map(|(key, value)| ("userextras", *key, *value)),
    ) {
        need(&Attributes {
            group: "authentication.k8s.io",
            subresource,
            ..wanted(resource, name)
        })?;
    }
    if user.groups.is_empty()
        && let Some((namespace, name)) = user.account()
    {
        user.groups = User::service_account(namespace, name).groups;
    }
    let everybody = if user.name == ANONYMOUS {
        UNAUTHENTICATED
    } else {
        AUTHENTICATED
    };
    if !user.groups.iter().any(|group| group == everybody) {
        user.groups.push(everybody.to_owned());
    }
    Ok(Some(user))
}
