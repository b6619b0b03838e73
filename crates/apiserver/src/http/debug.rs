//! What tests ask of a server that they reach by HTTP alone.

use std::sync::Arc;
use std::time::Duration;

use http::Method;

use super::Answer;
use super::incoming::Incoming;
use crate::state::{Core, Debug};

/// Answers `POST /debug/<action>`. Nothing is there unless the server was built for it.
pub(super) async fn answer(core: &Arc<Core>, action: &str, request: &Incoming) -> Answer {
    let Some(Debug { advance }) = &core.debug else {
        return Answer::page_not_found();
    };
    match (action, advance) {
        ("compact" | "advance", _) if request.method != Method::POST => {
            text(405, format!("use POST /debug/{action}"))
        }
        ("compact" | "advance", _) if request.may_be_form => text(
            403,
            format!(
                "a web page could send this. Add a header that it cannot send: \
                 curl -X POST -H 'X-Homeostat-Debug: yes' .../debug/{action}"
            ),
        ),
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
