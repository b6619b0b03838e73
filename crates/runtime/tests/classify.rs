//! How errors are answered, and what a controller does then.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::StreamExt;
use homeostat::{
    Action, Backoff, Classify, Config, Controller, ErrorClass, error_policy,
    finalizer::{self, Event, finalizer},
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::{
        Status,
        response::{StatusCause, StatusDetails},
    },
};
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

fn permanent(reason: &str) -> ErrorClass {
    ErrorClass::Permanent {
        reason: reason.to_owned().into(),
    }
}

// === The derive macro ===

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    #[error("missing spec field: {0}")]
    #[classify(permanent, reason = "InvalidSpec")]
    MissingField(String),
    #[error("external service: {0}")]
    #[classify(transient)]
    External(String),
    #[error("somebody else was faster")]
    #[classify(conflict)]
    Lost,
    #[error("{0}")]
    Finalizer(#[source] Box<finalizer::Error<Self>>),
    #[error(transparent)]
    Nested(Nested<Self>),
    #[error("{reason}")]
    Named {
        reason: &'static str,
        source: Nested<Wrapped>,
    },
    /// The attribute counts, not the error that it comes from.
    #[error("{0}")]
    #[classify(permanent, reason = "NoCluster")]
    Fatal(#[source] kube::Error),
}

/// The error that a type parameter stands for.
#[derive(Debug, thiserror::Error, Classify)]
#[error("nested")]
struct Nested<E: std::error::Error + 'static>(#[source] Box<E>);

#[derive(Debug, thiserror::Error, Classify)]
#[error("wrapped")]
#[classify(conflict)]
struct Wrapped;

#[derive(Debug, thiserror::Error, Classify)]
enum Never {}

#[test]
fn what_is_derived() {
    let conflict = || api(409, "Conflict");
    for (error, class) in [
        (Error::from(conflict()), ErrorClass::Conflict),
        (Error::MissingField("host".into()), permanent("InvalidSpec")),
        (Error::External("slow".into()), ErrorClass::Transient),
        (Error::Lost, ErrorClass::Conflict),
        (
            Error::Finalizer(Box::new(finalizer::Error::ApplyFailed(Error::Lost))),
            ErrorClass::Conflict,
        ),
        (
            Error::Nested(Nested(Box::new(Error::MissingField("port".into())))),
            permanent("InvalidSpec"),
        ),
        (
            Error::Named {
                reason: "x",
                source: Nested(Box::new(Wrapped)),
            },
            ErrorClass::Conflict,
        ),
        (Error::Fatal(conflict()), permanent("NoCluster")),
    ] {
        assert_eq!(error.classify(), class, "{error:?}");
        assert_eq!(Arc::new(&error).classify(), class, "{error:?}");
    }
}

/// Types without values are classified as well, so that they can be parts of others.
#[test]
fn what_never_happens() {
    fn is_classified<E: Classify>() {}
    is_classified::<Never>();
    is_classified::<Infallible>();
    is_classified::<Box<dyn Classify>>();
}

#[test]
fn errors_of_a_finalizer() {
    for (error, class) in [
        (
            finalizer::Error::ApplyFailed(Error::Lost),
            ErrorClass::Conflict,
        ),
        (
            finalizer::Error::CleanupFailed(Error::External("x".into())),
            ErrorClass::Transient,
        ),
        (
            finalizer::Error::AddFinalizer(api(409, "Conflict")),
            ErrorClass::Conflict,
        ),
        (
            finalizer::Error::RemoveFinalizer(api(503, "")),
            ErrorClass::Transient,
        ),
        (finalizer::Error::UnnamedObject, permanent("UnnamedObject")),
        (
            finalizer::Error::InvalidFinalizer,
            permanent("InvalidFinalizer"),
        ),
    ] {
        assert_eq!(error.classify(), class, "{error}");
    }
}

// === kube's errors ===

fn api(code: u16, reason: &str) -> kube::Error {
    kube::Error::Api(Status::failure("message", reason).with_code(code).boxed())
}

/// The same with a cause, and with seconds after which to come back.
fn detailed(code: u16, reason: &str, cause: &str, seconds: u32) -> kube::Error {
    let causes = match cause {
        "" => Vec::new(),
        reason => vec![StatusCause {
            reason: reason.into(),
            message: String::new(),
            field: String::new(),
        }],
    };
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes,
        retry_after_seconds: seconds,
    };
    let status = Status::failure("message", reason).with_code(code);
    kube::Error::Api(status.with_details(details).boxed())
}

/// Each row of the table in the documentation of the implementation; C14, D7, E2, A3.
#[test]
fn answers_of_the_api() {
    let throttled = |seconds: u64| ErrorClass::Throttled {
        retry_after: Some(Duration::from_secs(seconds)).filter(|time| !time.is_zero()),
    };
    for (error, class) in [
        (api(429, "TooManyRequests"), throttled(0)),
        (detailed(429, "TooManyRequests", "", 7), throttled(7)),
        (
            detailed(429, "TooManyRequests", "DisruptionBudget", 0),
            throttled(0),
        ),
        // What stands in between, as API Priority and Fairness, answers with a text.
        (api(429, "Failed to parse error data"), throttled(0)),
        (
            detailed(504, "Timeout", "ResourceVersionTooLarge", 1),
            throttled(1),
        ),
        (detailed(500, "ServerTimeout", "", 2), throttled(2)),
        (api(409, "Conflict"), ErrorClass::Conflict),
        (api(409, ""), ErrorClass::Conflict),
        (
            detailed(409, "Conflict", "FieldManagerConflict", 0),
            ErrorClass::Transient,
        ),
        (api(409, "AlreadyExists"), ErrorClass::Transient),
        (api(401, "Unauthorized"), ErrorClass::Transient),
        (api(403, "Forbidden"), ErrorClass::Transient),
        (
            detailed(403, "Forbidden", "NamespaceTerminating", 0),
            permanent("NamespaceTerminating"),
        ),
        (api(404, "NotFound"), ErrorClass::Transient),
        (api(410, "Expired"), ErrorClass::Transient),
        (
            detailed(422, "Invalid", "FieldValueInvalid", 0),
            permanent("Invalid"),
        ),
        (detailed(422, "Invalid", "", 0), ErrorClass::Transient),
        (api(422, "Invalid"), ErrorClass::Transient),
        (api(400, "BadRequest"), permanent("BadRequest")),
        (
            api(400, "Failed to parse error data"),
            ErrorClass::Transient,
        ),
        (api(405, "MethodNotAllowed"), permanent("MethodNotAllowed")),
        (api(406, "NotAcceptable"), permanent("NotAcceptable")),
        (
            api(413, "RequestEntityTooLarge"),
            permanent("RequestEntityTooLarge"),
        ),
        (
            api(415, "UnsupportedMediaType"),
            permanent("UnsupportedMediaType"),
        ),
        (api(500, "InternalError"), ErrorClass::Transient),
        (api(500, ""), ErrorClass::Transient),
        (api(503, "ServiceUnavailable"), ErrorClass::Transient),
        (api(504, "Timeout"), ErrorClass::Transient),
        (api(418, "Teapot"), ErrorClass::Transient),
        (api(0, ""), ErrorClass::Transient),
    ] {
        assert_eq!(error.classify(), class, "{error:?}");
    }
}

#[test]
fn errors_of_the_client() {
    let decoding = serde_json::from_str::<ConfigMap>("[]").unwrap_err();
    let uri = || "http://proxy".parse().map(Box::new).unwrap();
    let unnamed = kube::core::Request::new("/api").get("", &kube::api::GetParams::default());
    for (error, class) in [
        (
            kube::Error::Service("refused".into()),
            ErrorClass::Transient,
        ),
        (
            kube::Error::ReadEvents(std::io::Error::other("cut off")),
            ErrorClass::Transient,
        ),
        (kube::Error::SerdeError(decoding), ErrorClass::Transient),
        (
            kube::Error::LinesCodecMaxLineLengthExceeded,
            ErrorClass::Transient,
        ),
        (
            kube::Error::Discovery(kube::error::DiscoveryError::MissingKind("x".into())),
            ErrorClass::Transient,
        ),
        (
            kube::Error::BuildRequest(unnamed.unwrap_err()),
            permanent("InvalidRequest"),
        ),
        (kube::Error::TlsRequired, permanent("ClientMisconfigured")),
        (
            kube::Error::ProxyProtocolUnsupported { proxy_url: uri() },
            permanent("ClientMisconfigured"),
        ),
        (
            kube::Error::ProxyProtocolDisabled {
                proxy_url: uri(),
                protocol_feature: "socks5",
            },
            permanent("ClientMisconfigured"),
        ),
    ] {
        assert_eq!(error.classify(), class, "{error:?}");
    }
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// What the server says, not what was written down of it.
#[tokio::test(start_paused = true)]
async fn answers_of_a_server() {
    let server = ApiServer::builder().namespace_deletion(false).build();
    let client = server.client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let params = PostParams::default();
    let created = maps.create(&params, &config_map("a")).await.unwrap();

    let exists = maps.create(&params, &config_map("a")).await.unwrap_err();
    assert_eq!(exists.classify(), ErrorClass::Transient);
    let label = Patch::Merge(json!({ "metadata": { "labels": { "x": "y" } } }));
    maps.patch("a", &PatchParams::default(), &label)
        .await
        .unwrap();
    let stale = maps.replace("a", &params, &created).await.unwrap_err();
    assert_eq!(stale.classify(), ErrorClass::Conflict);
    let invalid = Patch::Merge(json!({ "metadata": { "labels": { "x": "no label" } } }));
    let invalid = maps.patch("a", &PatchParams::default(), &invalid).await;
    assert_eq!(invalid.unwrap_err().classify(), permanent("Invalid"));
    let missing = maps.get("absent").await.unwrap_err();
    assert_eq!(missing.classify(), ErrorClass::Transient);

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("going".into());
    namespaces.create(&params, &namespace).await.unwrap();
    namespaces
        .delete("going", &DeleteParams::default())
        .await
        .unwrap();
    let going: Api<ConfigMap> = Api::namespaced(client, "going");
    let terminating = going.create(&params, &config_map("a")).await.unwrap_err();
    assert_eq!(terminating.classify(), permanent("NamespaceTerminating"));

    let busy = Fault::TooManyRequests { retry_after: 9 };
    let _busy = server.faults().inject(Rule::any().times(1), busy);
    let busy = maps.get("a").await.unwrap_err();
    assert!(matches!(busy.classify(), ErrorClass::Throttled { .. }));
}

// === Policies ===

#[test]
fn what_follows_from_a_class() {
    struct Of(ErrorClass);
    impl Classify for Of {
        fn classify(&self) -> ErrorClass {
            self.0.clone()
        }
    }
    let throttled = |seconds| ErrorClass::Throttled {
        retry_after: Some(Duration::from_secs(seconds)),
    };
    let at_least = |seconds| Action::backoff().at_least(Duration::from_secs(seconds));
    for (class, action) in [
        (ErrorClass::Transient, Action::backoff()),
        (
            ErrorClass::Throttled { retry_after: None },
            Action::backoff(),
        ),
        (throttled(30), at_least(30)),
        // Nobody believes that.
        (throttled(1_000_000), at_least(3600)),
        (ErrorClass::Conflict, Action::soon()),
        (permanent("X"), Action::await_change()),
    ] {
        let object = Arc::new(ConfigMap::default());
        let answer = error_policy::classified(object, &Of(class.clone()), Arc::new(()));
        assert_eq!(answer, action, "{class:?}");
    }
}

/// When runs started, in milliseconds since the test began, and what each ends with.
struct Journal {
    start: Instant,
    runs: Mutex<Vec<u64>>,
    endings: Vec<fn() -> Result<Action, Error>>,
}

/// Runs a controller for one object; its runs end as told, and from then on well.
async fn runs_within(time: Duration, endings: Vec<fn() -> Result<Action, Error>>) -> Vec<u64> {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    let journal = Arc::new(Journal {
        start: Instant::now(),
        runs: Mutex::default(),
        endings,
    });
    let reconcile = |_: Arc<ConfigMap>, journal: Arc<Journal>| async move {
        let mut runs = journal.runs.lock().unwrap();
        runs.push(u64::try_from(journal.start.elapsed().as_millis()).unwrap());
        let ending = journal.endings.get(runs.len() - 1);
        ending.map_or(Ok(Action::await_change()), |ending| ending())
    };
    let config = Config::default().backoff(Backoff::default().jitter(0.0));
    let controller = Controller::new(maps, watcher::Config::default())
        .with_config(config)
        .run(reconcile, error_policy::classified, Arc::clone(&journal))
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);
    sleep(time).await;
    controller.abort();
    let runs = journal.runs.lock().unwrap();
    let first = runs[0];
    runs.iter().map(|at| at - first).collect()
}

fn busy() -> Result<Action, Error> {
    Err(detailed(429, "TooManyRequests", "", 30).into())
}

fn lost() -> Result<Action, Error> {
    Err(Error::Lost)
}

fn failed() -> Result<Action, Error> {
    Err(Error::External("down".into()))
}

fn invalid() -> Result<Action, Error> {
    Err(Error::MissingField("host".into()))
}

/// Retry-After is a floor: the delays go on where they stood.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_left_alone() {
    let runs = runs_within(300 * SECOND, vec![failed, busy, failed]).await;
    assert_eq!(runs, [0, 1_000, 31_000, 35_000]);
}

/// G69: conflicts are tried again within half a second each, and the delays of failures go on as if
/// there had been none.
#[tokio::test(start_paused = true)]
async fn conflicts_are_no_failures() {
    let runs = runs_within(300 * SECOND, vec![failed, lost, lost, lost, failed]).await;
    let pauses: Vec<u64> = runs.windows(2).map(|two| two[1] - two[0]).collect();
    let [first, moments @ .., last] = &*pauses else {
        panic!("there were more runs than {runs:?}")
    };
    assert_eq!((*first, *last, moments.len()), (1_000, 2_000, 3));
    for moment in moments {
        assert!((125..=501).contains(moment), "{pauses:?}");
    }
}

/// A3: a permanent error ends the row of failures, and is not tried again.
#[tokio::test(start_paused = true)]
async fn a_permanent_error_waits() {
    let runs = runs_within(3600 * SECOND, vec![failed, failed, invalid]).await;
    assert_eq!(runs, [0, 1_000, 3_000]);
}

/// A finalizer's errors are answered like those of the reconciler: here 503 for the finalizer.
#[tokio::test(start_paused = true)]
async fn a_finalizer_in_between() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    let rule = Rule::any().verb(Verb::Patch).times(2);
    let fault = server.faults().inject(rule, Fault::Unavailable);
    let reconcile = |map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>| async move {
        let run = finalizer(&maps, "example.com/x", map, |event| async move {
            match event {
                Event::Apply(_) | Event::Cleanup(_) => Ok::<_, Error>(Action::await_change()),
            }
        });
        run.await.map_err(|error| Error::Finalizer(Box::new(error)))
    };
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .run(reconcile, error_policy::classified, Arc::new(maps.clone()))
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);
    sleep(10 * SECOND).await;
    controller.abort();
    assert_eq!(fault.hits(), 2);
    assert_eq!(maps.get("a").await.unwrap().finalizers(), ["example.com/x"]);
}
