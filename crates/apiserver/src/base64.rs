//! Bytes as text, as `Secret`s and continue tokens have them.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| (group << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let index = (group >> (18 - 6 * place)) & 0x3f;
                text.push(char::from(ALPHABET[index as usize]));
            }
        }
    }
    text
}

/// URL-safe base64 without padding.
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    encode(bytes)
        .replace('+', "-")
        .replace('/', "_")
        .replace('=', "")
}

/// How many bytes standard base64 stands for.
pub(crate) fn decoded_length(text: &str) -> usize {
    let digits = text.bytes().filter(|byte| !b"=\r\n".contains(byte));
    digits.count() * 3 / 4
}

/// Reads URL-safe base64 without padding.
pub(crate) fn decode_url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut group = 0_u32;
    let mut bits = 0_u32;
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        group = ((group << 6) | u32::from(value)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((group >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// The place of the first byte that makes a text something else than standard base64 with padding.
/// Ends of lines count for nothing.
pub(crate) fn first_illegal(text: &str) -> Option<usize> {
    let mut digits = 0_usize;
    let mut padding = 0_usize;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' | b'\r' => {}
            b'=' if digits % 4 >= 2 && digits % 4 + padding < 4 => padding += 1,
            _ if padding == 0 && ALPHABET.contains(&byte) => digits += 1,
            _ => return Some(place),
        }
    }
    (!(digits + padding).is_multiple_of(4)).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_as_text() {
        for (bytes, text) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("b\nc?", "YgpjPw=="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            let url = encode_url(bytes.as_bytes());
            assert_eq!(decode_url(&url).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn text_that_stands_for_no_bytes() {
        for (text, place) in [
            ("not base64!", Some(3)),
            ("YQ=", Some(3)),
            ("YQ===", Some(4)),
            ("YQ==a", Some(4)),
            ("=", Some(0)),
            ("YWJ-", Some(3)),
            ("Y", Some(1)),
            ("YQ==\n", None),
        ] {
            assert_eq!(first_illegal(text), place, "{text}");
        }
    }
}
