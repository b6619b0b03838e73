//! Rules: what they answer, what is refused, and that they end.

use serde_json::{Value, json};

use super::{Findings, Rules};
use crate::pattern::Patterns;

/// A schema with one rule for a value at `v`.
fn schema(value: &Value, rule: &Value) -> Value {
    let mut value = value.clone();
    value["x-kubernetes-validations"] = json!([rule]);
    json!({ "type": "object", "properties": { "v": value } })
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// What is wrong with a rule in a definition, as `field: message`.
#[track_caller]
fn problems(value: &Value, rule: &Value) -> Vec<String> {
    let causes = Rules::problems(&schema(value, rule), "s");
    let line = |cause: crate::status::Cause| format!("{}: {}", cause.field, cause.message);
    causes.into_iter().map(line).collect()
}

/// What a rule says about a value and the one before.
#[track_caller]
fn check(described: &Value, rule: &Value, value: &Value, old: Option<&Value>) -> Findings {
    let schema = schema(described, rule);
    assert_eq!(Rules::problems(&schema, "s"), [], "{rule}");
    let object = json!({ "v": value });
    let old = old.map(|old| json!({ "v": old }));
    Rules::of(&schema).check(&schema, &object, old.as_ref(), &Patterns::default())
}

#[track_caller]
fn says(described: &Value, rule: &Value, value: &Value, message: &str) {
    let findings = check(described, rule, value, None);
    let causes = findings.causes.iter();
    let messages: Vec<&str> = causes.map(|cause| cause.message.as_str()).collect();
    assert_eq!(messages, [message], "{rule}");
}

#[test]
fn broken_rules() {
    let text = json!({ "type": "string", "maxLength": 50 });
    for (rule, message) in [
        (
            json!({ "rule": "self == 'a'" }),
            "Invalid value: \"b\": failed rule: self == 'a'",
        ),
        (
            json!({ "rule": "self == 'a'", "message": " no " }),
            "Invalid value: \"b\": no",
        ),
        (
            json!({ "rule": "self == 'a'", "messageExpression": "'not ' + self" }),
            "Invalid value: \"b\": not b",
        ),
        (
            json!({ "rule": "self == 'a'", "messageExpression": "'a\\nb'", "message": "m" }),
            "Invalid value: \"b\": m",
        ),
        (
            json!({
                "rule": "self == 'a'",
                "messageExpression": "string(int(self))",
                "message": "m",
            }),
            "Invalid value: \"b\": m",
        ),
        (
            json!({ "rule": "false", "reason": "FieldValueDuplicate" }),
            "Duplicate value: \"b\"",
        ),
        (
            json!({ "rule": "false", "reason": "FieldValueForbidden", "message": "m" }),
            "Forbidden: m",
        ),
        (
            json!({ "rule": "int(self) > 1" }),
            "Invalid value: \"string\": type conversion error from 'string' to 'int' evaluating \
             rule: int(self) > 1",
        ),
    ] {
        says(&text, &rule, &json!("b"), message);
    }
}

#[test]
fn rules_without_a_value() {
    let list = json!({ "type": "array", "maxItems": 9, "items": { "type": "integer" } });
    for (rule, why) in [
        ("self[2] > 1", "index out of bounds: 2"),
        ("10 / self[0] > 1", "division by zero"),
        ("9223372036854775807 + self[0] + 1 > 1", "integer overflow"),
    ] {
        let message = format!("Invalid value: \"array\": {why} evaluating rule: {rule}");
        says(&list, &json!({ "rule": rule }), &json!([0]), &message);
    }
}

#[test]
fn transitions() {
    let text = json!({ "type": "string" });
    let fixed = json!({ "rule": "self == oldSelf" });
    let starts = json!({ "rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true });
    let short = json!({ "rule": "self.size() < 2" });
    // A rule, the value, the value before; causes and warnings.
    for (rule, value, old, causes, warnings) in [
        (&fixed, "a", None, 0, 0),
        (&fixed, "a", Some("a"), 0, 0),
        (&fixed, "b", Some("a"), 1, 0),
        (&starts, "new", None, 0, 0),
        (&starts, "old", None, 1, 0),
        (&starts, "old", Some("new"), 0, 0),
        // What was wrong before and did not change is only warned about.
        (&short, "long", None, 1, 0),
        (&short, "long", Some("long"), 0, 1),
        (&short, "longer", Some("long"), 1, 0),
    ] {
        let old = old.map(|old| json!(old));
        let findings = check(&text, rule, &json!(value), old.as_ref());
        let found = (findings.causes.len(), findings.warnings.len());
        assert_eq!(found, (causes, warnings), "{rule} {value} {old:?}");
    }
}

#[test]
fn refused_in_definitions() {
    let text = json!({ "type": "string", "maxLength": 9 });
    let object = json!({ "type": "object", "properties": { "a": text } });
    let deep = format!("{}1{} == 1", "(".repeat(5000), ")".repeat(5000));
    let rule = |rule: &str| json!({ "rule": rule });
    // A described value, a rule for it, and the member of the rule that is refused.
    let table = [
        (&text, rule(""), "rule"),
        (&text, rule("self == 5"), "rule"),
        (&text, rule("size(self)"), "rule"),
        (&text, rule("Foo{a: 1} == self"), "rule"),
        (&text, rule("\u{0}"), "rule"),
        (&text, rule("self.optMap(1, 2)"), "rule"),
        (&text, rule(&deep), "rule"),
        (&object, rule("self.b == ''"), "rule"),
        (
            &text,
            json!({ "rule": "true", "messageExpression": "5" }),
            "messageExpression",
        ),
        (
            &text,
            json!({ "rule": "true", "messageExpression": "'" }),
            "messageExpression",
        ),
        (&text, json!({ "rule": "true", "message": " " }), "message"),
        (
            &text,
            json!({ "rule": "true", "message": "a\nb" }),
            "message",
        ),
        (&text, rule("true\n|| false"), "message"),
        (
            &text,
            json!({ "rule": "true", "reason": "Wrong" }),
            "reason",
        ),
        (
            &object,
            json!({ "rule": "true", "fieldPath": ".b" }),
            "fieldPath",
        ),
        (
            &object,
            json!({ "rule": "true", "fieldPath": "a" }),
            "fieldPath",
        ),
        (
            &text,
            json!({ "rule": "true", "optionalOldSelf": true }),
            "optionalOldSelf",
        ),
    ];
    for (described, rule, member) in table {
        let found = problems(described, &rule);
        let field = format!("s.properties[v].x-kubernetes-validations[0].{member}: ");
        let mut lines = found.iter();
        assert!(
            lines.any(|line| line.starts_with(&field)),
            "{rule}: {found:?}"
        );
    }
    let mut set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": text });
    set["items"]["x-kubernetes-validations"] = json!([{ "rule": "self == oldSelf" }]);
    let causes = Rules::problems(&set, "s");
    assert_eq!(causes[0].field, "s.items.x-kubernetes-validations[0].rule");
}

/// A default is held to the rules of its schema, as if it replaced itself and as something new.
#[test]
fn defaults() {
    let text = json!({ "type": "string", "maxLength": 9 });
    for (rule, default, fields) in [
        (
            json!({ "rule": "self.a == 'x'" }),
            json!({ "a": "x" }),
            &[][..],
        ),
        (
            json!({ "rule": "self.a == 'x'" }),
            json!({ "a": "y" }),
            &["<nil>"],
        ),
        (
            json!({ "rule": "self.a == 'x'", "fieldPath": ".a" }),
            json!({ "a": "y" }),
            &["a"],
        ),
        (
            json!({ "rule": "self.a != oldSelf.a" }),
            json!({ "a": "y" }),
            &["<nil>"],
        ),
        (
            json!({ "rule": "oldSelf.hasValue()", "optionalOldSelf": true }),
            json!({ "a": "y" }),
            &["<nil>"],
        ),
        (
            json!({ "rule": "self.metadata == 'm'" }),
            json!({ "metadata": "m" }),
            &[],
        ),
    ] {
        let mut schema = object(&json!({ "a": text, "metadata": text }));
        schema["x-kubernetes-validations"] = json!([rule]);
        let causes = Rules::check_default(&schema, &default);
        let found: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(found, fields, "{rule} {causes:?}");
    }
}

/// What takes too long is stopped, and so is everything behind it.
#[test]
fn bounded() {
    let list = json!({ "type": "array", "maxItems": 30, "items": { "type": "integer" } });
    let rule = json!({ "rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))" });
    let numbers: Vec<u32> = (0..300).collect();
    let why = "Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no \
               further validation rules will be run due to call cost exceeds limit for rule: ";
    let message = format!("{why}{}", rule["rule"].as_str().unwrap_or_default());
    says(&list, &rule, &json!(numbers), &message);
}

/// The deepest rules that are read can be evaluated.
#[test]
fn deepest() {
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let sum = format!("1{} > 1", " + 1".repeat(240));
    let lists = format!("{}1{} != []", "[".repeat(240), "]".repeat(240));
    let lists = lists.replace(
        "!= []",
        &format!("== {}1{}", "[".repeat(240), "]".repeat(240)),
    );
    let calls = format!("'a'{} == 'a'", ".trim()".repeat(240));
    let negated = format!("{}true{}", "!(".repeat(240), ")".repeat(240));
    let choices = format!("{}true", "false ? false : ".repeat(240));
    let many = format!("true{}", " && true".repeat(1000));
    for rule in [sum, lists, calls, negated, choices, many] {
        let findings = check(&object, &json!({ "rule": rule }), &json!({}), None);
        assert_eq!(findings, Findings::default(), "{rule}");
    }
}
