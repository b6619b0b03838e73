use serde::Deserialize;
use serde_json::Value;

use super::JsonPath;

/// One column of the table in which the objects of a resource are shown.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// What the cells are: `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) format: String,
    #[serde(default)]
    pub(crate) description: String,
    /// 0 for columns that are always shown, more for those of wide tables.
    #[serde(default)]
    pub(crate) priority: i64,
    /// Custom resources: where the cell is in an object.
    #[serde(skip)]
    pub(crate) path: Option<JsonPath>,
}

/// How the API describes the name of an object, and the time at which it was created.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, \
    although some resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this \
    object was created. It is not guaranteed to be set in happens-before order across separate \
    operations. Clients may not set this value. It is represented in RFC3339 form and is in \
    UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of a version of a custom resource: the name, and what its definition asks for; the
/// age if it asks for nothing.
pub(super) fn of_version(version: &Value) -> Vec<Column> {
    let name = Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: NAME.to_owned(),
        priority: 0,
        path: JsonPath::parse(".metadata.name"),
    };
    let age = || Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        description: CREATED.to_owned(),
        priority: 0,
        path: JsonPath::parse(".metadata.creationTimestamp"),
    };
    let stated = version["additionalPrinterColumns"].as_array();
    let stated = stated.filter(|columns| !columns.is_empty());
    let rest = match stated {
        Some(columns) => columns.iter().filter_map(stated_column).collect(),
        None => vec![age()],
    };
    std::iter::once(name).chain(rest).collect()
}

fn stated_column(stated: &Value) -> Option<Column> {
    let mut column = Column::deserialize(stated).ok()?;
    let path = stated["jsonPath"].as_str().unwrap_or_default();
    if column.description.is_empty() {
        column.description =
            format!("Custom resource definition column (in JSONPath format): {path}");
    }
    column.path = JsonPath::parse(path);
    Some(column)
}
