//! What the rules of a definition may cost, and what is said when that is too much.

use crate::status::Cause;

/// The steps that one expression may take at most on the largest object that the schema allows.
const MAX_EXPRESSION_COST: u64 = 10_000_000;

/// The steps that all rules of a schema together may take at most.
const MAX_SCHEMA_COST: u64 = 100_000_000;

/// Where the sum is too much, so many of the most expensive expressions are named, if they are at
/// least this part of what is allowed.
const NAMED: usize = 4;
const NAMED_COST: u64 = MAX_SCHEMA_COST / 100;

const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength \
    where arrays, maps, and strings are declared)";

/// The costs of the expressions of a schema.
#[derive(Debug, Default)]
pub(super) struct Budget {
    total: u64,
    /// The expressions that count, with their places.
    expensive: Vec<(u64, String)>,
}

// === impl Budget ===

impl Budget {
    /// Adds the cost of an expression, called so in messages. Answers what is wrong if it is too
    /// much by itself.
    pub(super) fn charge(&mut self, cost: u64, kind: &str, field: &str) -> Option<Cause> {
        self.total = self.total.saturating_add(cost);
        if cost >= NAMED_COST {
            self.expensive.push((cost, field.to_owned()));
        }
        (cost > MAX_EXPRESSION_COST).then(|| {
            let factor = factor(cost, MAX_EXPRESSION_COST);
            let why =
                format!("estimated {kind} cost exceeds budget by factor of {factor} {ADVICE}");
            Cause::forbidden(field, &why)
        })
    }

    /// What is wrong if all expressions of the schema at this place are too much together.
    pub(super) fn finish(mut self, place: &str) -> Vec<Cause> {
        if self.total <= MAX_SCHEMA_COST {
            return Vec::new();
        }
        self.expensive
            .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.expensive.truncate(NAMED);
        let part = "contributed to estimated rule cost total exceeding cost limit for entire \
                    OpenAPIv3 schema";
        let mut causes: Vec<Cause> = self
            .expensive
            .into_iter()
            .map(|(_, field)| Cause::forbidden(field, part))
            .collect();
        let factor = factor(self.total, MAX_SCHEMA_COST);
        let why = format!(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
             budget by factor of {factor} {ADVICE}"
        );
        causes.push(Cause::forbidden(place, &why));
        causes
    }
}

/// How many times a cost is what is allowed.
#[expect(
    clippy::cast_precision_loss,
    reason = "only a few digits are shown, the same as a server shows"
)]
fn factor(cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    }
}
