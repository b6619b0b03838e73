//! Versions.

use std::cmp::Ordering;

use crate::quoted::quoted;

/// A version such as `1.2.3-rc.1+build`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pre: Vec<String>,
    build: Vec<String>,
}

/// Reads a version. A lenient reader takes `v1` too, and zeros in front of numbers.
pub(crate) fn parse(text: &str, lenient: bool) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let made;
    let text = if lenient {
        made = completed(text)?;
        &made
    } else {
        text
    };
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (rest, build) = split(rest, '+');
    let (patch, pre) = split(rest, '-');
    let mut version = Semver {
        major: number(major, "Major")?,
        minor: number(minor, "Minor")?,
        patch: number(patch, "Patch")?,
        pre: Vec::new(),
        build: Vec::new(),
    };
    for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        if part.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if digits && part.len() > 1 && part.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quoted(part)
            ));
        }
        if !part.chars().all(is_allowed) {
            return Err(format!(
                "Invalid character(s) found in prerelease {}",
                quoted(part)
            ));
        }
        version.pre.push(part.to_owned());
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !part.chars().all(is_allowed) {
            return Err(format!(
                "Invalid character(s) found in build meta data {}",
                quoted(part)
            ));
        }
        version.build.push(part.to_owned());
    }
    Ok(version)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

fn split(text: &str, sign: char) -> (&str, Option<&str>) {
    match text.split_once(sign) {
        Some((text, rest)) => (text, Some(rest)),
        None => (text, None),
    }
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {} number {}",
            name.to_lowercase(),
            quoted(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{name} number must not contain leading zeroes {}",
            quoted(text)
        ));
    }
    text.parse()
        .map_err(|_| format!("{name} number {} is too large", quoted(text)))
}

/// The text of a lenient version as a whole one.
fn completed(text: &str) -> Result<String, String> {
    let text = text.trim();
    let parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let mut parts: Vec<String> = parts.map(without_zeros).collect();
    if parts.len() < 3 && parts.iter().any(|part| part.contains(['-', '+'])) {
        return Err("Short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

/// A part of a version without zeros in front of its number.
fn without_zeros(part: &str) -> String {
    let short = part.trim_start_matches('0');
    if part.len() < 2 || short.starts_with(|c: char| c.is_ascii_digit()) {
        return if part.len() < 2 { part } else { short }.to_owned();
    }
    format!("0{short}")
}

// === impl Semver ===

impl Semver {
    /// Which of two versions is the later one. Build data makes no difference.
    pub(crate) fn precedence(&self, other: &Self) -> Ordering {
        let Self {
            major,
            minor,
            patch,
            pre,
            build: _,
        } = self;
        let numbers = (major, minor, patch).cmp(&(&other.major, &other.minor, &other.patch));
        numbers.then_with(|| match (pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let mut pairs = pre.iter().zip(&other.pre);
                let first = pairs.find_map(|(one, two)| {
                    let order = part_order(one, two);
                    (order != Ordering::Equal).then_some(order)
                });
                first.unwrap_or_else(|| pre.len().cmp(&other.pre.len()))
            }
        })
    }
}

/// Numbers come before words.
fn part_order(one: &str, two: &str) -> Ordering {
    match (one.parse::<u64>(), two.parse::<u64>()) {
        (Ok(one), Ok(two)) => one.cmp(&two),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => one.cmp(two),
    }
}
