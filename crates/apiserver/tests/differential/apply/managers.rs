//! Who owns what.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Field, Fields, Path, Paths, path, show, with_named};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) operation: Operation,
    pub(crate) name: &'static str,
    /// Whether it writes the status at its own endpoint.
    pub(crate) status: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owned: Paths,
    /// In seconds, of the last write that took fields or changed the object.
    pub(crate) time: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managers(pub(crate) BTreeMap<Manager, Entry>);

/// A message and a field.
pub(crate) type Causes = BTreeSet<(String, String)>;

/// What nobody owns.
fn strip(paths: &mut Paths) {
    paths.remove(&path(&[]));
    paths.remove(&path(&["metadata"]));
    paths.remove(&path(&["metadata", "name"]));
}

/// Drops what cannot be written at the endpoint.
fn limit(paths: &mut Paths, status: bool) {
    let all_of_status = path(&["status"]);
    paths.retain(|path| path.starts_with(&all_of_status) == status);
}

// === impl Managers ===

impl Managers {
    /// The entries as they stand in the object.
    pub(crate) fn in_order(&self) -> Vec<(&Manager, &Entry)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(manager, entry)| {
            (manager.operation, entry.time, manager.name, manager.status)
        });
        all
    }

    /// Whether only times differ.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let plain = |managers: &Self| -> Vec<(Manager, Paths)> {
            let all = managers.in_order().into_iter();
            all.map(|(manager, entry)| (manager.clone(), entry.owned.clone()))
                .collect()
        };
        plain(self) == plain(other)
    }

    /// An update: what it changes it takes from everybody.
    pub(crate) fn update(&mut self, writer: &Manager, old: &Fields, new: &Fields, now: u64) {
        let (mut gained, mut lost) = old.changes(new);
        limit(&mut gained, writer.status);
        limit(&mut lost, writer.status);
        for entry in self.0.values_mut() {
            let is_kept = |path: &Path| !gained.contains(path) && !lost.contains(path);
            entry.owned.retain(is_kept);
        }
        strip(&mut gained);
        if !gained.is_empty() {
            let entry = self.0.entry(writer.clone()).or_insert(Entry {
                owned: Paths::new(),
                time: None,
            });
            entry.owned.extend(gained);
            entry.time = Some(now);
        }
        self.0.retain(|_, entry| !entry.owned.is_empty());
    }

    /// An apply. Answers the new object unless it is the old one, before anything is dropped or filled
    /// in, or the conflicts.
    pub(crate) fn apply(
        &mut self,
        writer: &Manager,
        live: &Fields,
        config: &Fields,
        force: bool,
        now: u64,
    ) -> Result<Option<Fields>, Causes> {
        if self.0.is_empty() {
            let before = Manager {
                operation: Operation::Update,
                name: "before-first-apply",
                status: writer.status,
            };
            self.update(&before, &Fields::default(), live, now);
        }
        let previous = self.0.remove(writer);
        let mut owned = config.owned();
        limit(&mut owned, writer.status);
        let mut all = owned.clone();
        all.extend(
            self.0
                .values()
                .flat_map(|entry| entry.owned.iter().cloned()),
        );
        let nothing = Paths::new();
        let before = previous.as_ref().map_or(&nothing, |entry| &entry.owned);
        let new = pruned(live.merged(config), before, &all);

        let (mut gained, mut lost) = live.changes(&new);
        limit(&mut gained, writer.status);
        limit(&mut lost, writer.status);
        let causes: Causes = self
            .0
            .iter()
            .flat_map(|(manager, entry)| {
                let fields = entry.owned.intersection(&gained);
                fields.map(|field| (describe(manager), show(field)))
            })
            .collect();
        if !force && !causes.is_empty() {
            return Err(causes);
        }
        for entry in self.0.values_mut() {
            let is_kept = |path: &Path| !gained.contains(path) && !lost.contains(path);
            entry.owned.retain(is_kept);
        }
        let changed = new != *live;
        let time = if changed {
            Some(now)
        } else {
            previous.and_then(|entry| entry.time)
        };
        strip(&mut owned);
        self.0.insert(writer.clone(), Entry { owned, time });
        self.0.retain(|_, entry| !entry.owned.is_empty());
        Ok(changed.then_some(new))
    }
}

/// Takes out what a manager applied before, unless somebody has it now.
fn pruned(merged: Fields, before: &Paths, owned: &Paths) -> Fields {
    if before.is_empty() {
        return merged;
    }
    let before = with_named(before);
    let has = |object: &Fields| with_named(&object.owned());
    let all = has(&merged);
    let mut kept = has(&merged.without(&before));
    kept.extend(with_named(owned));
    let without_unowned = merged.without(&all.difference(&kept).cloned().collect());
    // What was never applied stays, though nobody has it.
    let kept = has(&without_unowned);
    let gone = all.difference(&kept).filter(|path| before.contains(*path));
    let mut left = merged.without(&gone.cloned().collect());
    // A map that somebody names stays when its last part goes.
    for (path, field) in &mut left.0 {
        if *field == Field::Whole(Value::Null)
            && merged.0.get(path) == Some(&Field::Map)
            && owned.contains(path)
        {
            *field = Field::Map;
        }
    }
    left
}

fn describe(manager: &Manager) -> String {
    let Manager {
        operation,
        name,
        status,
    } = manager;
    let subresource = if *status {
        " with subresource \"status\""
    } else {
        ""
    };
    let version = match operation {
        Operation::Apply => "",
        Operation::Update => " using model.example.com/v1",
    };
    format!("conflict with {name:?}{subresource}{version}")
}
