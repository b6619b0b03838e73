//! The server as a client sees it.

use std::collections::BTreeMap;

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, TokioClock};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

/// The server, and which names it has for what the models know.
pub(crate) struct Server {
    embedded: ApiServer,
    /// Its version for each revision of the model that was seen.
    versions: BTreeMap<u64, u64>,
    uids: BTreeMap<u64, String>,
}

// === impl Server ===

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            embedded: ApiServer::builder().clock(TokioClock::default()).build(),
            versions: BTreeMap::new(),
            uids: BTreeMap::new(),
        }
    }

    /// Defines a kind.
    pub(crate) async fn define(&self, definition: Value) -> Result<(), String> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = self.send("POST", path, None, Some(definition)).await?;
        if code != 201 {
            return Err(format!("the definition is refused: {answer}"));
        }
        Ok(())
    }

    /// The version of a revision that was seen.
    pub(crate) fn version(&self, revision: u64) -> u64 {
        self.versions[&revision]
    }

    /// The uid of an object that was seen.
    pub(crate) fn uid(&self, object: u64) -> &str {
        &self.uids[&object]
    }

    /// Each object has one uid; each revision has one version, and later ones have larger ones.
    pub(crate) fn note(&mut self, object: u64, revision: u64, got: &Value) -> Result<(), String> {
        let uid = text(got, "/metadata/uid");
        let known = self.uids.entry(object).or_insert_with(|| uid.clone());
        if *known != uid {
            return Err(format!("uid {uid} instead of {known} in {got}"));
        }
        let version = text(got, "/metadata/resourceVersion");
        let version: u64 = version
            .parse()
            .map_err(|_| format!("no version in {got}"))?;
        let before = self.versions.range(..revision).next_back();
        let after = self.versions.range(revision + 1..).next();
        let known = self.versions.get(&revision).copied().unwrap_or(version);
        let in_order = before.is_none_or(|(_, before)| *before < version)
            && after.is_none_or(|(_, after)| *after > version);
        if known != version || !in_order {
            let versions = &self.versions;
            return Err(format!(
                "version {version} for write {revision} of {versions:?}"
            ));
        }
        self.versions.insert(revision, version);
        Ok(())
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Option<Value>,
    ) -> Result<(u16, Value), String> {
        let (code, text) = self.exchange(method, path, content_type, body).await?;
        let json = serde_json::from_str(&text);
        Ok((code, json.map_err(|error| format!("{error} in {text}"))?))
    }

    /// The events of a watch that ends by itself.
    pub(crate) async fn lines(&self, path: &str) -> Result<Vec<Value>, String> {
        let (code, text) = self.exchange("GET", path, None, None).await?;
        if code != 200 {
            return Err(format!("{code}: {text}"));
        }
        let lines = text.lines().map(serde_json::from_str);
        lines
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Option<Value>,
    ) -> Result<(u16, String), String> {
        let body = body.map_or_else(String::new, |body| body.to_string());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", "model/1")
            .header("accept", "application/json")
            .header("content-type", content_type.unwrap_or("application/json"))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let answered = self.embedded.service().oneshot(request).await;
        let response = answered.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        let text = String::from_utf8(body.to_vec()).map_err(|error| error.to_string())?;
        Ok((code, text))
    }
}

pub(crate) fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}
