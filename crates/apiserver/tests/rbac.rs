//! What roles and bindings allow, and whose a token is.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

use std::time::Duration;

use homeostat_apiserver::{ApiServer, TokioClock, User};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

/// A server where roles decide, and the service account `default/worker`.
struct World {
    server: ApiServer,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::builder().rbac(true).clock(TokioClock::default());
        let world = Self {
            server: server.build(),
        };
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let account = json!({ "metadata": { "name": "worker" } });
        assert_eq!(world.admin("POST", accounts, account).await.0, 201);
        world
    }

    /// What the server answers to a user; to the administrator if none is named.
    async fn ask(
        &self,
        user: Option<User>,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let service = match user {
            Some(user) => self.server.service_as(user),
            None => self.server.service(),
        };
        let mut request = Request::builder().method(method).uri(path);
        let body_type = if method == "PATCH" {
            "application/apply-patch+yaml"
        } else {
            "application/json"
        };
        request = request.header("content-type", body_type);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = request.body(Full::new(bytes::Bytes::from(body))).unwrap();
        let answer = service.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask(None, method, path, &[], &body).await
    }

    async fn worker(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask(Some(worker()), method, path, &[], &body).await
    }

    /// What is refused to the worker.
    async fn refused(&self, method: &str, path: &str, body: Value) -> String {
        let (status, answer) = self.worker(method, path, body).await;
        assert_eq!(status, 403, "{method} {path}: {answer}");
        answer["message"].as_str().unwrap().to_owned()
    }

    /// Gives a role with these rules to the worker: in the namespace, or everywhere.
    async fn grant(&self, name: &str, namespace: Option<&str>, allowed: Value) {
        let (kind, within) = match namespace {
            Some(namespace) => ("Role", format!("/namespaces/{namespace}")),
            None => ("ClusterRole", String::new()),
        };
        let roles = format!("{ROLES}{within}/{}s", kind.to_lowercase());
        let role = json!({ "metadata": { "name": name }, "rules": allowed });
        let (status, answer) = self.admin("POST", &roles, role).await;
        assert_eq!(status, 201, "{answer}");
        self.bind(name, kind, namespace).await;
    }

    async fn bind(&self, name: &str, kind: &str, namespace: Option<&str>) {
        let bindings = match namespace {
            Some(namespace) => format!("{ROLES}/namespaces/{namespace}/rolebindings"),
            None => format!("{ROLES}/clusterrolebindings"),
        };
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": "worker", "namespace": "default" }],
        });
        let (status, answer) = self.admin("POST", &bindings, binding).await;
        assert_eq!(status, 201, "{answer}");
    }
}

fn worker() -> User {
    User::service_account("default", "worker")
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

#[tokio::test]
async fn what_no_role_allows_is_refused_with_a_clusters_words() {
    let world = World::new().await;
    let who = "User \"system:serviceaccount:default:worker\" cannot";
    for (method, path, expected) in [
        (
            "GET",
            MAPS,
            format!(
                "configmaps is forbidden: {who} list resource \"configmaps\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/default/configmaps/a",
            format!(
                "configmaps \"a\" is forbidden: {who} get resource \"configmaps\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/apis/apps/v1/deployments?watch=1",
            format!(
                "deployments.apps is forbidden: {who} watch resource \"deployments\" in API group \"apps\" at the cluster scope"
            ),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/a/status",
            format!(
                "deployments.apps \"a\" is forbidden: {who} patch resource \"deployments/status\" in API group \"apps\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/metrics",
            format!("forbidden: {who} get path \"/metrics\""),
        ),
        // Even for what nobody serves.
        (
            "GET",
            "/apis/x.io/v1/widgets",
            format!(
                "widgets.x.io is forbidden: {who} list resource \"widgets\" in API group \"x.io\" at the cluster scope"
            ),
        ),
    ] {
        assert_eq!(world.refused(method, path, Value::Null).await, expected);
    }
    // What everybody may do who is known.
    for path in [
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/openapi/v3",
        "/version",
        "/readyz",
    ] {
        let (status, answer) = world.worker("GET", path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
}

#[tokio::test]
async fn roles_hold_where_they_are_bound_until_they_are_changed() {
    let world = World::new().await;
    world
        .grant(
            "reader",
            Some("default"),
            json!([rule("", "configmaps", &["list"])]),
        )
        .await;
    assert_eq!(world.worker("GET", MAPS, Value::Null).await.0, 200);
    world
        .refused("GET", "/api/v1/configmaps", Value::Null)
        .await;
    world
        .refused(
            "GET",
            "/api/v1/namespaces/kube-system/configmaps",
            Value::Null,
        )
        .await;
    world
        .grant(
            "everywhere",
            None,
            json!([rule("", "configmaps", &["list"])]),
        )
        .await;
    assert_eq!(
        world
            .worker("GET", "/api/v1/configmaps", Value::Null)
            .await
            .0,
        200
    );

    // The next request sees what is changed.
    let none = json!({ "metadata": { "name": "everywhere" }, "rules": [] });
    world
        .admin("PUT", &format!("{ROLES}/clusterroles/everywhere"), none)
        .await;
    world
        .refused("GET", "/api/v1/configmaps", Value::Null)
        .await;
    // A binding without its role says why nothing is allowed.
    world
        .admin(
            "DELETE",
            &format!("{ROLES}/namespaces/default/roles/reader"),
            Value::Null,
        )
        .await;
    let message = world.refused("GET", MAPS, Value::Null).await;
    assert!(
        message.ends_with(": RBAC: role.rbac.authorization.k8s.io \"reader\" not found"),
        "{message}"
    );
}

/// An apply that makes an object needs `create` as well.
#[tokio::test]
async fn an_apply_that_creates_needs_the_right_to_create() {
    let world = World::new().await;
    let path = format!("{MAPS}/a?fieldManager=worker");
    world
        .grant(
            "patch",
            Some("default"),
            json!([rule("", "configmaps", &["patch"])]),
        )
        .await;
    let message = world.refused("PATCH", &path, map("a")).await;
    assert_eq!(
        message,
        "configmaps \"a\" is forbidden: User \"system:serviceaccount:default:worker\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    world.admin("POST", MAPS, map("a")).await;
    assert_eq!(world.worker("PATCH", &path, map("a")).await.0, 200);
    world
        .grant(
            "create",
            Some("default"),
            json!([rule("", "configmaps", &["create"])]),
        )
        .await;
    let other = format!("{MAPS}/b?fieldManager=worker");
    assert_eq!(world.worker("PATCH", &other, map("b")).await.0, 201);
}

#[tokio::test]
async fn cluster_roles_collect_the_rules_of_those_with_their_labels() {
    let world = World::new().await;
    world.bind("view", "ClusterRole", Some("default")).await;
    assert_eq!(world.worker("GET", MAPS, Value::Null).await.0, 200);
    world
        .refused("GET", "/api/v1/namespaces/default/secrets", Value::Null)
        .await;
    let widgets = "/apis/x.io/v1/namespaces/default/widgets";
    world.refused("GET", widgets, Value::Null).await;
    let role = json!({
        "metadata": { "name": "widgets", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [rule("x.io", "widgets", &["list"])],
    });
    world
        .admin("POST", &format!("{ROLES}/clusterroles"), role)
        .await;
    tokio::time::timeout(Duration::from_secs(10), async {
        while world.worker("GET", widgets, Value::Null).await.0 == 403 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // Whoever may view may edit by the next role only.
    world.refused("POST", MAPS, map("a")).await;
    world.bind("edit", "ClusterRole", Some("default")).await;
    assert_eq!(world.worker("POST", MAPS, map("a")).await.0, 201);
    assert_eq!(world.worker("GET", widgets, Value::Null).await.0, 404);
}

#[tokio::test]
async fn nobody_gives_away_what_they_do_not_have() {
    let world = World::new().await;
    let (roles, bindings) = (
        format!("{ROLES}/namespaces/default/roles"),
        format!("{ROLES}/namespaces/default/rolebindings"),
    );
    let writes = ["create", "update"];
    world
        .grant(
            "admin-of-roles",
            Some("default"),
            json!([
                rule("rbac.authorization.k8s.io", "roles", &writes),
                rule("rbac.authorization.k8s.io", "rolebindings", &writes),
                rule("", "configmaps", &["get", "list"]),
            ]),
        )
        .await;
    let role = |name: &str, verbs: &[&str]| json!({ "metadata": { "name": name }, "rules": [rule("", "configmaps", verbs)] });
    assert_eq!(
        world.worker("POST", &roles, role("less", &["get"])).await.0,
        201
    );
    let message = world
        .refused("POST", &roles, role("more", &["get", "delete"]))
        .await;
    assert_eq!(
        message,
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"system:serviceaccount:default:worker\" \
        (groups=[\"system:authenticated\", \"system:serviceaccounts\", \"system:serviceaccounts:default\"]) is attempting to grant \
        RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}"
    );
    world
        .refused("PUT", &format!("{roles}/less"), role("less", &["delete"]))
        .await;

    let binding = |name: &str, kind: &str, role: &str| {
        json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob" }],
        })
    };
    assert_eq!(
        world
            .worker("POST", &bindings, binding("a", "Role", "less"))
            .await
            .0,
        201
    );
    world
        .refused("POST", &bindings, binding("b", "ClusterRole", "edit"))
        .await;
    world.grant("binder", None, json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["edit"],
    }])).await;
    assert_eq!(
        world
            .worker("POST", &bindings, binding("b", "ClusterRole", "edit"))
            .await
            .0,
        201
    );
    world
        .refused(
            "POST",
            &bindings,
            binding("c", "ClusterRole", "cluster-admin"),
        )
        .await;
}

#[tokio::test]
async fn reviews_tell_what_roles_decide() {
    let world = World::new().await;
    world
        .grant(
            "reader",
            Some("default"),
            json!([rule("", "configmaps", &["list"])]),
        )
        .await;
    let spec = |verb: &str| json!({ "resourceAttributes": { "verb": verb, "resource": "configmaps", "namespace": "default" } });
    let own = format!("{REVIEWS}/selfsubjectaccessreviews");
    let (_, list) = world
        .worker("POST", &own, json!({ "spec": spec("list") }))
        .await;
    assert_eq!(
        list["status"],
        json!({
            "allowed": true,
            "reason": "RBAC: allowed by RoleBinding \"reader/default\" of Role \"reader\" to ServiceAccount \"worker/default\"",
        })
    );
    let (_, get) = world
        .worker("POST", &own, json!({ "spec": spec("get") }))
        .await;
    assert_eq!(get["status"], json!({ "allowed": false }));

    // Of others only who may ask may ask.
    let others = format!("{REVIEWS}/subjectaccessreviews");
    let mut about = spec("list");
    about["user"] = json!("system:serviceaccount:default:worker");
    world
        .refused("POST", &others, json!({ "spec": about }))
        .await;
    let (_, found) = world.admin("POST", &others, json!({ "spec": about })).await;
    assert_eq!(found["status"]["allowed"], true);
    about["user"] = json!("bob");
    let (_, found) = world.admin("POST", &others, json!({ "spec": about })).await;
    assert_eq!(found["status"], json!({ "allowed": false }));

    let rules = format!("{REVIEWS}/selfsubjectrulesreviews");
    let (_, found) = world
        .worker(
            "POST",
            &rules,
            json!({ "spec": { "namespace": "default" } }),
        )
        .await;
    let found = found["status"]["resourceRules"].as_array().unwrap().clone();
    assert!(
        found.contains(&rule("", "configmaps", &["list"])),
        "{found:?}"
    );
}

#[tokio::test]
async fn whoever_may_acts_as_somebody_else() {
    let world = World::new().await;
    world
        .grant(
            "reader",
            Some("default"),
            json!([rule("", "configmaps", &["list"])]),
        )
        .await;
    let as_worker = [("impersonate-user", "system:serviceaccount:default:worker")];
    assert_eq!(
        world
            .ask(None, "GET", MAPS, &as_worker, &Value::Null)
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .ask(None, "GET", "/api/v1/secrets", &as_worker, &Value::Null)
            .await
            .0,
        403
    );
    assert_eq!(
        world.server.requests().all().last().unwrap().user,
        "system:serviceaccount:default:worker"
    );
    let as_admin = [
        ("impersonate-user", "x"),
        ("impersonate-group", "system:masters"),
    ];
    assert_eq!(
        world
            .ask(None, "GET", "/api/v1/secrets", &as_admin, &Value::Null)
            .await
            .0,
        200
    );
    let (status, answer) = world
        .ask(Some(worker()), "GET", MAPS, &as_admin, &Value::Null)
        .await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "users \"x\" is forbidden: User \"system:serviceaccount:default:worker\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    let only_group = [("impersonate-group", "system:masters")];
    assert_eq!(
        world
            .ask(Some(worker()), "GET", MAPS, &only_group, &Value::Null)
            .await
            .0,
        500
    );
}

impl World {
    /// What is answered to a request with this token.
    async fn with(&self, token: &str) -> u16 {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        self.ask(None, "GET", MAPS, &headers, &Value::Null).await.0
    }

    /// The token that the server gives for this.
    async fn issue(&self, spec: Value) -> String {
        let tokens = "/api/v1/namespaces/default/serviceaccounts/worker/token";
        let (status, issued) = self.admin("POST", tokens, json!({ "spec": spec })).await;
        assert_eq!(status, 201, "{issued}");
        issued["status"]["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn only_the_servers_own_tokens_are_good() {
    let world = World::new().await;
    world
        .grant(
            "reader",
            Some("default"),
            json!([rule("", "configmaps", &["list"])]),
        )
        .await;
    let server = &world.server;
    assert_eq!(server.service_account_token("default", "nobody"), None);
    let token = server.service_account_token("default", "worker").unwrap();
    assert_eq!(world.with(&token).await, 200);
    assert_eq!(world.with(&format!("{token}x")).await, 401);
    assert_eq!(world.with("a.b.c").await, 401);
    // Another server has another key.
    let other = World::new().await.server;
    let other = other.service_account_token("default", "worker").unwrap();
    assert_eq!(world.with(&other).await, 401);
    // One for somebody else is signed with the same key.
    let foreign = world.issue(json!({ "audiences": ["vault"] })).await;
    assert_eq!(world.with(&foreign).await, 401);
    let review = json!({ "spec": { "token": token } });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, review) = world.admin("POST", reviews, review).await;
    let name = &review["status"]["user"]["username"];
    assert_eq!(*name, "system:serviceaccount:default:worker");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_until_it_expires_or_its_account_goes() {
    let world = World::new().await;
    let list = json!([rule("", "configmaps", &["list"])]);
    world.grant("reader", Some("default"), list).await;
    let token = world.issue(json!({})).await;
    let longer = world.issue(json!({ "expirationSeconds": 7200 })).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "x" }] } });
    assert_eq!(world.admin("POST", pods, pod).await.0, 201);
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p" });
    let bound = json!({ "boundObjectRef": bound, "expirationSeconds": 7200 });
    let bound = world.issue(bound).await;
    for token in [&token, &longer, &bound] {
        assert_eq!(world.with(token).await, 200);
    }
    tokio::time::advance(Duration::from_secs(3_601)).await;
    assert_eq!(world.with(&token).await, 401);
    assert_eq!(world.with(&longer).await, 200);
    assert_eq!(world.with(&bound).await, 200);
    let now = json!({ "gracePeriodSeconds": 0 });
    world.admin("DELETE", &format!("{pods}/p"), now).await;
    assert_eq!(world.with(&bound).await, 401);

    // An account of the same name is another one.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(world.with(&longer).await, 200);
    world
        .admin("DELETE", &format!("{accounts}/worker"), Value::Null)
        .await;
    assert_eq!(world.with(&longer).await, 401);
    let again = json!({ "metadata": { "name": "worker" } });
    assert_eq!(world.admin("POST", accounts, again).await.0, 201);
    assert_eq!(world.with(&longer).await, 401);
}
