//! The forms of names, labels and annotations.

use serde_json::{Value, json};

use crate::resource::Resource;
use crate::status::Cause;

/// All keys and values of an object's annotations together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Kinds whose names are one label.
const LABEL_NAMES: [(&str, &str); 2] = [("", "namespaces"), ("", "services")];

/// Checks the name of a new object.
pub(super) fn name_causes(resource: &Resource, name: &str) -> Vec<Cause> {
    let mut problems: Vec<String> = Vec::new();
    let is_label = LABEL_NAMES
        .iter()
        .any(|(group, plural)| resource.is(group, plural));
    if resource.group == "rbac.authorization.k8s.io" {
        if [".", ".."].contains(&name) {
            problems.push(format!("may not be '{name}'"));
        }
        problems.extend(
            ["/", "%"]
                .iter()
                .filter(|one| name.contains(**one))
                .map(|one| format!("may not contain '{one}'")),
        );
    } else if is_label {
        if name.len() > 63 {
            problems.push("must be no more than 63 characters".to_owned());
        }
        if name.contains('.') {
            problems.push("must not contain dots".to_owned());
        } else if !is_label_text(name) {
            problems.push(LABEL.to_owned());
        }
    } else {
        if name.len() > 253 {
            problems.push("must be no more than 253 characters".to_owned());
        }
        if !is_subdomain(name) {
            problems.push(SUBDOMAIN.to_owned());
        }
    }
    let cause = |why: String| Cause::invalid("metadata.name", &json!(name), &why);
    problems.into_iter().map(cause).collect()
}

/// Checks the labels of an object.
pub(super) fn label_causes(object: &Value) -> Vec<Cause> {
    let field = "metadata.labels";
    let mut causes = Vec::new();
    for (key, value) in object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
    {
        causes.extend(key_causes(field, key, key));
        let text = value.as_str().unwrap_or_default();
        if text.len() > 63 {
            causes.push(Cause::invalid(
                field,
                value,
                "must be no more than 63 bytes",
            ));
        }
        if !text.is_empty() && !is_plain_name(text) {
            causes.push(Cause::invalid(field, value, LABEL_VALUE));
        }
    }
    causes
}

/// Checks the annotations of an object.
pub(super) fn annotation_causes(object: &Value) -> Vec<Cause> {
    let field = "metadata.annotations";
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in object["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
    {
        causes.extend(key_causes(field, &key.to_lowercase(), key));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATION_BYTES {
        causes.push(Cause::too_long(field, MAX_ANNOTATION_BYTES as u64));
    }
    causes
}

/// Checks the names of finalizers. A built-in kind takes only those that it knows or that have a
/// domain.
pub(super) fn finalizer_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let field = "metadata.finalizers";
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    let mut causes = Vec::new();
    for (index, name) in crate::object::finalizers(object).enumerate() {
        let own = key_causes(field, name, name);
        let qualified = name.contains('/') || standard.contains(&name);
        if own.is_empty() && !qualified && !resource.is_custom() {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(
                format!("{field}[{index}]"),
                &json!(name),
                why,
            ));
        }
        causes.extend(own);
    }
    let has = |wanted: &str| crate::object::finalizers(object).any(|one| one == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid(
            field,
            &object["metadata"]["finalizers"],
            why,
        ));
    }
    causes
}

/// What to warn about finalizers of a custom object.
pub(super) fn finalizer_warnings(resource: &Resource, object: &Value) -> Vec<String> {
    crate::object::finalizers(object)
        .filter(|name| resource.is_custom() && !name.contains('/'))
        .filter(|name| !["orphan", "foregroundDeletion"].contains(name))
        .map(|name| {
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid \
                 accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// Checks a qualified name: a domain in front of a slash may be missing.
fn key_causes(field: &str, key: &str, shown: &str) -> Vec<Cause> {
    let mut problems = Vec::new();
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) if !is_subdomain(prefix) => problems.push(format!("prefix part {SUBDOMAIN}")),
        Some(_) | None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_plain_name(name) {
        problems.push(QUALIFIED_NAME.to_owned());
    }
    problems
        .iter()
        .map(|why| Cause::invalid(field, &json!(shown), why))
        .collect()
}

/// What is wrong with a domain.
pub(super) fn subdomain_problem(text: &str) -> Option<&'static str> {
    (!is_subdomain(text)).then_some(SUBDOMAIN)
}

/// What is wrong with the name of a resource or a version.
pub(super) fn label_1035_problem(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    let fits = is_label_text(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    (!fits).then_some(LABEL_1035)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label_text)
}

fn is_label_text(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_plain_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next())
        && edge(text.chars().next_back())
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
}
