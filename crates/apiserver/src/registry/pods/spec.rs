//! The spec of a pod as a server's own types are written: all members, with the names that they have in
//! Go. Messages show what changes in it that way.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

/// A line for each type: its name, and its members in the order of the type.
const SHAPES: &str = include_str!("shapes.txt");

/// Members of a spec that a server keeps in the security context.
const OF_SECURITY_CONTEXT: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

type Shapes = BTreeMap<&'static str, Vec<Member>>;

#[derive(Debug)]
struct Member {
    shown: &'static str,
    /// In objects.
    name: String,
    kind: Kind,
}

/// What is shown of a member.
#[derive(Debug)]
enum Kind {
    Text,
    Flag,
    Number,
    Quantity,
    /// As it is, or `null`.
    Optional,
    /// As it is, or nothing.
    Omitted,
    Inside(&'static str),
    OptionalInside(&'static str),
    List(&'static str),
    /// A list, or nothing.
    OmittedList(&'static str),
    /// The members of a type in place of this one.
    Members(&'static str),
}

/// A spec in lines.
pub(super) fn lines(spec: &Value) -> Vec<String> {
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        for name in OF_SECURITY_CONTEXT {
            if let Some(value) = members.remove(name) {
                members.entry("securityContext").or_insert(json!({}))[name] = value;
            }
        }
    }
    let mut lines = Lines::default();
    lines.inside("PodSpec", &spec);
    lines.done
}

fn shapes() -> &'static Shapes {
    static PARSED: OnceLock<Shapes> = OnceLock::new();
    PARSED.get_or_init(|| {
        let lines = SHAPES.lines().filter_map(|line| line.split_once(": "));
        lines
            .map(|(name, members)| (name, members.split(", ").map(Member::read).collect()))
            .collect()
    })
}

// === impl Member ===

impl Member {
    fn read(text: &'static str) -> Self {
        let (names, kind) = text.split_once(' ').unwrap_or((text, ""));
        let (shown, name) = match names.split_once('=') {
            Some((shown, name)) => (shown, name.to_owned()),
            None => (names, in_objects(names)),
        };
        let list = |kind: &'static str, end: &str| kind.strip_prefix('[')?.strip_suffix(end);
        let kind = match kind {
            "" => Kind::Members(names.trim_start_matches('+')),
            "s" => Kind::Text,
            "b" => Kind::Flag,
            "i" => Kind::Number,
            "q" => Kind::Quantity,
            "*" => Kind::Optional,
            "?" => Kind::Omitted,
            kind => match (list(kind, "]"), list(kind, "]?"), kind.strip_prefix('*')) {
                (Some(inner), _, _) => Kind::List(inner),
                (_, Some(inner), _) => Kind::OmittedList(inner),
                (_, _, Some(inner)) => Kind::OptionalInside(inner),
                (None, None, None) => Kind::Inside(kind),
            },
        };
        Self { shown, name, kind }
    }
}

/// The name in objects of a member: `DNSPolicy` is `dnsPolicy`.
fn in_objects(shown: &str) -> String {
    let capitals = shown.chars().take_while(char::is_ascii_uppercase).count();
    let lowered = match capitals {
        0 | 1 => capitals,
        all if all == shown.len() => all,
        // The last one begins the next word.
        some => some - 1,
    };
    shown[..lowered].to_ascii_lowercase() + &shown[lowered..]
}

/// Writes one of several values.
type Write<'a> = Box<dyn FnOnce(&mut Lines) + 'a>;

/// Lines of JSON, indented as Go does.
#[derive(Debug, Default)]
struct Lines {
    done: Vec<String>,
    depth: usize,
}

// === impl Lines ===

impl Lines {
    /// Ends a line with a text. The last line is still open, if there is one.
    fn put(&mut self, text: &str) {
        match self.done.last_mut() {
            Some(line) => line.push_str(text),
            None => self.done.push(text.to_owned()),
        }
    }

    fn next(&mut self) {
        self.done.push(" ".repeat(self.depth));
    }

    /// Values between brackets, each on a line of its own.
    fn enclosed(&mut self, [open, close]: [&str; 2], values: Vec<Write<'_>>) {
        self.put(open);
        if !values.is_empty() {
            self.depth += 1;
            let last = values.len() - 1;
            for (index, write) in values.into_iter().enumerate() {
                self.next();
                write(self);
                if index < last {
                    self.put(",");
                }
            }
            self.depth -= 1;
            self.next();
        }
        self.put(close);
    }

    fn inside(&mut self, shape: &str, value: &Value) {
        let mut members = Vec::new();
        collect(shape, value, &mut members);
        let write = members.into_iter().map(|(member, value)| -> Write<'_> {
            Box::new(move |lines| {
                lines.put(&format!("{}: ", quoted(member.shown)));
                lines.member(&member.kind, value);
            })
        });
        self.enclosed(["{", "}"], write.collect());
    }

    fn member(&mut self, kind: &Kind, value: &Value) {
        match (kind, value.is_null()) {
            (Kind::Inside(shape), _) | (Kind::OptionalInside(shape), false) => {
                self.inside(shape, value);
            }
            (Kind::List(shape) | Kind::OmittedList(shape), false) => {
                let elements = value.as_array().into_iter().flatten();
                let write = elements.map(|element| -> Write<'_> {
                    Box::new(move |lines| lines.inside(shape, element))
                });
                self.enclosed(["[", "]"], write.collect());
            }
            (
                Kind::Text
                | Kind::Flag
                | Kind::Number
                | Kind::Quantity
                | Kind::Optional
                | Kind::Omitted
                | Kind::Members(_),
                false,
            ) => self.plain(value),
            (Kind::Text, true) => self.put("\"\""),
            (Kind::Flag, true) => self.put("false"),
            (Kind::Number, true) => self.put("0"),
            (Kind::Quantity, true) => self.put("\"0\""),
            (
                Kind::Optional
                | Kind::Omitted
                | Kind::OptionalInside(_)
                | Kind::List(_)
                | Kind::OmittedList(_)
                | Kind::Members(_),
                true,
            ) => self.put("null"),
        }
    }

    /// A value as it is in the object.
    fn plain(&mut self, value: &Value) {
        match value {
            Value::Array(elements) => {
                let write = elements
                    .iter()
                    .map(|element| -> Write<'_> { Box::new(move |lines| lines.plain(element)) });
                self.enclosed(["[", "]"], write.collect());
            }
            Value::Object(members) => {
                let write = members.iter().map(|(name, value)| -> Write<'_> {
                    Box::new(move |lines| {
                        lines.put(&format!("{}: ", quoted(name)));
                        lines.plain(value);
                    })
                });
                self.enclosed(["{", "}"], write.collect());
            }
            Value::String(text) => self.put(&quoted(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.put(&value.to_string()),
        }
    }
}

/// The members that are shown of a value, in their order.
fn collect<'a>(shape: &str, value: &'a Value, members: &mut Vec<(&'static Member, &'a Value)>) {
    for member in shapes().get(shape).into_iter().flatten() {
        if let Kind::Members(shape) = &member.kind {
            collect(shape, value, members);
            continue;
        }
        let found = &value[&member.name];
        let omitted = matches!(member.kind, Kind::Omitted | Kind::OmittedList(_));
        if !(omitted && found.is_null()) {
            members.push((member, found));
        }
    }
}

/// A text as JSON that can stand in HTML, as Go writes it.
fn quoted(text: &str) -> String {
    let mut quoted = Value::from(text).to_string();
    for (sign, shown) in [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")] {
        quoted = quoted.replace(sign, shown);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_objects() {
        for (shown, name) in [
            ("DNSPolicy", "dnsPolicy"),
            ("TTY", "tty"),
            ("OS", "os"),
            ("HostPID", "hostPID"),
            ("AWSElasticBlockStore", "awsElasticBlockStore"),
            ("GRPC", "grpc"),
            ("matchLabels", "matchLabels"),
        ] {
            assert_eq!(in_objects(shown), name);
        }
    }

    #[test]
    fn every_type_that_is_named_is_described() {
        for (name, members) in shapes() {
            for member in members {
                let inner = match member.kind {
                    Kind::Inside(inner)
                    | Kind::OptionalInside(inner)
                    | Kind::List(inner)
                    | Kind::OmittedList(inner)
                    | Kind::Members(inner) => inner,
                    Kind::Text
                    | Kind::Flag
                    | Kind::Number
                    | Kind::Quantity
                    | Kind::Optional
                    | Kind::Omitted => continue,
                };
                assert!(shapes().contains_key(inner), "{name} {member:?}");
            }
        }
    }

    #[test]
    fn all_members_are_shown() {
        let spec = json!({
            "hostPID": true,
            "nodeSelector": { "a": "<b>" },
            "containers": [{ "name": "c", "args": [], "livenessProbe": { "httpGet": { "port": "p" } } }],
        });
        let lines = lines(&spec);
        let text = lines.join("\n");
        assert_eq!(lines.first().map(String::as_str), Some("{"));
        assert_eq!(lines.last().map(String::as_str), Some("}"));
        for part in [
            " \"Volumes\": null,\n",
            "   \"Name\": \"c\",\n   \"Image\": \"\",\n   \"Command\": null,\n   \"Args\": [],\n",
            "   \"LivenessProbe\": {\n    \"Exec\": null,\n    \"HTTPGet\": {\n     \"Path\": \"\",\n     \
             \"Port\": \"p\",\n",
            " \"NodeSelector\": {\n  \"a\": \"\\u003cb\\u003e\"\n },\n",
            " \"SecurityContext\": {\n  \"HostNetwork\": false,\n  \"HostPID\": true,\n",
            "   \"TTY\": false\n  }\n ],\n \"EphemeralContainers\": null,\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
