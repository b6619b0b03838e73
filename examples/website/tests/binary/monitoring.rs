//! What the dashboard and the alert rules name is what the program exposes, and that follows Prometheus' customs.

use super::{
    DEADLINE, kubeconfig,
    operator::{Operator, get, until_ok},
};
use homeostat::{manager::METRICS, wait::await_condition_within};
use homeostat_apiserver::ApiServer;
use kube::{Api, api::PostParams};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use website::{Website, status::READY};

/// What Prometheus adds to each series.
const TARGET: [&str; 2] = ["job", "instance"];

/// The names of series, each with the names of its labels.
type Series = BTreeMap<String, BTreeSet<String>>;

fn read(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// What the program exposes when it has done some work.
async fn scrape() -> String {
    let server = ApiServer::builder().workloads(true).build();
    let client = server.client();
    let params = PostParams::default();
    let definitions = Api::all(client.clone());
    definitions.create(&params, &website::crd()).await.unwrap();
    let site: Website = serde_saphyr::from_str(website::SAMPLE).unwrap();
    let sites: Api<Website> = Api::default_namespaced(client);
    sites.create(&params, &site).await.unwrap();
    let listening = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = kubeconfig("monitoring.kubeconfig", listening.address());
    let args = [
        "--serve=127.0.0.1:0",
        "--leader-elect",
        "--leader-elect-resource-namespace=default",
    ];
    let mut operator = Operator::start(&config, &args);
    let address = operator.address().await;
    until_ok(address, "/readyz").await;
    let ready = |site: Option<&Website>| {
        let ready = site.and_then(|site| site.status.as_ref()?.condition(READY));
        ready.is_some_and(|ready| ready.status == "True")
    };
    await_condition_within(sites, "blog", ready, DEADLINE)
        .await
        .unwrap();
    let (status, text) = get(address, "/metrics").await;
    assert_eq!(status, 200, "{text}");
    text
}

fn series(text: &str) -> Series {
    let mut all = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut tokens = tokens(line).into_iter();
        let Some(Token::Word(name)) = tokens.next() else {
            panic!("{line}");
        };
        let words = tokens.filter_map(|token| match token {
            Token::Word(word) => Some(word),
            Token::Text | Token::Mark(_) => None,
        });
        all.entry(name).or_default().extend(words);
    }
    all
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// In quotes.
    Text,
    Mark(char),
}

/// The parts of an expression. Numbers and durations say nothing.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' | '\'' => {
                while let Some(inner) = letters.next().filter(|inner| *inner != letter) {
                    if inner == '\\' {
                        letters.next();
                    }
                }
                tokens.push(Token::Text);
            }
            '[' => while letters.next().is_some_and(|inner| inner != ']') {},
            _ if letter.is_alphabetic() || letter == '_' => {
                let mut word = String::from(letter);
                while let Some(next) =
                    letters.next_if(|next| next.is_alphanumeric() || *next == '_')
                {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            _ if letter.is_numeric() => {
                while letters
                    .next_if(|next| next.is_alphanumeric() || *next == '.')
                    .is_some()
                {}
            }
            _ if letter.is_whitespace() => {}
            _ => tokens.push(Token::Mark(letter)),
        }
    }
    tokens
}

/// What an expression names: each metric with the labels that select from it, and the labels by which it groups.
fn names(expression: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let tokens = tokens(expression);
    let (mut metrics, mut groups) = (Vec::new(), Vec::new());
    let mut place = 0;
    // The words up to a mark.
    let until = |place: &mut usize, mark: char| {
        let mut words = Vec::new();
        while tokens[*place] != Token::Mark(mark) {
            if let Token::Word(word) = &tokens[*place] {
                words.push(word.clone());
            }
            *place += 1;
        }
        words
    };
    while place < tokens.len() {
        let next = tokens.get(place + 1);
        match &tokens[place] {
            Token::Word(word) if ["by", "without", "on", "ignoring"].contains(&&**word) => {
                groups.extend(until(&mut place, ')').into_iter().skip(1));
            }
            Token::Word(word) if next == Some(&Token::Mark('{')) => {
                place += 1;
                metrics.push((word.clone(), until(&mut place, '}')));
            }
            // A function or an operator.
            Token::Word(_) if next == Some(&Token::Mark('(')) => {}
            Token::Word(word) if matches!(next, Some(Token::Word(_))) => {
                assert!(
                    ["sum", "max", "min", "avg"].contains(&&**word),
                    "{word} in {expression}"
                );
            }
            Token::Word(word) => metrics.push((word.clone(), Vec::new())),
            Token::Text | Token::Mark(_) => {}
        }
        place += 1;
    }
    (metrics, groups)
}

/// Fails if an expression names what is not there; notes what it names.
fn check(expression: &str, all: &Series, used: &mut BTreeSet<String>) {
    let (metrics, groups) = names(expression);
    assert!(!metrics.is_empty(), "nothing is asked for in {expression}");
    for (metric, labels) in metrics {
        let Some(known) = all.get(&metric) else {
            panic!("{metric} is not exposed, in {expression}");
        };
        for label in labels.iter().chain(&groups) {
            let known = known.contains(label) || TARGET.contains(&&**label);
            assert!(known, "{metric} has no label {label}, in {expression}");
        }
        used.insert(metric);
    }
}

#[test]
fn names_are_found_in_expressions() {
    let (metrics, groups) = names(
        r#"histogram_quantile(0.99, sum by (le, verb) (rate(a_bucket{job="$job", code=~"5..\"x"}[$__rate_interval]))) / max(b) > 300"#,
    );
    let expected = [
        (
            "a_bucket".to_owned(),
            vec!["job".to_owned(), "code".to_owned()],
        ),
        ("b".to_owned(), vec![]),
    ];
    assert_eq!(metrics, expected);
    assert_eq!(groups, ["le", "verb"]);
}

#[tokio::test]
async fn the_dashboard_and_the_alerts_name_what_is_exposed() {
    let text = scrape().await;
    lint(&text);
    let all = series(&text);
    let mut used = BTreeSet::new();

    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for target in panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        let expression = target["expr"].as_str().unwrap();
        check(expression, &all, &mut used);
        // What the legend shows is there after grouping.
        let (_, groups) = names(expression);
        for label in placeholders(target["legendFormat"].as_str().unwrap(), "{{") {
            assert!(
                groups.contains(&label) || TARGET.contains(&&*label),
                "{label} in {expression}"
            );
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            let inner = query
                .strip_prefix("label_values(")
                .unwrap()
                .strip_suffix(')')
                .unwrap();
            let (metric, label) = inner.rsplit_once(", ").unwrap();
            check(&format!("sum by ({label}) ({metric})"), &all, &mut used);
        }
    }
    let missing: Vec<_> = METRICS
        .iter()
        .filter(|name| {
            !used
                .iter()
                .any(|used| used.strip_suffix("_bucket").unwrap_or(used) == **name)
        })
        .collect();
    assert!(
        missing.is_empty(),
        "the dashboard does not show {missing:?}"
    );

    let rules: Value = serde_saphyr::from_str(&read("alerts.yaml")).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules: Vec<_> = groups
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    let titles: BTreeSet<_> = rules
        .iter()
        .map(|rule| rule["alert"].as_str().unwrap())
        .collect();
    assert_eq!(titles.len(), rules.len(), "each has a name of its own");
    for rule in rules {
        let expression = rule["expr"].as_str().unwrap();
        check(expression, &all, &mut used);
        let (_, groups) = names(expression);
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(
            ["info", "warning", "critical"].contains(&severity),
            "{rule}"
        );
        for name in ["summary", "description"] {
            let text = rule["annotations"][name].as_str().unwrap();
            for label in placeholders(text, "{{ $labels.") {
                assert!(groups.contains(&label), "{label} in {rule}");
            }
        }
    }
}

/// The words that stand behind an opening mark.
fn placeholders(text: &str, open: &str) -> Vec<String> {
    let parts = text.split(open).skip(1);
    parts
        .map(|part| part.split("}}").next().unwrap().trim().to_owned())
        .collect()
}

/// What `promtool check metrics` asks for: a help text for each metric, `_total` for counters and nothing else, base
/// units, and names in small letters.
fn lint(text: &str) {
    let (mut helped, mut types) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                assert!(!help.trim().is_empty(), "{line}");
                assert!(helped.insert(name), "{name} is described twice");
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                assert!(types.insert(name, kind).is_none(), "{name} has two types");
            }
            _ => {}
        }
    }
    for (name, kind) in types {
        assert!(helped.contains(name), "{name} has no help text");
        assert_eq!(
            name.ends_with("_total"),
            kind == "counter",
            "{name} is a {kind}"
        );
        assert!(
            name.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_'),
            "{name}"
        );
        for unit in [
            "_ms",
            "_milliseconds",
            "_minutes",
            "_hours",
            "_kilobytes",
            "_mb",
            "_percent",
            "_bits",
        ] {
            assert!(
                !name.contains(unit),
                "{name}: use seconds, bytes or a ratio"
            );
        }
        for word in [
            "_info",
            "_count",
            "_sum",
            "_bucket",
            "_gauge",
            "_counter",
            "_histogram",
        ] {
            assert!(!name.ends_with(word), "{name}");
        }
    }
    for (name, labels) in series(text) {
        for label in &labels {
            let plain = label
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
            assert!(plain && !TARGET.contains(&&**label), "{name}: {label}");
        }
    }
}
