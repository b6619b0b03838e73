//! The forms of addresses and of ranges of them, and what the server says of texts that have another
//! one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::forms::Problems;

const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

const RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// A range of addresses: those that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    first: IpAddr,
    bits: u8,
}

/// An address.
pub(super) fn address(text: &str) -> Problems {
    match parse(text) {
        None => vec![ADDRESS],
        Some((_, true)) => vec!["must not have leading 0s"],
        Some((IpAddr::V6(address), _)) if address.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address"]
        }
        Some(_) => Problems::new(),
    }
}

/// A range of addresses.
pub(super) fn range(text: &str) -> Problems {
    let Some((range, has_zeros)) = parse_range(text) else {
        return vec![RANGE];
    };
    if has_zeros {
        return vec!["must not have leading 0s in IP or prefix length"];
    }
    let mapped = match range.first {
        IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
        IpAddr::V4(_) => false,
    };
    if mapped {
        return vec!["must not be an IPv4-mapped IPv6 address"];
    }
    if masked(range.first, range.bits) != range.first {
        return vec!["must not have bits set beyond the prefix length"];
    }
    Problems::new()
}

/// What to warn about an address that is written in an unusual way.
pub(super) fn unusual(field: &str, text: &str) -> Option<String> {
    let (address, has_zeros) = parse(text)?;
    let usual = match address {
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => IpAddr::V4(mapped),
            None if address.to_string() == text => return None,
            None => {
                return Some(format!(
                    "{field}: IPv6 address {text:?} should be in RFC 5952 canonical format ({:?})",
                    address.to_string()
                ));
            }
        },
        IpAddr::V4(_) if !has_zeros => return None,
        IpAddr::V4(_) => address,
    };
    Some(format!(
        "{field}: non-standard IP address {text:?} will be considered invalid in a future Kubernetes \
         release: use {:?}",
        usual.to_string()
    ))
}

// === impl Range ===

impl Range {
    pub(super) fn new(text: &str) -> Option<Self> {
        parse_range(text).map(|(range, _)| range)
    }

    /// Whether all of the other range and more is in this one.
    pub(super) fn is_wider_than(&self, other: &Self) -> bool {
        self.bits < other.bits
            && self.first.is_ipv4() == other.first.is_ipv4()
            && masked(other.first, self.bits) == masked(self.first, self.bits)
    }
}

/// An address, and whether its numbers have zeros in front.
fn parse(text: &str) -> Option<(IpAddr, bool)> {
    if let Ok(address) = text.parse() {
        return Some((address, false));
    }
    let parts: Vec<&str> = text.split('.').collect();
    let is_number = |part: &&str| {
        !part.is_empty() && part.len() <= 16 && part.bytes().all(|c| c.is_ascii_digit())
    };
    if parts.len() != 4 || !parts.iter().all(is_number) {
        return None;
    }
    let mut octets = [0; 4];
    for (octet, part) in octets.iter_mut().zip(parts) {
        *octet = part.parse::<u64>().ok()?.try_into().ok()?;
    }
    Some((IpAddr::V4(Ipv4Addr::from(octets)), true))
}

fn parse_range(text: &str) -> Option<(Range, bool)> {
    let (address, bits) = text.split_once('/')?;
    let (first, zeros) = parse(address)?;
    let more_zeros = bits.len() > 1 && bits.starts_with('0');
    if bits.is_empty() || !bits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let bits: u8 = bits.parse().ok()?;
    let most = if first.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((Range { first, bits }, zeros || more_zeros))
}

/// The address with nothing but its first bits.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("10.0.0.1", vec![]),
            ("::1", vec![]),
            ("010.0.0.1", vec!["must not have leading 0s"]),
            (
                "::ffff:1.2.3.4",
                vec!["must not be an IPv4-mapped IPv6 address"],
            ),
            ("1.2.3", vec![ADDRESS]),
            ("1.2.3.256", vec![ADDRESS]),
            ("", vec![ADDRESS]),
            ("a", vec![ADDRESS]),
        ] {
            assert_eq!(address(text), expected, "{text}");
        }
    }

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("10.0.0.0/8", vec![]),
            ("0.0.0.0/0", vec![]),
            ("::/0", vec![]),
            ("2001:db8::/64", vec![]),
            (
                "10.0.0.1/8",
                vec!["must not have bits set beyond the prefix length"],
            ),
            (
                "10.0.0.0/08",
                vec!["must not have leading 0s in IP or prefix length"],
            ),
            ("10.0.0.0/33", vec![RANGE]),
            ("10.0.0.0", vec![RANGE]),
            ("x/8", vec![RANGE]),
        ] {
            assert_eq!(range(text), expected, "{text}");
        }
        let wider = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| Range::new(text).expect("a range"));
            one.is_wider_than(&other)
        };
        assert!(wider("10.0.0.0/8", "10.1.0.0/16"));
        assert!(!wider("10.0.0.0/8", "10.0.0.0/8"));
        assert!(!wider("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!wider("::/0", "10.0.0.0/8"));
    }

    #[test]
    fn unusual_addresses() {
        assert_eq!(unusual("f", "10.0.0.1"), None);
        assert_eq!(unusual("f", "2001:db8::1"), None);
        let warning = unusual("f", "2001:DB8::1").expect("it is unusual");
        assert!(warning.ends_with("(\"2001:db8::1\")"), "{warning}");
        let warning = unusual("f", "01.2.3.4").expect("it is unusual");
        assert!(warning.ends_with("use \"1.2.3.4\""), "{warning}");
    }
}
