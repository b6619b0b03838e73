//! Versions of objects that are decoded when they are first read.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What is known of a version without decoding it.
#[derive(Debug)]
pub(crate) struct Header {
    /// The uid and the version, one behind the other: there are many of these.
    text: Box<str>,
    uid: usize,
    /// What somebody wants of it, as far as its metadata tell: equal for versions that differ in nothing of that.
    desired: Option<u64>,
}

/// Decodes an object. What does not fit its type is reported by the function itself.
pub(crate) type Decode<K> = dyn Fn(&[u8]) -> Option<K> + Send + Sync;

/// A version of an object as text, until somebody reads it. One that is overtaken before is never decoded.
pub(crate) struct Unread<K> {
    header: Header,
    read: OnceLock<Read<K>>,
    /// What the object is made of; empty once it is.
    rest: Mutex<Option<Rest<K>>>,
}

/// What came of reading it.
pub(super) struct Read<K> {
    /// The object, or its state before if it cannot be decoded.
    pub(super) object: Option<Arc<K>>,
    pub(super) fits: bool,
}

struct Rest<K> {
    text: Box<[u8]>,
    /// The state that is known of the object, in case that it cannot be decoded.
    before: Option<Arc<K>>,
    decode: Arc<Decode<K>>,
}

// === impl Header ===

impl Header {
    pub(crate) fn new(uid: Option<&str>, version: &str, desired: Option<u64>) -> Self {
        let uid = uid.unwrap_or_default();
        Self {
            text: [uid, version].concat().into(),
            uid: uid.len(),
            desired,
        }
    }

    pub(crate) fn uid(&self) -> Option<&str> {
        self.text.get(..self.uid).filter(|uid| !uid.is_empty())
    }

    pub(crate) fn version(&self) -> &str {
        self.text.get(self.uid..).unwrap_or_default()
    }

    pub(crate) fn desired(&self) -> Option<u64> {
        self.desired
    }
}

// === impl Unread ===

impl<K> Unread<K> {
    pub(super) fn new(
        header: Header,
        text: Box<[u8]>,
        before: Option<Arc<K>>,
        decode: Arc<Decode<K>>,
    ) -> Self {
        Self {
            header,
            read: OnceLock::new(),
            rest: Mutex::new(Some(Rest {
                text,
                before,
                decode,
            })),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The object, decoded by whoever asks first.
    pub(super) fn read(&self) -> &Read<K> {
        self.read.get_or_init(|| {
            let Some(rest) = self.take_rest() else {
                // Its type panicked when somebody tried before.
                return Read {
                    object: None,
                    fits: false,
                };
            };
            let decoded = (rest.decode)(&rest.text);
            Read {
                fits: decoded.is_some(),
                object: decoded.map(Arc::new).or(rest.before),
            }
        })
    }

    /// Whether somebody has read it, and it cannot be decoded.
    pub(super) fn is_unfit(&self) -> bool {
        self.read.get().is_some_and(|read| !read.fits)
    }

    /// The object if it was decoded, or else the state before.
    pub(super) fn known(&self) -> Option<Arc<K>> {
        if let Some(read) = self.read.get() {
            return read.object.clone();
        }
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = &*rest {
            return rest.before.clone();
        }
        drop(rest);
        // It is being decoded just now.
        self.read().object.clone()
    }

    fn take_rest(&self) -> Option<Rest<K>> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{Decode, Header, Unread};
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    /// Numbers, and how many were decoded.
    fn numbers() -> (Arc<Decode<u64>>, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let decode = move |text: &[u8]| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::str::from_utf8(text).ok()?.parse().ok()
        };
        (Arc::new(decode), count)
    }

    fn unread(text: &str, before: Option<Arc<u64>>, decode: &Arc<Decode<u64>>) -> Unread<u64> {
        let header = Header::new(Some("u-1"), "7", None);
        assert_eq!((header.uid(), header.version()), (Some("u-1"), "7"));
        let text = text.as_bytes().into();
        Unread::new(header, text, before, Arc::clone(decode))
    }

    #[test]
    fn decoded_once_by_the_first_reader() {
        let (decode, count) = numbers();
        let version = unread("12", Some(Arc::new(11)), &decode);
        assert_eq!(version.known().as_deref(), Some(&11));
        assert_eq!(count.load(Ordering::Relaxed), 0);
        let first = version.read().object.clone().unwrap();
        assert!(Arc::ptr_eq(&first, version.read().object.as_ref().unwrap()));
        assert!(version.read().fits && !version.is_unfit());
        assert_eq!(version.known().as_deref(), Some(&12));
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_does_not_fit_leaves_the_state_before() {
        let (decode, count) = numbers();
        let version = unread("twelve", Some(Arc::new(11)), &decode);
        assert!(!version.is_unfit(), "nobody knows yet");
        assert_eq!(version.read().object.as_deref(), Some(&11));
        assert!(version.is_unfit());
        assert_eq!(version.known().as_deref(), Some(&11));
        assert_eq!(unread("twelve", None, &decode).read().object, None);
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
