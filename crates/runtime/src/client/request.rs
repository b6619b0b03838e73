//! Which requests are writes, and of what.

use super::texts::{Part, Texts};
use http::{HeaderValue, Method, Request, Uri, header};
use std::{fmt, ops::Range};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// A new object, or something that is made of one, as an eviction.
    Create,
    /// The whole object in another state.
    Update,
    /// A change of the object.
    Patch,
    /// The fields that the object is to have (server-side apply).
    Apply,
    /// The object away.
    Delete,
    /// All objects of a collection away.
    DeleteCollection,
}

/// Marks a request whose sender knows itself how long it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPatience;

/// The target of a write.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) verb: Verb,
    /// What the request tells: there is no name when an object is created or a collection is deleted.
    pub(super) texts: Texts,
}

/// Parts of an object that are connections, whose answers are streams.
const CONNECTIONS: [&[u8]; 4] = [b"exec", b"attach", b"portforward", b"proxy"];

/// The parameter that names a field manager.
const MANAGER: &[u8] = b"fieldManager=";

impl Target {
    /// What `request` writes; `None` for a read, a trial (`dryRun`), and a connection.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let header = |name| request.headers().get(name);
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH if is_apply(header(header::CONTENT_TYPE)) => Verb::Apply,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return None,
        };
        let mut target = Self::parse(request.uri(), verb)?;
        if target.texts.get(Part::FieldManager).is_none() {
            // So does the server.
            let agent = header(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
            if let Some(program) = agent.and_then(|agent| agent.split('/').next()) {
                target.texts.set(Part::FieldManager, program);
            }
        }
        Some(target)
    }

    fn parse(uri: &Uri, verb: Verb) -> Option<Self> {
        let text = uri.path_and_query()?.as_str();
        let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'?');
        let path = parts.next().unwrap_or_default().split(|byte| *byte == b'/');
        let mut segments = path.filter(|segment| !segment.is_empty());
        // A server behind a proxy may have a path of its own in front of this.
        let root = segments.find(|segment| matches!(*segment, b"api" | b"apis"))?;
        let group = match root {
            b"apis" => segments.next()?,
            _ => &root[..0],
        };
        let version = segments.next()?;
        let mut resource = segments.next()?;
        let (mut name, mut subresource) = (segments.next(), segments.next());
        let mut namespace = None;
        // `namespaces/a/finalize` is a part of a namespace, `namespaces/a/pods` are pods in it.
        if resource == b"namespaces"
            && let Some(inner) =
                subresource.filter(|part| !matches!(*part, b"status" | b"finalize"))
        {
            (namespace, resource) = (name, inner);
            (name, subresource) = (segments.next(), segments.next());
        }
        if subresource.is_some_and(|part| CONNECTIONS.contains(&part)) {
            return None;
        }
        let mut manager = None;
        // No client escapes the names of parameters.
        for pair in parts.next().unwrap_or_default().split(|byte| *byte == b'&') {
            if pair.starts_with(b"dryRun=") {
                return None;
            }
            if pair.starts_with(MANAGER) && pair.len() > MANAGER.len() {
                manager = Some(pair);
            }
        }
        let verb = match (verb, name) {
            (Verb::Delete, None) => Verb::DeleteCollection,
            (verb, _) => verb,
        };
        let mut texts = Texts::within(text);
        for (part, place) in [
            (Part::Group, Some(group)),
            (Part::Version, Some(version)),
            (Part::Resource, Some(resource)),
            (Part::Namespace, namespace),
            (Part::Name, name),
            (Part::Subresource, subresource),
            (
                Part::FieldManager,
                manager.map(|pair| &pair[MANAGER.len()..]),
            ),
        ] {
            if let Some(place) = place {
                texts.place(part, range_of(place, text));
            }
        }
        if let Some(pair) = manager.filter(|pair| is_escaped(pair)) {
            let mut parsed = form_urlencoded::parse(pair);
            let plain = parsed.next().map(|(_, value)| value);
            texts.set(Part::FieldManager, &plain.unwrap_or_default());
        }
        Some(Self { verb, texts })
    }
}

/// Whether the answer to a request is a stream, which may be silent: a watch, a log, a connection.
pub(super) fn is_stream<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    if query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1"))
        || request.headers().contains_key(header::UPGRADE)
    {
        return true;
    }
    let mut segments = request
        .uri()
        .path()
        .split('/')
        .filter(|part| !part.is_empty());
    let Some(root) = segments.find(|part| matches!(*part, "api" | "apis")) else {
        return false;
    };
    let skipped = if root == "apis" { 2 } else { 1 };
    let mut segments = segments.skip(skipped).peekable();
    if segments.peek() == Some(&"namespaces") {
        let _namespaces = segments.nth(1);
    }
    // The resource and the name come first.
    let subresource = segments.nth(2).unwrap_or_default();
    subresource == "log" || CONNECTIONS.contains(&subresource.as_bytes())
}

fn is_apply(content_type: Option<&HeaderValue>) -> bool {
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/apply-"))
}

fn is_escaped(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'%' | b'+'))
}

/// Where a piece of `text` is in it.
fn range_of(piece: &[u8], text: &str) -> Range<usize> {
    let start = piece.as_ptr().addr() - text.as_ptr().addr();
    start..start + piece.len()
}

// === impl Verb ===

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "delete collection",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Target, Verb};
    use http::Request;

    #[track_caller]
    fn target(method: &str, path: &str, content_type: &str) -> Option<Target> {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("content-type", content_type)
            .body(())
            .unwrap();
        Target::of(&request)
    }

    #[track_caller]
    fn check(method: &str, path: &str, expected: &str) {
        let found = target(method, path, "application/json").map_or("none".into(), |target| {
            let part = |part| target.texts.get(part).unwrap_or("-");
            format!(
                "{} {}/{} {} in {} name {} part {} by {}",
                target.verb,
                part(Part::Group),
                part(Part::Version),
                part(Part::Resource),
                part(Part::Namespace),
                part(Part::Name),
                part(Part::Subresource),
                part(Part::FieldManager),
            )
        });
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn streams_may_be_silent() {
        for (path, expected) in [
            ("/api/v1/pods?watch=true&timeoutSeconds=290", true),
            ("/api/v1/pods?&limit=1&watch=1", true),
            ("/api/v1/pods?labelSelector=watch%3Dtrue", false),
            ("/api/v1/namespaces/a/pods/log", false),
            ("/api/v1/namespaces/a/pods/b/log?follow=true", true),
            ("/api/v1/namespaces/a/pods/exec", false),
            ("/api/v1/namespaces/a/pods/b/exec?command=ls", true),
            ("/k8s/api/v1/nodes/n/proxy/metrics", true),
            ("/apis/apps/v1/namespaces/a/deployments/proxy", false),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", false),
            ("/api/v1/namespaces/log", false),
            ("/api/v1/namespaces/a/finalize", false),
            ("/version", false),
        ] {
            let request = Request::builder().uri(path).body(()).unwrap();
            assert_eq!(super::is_stream(&request), expected, "{path}");
        }
    }

    #[test]
    fn paths_name_what_is_written() {
        check(
            "POST",
            "/api/v1/namespaces/a/pods?",
            "create /v1 pods in a name - part - by -",
        );
        check(
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/web/status?fieldManager=me%2Fhere&force=true",
            "patch apps/v1 deployments in a name web part status by me/here",
        );
        check(
            "PUT",
            "/api/v1/nodes/n1?fieldManager=me=too",
            "update /v1 nodes in - name n1 part - by me=too",
        );
        check(
            "PUT",
            "//api//v1/nodes/n1/?&fieldManager=&force",
            "update /v1 nodes in - name n1 part - by -",
        );
        check(
            "DELETE",
            "/api/v1/namespaces/a",
            "delete /v1 namespaces in - name a part - by -",
        );
        check(
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update /v1 namespaces in - name a part finalize by -",
        );
        check(
            "DELETE",
            "/api/v1/namespaces/a/pods?labelSelector=x",
            "delete collection /v1 pods in a name - part - by -",
        );
        check(
            "POST",
            "/k8s/clusters/c/apis/example.com/v1/widgets",
            "create example.com/v1 widgets in - name - part - by -",
        );
    }

    #[test]
    fn reads_trials_and_connections_are_no_writes() {
        check("GET", "/api/v1/pods", "none");
        check("HEAD", "/api/v1/pods", "none");
        check("PATCH", "/api/v1/namespaces/a/pods/p?dryRun=All", "none");
        check("PUT", "/api/v1/nodes/n?pretty=?&dryRun=All&force", "none");
        check(
            "POST",
            "/api/v1/namespaces/a/pods/p/exec?command=ls",
            "none",
        );
        check("POST", "/version", "none");
    }

    #[test]
    fn an_apply_is_told_from_a_patch() {
        let verb = |content_type| {
            target("PATCH", "/api/v1/nodes/n", content_type)
                .unwrap()
                .verb
        };
        assert_eq!(verb("application/apply-patch+yaml"), Verb::Apply);
        assert_eq!(verb("application/merge-patch+json"), Verb::Patch);
    }
}
