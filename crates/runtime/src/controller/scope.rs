//! Which objects a cache holds.

use crate::{client::Write, watcher::Origin};
use kube::core::{Expression, Selector, SelectorExt};
use std::{collections::BTreeSet, sync::Arc};

/// The objects that a cache holds: of one kind, in one place, with such labels and fields.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) group: String,
    /// The name of the kind in paths.
    pub(super) resource: Arc<str>,
    selection: Selection,
}

#[derive(Debug, Clone)]
enum Selection {
    /// Those in the namespace, if one is named, that fulfil both selectors.
    Of {
        namespace: Option<String>,
        labels: Selector,
        fields: Vec<Field>,
    },
    /// Nobody knows: somebody else fills the cache, or a selector is not one that can be told here.
    Unknown,
}

/// A part of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    of_name: bool,
    equals: bool,
    value: String,
}

// === impl Scope ===

impl Scope {
    /// What a watch delivers.
    pub(super) fn of(origin: &Origin) -> Self {
        let Origin {
            target,
            label_selector,
            field_selector,
            ..
        } = origin;
        let labels = label_selector.as_deref().unwrap_or_default();
        let fields = field_selector.as_deref().unwrap_or_default();
        let selection = match (self::labels(labels), self::fields(fields)) {
            (Some(labels), Some(fields)) => Selection::Of {
                namespace: target.namespace.clone(),
                labels,
                fields,
            },
            (None, _) | (_, None) => Selection::Unknown,
        };
        Self {
            group: target.group.clone(),
            resource: (&*target.plural).into(),
            selection,
        }
    }

    /// Objects of a kind, nobody knows which.
    pub(super) fn unknown(group: &str, resource: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.into(),
            selection: Selection::Unknown,
        }
    }

    pub(super) fn is_of_kind(&self, group: &str, resource: &str) -> bool {
        *self.resource == *resource && self.group == group
    }

    /// Whether the object that was written belongs in here. Only what is certain counts: an object
    /// that never appears would be waited for in vain.
    pub(super) fn takes(&self, write: &Write) -> bool {
        let Selection::Of {
            namespace,
            labels,
            fields,
        } = &self.selection
        else {
            return false;
        };
        namespace
            .as_deref()
            .is_none_or(|namespace| write.namespace() == Some(namespace))
            && (labels.selects_all() || labels.matches(&write.labels()))
            && fields.iter().all(|field| field.matches(write))
    }
}

// === impl Field ===

impl Field {
    fn matches(&self, write: &Write) -> bool {
        let value = if self.of_name {
            write.name()
        } else {
            write.namespace().unwrap_or_default()
        };
        (value == self.value) == self.equals
    }
}

/// The terms of a field selector; `None` if there is one of another field than name and namespace.
fn fields(selector: &str) -> Option<Vec<Field>> {
    let terms = selector.split(',').map(str::trim);
    let terms = terms.filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let (key, equals, value) = comparison(term)?;
            let of_name = match key {
                "metadata.name" => true,
                "metadata.namespace" => false,
                _ => return None,
            };
            Some(Field {
                of_name,
                equals,
                value: value.to_owned(),
            })
        })
        .collect()
}

/// The parts of `key=value`, `key==value` and `key!=value`.
fn comparison(term: &str) -> Option<(&str, bool, &str)> {
    let (key, value) = term.split_once('=')?;
    let (key, equals) = match key.strip_suffix('!') {
        Some(key) => (key, false),
        None => (key, true),
    };
    let value = value.strip_prefix('=').unwrap_or(value);
    Some((key.trim(), equals, value.trim()))
}

/// A label selector as servers read it; `None` if it is none.
fn labels(selector: &str) -> Option<Selector> {
    let mut terms = Vec::new();
    let mut rest = selector.trim();
    while !rest.is_empty() {
        // The comma within `in (a, b)` ends no term.
        let open = rest.find('(').unwrap_or(rest.len());
        let end = match rest.find(',') {
            Some(comma) if comma < open => comma,
            Some(_) | None if open == rest.len() => open,
            Some(_) | None => rest.find(')')? + 1,
        };
        let (term, after) = rest.split_at(end);
        terms.push(expression(term.trim())?);
        let after = after.trim();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    let mut selector = Selector::default();
    selector.extend(terms);
    Some(selector)
}

fn expression(term: &str) -> Option<Expression> {
    if let Some((head, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
        let values: BTreeSet<String> = values.split(',').map(|value| value.trim().into()).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        let key = key.trim().to_owned();
        return match operator {
            "in" => Some(Expression::In(key, values)),
            "notin" => Some(Expression::NotIn(key, values)),
            _ => None,
        };
    }
    if let Some((key, equals, value)) = comparison(term) {
        let (key, value) = (key.to_owned(), value.to_owned());
        return Some(if equals {
            Expression::Equal(key, value)
        } else {
            Expression::NotEqual(key, value)
        });
    }
    let (key, exists) = match term.strip_prefix('!') {
        Some(key) => (key.trim(), false),
        None => (term, true),
    };
    let is_key = !key.is_empty() && !key.contains(char::is_whitespace);
    let key = key.to_owned();
    is_key.then_some(if exists {
        Expression::Exists(key)
    } else {
        Expression::DoesNotExist(key)
    })
}

#[cfg(test)]
mod tests {
    use super::{fields, labels};
    use kube::core::SelectorExt;
    use std::collections::BTreeMap;

    /// Whether a selector takes these labels; `None` if it is not understood.
    fn takes(selector: &str, pairs: &[(&str, &str)]) -> Option<bool> {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let pairs: BTreeMap<String, String> = pairs.collect();
        Some(labels(selector)?.matches(&pairs))
    }

    #[test]
    fn label_selectors() {
        let web = [("app", "web"), ("tier", "front")];
        for (selector, expected) in [
            ("", Some(true)),
            ("app=web", Some(true)),
            ("app==web,tier=front", Some(true)),
            ("app = web , tier = back", Some(false)),
            ("app!=web", Some(false)),
            ("other!=web", Some(true)),
            ("app", Some(true)),
            ("!app", Some(false)),
            ("!other", Some(true)),
            ("tier in (front, back),app=web", Some(true)),
            ("app=web, tier notin (front,back)", Some(false)),
            ("tier in (back)", Some(false)),
            ("tier in (front) app", None),
            ("tier with (front)", None),
            ("tier in (front", None),
            ("two words", None),
        ] {
            assert_eq!(takes(selector, &web), expected, "{selector}");
        }
    }

    #[test]
    fn field_selectors() {
        assert_eq!(fields("").map(|fields| fields.len()), Some(0));
        assert_eq!(
            fields("metadata.name=a, metadata.namespace!=b").map(|fields| fields.len()),
            Some(2)
        );
        // Nobody here knows an object's other fields.
        assert_eq!(fields("metadata.name=a,status.phase=Running"), None);
        assert_eq!(fields("metadata.name"), None);
    }
}
