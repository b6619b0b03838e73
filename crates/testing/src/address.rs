//! What a request is about, as its address says.

use crate::object::ObjectId;
use http::{Method, Uri};

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) verb: &'static str,
    pub(crate) object: ObjectId,
    pub(crate) subresource: String,
    pub(crate) query: String,
    pub(crate) manager: String,
}

impl Address {
    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().trim_matches('/').split('/').peekable();
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            Some(_) | None => "",
        };
        let _version = parts.next();
        let mut namespace = "";
        let mut rest: Vec<&str> = parts.collect();
        // `namespaces/x` is the namespace itself, `namespaces/x/pods` what is in it.
        if let ["namespaces", name, resource, ..] = rest[..]
            && !["status", "finalize"].contains(&resource)
        {
            namespace = name;
            rest.drain(..2);
        }
        let plural = rest.first().copied().unwrap_or_default();
        let name = rest.get(1).copied().unwrap_or_default();
        let query = uri.query().unwrap_or_default();
        let parameter = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == wanted).map(|(_, value)| value)
        };
        let watches = parameter("watch").is_some_and(|value| value == "true" || value == "1");
        let verb = match method.as_str() {
            _ if plural.is_empty() => "other",
            "GET" if watches => "watch",
            "GET" if name.is_empty() => "list",
            "GET" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if name.is_empty() => "deletecollection",
            "DELETE" => "delete",
            _ => "other",
        };
        Self {
            verb,
            object: ObjectId::new(
                if plural.is_empty() { "" } else { group },
                plural,
                namespace,
                name,
            ),
            subresource: rest.get(2).copied().unwrap_or_default().to_owned(),
            manager: parameter("fieldManager").unwrap_or_default().into_owned(),
            query: query.to_owned(),
        }
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it reads a collection.
    pub(crate) fn is_of_collection(&self) -> bool {
        ["watch", "list"].contains(&self.verb)
    }

    /// Whether it would write.
    pub(crate) fn is_write(verb: &str) -> bool {
        !["get", "list", "watch", "other"].contains(&verb)
    }

    /// The query with these parameters in place of those that were there.
    pub(crate) fn query_with(&self, parameters: &[(&str, &str)], without: &[&str]) -> String {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        let kept = pairs.filter(|(key, _)| {
            !without.contains(&&**key) && !parameters.iter().any(|(name, _)| name == key)
        });
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept);
        query.extend_pairs(parameters);
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/namespaces/a/pods/b?x=y", "get pods a/b "),
            ("GET", "/api/v1/pods?watch=true", "watch pods "),
            ("GET", "/api/v1/pods?watch=false", "list pods "),
            (
                "POST",
                "/apis/apps/v1/namespaces/a/deployments",
                "create deployments.apps a/ ",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/status?fieldManager=x%20y",
                "patch deployments.apps a/b status",
            ),
            ("DELETE", "/api/v1/namespaces/a", "delete namespaces a "),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "update namespaces a finalize",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "deletecollection pods a/ ",
            ),
            ("GET", "/apis", "other  "),
            ("GET", "/apis/apps/v1", "other  "),
        ] {
            let address = Address::of(&method.parse().unwrap(), &uri.parse().unwrap());
            let Address {
                verb,
                object,
                subresource,
                ..
            } = &address;
            assert_eq!(format!("{verb} {object} {subresource}"), expected, "{uri}");
        }
    }

    #[test]
    fn parameters_are_replaced() {
        let uri = "/api/v1/pods?limit=500&resourceVersion=0&labelSelector=a%3Db";
        let address = Address::of(&Method::GET, &uri.parse().unwrap());
        let query = address.query_with(&[("resourceVersion", "7")], &["limit"]);
        assert_eq!(query, "labelSelector=a%3Db&resourceVersion=7");
    }
}
