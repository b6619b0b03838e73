//! Errors as people should read them.
//!
//! The text of kube's `Error::Api` says everything twice: the server's message and reason, and then the whole
//! `Status` once more as Rust writes it for debugging. Programs put that text into errors of their own, and from
//! there it gets into conditions, events and logs. What is in here finds such texts wherever they stand in another
//! one, and leaves the server's message.

use std::borrow::Cow;

/// How kube's text of an error of the API begins.
const BEGIN: &str = "ApiError: ";
/// How the part for debugging begins.
const DEBUG: &str = " (Status { status: ";
/// The reason that kube gives when an answer is no Status. The message is the whole answer then.
const NO_STATUS: &str = "Failed to parse error data";

/// The text, with the server's message in place of each error of the API that kube has written into it.
#[must_use]
pub fn readable(text: &str) -> Cow<'_, str> {
    let mut told = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, error) = rest.split_at(at);
        told.push_str(before);
        if let Some((said, after)) = api_error(error) {
            told.push_str(&said);
            rest = after;
        } else {
            told.push_str(BEGIN);
            rest = &error[BEGIN.len()..];
        }
    }
    if told.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    told.push_str(rest);
    Cow::Owned(told)
}

/// What the server says in few words: its message, or what is to be said in its place.
#[must_use]
pub fn of_status(code: u16, reason: &str, message: &str) -> String {
    match (reason, message) {
        (NO_STATUS, _) => {
            format!("the server answered {code}, and said nothing that Kubernetes would say")
        }
        ("", "") => format!("the server answered {code}, and said no more"),
        (reason, "") => format!("the server answered {code} {reason}, and said no more"),
        (_, message) => message.to_owned(),
    }
}

/// What an error of the API says, at the beginning of a text, and what follows after it.
fn api_error(text: &str) -> Option<(String, &str)> {
    let told = &text[BEGIN.len()..];
    let mut found = told.match_indices(DEBUG);
    found.find_map(|(at, _)| {
        let (before, debug) = told.split_at(at);
        let debug = &debug[" (".len()..];
        let end = end_of_struct(debug)?;
        let after = debug[end..].strip_prefix(')')?;
        let debug = &debug[..end];
        let (reason, message) = (
            text_in(debug, ", reason: ")?,
            text_in(debug, ", message: ")?,
        );
        let code = number_in(debug, ", code: ")?;
        // A message may itself tell of another error.
        let same = before.strip_suffix(&*reason)?.strip_suffix(": ")? == message;
        same.then(|| {
            (
                readable(&of_status(code, &reason, &message)).into_owned(),
                after,
            )
        })
    })
}

/// Where the value of a struct ends that a text begins with.
fn end_of_struct(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text of a member of the outermost struct.
fn text_in(debug: &str, name: &str) -> Option<String> {
    let mut letters = outer_member(debug, name)?.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                'u' => {
                    let number: String = letters
                        .by_ref()
                        .skip(1)
                        .take_while(|letter| *letter != '}')
                        .collect();
                    char::from_u32(u32::from_str_radix(&number, 16).ok()?)?
                }
                letter => letter,
            }),
            letter => text.push(letter),
        }
    }
}

fn number_in(debug: &str, name: &str) -> Option<u16> {
    let value = outer_member(debug, name)?;
    value[..value.find(',')?].parse().ok()
}

/// What follows after the name of a member of the outermost struct.
fn outer_member<'t>(debug: &'t str, name: &str) -> Option<&'t str> {
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (at, letter) in debug.char_indices() {
        if depth == 1 && !quoted && debug[at..].starts_with(name) {
            return Some(&debug[at + name.len()..]);
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{of_status, readable};

    /// As kube writes it.
    fn error(message: &str, reason: &str) -> String {
        let debug = format!(
            "Status {{ status: Some(Failure), code: 404, message: {message:?}, metadata: None, reason: {reason:?}, \
             details: Some(StatusDetails {{ name: \"a\", causes: [StatusCause {{ reason: \"x\", message: \"}}\" }}] }}) }}"
        );
        format!("ApiError: {message}: {reason} ({debug})")
    }

    #[test]
    fn what_the_server_says_is_said_once() {
        let plain = "services \"a\" not found";
        for message in [
            plain,
            "two: colons",
            "lines\nand \\ tabs\t",
            "ä { \u{7f} } (Status { status: 1",
            "ApiError: ",
        ] {
            let error = error(message, "NotFound");
            for (before, after) in [
                ("", ""),
                ("Kubernetes API error: ", "; tried again"),
                ("(", ")"),
            ] {
                assert_eq!(
                    readable(&format!("{before}{error}{after}")),
                    format!("{before}{message}{after}")
                );
            }
            assert_eq!(
                readable(&format!("{error}, {error}")),
                format!("{message}, {message}")
            );
        }
        let nested = error(&error(plain, "NotFound"), "InternalError");
        assert_eq!(readable(&nested), plain);
    }

    #[test]
    fn other_texts_stay() {
        let whole = error("gone", "NotFound");
        for text in [
            "",
            "plain",
            "ApiError: ",
            "ApiError: odd (Status { status: None",
            "Status { code: 1 }",
        ] {
            assert_eq!(readable(text), text);
        }
        // One that was cut off tells what it can.
        for (end, _) in whole.char_indices() {
            assert_eq!(readable(&whole[..end]), &whole[..end]);
        }
    }

    #[test]
    fn a_server_that_says_little() {
        for (reason, message, expected) in [
            ("", "", "the server answered 502, and said no more"),
            (
                "BadGateway",
                "",
                "the server answered 502 BadGateway, and said no more",
            ),
            ("BadGateway", "no", "no"),
            ("", "no", "no"),
            (
                "Failed to parse error data",
                "<html>",
                "the server answered 502, and said nothing that Kubernetes would say",
            ),
        ] {
            assert_eq!(of_status(502, reason, message), expected);
        }
    }
}
