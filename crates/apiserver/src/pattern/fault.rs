//! What can be wrong with a pattern.

/// What is wrong with a pattern, and the part that is wrong.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) part: String,
}

pub(super) type Read<T> = Result<T, Fault>;

pub(super) fn fault<T>(code: &'static str, part: &str) -> Read<T> {
    let part = part.to_owned();
    Err(Fault { code, part })
}

/// The part of a text that was read when this rest is left.
pub(super) fn before<'a>(text: &'a str, rest: &str) -> &'a str {
    &text[..text.len() - rest.len()]
}
