use serde_json::{Value, json};

use super::Row;

pub(super) fn disruption_budget(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Min Available" => Some(row.scalar_or("spec.minAvailable", "N/A")),
        "Max Unavailable" => Some(row.scalar_or("spec.maxUnavailable", "N/A")),
        "Allowed Disruptions" => Some(json!(row.count("status.disruptionsAllowed"))),
        _ => None,
    }
}

/// Bindings of roles.
pub(super) fn binding(column: &str, row: Row<'_>) -> Option<Value> {
    let subjects = |kind: &str| {
        let all = row.list("subjects").iter();
        let names: Vec<String> = all
            .filter(|subject| subject["kind"] == kind)
            .map(|subject| {
                let text = |member: &str| subject[member].as_str().unwrap_or_default();
                if kind == "ServiceAccount" {
                    format!("{}/{}", text("namespace"), text("name"))
                } else {
                    text("name").to_owned()
                }
            })
            .collect();
        json!(names.join(", "))
    };
    let cell = match column {
        "Role" => json!(format!(
            "{}/{}",
            row.text("roleRef.kind"),
            row.text("roleRef.name")
        )),
        "Users" => subjects("User"),
        "Groups" => subjects("Group"),
        "ServiceAccounts" => subjects("ServiceAccount"),
        _ => return None,
    };
    Some(cell)
}

pub(super) fn priority_class(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Value" => Some(json!(row.count("value"))),
        "Global-Default" => Some(json!(row.at("globalDefault") == true)),
        "PreemptionPolicy" => Some(row.text_or("preemptionPolicy", "PreemptLowerPriority")),
        _ => None,
    }
}

/// The kinds of `admissionregistration.k8s.io`, whose columns do not collide.
pub(super) fn admission(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Webhooks" => json!(row.list("webhooks").len()),
        "Validations" => json!(row.list("spec.validations").len()),
        "Mutations" => json!(row.list("spec.mutations").len()),
        "ParamKind" => {
            let kind = row.at("spec.paramKind");
            let text = |member: &str| kind[member].as_str().unwrap_or_default();
            json!(if kind.is_null() {
                "<unset>".to_owned()
            } else {
                format!("{}/{}", text("apiVersion"), text("kind"))
            })
        }
        "PolicyName" => row.text_or("spec.policyName", ""),
        "ParamRef" => {
            let reference = row.at("spec.paramRef");
            let text = |member: &str| reference[member].as_str().unwrap_or_default();
            json!(match (text("namespace"), text("name")) {
                _ if reference.is_null() => "<unset>".to_owned(),
                (_, "") => "<selector>".to_owned(),
                ("", name) => name.to_owned(),
                (namespace, name) => format!("{namespace}/{name}"),
            })
        }
        _ => return None,
    };
    Some(cell)
}

pub(super) fn api_service(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Service" if row.at("spec.service").is_null() => Some(json!("Local")),
        "Service" => Some(json!(format!(
            "{}/{}",
            row.text("spec.service.namespace"),
            row.text("spec.service.name")
        ))),
        "Available" => Some(match row.condition("Available") {
            "" => json!("Unknown"),
            status => json!(status),
        }),
        _ => None,
    }
}
