//! Tokens of service accounts. Nobody checks them here, so they are made up; they have the form of
//! real ones.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

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
    /// Makes up a token for a service account.
    pub(super) fn issue_token(
        &mut self,
        target: &Target,
        mut request: Value,
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
        let token = token(&account, &request["spec"], (now, end), &id);
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

    /// What a token is bound to must be there.
    fn check_bound(&self, target: &Target, bound: &Value) -> Result<(), Status> {
        let text = |member: &str| bound[member].as_str().unwrap_or_default();
        let Some((kind, plural)) = BOUND_TO.iter().find(|(kind, _)| *kind == text("kind")) else {
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
        let namespace = if *kind == "Node" {
            ""
        } else {
            &target.namespace
        };
        let Some(bound_to) = self.target("", "v1", plural, namespace, text("name")) else {
            return Ok(());
        };
        let bound_to = self.stored(&bound_to)?;
        let found = object::uid(&bound_to);
        let uid = text("uid");
        if uid.is_empty() || uid == found {
            return Ok(());
        }
        let subject = Subject {
            group: "",
            kind,
            name: text("name"),
        };
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        Err(Status::conflict(subject, &why))
    }
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
fn token(account: &Value, spec: &Value, (from, to): (Timestamp, Timestamp), id: &str) -> String {
    let (namespace, name) = (object::namespace(account), object::name(account));
    let header = json!({ "alg": "RS256", "kid": "made-up" });
    let claims = json!({
        "aud": spec["audiences"],
        "exp": to.as_second(),
        "iat": from.as_second(),
        "iss": ISSUER,
        "jti": id,
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": object::uid(account) },
        },
        "nbf": from.as_second(),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    });
    let part = |value: &Value| encode_url(value.to_string().as_bytes());
    format!(
        "{}.{}.{}",
        part(&header),
        part(&claims),
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
        let account = json!({ "metadata": { "name": "a", "namespace": "n", "uid": "u" } });
        let spec = json!({ "audiences": ["x"] });
        let times = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
        let token = token(&account, &spec, times, "id");
        let parts: Vec<&str> = token.split('.').collect();
        assert_eq!(parts.len(), 3);
        let claims = decode_url(parts[1]).expect("it was encoded just now");
        let claims: Value = serde_json::from_slice(&claims).expect("it was encoded just now");
        assert_eq!(claims["sub"], "system:serviceaccount:n:a");
        assert_eq!(claims["aud"], json!(["x"]));
    }
}
