//! Tokens of service accounts. Where roles decide they are signed, and good until they expire or what they are for is
//! gone. Elsewhere nobody checks them, so they are made up; they have the form of real ones.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::access::{Requester, User};
use crate::base64::encode_url;
use crate::environment::seconds;
use crate::object;
use crate::registry::{Registry, Reply, Target};
use crate::status::{Cause, Status, Subject};
use crate::storage::Object;

/// How long a token is good for, if nobody says.
const DEFAULT_SECONDS: i64 = 3600;

const MIN_SECONDS: i64 = 600;

const MAX_SECONDS: i64 = 1 << 32;

/// Who issues tokens, and who they are for if nobody says.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// What a token can be bound to: the kind and its plural.
const BOUND_TO: [(&str, &str); 3] = [("Pod", "pods"), ("Secret", "secrets"), ("Node", "nodes")];

impl Registry {
    /// Makes a token for a service account.
    pub(super) fn issue_token(
        &mut self,
        target: &Target,
        mut request: Value,
        requester: &Requester,
    ) -> Result<Reply, Status> {
        let account = self.stored(&target.main())?;
        let spec = object::member_mut(&mut request, "spec");
        spec.entry("expirationSeconds")
            .or_insert(json!(DEFAULT_SECONDS));
        spec.entry("audiences").or_insert_with(|| json!([ISSUER]));
        spec.entry("boundObjectRef").or_insert(Value::Null);
        let wanted = &request["spec"]["expirationSeconds"];
        if let Some(cause) = expiration_cause(wanted) {
            let subject = Subject {
                group: "authentication.k8s.io",
                kind: "TokenRequest",
                name: &target.name,
            };
            return Err(Status::invalid(subject, vec![cause]));
        }
        self.check_bound(target, &request["spec"]["boundObjectRef"])?;
        let now = self.timestamp();
        let lifetime = SignedDuration::from_secs(wanted.as_i64().unwrap_or(DEFAULT_SECONDS));
        let end = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let id = self.entropy.uid().to_string();
        let claims = self.claims(&account, &request["spec"], (now, end), &id);
        let token = requester.sign(&claims).unwrap_or_else(|| unsigned(&claims));
        let metadata = object::metadata_mut(&mut request);
        for (member, value) in [
            ("name", &target.name),
            ("namespace", &target.namespace),
            ("creationTimestamp", &seconds(now)),
        ] {
            metadata.insert(member.to_owned(), json!(value));
        }
        request["status"] = json!({ "token": token, "expirationTimestamp": seconds(end) });
        Ok(Reply {
            code: 201,
            body: Object::new(request),
            warnings: Vec::new(),
        })
    }

    /// What a token says of a service account.
    fn claims(
        &self,
        account: &Value,
        spec: &Value,
        (from, to): (Timestamp, Timestamp),
        id: &str,
    ) -> Value {
        let (namespace, name) = (object::namespace(account), object::name(account));
        let mut about = json!({
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": object::uid(account) },
        });
        let bound = &spec["boundObjectRef"];
        if let Some(target) = self.bound_to(bound, namespace)
            && let Ok(found) = self.stored(&target)
        {
            let kind = bound["kind"].as_str().unwrap_or_default();
            about[kind.to_ascii_lowercase()] =
                json!({ "name": object::name(&found), "uid": object::uid(&found) });
        }
        json!({
            "aud": spec["audiences"],
            "exp": to.as_second(),
            "iat": from.as_second(),
            "iss": ISSUER,
            "jti": id,
            "kubernetes.io": about,
            "nbf": from.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        })
    }

    /// Whose the claims of a token are. Nobody's if the token has expired or is for somebody else than this server, or
    /// if the account or what the token is bound to is gone.
    pub(crate) fn account_of(&self, claims: &Value) -> Option<User> {
        let expires = claims["exp"].as_i64()?;
        let is_for_us = object::elements(claims, "aud").any(|audience| audience == ISSUER);
        if expires <= self.timestamp().as_second() || !is_for_us {
            return None;
        }
        let about = &claims["kubernetes.io"];
        let namespace = about["namespace"].as_str()?;
        let is_there = |plural: &str, namespace: &str, named: &Value| {
            let name = named["name"].as_str()?;
            let found = self.target("", "v1", plural, namespace, name)?;
            let found = self.stored(&found).ok()?;
            (named["uid"] == object::uid(&found)).then_some(())
        };
        let account = &about["serviceaccount"];
        is_there("serviceaccounts", namespace, account)?;
        for (kind, plural) in BOUND_TO {
            let bound = &about[kind.to_ascii_lowercase()];
            if !bound.is_null() {
                is_there(plural, namespace_of(kind, namespace), bound)?;
            }
        }
        Some(User::service_account(namespace, account["name"].as_str()?))
    }

    /// A token for a service account, good for an hour. None if there is no such account.
    pub(crate) fn token_of(
        &mut self,
        namespace: &str,
        name: &str,
        requester: &Requester,
    ) -> Option<String> {
        let target = self.target("", "v1", "serviceaccounts", namespace, name)?;
        let reply = self.issue_token(&target, json!({}), requester).ok()?;
        reply.body["status"]["token"].as_str().map(str::to_owned)
    }

    /// Where the object is that a token is to be bound to.
    fn bound_to(&self, bound: &Value, namespace: &str) -> Option<Target> {
        let text = |member: &str| bound[member].as_str().unwrap_or_default();
        let (kind, plural) = BOUND_TO.iter().find(|(kind, _)| *kind == text("kind"))?;
        let namespace = namespace_of(kind, namespace);
        self.target("", "v1", plural, namespace, text("name"))
    }

    /// What a token is bound to must be there.
    fn check_bound(&self, target: &Target, bound: &Value) -> Result<(), Status> {
        let text = |member: &str| bound[member].as_str().unwrap_or_default();
        let Some(bound_to) = self.bound_to(bound, &target.namespace) else {
            return if bound.is_null() {
                Ok(())
            } else {
                let kind = text("kind");
                Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to object of type {kind:?}",
                    target.name
                )))
            };
        };
        let bound_to = self.stored(&bound_to)?;
        let found = object::uid(&bound_to);
        let uid = text("uid");
        if uid.is_empty() || uid == found {
            return Ok(());
        }
        let subject = Subject {
            group: "",
            kind: text("kind"),
            name: text("name"),
        };
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        Err(Status::conflict(subject, &why))
    }
}

/// Where objects of a kind are that belong to an account of this namespace.
fn namespace_of<'a>(kind: &str, namespace: &'a str) -> &'a str {
    if kind == "Node" { "" } else { namespace }
}

fn expiration_cause(wanted: &Value) -> Option<Cause> {
    let why = match wanted.as_i64()? {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return None,
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Some(Cause::invalid("spec.expirationSeconds", wanted, why))
}

/// A JSON web token that nobody signed.
fn unsigned(claims: &Value) -> String {
    let header = json!({ "alg": "RS256", "kid": "made-up" });
    let part = |value: &Value| encode_url(value.to_string().as_bytes());
    let id = claims["jti"].as_str().unwrap_or_default();
    format!(
        "{}.{}.{}",
        part(&header),
        part(claims),
        encode_url(id.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base64::decode_url;

    #[test]
    fn how_long_a_token_may_be_good_for() {
        for (seconds, allowed) in [
            (599, false),
            (600, true),
            (MAX_SECONDS, true),
            (MAX_SECONDS + 1, false),
        ] {
            assert_eq!(
                expiration_cause(&json!(seconds)).is_none(),
                allowed,
                "{seconds}"
            );
        }
    }

    #[test]
    fn a_token_says_for_whom_it_is() {
        let token = unsigned(&json!({ "sub": "system:serviceaccount:n:a", "jti": "id" }));
        let parts: Vec<&str> = token.split('.').collect();
        assert_eq!(parts.len(), 3);
        let claims = decode_url(parts[1]).expect("it was encoded just now");
        let claims: Value = serde_json::from_slice(&claims).expect("it was encoded just now");
        assert_eq!(claims["sub"], "system:serviceaccount:n:a");
    }
}
