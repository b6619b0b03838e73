//! Which requests are writes, and of what.

use super::write::Verb;
use http::{Method, Request, Uri, header};

/// The target of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) verb: Verb,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) namespace: Option<String>,
    /// `None` when an object is created or a collection is deleted.
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    pub(super) field_manager: Option<String>,
}

/// Parts of an object that are connections, whose answers are streams.
const CONNECTIONS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

impl Target {
    /// What `request` writes; `None` for a read, a trial (`dryRun`), and a connection.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let method = request.method();
        if *method == Method::GET {
            return None;
        }
        let is_apply = || {
            let content_type = request.headers().get(header::CONTENT_TYPE);
            content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/apply-"))
        };
        let verb = match method.as_str() {
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" if is_apply() => Verb::Apply,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            _ => return None,
        };
        let mut target = Self::parse(request.uri(), verb)?;
        if target.field_manager.is_none() {
            // So does the server.
            let agent = request.headers().get(header::USER_AGENT);
            let agent = agent.and_then(|agent| agent.to_str().ok());
            let prefix = agent.and_then(|agent| agent.split('/').next());
            target.field_manager = prefix.map(str::to_owned);
        }
        Some(target)
    }

    fn parse(uri: &Uri, verb: Verb) -> Option<Self> {
        // A server behind a proxy may have a path of its own in front of this.
        let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
        let root = segments.find(|segment| matches!(*segment, "api" | "apis"))?;
        let group = if root == "apis" { segments.next()? } else { "" };
        let version = segments.next()?;
        let mut resource = segments.next()?;
        let (mut name, mut subresource) = (segments.next(), segments.next());
        let mut namespace = None;
        // `namespaces/a/finalize` is a part of a namespace, `namespaces/a/pods` are pods in it.
        if resource == "namespaces"
            && let Some(inner) = subresource.filter(|part| !matches!(*part, "status" | "finalize"))
        {
            (namespace, resource) = (name, inner);
            (name, subresource) = (segments.next(), segments.next());
        }
        if subresource.is_some_and(|part| CONNECTIONS.contains(&part)) {
            return None;
        }
        let mut field_manager = None;
        // No client escapes the names.
        for pair in uri.query().unwrap_or_default().split('&') {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("dryRun", _) => return None,
                ("fieldManager", value) if !value.contains(['%', '+']) => {
                    field_manager = Some(value.to_owned());
                }
                ("fieldManager", _) => field_manager = unescaped(pair),
                _ => {}
            }
        }
        let verb = match (verb, name) {
            (Verb::Delete, None) => Verb::DeleteCollection,
            (verb, _) => verb,
        };
        Some(Self {
            verb,
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            field_manager,
        })
    }
}

/// The value of a parameter.
fn unescaped(pair: &str) -> Option<String> {
    let mut parsed = form_urlencoded::parse(pair.as_bytes());
    parsed.next().map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Target, Verb};
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
            format!(
                "{} {}/{} {} in {} name {} part {} by {}",
                target.verb,
                target.group,
                target.version,
                target.resource,
                target.namespace.as_deref().unwrap_or("-"),
                target.name.as_deref().unwrap_or("-"),
                target.subresource.as_deref().unwrap_or("-"),
                target.field_manager.as_deref().unwrap_or("-"),
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
