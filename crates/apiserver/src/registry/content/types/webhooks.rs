//! Webhooks of admission.

use serde_json::{Value, json};

use super::super::field::Field;
use super::checks::Check;
use crate::object;
use crate::registry::forms;
use crate::status::Cause;

/// In the order in which the server looks at them.
pub(super) const MEMBERS: &[(&str, &[Check])] = &[
    ("name", &[Check::Needed("")]),
    ("rules", &[]),
    ("failurePolicy", &[]),
    ("matchPolicy", &[]),
    (
        "sideEffects",
        &[
            Check::Needed("must specify one of None, NoneOnDryRun"),
            Check::OneOf(&["None", "NoneOnDryRun"]),
        ],
    ),
    (
        "timeoutSeconds",
        &[Check::Between(
            1,
            30,
            "the timeout value must be between 1 and 30 seconds",
        )],
    ),
    (
        "admissionReviewVersions",
        &[Check::NeededList("must specify one of v1, v1beta1")],
    ),
];

/// A webhook has a whole name, and a version that the server speaks.
pub(super) fn webhook(webhook: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let name = webhook["name"].as_str().unwrap_or_default();
    let place = field.member("name");
    if !name.is_empty() {
        let cause = |why| Cause::invalid(place, &json!(name), why);
        let problems = forms::subdomain(name);
        if problems.is_empty() && name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.push(Cause::invalid(place, &json!(name), why));
        }
        causes.extend(problems.into_iter().map(cause));
    }
    let mut versions = object::elements(webhook, "admissionReviewVersions").peekable();
    let known = |version: &Value| *version == "v1" || *version == "v1beta1";
    if versions.peek().is_some() && !versions.any(known) {
        let why = "must include at least one of v1, v1beta1";
        let versions = &webhook["admissionReviewVersions"];
        causes.push(Cause::invalid(
            field.member("admissionReviewVersions"),
            versions,
            why,
        ));
    }
}

/// A webhook is reached in one way.
pub(super) fn client(client: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if client["url"].is_null() == client["service"].is_null() {
        let why = "exactly one of url or service is required";
        causes.push(Cause::required(*field, why));
    }
}
