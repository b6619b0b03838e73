//! The name by which a program is known.

use http::{HeaderValue, Method, Request, Uri, header};
use std::{
    fmt::{self, Display},
    sync::{Arc, OnceLock},
};

/// The longest name of a field manager, in bytes.
const LONGEST_MANAGER: usize = 128;
/// The longest name of a reporter of events, in bytes.
const LONGEST_REPORTER: usize = 63;
/// Parts of an object that are connections, and take no field manager.
const CONNECTIONS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// The name by which a program is known to a cluster: as field manager, user agent and reporter of events.
///
/// Give it once, to the client ([`Tracked::named`](crate::client::Tracked::named)) or to the controller
/// ([`Controller::named`](crate::Controller::named)). Without it a program is known by the name of its
/// executable.
///
/// - It is the field manager of every write that names none: those of this crate, and those that a
///   reconciler sends through a [tracked client](crate::client).
/// - It is the user agent of a tracked client that has none.
/// - It is the [reporter](crate::events::Reporter) of events by default.
/// - The [holder](crate::leadership) of a lease has a name that begins with it.
///
/// ```
/// use homeostat::{client::Tracked, Identity};
///
/// # async fn connect() -> kube::Result<()> {
/// let client = Tracked::named("site-operator").try_default().await?;
/// # let _ = client;
/// # Ok(())
/// # }
/// assert_eq!(Identity::new("site-operator").to_string(), "site-operator");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    name: Arc<str>,
}

/// Marks a request whose field manager was put in because nobody named one.
#[derive(Clone, Copy, Debug)]
struct ByDefault;

/// The first name that was given to a client of this process.
static GIVEN: OnceLock<Identity> = OnceLock::new();
/// The name of the executable.
static PROGRAM: OnceLock<Identity> = OnceLock::new();

// === impl Identity ===

impl Identity {
    /// A program of this name. Letters that cannot be part of one become `-`, and after 128 bytes it is cut
    /// off. An empty name is that of the executable.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let fits = |c: char| c.is_ascii_graphic();
        let name: String = name
            .chars()
            .map(|c| if fits(c) { c } else { '-' })
            .take(LONGEST_MANAGER)
            .collect();
        if name.is_empty() {
            return Self::of_program();
        }
        Self { name: name.into() }
    }

    /// The first name that was given to a client, or that of the executable.
    pub(crate) fn of_process() -> Self {
        GIVEN.get().cloned().unwrap_or_else(Self::of_program)
    }

    fn of_program() -> Self {
        let program = PROGRAM.get_or_init(|| {
            let path = std::env::current_exe().ok();
            let stem = path
                .as_deref()
                .and_then(|path| path.file_stem())
                .and_then(|stem| stem.to_str());
            match stem {
                Some(stem) if !stem.is_empty() => Self::new(stem),
                Some(_) | None => Self {
                    name: "homeostat".into(),
                },
            }
        });
        program.clone()
    }

    /// Remembers that a client has got this name.
    pub(crate) fn give(&self) {
        // The first one counts.
        let _later = GIVEN.set(self.clone());
    }

    /// The name itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as reporters of events have it.
    pub(crate) fn reporter(&self) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // The part of a domain may only stand once.
        let mut slashes = 0;
        let fitted = self.name.chars().map(|c| match c {
            '/' if slashes == 0 => {
                slashes += 1;
                c
            }
            c if fits(c) => c,
            _ => '-',
        });
        let name: String = fitted.take(LONGEST_REPORTER).collect();
        let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if name.is_empty() { "homeostat" } else { name }.to_owned()
    }

    /// The user agent. Servers take what stands before the first `/` for the name.
    pub(crate) fn user_agent(&self) -> Option<HeaderValue> {
        let text = format!("{}/homeostat-{}", self.name, env!("CARGO_PKG_VERSION"));
        HeaderValue::from_str(&text).ok()
    }

    /// Names this program in a write of this crate that names none. A client that was given a name knows better.
    pub(crate) fn sign_by_default<B>(&self, request: &mut Request<B>) {
        let before = request.uri().clone();
        self.sign(request);
        if *request.uri() != before {
            request.extensions_mut().insert(ByDefault);
        }
    }

    /// Names this program in a write that names none, or none but by default.
    pub(crate) fn sign<B>(&self, request: &mut Request<B>) {
        if !matches!(
            *request.method(),
            Method::POST | Method::PUT | Method::PATCH
        ) {
            return;
        }
        let replacing = request.extensions_mut().remove::<ByDefault>().is_some();
        if let Some(uri) = self.signed(request.uri(), replacing) {
            *request.uri_mut() = uri;
        }
    }

    fn signed(&self, uri: &Uri, replacing: bool) -> Option<Uri> {
        const NAME: &str = "fieldManager=";
        let text = uri.path_and_query()?.as_str();
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let mut segments = path.split('/');
        let is_api = segments.any(|segment| matches!(segment, "api" | "apis"));
        if !is_api
            || segments
                .next_back()
                .is_some_and(|last| CONNECTIONS.contains(&last))
        {
            return None;
        }
        let is_named = |pair: &&str| pair.starts_with(NAME) && pair.len() > NAME.len();
        let mut pairs = query.split('&').filter(|pair| !pair.is_empty());
        if !replacing && pairs.clone().any(|pair| is_named(&pair)) {
            return None;
        }
        let name: String = form_urlencoded::byte_serialize(self.name.as_bytes()).collect();
        let mut signed = format!("{path}?");
        for pair in pairs.by_ref().filter(|pair| !pair.starts_with(NAME)) {
            signed.push_str(pair);
            signed.push('&');
        }
        signed.push_str(NAME);
        signed.push_str(&name);
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(signed.parse().ok()?);
        Uri::from_parts(parts).ok()
    }
}

impl Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Gives a request this user agent if it has none.
pub(crate) fn introduce<B>(request: &mut Request<B>, user_agent: Option<&HeaderValue>) {
    if let Some(user_agent) = user_agent {
        let headers = request.headers_mut();
        headers
            .entry(header::USER_AGENT)
            .or_insert_with(|| user_agent.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, introduce};
    use http::{Method, Request, header};

    fn signed(method: &Method, uri: &str) -> String {
        let mut request = Request::builder().method(method).uri(uri).body(()).unwrap();
        Identity::new("site operator/1").sign(&mut request);
        request.uri().to_string()
    }

    #[test]
    fn writes_that_name_nobody_are_signed() {
        let name = "fieldManager=site-operator%2F1";
        for (uri, expected) in [
            ("/api/v1/pods", format!("/api/v1/pods?{name}")),
            ("/api/v1/pods?", format!("/api/v1/pods?{name}")),
            (
                "/apis/a/v1/b/c?&force=true",
                format!("/apis/a/v1/b/c?force=true&{name}"),
            ),
            (
                "https://k8s:1/base/api/v1/pods?fieldManager=",
                format!("https://k8s:1/base/api/v1/pods?{name}"),
            ),
        ] {
            for method in [Method::POST, Method::PUT, Method::PATCH] {
                assert_eq!(signed(&method, uri), expected);
            }
            for method in [Method::GET, Method::DELETE] {
                assert_eq!(signed(&method, uri), uri);
            }
        }
        for uri in [
            "/api/v1/pods?fieldManager=me",
            "/api/v1/pods?a=b&fieldManager=me&c=d",
            "/api/v1/namespaces/a/pods/b/exec?command=ls",
            "/version",
        ] {
            assert_eq!(signed(&Method::POST, uri), uri);
        }
    }

    #[test]
    fn a_given_name_replaces_the_default() {
        let mut request = Request::post("/api/v1/pods?force=true").body(()).unwrap();
        Identity::new("program").sign_by_default(&mut request);
        assert_ne!(request.uri(), "/api/v1/pods?force=true");
        Identity::new("me").sign(&mut request);
        assert_eq!(request.uri(), "/api/v1/pods?force=true&fieldManager=me");
        Identity::new("you").sign(&mut request);
        assert_eq!(request.uri(), "/api/v1/pods?force=true&fieldManager=me");
        let mut request = Request::post("/api/v1/pods?fieldManager=me")
            .body(())
            .unwrap();
        Identity::new("program").sign_by_default(&mut request);
        Identity::new("you").sign(&mut request);
        assert_eq!(request.uri(), "/api/v1/pods?fieldManager=me");
    }

    #[test]
    fn names_fit() {
        let long = "x".repeat(200);
        for (name, manager, reporter) in [
            ("site-operator", "site-operator", "site-operator"),
            ("example.com/site", "example.com/site", "example.com/site"),
            ("Site Operator ä", "Site-Operator--", "Site-Operator"),
            ("a/b/c", "a/b/c", "a/b-c"),
            (&*long, &long[..128], &long[..63]),
            ("!!!", "!!!", "homeostat"),
        ] {
            let identity = Identity::new(name);
            assert_eq!(identity.name(), manager);
            assert_eq!(identity.reporter(), reporter);
        }
        assert!(!Identity::new("").name().is_empty());
    }

    #[test]
    fn a_user_agent_that_is_there_stays() {
        let agent = Identity::new("site").user_agent().unwrap();
        assert!(agent.to_str().unwrap().starts_with("site/homeostat-"));
        let mut request = Request::get("/api").body(()).unwrap();
        introduce(&mut request, Some(&agent));
        assert_eq!(request.headers()[header::USER_AGENT], agent);
        let mut request = Request::get("/api")
            .header("user-agent", "own")
            .body(())
            .unwrap();
        introduce(&mut request, Some(&agent));
        assert_eq!(request.headers()[header::USER_AGENT], "own");
    }
}
