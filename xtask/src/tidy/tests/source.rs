use super::super::source::Source;

#[test]
fn code_and_comments_are_told_apart() {
    let cases = [
        ("a // b\nc", "a     \nc", "  // b\n "),
        (
            "a /* b /* c */ d */ e",
            "a                   e",
            "  /* b /* c */ d */  ",
        ),
        ("a / b", "a / b", "     "),
        (r#"f("// a\"", b)"#, r#"f("""""""", b)"#, "              "),
        (r#"br"\" x"#, r#"""""" x"#, "       "),
        (r##"r#"a"b"# c"##, r#""""""""" c"#, "          "),
        ("r#type a", "r#type a", "        "),
        (
            "b'\\'' 'x' '\"' a",
            "b\"\"\"\" \"\"\" \"\"\" a",
            "               ",
        ),
        (
            "fn a<'b>(c: &'b str) // d",
            "fn a<'b>(c: &'b str)     ",
            "                     // d",
        ),
        ("'ä' // ö", "\"\"\"\"      ", "     // ö"),
        ("\"a\nb\" c", "\"\"\n\"\" c", "  \n    "),
        ("\"open", "\"\"\"\"\"", "     "),
        ("/* open", "       ", "/* open"),
        ("'", "'", " "),
    ];
    for (text, code, comments) in cases {
        let source = Source::new(text);
        assert_eq!(source.code, code, "{text}");
        assert_eq!(source.comments, comments, "{text}");
        assert_eq!(code.len(), text.len(), "{text}");
    }
}

#[test]
fn attributes_end_with_their_own_bracket() {
    let source = Source::new("#![a]\n#[b(c[1], \"]\")] struct D; // #[e]\nx = \"#[f]\"; r#g");
    let texts: Vec<&str> = source
        .attributes
        .iter()
        .map(|range| &source.code[range.clone()])
        .collect();
    assert_eq!(texts, ["#![a]", "#[b(c[1], \"\"\")]"]);
}

#[test]
fn test_code_is_what_is_compiled_for_tests_only() {
    let cases = [
        ("#[cfg(test)]\nmod tests { TEST }\nPRODUCT", None),
        (
            "#[cfg(test)]\n#[path = \"x\"] mod tests;\nPRODUCT",
            Some("tests"),
        ),
        (
            "#[cfg(all(test, unix))] fn a(b: [u8; 3]) -> C { TEST } PRODUCT",
            None,
        ),
        ("#[cfg(test)] use a::{TEST}; PRODUCT", None),
        ("enum A { #[cfg(test)] B(TEST), PRODUCT }", None),
        ("#![cfg(test)]\nTEST", None),
        ("#[cfg(not(test))] fn a() { PRODUCT }", None),
        ("#[cfg(feature = \"x\")] mod a { PRODUCT }", None),
    ];
    for (text, module) in cases {
        let source = Source::new(text);
        for (word, expected) in [("TEST", true), ("PRODUCT", false)] {
            for offset in source.occurrences(word) {
                assert_eq!(source.is_test(offset), expected, "{word} in {text}");
            }
        }
        assert_eq!(
            source.test_modules.first().map(String::as_str),
            module,
            "{text}"
        );
    }
}

#[test]
fn words_are_whole() {
    let source = Source::new("a::b xa::b a::bc a::b() \"a::b\"");
    assert_eq!(source.occurrences("a::b").collect::<Vec<_>>(), [0, 17]);
}
