//! A watch on the wire.

use super::{Process, answers::AnyBody};
use crate::{log::Event, object::ObjectId, recorder::Recorder};
use bytes::Bytes;
use futures::{FutureExt, stream};
use homeostat_apiserver::ResponseBody;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde::Deserialize;
use std::{io, sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

/// What happens to the messages of a watch.
pub(super) struct Watched {
    pub(super) recorder: Recorder,
    pub(super) process: Arc<Process>,
    pub(super) resource: String,
    /// How much later each arrives.
    pub(super) lag: Option<Duration>,
    /// How long messages are kept, to be told together.
    pub(super) batch: Option<Duration>,
    /// Nothing arrives until this says so.
    pub(super) goes_on: Option<watch::Receiver<bool>>,
}

/// What is read of a message.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    object: Object,
}

#[derive(Deserialize, Default)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    resource_version: String,
}

/// Of the messages about each object the last, and that twice, in the order of their versions.
fn batched(lines: &[u8]) -> Vec<u8> {
    let lines = lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| (line, serde_json::from_slice::<Message>(line).ok()));
    let lines: Vec<(&[u8], Option<Message>)> = lines.collect();
    let key = |message: &Message| {
        let Metadata {
            namespace, name, ..
        } = &message.object.metadata;
        (namespace.clone(), name.clone())
    };
    let mut told = Vec::new();
    for (index, (line, message)) in lines.iter().enumerate() {
        let Some(message) = message else {
            told.extend_from_slice(line);
            continue;
        };
        let is_bookmark = message.kind == "BOOKMARK";
        let later = lines.get(index + 1..).unwrap_or_default();
        let mut later = later.iter().filter_map(|(_, message)| message.as_ref());
        if !is_bookmark && later.any(|later| key(later) == key(message)) {
            continue;
        }
        told.extend_from_slice(line);
        if !is_bookmark {
            told.extend_from_slice(line);
        }
    }
    told
}

impl Watched {
    pub(super) fn body(self, body: ResponseBody) -> AnyBody {
        // There is no body any more when it has ended: it must not be asked again.
        let frames = stream::unfold((self, Some(body)), |(mut watched, body)| async move {
            let mut body = body?;
            let frame = body.frame().await?;
            let frame = frame.unwrap_or_else(|never| match never {});
            let mut bytes = frame.into_data().unwrap_or_default();
            let mut goes_on = true;
            if let Some(batch) = watched.batch {
                sleep(batch).await;
                let mut lines = bytes.to_vec();
                while let Some(more) = body.frame().now_or_never() {
                    let Some(Ok(more)) = more else {
                        goes_on = false;
                        break;
                    };
                    lines.extend_from_slice(&more.into_data().unwrap_or_default());
                }
                bytes = batched(&lines).into();
            }
            watched.hold().await;
            watched.note(&bytes);
            let body = goes_on.then_some(body);
            Some((Ok::<_, io::Error>(Frame::data(bytes)), (watched, body)))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    async fn hold(&mut self) {
        if let Some(lag) = self.lag {
            sleep(lag).await;
        }
        if let Some(goes_on) = &mut self.goes_on
            && goes_on.wait_for(|goes_on| *goes_on).await.is_err()
        {
            std::future::pending::<()>().await;
        }
        if self.process.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    fn note(&self, bytes: &Bytes) {
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let Ok(Message { kind, object }) = serde_json::from_slice(line) else {
                continue;
            };
            let Metadata {
                namespace,
                name,
                resource_version,
            } = object.metadata;
            self.recorder.note(Event::Delivery {
                kind,
                object: ObjectId {
                    resource: self.resource.clone(),
                    namespace,
                    name,
                },
                version: resource_version,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_tells_the_last_of_each_object_twice() {
        let line = |kind: &str, name: &str, version: u32| {
            format!(
                "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"{name}\",\
                 \"resourceVersion\":\"{version}\"}}}}}}\n"
            )
        };
        let given = [
            line("ADDED", "a", 1),
            line("ADDED", "b", 2),
            line("MODIFIED", "a", 3),
            line("BOOKMARK", "", 4),
        ];
        let (b, a, bookmark) = (&given[1], &given[2], &given[3]);
        let expected = [b.as_str(), b, a, a, bookmark].concat();
        let told = batched(given.concat().as_bytes());
        assert_eq!(String::from_utf8(told).unwrap(), expected);
    }
}
