//! Which requests are writes, and of what.

use super::{
    texts::{Part, Texts},
    write::Verb,
};
use http::{Method, Request, Uri, header};
use memchr::memchr;
use std::ops::Range;

/// The target of a write.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) verb: Verb,
    /// What the request tells: there is no name when an object is created or a collection is deleted.
    pub(super) texts: Texts,
}

/// Parts of an object that are connections, whose answers are streams.
const CONNECTIONS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// How many bytes an answer usually has to tell of its object.
const USUAL_ANSWER: usize = 128;

impl Target {
    /// What `request` writes; `None` for a read, a trial (`dryRun`), and a connection.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let header = |name| request.headers().get(name);
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => {
                let content_type = header(header::CONTENT_TYPE);
                let is_apply = |value: &[u8]| value.starts_with(b"application/apply-");
                match content_type.is_some_and(|value| is_apply(value.as_bytes())) {
                    true => Verb::Apply,
                    false => Verb::Patch,
                }
            }
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
        let path = 0..uri.path().len();
        let mut segments = pieces(text, path.clone(), b'/').filter(|segment| !segment.is_empty());
        // A server behind a proxy may have a path of its own in front of this.
        let root = segments.find(|segment| matches!(&text[segment.clone()], "api" | "apis"))?;
        let group = match &text[root.clone()] {
            "apis" => segments.next()?,
            _ => root.end..root.end,
        };
        let version = segments.next()?;
        let mut resource = segments.next()?;
        let (mut name, mut subresource) = (segments.next(), segments.next());
        let mut namespace = None;
        // `namespaces/a/finalize` is a part of a namespace, `namespaces/a/pods` are pods in it.
        if &text[resource.clone()] == "namespaces"
            && let Some(inner) = &subresource
            && !matches!(&text[inner.clone()], "status" | "finalize")
        {
            (namespace, resource) = (name, inner.clone());
            (name, subresource) = (segments.next(), segments.next());
        }
        if let Some(part) = &subresource
            && CONNECTIONS.contains(&&text[part.clone()])
        {
            return None;
        }
        let verb = match (verb, &name) {
            (Verb::Delete, None) => Verb::DeleteCollection,
            (verb, _) => verb,
        };
        let mut texts = Texts::within(text, USUAL_ANSWER);
        let query = path.end + 1..text.len();
        for pair in pieces(text, query, b'&') {
            let equals = memchr(b'=', &text.as_bytes()[pair.clone()]);
            let end = equals.map_or(pair.end, |at| pair.start + at);
            match &text[pair.start..end] {
                "dryRun" => return None,
                // No client escapes the names of parameters.
                "fieldManager" => take_manager(&mut texts, text, pair, end),
                _ => {}
            }
        }
        for (part, range) in [
            (Part::Group, Some(group)),
            (Part::Version, Some(version)),
            (Part::Resource, Some(resource)),
            (Part::Namespace, namespace),
            (Part::Name, name),
            (Part::Subresource, subresource),
        ] {
            if let Some(range) = range {
                texts.place(part, range);
            }
        }
        Some(Self { verb, texts })
    }
}

/// Takes in the value of `fieldManager`, a parameter whose name ends at `equals`.
fn take_manager(texts: &mut Texts, text: &str, pair: Range<usize>, equals: usize) {
    let value = pair.end.min(equals + 1)..pair.end;
    if text[value.clone()].contains(['%', '+']) {
        let mut parsed = form_urlencoded::parse(text[pair].as_bytes());
        let plain = parsed.next().map(|(_, value)| value);
        texts.set(Part::FieldManager, &plain.unwrap_or_default());
    } else {
        texts.place(Part::FieldManager, value);
    }
}

/// Where the pieces are that `text` has in `range`, between separators.
fn pieces(
    text: &str,
    range: Range<usize>,
    separator: u8,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(start..range.end)?;
        let end = memchr(separator, rest).map_or(range.end, |at| start + at);
        let piece = start..end;
        start = end + 1;
        Some(piece)
    })
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
