use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A set of fields of an object, as `fieldsV1` writes it.
///
/// A node is an element of a path in its written form: `f:name`, `k:{"name":"c"}`, `v:"value"` or
/// `i:0`. A field can be in the set itself, or only lead to others that are, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Whether the field itself is in the set.
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

// === impl Node ===

impl Node {
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

// === impl FieldSet ===

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.nodes.iter()
    }

    pub(crate) fn node(&self, element: &str) -> Option<&Node> {
        self.nodes.get(element)
    }

    /// Adds a node; an empty one is not kept.
    pub(crate) fn insert(&mut self, element: String, node: Node) {
        if node.is_empty() {
            return;
        }
        match self.nodes.get_mut(&element) {
            Some(known) => {
                known.member |= node.member;
                known.children = known.children.union(&node.children);
            }
            None => {
                self.nodes.insert(element, node);
            }
        }
    }

    /// Keeps only some of the top-level nodes.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.nodes.retain(|element, _| keep(element));
    }

    /// Takes one field out; those below it stay.
    pub(crate) fn remove_member(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let Some(node) = self.nodes.get_mut(*first) else {
            return;
        };
        if rest.is_empty() {
            node.member = false;
        } else {
            node.children.remove_member(rest);
        }
        if node.is_empty() {
            self.nodes.remove(*first);
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, node) in &other.nodes {
            union.insert(element.clone(), node.clone());
        }
        union
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |own, others| own && !others, true)
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |own, others| own && others, false)
    }

    /// Decides for each node whether it is a member; `keep` says what becomes of nodes that the
    /// other set does not have.
    fn combine(&self, other: &Self, member: fn(bool, bool) -> bool, keep: bool) -> Self {
        let mut combined = Self::default();
        for (element, node) in &self.nodes {
            let node = match other.nodes.get(element) {
                Some(known) => Node {
                    member: member(node.member, known.member),
                    children: node.children.combine(&known.children, member, keep),
                },
                None if keep => node.clone(),
                None => continue,
            };
            combined.insert(element.clone(), node);
        }
        combined
    }

    /// The paths of all members, as messages show them: `.spec.ports[port=80].name`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        // The members of a level stand before what is below any of them.
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            paths.push(format!("{prefix}{}", shown(element)));
        }
        for (element, node) in &self.nodes {
            let path = format!("{prefix}{}", shown(element));
            node.children.collect_paths(&path, paths);
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                continue;
            }
            let children = Self::read(below);
            let member = children.is_empty() || below.get(".").is_some();
            set.insert(normalized(element), Node { member, children });
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(crate) fn write(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.nodes {
            let mut below = node.children.write();
            if node.member && !node.children.is_empty() {
                below["."] = json!({});
            }
            fields.insert(element.clone(), below);
        }
        Value::Object(fields)
    }
}

/// An element with its JSON written in one way, so that equal ones have equal text.
fn normalized(element: &str) -> String {
    for prefix in ["k:", "v:"] {
        if let Some(text) = element.strip_prefix(prefix)
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            return format!("{prefix}{value}");
        }
    }
    element.to_owned()
}

/// An element as a part of a path that people read.
pub(super) fn shown(element: &str) -> String {
    if let Some(name) = element.strip_prefix("f:") {
        return format!(".{name}");
    }
    if let Some(keys) = element.strip_prefix("k:")
        && let Ok(Value::Object(keys)) = serde_json::from_str(keys)
    {
        let list: Vec<String> = keys
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        return format!("[{}]", list.join(","));
    }
    let text = element.split_once(':').map_or(element, |(_, text)| text);
    if element.starts_with("v:") {
        format!("[={text}]")
    } else {
        format!("[{text}]")
    }
}
