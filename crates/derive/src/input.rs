//! What the macro reads: which cases an error has, and what is said of each.

use proc_macro2::Span;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, Index, LitStr, Member,
    Meta, Result, Type, ext::IdentExt, meta::ParseNestedMeta, spanned::Spanned,
};

/// The longest reason that the API takes.
const MAX_REASON: usize = 1024;

/// What can be said of a case, for those who said something else.
const CHOICE: &str =
    "`transient`, `transient, reason = \"..\"`, `conflict` or `permanent, reason = \"..\"`";

/// An error type.
pub(crate) struct Input {
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) cases: Vec<Case>,
}

/// A variant of an enum, or a whole struct.
pub(crate) struct Case {
    /// `None` for a struct.
    pub(crate) variant: Option<Ident>,
    pub(crate) class: Class,
}

/// How a case is answered.
pub(crate) enum Class {
    Transient {
        reason: Option<LitStr>,
    },
    Conflict,
    Permanent {
        reason: LitStr,
    },
    /// As the error in this field.
    OfSource {
        member: Member,
        ty: Box<Type>,
    },
}

/// The word that an attribute begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Transient,
    Conflict,
    Permanent,
}

// === impl Input ===

impl Input {
    /// Reads a type.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, at the places where it is wrong.
    pub(crate) fn of(input: DeriveInput) -> Result<Self> {
        let DeriveInput {
            attrs,
            ident,
            generics,
            data,
            ..
        } = input;
        let cases = match data {
            Data::Struct(data) => vec![Case::of(None, &ident, &attrs, data.fields)],
            Data::Enum(data) => {
                if let Some(attribute) = attributes(&attrs).next() {
                    let message = "say it of each variant: they are answered differently";
                    return Err(Error::new_spanned(attribute, message));
                }
                let variants = data.variants.into_iter();
                variants
                    .map(|variant| {
                        let name = variant.ident;
                        Case::of(Some(name.clone()), &name, &variant.attrs, variant.fields)
                    })
                    .collect()
            }
            Data::Union(data) => {
                let message = "an error is an enum or a struct, not a union";
                return Err(Error::new_spanned(data.union_token, message));
            }
        };
        Ok(Self {
            name: ident,
            generics,
            cases: all(cases)?,
        })
    }
}

/// All values, or all errors as one.
fn all<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let mut errors: Option<Error> = None;
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), None) => errors = Some(error),
        }
    }
    errors.map_or(Ok(values), Err)
}

// === impl Case ===

impl Case {
    fn of(
        variant: Option<Ident>,
        name: &Ident,
        attrs: &[Attribute],
        fields: Fields,
    ) -> Result<Self> {
        for field in &fields {
            if let Some(attribute) = attributes(&field.attrs).next() {
                let message = format!("say it of `{name}`, not of one of its fields");
                return Err(Error::new_spanned(attribute, message));
            }
        }
        let class = match said(attrs)? {
            Some(class) => class,
            None => source(attrs, fields).ok_or_else(|| unsaid(name))?,
        };
        Ok(Self { variant, class })
    }
}

/// The attributes that are meant for this macro.
fn attributes(attrs: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("classify"))
}

/// What the attributes say; `None` if there is none.
fn said(attrs: &[Attribute]) -> Result<Option<Class>> {
    let mut attributes = attributes(attrs);
    let Some(attribute) = attributes.next() else {
        return Ok(None);
    };
    if let Some(second) = attributes.next() {
        let message = "it is said already; one `#[classify(..)]` is enough";
        return Err(Error::new_spanned(second, message));
    }

    let mut word: Option<Word> = None;
    let mut reason: Option<LitStr> = None;
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("reason") {
            reason = Some(meta.value()?.parse()?);
            return Ok(());
        }
        match word.replace(Word::of(&meta)?) {
            None => Ok(()),
            Some(_) => Err(meta.error(format!("an error is one of {CHOICE}"))),
        }
    })?;
    match (word, reason) {
        (Some(Word::Transient), reason) => {
            let reason = reason.map(camel_case).transpose()?;
            Ok(Some(Class::Transient { reason }))
        }
        (Some(Word::Conflict), None) => Ok(Some(Class::Conflict)),
        (Some(Word::Permanent), Some(reason)) => {
            let reason = camel_case(reason)?;
            Ok(Some(Class::Permanent { reason }))
        }
        (Some(Word::Permanent), None) => {
            let message = "a permanent error has a reason, which its condition shows: \
                           `#[classify(permanent, reason = \"InvalidSpec\")]`";
            Err(Error::new_spanned(attribute, message))
        }
        (Some(Word::Conflict), Some(reason)) => {
            let message = "a conflict has no reason: no condition shows it";
            Err(Error::new_spanned(reason, message))
        }
        (None, _) => {
            let message = format!("expected {CHOICE}");
            Err(Error::new_spanned(attribute, message))
        }
    }
}

/// The field with the error that this one comes from, as `thiserror` finds it.
fn source(attrs: &[Attribute], fields: Fields) -> Option<Class> {
    let fields: Vec<Field> = fields.into_iter().collect();
    let marked = |field: &Field| {
        let marks = |attribute: &Attribute| {
            matches!(attribute.meta, Meta::Path(_))
                && ["from", "source"]
                    .into_iter()
                    .any(|mark| attribute.path().is_ident(mark))
        };
        field.attrs.iter().any(marks)
    };
    let named = |field: &Field| field.ident.as_ref().is_some_and(|name| name == "source");
    let place = fields
        .iter()
        .position(marked)
        .or_else(|| fields.iter().position(named))
        .or_else(|| (fields.len() == 1 && is_transparent(attrs)).then_some(0))?;

    let Field { ident, ty, .. } = fields.into_iter().nth(place)?;
    let member = match ident {
        Some(name) => Member::Named(name),
        None => Member::Unnamed(Index {
            index: u32::try_from(place).ok()?,
            span: Span::call_site(),
        }),
    };
    let ty = Box::new(ty);
    Some(Class::OfSource { member, ty })
}

/// Whether there is an `#[error(transparent)]`.
fn is_transparent(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attribute| {
        attribute.path().is_ident("error")
            && attribute
                .parse_args::<Ident>()
                .is_ok_and(|word| word == "transparent")
    })
}

fn unsaid(name: &Ident) -> Error {
    let reason = name.unraw();
    let message = format!(
        "nothing says how `{name}` is answered. Write one of these on it:\n\
         \u{20}   #[classify(transient)]: it passes by itself, and is tried again after a delay\n\
         \u{20}   #[classify(conflict)]: somebody else was faster; it is tried again in a moment\n\
         \u{20}   #[classify(permanent, reason = \"{reason}\")]: nothing helps but a change\n\
         or mark the error that it comes from with `#[source]` or `#[from]`"
    );
    Error::new(name.span(), message)
}

/// The reason as it is, if it is as reasons of conditions are.
fn camel_case(reason: LitStr) -> Result<LitStr> {
    let text = reason.value();
    let fits = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    if !fits {
        let message = format!(
            "a reason is CamelCase: a capital letter, then letters and digits, as in \"{}\"",
            suggestion(&text)
        );
        return Err(Error::new(reason.span(), message));
    }
    if text.len() > MAX_REASON {
        let message = format!("a reason has at most {MAX_REASON} characters");
        return Err(Error::new(reason.span(), message));
    }
    Ok(reason)
}

/// The words of a text in CamelCase.
fn suggestion(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| word.trim_start_matches(|c: char| c.is_ascii_digit()));
    let capital = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + rest,
        None => String::new(),
    };
    let text: String = words.map(capital).collect();
    if text.is_empty() {
        "InvalidSpec".to_owned()
    } else {
        text
    }
}

// === impl Word ===

impl Word {
    fn of(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let word = meta.path.get_ident().map(ToString::to_string);
        match word.as_deref() {
            Some("transient") => Ok(Self::Transient),
            Some("conflict") => Ok(Self::Conflict),
            Some("permanent") => Ok(Self::Permanent),
            Some(_) | None => {
                let message = format!("expected {CHOICE}");
                Err(Error::new(meta.path.span(), message))
            }
        }
    }
}
