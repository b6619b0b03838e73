//! What clients can ask for, and how they say it.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// The kinds that differ in what the server does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A config map: no generation, and updates need no version.
    Map,
    /// A custom resource with the status subresource.
    Thing,
    /// A custom resource without it: its status is a field as any other.
    Plain,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Map, Kind::Thing, Kind::Plain];

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) dry_run: bool,
    pub(crate) verb: Verb,
}

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Create {
        content: Content,
        /// With a resourceVersion, which no object that is to be created has.
        versioned: bool,
    },
    Put {
        precondition: Precondition,
        content: Content,
        status: bool,
    },
    /// A merge patch.
    Merge {
        version: Version,
        change: Change,
        status: bool,
    },
    /// A JSON patch that tests a value before it replaces it.
    Test {
        expected: u8,
        value: u8,
    },
    Delete {
        precondition: Precondition,
    },
    DeleteAll {
        labelled: bool,
    },
    Get,
}

/// Which object a request is for, besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    Version(Version),
    RightUid,
    WrongUid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Unsaid,
    Current,
    Stale,
}

/// What can be said of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) label: Option<u8>,
    pub(crate) finalizers: Vec<&'static str>,
    pub(crate) value: Option<u8>,
    pub(crate) status: Option<u8>,
}

/// What a patch changes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) label: Edit,
    pub(crate) finalizers: Option<Vec<&'static str>>,
    pub(crate) value: Edit,
    pub(crate) status: Edit,
}

/// What a patch says of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    Keep,
    Clear,
    Set(u8),
}

// === impl Kind ===

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Map => "ConfigMap",
            Self::Thing => "Thing",
            Self::Plain => "Plain",
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Map => "v1",
            Self::Thing | Self::Plain => "model.example.com/v1",
        }
    }

    /// The path of the collection.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Map => "/api/v1/namespaces/default/configmaps",
            Self::Thing => "/apis/model.example.com/v1/namespaces/default/things",
            Self::Plain => "/apis/model.example.com/v1/namespaces/default/plains",
        }
    }

    /// The value of an object, as its kind shows it.
    pub(crate) fn value(self, value: u8) -> (&'static str, Value) {
        match self {
            Self::Map => ("data", json!({ "value": value.to_string() })),
            Self::Thing | Self::Plain => ("spec", json!({ "value": value })),
        }
    }

    /// Where a JSON patch finds the value, and how it writes it.
    pub(crate) fn pointer(self, value: u8) -> (&'static str, Value) {
        match self {
            Self::Map => ("/data/value", json!(value.to_string())),
            Self::Thing | Self::Plain => ("/spec/value", json!(value)),
        }
    }
}

// === impl Content ===

impl Content {
    /// The whole object, with these members of the metadata besides its name.
    pub(crate) fn body(&self, kind: Kind, name: &str, metadata: Map<String, Value>) -> Value {
        let Self {
            label,
            finalizers,
            value,
            status,
        } = self;
        let mut metadata = metadata;
        metadata.insert("name".into(), json!(name));
        if let Some(label) = label {
            metadata.insert("labels".into(), json!({ "label": label.to_string() }));
        }
        if !finalizers.is_empty() {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        let mut body = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name(),
            "metadata": metadata,
        });
        if let Some(value) = value {
            let (member, value) = kind.value(*value);
            body[member] = value;
        }
        if let Some(status) = status {
            body["status"] = json!({ "seen": status });
        }
        body
    }
}

// === impl Change ===

impl Change {
    /// The merge patch, with these members of the metadata.
    pub(crate) fn body(&self, kind: Kind, metadata: Map<String, Value>) -> Value {
        let Self {
            label,
            finalizers,
            value,
            status,
        } = self;
        let mut metadata = metadata;
        if let Some(labels) = label.member(|label| json!({ "label": label.to_string() })) {
            metadata.insert("labels".into(), labels);
        }
        if let Some(finalizers) = finalizers {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        let mut body = json!({ "metadata": metadata });
        let (member, _) = kind.value(0);
        if let Some(value) = value.member(|value| kind.value(value).1) {
            body[member] = value;
        }
        if let Some(status) = status.member(|seen| json!({ "seen": seen })) {
            body["status"] = status;
        }
        body
    }
}

// === impl Edit ===

impl Edit {
    /// The field after it.
    pub(crate) fn of(self, field: Option<u8>) -> Option<u8> {
        match self {
            Self::Keep => field,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// What stands in a merge patch.
    fn member(self, show: impl Fn(u8) -> Value) -> Option<Value> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(Value::Null),
            Self::Set(value) => Some(show(value)),
        }
    }
}

// === strategies ===

fn finalizers() -> impl Strategy<Value = Vec<&'static str>> {
    let all = ["example.com/x", "example.com/y"];
    prop_oneof![
        3 => Just(vec![]),
        2 => Just(vec![all[0]]),
        1 => Just(vec![all[1]]),
        1 => Just(all.to_vec()),
    ]
}

fn number() -> impl Strategy<Value = Option<u8>> {
    prop::option::of(0..3_u8)
}

fn content() -> impl Strategy<Value = Content> {
    let parts = (number(), finalizers(), number(), number());
    parts.prop_map(|(label, finalizers, value, status)| Content {
        label,
        finalizers,
        value,
        status,
    })
}

fn change() -> impl Strategy<Value = Change> {
    let edit = || {
        prop_oneof![
            2 => Just(Edit::Keep),
            1 => Just(Edit::Clear),
            1 => (0..3_u8).prop_map(Edit::Set),
        ]
    };
    let parts = (edit(), prop::option::of(finalizers()), edit(), edit());
    parts.prop_map(|(label, finalizers, value, status)| Change {
        label,
        finalizers,
        value,
        status,
    })
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![
        2 => Just(Version::Unsaid),
        3 => Just(Version::Current),
        1 => Just(Version::Stale),
    ]
}

fn precondition() -> impl Strategy<Value = Precondition> {
    prop_oneof![
        4 => version().prop_map(Precondition::Version),
        1 => Just(Precondition::RightUid),
        1 => Just(Precondition::WrongUid),
    ]
}

fn verb() -> impl Strategy<Value = Verb> {
    let on_status = || prop::bool::weighted(0.3);
    prop_oneof![
        4 => (content(), prop::bool::weighted(0.05))
            .prop_map(|(content, versioned)| Verb::Create { content, versioned }),
        4 => (precondition(), content(), on_status()).prop_map(
            |(precondition, content, status)| Verb::Put { precondition, content, status }
        ),
        4 => (version(), change(), on_status())
            .prop_map(|(version, change, status)| Verb::Merge { version, change, status }),
        1 => (0..3_u8, 0..3_u8).prop_map(|(expected, value)| Verb::Test { expected, value }),
        2 => precondition().prop_map(|precondition| Verb::Delete { precondition }),
        1 => any::<bool>().prop_map(|labelled| Verb::DeleteAll { labelled }),
        1 => Just(Verb::Get),
    ]
}

/// Any request.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let names = select(vec!["a", "b"]);
    let parts = (
        select(KINDS.to_vec()),
        names,
        prop::bool::weighted(0.1),
        verb(),
    );
    parts.prop_map(|(kind, name, dry_run, verb)| Step {
        kind,
        name,
        dry_run,
        verb,
    })
}
