//! Hosts, addresses of mail and links.

use std::sync::LazyLock;

use regex::Regex;

/// Letters of any script, and at the end a domain of two letters or more unless the host is one word.
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let first = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let word = format!("{first}(?:-?{first}{{0,62}})?");
    let labels = format!(r"(?:{first}(?:{inner}{{0,61}}{first})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^(?:{word}|{labels})$")).expect("the pattern is fixed")
});

pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// An address of mail, with or without the name of its owner.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim();
    let Some(inner) = text.strip_suffix('>') else {
        return is_address(text);
    };
    let Some((owner, address)) = inner.rsplit_once('<') else {
        return false;
    };
    let owner = owner.trim();
    let is_quoted = owner.len() > 1 && owner.starts_with('"') && owner.ends_with('"');
    let is_words = owner.chars().all(|c| is_atom(c) || c == ' ' || c == '.');
    (is_quoted || is_words) && is_address(address)
}

fn is_address(text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else {
        return false;
    };
    let is_quoted = user.len() > 1 && user.starts_with('"') && user.ends_with('"');
    let is_literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::IpAddr>().is_ok());
    (is_quoted || is_dotted(user)) && (is_literal || is_dotted(host))
}

/// Words with single dots between.
fn is_dotted(text: &str) -> bool {
    text.split('.')
        .all(|word| !word.is_empty() && word.chars().all(is_atom))
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

/// A link that a request can be made for: one with a scheme, or an absolute path.
pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|c| c < b' ' || c == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let has_authority = rest.starts_with("//") && (!scheme.is_empty() || !rest.starts_with("///"));
    if !has_authority {
        return has_whole_escapes(rest);
    }
    let rest = &rest[2..];
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    is_authority(authority) && has_whole_escapes(path)
}

/// The scheme, or nothing in front of what has none. None where a colon stands first.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (place, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if place > 0 => {}
            ':' if place > 0 => return Some((&text[..place], &text[place + 1..])),
            ':' => return None,
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(fits) || !has_whole_escapes(user) {
        return false;
    }
    if let Some(inner) = host.strip_prefix('[') {
        return inner
            .rsplit_once(']')
            .is_some_and(|(_, port)| is_port(port));
    }
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    let fits = |c: char| {
        c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c) || !c.is_ascii()
    };
    is_port(port) && name.chars().all(fits) && has_whole_escapes(name)
}

/// Nothing, or a colon and digits, of which there may be none.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|c| c.is_ascii_digit()))
}

/// Whether two hexadecimal digits follow each percent sign.
fn has_whole_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        rest.get(..2)
            .is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))
    })
}
