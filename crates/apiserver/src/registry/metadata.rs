//! The rules for metadata that hold for every kind.

use serde_json::{Value, json};

use super::{Target, WriteOptions, content, custom, names};
use crate::object;
use crate::schema::Findings;
use crate::status::{Cause, Status};

/// Members of metadata that an update cannot change: it keeps what is stored.
const KEPT_MEMBERS: [&str; 3] = ["creationTimestamp", "generation", "selfLink"];

/// Members that are kept when left out, and refused when different.
const IMMUTABLE_MEMBERS: [&str; 3] = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Drops owner references to an owner that was already named. Answers a warning if there were any.
pub(super) fn dedup_owners(body: &mut Value) -> Option<String> {
    let owners = body["metadata"]
        .get_mut("ownerReferences")?
        .as_array_mut()?;
    let mut seen: Vec<String> = Vec::new();
    let mut twice: Vec<String> = Vec::new();
    owners.retain(|owner| {
        let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
        if !seen.contains(&uid) {
            seen.push(uid);
            return true;
        }
        if !twice.contains(&uid) {
            twice.push(uid);
        }
        false
    });
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Checks a new object. Answers what to warn about.
///
/// # Errors
///
/// 422 with a cause for each rule that is broken.
pub(super) fn validate_new(
    target: &Target,
    object: &Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let resource = &target.resource;
    let mut causes = names::name_causes(resource, object);
    causes.extend(generation_cause(object));
    causes.extend(names::label_causes(object));
    causes.extend(names::annotation_causes(object));
    causes.extend(owner_causes(object));
    causes.extend(names::finalizer_causes(resource, object));
    let own = content_findings(target, object, None, options);
    causes.extend(own.causes);
    settled(target, object, causes, own.warnings)
}

/// What the rules of the kind say; `old` is the state before an update.
fn content_findings(
    target: &Target,
    object: &Value,
    old: Option<&Value>,
    options: &WriteOptions,
) -> Findings {
    match &target.resource.custom {
        Some(custom) => custom::findings(target, custom, object, old, options.vouched.as_deref()),
        None => Findings {
            causes: content::causes(target, object, old),
            warnings: Vec::new(),
        },
    }
}

/// The outcome of a check.
fn settled(
    target: &Target,
    object: &Value,
    causes: Vec<Cause>,
    warnings: Vec<String>,
) -> Result<Vec<String>, Status> {
    if causes.is_empty() {
        return Ok(warnings);
    }
    let subject = target.resource.kind_subject(object::name(object));
    Err(Status {
        warnings,
        ..Status::invalid(subject, causes)
    })
}

/// Keeps what an update cannot change.
pub(super) fn keep_server_members(new: &mut Value, old: &Value) {
    let kept = &old["metadata"];
    let metadata = object::metadata_mut(new);
    for member in KEPT_MEMBERS {
        match kept.get(member) {
            Some(value) => metadata.insert(member.to_owned(), value.clone()),
            None => metadata.remove(member),
        };
    }
    for member in IMMUTABLE_MEMBERS {
        let absent = metadata.get(member).is_none_or(Value::is_null);
        if let (true, Some(value)) = (absent, kept.get(member)) {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
}

/// Checks what an update makes of an object. Answers what to warn about.
///
/// # Errors
///
/// 422 with a cause for each rule that is broken.
pub(super) fn validate_update(
    target: &Target,
    new: &Value,
    old: &Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let resource = &target.resource;
    let update = || {
        let mut causes: Vec<Cause> = added_finalizers(new, old).into_iter().collect();
        causes.extend(immutable_causes(new, old));
        causes.extend(names::label_causes(new));
        causes.extend(names::annotation_causes(new));
        causes.extend(owner_causes(new));
        causes.extend(names::unqualified_finalizer_causes(resource, new));
        causes
    };
    // The recorded server checks the metadata of every kind and again that of the kind, a custom
    // object's in between as that of a new object, and reports everything.
    let mut causes = update();
    if resource.is_custom() {
        causes.extend(names::label_causes(new));
        causes.extend(names::annotation_causes(new));
    }
    causes.extend(update());
    // Of some kinds it then checks everything as in a new object.
    if ["configmaps", "secrets", "serviceaccounts"].contains(&resource.plural.as_str())
        && resource.group.is_empty()
    {
        causes.extend(names::label_causes(new));
        causes.extend(names::annotation_causes(new));
        causes.extend(owner_causes(new));
        causes.extend(owner_causes(new));
    }
    let own = content_findings(target, new, Some(old), options);
    causes.extend(own.causes);
    settled(target, new, causes, own.warnings)
}

fn generation_cause(object: &Value) -> Option<Cause> {
    let generation = &object["metadata"]["generation"];
    let why = "must be greater than or equal to 0";
    let is_negative = generation.as_i64().is_some_and(|number| number < 0);
    is_negative.then(|| Cause::invalid("metadata.generation", generation, why))
}

fn immutable_causes(new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for member in IMMUTABLE_MEMBERS {
        let value = &new["metadata"][member];
        if !value.is_null() && *value != old["metadata"][member] {
            let field = format!("metadata.{member}");
            causes.push(Cause::invalid(field, value, "field is immutable"));
        }
    }
    causes
}

fn added_finalizers(new: &Value, old: &Value) -> Option<Cause> {
    if !object::is_being_deleted(old) {
        return None;
    }
    let had: Vec<&str> = object::finalizers(old).collect();
    let added: Vec<&str> = object::finalizers(new)
        .filter(|one| !had.contains(one))
        .collect();
    if added.is_empty() {
        return None;
    }
    let list: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        list.join(", ")
    );
    Some(Cause::forbidden("metadata.finalizers", &why))
}

fn owner_causes(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let field = "metadata.ownerReferences";
    let owners = object::owners(object);
    for owner in owners {
        let text = |member: &str| owner[member].as_str().unwrap_or_default();
        let mut need = |member: &str, missing: bool, why: &str| {
            if missing {
                let value = json!(text(member));
                causes.push(Cause::invalid(format!("{field}.{member}"), &value, why));
            }
        };
        need(
            "apiVersion",
            !is_group_version(text("apiVersion")),
            "version must not be empty",
        );
        need("kind", text("kind").is_empty(), "must not be empty");
        need("name", text("name").is_empty(), "must not be empty");
        need("uid", text("uid").is_empty(), "must not be empty");
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid_shown(field, &in_declared_order(owner), why));
        }
    }
    let controllers: Vec<String> = owners
        .iter()
        .filter(|owner| owner["controller"] == true)
        .map(|owner| {
            let text = |member: &str| owner[member].as_str().unwrap_or_default();
            format!("{}/{}", text("kind"), text("name"))
        })
        .collect();
    if let [first, second, ..] = &controllers[..] {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        let list: Vec<String> = owners.iter().map(in_declared_order).collect();
        causes.push(Cause {
            reason: "FieldValueInvalid",
            field: field.to_owned(),
            message: format!("Invalid value: [{}]: {why}", list.join(",")),
        });
    }
    causes
}

/// Whether the text is a version, or a group and a version.
fn is_group_version(text: &str) -> bool {
    match text.split_once('/') {
        Some((_, version)) => !version.is_empty() && !version.contains('/'),
        None => !text.is_empty(),
    }
}

/// An owner reference as JSON with its members in the order of their declaration.
fn in_declared_order(owner: &Value) -> String {
    let members = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let written: Vec<String> = members
        .iter()
        .filter_map(|member| Some(format!("{member:?}:{}", owner.get(*member)?)))
        .collect();
    format!("{{{}}}", written.join(","))
}
