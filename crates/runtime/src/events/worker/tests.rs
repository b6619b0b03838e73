use super::{is_terminating, outcome};
use homeostat_core::series::Outcome;
use kube::core::{Status, response::StatusDetails};
use serde_json::json;
use std::time::Duration;

#[test]
fn answers() {
    let failed = Outcome::Failed { retry_after: None };
    for (known, code, expected) in [
        (false, 409, Outcome::Exists),
        (true, 404, Outcome::Gone),
        // There is no such namespace.
        (false, 404, Outcome::Refused),
        (true, 409, failed),
        (false, 400, Outcome::Refused),
        (false, 401, Outcome::Refused),
        (true, 403, Outcome::Refused),
        (true, 422, Outcome::Refused),
        (false, 408, failed),
        (false, 429, failed),
        (true, 500, failed),
        (true, 504, failed),
    ] {
        let status = Status::default().with_code(code);
        assert_eq!(outcome(known, &status), expected, "{known} {code}");
    }
}

fn details(details: serde_json::Value) -> Status {
    let details: StatusDetails = serde_json::from_value(details).unwrap();
    Status::default().with_code(429).with_details(details)
}

#[test]
fn a_server_says_when_to_come_back() {
    let status = details(json!({ "retryAfterSeconds": 7 }));
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(outcome(false, &status), Outcome::Failed { retry_after });
}

#[test]
fn a_namespace_that_is_being_deleted_shows_in_the_causes() {
    let causes = json!([{ "reason": "NamespaceTerminating", "field": "metadata.namespace" }]);
    assert!(is_terminating(&details(json!({ "causes": causes }))));
    assert!(!is_terminating(&details(json!({ "causes": [] }))));
    assert!(!is_terminating(&Status::default()));
}
