//! Answers of the API machinery that its source tells and no recording holds, request by request.

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Config};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What came back: the status code, the warnings and the body.
type Answer = (u16, Vec<String>, Value);

/// The server as somebody sees it who writes requests by hand.
struct Desk(ApiServer);

// === impl Desk ===

impl Desk {
    fn new() -> Self {
        Self(ApiServer::builder().build())
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<Answer, Box<dyn std::error::Error>> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            "APPLY" => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(if method == "APPLY" { "PATCH" } else { method })
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(Bytes::from(body.to_string())))?;
        let response = self.0.service().oneshot(request).await?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|one| Ok(one.to_str()?.to_owned()));
        let warnings = warnings.collect::<Result<_, http::header::ToStrError>>()?;
        let body = response.into_body().collect().await?.to_bytes();
        Ok((code, warnings, serde_json::from_slice(&body)?))
    }

    /// The same where only the code counts.
    async fn code(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<u16, Box<dyn std::error::Error>> {
        Ok(self.send(method, path, body).await?.0)
    }
}

/// An apply that names no object is about the one that the request names, if that is there.
#[tokio::test(start_paused = true)]
async fn an_apply_without_a_name() -> Outcome {
    let desk = Desk::new();
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v" } });
    let one = format!("{MAPS}/a?fieldManager=test");
    assert_eq!(desk.code("APPLY", &one, map.clone()).await?, 400);
    let named = json!({ "metadata": { "name": "a" } });
    assert_eq!(desk.code("POST", MAPS, named).await?, 201);
    let (code, _, applied) = desk.send("APPLY", &one, map).await?;
    assert_eq!((code, &applied["data"]["k"]), (200, &json!("v")));
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [
        { "name": "c", "image": "i" },
    ] } });
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(desk.code("POST", pods, pod).await?, 201);
    let status = json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Running" } });
    let way = format!("{pods}/p/status?fieldManager=test");
    let (code, _, applied) = desk.send("APPLY", &way, status).await?;
    assert_eq!(
        (code, &applied["status"]["phase"]),
        (200, &json!("Running"))
    );
    Ok(())
}

/// What is only stored, and not acted on, says so.
#[tokio::test(start_paused = true)]
async fn what_is_not_acted_on() -> Outcome {
    let desk = Desk::new();
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let configuration = json!({ "metadata": { "name": "w" }, "webhooks": [] });
    let (code, warnings, _) = desk.send("POST", webhooks, configuration).await?;
    assert_eq!((code, warnings.len()), (201, 1));
    assert!(
        warnings[0].contains("the webhooks are not called"),
        "{warnings:?}"
    );
    Ok(())
}

/// One description of everything, for clients that know no newer one.
#[tokio::test(start_paused = true)]
async fn everything_is_described_in_the_old_form_too() -> Outcome {
    let desk = Desk::new();
    let (code, _, whole) = desk.send("GET", "/openapi/v2", Value::Null).await?;
    assert_eq!((code, &whole["swagger"]), (200, &json!("2.0")));
    let patch = &whole["paths"]["/api/v1/namespaces/{name}"]["patch"];
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str())
        .collect();
    // By this kubectl sees that the server checks fields.
    assert!(names.contains(&"fieldValidation"), "{names:?}");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"]["kind"],
        "Namespace"
    );
    assert!(whole["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    assert!(!whole.to_string().contains("#/components/"));
    Ok(())
}

/// kubectl asks for this with a name that is no media type, and takes no answer that says it has such a type.
#[tokio::test(start_paused = true)]
async fn the_old_form_has_a_type_that_can_be_read() -> Outcome {
    let desk = Desk::new();
    let told = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    for accepted in [
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        told,
    ] {
        let request = Request::get("/openapi/v2").header("accept", accepted);
        let request = request.body(Full::new(Bytes::new()))?;
        let response = desk.0.service().oneshot(request).await?;
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], told);
        let body = response.into_body().collect().await?.to_bytes();
        // The version of OpenAPI, which is the first field.
        assert_eq!(&body[..5], b"\x0a\x032.0");
    }
    Ok(())
}

/// A name that is taken though it could have been generated is to be tried again.
#[tokio::test(start_paused = true)]
async fn a_generated_name_that_is_taken() -> Outcome {
    let desk = Desk::new();
    let map = json!({ "metadata": { "name": "a", "generateName": "a-" } });
    assert_eq!(desk.code("POST", MAPS, map.clone()).await?, 201);
    let (code, _, status) = desk.send("POST", MAPS, map).await?;
    assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    assert_eq!(
        status["message"],
        "configmaps \"a\" already exists, the server was not able to generate a unique name for \
         the object"
    );
    let plain = json!({ "metadata": { "name": "a" } });
    let (_, _, status) = desk.send("POST", MAPS, plain).await?;
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    assert_eq!(status["details"]["retryAfterSeconds"], Value::Null);
    Ok(())
}

/// Whoever asks in the old way for the dependents to go is told when that takes time.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_waits_is_202_for_old_clients() -> Outcome {
    let desk = Desk::new();
    for (name, finalizers, options, expected) in [
        (
            "a",
            json!(["example.com/x"]),
            json!({ "orphanDependents": false }),
            202,
        ),
        ("b", json!([]), json!({ "orphanDependents": false }), 200),
        (
            "c",
            json!(["example.com/x"]),
            json!({ "propagationPolicy": "Background" }),
            200,
        ),
    ] {
        let map = json!({ "metadata": { "name": name, "finalizers": finalizers } });
        assert_eq!(desk.code("POST", MAPS, map).await?, 201);
        let path = format!("{MAPS}/{name}");
        assert_eq!(
            desk.code("DELETE", &path, options).await?,
            expected,
            "{name}"
        );
    }
    Ok(())
}

/// What is warned about when an object is created is also when it comes later, once.
#[tokio::test(start_paused = true)]
async fn finalizers_without_a_domain_are_warned_about() -> Outcome {
    let desk = Desk::new();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things", "singular": "thing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(desk.code("POST", path, definition).await?, 201);
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "a", "finalizers": ["one"] },
    });
    let about = |name: &str| {
        vec![format!(
            "299 - \"metadata.finalizers: \\\"{name}\\\": prefer a domain-qualified finalizer name \
             to avoid accidental conflicts with other finalizer writers\""
        )]
    };
    let (code, warnings, _) = desk.send("POST", THINGS, thing).await?;
    assert_eq!((code, warnings), (201, about("one")));
    let path = format!("{THINGS}/a");
    let more = json!({ "metadata": { "finalizers": ["one", "two", "example.com/x"] } });
    let (code, warnings, _) = desk.send("PATCH", &path, more).await?;
    assert_eq!((code, warnings), (200, about("two")));
    let less = json!({ "metadata": { "finalizers": ["one", "orphan"] } });
    let (code, warnings, _) = desk.send("PATCH", &path, less).await?;
    assert_eq!((code, warnings), (200, vec![]));
    Ok(())
}

/// Through the status of a deployment annotations can be changed, and labels not.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_deployment_leaves_its_labels_alone() -> Outcome {
    let desk = Desk::new();
    let labels = json!({ "app": "a" });
    let deployment = json!({
        "metadata": { "name": "a", "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    assert_eq!(desk.code("POST", DEPLOYMENTS, deployment).await?, 201);
    let path = format!("{DEPLOYMENTS}/a/status?fieldManager=status");
    let change = json!({
        "metadata": { "labels": { "app": null, "new": "x" }, "annotations": { "new": "x" } },
        "status": { "replicas": 1 },
    });
    let (code, _, changed) = desk.send("PATCH", &path, change).await?;
    assert_eq!(code, 200);
    assert_eq!(changed["metadata"]["labels"], labels);
    assert_eq!(changed["metadata"]["annotations"], json!({ "new": "x" }));
    let entries = changed["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    let owned: Vec<&Value> = entries
        .filter(|entry| entry["manager"] == "status")
        .map(|entry| &entry["fieldsV1"])
        .collect();
    let annotations = json!({ ".": {}, "f:new": {} });
    assert_eq!(
        owned,
        [&json!({
            "f:metadata": { "f:annotations": annotations }, "f:status": { "f:replicas": {} },
        })]
    );
    Ok(())
}

/// Old kubelets would spoil them.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_pod_leaves_its_owners_alone() -> Outcome {
    let desk = Desk::new();
    let pods = "/api/v1/namespaces/default/pods";
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" });
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    assert_eq!(desk.code("POST", pods, pod).await?, 201);
    let change =
        json!({ "metadata": { "ownerReferences": [owner] }, "status": { "phase": "Running" } });
    let path = format!("{pods}/a/status");
    let (code, _, changed) = desk.send("PATCH", &path, change).await?;
    assert_eq!(
        (code, &changed["status"]["phase"]),
        (200, &json!("Running"))
    );
    assert_eq!(changed["metadata"]["ownerReferences"], Value::Null);
    Ok(())
}

// The tests of Kubernetes: test/integration/apiserver, TestShardedList and its neighbours.
#[tokio::test]
async fn lists_and_watches_take_shards_behind_their_gate() -> Outcome {
    let first = "shardRange%28object.metadata.uid%2C%20%270x0000000000000000%27%2C%20%270x8000000000000000%27%29";
    let second = "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')";
    let second = second.replace('\'', "%27");
    let create = async |desk: &Desk| -> Outcome {
        for number in 0..40 {
            let name = format!("map-{number}");
            let map = json!({ "metadata": { "name": name } });
            let (code, ..) = desk.send("POST", MAPS, map).await?;
            assert_eq!(code, 201);
        }
        Ok(())
    };
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().into_iter().flatten();
        items
            .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
            .collect()
    };
    // Without the gate the parameter is ignored, whatever it says.
    let desk = Desk::new();
    create(&desk).await?;
    for selector in [first, "nonsense"] {
        let path = format!("{MAPS}?shardSelector={selector}");
        let (code, _, list) = desk.send("GET", &path, Value::Null).await?;
        assert_eq!((code, names(&list).len() >= 40), (200, true));
        assert_eq!(list["metadata"].get("shardInfo"), None);
    }

    let mut config = Config::default();
    config.sharded_list_and_watch = true;
    let desk = Desk(ApiServer::builder().config(config).build());
    create(&desk).await?;
    let mut all = Vec::new();
    for selector in [first, &second] {
        let path = format!("{MAPS}?shardSelector={selector}");
        let (code, _, list) = desk.send("GET", &path, Value::Null).await?;
        assert_eq!(code, 200);
        let told = list["metadata"]["shardInfo"]["selector"].as_str();
        assert!(told.is_some_and(|told| told.starts_with("shardRange(object.metadata.uid,")));
        assert!(names(&list).len() > 5, "{list}");
        all.extend(names(&list));
        // Pages are of the same part, and nobody knows how many remain.
        let (_, _, page) = desk
            .send("GET", &format!("{path}&limit=2"), Value::Null)
            .await?;
        assert_eq!(names(&page), names(&list)[..2]);
        assert_eq!(page["metadata"].get("remainingItemCount"), None);
        // A deletion of the collection is, too.
        let (code, ..) = desk.send("DELETE", &path, json!({})).await?;
        assert_eq!(code, 200);
        let (_, _, list) = desk.send("GET", &path, Value::Null).await?;
        assert_eq!(names(&list), Vec::<String>::new());
    }
    all.sort();
    all.dedup();
    assert!(all.len() >= 40, "each object is in one of the parts");
    let path = format!("{MAPS}?shardSelector=shardRange(object.metadata.uid,1,2)");
    let (code, _, status) = desk.send("GET", &path, Value::Null).await?;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "invalid shardSelector: hexStart must be a string literal, got int64"
    );
    Ok(())
}
