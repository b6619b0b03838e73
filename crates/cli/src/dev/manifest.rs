//! The objects that a server begins with.

use crate::{failure::text, file};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{ApiCapabilities, Scope, pinned_kind},
};
use serde_json::Value;
use std::{collections::BTreeMap, path::PathBuf};

/// An object of a manifest.
#[derive(Debug)]
pub(super) struct Object {
    /// The file, and which of its objects it is.
    place: String,
    kind: GroupVersionKind,
    namespace: Option<String>,
    name: String,
    value: Value,
}

/// Who applies the objects.
const MANAGER: &str = "homeostat-dev";

/// Reads all objects of the files, in order. The items of a `List` count as objects.
///
/// # Errors
///
/// A file that cannot be read or is no YAML or JSON, and an object that does not say what it is.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for file in files {
        let text = file::read_manifest("--manifest", file)?;
        objects.extend(parse(&file.display().to_string(), &text)?);
    }
    Ok(objects)
}

fn parse(file: &str, text: &str) -> Result<Vec<Object>, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| format!("{file}: this is neither YAML nor JSON: {error}"))?;
    // Nothing stands before the first `---`, and behind the last.
    let documents = documents.into_iter().filter(|document| !document.is_null());
    let values = documents.flat_map(|document| {
        let kind = document["kind"].as_str().unwrap_or_default();
        match document["items"].as_array() {
            Some(items) if kind.ends_with("List") => items.clone(),
            Some(_) | None => vec![document],
        }
    });
    values
        .enumerate()
        .map(|(index, value)| Object::new(format!("{file}: object {}", index + 1), value))
        .collect()
}

/// Applies the objects in order, as `kubectl apply --server-side` does.
///
/// # Errors
///
/// A kind that the server does not know, and an object that it refuses.
pub(super) async fn apply(client: &Client, objects: &[Object]) -> Result<(), String> {
    let mut kinds: BTreeMap<String, (ApiResource, Scope)> = BTreeMap::new();
    for object in objects {
        let kind = format!("{}/{}", object.kind.api_version(), object.kind.kind);
        if !kinds.contains_key(&kind) {
            let (resource, capabilities) = object.resource(client).await?;
            kinds.insert(kind.clone(), (resource, capabilities.scope));
        }
        if let Some((resource, scope)) = kinds.get(&kind) {
            object.apply(client, resource, scope).await?;
        }
    }
    Ok(())
}

// === impl Object ===

impl Object {
    fn new(place: String, value: Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&value["apiVersion"]), text(&value["kind"]));
        let name = text(&value["metadata"]["name"]);
        for (member, found) in [
            ("apiVersion", &api_version),
            ("kind", &kind),
            ("metadata.name", &name),
        ] {
            if found.is_empty() {
                return Err(format!("{place}: {member} is missing"));
            }
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        Ok(Self {
            kind: GroupVersionKind::gvk(group, version, &kind),
            namespace: value["metadata"]["namespace"].as_str().map(str::to_owned),
            place,
            name,
            value,
        })
    }

    /// How objects of this kind are reached.
    async fn resource(&self, client: &Client) -> Result<(ApiResource, ApiCapabilities), String> {
        pinned_kind(client, &self.kind).await.map_err(|_| {
            format!(
                "{}: no {} of {} is known; put the CustomResourceDefinition before it",
                self.place,
                self.kind.kind,
                self.kind.api_version()
            )
        })
    }

    async fn apply(
        &self,
        client: &Client,
        resource: &ApiResource,
        scope: &Scope,
    ) -> Result<(), String> {
        let client = client.clone();
        let api: Api<DynamicObject> = match (scope, &self.namespace) {
            (Scope::Cluster, _) => Api::all_with(client, resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client, namespace, resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client, resource),
        };
        let params = PatchParams::apply(MANAGER).validation_strict();
        api.patch(&self.name, &params, &Patch::Apply(&self.value))
            .await
            .map_err(|error| {
                let (kind, name) = (&self.kind.kind, &self.name);
                format!(
                    "{}: the server refuses {kind} {name}: {}",
                    self.place,
                    text(&error)
                )
            })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeostat_apiserver::ApiServer;

    const DEFINITION: &str = include_str!("../../../../examples/website/crd.yaml");

    #[track_caller]
    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found = parse("f.yaml", text);
        let found = found.map(|objects| {
            let name = |object: Object| {
                let kind = object.kind;
                format!("{} {} {}", kind.api_version(), kind.kind, object.name)
            };
            objects.into_iter().map(name).collect::<Vec<_>>()
        });
        match expected {
            Ok(expected) => assert_eq!(found.unwrap(), expected, "{text}"),
            Err(expected) => {
                let problem = found.unwrap_err();
                assert!(problem.contains(expected), "{text}: {problem}");
                assert!(problem.starts_with("f.yaml: "), "{problem}");
            }
        }
    }

    #[test]
    fn files_of_several_objects() {
        check("", Ok(&[]));
        check("---\n---\n", Ok(&[]));
        let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        check(one, Ok(&["v1 ConfigMap a"]));
        let two = format!(
            "# both\n---\n{one}---\napiVersion: x.io/v1\nkind: Thing\nmetadata: {{name: b}}\n"
        );
        check(&two, Ok(&["v1 ConfigMap a", "x.io/v1 Thing b"]));
        let list = r#"{"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}]}"#;
        check(list, Ok(&["v1 Secret c"]));
        check("a: [1", Err("neither YAML nor JSON"));
        check("just text", Err("object 1: apiVersion is missing"));
        check("apiVersion: v1", Err("object 1: kind is missing"));
        let nameless =
            format!("{one}---\napiVersion: v1\nkind: Pod\nmetadata: {{generateName: x}}\n");
        check(&nameless, Err("object 2: metadata.name is missing"));
    }

    async fn apply_text(text: &str) -> Result<ApiServer, String> {
        let server = ApiServer::builder().build();
        apply(&server.client(), &parse("f.yaml", text)?).await?;
        Ok(server)
    }

    #[tokio::test]
    async fn objects_are_applied_in_order_so_a_definition_serves_what_follows() {
        let text = format!(
            "{DEFINITION}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: web}}\n---\n{}\n---\n{}",
            website::SAMPLE,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\n",
        );
        let server = apply_text(&text).await.unwrap();
        let log = server.requests().all();
        let changed = log.iter().filter(|request| request.changed);
        let names: Vec<(&str, &str)> = changed
            .map(|request| (request.namespace.as_str(), request.name.as_str()))
            .collect();
        let expected = [
            ("", "websites.demo.homeostat.dev"),
            ("", "web"),
            ("default", "blog"),
            ("web", "a"),
        ];
        assert_eq!(names, expected);
    }

    #[tokio::test]
    async fn what_the_server_refuses_is_named() {
        for (text, expected) in [
            (
                website::SAMPLE,
                "object 1: no Website of demo.homeostat.dev/v1 is known",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\n",
                "the server refuses ConfigMap a: namespaces \"web\" not found",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndat: {}\n",
                "the server refuses ConfigMap a: failed to create typed patch object",
            ),
        ] {
            let problem = apply_text(text).await.unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
