//! Codes: digits and letters with a rule.

/// Whether all of a text are hexadecimal digits.
pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// A UUID with all its dashes or with none, and of one version if that is given.
pub(super) fn is_uuid(text: &str, version: Option<char>) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = match parts[..] {
        [digits] => digits.to_owned(),
        _ if parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) => parts.concat(),
        _ => return false,
    };
    if digits.len() != 32 || !is_hex(&digits) {
        return false;
    }
    let at = |place: usize| digits[place..].chars().next().unwrap_or_default();
    match version {
        None => true,
        Some('3') => at(12) == '3',
        Some(version) => at(12) == version && "89abAB".contains(at(16)),
    }
}

/// Bytes in groups of four letters, and at least one group.
pub(super) fn is_base64(text: &str) -> bool {
    let kept = text.strip_suffix("==").or_else(|| text.strip_suffix('='));
    let kept = kept.unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && kept
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'+' || c == b'/')
}

/// An address of 6, 8 or 20 bytes: pairs with colons or with dashes, or groups of four with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let lengths = |separator: char, digits: usize| {
        let groups: Vec<&str> = text.split(separator).collect();
        let fit = groups
            .iter()
            .all(|group| group.len() == digits && is_hex(group));
        fit.then_some(groups.len() * digits / 2)
    };
    let bytes = lengths(':', 2)
        .or_else(|| lengths('-', 2))
        .or_else(|| lengths('.', 4));
    // Without anything between there are six bytes alone.
    let plain = text.len() == 12 && is_hex(text);
    plain || bytes.is_some_and(|bytes| [6, 8, 20].contains(&bytes))
}

fn without_gaps(text: &str) -> Vec<u8> {
    let gap = |c: char| c.is_whitespace() || c == '-';
    text.replace(gap, "").into_bytes()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let code = without_gaps(text);
    let (Some(digits), Some(last)) = (code.get(..9), code.get(9)) else {
        return false;
    };
    if code.len() != 10 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..)
        .zip(digits)
        .map(|(place, c)| place * u32::from(c - b'0'))
        .sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let code = without_gaps(text);
    if code.len() != 13 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights
        .zip(&code)
        .map(|(weight, c)| weight * u32::from(c - b'0'))
        .sum();
    sum.is_multiple_of(10)
}

/// Beginnings of the numbers of cards, and how many digits follow the beginning.
const CARDS: [(u32, u32, usize); 12] = [
    (4, 4, 12),
    (4, 4, 15),
    (51, 55, 14),
    (2221, 2720, 12),
    (6011, 6011, 12),
    (650, 659, 13),
    (34, 34, 13),
    (37, 37, 13),
    (300, 305, 11),
    (36, 36, 12),
    (38, 38, 12),
    (62, 62, 14),
];

/// More of them, with four digits in front.
const OLD_CARDS: [(u32, u32, usize); 4] = [
    (2131, 2131, 11),
    (1800, 1800, 11),
    (35, 35, 14),
    (67, 67, 14),
];

pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let known = CARDS.iter().chain(&OLD_CARDS).any(|(first, last, rest)| {
        let Some(length) = digits.len().checked_sub(*rest) else {
            return false;
        };
        length == first.to_string().len()
            && digits[..length]
                .parse::<u32>()
                .is_ok_and(|start| (*first..=*last).contains(&start))
    });
    let doubled = |(place, c): (usize, u8)| {
        let digit = u32::from(c - b'0');
        match place % 2 {
            0 => digit,
            _ if digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        }
    };
    let sum: u32 = digits.bytes().rev().enumerate().map(doubled).sum();
    known && sum.is_multiple_of(10)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let fits = |(place, c): (usize, u8)| match place {
        3 | 6 => c == b'-' || c == b' ',
        _ => c.is_ascii_digit(),
    };
    text.len() == 11 && text.bytes().enumerate().all(fits)
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    [3, 6].contains(&digits.len()) && is_hex(digits)
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let inner = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'));
    let is_part = |part: &str| {
        let part = part.trim();
        let plain = part == "0" || !part.starts_with('0');
        plain && part.bytes().all(|c| c.is_ascii_digit()) && part.parse::<u8>().is_ok()
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_part))
}
