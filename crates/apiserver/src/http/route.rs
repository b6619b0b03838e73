/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Version,
    Health,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Resources {
        group: String,
        version: String,
    },
    Resource(ResourcePath),
    /// `/openapi/v2`
    WholeDescription,
    /// `/openapi/v3`
    Descriptions,
    /// `/openapi/v3/api/<version>`, `/openapi/v3/apis/<group>/<version>`
    Description {
        group: String,
        version: String,
    },
    /// `/debug/<action>`
    Debug(String),
    Unknown,
}

/// The path of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty for no namespace, and for all of them.
    pub(crate) namespace: String,
    pub(crate) plural: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<String>,
    /// The old form of a watch: `/api/v1/watch/pods`.
    pub(crate) watch: bool,
    /// There is more behind the subresource.
    pub(crate) too_long: bool,
}

/// Subresources of namespaces, which look like resources in a namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

// === impl Route ===

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let decoded: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(percent_decode)
            .collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["version"] => Self::Version,
            ["healthz" | "readyz" | "livez", ..] => Self::Health,
            ["openapi", "v2"] => Self::WholeDescription,
            ["openapi", "v3"] => Self::Descriptions,
            ["openapi", "v3", "api", version] => Self::Description {
                group: String::new(),
                version: (*version).to_owned(),
            },
            ["openapi", "v3", "apis", group, version] => Self::Description {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            },
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Resources {
                group: String::new(),
                version: (*version).to_owned(),
            },
            ["apis", group, version] => Self::Resources {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            },
            ["api", version, rest @ ..] => Self::Resource(ResourcePath::parse("", version, rest)),
            ["apis", group, version, rest @ ..] => {
                Self::Resource(ResourcePath::parse(group, version, rest))
            }
            ["debug", action] => Self::Debug((*action).to_owned()),
            _ => Self::Unknown,
        }
    }
}

// === impl ResourcePath ===

impl ResourcePath {
    fn parse(group: &str, version: &str, mut rest: &[&str]) -> Self {
        let mut path = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            ..Self::default()
        };
        if let ["watch", after @ ..] = rest
            && !after.is_empty()
        {
            path.watch = true;
            rest = after;
        }
        if let ["namespaces", namespace, after @ ..] = rest
            && after
                .first()
                .is_some_and(|next| !NAMESPACE_SUBRESOURCES.contains(next))
        {
            (*namespace).clone_into(&mut path.namespace);
            rest = after;
        }
        let mut parts = rest.iter().map(|part| (*part).to_owned());
        path.plural = parts.next().unwrap_or_default();
        path.name = parts.next().unwrap_or_default();
        path.subresource = parts.next();
        path.too_long = parts.next().is_some();
        path
    }
}

/// Replaces `%xx`. What is not valid stays as it is.
fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: [&str; 6]) {
        let Route::Resource(path) = Route::parse(path) else {
            panic!("not a resource: {path}")
        };
        let subresource = path.subresource.clone().unwrap_or_default();
        let found = [
            &path.group,
            &path.version,
            &path.namespace,
            &path.plural,
            &path.name,
            &subresource,
        ];
        assert_eq!(found.map(String::as_str), expected);
    }

    #[test]
    fn paths_of_resources() {
        check("/api/v1/pods", ["", "v1", "", "pods", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check(
            "/api/v1/namespaces/a",
            ["", "v1", "", "namespaces", "a", ""],
        );
        check(
            "/api/v1/namespaces/a/finalize",
            ["", "v1", "", "namespaces", "a", "finalize"],
        );
        check(
            "/api/v1/namespaces/a/pods/b/log",
            ["", "v1", "a", "pods", "b", "log"],
        );
        check(
            "/apis/apps/v1/namespaces/a/deployments/b",
            ["apps", "v1", "a", "deployments", "b", ""],
        );
        check(
            "/apis/x.io/v1/planets/a%2Fb",
            ["x.io", "v1", "", "planets", "a/b", ""],
        );
    }
}
