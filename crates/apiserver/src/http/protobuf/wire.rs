//! The encoding of protobuf messages.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) number: usize,
    pub(super) wire: Wire<'a>,
}

/// A value as it is encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of a message in the order in which they come. Ends after a failure.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

const TRUNCATED: &str = "unexpected EOF";

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Result<Field<'a>, String> {
        let key = varint(&mut self.rest)?;
        let wire = match key & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.fixed()?)),
            other => return Err(format!("illegal wireType {other}")),
        };
        let number = usize::try_from(key >> 3).unwrap_or(usize::MAX);
        Ok(Field { number, wire })
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Takes a number of variable length: seven bits in each byte, the lowest first.
fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(TRUNCATED)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("integer overflow".to_owned())
}

/// Numbers that are packed together.
pub(super) fn varints(mut packed: &[u8]) -> impl Iterator<Item = Result<u64, String>> {
    std::iter::from_fn(move || {
        if packed.is_empty() {
            return None;
        }
        let number = varint(&mut packed);
        if number.is_err() {
            packed = &[];
        }
        Some(number)
    })
}
