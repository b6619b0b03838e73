//! One object on a server, for those who read and write it as JSON.

use crate::client::{OwnRequest, check_run, sign_by_default};
use http::{Method, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams},
    core::{Request, request},
};
use serde_json::Value;

/// Where an object is. What comes back is JSON, so nothing of it is lost that a type does not know.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    /// Of its kind in its namespace.
    pub(crate) url: String,
    pub(crate) name: String,
}

// === impl Target ===

impl Target {
    pub(crate) fn new<K: Resource>(client: Client, dyntype: &K::DynamicType, obj: &K) -> Self {
        Self {
            client,
            url: K::url_path(dyntype, obj.meta().namespace.as_deref()),
            name: obj.meta().name.clone().unwrap_or_default(),
        }
    }

    /// The object in `api` that has the name of `obj`.
    pub(crate) fn in_api<K: Resource + Clone>(api: &Api<K>, obj: &K) -> Self {
        Self {
            client: api.clone().into_client(),
            url: api.resource_url().to_owned(),
            name: obj.meta().name.clone().unwrap_or_default(),
        }
    }

    /// The object as it is now.
    pub(crate) async fn get(&self) -> Result<Value, kube::Error> {
        self.send(self.request().get(&self.name, &GetParams::default()))
            .await
    }

    /// The object as it is now; `None` if there is none.
    pub(crate) async fn get_opt(&self) -> Result<Option<Value>, kube::Error> {
        found(self.get().await)
    }

    /// Its metadata; `None` if there is no object.
    pub(crate) async fn metadata(&self) -> Result<Option<ObjectMeta>, kube::Error> {
        let request = self.request();
        let answer = self.send(request.get_metadata(&self.name, &GetParams::default()));
        let Some(mut object) = found(answer.await)? else {
            return Ok(None);
        };
        let metadata = object["metadata"].take();
        let metadata = serde_json::from_value(metadata).map_err(kube::Error::SerdeError)?;
        Ok(Some(metadata))
    }

    /// Creates the object. Answers what it is then.
    pub(crate) async fn create(
        &self,
        params: &PostParams,
        object: &Value,
    ) -> Result<Value, kube::Error> {
        let object = object.to_string().into_bytes();
        self.send(self.request().create(params, object)).await
    }

    /// Patches the object. Answers what it is afterwards.
    pub(crate) async fn patch(
        &self,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Value, kube::Error> {
        check_run()?;
        self.send(self.request().patch(&self.name, params, patch))
            .await
    }

    /// Carries out the operations of a JSON patch. The answer is not looked at: that the server says
    /// yes is enough.
    pub(crate) async fn json_patch(&self, operations: &Value) -> Result<(), kube::Error> {
        check_run()?;
        let Self { client, url, name } = self;
        let mut request = http::Request::builder()
            .method(Method::PATCH)
            .uri(format!("{url}/{name}?"))
            .header(header::CONTENT_TYPE, "application/json-patch+json")
            .header(
                header::ACCEPT,
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            )
            .body(operations.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        sign_by_default(&mut request);
        ask(client, request).await.map(drop)
    }

    /// Patches the status. Answers what the object is afterwards.
    pub(crate) async fn patch_status(
        &self,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Value, kube::Error> {
        check_run()?;
        let request = self.request();
        self.send(request.patch_subresource("status", &self.name, params, patch))
            .await
    }

    /// Deletes the object. The answer is not looked at.
    pub(crate) async fn delete(&self, params: &DeleteParams) -> Result<(), kube::Error> {
        check_run()?;
        let request = self.request().delete(&self.name, params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        ask(&self.client, request).await.map(drop)
    }

    fn request(&self) -> Request {
        Request::new(&*self.url)
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<Value, kube::Error> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        sign_by_default(&mut request);
        let text = ask(&self.client, request).await?;
        serde_json::from_str(&text).map_err(kube::Error::SerdeError)
    }
}

/// Sends a request. What it writes is known as the run's own, whatever client it is.
async fn ask(client: &Client, request: http::Request<Vec<u8>>) -> Result<String, kube::Error> {
    let own = OwnRequest::begin(&request);
    let text = client.request_text(request).await?;
    own.end(&text);
    Ok(text)
}

/// An answer of the server, where not found is one.
fn found<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
