//! Objects out of pages and lines.
//!
//! Pages and events are opened without decoding the objects in them. Each object is then decoded by
//! itself, so that one which does not fit its type harms no other, and only once; what is known of
//! an object that does not fit is read afterwards.

use super::{
    outline::{Outlined, Reading, without},
    size,
    source::{Failure, Trouble},
};
use bytes::Bytes;
use homeostat_core::watch::Change;
use kube::{Resource, core::Status};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;
use std::{any::TypeId, borrow::Cow, collections::BTreeMap, str, vec};

/// An object, or what is known of one that does not fit its type.
pub(crate) type Decoded<K> = Result<K, Box<Unfit>>;

/// What is known of an object that does not fit its type.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(super) kind: Option<String>,
    pub(super) meta: HeaderMeta,
    /// Where it does not fit.
    pub(super) path: String,
    /// What does not fit there, without any value of the object.
    pub(super) message: String,
}

/// What is made of the text of an object.
pub(crate) trait Text: Sized + Send + 'static {
    /// Whether the type is made for any kind, so that it has a place for what a list says of the kind.
    fn is_of_any_kind() -> bool;

    /// Of an object in a list.
    fn listed(text: &[u8]) -> Decoded<Self>;

    /// Of an object that a watch tells, whose managed fields may be left out. While a list comes in that way,
    /// `listing` is true.
    fn told(text: &[u8], reading: &Reading, listing: bool) -> Decoded<Self>;

    /// Its namespace and name.
    fn names(&self) -> (Option<&str>, Option<&str>);

    fn version(&self) -> Option<&str>;
}

/// A list or a page of it, whose objects are decoded as they are taken out.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) version: String,
    pub(super) continue_token: Option<String>,
    /// Whether the server says that it has selected by shards.
    pub(super) is_part: bool,
    /// `apiVersion` and `kind` of the objects, which built-in kinds leave out in lists.
    types: Option<Types>,
    items: vec::IntoIter<Bytes>,
}

#[derive(Debug)]
struct Types {
    api_version: String,
    kind: String,
}

/// What a line of a watch says.
#[derive(Debug)]
pub(super) enum Line<K> {
    Object(Change, Decoded<K>),
    Bookmark {
        version: String,
        initial_events_end: bool,
    },
    Error(Box<Status>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
    shard_info: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The part of an object that says which one it is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Header {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: HeaderMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HeaderMeta {
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
}

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

// === impl Page ===

impl Page {
    /// Opens the body of a list.
    ///
    /// Something between the server and here may have answered in its stead, with a `Status`.
    pub(super) fn open(body: &Bytes) -> Result<Self, Failure> {
        let raw: RawPage<'_> =
            serde_json::from_slice(body).map_err(|error| malformed("the list", &error))?;
        let RawPage {
            api_version,
            kind,
            metadata,
            items,
        } = raw;
        if kind.as_deref() == Some("Status")
            && let Ok(status) = serde_json::from_slice::<Status>(body)
            && status.is_failure()
        {
            return Err(Failure::Status(Box::new(status)));
        }
        let Some(version) = metadata
            .resource_version
            .filter(|version| !version.is_empty())
        else {
            return Err(Trouble::Malformed("the list has no resourceVersion".to_owned()).into());
        };
        let kind = kind.and_then(|kind| kind.strip_suffix("List").map(str::to_owned));
        let items: Vec<_> = items
            .unwrap_or_default()
            .into_iter()
            .map(|item| body.slice_ref(item.get().as_bytes()))
            .collect();
        Ok(Self {
            version,
            is_part: metadata.shard_info.is_some(),
            continue_token: metadata.r#continue.filter(|token| !token.is_empty()),
            types: api_version
                .zip(kind)
                .map(|(api_version, kind)| Types { api_version, kind }),
            items: items.into_iter(),
        })
    }

    /// The next object that is not known as it is; `None` after the last.
    pub(super) fn next<K: Text>(&mut self, reading: &Reading) -> Option<Decoded<K>> {
        let Self { items, types, .. } = self;
        let mut outlined = items.map(|item| (reading.outline(&item), item));
        let (slim, item) = outlined.find(|(outlined, _)| !matches!(outlined, Outlined::Known))?;
        let decoded = match (types.as_ref(), slim) {
            (Some(types), _) if K::is_of_any_kind() => {
                K::listed(&reading.part(&types.put_into(&item)))
            }
            (_, Outlined::Without(range)) => K::listed(&without(&item, range)),
            (_, Outlined::Known | Outlined::Whole) => K::listed(&item),
        };
        Some(decoded.map_err(|mut unfit| {
            if unfit.kind.is_none() {
                unfit.kind = types.as_ref().map(|types| types.kind.clone());
            }
            unfit
        }))
    }
}

// === impl Types ===

impl Types {
    /// The object with these types, unless it has some.
    fn put_into<'a>(&self, object: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(members) = object.strip_prefix(b"{") else {
            return object.into();
        };
        match serde_json::from_slice::<Header>(object) {
            // An object with a name is not empty, so a comma can follow.
            Ok(Header {
                api_version: None,
                kind: None,
                metadata: HeaderMeta { name: Some(_), .. },
            }) => {
                let Self { api_version, kind } = self;
                let types = serde_json::json!({ "apiVersion": api_version, "kind": kind });
                let mut object = types.to_string().into_bytes();
                object.pop();
                object.push(b',');
                object.extend_from_slice(members);
                object.into()
            }
            Ok(_) | Err(_) => object.into(),
        }
    }
}

/// Whether `text` is the beginning of something, and no more.
pub(super) fn is_begun(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Reads a line of a watch.
pub(super) fn line<K: Text>(
    line: &[u8],
    reading: &Reading,
    listing: bool,
) -> Result<Line<K>, Trouble> {
    if let Some(said) = usual(line, reading, listing) {
        return Ok(said);
    }
    let event: RawEvent<'_> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => {
            // Something between the server and here may have answered in its stead.
            return match serde_json::from_slice::<Status>(line) {
                Ok(status) if status.is_failure() => Ok(Line::Error(Box::new(status))),
                Ok(_) | Err(_) => Err(malformed("an event", &error)),
            };
        }
    };
    let object = event.object.get().as_bytes();
    match &*event.r#type {
        "ADDED" | "MODIFIED" => changed(Change::Applied, object, reading, listing),
        "DELETED" => changed(Change::Deleted, object, reading, listing),
        "BOOKMARK" => {
            let Bookmark { metadata } =
                serde_json::from_slice(object).map_err(|error| malformed("a bookmark", &error))?;
            let annotation = metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(INITIAL_EVENTS_END));
            Ok(Line::Bookmark {
                initial_events_end: annotation.is_some_and(|value| value == "true"),
                version: metadata.resource_version,
            })
        }
        "ERROR" => serde_json::from_slice(object)
            .map(|status| Line::Error(Box::new(status)))
            .map_err(|error| malformed("an error", &error)),
        _ => Err(Trouble::Malformed(
            "an event has a type that is not known".to_owned(),
        )),
    }
}

/// Reads a line as servers write nearly all of them, which saves to look for the end of the object.
fn usual<K: Text>(line: &[u8], reading: &Reading, listing: bool) -> Option<Line<K>> {
    let event = line.trim_ascii().strip_prefix(b"{\"type\":\"")?;
    let object = event.strip_suffix(b"}")?;
    for (kind, change) in [
        (&b"MODIFIED\",\"object\":"[..], Change::Applied),
        (b"ADDED\",\"object\":", Change::Applied),
        (b"DELETED\",\"object\":", Change::Deleted),
    ] {
        if let Some(object) = object.strip_prefix(kind) {
            let object = K::told(object, reading, listing).ok()?;
            object.version().filter(|version| !version.is_empty())?;
            return Some(Line::Object(change, Ok(object)));
        }
    }
    None
}

fn changed<K: Text>(
    change: Change,
    bytes: &[u8],
    reading: &Reading,
    listing: bool,
) -> Result<Line<K>, Trouble> {
    let decoded = K::told(bytes, reading, listing);
    if version(&decoded).is_empty() {
        return Err(Trouble::Malformed(
            "an object has no resourceVersion".to_owned(),
        ));
    }
    Ok(Line::Object(change, decoded))
}

/// The version of an object; empty if it has none.
pub(super) fn version<K: Text>(decoded: &Decoded<K>) -> &str {
    match decoded {
        Ok(object) => object.version(),
        Err(unfit) => unfit.meta.resource_version.as_deref(),
    }
    .unwrap_or_default()
}

/// Whether these are versions of one object.
pub(super) fn same_object<K: Text>(a: &Decoded<K>, b: &Decoded<K>) -> bool {
    fn names<K: Text>(decoded: &Decoded<K>) -> (Option<&str>, Option<&str>) {
        match decoded {
            Ok(object) => object.names(),
            Err(unfit) => (unfit.meta.namespace.as_deref(), unfit.meta.name.as_deref()),
        }
    }
    names(a) == names(b)
}

impl<K: Resource + DeserializeOwned + Send + 'static> Text for K {
    fn is_of_any_kind() -> bool {
        TypeId::of::<K::DynamicType>() != TypeId::of::<()>()
    }

    fn listed(text: &[u8]) -> Decoded<Self> {
        object(text)
    }

    fn told(text: &[u8], reading: &Reading, _listing: bool) -> Decoded<Self> {
        object(&reading.part(text))
    }

    fn names(&self) -> (Option<&str>, Option<&str>) {
        let meta = self.meta();
        (meta.namespace.as_deref(), meta.name.as_deref())
    }

    fn version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }
}

/// Decodes an object of which it is known what is to be decoded.
pub(super) fn object<K: DeserializeOwned>(bytes: &[u8]) -> Decoded<K> {
    decode(bytes).map_err(|error| Box::new(unfit::<K>(bytes, &error)))
}

/// Decodes an object. Looking at all its bytes once tells more cheaply that they are text than each string by itself.
fn decode<K: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<K> {
    size::note(bytes.len());
    match str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// Looks for the place where an object does not fit.
#[cold]
fn unfit<K: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Unfit {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let path = match serde_path_to_error::deserialize::<_, K>(&mut json) {
        Err(error) => error.path().to_string(),
        Ok(_) => ".".to_owned(),
    };
    let Header {
        api_version: _,
        kind,
        metadata,
    } = serde_json::from_slice(bytes).unwrap_or_default();
    Unfit {
        kind,
        meta: metadata,
        path,
        message: without_values(error),
    }
}

fn malformed(what: &str, error: &serde_json::Error) -> Trouble {
    Trouble::Malformed(format!("{what} cannot be read: {}", without_values(error)))
}

/// What is wrong, without any value of the data: such a value may be a secret.
///
/// The texts of serde and of derived types have a form in which values can be told from what is
/// expected in their place. Texts of any other form are left out.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    if error.is_syntax() || error.is_eof() {
        return format!("{text}{place}");
    }
    // A value may contain these words too; the last ones are those of the text.
    let expected = text
        .rsplit_once(", expected ")
        .map(|(_, expected)| expected);
    let up_to_tick = |rest: &str| rest.split('`').next().map(str::to_owned);
    if let Some(rest) = text.strip_prefix("missing field `") {
        return format!("missing field `{}`", up_to_tick(rest).unwrap_or_default());
    }
    for (start, what) in [
        ("invalid type: ", "invalid type"),
        ("invalid value: ", "invalid value"),
        ("invalid length ", "invalid length"),
        ("unknown variant ", "unknown variant"),
        ("unknown field ", "unknown field"),
    ] {
        if let Some(rest) = text.strip_prefix(start) {
            // The kind of the value comes before the value: `string "x"`, `integer `1``.
            let found = rest
                .split(['"', '`', ','])
                .next()
                .unwrap_or_default()
                .trim_end();
            let found = if found.is_empty() {
                String::new()
            } else {
                format!(": {found}")
            };
            let expected = expected.map(|expected| format!(", expected {expected}"));
            return format!("{what}{found}{}", expected.unwrap_or_default());
        }
    }
    "the value is not one of its type".to_owned()
}

#[cfg(test)]
mod tests;
