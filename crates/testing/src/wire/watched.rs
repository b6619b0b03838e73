//! A watch on the wire.

use super::{Process, answers::AnyBody};
use crate::{log::Event, object::ObjectId, recorder::Recorder};
use bytes::Bytes;
use futures::stream;
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

impl Watched {
    pub(super) fn body(self, body: ResponseBody) -> AnyBody {
        let frames = stream::unfold((self, body), |(mut watched, mut body)| async move {
            let frame = body.frame().await?;
            let frame = frame.unwrap_or_else(|never| match never {});
            let bytes = frame.into_data().unwrap_or_default();
            watched.hold().await;
            watched.note(&bytes);
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
