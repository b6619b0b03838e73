//! The requests of a manager and of what it runs, as they are counted.

use http::{Method, Request, Uri, header};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::futures::TaskLocalFuture, time::Instant};

tokio::task_local! {
    /// Whose requests this task sends.
    static TRAFFIC: Arc<Traffic>;
}

/// Upper bounds of the durations of requests that are counted together, in milliseconds.
pub(crate) const BOUNDS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 15_000];

/// How many kinds of requests are told apart, by verb and resource, and how many of them by code. A manager has some
/// dozens.
const KINDS: usize = 48;
const CODES: usize = 150;

/// What stands for all that is told apart no more.
const OTHER: &str = "other";

/// The requests that a manager and what it runs have sent through tracked clients.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// How many there were and how long they took, by verb and resource.
    kinds: BTreeMap<(&'static str, Arc<str>), Kind>,
    /// How many codes there are in all kinds.
    codes: usize,
    /// How many of each verb took how long.
    durations: BTreeMap<&'static str, [u64; BOUNDS.len() + 1]>,
}

#[derive(Debug, Default, Clone)]
struct Kind {
    time: Duration,
    /// Zero stands for those that were not answered, and [`MANY`] for all that are told apart no more.
    codes: BTreeMap<u16, u64>,
}

/// The code of what is told apart no more.
const MANY: u16 = u16::MAX;

/// A request that is under way. It is counted when this is dropped.
pub(super) struct Counting {
    traffic: Arc<Traffic>,
    verb: &'static str,
    resource: String,
    begun: Instant,
    code: u16,
}

/// What was counted.
#[cfg(feature = "metrics")]
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Verb, resource, code and number.
    pub(crate) requests: Vec<(&'static str, Arc<str>, String, u64)>,
    /// Verb, resource and time.
    pub(crate) times: Vec<(&'static str, Arc<str>, Duration)>,
    /// For each verb the time of all, and how many took as long as each of [`BOUNDS`], and longer.
    pub(crate) durations: Vec<(&'static str, Duration, [u64; BOUNDS.len() + 1])>,
}

/// Drives `future`, and counts the requests that it sends.
pub(crate) fn counted<F: Future>(
    traffic: Arc<Traffic>,
    future: F,
) -> TaskLocalFuture<Arc<Traffic>, F> {
    TRAFFIC.scope(traffic, future)
}

// === impl Traffic ===

impl Traffic {
    /// Where requests of this task are counted, if they are.
    pub(crate) fn current() -> Option<Arc<Self>> {
        TRAFFIC.try_with(Arc::clone).ok()
    }

    /// Begins to count a request.
    pub(super) fn begin<B>(self: Arc<Self>, request: &Request<B>) -> Counting {
        let (verb, resource) = (verb(request), resource(request.uri()));
        Counting {
            traffic: self,
            verb,
            resource,
            begun: Instant::now(),
            code: 0,
        }
    }

    fn count(&self, verb: &'static str, resource: &str, code: u16, time: Duration) {
        let mut counted = self.lock();
        let Counted {
            kinds,
            codes,
            durations,
        } = &mut *counted;
        let mut key: (_, Arc<str>) = (verb, resource.into());
        if kinds.len() >= KINDS && !kinds.contains_key(&key) {
            key.1 = OTHER.into();
        }
        let kind = kinds.entry(key).or_default();
        kind.time += time;
        let code = if kind.codes.contains_key(&code) {
            code
        } else if *codes < CODES {
            *codes += 1;
            code
        } else {
            MANY
        };
        *kind.codes.entry(code).or_default() += 1;
        let millis = time.as_nanos().div_ceil(1_000_000);
        let place = BOUNDS.iter().position(|&bound| millis <= bound.into());
        let counts = durations.entry(verb).or_default();
        counts[place.unwrap_or(BOUNDS.len())] += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "metrics")]
impl Traffic {
    /// What was counted until now.
    pub(crate) fn sums(&self) -> Sums {
        let counted = self.lock();
        let mut sums = Sums::default();
        let mut times: BTreeMap<&'static str, Duration> = BTreeMap::new();
        for ((verb, resource), Kind { time, codes }) in &counted.kinds {
            sums.times.push((verb, Arc::clone(resource), *time));
            *times.entry(verb).or_default() += *time;
            for (&code, &count) in codes {
                let code = match code {
                    0 => "none".to_owned(),
                    MANY => OTHER.to_owned(),
                    code => code.to_string(),
                };
                sums.requests
                    .push((verb, Arc::clone(resource), code, count));
            }
        }
        for (verb, counts) in &counted.durations {
            let time = times.get(verb).copied().unwrap_or_default();
            sums.durations.push((verb, time, *counts));
        }
        sums
    }
}

// === impl Counting ===

impl Counting {
    /// The answer has begun.
    pub(super) fn answered(mut self, code: Option<u16>) {
        self.code = code.unwrap_or_default();
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let time = self.begun.elapsed();
        self.traffic
            .count(self.verb, &self.resource, self.code, time);
    }
}

/// What was asked for, in the words of Kubernetes; with `apply`, which there is a `patch`.
fn verb<B>(request: &Request<B>) -> &'static str {
    let uri = request.uri();
    let of_collection = || parts(uri).is_some_and(|parts| parts.is_collection);
    match *request.method() {
        Method::GET | Method::HEAD if is_watch(uri) => "watch",
        Method::GET | Method::HEAD if of_collection() => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH if is_apply(request) => "apply",
        Method::PATCH => "patch",
        Method::DELETE if of_collection() => "deletecollection",
        Method::DELETE => "delete",
        _ => "get",
    }
}

fn is_apply<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/apply-"))
}

fn is_watch(uri: &Uri) -> bool {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    pairs.any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// What a path is about.
struct Parts<'a> {
    group: &'a str,
    resource: &'a str,
    subresource: Option<&'a str>,
    is_collection: bool,
}

/// What a path is about, as `deployments.apps/status`. No part of it is the name of an object.
fn resource(uri: &Uri) -> String {
    let Some(parts) = parts(uri) else {
        return OTHER.into();
    };
    let Parts {
        group,
        resource,
        subresource,
        is_collection: _,
    } = parts;
    let mut text = resource.to_owned();
    for (mark, part) in [('.', group), ('/', subresource.unwrap_or_default())] {
        if !part.is_empty() {
            text.push(mark);
            text += part;
        }
    }
    text
}

fn parts(uri: &Uri) -> Option<Parts<'_>> {
    let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
    // A server behind a proxy may have a path of its own in front of this.
    let root = segments.find(|segment| matches!(*segment, "api" | "apis"))?;
    let group = if root == "apis" { segments.next()? } else { "" };
    let _version = segments.next()?;
    let mut resource = segments.next()?;
    let (mut name, mut subresource) = (segments.next(), segments.next());
    // `namespaces/a/finalize` is a part of a namespace, `namespaces/a/pods` are pods in it.
    if resource == "namespaces"
        && let Some(inner) = subresource.filter(|part| !matches!(*part, "status" | "finalize"))
    {
        resource = inner;
        (name, subresource) = (segments.next(), segments.next());
    }
    Some(Parts {
        group,
        resource,
        subresource,
        is_collection: name.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::{CODES, KINDS, Traffic, resource, verb};
    use http::Request;
    use std::time::Duration;

    #[test]
    fn requests_are_told_apart_by_verb_and_resource() {
        for (method, path, expected) in [
            ("GET", "/api/v1/namespaces/a/pods/b", "get pods"),
            ("GET", "/api/v1/pods?limit=500", "list pods"),
            ("GET", "/api/v1/pods?watch=true&limit=5", "watch pods"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "get pods/log"),
            ("GET", "/apis/apps/v1/deployments", "list deployments.apps"),
            ("POST", "/api/v1/namespaces/a/pods", "create pods"),
            (
                "PUT",
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "update deployments.apps/scale",
            ),
            ("PATCH", "/k8s/api/v1/nodes/a/status", "patch nodes/status"),
            ("DELETE", "/api/v1/namespaces/a", "delete namespaces"),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "update namespaces/finalize",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "deletecollection pods",
            ),
            ("GET", "/version", "get other"),
            ("GET", "/apis/apps/v1", "get other"),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .body(())
                .unwrap();
            let found = format!("{} {}", verb(&request), resource(request.uri()));
            assert_eq!(found, expected, "{method} {path}");
        }
        let request = Request::patch("/api/v1/nodes/a")
            .header("content-type", "application/apply-patch+yaml");
        assert_eq!(verb(&request.body(()).unwrap()), "apply");
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let traffic = Traffic::default();
        for number in 0..1000_u16 {
            traffic.count(
                "get",
                &format!("things-{number}"),
                200,
                Duration::from_millis(5),
            );
            traffic.count("list", "things-1", number, Duration::from_secs(100));
        }
        let counted = traffic.lock();
        assert!(counted.kinds.len() <= KINDS + 2, "{}", counted.kinds.len());
        let series: usize = counted.kinds.values().map(|kind| kind.codes.len()).sum();
        assert!(series <= CODES + KINDS + 2, "{series}");
        let all: u64 = counted
            .kinds
            .values()
            .flat_map(|kind| kind.codes.values())
            .sum();
        assert_eq!(all, 2000, "nothing is left out");
        assert_eq!(counted.durations["get"][0], 1000);
        assert_eq!(counted.durations["list"].last(), Some(&1000));
    }
}
