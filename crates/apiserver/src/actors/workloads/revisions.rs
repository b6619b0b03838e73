//! The history of templates, for what has pods of its own: one `ControllerRevision` for each.

use serde_json::{Value, json};

use super::hash;
use super::pods::controller_reference;
use super::step::{REVISION, Step, Subject};
use crate::object;
use crate::storage::Object;

/// The label that says of which revision a pod is.
pub(super) const LABEL: &str = "controller-revision-hash";

/// The revisions of something.
#[derive(Debug)]
pub(super) struct Revisions<'a> {
    /// The oldest first.
    all: Vec<&'a Object>,
    data: Value,
}

// === impl Revisions ===

impl<'a> Revisions<'a> {
    pub(super) fn new(owner: &Value, own: &'a [Object]) -> Self {
        let mut all: Vec<&Object> = own
            .iter()
            .filter(|one| one["kind"] == "ControllerRevision")
            .collect();
        all.sort_by_key(|one| number(one));
        let mut template = owner["spec"]["template"].clone();
        template["$patch"] = json!("replace");
        Self {
            all,
            data: json!({ "spec": { "template": template } }),
        }
    }

    /// The revision of the present template, if there is one.
    pub(super) fn present(&self) -> Option<&'a Object> {
        let all = self.all.iter().rev();
        all.copied().find(|one| one["data"] == self.data)
    }

    /// What has to be written so that the present template is the newest revision.
    pub(super) fn renew(&self, owner: &Value) -> Option<Step> {
        let newest = self.all.last().map_or(0, |one| number(one));
        match self.present() {
            Some(present) if number(present) == newest => None,
            Some(present) => {
                let patch = json!({ "revision": newest + 1 });
                Some(Step::Patch(REVISION, Subject::of(present), patch))
            }
            None => {
                let hash = hash::name(&owner["spec"]["template"]);
                let mut labels = owner["spec"]["template"]["metadata"]["labels"].clone();
                if !labels.is_object() {
                    labels = json!({});
                }
                labels[LABEL] = json!(hash);
                Some(Step::Create(
                    REVISION,
                    json!({
                        "metadata": {
                            "name": format!("{}-{hash}", object::name(owner)),
                            "labels": labels,
                            "ownerReferences": [controller_reference(owner)],
                        },
                        "data": self.data,
                        "revision": newest + 1,
                    }),
                ))
            }
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<&'a Object> {
        let mut all = self.all.iter().copied();
        all.find(|one| object::name(one) == name)
    }

    /// Deletes those that nobody is going back to: not one of these, and more than are to be kept.
    pub(super) fn forget(&self, owner: &Value, live: &[&str]) -> Vec<Step> {
        let limit = owner["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(10);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let unused = self.all.iter();
        let unused: Vec<&&Object> = unused
            .filter(|one| !live.contains(&object::name(one)))
            .collect();
        let excess = unused.len().saturating_sub(limit);
        let forgotten = unused.iter().take(excess);
        forgotten
            .map(|one| Step::Delete(REVISION, Subject::of(one)))
            .collect()
    }
}

fn number(revision: &Value) -> i64 {
    revision["revision"].as_i64().unwrap_or_default()
}

/// The template that a revision keeps.
pub(super) fn template(revision: &Value) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(image: &str) -> Value {
        json!({
            "metadata": { "name": "o", "uid": "u" },
            "spec": { "revisionHistoryLimit": 1, "template": { "spec": { "image": image } } },
        })
    }

    /// Writes what is to be written.
    fn apply(owner: &Value, all: &mut Vec<Object>) -> bool {
        let (made, patched) = {
            let revisions = Revisions::new(owner, all);
            match revisions.renew(owner) {
                None => return false,
                Some(Step::Create(_, object)) => (Some(object), None),
                Some(Step::Patch(_, _, patch)) => {
                    let name = object::name(revisions.present().expect("it is patched"));
                    (None, Some((name.to_owned(), patch["revision"].clone())))
                }
                Some(step) => panic!("{step:?}"),
            }
        };
        if let Some(mut made) = made {
            made["kind"] = json!("ControllerRevision");
            all.push(Object::new(made));
        }
        if let Some((name, number)) = patched {
            for one in all.iter_mut().filter(|one| object::name(one) == name) {
                let mut value = Value::clone(one);
                value["revision"] = number.clone();
                *one = Object::new(value);
            }
        }
        true
    }

    #[test]
    fn the_present_template_is_the_newest_revision() {
        let mut all = Vec::new();
        for (image, number) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
            let owner = owner(image);
            assert!(apply(&owner, &mut all));
            assert!(!apply(&owner, &mut all));
            let revisions = Revisions::new(&owner, &all);
            let present = revisions.present().expect("it was made");
            assert_eq!(present["revision"], number);
            assert_eq!(template(present), owner["spec"]["template"]);
        }
        assert_eq!(all.len(), 3);
        let owner = owner("a");
        let revisions = Revisions::new(&owner, &all);
        let live = object::name(revisions.present().expect("it was made"));
        let oldest = all
            .iter()
            .find(|one| one["revision"] == 2)
            .expect("it was made");
        let forgotten = vec![Step::Delete(REVISION, Subject::of(oldest))];
        assert_eq!(revisions.forget(&owner, &[live]), forgotten);
    }
}
