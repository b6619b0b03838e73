//! What a finalizer asks for, decided from an object's metadata (rule R24).
//!
//! A finalizer is a name in a list, and others have their names in the same list. So an edit is only
//! right for the list that it was made from: the server refuses it for another, and what that means
//! is decided here too.

/// What an object's metadata say that matters to a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// The object's identity, if it is known: another object can have the same name later.
    pub uid: Option<&'a str>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// The names of what holds the object back from being gone.
    pub finalizers: &'a [String],
}

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Add the finalizer, before anything else happens for the object.
    Add,
    /// The finalizer is there: do what the object wants.
    Apply,
    /// Clean up, then remove the finalizer.
    Cleanup,
    /// The object is going away and nothing is left to do for it.
    Nothing,
}

/// A change of the list of finalizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The name is put at its end.
    Add,
    /// The name is taken out of it, wherever it is.
    Remove,
}

/// How the server refused an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It could not be carried out in between the edits of others.
    Conflict,
    /// It does not suit the object: the list is another one, or the object itself is not valid.
    Invalid,
}

/// What a refused edit means, now that the object was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Make it anew from what was read.
    Again,
    /// The list is as the edit wanted it.
    Done,
    /// There is nothing left to edit: the object is gone, or going without this finalizer.
    Moot,
    /// The server does not want this edit, and making it again changes nothing.
    Refused,
}

// === impl Held ===

impl Held<'_> {
    /// What is to be done with the object on behalf of the finalizer `name`.
    #[must_use]
    pub fn plan(&self, name: &str) -> Plan {
        match (self.deleting, self.has(name)) {
            (false, false) => Plan::Add,
            (false, true) => Plan::Apply,
            (true, true) => Plan::Cleanup,
            // Nobody may add a finalizer to an object that is being deleted.
            (true, false) => Plan::Nothing,
        }
    }

    /// Where in the list `name` is, the last place first. It can be there twice: the server does not
    /// forbid it.
    pub fn places(&self, name: &str) -> impl Iterator<Item = usize> {
        let finalizers = self.finalizers.iter().enumerate().rev();
        finalizers
            .filter(move |(_, finalizer)| *finalizer == name)
            .map(|(place, _)| place)
    }

    fn has(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

// === impl Edit ===

impl Edit {
    /// What it means that the server refused this edit of `name`, which was made from `before`,
    /// when the object is `now`.
    #[must_use]
    pub fn refused(
        self,
        name: &str,
        refusal: Refusal,
        before: Held<'_>,
        now: Option<Held<'_>>,
    ) -> Verdict {
        // An object of another identity has nothing to do with the edit, only with its name.
        let Some(now) = now.filter(|now| before.uid.is_none() || now.uid == before.uid) else {
            return Verdict::Moot;
        };
        match (self, now.plan(name)) {
            (Self::Add, Plan::Apply | Plan::Cleanup)
            | (Self::Remove, Plan::Add | Plan::Nothing) => return Verdict::Done,
            (Self::Add, Plan::Nothing) => return Verdict::Moot,
            (Self::Add, Plan::Add) | (Self::Remove, Plan::Apply | Plan::Cleanup) => {}
        }
        if refusal == Refusal::Conflict || now.finalizers != before.finalizers {
            Verdict::Again
        } else {
            Verdict::Refused
        }
    }
}

/// Whether a server takes `name` as a finalizer's: a name of up to 63 letters, digits, `-`, `_` and
/// `.`, which usually comes after a domain and `/`, as in `example.com/cleanup`.
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, name)) => is_domain(domain) && is_plain_name(name),
        None => is_plain_name(name),
    }
}

fn is_plain_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= 63 && is_enclosed(name, |byte| byte.is_ascii_alphanumeric(), inner)
}

fn is_domain(domain: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| end(byte) || byte == b'-';
    domain.len() <= 253
        && domain
            .split('.')
            .all(|label| is_enclosed(label, end, inner))
}

/// Whether a text is not empty, made of `inner` bytes, and begins and ends with an `end` byte.
fn is_enclosed(text: &str, end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(&end)
        && bytes.last().copied().is_some_and(&end)
        && bytes.iter().copied().all(inner)
}

#[cfg(test)]
mod tests;
