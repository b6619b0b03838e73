use super::Overload;
use crate::cel::types::{Opaque, Type};

/// A function by its name, and the ways to call it: a name for each, and its signature.
pub(super) type Function = (&'static str, &'static [(&'static str, &'static str)]);

struct Reader<'a> {
    rest: &'a str,
    /// The letters that stand for types, in the order of their numbers.
    params: Vec<char>,
}

/// Reads a signature as in `string.(int) bool`. A single capital stands for any type.
pub(super) fn read(id: &'static str, signature: &'static str) -> Overload {
    let mut reader = Reader {
        rest: signature,
        params: Vec::new(),
    };
    let mut args = Vec::new();
    let member = !signature.starts_with('(');
    if member {
        args.push(reader.kind());
        reader.sign('.');
    }
    args.extend(reader.list());
    let result = reader.kind();
    Overload {
        id,
        member,
        args,
        result,
        params: u32::try_from(reader.params.len()).unwrap_or(u32::MAX),
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn sign(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Types in brackets. There may be none.
    fn list(&mut self) -> Vec<Type> {
        let mut kinds = Vec::new();
        if !self.sign('(') || self.sign(')') {
            return kinds;
        }
        loop {
            kinds.push(self.kind());
            if !self.sign(',') {
                self.sign(')');
                return kinds;
            }
        }
    }

    fn kind(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "IP" => Type::Opaque(Opaque::Ip),
            "CIDR" => Type::Opaque(Opaque::Cidr),
            "URL" => Type::Opaque(Opaque::Url),
            "Quantity" => Type::Opaque(Opaque::Quantity),
            "Semver" => Type::Opaque(Opaque::Semver),
            "Format" => Type::Opaque(Opaque::Format),
            "list" => Type::list(self.inner()),
            "optional" => Type::optional(self.inner()),
            "type" => Type::type_of(self.inner()),
            "map" => {
                let mut inner = self.list().into_iter();
                let (key, value) = (inner.next(), inner.next());
                Type::map(key.unwrap_or(Type::Dyn), value.unwrap_or(Type::Dyn))
            }
            _ => match (name.len(), name.chars().next()) {
                (1, Some(letter)) => self.param(letter),
                _ => Type::Dyn,
            },
        }
    }

    fn inner(&mut self) -> Type {
        self.list().into_iter().next().unwrap_or(Type::Dyn)
    }

    fn param(&mut self, letter: char) -> Type {
        let number = self.params.iter().position(|known| *known == letter);
        let number = number.unwrap_or_else(|| {
            self.params.push(letter);
            self.params.len() - 1
        });
        Type::Param(u32::try_from(number).unwrap_or(u32::MAX))
    }
}
