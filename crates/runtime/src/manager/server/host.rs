//! By which names a server is spoken to.
//!
//! A web page can make a name of its own point to the loopback interface (DNS rebinding), and then reads whatever a
//! server there answers. Its requests carry that name in `Host`.

use http::{Request, header};
use std::net::{IpAddr, SocketAddr};

/// Why a request that came to the address `local` of the server is not answered; `None` if it is. `allowed` are names
/// besides those of the loopback interface, in lower case.
pub(super) fn refusal<B>(
    local: SocketAddr,
    allowed: &[String],
    request: &Request<B>,
) -> Option<String> {
    if !local.ip().to_canonical().is_loopback() {
        return None;
    }
    let named = request.headers().get_all(header::HOST).iter();
    let named = named.map(|value| value.to_str().unwrap_or("?").to_owned());
    let target = request.uri().authority().map(ToString::to_string);
    // A client that names no host is no browser.
    let wrong = named
        .chain(target)
        .find(|name| !answers_to(name, allowed))?;
    Some(format!(
        "this server listens on the loopback interface and does not answer to {wrong:?}, because a web page could make \
         that name point here; use localhost, or allow the name with Server::allow_host\n"
    ))
}

fn answers_to(authority: &str, allowed: &[String]) -> bool {
    // A user in front is for nobody here.
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let name = plain(host);
    let is_loopback = name
        .parse::<IpAddr>()
        .is_ok_and(|address| address.to_canonical().is_loopback());
    is_loopback || name == "localhost" || name.ends_with(".localhost") || allowed.contains(&name)
}

/// A name or an address without port, brackets and the dot of the root, in lower case.
pub(super) fn plain(host: &str) -> String {
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        // An address of version 6 without brackets has no port.
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{plain, refusal};
    use http::Request;

    #[test]
    fn foreign_names_are_refused_on_the_loopback_interface_alone() {
        let allowed = [plain("Operator.Example:80")];
        for (local, host, refused) in [
            ("127.0.0.1:80", Some("localhost"), false),
            ("127.0.0.1:80", Some("LOCALHOST.:8080"), false),
            ("127.0.0.1:80", Some("127.0.0.1:8080"), false),
            ("127.0.0.1:80", Some("app.localhost"), false),
            ("[::1]:80", Some("[::1]:80"), false),
            ("[::ffff:127.0.0.1]:80", Some("evil.example"), true),
            ("127.0.0.1:80", Some("operator.example:9"), false),
            ("127.0.0.1:80", None, false),
            ("127.0.0.1:80", Some("evil.example"), true),
            ("127.0.0.1:80", Some("localhost@evil.example"), true),
            ("127.0.0.1:80", Some("10.0.0.1"), true),
            ("127.0.0.1:80", Some("localhost.evil.example"), true),
            ("10.0.0.1:80", Some("evil.example"), false),
        ] {
            let mut request = Request::builder();
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let request = request.body(()).unwrap();
            let why = refusal(local.parse().unwrap(), &allowed, &request);
            assert_eq!(why.is_some(), refused, "{local} {host:?}");
        }
    }
}
