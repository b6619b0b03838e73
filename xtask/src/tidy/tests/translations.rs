use super::super::translations::TRANSLATION;
use super::check;

const PAGE: &str = "# Title\n\ntext\n\n```rust\n# use a;\nlet a = 1;\n```\n\n## Part\n";

#[test]
fn translation() {
    let good = PAGE
        .replace("Title", "제목")
        .replace("text\n", "글\n\n글\n");
    check(&TRANSLATION, &[("a.md", PAGE), ("a.ko.md", &good)], &[]);
    let bad = [
        (good.replace("= 1", "= 2"), "a.ko.md:7"),
        (good.replace("## Part", "### Part"), "a.ko.md:12"),
        (good.replace("## Part\n", ""), "a.ko.md:7"),
        (format!("{good}\n## More\n"), "a.ko.md:14"),
        (good.replace("```rust", "```text"), "a.ko.md:7"),
    ];
    for (text, place) in bad {
        check(
            &TRANSLATION,
            &[("a.md", PAGE), ("a.ko.md", &text)],
            &[place],
        );
    }
    check(&TRANSLATION, &[("b.ko.md", PAGE)], &["b.ko.md:1"]);
    // These are no translations.
    check(
        &TRANSLATION,
        &[("a.v12.md", PAGE), ("a.KO.md", PAGE), ("ko.md", PAGE)],
        &[],
    );
}
