//! The forms of answers, and which of them a client accepts.

use serde_json::Value;

/// In which language an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
}

/// One range of an Accept header.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Range<'a> {
    media_type: &'a str,
    /// The kind into which objects are to be turned, with its group and version.
    pub(super) kind: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
}

/// What can be had.
pub(super) const MEDIA_TYPES: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

// === impl Media ===

impl Media {
    /// The language of the answer to a request with this Accept header. JSON if it names none that
    /// is known, so that failures can be read.
    pub(super) fn of_answer(accept: &str) -> Self {
        let known = ranges(accept).into_iter().find_map(|range| range.media());
        known.unwrap_or(Self::Json)
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }

    /// Writes a document.
    pub(super) fn write(self, document: &Value) -> String {
        match self {
            Self::Json => document.to_string(),
            Self::Yaml => {
                // Go's library does not indent lists, and never folds texts.
                let options = serde_saphyr::ser_options! {
                    compact_list_indent: true,
                    min_fold_chars: usize::MAX,
                    folded_wrap_chars: usize::MAX,
                };
                serde_saphyr::to_string_with_options(document, options)
                    .expect("every JSON value can be written as YAML")
            }
        }
    }
}

/// The ranges of an Accept header, best first.
pub(super) fn ranges(accept: &str) -> Vec<Range<'_>> {
    let mut found: Vec<(u16, Range<'_>)> = accept
        .split(',')
        .filter(|range| !range.trim().is_empty())
        .map(Range::parse)
        .collect();
    if found.is_empty() {
        found.push(Range::parse("*/*"));
    }
    found.retain(|(quality, _)| *quality > 0);
    // What is equally good stays in order.
    found.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
    found.into_iter().map(|(_, range)| range).collect()
}

// === impl Range ===

impl<'a> Range<'a> {
    /// A range and its quality in thousandths.
    fn parse(text: &'a str) -> (u16, Self) {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            media_type: parts.next().unwrap_or_default(),
            ..Self::default()
        };
        let mut quality = 1000;
        for part in parts {
            match part.split_once('=') {
                Some(("as", kind)) => range.kind = kind,
                Some(("g", group)) => range.group = group,
                Some(("v", version)) => range.version = version,
                Some(("q", text)) => quality = thousandths(text),
                _ => {}
            }
        }
        (quality, range)
    }

    /// The language that the range asks for, if it is known.
    pub(super) fn media(&self) -> Option<Media> {
        match self.media_type {
            "application/json" | "application/*" | "*/*" => Some(Media::Json),
            "application/yaml" => Some(Media::Yaml),
            _ => None,
        }
    }
}

/// `0.5` as 500. What cannot be read counts in full.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{:0<3}", fraction.chars().take(3).collect::<String>());
    match (whole.parse::<u16>(), digits.parse::<u16>()) {
        (Ok(0), Ok(fraction)) => fraction,
        _ => 1000,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: &[(&str, &str)]) {
        let found = ranges(accept);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|range| (range.media_type, range.kind))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn ranges_by_quality() {
        check("", &[("*/*", "")]);
        check(
            "text/html, application/json;q=0.5",
            &[("text/html", ""), ("application/json", "")],
        );
        check("a/b;q=0.2,c/d;q=0.75", &[("c/d", ""), ("a/b", "")]);
        check("a/b;q=0,c/d;q=nonsense", &[("c/d", "")]);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
            &[("application/json", "Table"), ("application/json", "")],
        );
    }

    #[test]
    fn the_language_of_an_answer() {
        assert_eq!(Media::of_answer(""), Media::Json);
        assert_eq!(Media::of_answer("text/html"), Media::Json);
        assert_eq!(Media::of_answer("application/yaml, */*"), Media::Yaml);
        assert_eq!(
            Media::of_answer("application/yaml;q=0.5,application/json"),
            Media::Json
        );
    }

    #[test]
    fn yaml_reads_back_as_what_it_was() {
        let document = json!({
            "kind": "ConfigMap",
            "data": { "on": "yes", "n": "1", "long": "word ".repeat(60), "two": "a\nb\n", "": "" },
            "list": [{ "a": [1, null, true] }, {}, []],
        });
        let text = Media::Yaml.write(&document);
        let back: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(back, document, "{text}");
        let plain = json!({ "kind": "Status", "message": "a \"b\" not found", "metadata": {} });
        assert_eq!(
            Media::Yaml.write(&plain),
            "kind: Status\nmessage: a \"b\" not found\nmetadata: {}\n"
        );
    }
}
