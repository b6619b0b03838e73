//! The object whose status is written.

use kube::{
    Client,
    api::{GetParams, Patch, PatchParams},
    core::Request,
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
    /// The object as it is now.
    pub(crate) async fn get(&self) -> Result<Value, kube::Error> {
        self.send(self.request().get(&self.name, &GetParams::default()))
            .await
    }

    /// Patches the status. Answers what the object is afterwards.
    pub(crate) async fn patch(
        &self,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Value, kube::Error> {
        let request = self.request();
        self.send(request.patch_subresource("status", &self.name, params, patch))
            .await
    }

    fn request(&self) -> Request {
        Request::new(&*self.url)
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = self.client.request_text(request).await?;
        serde_json::from_str(&text).map_err(kube::Error::SerdeError)
    }
}
