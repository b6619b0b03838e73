use super::*;

#[track_caller]
fn holds(schema: &Json, value: &Json, sources: &[&str]) {
    for source in sources {
        assert_eq!(outcome(schema, value, source), Ok(true), "{source}");
    }
}

#[track_caller]
fn fails(schema: &Json, value: &Json, cases: &[(&str, &str)]) {
    for (source, why) in cases {
        let found = outcome(schema, value, source);
        assert_eq!(found, Err((*why).to_owned()), "{source}");
    }
}

/// For expressions that need no value.
fn nothing() -> (Json, Json) {
    (object(&json!({})), json!({}))
}

#[test]
fn of_members() {
    let schema = object(&json!({
        "a": int(),
        "namespace": any_text(),
        "__in__": any_text(),
        "x-y/z.w": any_text(),
        "return": any_text(),
        "o": object(&json!({ "b": any_text(), "n": int() })),
        "m": { "type": "object", "additionalProperties": any_text() },
        "b": { "type": "string", "format": "byte" },
        "t": { "type": "string", "format": "date-time" },
        "d": { "type": "string", "format": "duration" },
        "f": { "type": "number" },
        "p": { "x-kubernetes-int-or-string": true },
        "gone": any_text(),
    }));
    let value = json!({
        "a": 3, "namespace": "n", "__in__": "i", "x-y/z.w": "e", "return": "r", "o": { "b": "x" },
        "m": { "k": "v" }, "b": "YWI=", "t": "2020-01-02T03:04:05.5Z", "d": "1d2h", "f": 3, "p": 7,
        "gone": null,
    });
    holds(
        &schema,
        &value,
        &[
            "self.a == 3 && self.namespace == 'n' && self.__namespace__ == 'n'",
            "self.__underscores__in__underscores__ == 'i'",
            "self.x__dash__y__slash__z__dot__w == 'e' && self.__return__ == 'r'",
            "has(self.o.b) && !has(self.o.n) && !has(self.gone)",
            "self.?o.b.orValue('') == 'x' && self.?o.n.orValue(5) == 5",
            "self.?gone.orValue('none') == 'none'",
            "self.m[?'k'].orValue('') == 'v' && !self.m[?'l'].hasValue()",
            "'k' in self.m && self.m.k == 'v' && self.m.size() == 1",
            "self.b.size() == 2 && string(self.b) == 'ab' && self.b == b'ab'",
            "self.t == timestamp('2020-01-02T03:04:05.500Z') && timestamp(self.t) == self.t",
            "self.t.getFullYear() == 2020 && self.t.getMonth() == 0 && self.t.getDate() == 2",
            "self.t.getDayOfWeek() == 4 && self.t.getMilliseconds() == 500",
            "self.t.getHours('+02:00') == 5 && self.t + duration('1h') > self.t",
            "self.d == duration('26h') && self.d.getHours() == 26 && string(self.d) == '93600s'",
            "self.f == 3.0 && type(self.f) == double && self.p == 7 && type(self.p) == int",
            "self.o == self.o && self.m == {'k': 'v'} && self.?o.optMap(o, o.b).value() == 'x'",
            "oldSelf == self",
        ],
    );
    fails(
        &schema,
        &value,
        &[
            ("self.o.n > 1", "no such key: n"),
            ("self.m.l == ''", "no such key: l"),
            ("self.gone == ''", "no such key: gone"),
            ("self.p.startsWith('a')", "no such overload: startsWith"),
            ("self.p + 'a' == ''", "no such overload"),
            ("self.a / 0 == 1", "division by zero"),
            ("self.a + 9223372036854775807 > 0", "integer overflow"),
            ("self.?gone.value() == ''", "optional.none() dereference"),
            (
                "int('x') == 1",
                "type conversion error from 'string' to 'int'",
            ),
        ],
    );
}

#[test]
fn of_lists_that_are_sets_or_maps() {
    let item = object(&json!({ "k": any_text(), "v": int() }));
    let schema = object(&json!({
        "set": { "type": "array", "items": any_text(), "x-kubernetes-list-type": "set" },
        "other": { "type": "array", "items": any_text(), "x-kubernetes-list-type": "set" },
        "map": {
            "type": "array", "items": item, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "plain": any_list(&any_text()),
    }));
    let value = json!({
        "set": ["a", "b"], "other": ["b", "a"], "plain": ["b", "a"],
        "map": [{ "k": "x", "v": 1 }, { "k": "y", "v": 2 }],
    });
    holds(
        &schema,
        &value,
        &[
            "self.set == self.other && self.set == self.plain && !(self.plain == self.set)",
            "(self.set + self.other).size() == 2 && (self.plain + self.set).size() == 4",
            "(self.map + [self.map[0]]).size() == 2",
            "self.map.exists_one(e, e.k == 'x') && self.map.all(e, e.v > 0)",
            "self.map.map(e, e.v) == [1, 2] && self.map.filter(e, e.v > 1).size() == 1",
            "self.plain.isSorted() == false && self.plain.max() == 'b' && self.plain.indexOf('a') == 1",
            "self.set.all(i, v, i < 2 && v != '') && self.map.transformList(i, e, e.v + i) == [1, 3]",
            "self.map.transformMapEntry(i, e, {e.k: e.v}) == {'x': 1, 'y': 2}",
            "sets.equivalent(self.set, self.plain) && self.plain.join('-') == 'b-a'",
            "self.plain.first().value() == 'b' && self.plain.sort() == ['a', 'b']",
            "self.map.sortBy(e, -e.v).map(e, e.k) == ['y', 'x']",
        ],
    );
    fails(
        &schema,
        &value,
        &[
            ("self.plain[2] == ''", "index out of bounds: 2"),
            (
                "self.map.transformMapEntry(i, e, {'x': 1}).size() == 1",
                "insert failed: key x already exists",
            ),
        ],
    );
}

#[test]
fn of_errors_that_are_absorbed() {
    let (schema, value) = nothing();
    holds(
        &schema,
        &value,
        &[
            "1 / 0 > 0 || true",
            "true || 1 / 0 > 0",
            "!(1 / 0 > 0 && false)",
            "[0, 1].exists(x, 1 / x > 0)",
            "![1, 0].all(x, 1 / x > 1)",
            "![0, 2].all(x, 1 / x > 1)",
        ],
    );
    fails(
        &schema,
        &value,
        &[
            ("1 / 0 > 0 || false", "division by zero"),
            ("[0, 1].all(x, 1 / x > 0)", "division by zero"),
            ("[1, 0].exists_one(x, 1 / x > 0)", "division by zero"),
            (
                "[1, 0].filter(x, 1 / x > 0).size() == 1",
                "division by zero",
            ),
            ("1 / 0 > 0 ? true : true", "division by zero"),
        ],
    );
}

#[test]
fn of_texts() {
    let (schema, value) = nothing();
    holds(
        &schema,
        &value,
        &[
            "'abc'.substring(1) == 'bc' && 'añc'.substring(1, 2) == 'ñ' && 'abc'.charAt(3) == ''",
            "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
            "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split(',', 0) == []",
            "'abcabc'.indexOf('c') == 2 && 'abcabc'.lastIndexOf('c') == 5 && 'a'.indexOf('z') == -1",
            "'aXa'.replace('a', 'b') == 'bXb' && 'aa'.replace('a', 'b', 1) == 'ba'",
            "' a '.trim() == 'a' && 'aB'.upperAscii() == 'AB' && 'aB'.lowerAscii() == 'ab'",
            "'abc'.matches('^[a-z]+$') && matches('a.c', r'a\\.c') && 'abc'.find('b.') == 'bc'",
            "'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
            "'%s %d %.2f %x %b %o %e'.format(['a', 1, 2.5, 255, 5, 8, 1500.0]) == \
             'a 1 2.50 ff 101 10 1.500000e+03'",
            "'%s'.format([[1, 'a', true]]) == '[1, \"a\", true]' && '%%'.format([]) == '%'",
            "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
            "'%s'.format([{'a': 3}]) == '{\"a\":3}' && '%s'.format([{0: 6}]) == '{0:6}'",
            "string(1.0) == '1' && string(1e21) == '1e+21' && string(0.00001) == '1e-05'",
            "'é'.size() == 1 && bytes('é').size() == 2 && int('-3') == -3 && double('1.5') == 1.5",
            "1 < 1.5 && 2u > 1 && 1.0 <= 1 && dyn(1) == dyn(1.0) && dyn(1) == dyn(1u)",
            "duration('1h30m') == duration('90m') && string(duration('1500ms')) == '1.5s'",
        ],
    );
    fails(
        &schema,
        &value,
        &[
            ("'a'.substring(0, 2) == ''", "index out of range: 2"),
            (
                "'a'.matches('a' + '(') ",
                "error parsing regexp: missing closing ): `a(`",
            ),
        ],
    );
}

#[test]
fn of_addresses() {
    let (schema, value) = nothing();
    holds(
        &schema,
        &value,
        &[
            "isIP('1.2.3.4') && isIP('::1') && !isIP('1.2.3') && !isIP('01.2.3.4')",
            "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('') && !isIP('1.2.3.256')",
            "ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()",
            "ip('224.0.0.1').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast()",
            "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
            "ip('::1') == ip('0:0:0:0:0:0:0:1') && string(ip('0:0::1')) == '::1'",
            "!ip.isCanonical('2001:DB8::1') && ip.isCanonical('2001:db8::1')",
            "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && isCIDR('::/0')",
            "!isCIDR('10.0.0.0/+8') && !isCIDR('10.0.0.0') && isCIDR('10.1.0.0/8')",
            "cidr('10.1.0.0/8').containsIP('10.2.3.4') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')",
            "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
            "cidr('10.0.0.0/8').prefixLength() == 8 && string(cidr('::/0')) == '::/0'",
            "!cidr('10.0.0.0/8').containsIP('::1') && cidr('0.0.0.0/0').containsIP('1.2.3.4')",
        ],
    );
}

#[test]
fn what_is_wrong_with_addresses() {
    let (schema, value) = nothing();
    let ip = "IP Address \"@\" parse error during conversion from string: ParseAddr(\"@\"): ";
    for (text, why) in [
        ("", "unable to parse IP"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.3.04", "IPv4 field has octet with leading zero"),
        (
            "1..2.3",
            "IPv4 field must have at least one digit (at \".2.3\")",
        ),
        ("1.2.3.x", "unexpected character (at \"x\")"),
        ("1:2", "address string too short"),
        (
            "1:2:",
            "colon must be followed by more characters (at \":\")",
        ),
        ("1::2::3", "multiple :: in address (at \":3\")"),
        (
            "12345::",
            "each group must have 4 or less digits (at \"12345::\")",
        ),
        (
            "1:g::",
            "each colon-separated field must have at least one digit (at \"g::\")",
        ),
        ("1:2g::", "unexpected character, want colon (at \"g::\")"),
        (
            "1:2:3:4:5:6:7:8:9",
            "trailing garbage after address (at \"9\")",
        ),
        (
            "1:2:3:4::5:6:7:8",
            "the :: must expand to at least one field of zeros",
        ),
        (
            "1:1.2.3.4",
            "embedded IPv4 address must replace the final 2 fields of the address (at \"1.2.3.4\")",
        ),
        ("::1.2.3.4.5", "IPv4 address too long"),
        ("fe80::1%", "zone must be a non-empty string"),
    ] {
        let source = format!("ip('{text}').family() == 4");
        let wanted = ip.replace('@', text) + why;
        fails(&schema, &value, &[(&source, &wanted)]);
    }
    let range =
        "network address parse error during conversion from string: netip.ParsePrefix(\"@\"): ";
    for (text, why) in [
        ("1.2.3.4", "no '/'"),
        ("1.2.3/8", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
        ("1.2.3.4/x", "bad bits after slash: \"x\""),
        ("1.2.3.4/08", "bad bits after slash: \"08\""),
        ("1.2.3.4/33", "prefix length out of range"),
        ("1.2.3.4/70000", "prefix length out of range"),
        (
            "fe80::1%eth0/64",
            "IPv6 zones cannot be present in a prefix",
        ),
    ] {
        let source = format!("cidr('{text}').prefixLength() == 4");
        let wanted = range.replace('@', text) + why;
        fails(&schema, &value, &[(&source, &wanted)]);
    }
}

#[test]
fn of_urls() {
    let (schema, value) = nothing();
    holds(
        &schema,
        &value,
        &[
            "isURL('https://a.b/c') && isURL('/a/b') && isURL('a:b') && !isURL('a/b') && !isURL('')",
            "!isURL('http://a b/') && !isURL('http://[::1') && !isURL('http://a:b/') && isURL('a://b?c')",
            "!isURL('http://a/%zz') && isURL('http://a/%20') && !isURL(':a') && !isURL('../a')",
            "url('https://U:p@Ex.com:80/a b?x=1&x=2&y=%20#f').getHost() == 'Ex.com:80'",
            "url('HTTPS://Ex.com:80/a').getScheme() == 'https' && url('/a').getScheme() == ''",
            "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
            "url('https://a/b c').getEscapedPath() == '/b%20c' && url('https://a/b%2Fc').getEscapedPath() == '/b%2Fc'",
            "url('https://a/?x=1&x=2&y=a+b').getQuery() == {'x': ['1', '2'], 'y': ['a b']}",
            "url('https://a').getPort() == '' && url('https://a') == url('https://a')",
        ],
    );
}

#[test]
fn of_quantities_versions_and_formats() {
    let (schema, value) = nothing();
    holds(
        &schema,
        &value,
        &[
            "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1').compareTo(quantity('1000m')) == 0",
            "quantity('1.5').isInteger() == false && quantity('2k').asInteger() == 2000 && !quantity('1000m').isInteger()",
            "quantity('1') == quantity('1000m') && quantity('1').add(2).sub(quantity('1')).asInteger() == 2",
            "sign(quantity('-1')) == -1 && isQuantity('1e3') && !isQuantity('1 Gi') && !isQuantity('')",
            "quantity('50m').asApproximateFloat() == 0.05",
            "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
            "isSemver('1.2.3+b') && !isSemver('v1.2.3') && !isSemver('1.2') && !isSemver('01.2.3')",
            "isSemver('v1.2', true) && semver('v01.2', true).major() == 1 && semver('1.2.3').patch() == 3",
            "semver(' v1.02.03-rc ', true) == semver('1.2.3-rc') && !isSemver('1.2-rc', true)",
            "semver('v00.0', true) == semver('0.0.0') && !isSemver('', true) && !isSemver('1.x', true)",
            "isQuantity('Gi') && isQuantity('-Ti') && !isQuantity('Pi') && !isQuantity('K')",
            "semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1",
            "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
            "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
            "!format.qualifiedName().validate('a.b/c').hasValue() && format.labelValue().validate('-').hasValue()",
            "format.dns1123Label() == format.dns1123Label()",
        ],
    );
}
