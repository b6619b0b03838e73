use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::value::{Cidr, Outcome, Value};

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
    let parsed = parse_address(text).map_err(|why| {
        format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): \
             {why}"
        )
    })?;
    match parsed {
        (_, Some(_)) => Err(format!(
            "IP address {text:?} with zone value is not allowed"
        )),
        (IpAddr::V6(address), None) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        (address, None) => Ok(address),
    }
}

/// An address as Go reads it, with its zone.
fn parse_address(text: &str) -> Result<(IpAddr, Option<&str>), String> {
    match text
        .find(['.', ':', '%'])
        .map(|place| text.as_bytes()[place])
    {
        Some(b'.') => Ok((IpAddr::V4(parse_v4(text)?), None)),
        Some(b':') => {
            let (address, zone) = match text.split_once('%') {
                Some((_, "")) => return Err("zone must be a non-empty string".to_owned()),
                Some((address, zone)) => (address, Some(zone)),
                None => (text, None),
            };
            let parsed: Option<Ipv6Addr> = address.parse().ok();
            let parsed = parsed.ok_or_else(|| v6_problem(address))?;
            Ok((IpAddr::V6(parsed), zone))
        }
        Some(_) => Err("missing IPv6 address".to_owned()),
        None => Err("unable to parse IP".to_owned()),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let mut fields = Vec::new();
    let (mut value, mut digits) = (0u16, 0);
    let bytes = text.as_bytes();
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => return Err(LEADING_ZERO.to_owned()),
            b'0'..=b'9' => {
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            b'.' => {
                let at = &text[place..];
                if place == 0 || place + 1 == bytes.len() || bytes[place - 1] == b'.' {
                    return Err(format!(
                        "IPv4 field must have at least one digit (at {at:?})"
                    ));
                }
                if fields.len() == 3 {
                    return Err("IPv4 address too long".to_owned());
                }
                fields.push(u8::try_from(value).unwrap_or(u8::MAX));
                (value, digits) = (0, 0);
            }
            _ => {
                let at = text.get(place..).unwrap_or_default();
                return Err(format!("unexpected character (at {at:?})"));
            }
        }
    }
    fields.push(u8::try_from(value).unwrap_or(u8::MAX));
    let fields: Result<[u8; 4], _> = fields.try_into();
    let fields = fields.map_err(|_| "IPv4 address too short".to_owned())?;
    Ok(Ipv4Addr::from(fields))
}

/// What is wrong with an address of version 6.
fn v6_problem(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    if let Some(place) = text.find(|c| !allowed(c)) {
        return format!("unexpected character, want colon (at {:?})", &text[place..]);
    }
    if text
        .split(':')
        .any(|field| field.len() > 4 && !field.contains('.'))
    {
        let at = text.split(':').find(|field| field.len() > 4);
        return format!(
            "each group must have 4 or less digits (at {:?})",
            at.unwrap_or_default()
        );
    }
    if text.matches("::").count() > 1 {
        let at = text.rfind("::").map_or(text, |place| &text[place..]);
        return format!("multiple :: in address (at {at:?})");
    }
    if text.ends_with(':') && !text.ends_with("::") {
        return "colon must be followed by more characters (at \":\")".to_owned();
    }
    "address string too short".to_owned()
}

fn cidr(text: &str) -> Result<Cidr, String> {
    let wrong = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({text:?}): \
             {why}"
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let (address, zone) =
        parse_address(address).map_err(|why| wrong(&format!("ParseAddr({address:?}): {why}")))?;
    if zone.is_some() {
        return Err(wrong("IPv6 zones cannot be present in a prefix"));
    }
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
    let padded = bits.len() > 1 && bits.starts_with('0');
    let number: Option<u16> = bits.parse().ok().filter(|_| digits && !padded);
    let Some(number) = number else {
        return Err(wrong(&format!("bad bits after slash: {bits:?}")));
    };
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let Some(bits) = u8::try_from(number).ok().filter(|bits| *bits <= limit) else {
        return Err(wrong("prefix length out of range"));
    };
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
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
