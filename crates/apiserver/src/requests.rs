//! A log of the requests that came in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use jiff::Timestamp;

use crate::access::{Attributes, User};
use crate::http::{Query, Route};

/// What a request wants, as the audit log of a cluster would name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object, server-side apply included.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// Anything else: discovery, version, health.
    Other,
}

/// A request that the server got.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// When it came, on the server's clock.
    pub at: Timestamp,
    /// What it wanted.
    pub verb: Verb,
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// The plural name of the resource; empty for requests that are about none.
    pub resource: String,
    /// The subresource; empty if none.
    pub subresource: String,
    /// The namespace; empty if none.
    pub namespace: String,
    /// The name of the object; empty for a collection.
    pub name: String,
    /// The parameters in the order in which they came.
    pub query: Vec<(String, String)>,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The name of the user who made it; empty where that is not known (401).
    pub user: String,
    /// The HTTP status of the answer; none if the connection was refused by a fault.
    pub status: Option<u16>,
    /// Whether something was stored or removed.
    pub changed: bool,
}

/// The requests of a server, oldest first. Clones share one log.
///
/// A request is logged when its answer is ready; a watch when its stream opens.
#[derive(Debug, Clone)]
pub struct Requests {
    log: Arc<Mutex<VecDeque<Request>>>,
    limit: usize,
}

/// What a request is about, before there is an answer.
#[derive(Debug, Clone)]
pub(crate) struct RequestFacts {
    pub(crate) verb: Verb,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    query: Vec<(String, String)>,
    pub(crate) user_agent: String,
    /// Empty until it is known.
    pub(crate) user: String,
}

// === impl Requests ===

impl Requests {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            log: Arc::default(),
            limit,
        }
    }

    /// Everything in the log.
    #[must_use]
    pub fn all(&self) -> Vec<Request> {
        self.with(|log| log.iter().cloned().collect())
    }

    /// How many requests of the log fit.
    #[must_use]
    pub fn count(&self, fits: impl Fn(&Request) -> bool) -> usize {
        self.with(|log| log.iter().filter(|request| fits(request)).count())
    }

    /// How many requests stored or removed something.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.count(|request| request.changed)
    }

    /// Empties the log. Answers what was in it.
    #[must_use]
    pub fn take(&self) -> Vec<Request> {
        self.with(|log| log.drain(..).collect())
    }

    pub(crate) fn record(
        &self,
        at: Timestamp,
        facts: RequestFacts,
        status: Option<u16>,
        changed: bool,
    ) {
        let RequestFacts {
            verb,
            group,
            version,
            resource,
            subresource,
            namespace,
            name,
            query,
            user_agent,
            user,
        } = facts;
        self.with(|log| {
            if log.len() >= self.limit {
                log.pop_front();
            }
            log.push_back(Request {
                at,
                verb,
                group,
                version,
                resource,
                subresource,
                namespace,
                name,
                query,
                user_agent,
                user,
                status,
                changed,
            });
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<Request>) -> T) -> T {
        work(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl RequestFacts ===

impl RequestFacts {
    pub(crate) fn new(method: &Method, route: &Route, query: &Query, user_agent: &str) -> Self {
        let path = match route {
            Route::Resource(path) => path.clone(),
            Route::Version
            | Route::Health
            | Route::CoreVersions
            | Route::Groups
            | Route::Group(_)
            | Route::Resources { .. }
            | Route::Descriptions
            | Route::WholeDescription
            | Route::Description { .. }
            | Route::Debug(_)
            | Route::Unknown => crate::http::ResourcePath::default(),
        };
        let collection = path.name.is_empty();
        let verb = match method.as_str() {
            _ if path.plural.is_empty() => Verb::Other,
            "GET" | "HEAD" if !collection => Verb::Get,
            "GET" | "HEAD" if path.watch || query.flag("watch") => Verb::Watch,
            "GET" | "HEAD" => Verb::List,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" if collection => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::Other,
        };
        Self {
            verb,
            group: path.group,
            version: path.version,
            resource: path.plural,
            subresource: path.subresource.unwrap_or_default(),
            namespace: path.namespace,
            name: path.name,
            query: query.pairs().to_vec(),
            user_agent: user_agent.to_owned(),
            user: String::new(),
        }
    }

    /// What the user wants, for whoever decides about it.
    pub(crate) fn attributes<'a>(
        &'a self,
        user: &'a User,
        method: &Method,
        path: &'a str,
    ) -> Attributes<'a> {
        let verb = match self.verb {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Other => match method.as_str() {
                "GET" => "get",
                "HEAD" => "head",
                "POST" => "post",
                "PUT" => "put",
                "PATCH" => "patch",
                "DELETE" => "delete",
                "OPTIONS" => "options",
                _ => "",
            },
        };
        let path = if self.resource.is_empty() { path } else { "" };
        Attributes {
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            path,
            ..Attributes::of(user, verb)
        }
    }
}
