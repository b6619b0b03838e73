//! Tables: objects as rows of cells, for people.

mod age;
mod cells;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::cells::cell;
use crate::resource::{Column, Resource};
use crate::status::Status;

/// How a client wants its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct TableForm {
    /// The group and version of the table itself.
    pub(in crate::http) api_version: &'static str,
    pub(in crate::http) include: Include,
}

/// What a row carries beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Include {
    Nothing,
    Metadata,
    Object,
}

// === impl Include ===

impl Include {
    /// Reads the parameter `includeObject`.
    ///
    /// # Errors
    ///
    /// 400 for what is not known.
    pub(in crate::http) fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::Nothing),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

// === impl TableForm ===

impl TableForm {
    /// A table of one object.
    pub(in crate::http) fn of_object(
        self,
        resource: &Resource,
        object: &Value,
        now: Timestamp,
    ) -> Value {
        let version = &object["metadata"]["resourceVersion"];
        self.table(
            resource,
            &json!({ "resourceVersion": version }),
            &[self.row(resource, object, now)],
        )
    }

    /// A table of the items of a list.
    pub(in crate::http) fn of_list(
        self,
        resource: &Resource,
        mut list: Value,
        now: Timestamp,
    ) -> Value {
        let mut rows = Vec::new();
        for item in list["items"].as_array_mut().into_iter().flatten() {
            // Items of a built-in list do not say what they are.
            item["apiVersion"] = json!(resource.api_version());
            item["kind"] = json!(resource.kind);
            rows.push(self.row(resource, item, now));
        }
        self.table(resource, &list["metadata"], &rows)
    }

    fn table(self, resource: &Resource, metadata: &Value, rows: &[Value]) -> Value {
        let columns: Vec<Value> = resource.columns.iter().map(definition).collect();
        json!({
            "kind": "Table",
            "apiVersion": self.api_version,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn row(self, resource: &Resource, object: &Value, now: Timestamp) -> Value {
        let cells: Vec<Value> = resource
            .columns
            .iter()
            .map(|column| cell(resource, column, object, now))
            .collect();
        let shown = match self.include {
            Include::Nothing => Value::Null,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": self.api_version,
                "metadata": object["metadata"],
            }),
            Include::Object => object.clone(),
        };
        json!({ "cells": cells, "object": shown })
    }
}

fn definition(column: &Column) -> Value {
    let Column {
        name,
        kind,
        format,
        description,
        priority,
        path: _,
    } = column;
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

/// Takes the column definitions away: of the tables in a watch only the first has them.
pub(in crate::http) fn without_definitions(mut table: Value) -> Value {
    table["columnDefinitions"] = Value::Null;
    table
}
