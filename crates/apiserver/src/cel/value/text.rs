use std::ops::Deref;
use std::rc::Rc;

/// A text that lies in an object or an expression, or that was made.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Kept(&'a str),
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Kept(text) => text,
            Self::Made(text) => text,
        }
    }
}
