use super::*;

fn schema() -> Json {
    object(&json!({
        "a": int(),
        "f": { "type": "number" },
        "s": any_text(),
        "b": { "type": "boolean" },
        "t": { "type": "string", "format": "date-time" },
        "o": object(&json!({ "x": int() })),
        "l": any_list(&any_text()),
        "m": { "type": "object", "additionalProperties": any_text() },
        "p": { "x-kubernetes-int-or-string": true },
        "namespace": any_text(),
        "in": any_text(),
    }))
}

fn decision(optional_old: bool, source: &str) -> Result<(), String> {
    let node = declared(&schema(), false).expect("the schema has a type");
    let checked = compiled(&node, optional_old, source)?;
    if !checked.root_kind().same(&Type::Bool) {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    Program::new(checked)
        .map(|_| ())
        .map_err(|why| format!("program instantiation failed: {why}"))
}

#[test]
fn accepted() {
    for source in [
        "self.a < 1.5",
        "self.f > 5",
        "1u < self.a",
        "self.o == null",
        "self.t == null",
        "self.p == null",
        "self.p == true",
        "self.p == 'x'",
        "self.p > 3",
        "self.b",
        "self.?b.orValue(false)",
        "self.a > 0 ? self.b : true",
        "self.m.x == 'a'",
        "has(self.m.x)",
        "self.m['x'] == 'a'",
        "'x' in self.m",
        "'%s %d'.format(['a', 1]) == ''",
        "self.namespace == 'a'",
        "self.__namespace__ == 'a'",
        "self.__in__ == 'a'",
        "sign(quantity('1')) == 1",
        "self.l.first().orValue('') == ''",
        "self.l.existsOne(i, x, x == 'a')",
        "lists.range(3).size() == 3",
        "type(self.t) == google.protobuf.Timestamp",
        "self.l.map(x, [x, x]).flatten().size() == 2",
        "self.m.transformList(k, v, k + v).join(',') == 'xa'",
        "{?'a': self.?s, 'b': 'c'}.size() == 2",
        "[?self.?s, 'c'].size() == 2",
        "self.l.sortBy(x, x.size())[0] == 'a'",
        "ip.isCanonical(self.s) && cidr(self.s).ip().family() == 4",
        "self.?o.x.orValue(1) == 1",
        "self.?o.?x.hasValue()",
        "timestamp(self.t) == self.t && duration(duration('1s')) == duration('1s')",
        "self.s.split(',').map(x, x.trim()).exists_one(x, x == '')",
        "// a comment\nself.b",
        "r'\\d' == '\\\\d' && '''a'b''' == \"a'b\" && b'a' == b'\\x61'",
    ] {
        assert_eq!(decision(false, source), Ok(()), "{source}");
    }
    for source in [
        "oldSelf.o.x.orValue(0) < 3",
        "oldSelf.hasValue() || self.a > 0",
    ] {
        assert_eq!(decision(true, source), Ok(()), "{source}");
    }
}

#[test]
fn refused() {
    let no_overload = "found no matching overload for";
    for (source, why) in [
        ("self.a == 1.0", no_overload),
        ("self.f == 5", no_overload),
        ("self.a + 1.0 > 2.0", no_overload),
        ("1 in self.l", no_overload),
        ("self.l[0] == 1", no_overload),
        ("self.t > '2020'", no_overload),
        ("self.s == null", no_overload),
        ("self.l == null", no_overload),
        ("self.m == null", no_overload),
        ("self.p", "must evaluate to a bool"),
        ("self.a", "must evaluate to a bool"),
        ("optional.of(true)", "must evaluate to a bool"),
        ("self.?a == 1", no_overload),
        (
            "self.a > 0 && self.s",
            "expected type 'bool' but found 'string'",
        ),
        ("self.o.all(k, true)", "cannot be range of a comprehension"),
        ("self.o['x'] == 1", no_overload),
        ("has(self.o.y)", "undefined field 'y'"),
        ("self.y == 1", "undefined field 'y'"),
        ("has(self.l[0])", "invalid argument to has() macro"),
        ("has(self)", "invalid argument to has() macro"),
        (
            "[1, 'a'].size() == 2",
            "expected type 'int' but found 'string'",
        ),
        (
            "[self.a, dyn(1)].size() == 2",
            "expected type 'int' but found 'dyn'",
        ),
        (
            "{'a': 1, 'b': 'c'}.size() == 2",
            "expected type 'int' but found 'string'",
        ),
        ("self.s.matches('[')", "invalid matches argument"),
        (
            "self.s.find('[') == ''",
            "program instantiation failed: error parsing regexp",
        ),
        (
            "duration('1x') < duration('1s')",
            "invalid duration argument",
        ),
        ("namespace == 'a'", "reserved identifier: namespace"),
        ("self.in == 'a'", "Syntax error"),
        ("self.s.reverse() == 'x'", no_overload),
        ("quantity('1').sign() == 1", no_overload),
        (
            "self.l.existsOne(x, x == 'a')",
            "undeclared reference to 'x'",
        ),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math'"),
        ("self.l.all(1, true)", "argument must be a simple name"),
        ("self.l.all(a, a, true)", "duplicate variable name: a"),
        ("`a` == 1", "unsupported syntax: '`'"),
        ("self.s == 'a", "token recognition error"),
        ("self.a == 9223372036854775808", "invalid int literal"),
    ] {
        let decided = decision(false, source);
        let found = decided.as_ref().err();
        assert!(
            found.is_some_and(|found| found.contains(why)),
            "{source}: {decided:?}"
        );
    }
    let decided = decision(true, "self.a >= oldSelf.a");
    assert!(decided.is_err_and(|found| found.contains(no_overload)));
}

#[test]
fn a_place_is_shown_below_its_line() {
    let found = decision(false, "self.a > 0 &&\n  'é' == self.y");
    let wanted = "ERROR: <input>:2:14: undefined field 'y'\n |   'é' == self.y\n | ...．.........^";
    assert_eq!(found, Err(wanted.to_owned()));
}

#[test]
fn expressions_have_a_deepest_level() {
    let nested = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
    let added = |count: usize| format!("1{} > 0", " + 1".repeat(count));
    let limit = "expression recursion limit exceeded: 250";
    for (source, deep) in [
        (nested(249), false),
        (nested(250), true),
        (added(248), false),
        (added(249), true),
        (format!("true{}", " && true".repeat(2000)), false),
    ] {
        let found = crate::stack::with_large_stack(|| decision(false, &source)).expect("a thread");
        let refused = found.is_err_and(|found| found.contains(limit));
        assert_eq!(refused, deep, "{}", source.len());
    }
}
