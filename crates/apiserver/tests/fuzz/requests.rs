//! Sends what an input says to a server in process, and looks at the answers.

use std::fmt;

use bytes::Bytes;
use futures::FutureExt;
use homeostat_apiserver::ApiServer;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::input::Input;
use crate::schemas;

/// How many requests an input can make.
const REQUESTS: usize = 12;

const COLLECTIONS: [(&str, &str, &str); 6] = [
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        "apps/v1",
        "Deployment",
    ),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    (
        "/apis/fuzz.example.com/v1/namespaces/default/things",
        "fuzz.example.com/v1",
        "Thing",
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
];

const CONTENT_TYPES: [&str; 7] = [
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

const ACCEPTS: [&str; 5] = [
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "*/*",
];

const PARAMETERS: [&str; 16] = [
    "watch=1",
    "resourceVersion=",
    "resourceVersionMatch=",
    "labelSelector=",
    "fieldSelector=",
    "limit=",
    "continue=",
    "fieldManager=",
    "force=true",
    "dryRun=All",
    "fieldValidation=",
    "propagationPolicy=",
    "gracePeriodSeconds=",
    "sendInitialEvents=true",
    "allowWatchBookmarks=true",
    "timeoutSeconds=",
];

const PARTS: [&str; 16] = [
    "/",
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "status",
    "scale",
    "watch",
    "openapi",
    "v3",
    "a",
    "%00",
    "..",
    "finalize",
    "binding",
];

/// Any requests, one after the other.
pub(crate) fn any(bytes: &[u8]) {
    run(async |server| {
        let mut input = Input::new(bytes);
        for _ in 0..REQUESTS {
            if input.is_used_up() {
                break;
            }
            let request = Call::any(&mut input);
            request.send(server).await;
        }
    });
}

/// Patches of every type for one object. A merge or apply patch that is sent again and again changes
/// nothing any more.
pub(crate) fn patches(bytes: &[u8]) {
    run(async |server| {
        let mut input = Input::new(bytes);
        let (collection, api_version, kind) = input.one_of(&COLLECTIONS[..5]);
        let object = object(&mut input, api_version, kind);
        let mut create = Call::new("POST", format!("{collection}?fieldValidation=Ignore"));
        create.body = object.to_string().into_bytes();
        create.send(server).await;
        for _ in 0..REQUESTS {
            if input.is_used_up() {
                break;
            }
            let content_type = input.one_of(&CONTENT_TYPES[1..5]);
            let force = match content_type {
                "application/apply-patch+yaml" => input.one_of(&["", "&force=true"]),
                _ => "",
            };
            let subresource = input.one_of(&["", "", "", "/status", "/scale"]);
            let manager = input.one_of(&["x", "y"]);
            let object = format!("{collection}/a{subresource}");
            let mut patch = Call::new("PATCH", format!("{object}?fieldManager={manager}{force}"));
            patch.content_type = content_type;
            patch.body = patch_body(&mut input, content_type, api_version, kind);
            let first = patch.send(server).await;
            let settled = match content_type {
                "application/merge-patch+json" => first,
                // Two applies may be needed: the first can leave an object whose fields nobody owns,
                // of which the next says who owned them before, or take away the last field of a
                // member, and the member with it, which the next puts back empty.
                "application/apply-patch+yaml" => patch.send(server).await,
                _ => continue,
            };
            let again = patch.send(server).await;
            // A patch that names a version, or that was the end of the object, is refused.
            if settled.code == 200 && again.code == 200 {
                let (one, other) = (settled.version(), again.version());
                assert_eq!(one, other, "{patch:?} does not settle");
            }
        }
    });
}

/// Definitions with rules, patterns and formats, and objects of them. What a definition says of its
/// objects is found out when it is written: an object is taken or is wrong, and one that was taken can
/// be written again.
pub(crate) fn rules(bytes: &[u8]) {
    run(async |server| {
        let mut input = Input::new(bytes);
        let mut definition = definition("parts");
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"] = schemas::schema(&mut input);
        let mut define = Call::new("POST", COLLECTIONS[5].0.to_owned());
        define.body = definition.to_string().into_bytes();
        let defined = define.send(server).await;
        assert!([201, 422].contains(&defined.code), "{defined:?}");
        if defined.code != 201 {
            return;
        }
        let collection = "/apis/fuzz.example.com/v1/namespaces/default/parts";
        let mut object = json!({
            "apiVersion": "fuzz.example.com/v1", "kind": "Part", "metadata": { "name": "a" },
        });
        for _ in 0..REQUESTS {
            if input.is_used_up() {
                break;
            }
            object["spec"] = schemas::spec(&mut input);
            let mut create = Call::new("POST", collection.to_owned());
            create.body = object.to_string().into_bytes();
            let created = create.send(server).await;
            assert!([201, 409, 422].contains(&created.code), "{created:?}");
            let mut update = Call::new("PATCH", format!("{collection}/a"));
            update.content_type = "application/merge-patch+json";
            update.body = json!({ "spec": object["spec"] }).to_string().into_bytes();
            let updated = update.send(server).await;
            assert!([200, 404, 422].contains(&updated.code), "{updated:?}");
        }
    });
}

/// A request that is put together.
#[derive(Clone)]
struct Call {
    method: &'static str,
    path: String,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    code: u16,
    body: Value,
}

// === impl Call ===

impl Call {
    fn new(method: &'static str, path: String) -> Self {
        Self {
            method,
            path,
            content_type: "application/json",
            accept: "application/json",
            body: Vec::new(),
        }
    }

    fn any(input: &mut Input<'_>) -> Self {
        let (collection, api_version, kind) = input.one_of(&COLLECTIONS);
        let method = input.one_of(&["POST", "PATCH", "PUT", "DELETE", "GET", "HEAD", "OPTIONS"]);
        let mut path = match (method, input.below(8)) {
            ("POST", 1..) | (_, 1) => collection.to_owned(),
            (_, 2..) => format!("{collection}/{}", input.one_of(&["a", "b"])),
            (_, 0) => {
                let parts = (0..input.below(8)).map(|_| input.one_of(&PARTS));
                format!("/{}", parts.collect::<Vec<_>>().join("/"))
            }
        };
        path += input.one_of(&["", "", "", "/status", "/scale"]);
        path.push('?');
        for _ in 0..input.below(4) {
            path += input.one_of(&PARAMETERS);
            let value = input.text().into_bytes();
            path.extend(form_urlencoded::byte_serialize(&value));
            path.push('&');
        }
        let content_type = match method {
            "PATCH" => input.one_of(&CONTENT_TYPES),
            _ => input.one_of(&[CONTENT_TYPES[0], CONTENT_TYPES[0], CONTENT_TYPES[5]]),
        };
        let body = match (method, input.below(8)) {
            (_, 0) => input.text().into_bytes(),
            ("PATCH", _) => patch_body(input, content_type, api_version, kind),
            ("DELETE", _) => Value::Object(input.members(2)).to_string().into_bytes(),
            ("POST" | "PUT", _) => object(input, api_version, kind).to_string().into_bytes(),
            _ => Vec::new(),
        };
        Self {
            method,
            path,
            content_type,
            accept: input.one_of(&ACCEPTS),
            body,
        }
    }

    /// Sends it, and checks what has to hold for every answer.
    async fn send(&self, server: &ApiServer) -> Answer {
        let request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("user-agent", "fuzz/1")
            .header("accept", self.accept)
            .header("content-type", self.content_type)
            .body(Full::new(Bytes::from(self.body.clone())));
        let Ok(request) = request else {
            // Not even a client could send it.
            let body = Value::Null;
            return Answer { code: 0, body };
        };
        let response = server.service().oneshot(request).await;
        let response = response.expect("a server in process is there");
        let code = response.status().as_u16();
        let is_json = response
            .headers()
            .get("content-type")
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        // Watches may go on for ever, so of them only what is there is read.
        let mut stream = response.into_body();
        let mut text = Vec::new();
        while let Some(Some(Ok(frame))) = stream.frame().now_or_never() {
            text.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
        let is_stream = self.path.contains("watch") && code == 200;
        let is_one = is_json && self.method != "HEAD" && !is_stream;
        let body: Value = if is_one {
            serde_json::from_slice(&text)
                .unwrap_or_else(|error| panic!("{self:?}: {error}: {text:?}"))
        } else {
            Value::Null
        };
        let is_expected =
            code < 500 || self.method == "HEAD" || is_expected(self.content_type, code, &body);
        assert!(is_expected, "{self:?}: {body}");
        if is_one && code >= 400 {
            assert_eq!(body["kind"], "Status", "{self:?}: {body}");
            assert_eq!(body["code"], code, "{self:?}: {body}");
        }
        Answer { code, body }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            path,
            content_type,
            accept,
            body,
        } = self;
        let body = String::from_utf8_lossy(body);
        write!(
            f,
            "{method} {path} (accept {accept}; {content_type}) {body}"
        )
    }
}

// === impl Answer ===

impl Answer {
    fn version(&self) -> Option<&str> {
        self.body.pointer("/metadata/resourceVersion")?.as_str()
    }
}

/// What a real server, too, answers with 5xx: an object that is to be created and has a version, an
/// apply patch with fields that no schema has, a strategic patch whose directives make no sense, a
/// watch from or a write with something that is no version, and a version that is yet to come.
fn is_expected(content_type: &str, code: u16, body: &Value) -> bool {
    let message = body["message"].as_str().unwrap_or_default();
    match code {
        500 => {
            message.contains("resourceVersion should not be set on objects to be created")
                || message.starts_with("failed to create typed patch object")
                || message.starts_with("resourceVersion: Invalid value")
                || message.starts_with("strconv.ParseUint: parsing")
                // Applied objects of built-in kinds are decoded late, so what cannot be decoded is no fault of the client.
                || content_type.starts_with("application/apply-patch")
                    && (message.starts_with("json: cannot unmarshal")
                        || message.starts_with("parsing time"))
                || content_type == "application/strategic-merge-patch+json"
                    && body.get("reason").is_none()
        }
        504 => message.contains("Too large resource version"),
        _ => false,
    }
}

/// An object of a kind.
fn object(input: &mut Input<'_>, api_version: &str, kind: &str) -> Value {
    let mut metadata = input.members(3);
    metadata.insert("name".into(), json!(input.one_of(&["a", "b"])));
    let mut object = input.members(3);
    object.insert("apiVersion".into(), json!(api_version));
    object.insert("kind".into(), json!(kind));
    object.insert("metadata".into(), Value::Object(metadata));
    match (kind, input.below(4)) {
        (_, 0) => {}
        ("Deployment", _) => {
            let labels = json!({ "app": "a" });
            object.insert(
                "spec".into(),
                json!({
                    "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": { "containers": [{ "name": "a", "image": "a", "env": [{ "name": input.text(), "value": input.text() }] }] },
                    },
                }),
            );
        }
        ("Pod", _) => {
            let containers = json!([{ "name": "a", "image": "a" }]);
            object.insert("spec".into(), json!({ "containers": containers }));
        }
        ("Service", _) => {
            let ports = json!([{ "port": 80 }, input.json(2)]);
            object.insert("spec".into(), json!({ "ports": ports }));
        }
        ("CustomResourceDefinition", _) => {
            let mut definition = definition("parts");
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
                Value::Object(input.members(4));
            return definition;
        }
        _ => {
            object.insert("spec".into(), Value::Object(input.members(4)));
        }
    }
    Value::Object(object)
}

/// A patch that fits its type, most often.
fn patch_body(input: &mut Input<'_>, content_type: &str, api_version: &str, kind: &str) -> Vec<u8> {
    let body = match content_type {
        "application/json-patch+json" => {
            let operation = |input: &mut Input<'_>| {
                let op = input.one_of(&["add", "remove", "replace", "test", "move", "copy", "x"]);
                let places = [
                    "/metadata/labels",
                    "/spec",
                    "/spec/items/-",
                    "/data/a",
                    "",
                    "/metadata/finalizers/0",
                    "/",
                ];
                let (path, from) = (input.one_of(&places), input.one_of(&places));
                json!({ "op": op, "path": path, "from": from, "value": input.json(3) })
            };
            let length = input.below(4);
            (0..length).map(|_| operation(input)).collect()
        }
        "application/apply-patch+yaml" => {
            let mut object = object(input, api_version, kind);
            object["metadata"]["name"] = json!("a");
            object
        }
        _ => match input.below(4) {
            0 => input.json(4),
            1 => object(input, api_version, kind),
            _ => Value::Object(input.members(4)),
        },
    };
    body.to_string().into_bytes()
}

/// Things, in whose spec anything can be.
fn definition(plural: &str) -> Value {
    let singular = plural.trim_end_matches('s');
    let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.fuzz.example.com") },
        "spec": {
            "group": "fuzz.example.com",
            "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": free, "status": free },
                } },
            }],
        },
    })
}

/// Calls `play` with a server of its own, and checks that everything can be read afterwards.
fn run(play: impl AsyncFnOnce(&ApiServer)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without drivers can be built");
    runtime.block_on(async {
        let server = ApiServer::builder().build();
        let mut define = Call::new("POST", COLLECTIONS[5].0.to_owned());
        define.body = definition("things").to_string().into_bytes();
        assert_eq!(define.send(&server).await.code, 201);
        play(&server).await;
        for (collection, _, _) in COLLECTIONS {
            let list = Call::new("GET", collection.to_owned()).send(&server).await;
            // The definition of things may be gone.
            assert!([200, 404].contains(&list.code), "{list:?}");
            for item in list.body["items"].as_array().into_iter().flatten() {
                let version = item.pointer("/metadata/resourceVersion");
                assert!(version.is_some_and(Value::is_string), "{item}");
            }
        }
    });
}
