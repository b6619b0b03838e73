use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::value::{Cidr, Outcome, Value};
use crate::quoted::quoted;

pub(super) const ROOM: [Room; 9] = [
    (&["ip"], ip),
    (&["isIP"], |call| match call.args {
        [Value::Text(text)] => Ok(Value::Bool(address(text).is_ok())),
        _ => call.no_overload(),
    }),
    (&["ip.isCanonical"], is_canonical),
    (
        &[
            "family",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        ],
        property,
    ),
    (&["cidr"], |call| match call.args {
        [Value::Text(text)] => Ok(Value::Cidr(cidr(text).map_err(Fault::new)?)),
        _ => call.no_overload(),
    }),
    (&["isCIDR"], |call| match call.args {
        [Value::Text(text)] => Ok(Value::Bool(cidr(text).is_ok())),
        _ => call.no_overload(),
    }),
    (&["containsIP"], |call| match call.args {
        [Value::Cidr(range), Value::Ip(inner)] => Ok(Value::Bool(range.contains(*inner))),
        [Value::Cidr(range), Value::Text(inner)] => {
            let inner = address(inner).map_err(Fault::new)?;
            Ok(Value::Bool(range.contains(inner)))
        }
        _ => call.no_overload(),
    }),
    (&["containsCIDR"], |call| match call.args {
        [Value::Cidr(range), Value::Cidr(inner)] => Ok(Value::Bool(range.includes(inner))),
        [Value::Cidr(range), Value::Text(inner)] => {
            let inner = cidr(inner).map_err(Fault::new)?;
            Ok(Value::Bool(range.includes(&inner)))
        }
        _ => call.no_overload(),
    }),
    (&["masked", "prefixLength"], |call| match call.args {
        [Value::Cidr(range)] if call.function == "masked" => Ok(Value::Cidr(range.masked())),
        [Value::Cidr(range)] => Ok(Value::Int(i64::from(range.bits))),
        _ => call.no_overload(),
    }),
];

const LEADING_ZERO: &str = "IPv4 field has octet with leading zero";

fn ip<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Text(text)] => Ok(Value::Ip(address(text).map_err(Fault::new)?)),
        [Value::Cidr(range)] => Ok(Value::Ip(range.address)),
        _ => call.no_overload(),
    }
}

fn is_canonical<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text)] = call.args else {
        return call.no_overload();
    };
    let address = address(text).map_err(Fault::new)?;
    Ok(Value::Bool(address.to_string() == **text))
}

/// An address without a zone. One of version 4 that is written as one of version 6 is none.
fn address(text: &str) -> Result<IpAddr, String> {
    let shown = quoted(text);
    let parsed = parse_address(text).map_err(|why| {
        format!("IP Address {shown} parse error during conversion from string: {why}")
    })?;
    match parsed {
        (_, Some(_)) => Err(format!("IP address {shown} with zone value is not allowed")),
        (IpAddr::V6(address), None) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"))
        }
        (address, None) => Ok(address),
    }
}

/// What is wrong with an address, and from where on if that is said.
type Problem<'a> = (&'static str, Option<&'a str>);

/// An address as Go reads it, with its zone.
fn parse_address(text: &str) -> Result<(IpAddr, Option<&str>), String> {
    let sign = text.find(['.', ':', '%']);
    let parsed = match sign.map(|place| text.as_bytes()[place]) {
        Some(b'.') => parse_v4(text).map(|fields| (IpAddr::from(fields), None)),
        Some(b':') => parse_zoned(text).map(|(bytes, zone)| (IpAddr::from(bytes), zone)),
        Some(_) => Err(("missing IPv6 address", None)),
        None => Err(("unable to parse IP", None)),
    };
    parsed.map_err(|(why, at)| {
        let at = at.map(|at| format!(" (at {})", quoted(at)));
        format!(
            "ParseAddr({}): {why}{}",
            quoted(text),
            at.unwrap_or_default()
        )
    })
}

fn parse_v4(text: &str) -> Result<[u8; 4], Problem<'_>> {
    let mut fields = Vec::new();
    let (mut value, mut digits) = (0u16, 0);
    let bytes = text.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => return Err((LEADING_ZERO, None)),
            b'0'..=b'9' => {
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", None));
                }
            }
            b'.' => {
                if place == 0 || place + 1 == bytes.len() || bytes[place - 1] == b'.' {
                    let why = "IPv4 field must have at least one digit";
                    return Err((why, Some(&text[place..])));
                }
                if fields.len() == 3 {
                    return Err(("IPv4 address too long", None));
                }
                fields.push(u8::try_from(value).unwrap_or(u8::MAX));
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", text.get(place..))),
        }
    }
    fields.push(u8::try_from(value).unwrap_or(u8::MAX));
    let fields: Result<[u8; 4], _> = fields.try_into();
    fields.map_err(|_| ("IPv4 address too short", None))
}

/// An address of version 6, with the zone behind it.
fn parse_zoned(text: &str) -> Result<([u8; 16], Option<&str>), Problem<'_>> {
    match text.split_once('%') {
        Some((_, "")) => Err(("zone must be a non-empty string", None)),
        Some((address, zone)) => Ok((parse_v6(address)?, Some(zone))),
        None => Ok((parse_v6(text)?, None)),
    }
}

fn parse_v6(text: &str) -> Result<[u8; 16], Problem<'_>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut gap = None;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = after;
    }
    while bytes.len() < 16 && !(rest.is_empty() && gap == Some(bytes.len())) {
        let group = hexadecimal(rest)?;
        let after = &rest[group.len()..];
        if after.starts_with('.') {
            if gap.is_none() && bytes.len() != 12 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((why, Some(rest)));
            }
            if bytes.len() > 12 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((why, Some(rest)));
            }
            bytes.extend(parse_v4(rest)?);
            rest = "";
            break;
        }
        let number = u16::from_str_radix(group, 16).unwrap_or_default();
        bytes.extend(number.to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", Some(rest)));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", Some(rest)));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", Some(rest)));
            }
            gap = Some(bytes.len());
            rest = after;
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", Some(rest)));
    }
    match gap {
        Some(_) if bytes.len() == 16 => {
            return Err(("the :: must expand to at least one field of zeros", None));
        }
        Some(gap) => {
            let zeros = vec![0; 16 - bytes.len()];
            bytes.splice(gap..gap, zeros);
        }
        None => {}
    }
    bytes
        .try_into()
        .map_err(|_| ("address string too short", None))
}

/// The hexadecimal digits that a text begins with: one to four.
fn hexadecimal(text: &str) -> Result<&str, Problem<'_>> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit());
    match end.unwrap_or(text.len()) {
        0 => {
            let why = "each colon-separated field must have at least one digit";
            // There is no place to show at the end.
            Err((why, Some(text).filter(|text| !text.is_empty())))
        }
        1..=4 => Ok(&text[..end.unwrap_or(text.len())]),
        _ => Err(("each group must have 4 or less digits", Some(text))),
    }
}

fn cidr(text: &str) -> Result<Cidr, String> {
    let wrong = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): \
             {why}",
            quoted(text)
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let (address, zone) = parse_address(address).map_err(|why| wrong(&why))?;
    if zone.is_some() {
        return Err(wrong("IPv6 zones cannot be present in a prefix"));
    }
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
    let padded = bits.len() > 1 && bits.starts_with('0');
    let number: Option<i64> = bits.parse().ok().filter(|_| digits && !padded);
    let Some(number) = number else {
        return Err(wrong(&format!("bad bits after slash: {}", quoted(bits))));
    };
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let Some(bits) = u8::try_from(number).ok().filter(|bits| *bits <= limit) else {
        return Err(wrong("prefix length out of range"));
    };
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            let shown = quoted(text);
            Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"))
        }
        address => Ok(Cidr { address, bits }),
    }
}

fn property<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Ip(address)] = call.args else {
        return call.no_overload();
    };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    };
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    Ok(Value::Bool(match call.function {
        "family" => return Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => match address {
            IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        },
        "isLinkLocalUnicast" => link_local,
        _ => {
            !(address.is_unspecified()
                || broadcast
                || address.is_loopback()
                || address.is_multicast()
                || link_local)
        }
    }))
}

// === impl Cidr ===

impl Cidr {
    /// The first address of the range.
    fn masked(&self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits));
                IpAddr::V4(Ipv4Addr::from(
                    u32::from(address) & mask.unwrap_or_default(),
                ))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits));
                IpAddr::V6(Ipv6Addr::from(
                    u128::from(address) & mask.unwrap_or_default(),
                ))
            }
        };
        Self { address, ..*self }
    }

    fn contains(&self, address: IpAddr) -> bool {
        let inner = Self { address, ..*self };
        self.address.is_ipv4() == address.is_ipv4() && inner.masked() == self.masked()
    }

    fn includes(&self, inner: &Self) -> bool {
        self.bits <= inner.bits && self.contains(inner.address)
    }
}
