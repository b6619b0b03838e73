//! What kubectl does, step by step: once as bare HTTP requests, and once more by kubectl itself where
//! it is installed. After each step the same facts must hold, whoever made it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod wire;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use homeostat_apiserver::{ApiServer, Fate, Listening, PodRule};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use wire::Wire;

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// Where the description of a field is.
const EXPLAINED: &str = "/components/schemas/com.example.v1.Widget\
    /properties/spec/properties/replicas/description";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Wanted, type: integer, jsonPath: .spec.replicas}
    - {name: Image, type: string, jsonPath: .spec.image, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, description: How many are wanted.}
              image: {type: string}
          status:
            type: object
            properties:
              phase: {type: string}
";

const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: default}
spec: {replicas: 2, image: nginx}
";

const APPLIED: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: applied, namespace: default}
spec: {replicas: 1}
";

const CONTENDED: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: applied, namespace: default}
spec: {replicas: 9}
";

const MISSPELT: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: misspelt, namespace: default}
spec: {replica: 2}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: \"main:1\"}
      - {name: side, image: \"side:1\"}
";

const STALE: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: default, resourceVersion: \"1\"}
spec: {replicas: 5}
";

const LIST: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed, namespace: default}
  data: {a: b}
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: listed, namespace: default}
  spec: {replicas: 1}
";

const LISTED_MAP: &str = r#"{"metadata":{"name":"listed"},"data":{"a":"b"}}"#;

const LISTED_WIDGET: &str = r#"{"apiVersion":"example.com/v1","kind":"Widget",
    "metadata":{"name":"listed"},"spec":{"replicas":1}}"#;

const CHANGED_LIST: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed, namespace: default}
  data: {a: b}
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: listed, namespace: default}
  spec: {replicas: 2}
";

const MISSPELT_LIST: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: listed, namespace: default}
  data: {a: c}
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: listed, namespace: default}
  spec: {replica: 2}
";

const LIST_OF_NO_VERSION: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v9
  kind: Widget
  metadata: {name: listed, namespace: default}
  spec: {replicas: 3}
";

/// One step of the session.
struct Step {
    about: &'static str,
    /// The arguments of kubectl and its standard input.
    kubectl: &'static [&'static str],
    input: &'static str,
    /// What kubectl must say. A step that the server refuses is one of which kubectl says why.
    says: &'static str,
    /// What kubectl sends before that, and the server takes: method, path, body.
    first: Vec<(&'static str, String, &'static str)>,
    /// Whether kubectl ends with an error though the server refuses nothing.
    fails: bool,
    /// What kubectl sends in the end: method, path, media type, body.
    sends: (&'static str, String, &'static str, &'static str),
    /// What a request without a body accepts.
    accept: &'static str,
    status: u16,
    /// What the answer says at these places.
    answers: Vec<(&'static str, Value)>,
    /// What is then at these paths, at these places.
    then: Vec<(String, &'static str, Value)>,
}

fn step(
    about: &'static str,
    kubectl: &'static [&'static str],
    input: &'static str,
    says: &'static str,
) -> Step {
    Step {
        about,
        kubectl,
        input,
        says,
        first: Vec::new(),
        fails: false,
        sends: ("GET", String::new(), JSON, ""),
        accept: JSON,
        status: 200,
        answers: Vec::new(),
        then: Vec::new(),
    }
}

impl Step {
    fn first(mut self, method: &'static str, path: &str, body: &'static str) -> Self {
        self.first.push((method, path.to_owned(), body));
        self
    }

    fn fails(mut self) -> Self {
        self.fails = true;
        self
    }

    fn sends(
        mut self,
        method: &'static str,
        path: &str,
        media_type: &'static str,
        body: &'static str,
    ) -> Self {
        self.sends = (method, path.to_owned(), media_type, body);
        self
    }

    fn reads(mut self, path: &str, accept: &'static str) -> Self {
        self.accept = accept;
        self.sends("GET", path, JSON, "")
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn answers(mut self, place: &'static str, expected: Value) -> Self {
        self.answers.push((place, expected));
        self
    }

    fn then(mut self, path: &str, place: &'static str, expected: Value) -> Self {
        self.then.push((path.to_owned(), place, expected));
        self
    }
}

fn definitions() -> Vec<Step> {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = format!("{definitions}/widgets.example.com");
    vec![
        step("a definition", &["apply", "-f", "-"], DEFINITION, "created")
            .sends("POST", definitions, YAML, DEFINITION)
            .status(201)
            .then(&definition, "/spec/names/listKind", json!("WidgetList")),
        step(
            "it is established",
            &[
                "wait",
                "--for=condition=Established",
                "crd/widgets.example.com",
                "--timeout=20s",
            ],
            "",
            "condition met",
        )
        .reads(&definition, JSON)
        .answers("/status/conditions/1/type", json!("Established"))
        .answers("/status/conditions/1/status", json!("True")),
    ]
}

fn discovery() -> Vec<Step> {
    vec![
        step(
            "the kind is discovered",
            &["api-resources", "--api-group=example.com", "--no-headers"],
            "",
            "widgets   wd    example.com/v1   true   Widget",
        )
        .reads(
            "/apis",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        )
        .answers("/items/16/metadata/name", json!("example.com"))
        .answers("/items/16/versions/0/resources/0/shortNames/0", json!("wd")),
        step("versions", &["api-versions"], "", "example.com/v1\n")
            .reads("/apis/example.com", JSON)
            .answers("/preferredVersion/groupVersion", json!("example.com/v1")),
        step(
            "the server's version",
            &["version"],
            "",
            "Server Version: v1.36",
        )
        .reads("/version", JSON)
        .answers("/minor", json!("36")),
        step(
            "a field is explained",
            &["explain", "widget.spec.replicas"],
            "",
            "How many are wanted.",
        )
        .reads("/openapi/v3/apis/example.com/v1", JSON)
        .answers(EXPLAINED, json!("How many are wanted.")),
    ]
}

fn changes() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    vec![
        step(
            "an object",
            &["apply", "-f", "-"],
            WIDGET,
            "widget.example.com/w created",
        )
        .sends("POST", WIDGETS, YAML, WIDGET)
        .status(201)
        .answers("/metadata/generation", json!(1))
        .then(&one, "/spec/image", json!("nginx")),
        step(
            "it is shown as a row",
            &["get", "wd", "-o", "wide"],
            "",
            "w      2        nginx",
        )
        .reads(WIDGETS, TABLE)
        .answers("/columnDefinitions/2/priority", json!(1))
        .answers("/rows/0/cells", json!(["w", 2, "nginx"]))
        .answers("/rows/0/object/kind", json!("PartialObjectMetadata")),
        step(
            "a merge patch",
            &[
                "patch",
                "wd",
                "w",
                "--type=merge",
                "-p",
                r#"{"spec":{"replicas":3}}"#,
            ],
            "",
            "patched",
        )
        .sends("PATCH", &one, MERGE, r#"{"spec":{"replicas":3}}"#)
        .answers("/metadata/generation", json!(2))
        .then(&one, "/spec/replicas", json!(3)),
        step(
            "the same again",
            &[
                "patch",
                "wd",
                "w",
                "--type=merge",
                "-p",
                r#"{"spec":{"replicas":3}}"#,
            ],
            "",
            "no change",
        )
        .sends("PATCH", &one, MERGE, r#"{"spec":{"replicas":3}}"#)
        .then(&one, "/metadata/generation", json!(2)),
    ]
}

fn metadata() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    vec![
        step(
            "a label",
            &["label", "wd", "w", "tier=front"],
            "",
            "labeled",
        )
        .sends(
            "PATCH",
            &one,
            MERGE,
            r#"{"metadata":{"labels":{"tier":"front"}}}"#,
        )
        .then(&one, "/metadata/labels/tier", json!("front"))
        .then(&one, "/metadata/generation", json!(2)),
        step(
            "an annotation",
            &["annotate", "wd", "w", "note=x"],
            "",
            "annotated",
        )
        .sends(
            "PATCH",
            &one,
            MERGE,
            r#"{"metadata":{"annotations":{"note":"x"}}}"#,
        )
        .then(&one, "/metadata/annotations/note", json!("x")),
    ]
}

fn subresources() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    vec![
        step(
            "its scale",
            &["scale", "wd", "w", "--replicas=4"],
            "",
            "scaled",
        )
        .sends(
            "PATCH",
            &format!("{one}/scale"),
            MERGE,
            r#"{"spec":{"replicas":4}}"#,
        )
        .answers("/kind", json!("Scale"))
        .then(&one, "/spec/replicas", json!(4)),
        step(
            "its status",
            &[
                "patch",
                "wd",
                "w",
                "--subresource=status",
                "--type=merge",
                "-p",
                r#"{"status":{"phase":"Up"}}"#,
            ],
            "",
            "patched",
        )
        .sends(
            "PATCH",
            &format!("{one}/status"),
            MERGE,
            r#"{"status":{"phase":"Up"}}"#,
        )
        .then(&one, "/status/phase", json!("Up"))
        .then(&one, "/metadata/generation", json!(3)),
        step(
            "what was waited for is there",
            &[
                "wait",
                "wd/w",
                "--for=jsonpath={.status.phase}=Up",
                "--timeout=20s",
            ],
            "",
            "condition met",
        )
        .reads(&one, JSON)
        .answers("/status/phase", json!("Up")),
    ]
}

fn refusals() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    vec![
        step(
            "a strategic patch is refused",
            &["patch", "wd", "w", "--type=strategic", "-p", "{}"],
            "",
            "is not supported by example.com/v1",
        )
        .sends(
            "PATCH",
            &one,
            "application/strategic-merge-patch+json",
            "{}",
        )
        .status(415)
        .answers("/reason", json!("UnsupportedMediaType")),
        step(
            "an old version is refused",
            &["replace", "-f", "-"],
            STALE,
            "Error from server (Conflict)",
        )
        .sends("PUT", &one, YAML, STALE)
        .status(409)
        .answers("/reason", json!("Conflict"))
        .then(&one, "/spec/replicas", json!(4)),
        step(
            "a misspelt field is refused",
            &["create", "-f", "-"],
            MISSPELT,
            r#"unknown field "spec.replica""#,
        )
        .sends(
            "POST",
            &format!("{WIDGETS}?fieldValidation=Strict"),
            YAML,
            MISSPELT,
        )
        .status(400)
        .answers("/reason", json!("BadRequest"))
        .then(&format!("{WIDGETS}/misspelt"), "/reason", json!("NotFound")),
        step(
            "an object that is not there",
            &["get", "wd", "nothing"],
            "",
            r#"widgets.example.com "nothing" not found"#,
        )
        .reads(&format!("{WIDGETS}/nothing"), TABLE)
        .status(404)
        .answers("/kind", json!("Status")),
    ]
}

fn server_side_apply() -> Vec<Step> {
    let applied = format!("{WIDGETS}/applied");
    let apply = |manager: &str| format!("{applied}?fieldManager={manager}");
    vec![
        step(
            "server-side apply",
            &["apply", "--server-side", "--field-manager=one", "-f", "-"],
            APPLIED,
            "serverside-applied",
        )
        .sends("PATCH", &apply("one"), APPLY, APPLIED)
        .status(201)
        .then(&applied, "/metadata/managedFields/0/manager", json!("one"))
        .then(
            &applied,
            "/metadata/managedFields/0/operation",
            json!("Apply"),
        ),
        step(
            "another manager is in conflict",
            &["apply", "--server-side", "--field-manager=two", "-f", "-"],
            CONTENDED,
            r#"conflict with "one": .spec.replicas"#,
        )
        .sends("PATCH", &apply("two"), APPLY, CONTENDED)
        .status(409)
        .answers("/details/causes/0/reason", json!("FieldManagerConflict"))
        .then(&applied, "/spec/replicas", json!(1)),
        step(
            "and may take over",
            &[
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager=two",
                "-f",
                "-",
            ],
            CONTENDED,
            "serverside-applied",
        )
        .sends(
            "PATCH",
            &format!("{}&force=true", apply("two")),
            APPLY,
            CONTENDED,
        )
        .then(&applied, "/spec/replicas", json!(9)),
    ]
}

fn built_in_objects() -> Vec<Step> {
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let web = format!("{deployments}/web");
    let strategic = "application/strategic-merge-patch+json";
    let image =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:2"}]}}}}"#;
    vec![
        step(
            "a deployment",
            &["apply", "-f", "-"],
            DEPLOYMENT,
            "deployment.apps/web created",
        )
        .sends("POST", deployments, YAML, DEPLOYMENT)
        .status(201)
        .then(&web, "/spec/strategy/type", json!("RollingUpdate")),
        step(
            "one container of two",
            &["set", "image", "deployment/web", "side=side:2"],
            "",
            "image updated",
        )
        .sends("PATCH", &web, strategic, image)
        .then(
            &web,
            "/spec/template/spec/containers/0/image",
            json!("main:1"),
        )
        .then(
            &web,
            "/spec/template/spec/containers/1/image",
            json!("side:2"),
        ),
        step(
            "its row",
            &["get", "deploy", "web", "--no-headers", "-o", "wide"],
            "",
            "web   0/2   0     0",
        )
        .reads(&web, TABLE)
        .answers("/rows/0/cells/1", json!("0/2"))
        .answers("/rows/0/cells/6", json!("main:1,side:2")),
        step(
            "its scale",
            &["scale", "deployment", "web", "--replicas=0"],
            "",
            "scaled",
        )
        .sends(
            "PATCH",
            &format!("{web}/scale"),
            MERGE,
            r#"{"spec":{"replicas":0}}"#,
        )
        .then(&web, "/spec/replicas", json!(0)),
        step(
            "a description",
            &["describe", "deployment", "web"],
            "",
            "Selector:               app=web",
        )
        .reads(&web, JSON)
        .answers("/spec/selector/matchLabels/app", json!("web")),
    ]
}

/// Lists of objects of several kinds, which kubectl takes apart. It asks the old description of everything what a
/// list is.
fn lists() -> Vec<Step> {
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = format!("{maps}/listed");
    let widget = format!("{WIDGETS}/listed");
    let replicas = r#"{"spec":{"replicas":2}}"#;
    vec![
        step(
            "a list",
            &["apply", "-f", "-"],
            LIST,
            "configmap/listed created\nwidget.example.com/listed created\n",
        )
        .first("POST", maps, LISTED_MAP)
        .sends("POST", WIDGETS, JSON, LISTED_WIDGET)
        .status(201)
        .then(&map, "/data", json!({ "a": "b" }))
        .then(&widget, "/spec/replicas", json!(1)),
        step(
            "the same list again",
            &["apply", "-f", "-"],
            LIST,
            "configmap/listed unchanged\nwidget.example.com/listed unchanged\n",
        )
        .reads(&widget, JSON)
        .then(&widget, "/metadata/generation", json!(1)),
        step(
            "what another list would change",
            &["diff", "-f", "-"],
            CHANGED_LIST,
            "- replicas: 1\n+ replicas: 2\n",
        )
        .fails()
        .sends("PATCH", &format!("{widget}?dryRun=All"), MERGE, replicas)
        .answers("/spec/replicas", json!(2))
        .then(&widget, "/spec/replicas", json!(1)),
        step(
            "the other list",
            &["apply", "-f", "-"],
            CHANGED_LIST,
            "configmap/listed unchanged\nwidget.example.com/listed configured\n",
        )
        .sends("PATCH", &widget, MERGE, replicas)
        .then(&widget, "/spec/replicas", json!(2))
        .then(&widget, "/metadata/generation", json!(2)),
    ]
}

fn lists_that_are_refused() -> Vec<Step> {
    let map = "/api/v1/namespaces/default/configmaps/listed";
    let widget = format!("{WIDGETS}/listed");
    let strict = format!("{widget}?fieldValidation=Strict");
    vec![
        step(
            "a list with a misspelt field",
            &["apply", "-f", "-"],
            MISSPELT_LIST,
            // kubectl says this by itself: it does not know that the server checks lists.
            r#"unknown field "replica" in com.example.v1.Widget.spec"#,
        )
        .sends("PATCH", &strict, MERGE, r#"{"spec":{"replica":2}}"#)
        .status(422)
        .then(map, "/data", json!({ "a": "b" }))
        .then(&widget, "/spec/replicas", json!(2)),
        step(
            "a list with a version that is not served",
            &["apply", "-f", "-"],
            LIST_OF_NO_VERSION,
            r#"no matches for kind "Widget" in version "example.com/v9""#,
        )
        .reads("/apis/example.com/v9", JSON)
        .status(404)
        .then(&widget, "/spec/replicas", json!(2)),
        step(
            "a list, applied by the server",
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            LIST,
            "configmap/listed serverside-applied\nwidget.example.com/listed serverside-applied\n",
        )
        .sends(
            "PATCH",
            &format!("{widget}?fieldManager=kubectl&force=true"),
            APPLY,
            LISTED_WIDGET,
        )
        .then(map, "/data", json!({ "a": "b" }))
        .then(&widget, "/spec/replicas", json!(1)),
        step(
            "deletion of what is in a list",
            &["delete", "-f", "-", "--timeout=20s"],
            LIST,
            r#"widget.example.com "listed" deleted"#,
        )
        .first("DELETE", map, "")
        .sends("DELETE", &widget, JSON, "")
        .then(map, "/reason", json!("NotFound"))
        .then(&widget, "/reason", json!("NotFound")),
    ]
}

fn arguments_and_selectors() -> Vec<Step> {
    let maps = "/api/v1/namespaces/default/configmaps";
    vec![
        // kubectl sends this in protobuf.
        step(
            "a ConfigMap from arguments",
            &["create", "configmap", "settings", "--from-literal=a=b"],
            "",
            "configmap/settings created",
        )
        .sends(
            "POST",
            maps,
            JSON,
            r#"{"metadata":{"name":"settings"},"data":{"a":"b"}}"#,
        )
        .status(201)
        .then(&format!("{maps}/settings"), "/data", json!({ "a": "b" })),
        step(
            "a name that is none",
            &["create", "configmap", "Bad_Name"],
            "",
            "a lowercase RFC 1123 subdomain",
        )
        .sends("POST", maps, JSON, r#"{"metadata":{"name":"Bad_Name"}}"#)
        .status(422)
        .answers("/details/causes/0/field", json!("metadata.name")),
        step(
            "as YAML",
            &["get", "configmap", "settings", "-o", "yaml"],
            "",
            "data:\n  a: b\n",
        )
        .reads(&format!("{maps}/settings"), JSON)
        .answers("/data/a", json!("b")),
        step(
            "a selector that selects nothing",
            &["get", "cm", "-l", "a=b"],
            "",
            "No resources found",
        )
        .reads(&format!("{maps}?labelSelector=a%3Db"), TABLE)
        .answers("/rows", json!([])),
        step(
            "a field that cannot be selected",
            &["get", "cm", "--field-selector=data.a=b"],
            "",
            "is not a known field selector",
        )
        .reads(&format!("{maps}?fieldSelector=data.a%3Db"), TABLE)
        .status(400),
        step("no events", &["events"], "", "No events found")
            .reads("/api/v1/namespaces/default/events", JSON)
            .answers("/items", json!([])),
    ]
}

/// Nobody is asked who they are.
fn questions() -> Vec<Step> {
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let question = r#"{"spec":{"resourceAttributes":{"verb":"create","resource":"pods"}}}"#;
    vec![
        step("may I", &["auth", "can-i", "create", "pods"], "", "yes")
            .sends("POST", access, JSON, question)
            .status(201)
            .answers("/status/allowed", json!(true)),
        step("who am I", &["auth", "whoami"], "", "system:admin")
            .sends("POST", who, JSON, "{}")
            .status(201)
            .answers("/status/userInfo/username", json!("system:admin")),
    ]
}

/// Nothing runs, and the server says so.
fn what_needs_a_node() -> Vec<Step> {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x"}]}}"#;
    let refusal = "pod p does not have a host assigned";
    vec![
        step("a pod", &["run", "p", "--image=x"], "", "pod/p created")
            .sends("POST", pods, JSON, pod)
            .status(201)
            .then(&format!("{pods}/p"), "/status/phase", json!("Pending")),
        step("its row", &["get", "pod", "p"], "", "p 0/1 Pending 0")
            .reads(&format!("{pods}/p"), TABLE)
            .answers("/rows/0/cells/2", json!("Pending")),
        step("its log", &["logs", "p"], "", refusal)
            .reads(&format!("{pods}/p/log"), JSON)
            .status(400)
            .answers("/message", json!(refusal)),
        step("a command in it", &["exec", "p", "--", "ls"], "", refusal)
            .sends("POST", &format!("{pods}/p/exec"), JSON, "")
            .status(400)
            .answers("/message", json!(refusal)),
        step(
            "the log of no pod",
            &["logs", "q"],
            "",
            r#"pods "q" not found"#,
        )
        .reads(&format!("{pods}/q/log"), JSON)
        .status(404),
    ]
}

fn deletion() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    let web = "/apis/apps/v1/namespaces/default/deployments/web";
    vec![
        step(
            "deletion",
            &["delete", "wd", "w", "--timeout=20s"],
            "",
            "deleted",
        )
        .sends("DELETE", &one, JSON, "")
        .answers("/status", json!("Success"))
        .then(&one, "/reason", json!("NotFound")),
        step(
            "deletion by file",
            &["delete", "-f", "-", "--timeout=20s"],
            DEPLOYMENT,
            "deleted",
        )
        .sends("DELETE", web, JSON, "")
        .then(web, "/reason", json!("NotFound")),
    ]
}

/// The whole session; later steps build on earlier ones.
fn session() -> Vec<Step> {
    [
        definitions(),
        discovery(),
        changes(),
        metadata(),
        subresources(),
        refusals(),
        server_side_apply(),
        built_in_objects(),
        lists(),
        lists_that_are_refused(),
        arguments_and_selectors(),
        questions(),
        what_needs_a_node(),
        deletion(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn serve() -> (Listening, Wire) {
    let server = ApiServer::builder().build();
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = server.serve(anywhere).await.unwrap();
    let wire = Wire(listening.address());
    (listening, wire)
}

#[track_caller]
fn check_place(about: &str, document: &Value, place: &str, expected: &Value) {
    let found = document.pointer(place).unwrap_or(&Value::Null);
    assert_eq!(found, expected, "{about}: {place} in {document}");
}

async fn check_facts(step: &Step, wire: Wire) {
    for (path, place, expected) in &step.then {
        let found = wire.get(path).await.json();
        check_place(step.about, &found, place, expected);
    }
}

/// Makes the session with nothing but HTTP.
async fn bare_session() {
    let (_listening, wire) = serve().await;
    for step in session() {
        for (method, path, body) in &step.first {
            let headers = [("content-type", JSON)];
            let answer = wire.request(method, path, &headers, body).await;
            assert!(answer.status < 400, "{}: {}", step.about, answer.text);
        }
        let (method, path, media_type, body) = &step.sends;
        let mut headers = vec![("accept", step.accept), ("user-agent", "session/1")];
        if !body.is_empty() {
            headers.push(("content-type", media_type));
        }
        let answer = wire.request(method, path, &headers, body).await;
        assert_eq!(
            answer.status, step.status,
            "{}: {}",
            step.about, answer.text
        );
        for (place, expected) in &step.answers {
            check_place(step.about, &answer.json(), place, expected);
        }
        check_facts(&step, wire).await;
    }
}

/// kubectl with a configuration and a cache of its own.
struct Kubectl {
    folder: PathBuf,
}

impl Kubectl {
    /// None if it is not installed.
    async fn find(name: &str, listening: &Listening) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A cache of an earlier run would be of another server.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config"), listening.kubeconfig()).unwrap();
        let kubectl = Self { folder };
        match kubectl.command(&["version", "--client"]).output().await {
            Ok(_) => Some(kubectl),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                None
            }
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        child.wait_with_output().await.unwrap()
    }
}

/// Runs of spaces are how kubectl aligns columns.
fn unaligned(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{indent}{}\n", words.join(" "))
    });
    lines.collect()
}

#[tokio::test]
async fn a_session() {
    bare_session().await;
    let (listening, wire) = serve().await;
    let Some(kubectl) = Kubectl::find("session", &listening).await else {
        println!("kubectl is not installed: the session was made of bare requests alone");
        return;
    };
    for step in session() {
        let output = kubectl.run(step.kubectl, step.input).await;
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8(said).unwrap();
        let command = step.kubectl.join(" ");
        assert_eq!(
            output.status.success(),
            step.status < 400 && !step.fails,
            "{}: kubectl {command} said {said}",
            step.about
        );
        assert!(
            unaligned(&said).contains(unaligned(step.says).trim_end_matches('\n')),
            "{}: kubectl {command} did not say {:?} but {said}",
            step.about,
            step.says
        );
        check_facts(&step, wire).await;
    }
}

/// What a watch shows of a `ConfigMap` that is created, changed and deleted.
async fn change_and_delete(wire: Wire) {
    let maps = "/api/v1/namespaces/default/configmaps";
    let json = [("content-type", JSON)];
    let merge = [("content-type", MERGE)];
    let body = r#"{"metadata":{"name":"w"},"data":{"a":"1"}}"#;
    assert_eq!(wire.request("POST", maps, &json, body).await.status, 201);
    let one = format!("{maps}/w");
    let patch = r#"{"data":{"b":"2"}}"#;
    assert_eq!(wire.request("PATCH", &one, &merge, patch).await.status, 200);
    assert_eq!(wire.request("DELETE", &one, &[], "").await.status, 200);
}

/// Follows a watch for tables with nothing but HTTP.
async fn bare_watch(wire: Wire) {
    let path = "/api/v1/namespaces/default/configmaps?watch=1";
    let mut events = wire.watch(path, TABLE).await;
    change_and_delete(wire).await;
    for (kind, size, has_columns) in [
        ("ADDED", 1, true),
        ("MODIFIED", 2, false),
        ("DELETED", 2, false),
    ] {
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], kind);
        let cells = &event["object"]["rows"][0]["cells"];
        assert_eq!((&cells[0], &cells[1]), (&json!("w"), &json!(size)));
        assert_eq!(event["object"]["columnDefinitions"].is_array(), has_columns);
    }
}

#[tokio::test]
async fn a_watch() {
    let (listening, wire) = serve().await;
    bare_watch(wire).await;
    let Some(kubectl) = Kubectl::find("watch", &listening).await else {
        println!("kubectl is not installed: the watch was followed by bare requests alone");
        return;
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let body = r#"{"metadata":{"name":"first"}}"#;
    let created = wire
        .request("POST", maps, &[("content-type", JSON)], body)
        .await;
    assert_eq!(created.status, 201);
    let arguments = ["get", "cm", "--watch", "--output-watch-events"];
    let mut child = kubectl.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || unaligned(&lines.next_line().await.unwrap().unwrap());
    assert_eq!(next().await, "EVENT NAME DATA AGE\n");
    // What kubectl has listed it shows first; its watch goes on from there.
    assert!(next().await.starts_with("ADDED first 0 "));
    change_and_delete(wire).await;
    for expected in ["ADDED w 1 ", "MODIFIED w 2 ", "DELETED w 2 "] {
        let line = next().await;
        assert!(line.starts_with(expected), "{line}");
    }
}

const WORKLOADS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: \"app:1\"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: \"db:1\"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: \"agent:1\"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: good}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"task:1\"}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: bad, annotations: {homeostat.dev/pod: fail}}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"task:1\"}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: '@daily'
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"task:1\"}]}}}
";

/// What kubectl says of workloads: the arguments, whether it succeeds, and a part of what it says.
const TOLD: [(&str, bool, &str); 31] = [
    ("get nodes", true, "node-1 Ready"),
    (
        "rollout status deployment/web --timeout=20s",
        true,
        "deployment \"web\" successfully rolled out",
    ),
    (
        "rollout status statefulset/db --timeout=20s",
        true,
        "partitioned roll out complete: 2 new pods have been updated",
    ),
    (
        "rollout status daemonset/agent --timeout=20s",
        true,
        "daemon set \"agent\" successfully rolled out",
    ),
    (
        "wait --for=condition=Available deployment/web --timeout=20s",
        true,
        "condition met",
    ),
    (
        "wait --for=condition=Ready pod -l app=db --timeout=20s",
        true,
        "pod/db-1 condition met",
    ),
    (
        "wait --for=condition=Complete job/good --timeout=20s",
        true,
        "condition met",
    ),
    (
        "wait --for=condition=Failed job/bad --timeout=20s",
        true,
        "condition met",
    ),
    ("get deployment web", true, "web 3/3 3 3"),
    ("get statefulset db", true, "db 2/2"),
    ("get daemonset agent", true, "agent 1 1 1 1 1"),
    ("get job good", true, "good Complete 1/1"),
    ("get job bad", true, "bad Failed 0/1"),
    ("get pvc", true, "data-db-1 Bound pvc-"),
    ("get pods -l app=web", true, "1/1 Running 0"),
    ("get pods -l job-name=good", true, "0/1 Completed 0"),
    ("get pods -l job-name=bad", true, "0/1 Error 0"),
    (
        "create job --from=cronjob/nightly by-hand",
        true,
        "job.batch/by-hand created",
    ),
    (
        "wait --for=condition=Complete job/by-hand --timeout=20s",
        true,
        "condition met",
    ),
    ("set image deployment/web c=app:2", true, "image updated"),
    (
        "rollout status deployment/web --timeout=20s",
        true,
        "successfully rolled out",
    ),
    ("rollout history deployment/web", true, "2 <none>"),
    ("rollout undo deployment/web", true, "rolled back"),
    (
        "rollout status deployment/web --timeout=20s",
        true,
        "successfully rolled out",
    ),
    (
        "get deployment web -o jsonpath={..containers[0].image}",
        true,
        "app:1",
    ),
    ("scale statefulset db --replicas=3", true, "scaled"),
    (
        "rollout status statefulset/db --timeout=20s",
        true,
        "3 new pods have been updated",
    ),
    ("rollout restart daemonset/agent", true, "restarted"),
    (
        "rollout status daemonset/agent --timeout=20s",
        true,
        "successfully rolled out",
    ),
    (
        "delete deployment web --cascade=foreground --timeout=20s",
        true,
        "deleted",
    ),
    ("wait --for=delete pod -l app=web --timeout=20s", true, ""),
];

/// Workloads end where kubectl waits for them, and it tells the truth of those that do not.
#[tokio::test]
async fn workloads() {
    let server = ApiServer::builder().workloads(true).build();
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = server.serve(anywhere).await.unwrap();
    let Some(kubectl) = Kubectl::find("workloads", &listening).await else {
        println!("kubectl is not installed: what it says of workloads was not looked at");
        return;
    };
    let run = async |arguments: &str, input: &str, succeeds: bool, says: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = kubectl.run(&arguments, input).await;
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = unaligned(&String::from_utf8(said).unwrap());
        assert_eq!(
            output.status.success(),
            succeeds,
            "{arguments:?} said {said}"
        );
        assert!(
            said.contains(says),
            "{arguments:?} did not say {says:?} but {said}"
        );
    };
    run(
        "apply -f -",
        WORKLOADS,
        true,
        "cronjob.batch/nightly created",
    )
    .await;
    for (arguments, succeeds, says) in TOLD {
        run(arguments, "", succeeds, says).await;
    }

    let rule = || PodRule::any().image("db:2");
    for (fate, shown) in [
        (Fate::NeverReady, "0/1 Running 0"),
        (Fate::ImagePullError, "0/1 ErrImagePull 0"),
        (Fate::CrashLoop, "0/1 CrashLoopBackOff 1"),
    ] {
        let broken = server.workloads().inject(rule(), fate);
        run("set image statefulset/db c=db:2", "", true, "").await;
        run(
            "rollout status statefulset/db --timeout=2s",
            "",
            false,
            "Waiting for",
        )
        .await;
        run("get pods -l app=db", "", true, shown).await;
        drop(broken);
        run(
            "rollout status statefulset/db --timeout=20s",
            "",
            true,
            "complete",
        )
        .await;
        run("set image statefulset/db c=db:1", "", true, "").await;
        run(
            "rollout status statefulset/db --timeout=20s",
            "",
            true,
            "complete",
        )
        .await;
    }
}
