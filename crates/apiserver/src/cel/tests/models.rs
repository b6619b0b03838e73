//! Costs, addresses and URLs against naive models.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// How large things are at most in an object.
#[derive(Debug, Clone, Copy)]
struct Limits {
    text: u64,
    other: u64,
    list: u64,
    element: u64,
}

/// An expression, and what it costs by the table of costs.
type Costed = (String, u64);

fn limits() -> impl Strategy<Value = Limits> {
    let number = || prop_oneof![0u64..40, 0u64..5000];
    (number(), number(), number(), number()).prop_map(|(text, other, list, element)| Limits {
        text,
        other,
        list,
        element,
    })
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{0,24}"
}

/// A tenth, rounded up.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Something that is said of the value itself, or of an element of its list if that is at hand.
fn simple(limits: Limits, element: bool) -> BoxedStrategy<Costed> {
    let Limits {
        text,
        other,
        list,
        element: inner,
    } = limits;
    let of_value = prop_oneof![
        (0i64..99).prop_map(|number| (format!("self.a == {number}"), 2)),
        (0i64..99).prop_map(|number| (format!("self.a <= {number}"), 3)),
        Just((
            "self.s == self.t".to_owned(),
            4 + tenth((4 * text).min(4 * other))
        )),
        word().prop_map(move |word| {
            let cost = 2 + tenth((4 * text).min(characters(&word)));
            (format!("self.s != '{word}'"), cost)
        }),
        word().prop_map(move |word| {
            let cost = 2 + tenth(4 * text) * tenth(characters(&word));
            (format!("self.s.contains('{word}')"), cost)
        }),
        word().prop_map(|word| {
            let cost = 2 + tenth(characters(&word));
            (format!("self.t.endsWith('{word}')"), cost)
        }),
        word().prop_map(move |word| {
            let cost = 2 + tenth(4 * text + 1) * characters(&word).div_ceil(4);
            (format!("self.s.matches('{word}')"), cost)
        }),
        word().prop_map(move |word| (format!("'{word}' in self.l"), 2 + list)),
        Just((
            "size(self.s + self.t) > 3".to_owned(),
            4 + tenth(4 * text + 4 * other) + 2
        )),
        Just((
            "self.s.lowerAscii().trim() == ''".to_owned(),
            2 + 2 * tenth(4 * text)
        )),
        Just((
            "isIP(self.s) && has(self.t)".to_owned(),
            2 + tenth(4 * text) + 1
        )),
        Just((
            "self.l.isSorted()".to_owned(),
            2 + list * (1 + tenth(4 * inner))
        )),
        Just((
            "sets.contains(self.l, ['a', 'b'])".to_owned(),
            2 + 10 + 1 + 2 * list
        )),
    ];
    if !element {
        return of_value.boxed();
    }
    let of_element = prop_oneof![
        word().prop_map(move |word| {
            let cost = 1 + tenth((4 * inner).min(characters(&word)));
            (format!("x == '{word}'"), cost)
        }),
        word().prop_map(|word| {
            let cost = 1 + tenth(characters(&word));
            (format!("x.startsWith('{word}')"), cost)
        }),
        Just((
            "x == self.s".to_owned(),
            3 + tenth((4 * inner).min(4 * text))
        )),
    ];
    prop_oneof![of_element, of_value].boxed()
}

/// Expressions in each other.
fn joined(simple: BoxedStrategy<Costed>) -> BoxedStrategy<Costed> {
    simple
        .prop_recursive(3, 12, 3, |inner| {
            let one = inner.clone();
            prop_oneof![
                one.prop_map(|(source, cost)| (format!("!({source})"), cost + 1)),
                (inner.clone(), inner.clone()).prop_map(|((one, cost), (two, other))| (
                    format!("({one}) && ({two})"),
                    cost + other
                )),
                (inner.clone(), inner.clone()).prop_map(|((one, cost), (two, other))| (
                    format!("({one}) || ({two})"),
                    cost + other
                )),
                (inner.clone(), inner.clone(), inner).prop_map(
                    |((condition, asked), (one, cost), (two, other))| (
                        format!("({condition}) ? ({one}) : ({two})"),
                        asked + cost.max(other)
                    )
                ),
            ]
        })
        .boxed()
}

/// What is said of all elements of a list.
fn looped(limits: Limits) -> BoxedStrategy<Costed> {
    let count = limits.list;
    let forms = [
        ("self.l.all(x, P)", 3, 3),
        ("self.l.exists(x, P)", 3, 4),
        ("self.l.exists_one(x, P)", 4, 2),
        ("self.l.filter(x, P).size() < 5", 15, 13),
        ("self.l.map(x, P).size() == 5", 15, 12),
    ];
    let each = joined(simple(limits, true));
    (prop::sample::select(forms.to_vec()), each)
        .prop_map(move |((form, once, each), (source, cost))| {
            (form.replace('P', &source), once + count * (cost + each))
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// An expression costs what the costs of its parts come to.
    #[test]
    fn costs_add_up(
        (limits, (source, wanted)) in limits().prop_flat_map(|limits| {
            let part = prop_oneof![simple(limits, false), looped(limits)];
            (Just(limits), joined(part.boxed()))
        })
    ) {
        let schema = object(&json!({
            "a": int(),
            "s": text(limits.text),
            "t": text(limits.other),
            "l": list(&text(limits.element), limits.list),
        }));
        prop_assert_eq!(cost_of(&schema, false, &source), wanted, "{}", source);
    }

    /// Looser limits never make an expression cheaper.
    #[test]
    fn costs_grow_with_the_limits(
        (limits, (source, _)) in limits().prop_flat_map(|limits| {
            let part = prop_oneof![simple(limits, false), looped(limits)];
            (Just(limits), joined(part.boxed()))
        }),
        more in 0u64..1000,
    ) {
        let schema = |more: u64| object(&json!({
            "a": int(),
            "s": text(limits.text + more),
            "t": text(limits.other + more),
            "l": list(&text(limits.element + more), limits.list + more),
        }));
        let cost = |more| cost_of(&schema(more), false, &source);
        prop_assert!(cost(0) <= cost(more), "{source}");
    }

    /// Whatever is written, it is an address if the standard library says so.
    #[test]
    fn addresses(text in prop_oneof![
        "[0-9a-fA-F:.]{0,24}",
        "([0-9a-f]{1,5}:){0,8}(:[0-9a-f]{1,4}){0,4}",
        "([0-9]{1,3}\\.){2,4}[0-9]{1,3}",
        "(::|[0-9a-f]{1,4}:){1,7}[0-9]{1,3}\\.0\\.1\\.[0-9]{1,3}",
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).to_string()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).to_string()),
    ]) {
        let (schema, value) = (object(&json!({})), json!({}));
        let holds = |source: String| outcome(&schema, &value, &source);
        let known: Option<IpAddr> = text.parse().ok();
        // One of version 4 that is written as one of version 6 is none.
        let known = known.filter(|known| match known {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
        });
        prop_assert_eq!(holds(format!("isIP('{text}')")), Ok(known.is_some()));
        if let Some(known) = known {
            let canonical = known.to_string();
            prop_assert_eq!(holds(format!("string(ip('{text}')) == '{canonical}'")), Ok(true));
            let is_canonical = holds(format!("ip.isCanonical('{text}')"));
            prop_assert_eq!(is_canonical, Ok(canonical == text));
        }
    }

    /// An address is in a range if its first bits are those of the range.
    #[test]
    fn ranges(range: u32, flipped in 0u32..33, bits in 0u32..33, inner in 0u32..33) {
        let (schema, value) = (object(&json!({})), json!({}));
        let address = if flipped == 32 { range } else { range ^ (1 << (31 - flipped)) };
        let [range, address] = [range, address].map(Ipv4Addr::from);
        let source = format!("cidr('{range}/{bits}').containsIP('{address}')");
        prop_assert_eq!(outcome(&schema, &value, &source), Ok(flipped >= bits));
        let source = format!("cidr('{range}/{bits}').containsCIDR(cidr('{address}/{inner}'))");
        prop_assert_eq!(outcome(&schema, &value, &source), Ok(flipped >= bits && inner >= bits));
    }

    /// A URL has the parts that it is made of.
    #[test]
    fn parts_of_urls(
        scheme in "[a-zA-Z][a-zA-Z0-9+.-]{0,8}",
        user in prop::option::of("[a-z0-9._~-]{0,6}(:[a-z0-9]{0,6})?"),
        host in prop_oneof!["[a-zA-Z0-9.-]{0,12}", Just("[2001:db8::1]".to_owned())],
        port in prop::option::of("[0-9]{0,5}"),
        path in "(/[a-zA-Z0-9._~@:+-]{0,6}){0,3}",
        query in prop::option::of("[a-z]{1,4}=[a-z0-9]{0,4}"),
        fragment in prop::option::of("[a-z]{0,4}"),
    ) {
        let (schema, value) = (object(&json!({})), json!({}));
        let before = |sign: &str, part: &Option<String>| {
            part.as_ref().map_or_else(String::new, |part| format!("{sign}{part}"))
        };
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        let authority = format!("{host}{}", before(":", &port));
        let end = before("#", &fragment);
        let text = format!("{scheme}://{user}{authority}{path}{}{end}", before("?", &query));
        // Behind an authority alone a fragment would be a part of it.
        prop_assume!(fragment.is_none() || !path.is_empty() || query.is_some());
        prop_assert_eq!(outcome(&schema, &value, &format!("isURL('{text}')")), Ok(true), "{}", text);
        let lower = scheme.to_ascii_lowercase();
        let hostname = host.trim_matches(['[', ']']);
        let name = before("", &port);
        for (getter, wanted) in [
            ("getScheme", lower.as_str()),
            ("getHost", &authority),
            ("getHostname", hostname),
            ("getPort", &name),
            ("getEscapedPath", &path),
        ] {
            let source = format!("url('{text}').{getter}() == '{wanted}'");
            prop_assert_eq!(outcome(&schema, &value, &source), Ok(true), "{}", source);
        }
        let members = query.map_or_else(|| "{}".to_owned(), |query| {
            let (name, value) = query.split_once('=').unwrap_or_default();
            format!("{{'{name}': ['{value}']}}")
        });
        let source = format!("url('{text}').getQuery() == {members}");
        prop_assert_eq!(outcome(&schema, &value, &source), Ok(true), "{}", source);
    }
}
