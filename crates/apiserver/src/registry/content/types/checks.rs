//! What a member of an object can be checked for alone.

use serde_json::{Value, json};

use super::super::field::Field;
use crate::registry::forms::{self, Problems};
use crate::registry::{addresses, names};
use crate::status::Cause;

pub(super) const PORT: &str = "must be between 1 and 65535, inclusive";

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// A check of one member.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// A text that is not empty; otherwise this is said.
    Needed(&'static str),
    /// A list that is not empty.
    NeededList(&'static str),
    /// A text is one of these, in the order in which they are told.
    OneOf(&'static [&'static str]),
    /// The same, from the data.
    Allowed(&'static [String]),
    /// The form of a text that is not empty.
    Form(fn(&str) -> Problems),
    /// The form of a text, even of the empty one.
    AnyForm(fn(&str) -> Problems),
    QualifiedName,
    Labels,
    Address,
    Port,
    /// A port, which is missing when it is zero.
    NeededPort,
    /// A port that may be zero.
    PortOrZero,
    PortOrName,
    /// A number that is not negative.
    Count,
    /// A number from the first to the second.
    Between(i64, i64, &'static str),
    /// Nothing, whatever the data says.
    Nothing,
    /// Nothing, and nothing below.
    Unseen,
}

// === impl Check ===

impl Check {
    pub(super) fn apply(&self, value: Option<&Value>, field: &Field<'_>, causes: &mut Vec<Cause>) {
        let text = value.and_then(Value::as_str);
        let number = value.and_then(Value::as_i64);
        let shown = value.unwrap_or(&Value::Null);
        let mut invalid = |why: &str| causes.push(Cause::invalid(*field, shown, why));
        match *self {
            Self::Needed(why) => {
                if text.is_none_or(str::is_empty) {
                    causes.push(Cause::required(*field, why));
                }
            }
            Self::NeededList(why) => {
                if value.and_then(Value::as_array).is_none_or(Vec::is_empty) {
                    causes.push(Cause::required(*field, why));
                }
            }
            Self::OneOf(allowed) => not_one_of(text, allowed, field, causes),
            Self::Allowed(allowed) => {
                let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
                not_one_of(text, &allowed, field, causes);
            }
            Self::Form(form) => {
                let text = text.filter(|text| !text.is_empty());
                for why in text.map(form).unwrap_or_default() {
                    invalid(why);
                }
            }
            Self::AnyForm(form) => {
                let text = text.unwrap_or_default();
                let cause = |why| Cause::invalid(*field, &json!(text), why);
                causes.extend(form(text).into_iter().map(cause));
            }
            Self::QualifiedName => {
                let problems = text.map(forms::qualified_name).unwrap_or_default();
                for why in &problems {
                    invalid(why);
                }
            }
            Self::Labels => {
                if let Some(labels) = value {
                    causes.extend(names::label_map_causes(*field, labels));
                }
            }
            Self::Address => {
                let text = text.unwrap_or_default();
                let cause = |why| Cause::invalid(*field, &json!(text), why);
                causes.extend(addresses::address(text).into_iter().map(cause));
            }
            Self::Port | Self::NeededPort | Self::PortOrZero | Self::PortOrName => {
                self.port(value, field, causes);
            }
            Self::Count => {
                if number.is_some_and(|number| number < 0) {
                    invalid(NOT_NEGATIVE);
                }
            }
            Self::Between(least, most, why) => {
                if number.is_some_and(|number| !(least..=most).contains(&number)) {
                    invalid(why);
                }
            }
            Self::Nothing | Self::Unseen => {}
        }
    }

    fn port(self, value: Option<&Value>, field: &Field<'_>, causes: &mut Vec<Cause>) {
        let number = match value {
            Some(Value::String(name)) => {
                let cause = |why| Cause::invalid(*field, &json!(name), why);
                causes.extend(forms::port_name(name).into_iter().map(cause));
                return;
            }
            Some(value) => value.as_i64().unwrap_or_default(),
            None => 0,
        };
        match (number, self) {
            (1..=65_535, _) | (0, Self::PortOrZero) => {}
            (0, Self::NeededPort) => causes.push(Cause::required(*field, "")),
            _ => causes.push(Cause::invalid(*field, &json!(number), PORT)),
        }
    }
}

fn not_one_of(text: Option<&str>, allowed: &[&str], field: &Field<'_>, causes: &mut Vec<Cause>) {
    if let Some(text) = text
        && !text.is_empty()
        && !allowed.contains(&text)
    {
        causes.push(Cause::not_supported(*field, &json!(text), allowed));
    }
}
