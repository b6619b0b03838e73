//! What tests ask of a server that they reach by HTTP alone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;

use super::Answer;
use super::service::Incoming;
use crate::server::Core;

/// Moves the server's time forward.
pub(crate) type Advance = Box<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// What a server that can be debugged does.
pub(crate) struct Debug {
    /// None where time goes by itself.
    pub(crate) advance: Option<Advance>,
}

// === impl Debug ===

impl fmt::Debug for Debug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debug").finish_non_exhaustive()
    }
}

/// Answers `POST /debug/<action>`. Nothing is there unless the server was built for it.
pub(super) async fn answer(core: &Arc<Core>, action: &str, request: &Incoming) -> Answer {
    let Some(Debug { advance }) = &core.debug else {
        return Answer::page_not_found();
    };
    match (action, advance) {
        ("compact" | "advance", _) if request.method != Method::POST => {
            text(405, format!("use POST /debug/{action}"))
        }
        ("compact", _) => {
            let revision = core.compact();
            text(200, format!("compacted up to revision {revision}"))
        }
        ("advance", None) => text(
            409,
            "time goes by itself here, it cannot be advanced".into(),
        ),
        ("advance", Some(advance)) => match request.query.get("ms").parse() {
            Ok(milliseconds) => {
                advance(Duration::from_millis(milliseconds)).await;
                text(200, format!("it is {} now", core.now()))
            }
            Err(_) => text(400, "ms=N says by how many milliseconds".into()),
        },
        _ => Answer::page_not_found(),
    }
}

fn text(code: u16, mut text: String) -> Answer {
    text.push('\n');
    Answer::Text {
        code,
        text,
        retry_after: None,
    }
}
