//! Which of the names that a definition asks for are free.

use serde_json::{Value, json};

use super::list_of;

/// The names that a definition may have, and why not all that it asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Accepted {
    pub(super) names: Value,
    /// A reason and a message.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// Holds the names of a definition against those that others of its group have accepted.
pub(super) fn accept(definition: &Value, others: &[&Value]) -> Accepted {
    let asked = &definition["spec"]["names"];
    let mut names = definition["status"]["acceptedNames"].clone();
    let taken = |members: &[&str], name: &Value| {
        others.iter().any(|other| {
            let accepted = &other["status"]["acceptedNames"];
            let held = members.iter().any(|member| accepted[*member] == *name);
            let short =
                members.contains(&"plural") && list_of(&accepted["shortNames"]).contains(name);
            held || short
        })
    };
    let mut conflict = None;
    for (member, reason, members) in [
        ("plural", "PluralConflict", ["plural", "singular"]),
        ("singular", "SingularConflict", ["plural", "singular"]),
        ("shortNames", "ShortNamesConflict", ["plural", "singular"]),
        ("kind", "KindConflict", ["kind", "listKind"]),
        ("listKind", "ListKindConflict", ["kind", "listKind"]),
    ] {
        let name = &asked[member];
        let one = std::slice::from_ref(name);
        let wanted = name.as_array().map_or(one, Vec::as_slice).iter();
        let mut wanted = wanted.filter(|name| !name.is_null());
        if let Some(name) = wanted.find(|name| taken(&members, name)) {
            conflict = Some((reason, format!("{name} is already in use")));
        } else if !name.is_null() {
            names[member] = name.clone();
        } else if let Some(names) = names.as_object_mut() {
            names.remove(member);
        }
    }
    if conflict.is_none() {
        names = asked.clone();
    } else if names["kind"].is_null() {
        names["kind"] = json!("");
    }
    Accepted { names, conflict }
}
