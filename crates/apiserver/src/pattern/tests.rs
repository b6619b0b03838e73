use proptest::prelude::*;

use super::machine::Machine;
use super::{Compiled, Pattern, Patterns};

#[track_caller]
fn matching(cases: &[(&str, &[&str], &[&str])]) {
    for (source, right, wrong) in cases {
        let pattern = Pattern::new(source).unwrap_or_else(|why| panic!("{source}: {why}"));
        assert!(
            matches!(pattern.compiled(), Compiled::Regex(_)),
            "{source}: {}",
            pattern.translated
        );
        for text in *right {
            assert!(
                pattern.is_match(text),
                "{source} {text:?} {}",
                pattern.translated
            );
        }
        for text in *wrong {
            assert!(
                !pattern.is_match(text),
                "{source} {text:?} {}",
                pattern.translated
            );
        }
    }
}

#[test]
fn what_go_means_by_a_pattern() {
    matching(&[
        (
            r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
            &["a", "a-b", "a1"],
            &["-a", "a-", ""],
        ),
        ("[[]", &["["], &["a"]),
        ("[a[b]", &["a", "[", "b"], &["]"]),
        ("^[]a]$", &["]", "a"], &["b"]),
        ("^[^]a]$", &["b"], &["]", "a"]),
        (r"^[\w-.]+$", &["a-.", "_"], &["/"]),
        (r"^[\d-x]$", &["1", "-", "x"], &["w"]),
        ("^[a&&b]$", &["a", "&", "b"], &["c"]),
        ("^[a~~b]$", &["a", "~", "b"], &["c"]),
        ("^[%--]$", &["%", "-", "+"], &["."]),
        ("^[+--]$", &["+", ",", "-"], &["."]),
        ("^[--a]$", &["-", ".", "a"], &["b", ","]),
        ("^a{,5}$", &["a{,5}"], &["aa"]),
        ("^a{$", &["a{"], &["a"]),
        ("^{$", &["{"], &[""]),
        ("^a{01}$", &["a{01}"], &["a"]),
        ("^x{0}$", &[""], &["x"]),
        ("x{1000}", &[], &["x"]),
    ]);
}

#[test]
fn what_go_means_by_flags_groups_and_escapes() {
    matching(&[
        ("(?i)^abc$", &["ABC", "aBc"], &["ab"]),
        ("(?i)k", &["K", "\u{212a}"], &["l"]),
        ("^(?i:s)$", &["S", "\u{17f}"], &["t"]),
        ("(?P<n>a)(?<n>b)(?P<1>c)", &["abc"], &["ab"]),
        (r"^\Q[a]\E+$", &["[a]", "[a]]"], &["a"]),
        (r"^\Qa.c", &["a.c"], &["abc"]),
        (r"^\0$", &["\0"], &["0"]),
        (r"^\101\x41\x{1F600}$", &["AA\u{1f600}"], &["AA"]),
        (r"\x{D800}", &[], &["a"]),
        (r"^[\x{D7FF}-\x{E000}]$", &["\u{d7ff}", "\u{e000}"], &["a"]),
        (r"^\pL$", &["é", "a"], &["1"]),
        (r"^\p{Greek}$", &["α"], &["a"]),
        (r"^\p{greek}\p{Old_Italic}?$", &["α"], &["a"]),
        (r"^\p{^Lu}$", &["a"], &["A"]),
        (r"^\P{Lu}$", &["a"], &["A"]),
        (r"^\p{Uppercase_Letter}\p{Any}$", &["Aa"], &["aa"]),
        (r"^\_\-\/\ \%$", &["_-/ %"], &["a"]),
        (r"\<a\>", &["<a>"], &["a"]),
        (r"^\b{1}a$", &["a"], &["{1}a"]),
        ("^*a", &["a"], &["b"]),
        ("^()$", &[""], &["a"]),
        ("^(|a)$", &["", "a"], &["b"]),
        ("^(?:a||b)$", &["", "a", "b"], &["c"]),
        ("", &["", "a"], &[]),
        ("^a]$", &["a]"], &["a"]),
        ("^a}$", &["a}"], &["a"]),
        ("^.$", &["a"], &["\n"]),
        ("(?s)^.$", &["a", "\n"], &[""]),
        ("(?m)^a$", &["b\na\nc"], &["ba"]),
        ("^a$", &["a"], &["a\n", "b\na"]),
        ("(?U)^a+$", &["aa"], &["b"]),
        ("(?)a", &["a"], &["b"]),
        ("a(?i)b", &["aB"], &["AB"]),
        ("(a(?i)b)c", &["aBc"], &["abC"]),
        ("^a(?i)*$", &["aaa", ""], &["A"]),
        ("^[[:alpha:]_]$", &["a", "_"], &["1"]),
        ("^[[:^digit:]]$", &["a"], &["1"]),
        ("^[[=a=]]$", &["a]", "=]"], &["a"]),
        (r"^\d$", &["1"], &["\u{663}"]),
        (r"^\w$", &["a", "_"], &["é"]),
        (r"^\s$", &[" ", "\t"], &["\u{b}", "\u{a0}"]),
        (r"^\W\D\S$", &["éé\u{a0}"], &["abc"]),
        (r"\bfoo\b", &["éfooé", "foo"], &["xfoo"]),
        (r"a\Bb", &["ab"], &["a b"]),
        ("^[^a]$", &["\n", "b"], &["a"]),
        ("^(a{30}){30}$", &[], &["a"]),
        (r"\Aa\z", &["a"], &["a\n"]),
        ("^a*?b$", &["aab", "b"], &["a"]),
        ("^(a|b)*c$", &["abac", "c"], &["d"]),
        ("^(?:ab)+$", &["abab"], &["aba"]),
        (r"^(ab|cd){2}$", &["abcd"], &["ab"]),
        ("(?-s).", &["a"], &["\n"]),
        (r"(?i)^[^k]$", &["a"], &["K", "\u{212a}"]),
        (r"(?i)^\W$", &["-"], &["\u{212a}", "k"]),
    ]);
}

#[test]
fn what_go_refuses() {
    for (source, why) in [
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(*a)", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a*?+", "invalid nested repetition operator: `*?+`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{40}){40}", "invalid repeat count: `{40}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?u)a", "invalid or unsupported Perl syntax: `(?u`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\u0041", r"invalid escape sequence: `\u`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\xZZ", r"invalid escape sequence: `\xZZ`"),
        (
            r"\p{Alphabetic}",
            r"invalid character class range: `\p{Alphabetic}`",
        ),
        (
            r"\p{Script=Greek}",
            r"invalid character class range: `\p{Script=Greek}`",
        ),
        (r"\p{Grek}", r"invalid character class range: `\p{Grek}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[a", "missing closing ]: `[a`"),
        ("[]", "missing closing ]: `[]`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?P<n-x>a)", "invalid named capture: `(?P<n-x>`"),
        ("(?P<>a)", "invalid named capture: `(?P<>`"),
    ] {
        let found = Pattern::new(source).err();
        assert_eq!(
            found,
            Some(format!("error parsing regexp: {why}")),
            "{source}"
        );
    }
    let deep = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Pattern::new(&deep(900)).is_ok());
    assert!(Pattern::new(&deep(1001)).is_err_and(|why| why.contains("nests too deeply")));
    // Groups that capture nothing are no levels.
    let open = format!("{}a{}", "(?:".repeat(50_000), ")".repeat(50_000));
    assert!(Pattern::new(&open).is_ok_and(|pattern| pattern.is_match("a")));
}

#[test]
fn a_pattern_is_compiled_once() {
    let patterns = Patterns::default();
    let one = patterns.get("^a$").expect("it is right");
    let two = patterns.get("^a$").expect("it is right");
    assert!(std::sync::Arc::ptr_eq(&one, &two));
    assert_eq!(one.find("a"), Some("a"));
    assert!(patterns.get("(").is_err());
}

#[test]
fn the_library_compiles_what_it_compiles_quickly() {
    for (source, by_library) in [
        (
            r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
            true,
        ),
        (
            r"^(([1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}[0-9]+$",
            true,
        ),
        (r"^.{1,253}$", true),
        (r"^[\p{L}_][\p{L}\p{N}_]*$", true),
        (r"^[^/]{1,1000}$", true),
        (r"^\p{L}{1,63}$", false),
        (r"^([\p{L}0-9-]{1,63}\.){1,4}[a-z]{2,8}$", false),
    ] {
        let pattern = Pattern::new(source).expect("it is right");
        let compiled = pattern.compiled();
        assert_eq!(
            matches!(compiled, Compiled::Regex(_)),
            by_library,
            "{source}"
        );
        assert_eq!(
            matches!(compiled, Compiled::Machine(_)),
            !by_library,
            "{source}"
        );
    }
}

#[test]
fn large_patterns_are_matched_all_the_same() {
    let labels = r"^([\p{L}\p{S}0-9-]{1,63}\.){1,15}[a-z]{2,8}$";
    let pattern = Pattern::new(labels).expect("it is right");
    assert!(matches!(pattern.compiled(), Compiled::Machine(_)));
    let long = format!("{}.com", "é".repeat(63));
    let too_long = format!("{}.com", "é".repeat(64));
    for text in ["é-1.example.com", "€.io", &long] {
        assert!(pattern.is_match(text), "{text}");
    }
    for text in [
        ".a",
        "a.b",
        "a b.com",
        "a.com\n",
        &too_long,
        &"a.".repeat(16),
    ] {
        assert!(!pattern.is_match(text), "{text}");
    }
    // Repetitions in repetitions, each with branches, ends and empty parts.
    let nested = r"^((\p{L}{2,3}|\b-){1,2}(x{0,2}|$){2,3}){2,60}$";
    let nested = Pattern::new(nested).expect("it is right");
    assert!(matches!(nested.compiled(), Compiled::Machine(_)));
    for (text, fits) in [
        ("abcd", true),
        ("abxxxxcd", true),
        ("ab-éüé", true),
        ("abc", false),
        ("a-b", false),
        ("ab--", false),
        (&"ab".repeat(400), false),
    ] {
        assert_eq!(nested.is_match(text), fits, "{text}");
    }
    let words = Pattern::new(r"(?i)\b(?:\p{L}\p{L}{0,999}[a-c]|\p{S}+)").expect("it is right");
    assert!(matches!(words.compiled(), Compiled::Machine(_)));
    assert_eq!(words.find_all("1 xxa, aB+éc c", 9), ["xxa", "aB", "+"]);
    assert_eq!(words.find("- xxa aab"), Some("xxa"));
}

/// A part of a pattern that Go and the library mean the same by, with parts in it.
fn plain() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "[ab]", "[^a]", "^", "$", r"\d", r"\.", "(?:)",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (
                    inner.clone(),
                    prop::sample::select(vec!["*", "+", "?", "{2}", "{0,2}", "*?"])
                )
                    .prop_map(|(part, sign)| format!("(?:{part}){sign}")),
                prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| parts.concat()),
                prop::collection::vec(inner, 1..3)
                    .prop_map(|parts| format!("({})", parts.join("|"))),
            ]
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Where the library needs no translation, the translation changes nothing.
    #[test]
    fn plain_patterns_stay_as_they_are(source in plain(), text in "[ab1.]{0,6}") {
        let known = regex::RegexBuilder::new(&source).build().expect("a plain pattern");
        let pattern = Pattern::new(&source).expect("a plain pattern");
        prop_assert_eq!(pattern.is_match(&text), known.is_match(&text));
    }

    /// What is too large for the library is matched in the same way.
    #[test]
    fn the_machine_matches_as_the_library_does(source in plain(), text in "[ab1.]{0,8}") {
        let known = regex::RegexBuilder::new(&source).build().expect("a plain pattern");
        let hir = regex_syntax::parse(&source).expect("a plain pattern");
        let machine = Machine::new(&hir).expect("a small pattern");
        prop_assert_eq!(machine.is_match(&text), known.is_match(&text));
        let found: Vec<&str> = known.find_iter(&text).map(|found| found.as_str()).collect();
        prop_assert_eq!(machine.find_all(&text, usize::MAX), found);
    }

    /// Whatever is read can be compiled, and nothing panics.
    #[test]
    fn any_text(source in r"([(\[{?*+|)\]}\\^$.a-c0-9:P<>,&~-]|\\[a-zA-Z]|\(\?[a-z]|\[\[:|.){0,20}") {
        if let Ok(pattern) = Pattern::new(&source) {
            let compiled = matches!(pattern.compiled(), Compiled::Regex(_));
            prop_assert!(compiled, "{}", pattern.translated);
            pattern.is_match("ab");
        }
    }
}
