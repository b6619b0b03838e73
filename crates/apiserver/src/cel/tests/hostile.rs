//! Whatever is written, it is read in little time and without a panic.

use proptest::prelude::*;

use super::*;
use crate::stack::with_large_stack;

/// Parts that expressions are made of, joined in whatever order.
fn source() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "self",
        ".",
        "?",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "a",
        "l",
        "m",
        "x",
        "1",
        "'a'",
        "b'a'",
        "1.5",
        "2u",
        "-",
        "!",
        "+",
        "==",
        "<",
        "&&",
        "||",
        "in",
        " ",
        ".all(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".exists(x, ",
        ".optMap(v, ",
        ".transformMap(k, v, ",
        ".sortBy(x, ",
        "has(",
        "size(",
        "true",
        "null",
        "oldSelf",
        "[?",
        "?.",
        ".orValue(",
        "optional.of(",
        "ip(",
        "'%s'",
        ".format([",
        "self.l",
        "self.m",
        "self.a",
        "// ",
        "\n",
        "r'\\'",
        "\"",
        "`a`",
        "namespace",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn schema() -> Json {
    object(&json!({
        "a": int(),
        "l": any_list(&any_text()),
        "m": { "type": "object", "additionalProperties": int() },
    }))
}

fn run(source: &str) {
    let schema = schema();
    let node = declared(&schema, false).expect("the schema has a type");
    let Ok(checked) = compiled(&node, false, source) else {
        return;
    };
    cost::estimate(&checked, &node);
    let Ok(program) = Program::new(checked) else {
        return;
    };
    let value = json!({ "a": 3, "l": ["a", "b", ""], "m": { "k": 1, "l": 2 } });
    let own = Value::of(&value, &schema, false).expect("the value fits");
    let variables = [("self", own)];
    let (outcome, steps) = evaluate(&program, &variables, &Patterns::default(), 10_000);
    // What goes over the limit is the last step.
    let stopped = matches!(outcome, Err(crate::cel::fault::Fault::Cost));
    assert!(steps <= 10_000 || stopped, "{source}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_parts(source in source()) {
        with_large_stack(|| run(&source)).expect("it does not panic");
    }

    #[test]
    fn any_text_at_all(source in "\\PC{0,60}") {
        with_large_stack(|| run(&source)).expect("it does not panic");
    }
}

/// Types that double with each step, and macros that copy what they stand behind.
#[test]
fn what_grows_with_each_step() {
    let mut doubled = "self.a".to_owned();
    let mut bound = "optional.of(self.a)".to_owned();
    for _ in 0..40 {
        doubled = format!("{{{doubled}: {doubled}}}");
        if doubled.len() > 50_000 {
            break;
        }
    }
    for _ in 0..100 {
        bound = format!("{bound}.optMap(v, {{v: v}})");
    }
    let lists = format!("[[1, 2]]{}.size() == 1", ".map(v, v + v)".repeat(60));
    let shared = format!("[[1]]{}", ".map(v, [v, v])".repeat(60));
    let formatted = format!(
        "['a']{}[0] == ''",
        ".map(v, '%s%s'.format([v, v]))".repeat(60)
    );
    let looped = format!("{}true{}", "self.l.all(x, ".repeat(30), ")".repeat(30));
    let grown = format!("'a'{} == ''", ".replace('', 'aaaaaaaaaa')".repeat(20));
    for source in [
        format!("{doubled}.size() == 1"),
        format!("{bound}.hasValue()"),
        lists,
        format!("{shared} == {shared}"),
        formatted,
        looped,
        grown,
    ] {
        with_large_stack(|| run(&source)).expect("it does not panic");
    }
}
