//! The types that expressions are checked against, and which of them fit each other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::names::field_name;

/// Larger types than this become `dyn`. No schema has one; an expression can be made so that each
/// of its steps doubles the type.
const MAX_PARTS: u32 = 4096;

/// The type of an expression.
#[derive(Debug, Clone)]
#[expect(clippy::enum_variant_names, reason = "the type of a type is called so")]
pub(crate) enum Type {
    /// Something was wrong here, and was reported.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Inner>),
    Map(Arc<(Inner, Inner)>),
    Optional(Arc<Inner>),
    /// The type of a type.
    Type(Arc<Inner>),
    Object(Arc<Object>),
    Opaque(Opaque),
    /// Not known yet, or one of a function's parameters.
    Param(u32),
}

/// A type within another.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    pub(crate) kind: Type,
    /// How many types it is made of.
    parts: u32,
    /// Whether something in it is not known yet.
    open: bool,
}

/// Types of Kubernetes' own functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opaque {
    Ip,
    Cidr,
    Url,
    Quantity,
    Semver,
    Format,
}

/// The members that a schema describes. Each described object is a type of its own.
#[derive(Debug, Default)]
pub(crate) struct Object {
    /// By their names in expressions.
    pub(crate) fields: BTreeMap<String, Declared>,
}

/// What a schema says about a value: its type, and how large it can be.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) kind: Type,
    /// How many characters, elements or entries it can have.
    pub(crate) max_elements: u64,
    /// The bytes of the shortest such value.
    pub(crate) min_bytes: u64,
    /// What lists and maps hold.
    pub(crate) element: Option<Arc<Declared>>,
}

/// What is known of the types that are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    known: Vec<Option<Type>>,
    /// What was known before each change, so that a change can be taken back.
    trail: Vec<(u32, Option<Type>)>,
}

// === impl Type ===

impl Type {
    pub(crate) fn list(element: Self) -> Self {
        Self::bounded(Inner::new(element), |inner| Self::List(Arc::new(inner)))
    }

    pub(crate) fn optional(held: Self) -> Self {
        Self::bounded(Inner::new(held), |inner| Self::Optional(Arc::new(inner)))
    }

    pub(crate) fn type_of(kind: Self) -> Self {
        Self::bounded(Inner::new(kind), |inner| Self::Type(Arc::new(inner)))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        let (key, value) = (Inner::new(key), Inner::new(value));
        if key.parts.saturating_add(value.parts) > MAX_PARTS {
            return Self::Dyn;
        }
        Self::Map(Arc::new((key, value)))
    }

    fn bounded(inner: Inner, make: impl FnOnce(Inner) -> Self) -> Self {
        if inner.parts > MAX_PARTS {
            return Self::Dyn;
        }
        make(inner)
    }

    fn parts(&self) -> u32 {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => 1 + inner.parts,
            Self::Map(inner) => 1 + inner.0.parts + inner.1.parts,
            _ => 1,
        }
    }

    fn is_open(&self) -> bool {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => inner.open,
            Self::Map(inner) => inner.0.open || inner.1.open,
            Self::Param(_) => true,
            _ => false,
        }
    }

    /// Whether each value of the type is one thing, whatever it is.
    pub(crate) fn is_single(&self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Duration | Self::Timestamp
        )
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether two types are the same.
    #[expect(
        clippy::match_same_arms,
        reason = "each arm is about other types of Rust's"
    )]
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(two)) => Arc::ptr_eq(one, two) || one.kind.same(&two.kind),
            (Self::Optional(one), Self::Optional(two)) => {
                Arc::ptr_eq(one, two) || one.kind.same(&two.kind)
            }
            (Self::Type(one), Self::Type(two)) => Arc::ptr_eq(one, two) || one.kind.same(&two.kind),
            (Self::Map(one), Self::Map(two)) => {
                Arc::ptr_eq(one, two)
                    || (one.0.kind.same(&two.0.kind) && one.1.kind.same(&two.1.kind))
            }
            (Self::Object(one), Self::Object(two)) => Arc::ptr_eq(one, two),
            (Self::Opaque(one), Self::Opaque(two)) => one == two,
            (Self::Param(one), Self::Param(two)) => one == two,
            _ => {
                !self.has_parts()
                    && !other.has_parts()
                    && std::mem::discriminant(self) == std::mem::discriminant(other)
            }
        }
    }

    fn has_parts(&self) -> bool {
        matches!(
            self,
            Self::List(_)
                | Self::Map(_)
                | Self::Optional(_)
                | Self::Type(_)
                | Self::Object(_)
                | Self::Opaque(_)
                | Self::Param(_)
        )
    }

    /// Values of these types can be null.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Object(_)
                | Self::Opaque(_)
                | Self::Optional(_)
                | Self::Duration
                | Self::Timestamp
                | Self::Null
                | Self::Dyn
                | Self::Error
        )
    }

    /// The same type with every parameter raised by a number, so that it is like no other.
    pub(crate) fn raised(&self, by: u32) -> Self {
        if !self.is_open() {
            return self.clone();
        }
        match self {
            Self::List(inner) => Self::list(inner.kind.raised(by)),
            Self::Optional(inner) => Self::optional(inner.kind.raised(by)),
            Self::Type(inner) => Self::type_of(inner.kind.raised(by)),
            Self::Map(inner) => Self::map(inner.0.kind.raised(by), inner.1.kind.raised(by)),
            Self::Param(number) => Self::Param(number + by),
            other => other.clone(),
        }
    }
}

impl Inner {
    fn new(kind: Type) -> Self {
        Self {
            parts: kind.parts(),
            open: kind.is_open(),
            kind,
        }
    }
}

/// As in messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Error => "!error!",
            Self::Dyn | Self::Param(_) => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Object(_) => "object",
            Self::Opaque(opaque) => opaque.name(),
            Self::List(inner) => return write!(f, "list({})", inner.kind),
            Self::Optional(inner) => return write!(f, "optional_type({})", inner.kind),
            Self::Type(inner) => return write!(f, "type({})", inner.kind),
            Self::Map(inner) => return write!(f, "map({}, {})", inner.0.kind, inner.1.kind),
        };
        f.write_str(name)
    }
}

// === impl Object ===

impl Object {
    /// What is said of the member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Declared> {
        self.fields.get(&field_name(name)?)
    }
}

// === impl Opaque ===

impl Opaque {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Url => "kubernetes.URL",
            Self::Quantity => "kubernetes.Quantity",
            Self::Semver => "kubernetes.Semver",
            Self::Format => "kubernetes.NamedFormat",
        }
    }
}

// === impl Mapping ===

impl Mapping {
    /// Makes room for as many new parameters. Answers the first.
    pub(crate) fn fresh(&mut self, count: u32) -> u32 {
        let first = self.known.len();
        self.known.resize(first + count as usize, None);
        u32::try_from(first).unwrap_or(u32::MAX)
    }

    fn find(&self, param: u32) -> Option<&Type> {
        self.known.get(param as usize)?.as_ref()
    }

    fn learn(&mut self, param: u32, kind: Type) {
        if let Some(known) = self.known.get_mut(param as usize) {
            let before = known.replace(kind);
            self.trail.push((param, before));
        }
    }

    /// Whether values of the types are good for parameters of the others. What that says about
    /// types that are not known yet is learnt.
    pub(crate) fn assign(&mut self, from: &[Type], to: &[Type]) -> bool {
        if from.len() != to.len() {
            return false;
        }
        let before = self.trail.len();
        let mut pairs = from.iter().zip(to);
        let fits = pairs.all(|(from, to)| self.fits(from, to));
        if !fits {
            for (param, known) in self.trail.drain(before..).rev() {
                self.known[param as usize] = known;
            }
        }
        fits
    }

    fn fits(&mut self, one: &Type, two: &Type) -> bool {
        if let Type::Param(param) = two {
            match self.stands_for(*param, one) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(param) = one {
            return self.stands_for(*param, two).0;
        }
        if one.is_dyn_or_error() || two.is_dyn_or_error() {
            return true;
        }
        match (one, two) {
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::List(one), Type::List(two)) | (Type::Optional(one), Type::Optional(two)) => {
                self.fits(&one.kind, &two.kind)
            }
            (Type::Map(one), Type::Map(two)) => {
                self.fits(&one.0.kind, &two.0.kind) && self.fits(&one.1.kind, &two.1.kind)
            }
            (Type::Type(_), Type::Type(_)) => true,
            _ => one.same(two),
        }
    }

    /// Whether a parameter can stand for a type, and whether it was known what it stands for.
    fn stands_for(&mut self, param: u32, kind: &Type) -> (bool, bool) {
        if matches!(kind, Type::Param(other) if *other == param) {
            return (true, true);
        }
        if let Some(known) = self.find(param).cloned() {
            if kind.same(&known) {
                return (true, true);
            }
            if !self.fits(kind, &known) {
                return (false, true);
            }
            let general = most_general(kind, &known);
            if !self.mentions(param, &general) {
                self.learn(param, general);
            }
            return (true, true);
        }
        if self.mentions(param, kind) {
            return (false, false);
        }
        self.learn(param, kind.clone());
        (true, false)
    }

    /// Whether a type has the parameter in it.
    fn mentions(&self, param: u32, kind: &Type) -> bool {
        if !kind.is_open() {
            return false;
        }
        match kind {
            Type::Param(other) if *other == param => true,
            Type::Param(other) => self
                .find(*other)
                .is_some_and(|known| self.mentions(param, known)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => {
                self.mentions(param, &inner.kind)
            }
            Type::Map(inner) => {
                self.mentions(param, &inner.0.kind) || self.mentions(param, &inner.1.kind)
            }
            _ => false,
        }
    }

    /// A type with everything in it that is known by now; what is not is `dyn` if `closed`.
    pub(crate) fn substitute(&self, kind: &Type, closed: bool) -> Type {
        if !kind.is_open() {
            return kind.clone();
        }
        match kind {
            Type::Param(param) => match self.find(*param) {
                Some(known) => self.substitute(known, closed),
                None if closed => Type::Dyn,
                None => kind.clone(),
            },
            Type::List(inner) => Type::list(self.substitute(&inner.kind, closed)),
            Type::Optional(inner) => Type::optional(self.substitute(&inner.kind, closed)),
            Type::Type(inner) => Type::type_of(self.substitute(&inner.kind, closed)),
            Type::Map(inner) => Type::map(
                self.substitute(&inner.0.kind, closed),
                self.substitute(&inner.1.kind, closed),
            ),
            other => other.clone(),
        }
    }
}

/// The one of two types that says less.
pub(crate) fn most_general(one: &Type, two: &Type) -> Type {
    if says_no_more(one, two) {
        one.clone()
    } else {
        two.clone()
    }
}

#[expect(
    clippy::match_same_arms,
    reason = "the arms are in the order in which they count"
)]
fn says_no_more(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Error | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Error | Type::Param(_)) => false,
        (Type::List(one), Type::List(two)) | (Type::Optional(one), Type::Optional(two)) => {
            says_no_more(&one.kind, &two.kind)
        }
        (Type::Map(one), Type::Map(two)) => {
            says_no_more(&one.0.kind, &two.0.kind) && says_no_more(&one.1.kind, &two.1.kind)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => one.same(two),
    }
}
