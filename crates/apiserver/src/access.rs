//! Who asks, and whether they may.

mod impersonation;
mod needs;
mod rbac;
mod token;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::impersonation::impersonated;
pub(crate) use self::needs::{Needs, Why};
pub(crate) use self::rbac::{Ruling, lacking, rules_of};
pub(crate) use self::token::Keys;
use crate::status::{Status, Subject};
use crate::storage::Store;

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

/// Decides who may do what. It is asked for each request, after the user is known and before anything is read, and
/// once more where a server-side apply creates an object, with the verb `create`. Closures are authorizers.
///
/// It must not ask the server for anything: the server may be in the middle of a write.
pub trait Authorizer: Send + Sync + 'static {
    /// Decides about one request.
    fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// Whoever makes a request, and what they may do.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) user: Arc<User>,
    /// The `User-Agent` header.
    agent: Arc<str>,
    access: Arc<Access>,
}

/// Everybody whom the server knows, and what decides about them.
pub(crate) struct Access {
    /// Without tokens nobody has to say who they are.
    tokens: BTreeMap<String, Arc<User>>,
    authorizer: Box<dyn Authorizer>,
    /// What tokens of service accounts are signed with. With it roles decide, without it nobody asks them.
    rbac: Option<Keys>,
    needs: Option<Arc<Needs>>,
    admin: Arc<User>,
    anonymous: Arc<User>,
}

/// How a request came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// From the program that the server is a part of. It need not say who it is: it is this user, or the
    /// administrator.
    Process(Option<Arc<User>>),
    Socket,
}

/// What a request says of whom it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) entrance: &'a Entrance,
    pub(crate) authorization: Option<&'a [u8]>,
    pub(crate) agent: &'a str,
    /// Whether everybody may see what is asked for.
    pub(crate) open: bool,
}

/// By default everybody may do everything.
pub(crate) struct AllowAll;

/// How the names of service accounts begin.
const ACCOUNT: &str = "system:serviceaccount:";

/// The group of all service accounts.
const ACCOUNTS: &str = "system:serviceaccounts";

/// The group of all who are known.
const AUTHENTICATED: &str = "system:authenticated";

/// Somebody who has not said who they are, and their group.
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";

// === impl User ===

impl User {
    /// A user in the group of all who are known.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: vec![AUTHENTICATED.to_owned()],
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

    /// A service account, with the groups that a cluster gives it. It need not be there.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("{ACCOUNT}{namespace}:{name}"))
            .group(ACCOUNTS)
            .group(format!("{ACCOUNTS}:{namespace}"))
    }

    /// Namespace and name of the service account that the user is, if it is one.
    pub(crate) fn account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(ACCOUNT)?.split_once(':')
    }

    fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
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
    /// What the hook says.
    fn asked(&self, attributes: &Attributes<'_>) -> Ruling {
        match self.access.authorizer.authorize(attributes) {
            Decision::Allow => Ruling::allowed(String::new()),
            Decision::Deny(reason) => Ruling::denied(reason),
        }
    }

    /// What the hook and the roles say, both of which have to allow it.
    pub(crate) fn ruling(&self, attributes: &Attributes<'_>, store: &Store) -> Ruling {
        let ruling = self.asked(attributes);
        if ruling.allowed && self.has_roles() {
            return rbac::ruling(store, attributes);
        }
        ruling
    }

    /// Notes that a request needs this, and refuses it to whom it is not allowed. `with_store` is called where roles
    /// decide.
    ///
    /// # Errors
    ///
    /// 403 with what is not allowed.
    pub(crate) fn need(
        &self,
        attributes: &Attributes<'_>,
        with_store: impl FnOnce(&dyn Fn(&Store) -> Ruling) -> Ruling,
    ) -> Result<(), Status> {
        let mut ruling = self.asked(attributes);
        if ruling.allowed && self.has_roles() {
            ruling = with_store(&|store| rbac::ruling(store, attributes));
        }
        self.note(attributes, Why::Asked);
        if ruling.allowed {
            Ok(())
        } else {
            Err(attributes.refusal(&ruling.reason))
        }
    }

    /// Notes what a request needs, or would need in other clusters.
    pub(crate) fn note(&self, attributes: &Attributes<'_>, why: Why) {
        if let Some(needs) = &self.access.needs {
            needs.note(attributes, &self.agent, why);
        }
    }

    /// Whether anybody wants to know what requests need.
    pub(crate) fn is_noted(&self) -> bool {
        self.access.needs.is_some()
    }

    /// Whether roles decide.
    pub(crate) fn has_roles(&self) -> bool {
        self.access.rbac.is_some()
    }

    /// Somebody else, who asks in the same way.
    pub(crate) fn acting_as(&self, user: User) -> Self {
        Self {
            user: Arc::new(user),
            ..self.clone()
        }
    }

    /// Whose token this is. `account` knows whose the claims of a service account's token are.
    pub(crate) fn owner_of(
        &self,
        token: &str,
        account: impl FnOnce(&Value) -> Option<User>,
    ) -> Option<Arc<User>> {
        self.access.owner_of(token.as_bytes(), account)
    }

    /// A token with these claims; none where nobody checks tokens.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        self.access.sign(claims)
    }
}

/// The server itself, which may do everything.
impl Default for Requester {
    fn default() -> Self {
        let access = Access::new(BTreeMap::new(), Box::new(AllowAll), None, None);
        Self {
            user: Arc::clone(&access.admin),
            agent: Arc::default(),
            access: Arc::new(access),
        }
    }
}

// === impl Access ===

impl Access {
    pub(crate) fn new(
        tokens: BTreeMap<String, Arc<User>>,
        authorizer: Box<dyn Authorizer>,
        rbac: Option<Keys>,
        needs: Option<Arc<Needs>>,
    ) -> Self {
        Self {
            tokens,
            authorizer,
            rbac,
            needs,
            admin: Arc::new(User::admin()),
            anonymous: Arc::new(User::anonymous()),
        }
    }

    /// Who makes a request. `account` knows whose the claims of a service account's token are.
    ///
    /// # Errors
    ///
    /// 401 for a token that is not known, and for none where one is needed.
    pub(crate) fn identify(
        self: &Arc<Self>,
        caller: Caller<'_>,
        account: impl FnOnce(&Value) -> Option<User>,
    ) -> Result<Requester, Status> {
        let nobody_has_to = self.tokens.is_empty() && self.rbac.is_none();
        let user = match (caller.authorization, caller.entrance) {
            (None, Entrance::Process(Some(user))) => Some(Arc::clone(user)),
            _ if nobody_has_to => Some(Arc::clone(&self.admin)),
            (Some(header), _) => bearer(header).and_then(|token| self.owner_of(token, account)),
            (None, Entrance::Process(None)) => Some(Arc::clone(&self.admin)),
            (None, Entrance::Socket) => caller.open.then(|| Arc::clone(&self.anonymous)),
        };
        Ok(Requester {
            user: user.ok_or_else(Status::unauthorized)?,
            agent: caller.agent.into(),
            access: Arc::clone(self),
        })
    }

    /// A token with these claims; none where nobody checks tokens.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        Some(self.rbac.as_ref()?.sign(claims))
    }

    fn owner_of(
        &self,
        token: &[u8],
        account: impl FnOnce(&Value) -> Option<User>,
    ) -> Option<Arc<User>> {
        let mut tokens = self.tokens.iter();
        if let Some((_, user)) = tokens.find(|(known, _)| same(known.as_bytes(), token)) {
            return Some(Arc::clone(user));
        }
        let claims = self.rbac.as_ref()?.read(token)?;
        account(&claims).map(Arc::new)
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
