//! URLs as Go reads them.

use crate::quoted::quoted;

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// With the port, and with brackets around an address of version 6.
    pub(crate) host: String,
    /// As it was written.
    path: String,
    query: String,
    /// All of it.
    pub(crate) text: String,
}

/// What the parts of a URL can have in them as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Query,
}

/// Reads a URL as Go reads that of a request, and once more with a fragment.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    parse_part(text, true)?;
    let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
    unescaped(fragment, Part::Path)?;
    parse_part(url, false).map(|url| Url {
        text: text.to_owned(),
        ..url
    })
}

fn parse_part(text: &str, of_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && of_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        "*".clone_into(&mut url.path);
        return Ok(url);
    }
    let (scheme, rest) = scheme_of(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            // What follows has no parts: `mailto:a@b`.
            return Ok(url);
        }
        if of_request {
            return Err("invalid URI for request".to_owned());
        }
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let with_host = !url.scheme.is_empty() || (!of_request && !rest.starts_with("///"));
    if let Some(after) = rest.strip_prefix("//").filter(|_| with_host) {
        let end = after.find('/').unwrap_or(after.len());
        url.host = authority(&after[..end])?;
        rest = &after[end..];
    }
    unescaped(rest, Part::Path)?;
    rest.clone_into(&mut url.path);
    Ok(url)
}

/// The scheme in front of a colon, if there is one, and the rest.
fn scheme_of(text: &str) -> Result<(&str, &str), String> {
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if place > 0 => {}
            b':' if place == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..place], &text[place + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host of an authority: `user:password@host:port`.
fn authority(text: &str) -> Result<String, String> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.is_some_and(|user| !user.chars().all(valid)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let port_problem = |port: &str| format!("invalid port {} after host", quoted(port));
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else {
            return Err("missing ']' in host".to_owned());
        };
        let port = &host[end + 1..];
        if !is_port(port) {
            return Err(port_problem(port));
        }
        // A zone is written with an escaped `%`, and can have others.
        let mut made = String::new();
        let (inner, zone) = match host[..end].find("%25") {
            Some(place) => (&host[..place], &host[place..end]),
            None => (&host[..end], ""),
        };
        made.push_str(&unescaped(inner, Part::Host)?);
        made.push_str(&unescaped(zone, Part::Query)?);
        made.push_str(&unescaped(&host[end..], Part::Host)?);
        return Ok(made);
    }
    if let Some(place) = host.rfind(':').filter(|place| !is_port(&host[*place..])) {
        return Err(port_problem(&host[place..]));
    }
    unescaped(host, Part::Host)
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

fn unescaped(text: &str, part: Part) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut offset = 0;
    while let Some(byte) = rest.first() {
        let mut taken = 1;
        match byte {
            b'%' => {
                let digits = rest
                    .get(1..3)
                    .and_then(|digits| std::str::from_utf8(digits).ok());
                let hex = digits.filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
                let code = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(code) = code else {
                    let end = text.len().min(offset + 3);
                    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end));
                    let shown = &text[offset..end.unwrap_or(offset).max(offset)];
                    return Err(format!("invalid URL escape {}", quoted(shown)));
                };
                // In a host only what is not ASCII can be escaped.
                if part == Part::Host && code < 0x80 && code != b'%' {
                    let shown = &text[offset..offset + 3];
                    return Err(format!("invalid URL escape {}", quoted(shown)));
                }
                bytes.push(code);
                taken = 3;
            }
            b'+' if part == Part::Query => bytes.push(b' '),
            byte if part == Part::Host && byte.is_ascii() && !is_host_byte(*byte) => {
                let shown = char::from(*byte).to_string();
                return Err(format!("invalid character {} in host name", quoted(&shown)));
            }
            byte => bytes.push(*byte),
        }
        rest = &rest[taken..];
        offset += taken;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Whether a byte of a path is written as it is.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

// === impl Url ===

impl Url {
    pub(crate) fn hostname(&self) -> &str {
        let host = match self.host.rfind(':') {
            Some(place) if is_port(&self.host[place..]) => &self.host[..place],
            _ => &self.host,
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        match self.host.rfind(':') {
            Some(place) if is_port(&self.host[place..]) => &self.host[place + 1..],
            _ => "",
        }
    }

    /// The path as it was written if it was escaped right, or else escaped.
    pub(crate) fn escaped_path(&self) -> String {
        let right = |byte: u8| is_path_byte(byte) || b"!'()*[]%".contains(&byte);
        if self.path == "*" || self.path.bytes().all(right) {
            return self.path.clone();
        }
        let path = unescaped(&self.path, Part::Path).unwrap_or_default();
        path.bytes()
            .map(|byte| {
                if is_path_byte(byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    }

    /// The members of the query, in their order. What is written wrong is none.
    pub(crate) fn members(&self) -> Vec<(String, String)> {
        let pairs = self.query.split('&');
        pairs
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let key = unescaped(key, Part::Query).ok()?;
                Some((key, unescaped(value, Part::Query).ok()?))
            })
            .collect()
    }
}
