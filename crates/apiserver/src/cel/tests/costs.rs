use super::*;

const TENTH_OF_ALL: u64 = 1_844_674_407_370_955_264;

#[track_caller]
fn costs(cases: &[(Json, &str, u64)]) {
    for (schema, source, wanted) in cases {
        assert_eq!(
            cost_of(schema, false, source),
            *wanted,
            "{source} on {schema}"
        );
    }
}

#[test]
fn of_single_values() {
    let numbers = object(&json!({ "a": int(), "b": int(), "c": int() }));
    let mixed = object(&json!({ "a": int(), "s": text(10) }));
    let texts = object(&json!({ "a": text(10), "b": text(20) }));
    let short = object(&json!({ "a": text(10), "b": text(10), "s": text(10), "n": int() }));
    let word = "^[a-z]+$";
    costs(&[
        (numbers.clone(), "self.a == 5", 2),
        (numbers.clone(), "self.a <= self.b", 5),
        (text(10), &format!("self.matches('{word}')"), 11),
        (any_text(), &format!("self.matches('{word}')"), 629_147),
        (texts, "size(self.a + self.b) < 5", 18),
        (text(100), "self == oldSelf", 42),
        (any_text(), "self == oldSelf", 314_575),
        (mixed.clone(), "!has(self.s) || self.s in ['a','b','c']", 17),
        (
            mixed,
            "self.a > 0 ? self.s.contains('x') : self.s == 'abcdefghijklmnopqrst'",
            9,
        ),
        (
            short.clone(),
            "quantity(self.a).isLessThan(quantity(self.b))",
            13,
        ),
        (
            short.clone(),
            "quantity(self.a) != quantity(self.b)",
            TENTH_OF_ALL + 12,
        ),
        (numbers.clone(), "self.?a.orValue(0) > 0", 4),
        (
            short.clone(),
            "self.?s.orValue('').matches('^a')",
            TENTH_OF_ALL + 3,
        ),
        (
            short.clone(),
            "self.?s.optMap(v, v.startsWith('a')).orValue(true)",
            20,
        ),
        (
            json!({ "type": "string", "enum": ["A", "B", "LongValue"] }),
            "self.contains('A')",
            2,
        ),
        (short.clone(), "'value %s'.format([self.s])", 13),
        (short, "'value ' + string(self.n)", TENTH_OF_ALL + 3),
        (
            numbers,
            "[has(self.a),has(self.b),has(self.c)].filter(x, x == true).size() == 1",
            68,
        ),
    ]);
}

#[test]
fn of_lists_and_maps() {
    let named = |max: u64| object(&json!({ "name": text(max) }));
    let on = object(&json!({ "on": { "type": "boolean" } }));
    let kinds = object(&json!({ "type": any_text() }));
    let word = "^[a-z]+$";
    costs(&[
        (
            list(&text(63), 64),
            &format!("self.all(x, x.matches('{word}'))"),
            3586,
        ),
        (
            any_list(&text(63)),
            &format!("self.all(x, x.matches('{word}'))"),
            58_720_202,
        ),
        (
            object(&json!({ "l": list(&on, 10) })),
            "self.l.filter(i, i.on).size() <= 1",
            165,
        ),
        (
            list(&named(63), 16),
            "self.all(x, self.exists_one(y, x.name == y.name))",
            8290,
        ),
        (
            any_list(&named(63)),
            "self.all(x, self.exists_one(y, x.name == y.name))",
            35_184_311_271_452,
        ),
        (
            object(&json!({ "c": list(&kinds, 8) })),
            "self.c.all(a, self.c.exists_one(b, a.type == b.type))",
            20_133_115,
        ),
        (
            map(&text(20), 10),
            "self.all(k, k.startsWith('a') && self[k].size() <= 5)",
            102,
        ),
        (
            map(&text(20), 10),
            &format!("self.all(k, k.matches('{word}'))"),
            62,
        ),
        (
            map(&text(20), 10),
            &format!("self.all(k, self[k].matches('{word}'))"),
            242,
        ),
        (
            object(&json!({ "l": any_list(&int()) })),
            "self.l.all(x, x > 0)",
            7_864_318,
        ),
        (
            object(&json!({ "l": any_list(&int()) })),
            "self.l.all(x, self.l.exists(y, y == x))",
            14_843_397_537_795,
        ),
    ]);
}

#[test]
fn of_functions_of_lists() {
    costs(&[
        (
            object(&json!({ "l": list(&text(10), 10) })),
            "self.l.isSorted()",
            52,
        ),
        (
            object(&json!({ "l": list(&text(10), 10) })),
            "self.l.map(x, x).isSorted()",
            u64::MAX,
        ),
        (
            object(&json!({ "l": list(&text(10), 10) })),
            "self.l.join('-') == 'x'",
            44,
        ),
        (list(&int(), 10), "self.all(i, v, v > i)", 62),
        (
            map(&int(), 10),
            "self.transformMap(k, v, v + 1).size() == 10",
            84,
        ),
        (
            object(&json!({ "a": list(&int(), 10), "b": list(&int(), 20) })),
            "sets.contains(self.a, self.b)",
            205,
        ),
        (
            object(&json!({ "a": list(&int(), 10) })),
            "self.a.distinct().size() == self.a.size()",
            218,
        ),
        (text(10), "self.split(',').all(p, p == 'abc')", 210),
    ]);
}

#[test]
fn of_values_with_formats() {
    let either = |limits: Json| {
        let mut schema = json!({ "x-kubernetes-int-or-string": true });
        if let (Some(schema), Json::Object(limits)) = (schema.as_object_mut(), limits) {
            schema.extend(limits);
        }
        object(&json!({ "p": schema }))
    };
    let duration = json!({ "type": "string", "format": "duration" });
    costs(&[
        (
            either(json!({})),
            "type(self.p) == int ? self.p > 0 : self.p.endsWith('%')",
            7,
        ),
        (
            either(json!({ "maxLength": 10 })),
            "type(self.p) == string && self.p.matches('^[0-9]+%$')",
            21,
        ),
        (
            object(&json!({ "d": duration })),
            "self.d < duration('1h')",
            4,
        ),
        (
            object(&json!({ "c": text(49), "i": text(45) })),
            "cidr(self.c).containsIP(self.i)",
            46,
        ),
        (
            object(&json!({ "n": text(63) })),
            "!format.dns1123Label().validate(self.n).hasValue()",
            837,
        ),
    ]);
}

/// What a server does to sizes by accident decides about definitions, and so it is done here.
#[test]
fn with_the_oddities_of_servers() {
    let ports = |name: &Json| {
        let item = object(&json!({ "ports": list(&int(), 4), "name": name }));
        object(&json!({ "l": list(&item, 8) }))
    };
    let strs = object(&json!({ "strs": any_list(&any_text()), "n": int() }));
    let named = object(&json!({ "on": { "type": "boolean" }, "name": text(10) }));
    let filtered = "self.items.filter(i, i.on).all(j, j.name.matches('^x'))";
    let namespace = object(&json!({ "namespace": text(63) }));
    costs(&[
        (
            ports(&any_text()),
            "self.l.all(x, x.ports.all(p, p > 0 || x.name == ''))",
            176_160_707,
        ),
        (
            ports(&text(63)),
            "self.l.all(x, x.ports.all(p, p > 0 || x.name == ''))",
            14_163,
        ),
        (
            object(&json!({ "l": list(&strs, 8) })),
            "self.l.all(x, x.strs.all(s, s.matches('^a+$') || x.n > 0))",
            51,
        ),
        (
            object(&json!({ "spec": object(&json!({ "m": map(&any_text(), 10) })) })),
            "self.spec.m.all(k, v, k.matches('^[a-z]+$'))",
            6_291_504,
        ),
        (
            object(&json!({ "items": list(&named, 10) })),
            filtered,
            u64::MAX,
        ),
        (
            object(&json!({ "items": list(&named, 10), "name": text(5) })),
            filtered,
            244,
        ),
        (
            namespace.clone(),
            "self.namespace.matches('^a')",
            TENTH_OF_ALL + 2,
        ),
        (namespace, "self.__namespace__.matches('^a')", 28),
        (
            object(&json!({ "a": any_text() })),
            "matches(self.a, '^a')",
            3,
        ),
        (
            object(&json!({ "a": any_text() })),
            "self.a.matches('^a')",
            314_575,
        ),
    ]);
}

#[test]
fn of_the_metadata_of_objects() {
    let rule = "self.metadata.name.matches('^[a-z]{1,10}$')";
    let open = object(&json!({ "spec": object(&json!({})) }));
    assert_eq!(cost_of(&open, true, rule), 1_258_295);
    // A limit counts only where all of the members are described.
    let named = object(&json!({ "metadata": object(&json!({ "name": text(63) })) }));
    assert_eq!(cost_of(&named, true, rule), 1_258_295);
    let metadata = object(&json!({ "name": text(63), "generateName": any_text() }));
    let whole = object(&json!({
        "metadata": metadata,
        "apiVersion": any_text(),
        "kind": any_text(),
    }));
    assert_eq!(cost_of(&whole, true, rule), 3 + 26 * 4);
}
