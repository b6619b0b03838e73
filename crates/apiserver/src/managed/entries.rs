use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field_set::FieldSet;

/// More managers of updates than this are merged into one, the oldest first.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager into which they are merged.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// The managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managers {
    entries: BTreeMap<Writer, Entry>,
}

/// Who writes, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Writer {
    pub(crate) operation: Operation,
    pub(crate) manager: String,
    /// Of what was written. Managers that apply are told apart without it.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// What a manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) set: FieldSet,
    /// When it last took fields.
    pub(crate) time: Option<String>,
}

// === impl Operation ===

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl Writer ===

impl Writer {
    pub(crate) fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Update,
            manager: manager.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    pub(crate) fn apply(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            operation: Operation::Apply,
            ..Self::update(manager, api_version, subresource)
        }
    }

    fn is_same_manager(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

// === impl Managers ===

impl Managers {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads `managedFields`.
    /// The versions in which managers wrote.
    pub(crate) fn api_versions(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|writer| &*writer.api_version)
    }

    pub(crate) fn read(list: &Value) -> Self {
        let mut managers = Self::default();
        for entry in list.as_array().into_iter().flatten() {
            let text = |member: &str| entry[member].as_str().unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => continue,
            };
            let set = FieldSet::read(&entry["fieldsV1"]);
            let writer = Writer {
                operation,
                ..Writer::update(text("manager"), text("apiVersion"), text("subresource"))
            };
            let time = entry["time"].as_str().map(str::to_owned);
            managers.entries.insert(writer, Entry { set, time });
        }
        managers
    }

    /// Writes `managedFields`: applies before updates, older entries before newer ones.
    pub(crate) fn write(&self) -> Value {
        let mut sorted: Vec<(&Writer, &Entry)> = self.entries.iter().collect();
        sorted.sort_by_key(|(writer, entry)| {
            let Writer {
                operation,
                manager,
                api_version,
                subresource,
            } = writer;
            (
                *operation,
                entry.time.as_deref(),
                manager,
                api_version,
                subresource,
            )
        });
        let entries = sorted.into_iter().map(|(writer, entry)| {
            let mut written = json!({
                "manager": writer.manager,
                "operation": writer.operation.name(),
                "apiVersion": writer.api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": entry.set.write(),
            });
            if let Some(time) = &entry.time {
                written["time"] = json!(time);
            }
            if !writer.subresource.is_empty() {
                written["subresource"] = json!(writer.subresource);
            }
            written
        });
        Value::Array(entries.collect())
    }

    /// What anybody owns.
    pub(super) fn owned(&self) -> FieldSet {
        self.entries
            .values()
            .fold(FieldSet::default(), |owned, entry| owned.union(&entry.set))
    }

    /// Which fields of a set others own.
    pub(super) fn conflicts(&self, set: &FieldSet) -> Vec<(Writer, FieldSet)> {
        self.entries
            .iter()
            .map(|(writer, entry)| (writer.clone(), entry.set.intersection(set)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect()
    }

    /// Takes fields from one manager.
    pub(super) fn take(&mut self, writer: &Writer, fields: &FieldSet) {
        if let Some(entry) = self.entries.get_mut(writer) {
            entry.set = entry.set.difference(fields);
        }
        self.forget_empty();
    }

    /// Takes fields from every manager.
    pub(super) fn take_from_all(&mut self, fields: &FieldSet) {
        for entry in self.entries.values_mut() {
            entry.set = entry.set.difference(fields);
        }
        self.forget_empty();
    }

    /// Adds fields to what a manager owns.
    pub(super) fn give(&mut self, writer: &Writer, fields: &FieldSet, time: Option<&str>) {
        let entry = self.entries.entry(writer.clone()).or_insert_with(|| Entry {
            set: FieldSet::default(),
            time: None,
        });
        entry.set = entry.set.union(fields);
        entry.time = time.map(str::to_owned);
    }

    pub(super) fn insert(&mut self, writer: &Writer, entry: Entry) {
        self.entries.insert(writer.clone(), entry);
    }

    /// Takes a manager out.
    pub(super) fn remove(&mut self, writer: &Writer) -> Option<Entry> {
        let known = self
            .entries
            .keys()
            .find(|known| known.is_same_manager(writer))?
            .clone();
        self.entries.remove(&known)
    }

    /// Merges the oldest managers of updates if there are too many.
    pub(super) fn cap(&mut self) {
        let is_update = |writer: &Writer| writer.operation == Operation::Update;
        let mut updates: Vec<(Option<String>, Writer)> = self
            .entries
            .iter()
            .filter(|(writer, _)| is_update(writer))
            .map(|(writer, entry)| (entry.time.clone(), writer.clone()))
            .collect();
        updates.sort();
        let mut too_many = updates.len().saturating_sub(MAX_UPDATE_MANAGERS);
        let mut first_of_version: BTreeMap<String, Writer> = BTreeMap::new();
        for (time, writer) in updates {
            if too_many == 0 {
                return;
            }
            let version = writer.api_version.clone();
            let Some(first) = first_of_version.get(&version).cloned() else {
                first_of_version.insert(version, writer);
                continue;
            };
            let bucket = Writer::update(ANCIENT_CHANGES, &version, "");
            for merged in [first, writer] {
                if merged != bucket
                    && let Some(entry) = self.entries.remove(&merged)
                {
                    self.give(&bucket, &entry.set, time.as_deref());
                }
            }
            too_many -= 1;
        }
    }

    fn forget_empty(&mut self) {
        self.entries.retain(|_, entry| !entry.set.is_empty());
    }
}

/// Whether two objects are equal when the times of their managers do not count.
pub(crate) fn same_but_for_times(a: &Value, b: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut()
            && let Some(entries) = metadata
                .get_mut("managedFields")
                .and_then(Value::as_array_mut)
        {
            for entry in entries {
                if let Some(members) = entry.as_object_mut() {
                    members.remove("time");
                }
            }
        }
        object
    };
    a == b || timeless(a) == timeless(b)
}
