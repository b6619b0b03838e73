//! What to watch, and how.

use homeostat_core::watch::{self, Machine, Streaming};
use kube::core::Selector;
use std::time::Duration;

/// How fresh a list has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListSemantic {
    /// The most recent state.
    #[default]
    MostRecent,
    /// Any state that the server has in its cache, though no older than what was seen before by the
    /// same stream. Cheaper for the server, and possibly older than what an earlier process saw.
    Any,
}

/// How the initial list is obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialListStrategy {
    /// As suits the server: as a stream until it turns out that it does not stream lists, and in
    /// pages from then on. With a [page size](Config::page_size) of your own, as
    /// [`Paged`](Self::Paged).
    #[default]
    ListWatch,
    /// In pages of [`Config::page_size`], and never as a stream.
    Paged,
    /// As a stream, tried anew for each initial list; in pages only where the server refuses.
    StreamingList,
}

/// What a [`watcher`](super::watcher()) asks for.
///
/// ```
/// use homeostat::watcher;
///
/// // All objects of the kind, in all namespaces of the `Api`.
/// let all = watcher::Config::default();
/// // Only some. Both are decided by the server.
/// let some = watcher::Config::default().labels("app=web,tier!=test").fields("metadata.name=site");
/// assert_ne!(all, some);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Only objects with such labels; all by default.
    pub label_selector: Option<String>,
    /// Only objects with such fields; all by default. Which fields a server knows depends on the
    /// kind; `metadata.name` and `metadata.namespace` always work.
    pub field_selector: Option<String>,
    /// Seconds after which the server is asked to end a watch, which is then taken up where it
    /// ended; 290 by default, and for 0. A connection is given up when it was silent for 5 s more.
    pub timeout: Option<u32>,
    /// How fresh a list has to be; the most recent state by default.
    pub list_semantic: ListSemantic,
    /// How the initial list is obtained; as suits the server by default.
    pub initial_list_strategy: InitialListStrategy,
    /// Objects in a page of a list; 500 by default, and `None` for the whole list in one answer. With
    /// any other value than 500, lists are not streamed; see also [`page_size`](Self::page_size).
    ///
    /// A list of [`ListSemantic::Any`] comes in one page, because servers ignore this for it.
    pub page_size: Option<u32>,
    /// Whether the server may send bookmarks; true by default. Without them a quiet watch has to be
    /// listed anew more often, and no list is streamed.
    pub bookmarks: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            label_selector: None,
            field_selector: None,
            timeout: None,
            list_semantic: ListSemantic::default(),
            initial_list_strategy: InitialListStrategy::default(),
            page_size: watch::Config::default().page_size,
            bookmarks: true,
        }
    }
}

impl Config {
    /// Asks the server to end a watch after so many seconds.
    #[must_use]
    pub fn timeout(mut self, timeout_secs: u32) -> Self {
        self.timeout = Some(timeout_secs);
        self
    }

    /// Only objects whose fields match, as in `metadata.name=web,status.phase!=Running`.
    #[must_use]
    pub fn fields(mut self, field_selector: &str) -> Self {
        self.field_selector = Some(field_selector.to_owned());
        self
    }

    /// Only objects whose labels match, as in `app=web,tier in (a, b)`.
    #[must_use]
    pub fn labels(mut self, label_selector: &str) -> Self {
        self.label_selector = Some(label_selector.to_owned());
        self
    }

    /// Only objects whose labels match.
    #[must_use]
    pub fn labels_from(mut self, selector: &Selector) -> Self {
        self.label_selector = Some(selector.to_string());
        self
    }

    /// Says how fresh a list has to be.
    #[must_use]
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.list_semantic = semantic;
        self
    }

    /// Lists may come from the server's cache: [`ListSemantic::Any`].
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self.list_semantic(ListSemantic::Any)
    }

    /// Asks the server for no bookmarks.
    #[must_use]
    pub fn disable_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Lists come in pages of so many objects, and not as a stream: the first request is for a page.
    ///
    /// After or before [`streaming_lists`](Self::streaming_lists), this is for servers that do not
    /// stream only.
    #[must_use]
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = Some(page_size);
        if self.initial_list_strategy == InitialListStrategy::ListWatch {
            self.initial_list_strategy = InitialListStrategy::Paged;
        }
        self
    }

    /// Each initial list is tried as a stream: [`InitialListStrategy::StreamingList`].
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.initial_list_strategy = InitialListStrategy::StreamingList;
        self
    }

    /// The machine that decides what to ask for.
    pub(super) fn machine(&self) -> Machine {
        let default = watch::Config::default();
        Machine::new(watch::Config {
            page_size: self.page_size.filter(|size| *size > 0),
            any_version: self.list_semantic == ListSemantic::Any,
            streaming: match self.initial_list_strategy {
                InitialListStrategy::ListWatch if self.page_size == default.page_size => {
                    Streaming::Auto
                }
                InitialListStrategy::ListWatch | InitialListStrategy::Paged => Streaming::Never,
                InitialListStrategy::StreamingList => Streaming::Always,
            },
            bookmarks: self.bookmarks,
            watch_timeout: match self.timeout {
                None | Some(0) => default.watch_timeout,
                Some(seconds) => Duration::from_secs(seconds.into()),
            },
            ..default
        })
    }
}
