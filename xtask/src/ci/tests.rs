use super::{STEPS, verdict};

#[test]
fn a_demo_that_converged_and_is_quiet_passes() {
    let report = r#"{"reconciles": 7, "converged": true, "writes_after_convergence": 0}"#;
    assert_eq!(verdict(report), Ok(()));
}

#[test]
fn any_other_demo_fails_and_says_why() {
    let cases = [
        (
            "",
            "the report of the demo is not one JSON value: EOF while parsing a value",
        ),
        (
            "{}{}",
            "the report of the demo is not one JSON value: trailing characters",
        ),
        ("[]", "the demo does not report converged"),
        (
            r#"{"converged": true}"#,
            "the demo does not report writes_after_convergence",
        ),
        (
            r#"{"converged": false, "writes_after_convergence": 0}"#,
            "the demo reports converged: false, not true",
        ),
        (
            r#"{"converged": "true", "writes_after_convergence": 0}"#,
            "the demo reports converged: \"true\", not true",
        ),
        (
            r#"{"converged": true, "writes_after_convergence": 3}"#,
            "the demo reports writes_after_convergence: 3, not 0",
        ),
    ];
    for (report, expected) in cases {
        let complaint = verdict(report).expect_err("the demo went wrong");
        assert!(complaint.starts_with(expected), "{report}: {complaint}");
    }
}

#[test]
fn the_order_is_the_documented_one() {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    assert_eq!(
        names,
        [
            "fmt",
            "tidy",
            "clippy",
            "versions",
            "minimum-rust",
            "alone",
            "first-program",
            "test",
            "browser",
            "doc",
            "deny",
            "demo"
        ]
    );
}

#[test]
fn the_tests_run_as_the_readme_says() {
    let test = STEPS
        .iter()
        .find(|step| step.name == "test")
        .expect("it is in the list");
    assert_eq!(test.run.command_line(), "cargo test --workspace");
}
