use std::sync::LazyLock;

use serde_json::{Map as Members, Value as Json, json};

use super::equal::same;
use super::{Outcome, Value};
use crate::cel::names::member_name;

/// What every object has, and what rules see of its metadata.
static TYPE_MEMBER: LazyLock<Json> = LazyLock::new(|| json!({ "type": "string" }));
static METADATA: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "generateName": { "type": "string" } },
    })
});

/// An object with the members that a schema describes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    members: &'a Members<String, Json>,
    schema: &'a Json,
    /// Whether it has apiVersion, kind and metadata whatever the schema says.
    resource: bool,
}

// === impl Object ===

impl<'a> Object<'a> {
    pub(super) fn of(members: &'a Members<String, Json>, schema: &'a Json, root: bool) -> Self {
        let resource = root || schema["x-kubernetes-embedded-resource"] == true;
        Self {
            members,
            schema,
            resource,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The member that an expression names so. One that is null is not there.
    pub(crate) fn field(&self, name: &str) -> Option<Outcome<'a>> {
        self.member(&member_name(name))
    }

    pub(super) fn member(&self, name: &str) -> Option<Outcome<'a>> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        Some(Value::of(value, self.schema_of(name), false))
    }

    fn schema_of(&self, name: &str) -> &'a Json {
        let described = &self.schema["properties"][name];
        if !self.resource || described["properties"].is_object() {
            return described;
        }
        match name {
            "apiVersion" | "kind" => &TYPE_MEMBER,
            "metadata" => &METADATA,
            _ => described,
        }
    }

    pub(super) fn equals(&self, other: &Self, left: &mut u32) -> bool {
        // Without a description of its parts, what an object holds is compared as it is.
        if self.members == other.members {
            return true;
        }
        self.len() == other.len()
            && self.members.iter().all(|(name, value)| {
                let Some(other_value) = other.members.get(name) else {
                    return false;
                };
                let own = Value::of(value, self.schema_of(name), false);
                let others = Value::of(other_value, other.schema_of(name), false);
                matches!((own, others), (Ok(own), Ok(others)) if same(&own, &others, left))
            })
    }
}
