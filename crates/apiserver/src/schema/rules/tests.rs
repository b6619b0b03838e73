//! Rules: what they answer, what is refused, and that they end.

use serde_json::{Value, json};

use super::functions::Budget;
use super::stack::with_large_stack;
use super::{Findings, Rules, evaluate, parse};

/// A schema with one rule for a value at `v`.
fn schema(value: &Value, rule: &Value) -> Value {
    let mut value = value.clone();
    value["x-kubernetes-validations"] = json!([rule]);
    json!({ "type": "object", "properties": { "v": value } })
}

/// What is wrong with a rule in a definition, as `field: message`.
#[track_caller]
fn problems(value: &Value, rule: &Value) -> Vec<String> {
    let (_, causes) = Rules::compile(&schema(value, rule), "s");
    let line = |cause: crate::status::Cause| format!("{}: {}", cause.field, cause.message);
    causes.into_iter().map(line).collect()
}

/// What a rule says about a value and the one before.
#[track_caller]
fn check(described: &Value, rule: &Value, value: &Value, old: Option<&Value>) -> Findings {
    let schema = schema(described, rule);
    let (rules, causes) = Rules::compile(&schema, "s");
    assert_eq!(causes, [], "{rule}");
    let object = json!({ "v": value });
    let old = old.map(|old| json!({ "v": old }));
    rules.check(&schema, &object, old.as_ref())
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn answers() {
    let text = json!({ "type": "string", "maxLength": 50 });
    let texts = json!({ "type": "array", "maxItems": 9, "items": text });
    let number = json!({ "type": "number" });
    let map = json!({ "type": "object", "maxProperties": 9, "additionalProperties": text });
    let object = json!({ "type": "object", "properties": {
        "a": text, "namespace": text, "a-b": text, "a__b": text, "n": { "type": "integer" },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    let table = [
        (&text, "self.size() == 2", json!("äö")),
        (
            &text,
            "self.matches('^a+$') && self.find('a') == 'a'",
            json!("aaa"),
        ),
        (
            &text,
            "self.lowerAscii().split(',').join('-') == 'a-b'",
            json!("A,B"),
        ),
        (&text, "type(self) == string && type(1) == int", json!("")),
        (
            &text,
            "'%s is %d'.format([self, 5]) == 'x is 5'",
            json!("x"),
        ),
        (
            &text,
            "semver(self).isLessThan(semver('2.0.0'))",
            json!("1.9.0"),
        ),
        (
            &text,
            "!format.dns1123Label().validate(self).hasValue()",
            json!("a-b"),
        ),
        (
            &texts,
            "self.map(x, x + '!').exists(x, x == 'b!')",
            json!(["a", "b"]),
        ),
        (
            &texts,
            "self.filter(x, x > 'a').size() == 1",
            json!(["a", "b"]),
        ),
        (&texts, "self.exists_one(x, x == 'a')", json!(["a", "b"])),
        (&texts, "sets.contains(self, ['a'])", json!(["a", "b"])),
        (&texts, "self == ['a'] || 'b' in self", json!(["a", "b"])),
        (&number, "self > 2 && self == 3.0", json!(3)),
        (
            &map,
            "self.all(k, k.startsWith('a') && self[k] != '')",
            json!({ "ab": "x" }),
        ),
        (
            &map,
            "self[?'x'].orValue('none') == 'none'",
            json!({ "y": "" }),
        ),
        (&map, "has(self.y) && !has(self.x)", json!({ "y": "" })),
        (
            &object,
            "self.__namespace__ == 'n' && self.a__dash__b == 'd'",
            json!({ "namespace": "n", "a-b": "d" }),
        ),
        (
            &object,
            "self.a__underscores__b == 'u'",
            json!({ "a__b": "u" }),
        ),
        (&object, "self.?a.orValue('x') == 'x'", json!({})),
        (
            &object,
            "self.?a.optMap(v, v + '!').orValue('x') == 'y!'",
            json!({ "a": "y" }),
        ),
        (&object, "!self.?a.optMap(v, v + '!').hasValue()", json!({})),
        (
            &object,
            "self.?a.optFlatMap(v, optional.of(v)).value() == 'y'",
            json!({ "a": "y" }),
        ),
        (
            &object,
            "self.free.x[0].y == 1",
            json!({ "free": { "x": [{ "y": 1 }] } }),
        ),
        (
            &object,
            "self.n / 2 == 3 && self.n % 2 == 1 && -self.n < 0",
            json!({ "n": 7 }),
        ),
        (
            &object,
            "self.n > 5 ? has(self.a) : true",
            json!({ "n": 1 }),
        ),
    ];
    for (described, rule, value) in table {
        let rule = json!({ "rule": rule });
        assert_eq!(
            check(described, &rule, &value, None),
            Findings::default(),
            "{rule}"
        );
    }
}

#[test]
fn answers_by_format() {
    let format = |name: &str| json!({ "type": "string", "format": name });
    let int_or_string = json!({ "x-kubernetes-int-or-string": true });
    for (described, rule, value) in [
        (
            format("date-time"),
            "self < timestamp('2024-01-01T00:00:00Z')",
            json!("2023-12-31T23:59:59.5Z"),
        ),
        (
            format("date"),
            "self.getFullYear() == 2023 && self.getDayOfMonth() == 30",
            json!("2023-12-31"),
        ),
        (
            format("duration"),
            "self == duration('90m')",
            json!("1h30m"),
        ),
        (format("byte"), "self.size() == 3", json!("YWJj")),
        (
            int_or_string.clone(),
            "type(self) == int ? self < 5 : self.endsWith('%')",
            json!("4%"),
        ),
        (
            int_or_string,
            "type(self) == int ? self < 5 : self.endsWith('%')",
            json!(4),
        ),
    ] {
        let rule = json!({ "rule": rule });
        assert_eq!(
            check(&described, &rule, &value, None),
            Findings::default(),
            "{rule}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn broken_rules() {
    let text = json!({ "type": "string" });
    let list = json!({ "type": "array", "maxItems": 9, "items": { "type": "integer" } });
    let table = [
        (
            &text,
            json!({ "rule": "self == 'a'" }),
            "Invalid value: \"b\": failed rule: self == 'a'",
        ),
        (
            &text,
            json!({ "rule": "self == 'a'", "message": " no " }),
            "Invalid value: \"b\": no",
        ),
        (
            &text,
            json!({ "rule": "self == 'a'", "messageExpression": "'not ' + self" }),
            "Invalid value: \"b\": not b",
        ),
        (
            &text,
            json!({ "rule": "self == 'a'", "messageExpression": "'a\\nb'", "message": "m" }),
            "Invalid value: \"b\": m",
        ),
        (
            &text,
            json!({ "rule": "self == 'a'", "messageExpression": "string(int(self))", "message": "m" }),
            "Invalid value: \"b\": m",
        ),
        (
            &text,
            json!({ "rule": "false", "reason": "FieldValueDuplicate" }),
            "Duplicate value: \"b\"",
        ),
        (
            &text,
            json!({ "rule": "false", "reason": "FieldValueForbidden", "message": "m" }),
            "Forbidden: m",
        ),
        (
            &text,
            json!({ "rule": "int(self) > 1" }),
            "Invalid value: \"b\": string parse error: invalid digit found in string evaluating rule: int(self) > 1",
        ),
        (
            &list,
            json!({ "rule": "self[2] > 1" }),
            "Invalid value: index out of bounds evaluating rule: self[2] > 1",
        ),
        (
            &list,
            json!({ "rule": "10 / self[0] > 1" }),
            "Invalid value: division by zero evaluating rule: 10 / self[0] > 1",
        ),
        (
            &list,
            json!({ "rule": "9223372036854775807 + self[0] + 1 > 1" }),
            "Invalid value: integer overflow evaluating rule: 9223372036854775807 + self[0] + 1 > 1",
        ),
    ];
    for (described, rule, message) in table {
        let value = if described == &text {
            json!("b")
        } else {
            json!([0])
        };
        let findings = check(described, &rule, &value, None);
        let messages: Vec<&str> = findings
            .causes
            .iter()
            .map(|cause| cause.message.as_str())
            .collect();
        assert_eq!(messages, [message], "{rule}");
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
#[expect(clippy::too_many_lines, reason = "a table")]
fn refused_in_definitions() {
    let text = json!({ "type": "string", "maxLength": 9 });
    let list =
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } });
    let object = json!({ "type": "object", "properties": { "a": text } });
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": text });
    let deep = format!("{}1{} == 1", "(".repeat(5000), ")".repeat(5000));
    let long = format!("1{} > 1", " + 1".repeat(3000));
    let chain = format!("self{} == ''", ".trim()".repeat(1000));
    let rule = |rule: &str| json!({ "rule": rule });
    // A described value, a rule for it, and the member of the rule that is refused.
    let table = [
        (&text, rule(""), "rule"),
        (&text, rule("self =="), "rule"),
        (&text, rule("self == 5"), "rule"),
        (&text, rule("size(self)"), "rule"),
        (&text, rule("self.a == 1"), "rule"),
        (&text, rule("self.all(x, true)"), "rule"),
        (&text, rule("other == 1"), "rule"),
        (&text, rule("nothing(self)"), "rule"),
        (&text, rule("self && true"), "rule"),
        (&text, rule("Foo{a: 1} == self"), "rule"),
        (&text, rule("self.all(x, y, true)"), "rule"),
        (&text, rule("has(self)"), "rule"),
        (&text, rule("'a"), "rule"),
        (&text, rule("\u{0}"), "rule"),
        (&text, rule("self.optMap(1, 2)"), "rule"),
        (&text, rule(&deep), "rule"),
        (&text, rule(&long), "rule"),
        (&text, rule(&chain), "rule"),
        (&object, rule("self.b == ''"), "rule"),
        (&object, rule("self.a + 1 == 2"), "rule"),
        (&list, rule("self.all(x, self.all(y, x == y))"), "rule"),
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
        (&text, json!({ "rule": "true\n|| false" }), "message"),
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
        assert!(
            found.iter().any(|line| line.starts_with(&field)),
            "{rule}: {found:?}"
        );
    }
    let mut inner = set;
    inner["items"]["x-kubernetes-validations"] = json!([{ "rule": "self == oldSelf" }]);
    let (_, causes) = Rules::compile(&inner, "s");
    assert_eq!(causes[0].field, "s.items.x-kubernetes-validations[0].rule");
}

/// A rule that would go on for very long, or make something very large, is stopped while it runs,
/// even if it was let pass.
#[test]
fn bounded() {
    let doubled = format!("['x']{} != []", ".map(x, x + x)".repeat(40));
    let nested = format!("[1]{} != []", ".map(x, [x, x])".repeat(40));
    let replaced = format!("self.s{} != ''", ".replace('', 'abcdefghij')".repeat(20));
    let listed = format!("self.l{} == []", ".map(x, x)".repeat(20));
    let wide = "[self.s, self.s, self.s].map(x, x + x).join('') != ''";
    for (rule, steps, stopped) in [
        (
            "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))",
            10_000,
            true,
        ),
        (&doubled, 10_000, true),
        (&nested, 10_000, true),
        (&replaced, 10_000, true),
        (&listed, 10_000, true),
        (wide, 10, true),
        (wide, 1000, false),
    ] {
        let test = with_large_stack(|| parse::parse(rule).expect("it can be read"));
        let test = test.expect("nothing panics");
        let own = super::Rule {
            test: parse::metered(test),
            source: rule.to_owned(),
            message: None,
            message_expression: None,
            reason: super::Reason::Invalid,
            path: String::new(),
            is_transition: false,
            optional_old: false,
        };
        let rules = Rules {
            own: vec![own],
            ..Rules::default()
        };
        let list: Vec<u32> = (0..300).collect();
        let value = json!({ "l": list, "s": "x".repeat(100) });
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let budget = Budget::new(steps, steps);
        let findings = with_large_stack(|| evaluate::check(&rules, &free, &value, None, budget));
        let findings = findings.expect("nothing panics");
        let messages: Vec<&str> = findings
            .causes
            .iter()
            .map(|cause| &*cause.message)
            .collect();
        let found = messages.iter().any(|why| why.contains("more steps"));
        assert_eq!(found, stopped, "{rule}: {messages:?}");
    }
}

/// The deepest rules that are read can be evaluated.
#[test]
fn deepest() {
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let sum = format!("1{} > 1", " + 1".repeat(90));
    let lists = format!("{}1{} != []", "[".repeat(90), "]".repeat(90));
    let calls = format!("'a'{} == 'a'", ".trim()".repeat(45));
    let negated = format!("{}true{}", "!(".repeat(46), ")".repeat(46));
    let loops = format!("{}true{}", "[1].all(x, ".repeat(30), ")".repeat(30));
    let choices = format!("{}true", "false ? false : ".repeat(60));
    let members = format!("!has(self.a.{}b) || true", "b.".repeat(80));
    let many = format!("true{}", " && true".repeat(1000));
    for rule in [sum, lists, calls, negated, loops, choices, members, many] {
        let findings = check(&free, &json!({ "rule": rule }), &json!({}), None);
        assert_eq!(findings, Findings::default(), "{rule}");
    }
}

proptest::proptest! {
    /// No text, however wrong, brings the server down: neither as a rule nor when it runs.
    #[test]
    fn any_text(parts in proptest::collection::vec(0..WORDS.len(), 1..12)) {
        let words: Vec<&str> = parts.iter().map(|part| WORDS[*part]).collect();
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        for rule in [words.join(""), words.join(" ")] {
            let schema = schema(&free, &json!({ "rule": rule }));
            let (rules, causes) = Rules::compile(&schema, "s");
            assert_eq!(rules.is_empty(), !causes.is_empty(), "{rule}");
            let value = json!({ "v": { "a": [1, "x", null, { "b": 0.5 }] } });
            rules.check(&schema, &value, Some(&value));
        }
    }
}

const WORDS: [&str; 46] = [
    "self",
    "oldSelf",
    "a",
    ".a",
    "[0]",
    "['a']",
    ".?a",
    "[?0]",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "1",
    "1u",
    "-9223372036854775808",
    "1.5",
    "1e400",
    "'x'",
    "b'x'",
    "r'\\'",
    "\"\"\"",
    "'\\u12'",
    "null",
    "true",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "<",
    "in",
    "&&",
    "||",
    "!",
    "?",
    ":",
    "size(",
    ".all(x, ",
    ".map(x, x + ",
    "has(",
    ".optMap(x, ",
    "duration('1h') ",
];
