//! Who may ask: TLS, tokens, and the hook that decides.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod wire;

use std::net::SocketAddr;

use homeostat_apiserver::{ApiServer, ApiServerBuilder, Attributes, Decision, User};
use http::Request;
use http_body_util::Full;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value, json};
use tower::ServiceExt;
use wire::Wire;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRET: &str = "a token that nobody guesses";

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn with_token() -> ApiServerBuilder {
    ApiServer::builder().token(SECRET, User::new("alice").group("writers"))
}

async fn client_of(kubeconfig: &str) -> Client {
    let config = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// 0 for what is no answer of the API.
fn code(error: &kube::Error) -> u16 {
    if let kube::Error::Api(status) = error {
        status.code
    } else {
        0
    }
}

#[tokio::test]
async fn over_https_with_a_token_the_api_is_the_same() {
    let server = with_token().https(true).build();
    let listening = server.serve(anywhere()).await.unwrap();
    assert!(listening.url().starts_with("https://127.0.0.1:"));
    let client = client_of(&listening.kubeconfig_with_token(SECRET)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    let log = server.requests().all();
    assert!(log.iter().all(|request| request.user == "alice"), "{log:?}");

    // The file without the token is good for the address and the certificate only.
    let stranger: Api<ConfigMap> =
        Api::default_namespaced(client_of(&listening.kubeconfig()).await);
    assert_eq!(code(&stranger.get("a").await.unwrap_err()), 401);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let server = ApiServer::builder().https(true).build();
    let ours = server.serve(anywhere()).await.unwrap();
    let other = server.serve(anywhere()).await.unwrap();
    let address = |config: &str| config.replace(&ours.url(), &other.url());
    let client = client_of(&address(&ours.kubeconfig())).await;
    let refused = client.apiserver_version().await.unwrap_err();
    assert!(!matches!(refused, kube::Error::Api(_)), "{refused}");
    let client = client_of(&ours.kubeconfig()).await;
    client.apiserver_version().await.unwrap();
}

#[tokio::test]
async fn plain_http_on_the_port_of_https_is_told_so() {
    let server = ApiServer::builder().https(true).build();
    let listening = server.serve(anywhere()).await.unwrap();
    let answer = Wire(listening.address()).get("/version").await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.text,
        "Client sent an HTTP request to an HTTPS server.\n"
    );
}

#[tokio::test]
async fn without_tokens_nobody_is_asked_for_one() {
    let server = ApiServer::builder().build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    let mut events = wire
        .watch(&format!("{MAPS}?watch=1"), "application/json")
        .await;
    let (status, _) = ask(
        wire,
        "POST",
        MAPS,
        "whatever",
        r#"{"metadata":{"name":"a"}}"#,
    )
    .await;
    assert_eq!(status, 201);
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    let log = server.requests().all();
    assert!(
        log.iter().all(|request| request.user == "system:admin"),
        "{log:?}"
    );
}

/// Recorded as `errors/unauthorized`.
#[tokio::test]
async fn without_a_token_that_is_known_nothing_is_answered() {
    let server = with_token().build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    let unauthorized = json!({
        "apiVersion": "v1", "code": 401, "kind": "Status", "message": "Unauthorized",
        "metadata": {}, "reason": "Unauthorized", "status": "Failure",
    });
    let right = format!("bearer {SECRET}");
    let almost = format!("Bearer {SECRET}!");
    let basic = format!("Basic {SECRET}");
    for (header, path, status) in [
        (None, MAPS, 401),
        (None, "/nonsense", 401),
        (None, "/apis", 401),
        (Some("Bearer no-such-token"), MAPS, 401),
        (Some("Bearer no-such-token"), "/healthz", 401),
        (Some("Bearer"), MAPS, 401),
        (Some("Bearer "), MAPS, 401),
        (Some(almost.as_str()), MAPS, 401),
        (Some(basic.as_str()), MAPS, 401),
        (Some(right.as_str()), MAPS, 200),
        (Some(right.as_str()), "/nonsense", 404),
        // What tells that the server is there, tells it to everybody.
        (None, "/healthz", 200),
        (None, "/version", 200),
    ] {
        let headers: Vec<(&str, &str)> =
            header.map(|it| ("authorization", it)).into_iter().collect();
        let answer = wire.request("GET", path, &headers, "").await;
        assert_eq!(answer.status, status, "{header:?} {path}: {}", answer.text);
        if status == 401 {
            assert_eq!(answer.json(), unauthorized);
        }
    }
    // A refused request is read no further, and changes nothing.
    let refused = wire
        .request("POST", MAPS, &[], r#"{"metadata":{"name":"a"}}"#)
        .await;
    assert_eq!(refused.status, 401);
    assert_eq!(server.requests().writes(), 0);
}

#[tokio::test]
async fn in_process_nobody_has_to_say_who_they_are_but_can() {
    let server = with_token().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.list(&ListParams::default()).await.unwrap();
    let ask = async |token: &str| {
        let request = Request::get(MAPS).header("authorization", format!("Bearer {token}"));
        let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
        server.service().oneshot(request).await.unwrap().status()
    };
    assert_eq!(ask(SECRET).await, 200);
    assert_eq!(ask("another").await, 401);
    let users: Vec<String> = server
        .requests()
        .take()
        .into_iter()
        .map(|it| it.user)
        .collect();
    assert_eq!(users, ["system:admin", "alice", ""]);
}

/// Only members of `writers` write, nobody sees Secrets, and everything else is allowed.
fn rules(wanted: &Attributes<'_>) -> Decision {
    let reads = ["get", "list", "watch"].contains(&wanted.verb);
    let writer = wanted.user.groups.iter().any(|group| group == "writers");
    match wanted.resource {
        "secrets" => Decision::Deny("no Secrets here".to_owned()),
        _ if wanted.path == "/version" => Decision::Deny(String::new()),
        _ if wanted.path.starts_with("/debug") => Decision::Deny(String::new()),
        "configmaps" | "deployments" if !reads && !writer => Decision::Deny(String::new()),
        _ => Decision::Allow,
    }
}

async fn ask(wire: Wire, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let token = format!("Bearer {token}");
    let headers = [
        ("authorization", token.as_str()),
        ("content-type", "application/json"),
    ];
    let answer = wire.request(method, path, &headers, body).await;
    (answer.status, answer.json())
}

/// The bodies are as `errors/forbidden` recorded them.
#[tokio::test]
async fn the_hook_decides_and_the_answer_says_what_was_refused() {
    let server = with_token()
        .token("bob's", User::new("bob"))
        .authorizer(rules)
        .debug(true)
        .build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    let map = r#"{"metadata":{"name":"a"}}"#;
    assert_eq!(ask(wire, "POST", MAPS, SECRET, map).await.0, 201);
    for (method, path, message, details) in [
        (
            "POST",
            MAPS,
            "configmaps is forbidden: User \"bob\" cannot create resource \"configmaps\" in API \
             group \"\" in the namespace \"default\"",
            json!({ "kind": "configmaps" }),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            "deployments.apps \"a\" is forbidden: User \"bob\" cannot patch resource \
             \"deployments/scale\" in API group \"apps\" in the namespace \"default\"",
            json!({ "group": "apps", "kind": "deployments", "name": "a" }),
        ),
        (
            "GET",
            "/api/v1/secrets?watch=1",
            "secrets is forbidden: User \"bob\" cannot watch resource \"secrets\" in API group \"\" \
             at the cluster scope: no Secrets here",
            json!({ "kind": "secrets" }),
        ),
        (
            "POST",
            "/debug/compact",
            "forbidden: User \"bob\" cannot post path \"/debug/compact\"",
            json!({}),
        ),
    ] {
        let (status, body) = ask(wire, method, path, "bob's", "{}").await;
        assert_eq!(status, 403, "{body}");
        assert_eq!(body["message"], message);
        assert_eq!(body["reason"], "Forbidden");
        assert_eq!(body["details"], details);
    }
    // What everybody may see is not asked about.
    assert_eq!(ask(wire, "GET", "/version", "bob's", "").await.0, 200);
    let log = server.requests();
    assert_eq!(
        log.count(|request| request.status == Some(403) && request.user == "bob"),
        4
    );
}

#[tokio::test]
async fn reviews_tell_what_the_hook_decides_and_whose_a_token_is() {
    let server = with_token()
        .token("bob's", User::new("bob"))
        .authorizer(rules)
        .build();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    let review = async |group: &str, plural: &str, token: &str, spec: Value| {
        let path = format!("/apis/{group}/v1/{plural}");
        let (status, body) = ask(
            wire,
            "POST",
            &path,
            token,
            &json!({ "spec": spec }).to_string(),
        )
        .await;
        assert_eq!(status, 201, "{body}");
        body["status"].clone()
    };
    let write = json!({ "resourceAttributes": { "verb": "create", "resource": "configmaps" } });
    let secrets = json!({ "resourceAttributes": { "verb": "get", "resource": "secrets" } });
    let path = json!({ "nonResourceAttributes": { "verb": "get", "path": "/version" } });
    let denied = json!({ "allowed": false });
    let allowed = json!({ "allowed": true });
    let why = json!({ "allowed": false, "reason": "no Secrets here" });
    for (token, spec, expected) in [
        (SECRET, &write, &allowed),
        ("bob's", &write, &denied),
        ("bob's", &secrets, &why),
        ("bob's", &path, &denied),
    ] {
        let found = review(
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            token,
            spec.clone(),
        );
        assert_eq!(found.await, *expected, "{spec}");
    }
    for (groups, expected) in [(json!([]), &denied), (json!(["writers"]), &allowed)] {
        let mut spec = write.clone();
        spec["user"] = json!("carol");
        spec["groups"] = groups;
        let found = review("authorization.k8s.io", "subjectaccessreviews", SECRET, spec);
        assert_eq!(found.await, *expected);
    }
    let info = review(
        "authentication.k8s.io",
        "selfsubjectreviews",
        SECRET,
        json!({}),
    )
    .await;
    let alice = json!({ "username": "alice", "groups": ["system:authenticated", "writers"] });
    assert_eq!(info["userInfo"], alice);
    let known = json!({ "token": SECRET });
    let known = review("authentication.k8s.io", "tokenreviews", "bob's", known).await;
    assert_eq!(known, json!({ "authenticated": true, "user": alice }));
    let unknown = json!({ "token": "whose?" });
    let unknown = review("authentication.k8s.io", "tokenreviews", "bob's", unknown).await;
    assert_eq!(unknown["authenticated"], Value::Null);
}

/// Nothing that is printed by accident tells a token.
#[test]
fn tokens_are_not_printed() {
    let builder = with_token();
    assert!(!format!("{builder:?}").contains(SECRET));
    let server = builder.build();
    assert!(!format!("{server:?} {:?}", server.service()).contains(SECRET));
}

/// Where roles decide nobody on a socket is the administrator by saying nothing.
#[tokio::test]
async fn where_roles_decide_a_token_is_needed() {
    let server = ApiServer::builder().rbac(true).build();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(server.client());
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some("worker".to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let listening = server.serve(anywhere()).await.unwrap();
    let wire = Wire(listening.address());
    assert_eq!(wire.get(MAPS).await.status, 401);
    assert_eq!(wire.get("/version").await.status, 200);
    let token = server.service_account_token("default", "worker").unwrap();
    assert_eq!(ask(wire, "GET", MAPS, &token, "").await.0, 403);
    assert_eq!(ask(wire, "GET", "/apis", &token, "").await.0, 200);
}
