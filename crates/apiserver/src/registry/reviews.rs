//! Questions that look like objects: they are answered and not stored. Everybody may do everything
//! here, and nobody is asked who they are.

use serde_json::{Value, json};

use crate::resource::Resource;

/// Who everybody is.
const USER: &str = "system:admin";

/// The answer to a question, which is its status. None if the resource is no question.
pub(super) fn answer(resource: &Resource) -> Option<Value> {
    let user = || json!({ "username": USER, "groups": ["system:masters", "system:authenticated"] });
    let answer = match (resource.group.as_str(), resource.plural.as_str()) {
        (
            "authorization.k8s.io",
            "localsubjectaccessreviews" | "selfsubjectaccessreviews" | "subjectaccessreviews",
        ) => json!({ "allowed": true, "reason": "everything is allowed" }),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        }),
        ("authentication.k8s.io", "selfsubjectreviews") => json!({ "userInfo": user() }),
        ("authentication.k8s.io", "tokenreviews") => {
            json!({ "authenticated": true, "user": user() })
        }
        _ => return None,
    };
    Some(answer)
}
