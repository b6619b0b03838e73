//! By which names a server is spoken to.
//!
//! A page in a browser can have a name of its own point to the loopback interface (DNS rebinding), and then reads
//! whatever a server there answers. Its requests carry that name in `Host`, so a server that answers to names of the
//! loopback interface alone cannot be read in this way.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{Request, header};

/// The names that a server answers to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    /// Besides those of the loopback interface, in lower case.
    allowed: Arc<[String]>,
}

// === impl Hosts ===

impl Hosts {
    pub(crate) fn new(allowed: impl IntoIterator<Item = String>) -> Self {
        let allowed = allowed
            .into_iter()
            .map(|name| plain(&name).to_ascii_lowercase());
        Self {
            allowed: allowed.collect(),
        }
    }

    /// Why a request that came over plain HTTP to this address of the server is not answered; `None` if it is.
    pub(super) fn refusal<B>(&self, local: SocketAddr, request: &Request<B>) -> Option<String> {
        if !local.ip().to_canonical().is_loopback() {
            return None;
        }
        let named = request.headers().get_all(header::HOST).iter();
        let named = named.map(|value| value.to_str().unwrap_or("?").to_owned());
        let target = request.uri().authority().map(ToString::to_string);
        // A client that names no host is no browser.
        let wrong = named.chain(target).find(|name| !self.answers_to(name))?;
        Some(format!(
            "This server listens on the loopback interface and does not answer to {wrong:?}, because a web page could \
             make that name point here. Use localhost or 127.0.0.1, or allow the name: homeostat dev --allow-host \
             NAME, or ApiServerBuilder::allow_host.\n"
        ))
    }

    fn answers_to(&self, authority: &str) -> bool {
        // A user in front is for nobody here.
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let name = plain(host).to_ascii_lowercase();
        let is_loopback = name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback());
        is_loopback
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.allowed.contains(&name)
    }
}

/// A name or an address without port, brackets and the dot of the root.
fn plain(host: &str) -> &str {
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        // An address of version 6 without brackets has no port.
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::Hosts;
    use http::Request;
    use std::net::SocketAddr;

    #[test]
    fn loopback_names_are_answered_and_what_was_allowed() {
        let hosts = Hosts::new(["Dev.Example:8001".to_owned(), "fd00::1".to_owned()]);
        let local: SocketAddr = "127.0.0.1:8001".parse().unwrap();
        for (host, answered) in [
            ("localhost", true),
            ("LOCALHOST:8001", true),
            ("localhost.:8001", true),
            ("a.localhost", true),
            ("127.0.0.1:8001", true),
            ("127.1.2.3", true),
            ("[::1]:8001", true),
            ("[::ffff:127.0.0.1]:8001", true),
            ("dev.example:9", true),
            ("[fd00::1]:8001", true),
            ("", false),
            ("x", false),
            ("evil.example:8001", false),
            ("localhost.evil.example", false),
            ("evil-localhost", false),
            ("127.0.0.1.evil.example", false),
            ("localhost@evil.example", false),
            ("0.0.0.0:8001", false),
            ("10.0.0.1", false),
            ("[::]:8001", false),
        ] {
            let request = Request::get("/api").header("host", host).body(()).unwrap();
            let refusal = hosts.refusal(local, &request);
            assert_eq!(refusal.is_none(), answered, "{host:?}: {refusal:?}");
            // From elsewhere names are none of its business.
            let elsewhere = "10.0.0.1:8001".parse().unwrap();
            assert_eq!(hosts.refusal(elsewhere, &request), None);
        }
    }

    #[test]
    fn every_name_in_a_request_counts() {
        let hosts = Hosts::default();
        let local: SocketAddr = "[::1]:8001".parse().unwrap();
        let refused = |request: Request<()>| hosts.refusal(local, &request).is_some();
        let of = |uri: &str, names: &[&str]| {
            let request = Request::get(uri);
            let request = names
                .iter()
                .fold(request, |request, name| request.header("host", *name));
            request.body(()).unwrap()
        };
        assert!(!refused(of("/api", &[])), "no browser");
        assert!(!refused(of("http://localhost/api", &[])));
        assert!(refused(of("http://evil.example/api", &[])));
        assert!(refused(of("http://evil.example/api", &["localhost"])));
        assert!(refused(of("/api", &["localhost", "evil.example"])));
    }
}
