//! Schemas that are put together: `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::{Value, json};

use super::Check;
use crate::place::Place;
use crate::status::Cause;

/// What came of the schemas of a list.
struct Outcome {
    /// How many fit.
    fitting: usize,
    all: usize,
    /// What is wrong for the schema that came closest.
    closest: Vec<Cause>,
    /// What is wrong for each.
    every: Vec<Cause>,
}

// === impl Check ===

impl Check<'_> {
    pub(super) fn combined(
        &mut self,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
        field: &Place<'_>,
    ) {
        if let Some(outcome) = self.outcome(&schema["anyOf"], value, old, field)
            && outcome.fitting == 0
        {
            self.told(field, "must validate at least one schema (anyOf)");
            self.causes.extend(outcome.closest);
        }
        if let Some(outcome) = self.outcome(&schema["oneOf"], value, old, field)
            && outcome.fitting != 1
        {
            let found = match outcome.fitting {
                0 => "Found none valid".to_owned(),
                several => format!("Found {several} valid alternatives"),
            };
            let why = format!("must validate one and only one schema (oneOf). {found}");
            self.told(field, &why);
            if outcome.fitting == 0 {
                self.causes.extend(outcome.closest);
            }
        }
        if let Some(outcome) = self.outcome(&schema["allOf"], value, old, field) {
            self.causes.extend(outcome.every);
            if outcome.fitting == 0 {
                self.told(
                    field,
                    "must validate all the schemas (allOf). None validated",
                );
            } else if outcome.fitting < outcome.all {
                self.told(field, "must validate all the schemas (allOf)");
            }
        }
        let not = &schema["not"];
        if not.is_object() && self.part(not, value, old, field).is_empty() {
            self.told(field, "must not validate the schema (not)");
        }
    }

    fn outcome(
        &self,
        schemas: &Value,
        value: &Value,
        old: Option<&Value>,
        field: &Place<'_>,
    ) -> Option<Outcome> {
        let schemas = schemas.as_array().filter(|schemas| !schemas.is_empty())?;
        let mut outcome = Outcome {
            fitting: 0,
            all: schemas.len(),
            closest: Vec::new(),
            every: Vec::new(),
        };
        let mut most = None;
        for schema in schemas {
            let causes = self.part(schema, value, old, field);
            if causes.is_empty() {
                outcome.fitting += 1;
                continue;
            }
            let count = reach(schema, value);
            if most.is_none_or(|most| count > most) {
                most = Some(count);
                outcome.closest.clone_from(&causes);
            }
            outcome.every.extend(causes);
        }
        Some(outcome)
    }

    fn part(
        &self,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
        field: &Place<'_>,
    ) -> Vec<Cause> {
        let mut part = Self {
            causes: Vec::new(),
            hidden: self.hidden,
            patterns: self.patterns,
            nameless: self.nameless,
            fitting: &[],
        };
        part.value(schema, value, old, field);
        part.causes
    }

    /// Says something about a value without naming its field as such.
    fn told(&mut self, field: &Place<'_>, why: &str) {
        let why = format!("{:?} {why}", self.shown(field));
        self.causes.push(Cause::invalid("<nil>", &json!(""), &why));
    }
}

/// How much of a value a schema speaks of.
fn reach(schema: &Value, value: &Value) -> usize {
    let members = value.as_object().into_iter().flatten();
    let members = members.filter_map(|(name, value)| {
        let inner = schema["properties"].get(name)?;
        Some(reach(inner, value))
    });
    let elements = value.as_array().into_iter().flatten();
    let elements = elements
        .filter(|_| schema["items"].is_object())
        .map(|element| reach(&schema["items"], element));
    1 + members.sum::<usize>() + elements.sum::<usize>()
}
