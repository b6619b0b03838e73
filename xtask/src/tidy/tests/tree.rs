use super::files;

#[test]
fn a_module_declared_for_tests_is_test_code() {
    let declare = "#[cfg(test)]\nmod world;\nmod product;";
    let cases = [
        ("a/src/lib.rs", "a/src/world.rs", true),
        ("a/src/lib.rs", "a/src/world/deep/er.rs", true),
        ("a/src/lib.rs", "a/src/product.rs", false),
        ("a/src/lib.rs", "a/src/worlds.rs", false),
        ("a/src/queue.rs", "a/src/queue/world.rs", true),
        ("a/src/queue.rs", "a/src/world.rs", false),
        ("a/src/queue/mod.rs", "a/src/queue/world.rs", true),
    ];
    for (parent, path, expected) in cases {
        let tree = files(&[(parent, declare), (path, "x")]);
        let (_, source) = tree
            .sources()
            .find(|(p, _)| *p == path)
            .expect("it is in the tree");
        assert_eq!(source.is_test(0), expected, "{path} of {parent}");
    }
}

#[test]
fn folders_exist_with_their_files() {
    let tree = files(&[("a/b.md", ""), ("a-c.md", "")]);
    for path in ["", "a", "a/b.md", "a-c.md"] {
        assert!(tree.has(path), "{path}");
    }
    for path in ["b.md", "a/b", "a-", "b"] {
        assert!(!tree.has(path), "{path}");
    }
}
