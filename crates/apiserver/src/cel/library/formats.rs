//! Named formats of texts, as `format.dns1123Label().validate(..)` has them.

use super::{Call, Room};
use crate::cel::times;
use crate::cel::url;
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 3] = [
    (&["format.named"], |call| match call.args {
        [Value::Text(name)] => Ok(match known(name) {
            Some(format) => Value::some(Value::Format(format)),
            None => Value::none(),
        }),
        _ => call.no_overload(),
    }),
    (&GETTERS, |call| {
        let name = call.function.trim_start_matches("format.");
        match known(name) {
            Some(format) => Ok(Value::Format(format)),
            None => call.no_overload(),
        }
    }),
    (&["validate"], validate),
];

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

const GETTERS: [&str; 13] = [
    "format.dns1123Label",
    "format.dns1123Subdomain",
    "format.dns1035Label",
    "format.qualifiedName",
    "format.dns1123LabelPrefix",
    "format.dns1123SubdomainPrefix",
    "format.dns1035LabelPrefix",
    "format.labelValue",
    "format.uri",
    "format.uuid",
    "format.byte",
    "format.date",
    "format.datetime",
];

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const QUALIFIED: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an \
    optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

fn validate<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Format(format), Value::Text(text)] = call.args else {
        return call.no_overload();
    };
    let problems = problems(format, text);
    if problems.is_empty() {
        return Ok(Value::none());
    }
    let problems = problems.into_iter().map(Value::text).collect();
    Ok(Value::some(Value::list(problems)))
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn problems(format: &str, text: &str) -> Vec<String> {
    // The beginning of a name can end in a dash.
    let masked = |text: &str| match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => text.to_owned(),
    };
    let unless = |right: bool, why: &str| (!right).then(|| why.to_owned());
    let found: [Option<String>; 2] = match format {
        "dns1123Label" => [too_long(text, 63), unless(is_label(text), LABEL)],
        "dns1123LabelPrefix" => [too_long(text, 63), unless(is_label(&masked(text)), LABEL)],
        "dns1123Subdomain" => [too_long(text, 253), unless(is_subdomain(text), SUBDOMAIN)],
        "dns1123SubdomainPrefix" => {
            let right = is_subdomain(&masked(text));
            [too_long(text, 253), unless(right, SUBDOMAIN)]
        }
        "dns1035Label" => [too_long(text, 63), unless(is_old_label(text), OLD_LABEL)],
        "dns1035LabelPrefix" => {
            let right = is_old_label(&masked(text));
            [too_long(text, 63), unless(right, OLD_LABEL)]
        }
        "labelValue" => {
            let right = text.is_empty() || is_name(text);
            [too_long(text, 63), unless(right, LABEL_VALUE)]
        }
        "qualifiedName" => return qualified_problems(text),
        "uri" => [url::parse(text).err(), None],
        "uuid" => [
            unless(is_uuid(text), "does not match the UUID format"),
            None,
        ],
        "byte" => [unless(is_base64(text), "invalid base64"), None],
        "date" => [unless(times::date(text).is_some(), "invalid date"), None],
        _ => [
            unless(times::schema_timestamp(text).is_some(), "invalid datetime"),
            None,
        ],
    };
    found.into_iter().flatten().collect()
}

fn qualified_problems(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut problems = Vec::new();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else if !is_subdomain(prefix) {
                problems.push(format!("prefix part {SUBDOMAIN}"));
            }
            name
        }
        _ => return vec![QUALIFIED.to_owned()],
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        problems.push(NAME_PART.to_owned());
    }
    problems
}

fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_old_label(text: &str) -> bool {
    is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.bytes().all(allowed) && text.starts_with(edge) && text.ends_with(edge)
}

fn is_uuid(text: &str) -> bool {
    let hex = text.bytes().filter(|byte| *byte != b'-');
    hex.clone().count() == 32 && hex.clone().all(|byte| byte.is_ascii_hexdigit())
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && text.len().is_multiple_of(4) && crate::base64::first_illegal(text).is_none()
}
