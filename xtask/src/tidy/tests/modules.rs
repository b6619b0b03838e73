use super::super::modules::CIRCLE;
use super::{check, files, found};

#[test]
fn circle() {
    let lib = (
        "crates/a/src/lib.rs",
        "mod above;\nmod below;\nmod third;\n",
    );
    let uses = |path, text| (path, text);
    let (above, below, third) = (
        "crates/a/src/above.rs",
        "crates/a/src/below.rs",
        "crates/a/src/third.rs",
    );
    let line = |line| format!("{above}:{line}");
    // However the name is said.
    for needs in [
        "use crate::above::Thing;",
        "use super::above::Thing;",
        "use super::{above::{Thing, Other}, third};",
        "use super::above as other;",
        "fn f(thing: &crate::above::Thing) {}",
        "use crate::above;\nfn f() { above::run() }",
        "impl super::above::Thing {}",
        "fn f() { use crate::above::Thing; }",
    ] {
        let circle = [
            lib,
            uses(above, "struct Thing;\nfn f() { super::below::run() }"),
            uses(below, needs),
            uses(third, ""),
        ];
        check(&CIRCLE, &circle, &[&line(2)]);
    }
    // Through others, and told once.
    let long = [
        lib,
        uses(above, "use super::below::B;\nuse super::third::C;"),
        uses(below, "use super::third::C;\nstruct B;"),
        uses(third, "use super::above::A;\nstruct C;"),
    ];
    check(&CIRCLE, &long, &[&line(2)]);
    assert_eq!(
        found(&CIRCLE, &files(&long)),
        [format!(
            "{above}:2: {above} -> {third} -> {above} is a circle: give what they share a module \
             of its own below both"
        )]
    );
    // The fault of one is not that of another that needs it.
    let beside = [
        lib,
        uses(above, "use super::below::B;"),
        uses(below, "use super::third::C;\nstruct B;"),
        uses(third, "use super::below::B;\nstruct C;"),
    ];
    check(&CIRCLE, &beside, &[&format!("{below}:1")]);
}

#[test]
fn no_circle() {
    let lib = "mod above;\nmod below;\npub use above::Thing;\nuse std::fmt;";
    let good: [(&str, &str); 6] = [
        // What only others show it does not need.
        (
            "//! See [`Thing`](crate::above::Thing).",
            "use super::below::B;",
        ),
        ("fn f() { \"crate::above::Thing\" }", "use super::below::B;"),
        (
            "struct B;\n#[cfg(test)]\nmod tests { use crate::above::Thing; }",
            "use super::below::B;",
        ),
        // Another crate, another module, a variable and a member of the same name.
        ("use other::above::Thing;", "use super::below::B;"),
        (
            "mod inner { fn f() { super::above() } }\nfn above() {}",
            "use super::below::B;",
        ),
        (
            "fn f(above: u8) { above.above; x.above::<Thing>() }",
            "use super::below::B;",
        ),
    ];
    for (below, above) in good {
        let tree = [
            ("crates/a/src/lib.rs", lib),
            ("crates/a/src/above.rs", above),
            ("crates/a/src/below.rs", below),
        ];
        assert_eq!(found(&CIRCLE, &files(&tree)), [] as [&str; 0], "{below}");
    }
    // A name that a module passes on is its owner's.
    let passed_on = [
        ("crates/a/src/lib.rs", "mod room;"),
        (
            "crates/a/src/room.rs",
            "mod one;\nmod two;\npub(crate) use self::one::{self, A as B};",
        ),
        ("crates/a/src/room/one.rs", "pub struct A;"),
        ("crates/a/src/room/two.rs", "use super::B;"),
    ];
    check(&CIRCLE, &passed_on, &[]);
}

#[test]
fn a_module_and_those_inside_of_it_are_one_room() {
    let outer = (
        "crates/a/src/room.rs",
        "mod one;\nmod two;\nstruct Shared;\nfn f() { one::f(); two::f() }",
    );
    let inside = |two| {
        [
            ("crates/a/src/lib.rs", "mod room;\nmod other;"),
            outer,
            ("crates/a/src/room/one.rs", "use super::{Shared, two::A};"),
            ("crates/a/src/room/two.rs", two),
            ("crates/a/src/other.rs", "use crate::room::Shared;"),
        ]
    };
    check(&CIRCLE, &inside("use super::Shared;\nstruct A;"), &[]);
    // Those inside must not need each other,
    let two = "use super::one;\nstruct A;\nfn g() { one::f() }";
    check(&CIRCLE, &inside(two), &["crates/a/src/room/one.rs:1"]);
    // nor what is outside and needs the room.
    let two = "use crate::other;\nstruct A;\nfn g() { other::f() }";
    check(&CIRCLE, &inside(two), &["crates/a/src/other.rs:1"]);
}
