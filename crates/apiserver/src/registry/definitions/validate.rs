//! The rules for custom resource definitions.

use serde_json::{Value, json};

use super::{checked, is_established, list_of, storage_versions};
use crate::registry::forms;
use crate::schema::{Rules, structural_problems};
use crate::status::Cause;

/// The types that a printer column can have.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// The formats that a printer column can have.
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Says that somebody approved of a definition in a group of Kubernetes itself.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// The rules that a definition breaks; `old` is its state before an update. What was wrong then is
/// let pass.
pub(in crate::registry) fn causes(definition: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = state_causes(definition);
    let Some(old) = old else { return causes };
    if !causes.is_empty() {
        let before = state_causes(old);
        causes.retain(|cause| !before.contains(cause));
    }
    let mut fixed = vec![
        ("group", "/spec/group"),
        ("names.plural", "/spec/names/plural"),
    ];
    if is_established(old) {
        fixed.extend([("scope", "/spec/scope"), ("names.kind", "/spec/names/kind")]);
    }
    for (name, path) in fixed {
        let (new, old) = (definition.pointer(path), old.pointer(path));
        if new != old {
            let value = new.unwrap_or(&Value::Null);
            causes.push(Cause::invalid(
                format!("spec.{name}"),
                value,
                "field is immutable",
            ));
        }
    }
    causes
}

fn state_causes(definition: &Value) -> Vec<Cause> {
    let spec = &definition["spec"];
    let mut causes = identity_causes(definition);
    let supported = ["Cluster", "Namespaced"];
    match spec["scope"].as_str() {
        None | Some("") => causes.push(Cause::required("spec.scope", "")),
        Some(scope) if !supported.contains(&scope) => {
            causes.push(Cause::not_supported(
                "spec.scope",
                &spec["scope"],
                &supported,
            ));
        }
        Some(_) => {}
    }
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        causes.push(Cause::invalid(
            "spec.preserveUnknownFields",
            &json!(true),
            why,
        ));
    }
    let strategy = &spec["conversion"]["strategy"];
    if strategy
        .as_str()
        .is_some_and(|name| !["None", "Webhook"].contains(&name))
    {
        let field = "spec.conversion.strategy";
        causes.push(Cause::not_supported(field, strategy, &["None", "Webhook"]));
    }
    causes.extend(versions_causes(spec));
    causes.extend(names_causes(&spec["names"]));
    causes.extend(stored_causes(definition));
    causes
}

fn identity_causes(definition: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (spec, name) = (&definition["spec"], &definition["metadata"]["name"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&spec["group"]);
    if text(name) != format!("{}.{group}", text(&spec["names"]["plural"])) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", name, why));
    }
    causes.extend(approval_cause(definition, &group));
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else if let Some(why) = forms::subdomain_form(&group) {
        causes.push(Cause::invalid("spec.group", &spec["group"], why));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        causes.push(Cause::invalid("spec.group", &spec["group"], why));
    }
    causes
}

/// A definition in a group of Kubernetes itself names who approved of it, or why nobody did.
fn approval_cause(definition: &Value, group: &str) -> Option<Cause> {
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let approval = &definition["metadata"]["annotations"][APPROVAL];
    match approval.as_str().unwrap_or_default() {
        _ if !is_protected => None,
        "" => {
            let why = format!("protected groups must have approval annotation {APPROVAL:?}, {see}");
            Some(Cause::required(field, &why))
        }
        text if text.starts_with("unapproved") => None,
        text if text.contains("://") => None,
        _ => {
            let why = format!(
                "protected groups must have approval annotation {APPROVAL:?} with either a URL or a \
                 reason starting with \"unapproved\", {see}"
            );
            Some(Cause::invalid(field, approval, &why))
        }
    }
}

fn versions_causes(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let versions = list_of(&spec["versions"]);
    if versions.is_empty() {
        let why = "must have exactly one version marked as storage version";
        return vec![versions_cause(versions, why)];
    }
    let first = &versions[0];
    for (index, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{index}]");
        if let Some(why) = name_problem(&version["name"]) {
            causes.push(Cause::invalid(
                format!("{place}.name"),
                &version["name"],
                why,
            ));
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            let field = format!("{place}.schema.openAPIV3Schema");
            causes.push(Cause::required(field, ""));
        } else if let Some(place) = schema_place(versions, index) {
            causes.extend(schema_causes(schema, &place, has_status(versions)));
        }
        causes.extend(shown_causes(version, &place));
        let columns = "additionalPrinterColumns";
        if versions.iter().any(|one| one[columns] != first[columns]) {
            causes.extend(column_causes(version, &place));
        } else if index == 0 {
            causes.extend(column_causes(version, "spec"));
        }
    }
    if let Some(why) = name_problem(&first["name"]) {
        causes.push(Cause::invalid("spec.version", &first["name"], why));
    }
    let mut seen = Vec::new();
    for version in versions {
        if seen.contains(&&version["name"]) {
            causes.push(versions_cause(
                versions,
                "must contain unique version names",
            ));
            break;
        }
        seen.push(&version["name"]);
    }
    if storage_versions(spec).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(versions_cause(versions, why));
    }
    causes
}

/// A cause that shows all versions, their members as the server declares them.
fn versions_cause(versions: &[Value], why: &str) -> Cause {
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            let flag = |member: &str| version[member] == true;
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
                 \"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\
                 \"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                version["name"],
                flag("served"),
                flag("storage"),
                flag("deprecated"),
                version["deprecationWarning"],
            )
        })
        .collect();
    Cause {
        reason: "FieldValueInvalid",
        field: "spec.versions".to_owned(),
        message: format!("Invalid value: [{}]: {why}", shown.join(",")),
    }
}

/// Where the schema of a version is said to stand. Nothing if it was looked at with the first: what all
/// versions have in common is told once.
fn schema_place(versions: &[Value], index: usize) -> Option<String> {
    let first = versions.first()?;
    let common = versions
        .iter()
        .all(|version| version["schema"] == first["schema"]);
    match (common, index) {
        (false, _) => Some(format!("spec.versions[{index}].schema.openAPIV3Schema")),
        (true, 0) => Some("spec.validation.openAPIV3Schema".to_owned()),
        (true, _) => None,
    }
}

/// Looks through the schemas of all versions, so that it is known later what is wrong with them.
pub(super) fn look_through(versions: &[Value]) {
    for (index, version) in versions.iter().enumerate() {
        let schema = &version["schema"]["openAPIV3Schema"];
        if let Some(place) = schema_place(versions, index)
            && schema.is_object()
        {
            schema_causes(schema, &place, has_status(versions));
        }
    }
}

/// Whether the status is a subresource. A server looks at what all versions have in common.
fn has_status(versions: &[Value]) -> bool {
    let mut all = versions.iter().map(|version| &version["subresources"]);
    let first = all.next().unwrap_or(&Value::Null);
    !first["status"].is_null() && all.all(|other| other == first)
}

fn schema_causes(schema: &Value, place: &str, has_status: bool) -> Vec<Cause> {
    checked::causes(schema, place, has_status, find_schema_causes)
}

fn find_schema_causes(schema: &Value, place: &str, has_status: bool) -> Vec<Cause> {
    let causes = structural_problems(schema, place, has_status);
    if !causes.is_empty() {
        return causes;
    }
    let mut causes = Vec::new();
    rules_of_defaults(schema, place, &mut causes);
    if causes.is_empty() {
        causes = Rules::problems(schema, place);
    }
    causes
}

/// A default keeps the rules of its schema.
fn rules_of_defaults(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let default = schema.get("default").filter(|default| !default.is_null());
    if let Some(default) = default {
        let field = format!("{place}.default");
        let broken = Rules::check_default(schema, default);
        causes.extend(broken.into_iter().map(|cause| {
            let within = match cause.field.as_str() {
                "<nil>" => String::new(),
                part if part.starts_with('[') => part.to_owned(),
                part => format!(".{part}"),
            };
            let field = format!("{field}{within}");
            Cause { field, ..cause }
        }));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        rules_of_defaults(property, &format!("{place}.properties[{name}]"), causes);
    }
    for (keyword, inner) in [
        ("items", &schema["items"]),
        ("additionalProperties", &schema["additionalProperties"]),
    ] {
        if inner.is_object() {
            rules_of_defaults(inner, &format!("{place}.{keyword}"), causes);
        }
    }
}

/// Checks what a version says beside its schema.
fn shown_causes(version: &Value, place: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let warning = &version["deprecationWarning"];
    if !warning.is_null() && version["deprecated"] != true {
        let field = format!("{place}.deprecationWarning");
        let why = "can only be set for deprecated versions";
        causes.push(Cause::invalid(field, warning, why));
    }
    let scale = &version["subresources"]["scale"];
    if scale.is_object() {
        for (member, root) in [
            ("specReplicasPath", ".spec."),
            ("statusReplicasPath", ".status."),
        ] {
            let field = format!("{place}.subresources.scale.{member}");
            match scale[member].as_str() {
                None | Some("") => causes.push(Cause::required(field, "")),
                Some(path) if !path.starts_with(root) => {
                    let why = format!("should be a json path under {root}");
                    causes.push(Cause::invalid(field, &scale[member], &why));
                }
                Some(_) => {}
            }
        }
    }
    causes
}

fn column_causes(version: &Value, place: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let columns = list_of(&version["additionalPrinterColumns"]);
    for (index, column) in columns.iter().enumerate() {
        let place = format!("{place}.additionalPrinterColumns[{index}]");
        let text = |member: &str| column[member].as_str().unwrap_or_default();
        if text("name").is_empty() {
            causes.push(Cause::required(format!("{place}.name"), ""));
        }
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        if text("type").is_empty() {
            let why = one_of(&COLUMN_TYPES);
            causes.push(Cause::required(format!("{place}.type"), &why));
        } else if !COLUMN_TYPES.contains(&text("type")) {
            let field = format!("{place}.type");
            causes.push(Cause::invalid(
                field,
                &column["type"],
                &one_of(&COLUMN_TYPES),
            ));
        }
        if !text("format").is_empty() && !COLUMN_FORMATS.contains(&text("format")) {
            let field = format!("{place}.format");
            let why = one_of(&COLUMN_FORMATS);
            causes.push(Cause::invalid(field, &column["format"], &why));
        }
        let field = format!("{place}.JSONPath");
        if text("jsonPath").is_empty() {
            causes.push(Cause::required(field, ""));
        } else if !text("jsonPath").starts_with('.') {
            let why = "must be a simple json path starting with .";
            causes.push(Cause::invalid(field, &column["jsonPath"], why));
        }
    }
    causes
}

fn names_causes(names: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for member in ["plural", "singular", "kind", "listKind"] {
        let field = format!("spec.names.{member}");
        let name = &names[member];
        // Kinds may have upper case.
        let is_kind = ["kind", "listKind"].contains(&member);
        let checked = name.as_str().unwrap_or_default();
        let checked = if is_kind {
            checked.to_lowercase()
        } else {
            checked.to_owned()
        };
        if checked.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if let Some(why) = name_problem(&json!(checked)) {
            let mixed = "may have mixed case, but should otherwise match: ";
            let why = format!("{}{why}", if is_kind { mixed } else { "" });
            causes.push(Cause::invalid(field, name, &why));
        }
    }
    for member in ["shortNames", "categories"] {
        for (index, name) in list_of(&names[member]).iter().enumerate() {
            if let Some(why) = name_problem(name) {
                let field = format!("spec.names.{member}[{index}]");
                causes.push(Cause::invalid(field, name, why));
            }
        }
    }
    if names["kind"].is_string() && names["kind"] == names["listKind"] {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid(
            "spec.names.listKind",
            &names["listKind"],
            why,
        ));
    }
    causes
}

fn name_problem(name: &Value) -> Option<&'static str> {
    forms::label_1035(name.as_str().unwrap_or_default())
}

/// The versions in which objects may be stored must be there to read them.
fn stored_causes(definition: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let field = "status.storedVersions";
    let stored = &definition["status"]["storedVersions"];
    let names = list_of(stored);
    if names.is_empty() {
        let why = "must have at least one stored version";
        return vec![Cause::invalid(field, &Value::Null, why)];
    }
    let spec = &definition["spec"];
    for (index, name) in names.iter().enumerate() {
        let known = list_of(&spec["versions"])
            .iter()
            .any(|version| version["name"] == *name);
        if !known {
            let shown = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {shown} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {shown} and removes {shown} from status.storedVersions"
            );
            causes.push(Cause::invalid(format!("{field}[{index}]"), name, &why));
        }
    }
    if let Some(current) = storage_versions(spec).last()
        && !names.contains(current)
    {
        let shown = current.as_str().unwrap_or_default();
        let why = format!("must have the storage version {shown}");
        causes.push(Cause::invalid(field, stored, &why));
    }
    causes
}
