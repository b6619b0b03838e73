//! The forms of texts that are names, and what the server says of texts that have another one.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

const ENV_NAME: &str = "a valid environment variable name must consist only of printable ASCII \
    characters other than '='";

const SEARCH_DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
    subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
    alphanumeric character (e.g. '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
    'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' \
    (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// What is wrong with a text.
pub(super) type Problems = Vec<&'static str>;

/// A domain.
pub(super) fn subdomain(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    problems.extend(subdomain_form(text));
    problems
}

/// A domain, however long.
pub(super) fn subdomain_form(text: &str) -> Option<&'static str> {
    (!is_subdomain(text)).then_some(SUBDOMAIN)
}

/// A part of a domain.
pub(super) fn label(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 characters");
    }
    if !is_label(text) {
        let is_domain = is_subdomain(text);
        problems.push(if is_domain {
            "must not contain dots"
        } else {
            LABEL
        });
    }
    problems
}

/// The name of a resource or a version.
pub(super) fn label_1035(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    let fits = is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    (!fits).then_some(LABEL_1035)
}

/// What may stand in front of a slash in the name of something, and the name itself.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            let why = subdomain_form(prefix);
            problems.extend(why.map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_plain_name(name) {
        problems.push(QUALIFIED_NAME.to_owned());
    }
    problems
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 bytes");
    }
    if !text.is_empty() && !is_plain_name(text) {
        problems.push(LABEL_VALUE);
    }
    problems
}

/// A key of the data of a config map or a secret.
pub(super) fn config_key(text: &str) -> Problems {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if text.is_empty() || !text.bytes().all(fits) {
        problems.push(CONFIG_KEY);
    }
    if text == "." {
        problems.push("must not be '.'");
    } else if text == ".." {
        problems.push("must not be '..'");
    } else if text.starts_with("..") {
        problems.push("must not start with '..'");
    }
    problems
}

/// The name of an environment variable.
pub(super) fn env_name(text: &str) -> Problems {
    let fits = |c: u8| (b' '..=b'~').contains(&c) && c != b'=';
    if text.bytes().all(fits) {
        Vec::new()
    } else {
        vec![ENV_NAME]
    }
}

/// The name of a port.
pub(super) fn port_name(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if text.is_empty() || !text.bytes().all(fits) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|c| c.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems
}

/// A domain in which names are looked for.
pub(super) fn search_domain(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    let is_part = |part: &str| is_underscored(part.strip_prefix('_').unwrap_or(part));
    if !text.split('.').all(is_part) {
        problems.push(SEARCH_DOMAIN);
    }
    problems
}

/// A domain, or all domains below one.
pub(super) fn host(text: &str) -> Problems {
    if !text.contains('*') {
        return subdomain(text);
    }
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        problems.push(WILDCARD);
    }
    problems
}

/// The name of a header of HTTP.
pub(super) fn header_name(text: &str) -> Problems {
    let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    if !text.is_empty() && text.bytes().all(fits) {
        Vec::new()
    } else {
        vec![HEADER]
    }
}

/// The name of an image, or any text around which there is no room.
pub(super) fn unpadded(text: &str) -> Problems {
    if text.trim() == text {
        Vec::new()
    } else {
        vec!["must not have leading or trailing whitespace"]
    }
}

/// Whether the text is the name of a parameter of the kernel.
pub(super) fn is_sysctl(text: &str) -> bool {
    text.split(['.', '/']).all(is_underscored)
}

/// A number of percent.
pub(super) fn percent(text: &str) -> Option<&'static str> {
    let number = text.strip_suffix('%').unwrap_or_default();
    let fits = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
    (!fits).then_some(PERCENT)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether the text is a label that may have underscores inside.
fn is_underscored(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    let is_edge = |c: char| c == '-' || c == '_';
    !text.is_empty()
        && text.bytes().all(fits)
        && !text.starts_with(is_edge)
        && !text.ends_with(is_edge)
}

fn is_plain_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next())
        && edge(text.chars().next_back())
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("a-1", vec![]),
            ("a.b", vec!["must not contain dots"]),
            ("A.b", vec![LABEL]),
            ("", vec![LABEL]),
            ("-a", vec![LABEL]),
        ] {
            assert_eq!(label(text), expected, "{text:?}");
        }
        let long = "a".repeat(64);
        assert_eq!(label(&long), ["must be no more than 63 characters"]);
        assert_eq!(subdomain("a.b-c"), Problems::new());
        assert_eq!(subdomain("a..b"), [SUBDOMAIN]);
        assert_eq!(search_domain("_a.b_c"), Problems::new());
        assert_eq!(search_domain("a b"), [SEARCH_DOMAIN]);
        assert_eq!(host("*.a"), Problems::new());
        assert_eq!(host("a.*"), [WILDCARD]);
        assert_eq!(header_name("X-A"), Problems::new());
        assert_eq!(header_name("a b"), [HEADER]);
        assert!(is_sysctl("net/a.b_c"));
        assert!(!is_sysctl("A b"));
    }

    #[test]
    fn names_of_ports() {
        assert_eq!(port_name("http-2"), Problems::new());
        assert_eq!(
            port_name("8080"),
            ["must contain at least one letter (a-z)"]
        );
        assert_eq!(
            port_name("-a--b"),
            [
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ]
        );
        assert_eq!(port_name("a_b").len(), 1);
        assert_eq!(port_name("a-very-long-name").len(), 1);
    }

    #[test]
    fn names_of_variables_and_keys() {
        assert_eq!(env_name("a.b c"), Problems::new());
        assert_eq!(env_name("a=b"), [ENV_NAME]);
        assert_eq!(env_name("ä"), [ENV_NAME]);
        assert_eq!(config_key("a.b_C-1"), Problems::new());
        assert_eq!(config_key("a/b"), [CONFIG_KEY]);
        assert_eq!(config_key(".."), ["must not be '..'"]);
    }

    #[test]
    fn percents() {
        assert_eq!(percent("50%"), None);
        for text in ["50", "%", "-1%", "1.5%"] {
            assert_eq!(percent(text), Some(PERCENT), "{text}");
        }
    }
}
