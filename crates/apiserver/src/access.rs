//! Who asks, and whether they may.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::status::{Status, Subject};

/// Somebody who makes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// The name, as RBAC knows it: `alice`, `system:serviceaccount:default:operator`.
    pub name: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes<'a> {
    /// Who wants it.
    pub user: &'a User,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for a path
    /// that is no resource, the method in lower case.
    pub verb: &'a str,
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The version of the resource.
    pub version: &'a str,
    /// The plural name of the resource; empty for a path that is none.
    pub resource: &'a str,
    /// The subresource; empty if none.
    pub subresource: &'a str,
    /// The namespace; empty for the whole cluster.
    pub namespace: &'a str,
    /// The name of the object; empty for a collection.
    pub name: &'a str,
    /// The path of a request that is about no resource; empty for others.
    pub path: &'a str,
}

/// Whether somebody may do what they want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They may not, for this reason. It is part of the answer (403) and may be empty.
    Deny(String),
}

/// Decides who may do what. It is asked once for each request, after the user is known and before
/// anything is read. Closures are authorizers.
pub trait Authorizer: Send + Sync + 'static {
    /// Decides about one request.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// Whoever makes a request, and what they may do.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) user: Arc<User>,
    access: Arc<Access>,
}

/// Everybody whom the server knows, and what decides about them.
pub(crate) struct Access {
    /// Without tokens nobody has to say who they are.
    tokens: BTreeMap<String, Arc<User>>,
    authorizer: Box<dyn Authorizer>,
    admin: Arc<User>,
    anonymous: Arc<User>,
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// From the program that the server is a part of. It need not say who it is.
    Process,
    Socket,
}

/// By default everybody may do everything.
pub(crate) struct AllowAll;

// === impl User ===

impl User {
    /// A user in the group of all who are known.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: vec!["system:authenticated".to_owned()],
        }
    }

    /// Puts the user in a group.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.groups.push(name.into());
        self
    }

    /// The administrator: requests in process are made by it, and so are all where there are no
    /// tokens.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("system:admin").group("system:masters")
    }

    fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }
}

// === impl Attributes ===

impl<'a> Attributes<'a> {
    /// Something that a user wants with something that is yet to be said.
    pub(crate) fn of(user: &'a User, verb: &'a str) -> Self {
        Self {
            user,
            verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: "",
        }
    }

    /// The answer to somebody who may not.
    pub(crate) fn refusal(&self, reason: &str) -> Status {
        let Self {
            user,
            verb,
            group,
            version: _,
            resource,
            subresource,
            namespace,
            name,
            path,
        } = self;
        let user = &user.name;
        let mut why = if resource.is_empty() {
            format!("User {user:?} cannot {verb} path {path:?}")
        } else {
            let slash = if subresource.is_empty() { "" } else { "/" };
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            format!(
                "User {user:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group \
                 {group:?} {place}"
            )
        };
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let kind = resource;
        Status::not_allowed(Subject { group, kind, name }, &why)
    }
}

// === impl Authorizer ===

impl Authorizer for AllowAll {
    fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::Allow
    }
}

impl<F> Authorizer for F
where
    F: Fn(&Attributes<'_>) -> Decision + Send + Sync + 'static,
{
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        self(attributes)
    }
}

// === impl Requester ===

impl Requester {
    pub(crate) fn may(&self, attributes: &Attributes<'_>) -> Decision {
        self.access.authorizer.authorize(attributes)
    }

    /// Whose token this is.
    pub(crate) fn owner_of(&self, token: &str) -> Option<&User> {
        self.access.owner_of(token.as_bytes()).map(|user| &**user)
    }
}

/// The server itself, which may do everything.
impl Default for Requester {
    fn default() -> Self {
        let access = Arc::new(Access::new(BTreeMap::new(), Box::new(AllowAll)));
        Self {
            user: Arc::clone(&access.admin),
            access,
        }
    }
}

// === impl Access ===

impl Access {
    pub(crate) fn new(
        tokens: BTreeMap<String, Arc<User>>,
        authorizer: Box<dyn Authorizer>,
    ) -> Self {
        Self {
            tokens,
            authorizer,
            admin: Arc::new(User::admin()),
            anonymous: Arc::new(User::anonymous()),
        }
    }

    /// Who makes a request, by its `Authorization` header. `open` is for what everybody may see.
    ///
    /// # Errors
    ///
    /// 401 for a token that is not known, and for none where one is needed.
    pub(crate) fn identify(
        self: &Arc<Self>,
        authorization: Option<&[u8]>,
        entrance: Entrance,
        open: bool,
    ) -> Result<Requester, Status> {
        let user = match (authorization, entrance) {
            _ if self.tokens.is_empty() => Some(&self.admin),
            (Some(header), _) => bearer(header).and_then(|token| self.owner_of(token)),
            (None, Entrance::Process) => Some(&self.admin),
            (None, Entrance::Socket) => open.then_some(&self.anonymous),
        };
        Ok(Requester {
            user: Arc::clone(user.ok_or_else(Status::unauthorized)?),
            access: Arc::clone(self),
        })
    }

    fn owner_of(&self, token: &[u8]) -> Option<&Arc<User>> {
        let mut tokens = self.tokens.iter();
        let (_, user) = tokens.find(|(known, _)| same(known.as_bytes(), token))?;
        Some(user)
    }
}

/// Tokens are secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<&str> = self
            .tokens
            .values()
            .map(|user| user.name.as_str())
            .collect();
        f.debug_struct("Access")
            .field("users", &users)
            .finish_non_exhaustive()
    }
}

/// The token of an `Authorization` header.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = header.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

/// Whether two texts are equal. How long it takes says nothing about where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}
