//! The world outside of Kubernetes: a DNS provider.
//!
//! It stands for whatever an operator looks after besides objects of the cluster: buckets, tenants,
//! certificates. What matters is the shape of the trait:
//!
//! - A call says what should be there, and can be repeated: a reconcile may end after it, and the next
//!   one begins anew.
//! - Records carry the uid of the site that they belong to, not its name. A site that is deleted and
//!   created again is another site, and a late clean-up of the first must not touch the second's.

use futures::future::{BoxFuture, FutureExt, ready};
use homeostat::Classify;
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A provider of host names.
pub trait Dns: Debug + Send + Sync {
    /// Makes `host` be registered for `owner`, and no other host of it: it may have had another one
    /// before. Nothing happens if that is so.
    fn keep(&self, owner: &str, host: Option<&str>) -> BoxFuture<'_, Result<(), DnsError>>;
}

/// Why the provider did not do what it should. Both may pass by themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Classify)]
pub enum DnsError {
    /// The provider does not answer.
    #[error("the DNS provider of {0} does not answer")]
    #[classify(transient, reason = "DnsUnavailable")]
    Unavailable(String),
    /// The host is registered for another owner.
    #[error("the host {0} belongs to another site")]
    #[classify(transient, reason = "HostTaken")]
    Taken(String),
}

/// A provider in memory, for the demo and for tests. It can be made to fail.
#[derive(Debug, Default)]
pub struct InMemoryDns {
    state: Mutex<State>,
    writes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The owner of each host.
    records: BTreeMap<String, String>,
    /// The domain that does not answer.
    outage: Option<String>,
}

// === impl InMemoryDns ===

impl InMemoryDns {
    /// From now on everything fails that has to do with `domain` or a host in it.
    pub fn start_outage(&self, domain: &str) {
        self.lock().outage = Some(domain.into());
    }

    /// From now on everything works.
    pub fn end_outage(&self) {
        self.lock().outage = None;
    }

    /// The owner of `host`.
    pub fn owner_of(&self, host: &str) -> Option<String> {
        self.lock().records.get(host).cloned()
    }

    /// How often a record was added or removed.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    fn keep_now(&self, owner: &str, host: Option<&str>) -> Result<(), DnsError> {
        let mut state = self.lock();
        let records = state.records.iter();
        let former = records.filter(|(name, of)| *of == owner && Some(name.as_str()) != host);
        let former: Vec<String> = former.map(|(name, _)| name.clone()).collect();
        for name in former.iter().map(String::as_str).chain(host) {
            state.reach(name)?;
        }
        match host.map(|host| (host, state.records.get(host))) {
            Some((host, Some(of))) if of != owner => return Err(DnsError::Taken(host.into())),
            Some((host, None)) => {
                state.records.insert(host.into(), owner.into());
                self.wrote();
            }
            Some((_, Some(_))) | None => {}
        }
        for name in former {
            state.records.remove(&name);
            self.wrote();
        }
        Ok(())
    }
}

impl State {
    fn reach(&self, host: &str) -> Result<(), DnsError> {
        match &self.outage {
            Some(domain) if host == domain || host.ends_with(&format!(".{domain}")) => {
                Err(DnsError::Unavailable(domain.clone()))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Dns for InMemoryDns {
    fn keep(&self, owner: &str, host: Option<&str>) -> BoxFuture<'_, Result<(), DnsError>> {
        ready(self.keep_now(owner, host)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_host_and_calls_can_be_repeated() {
        let dns = InMemoryDns::default();
        for (host, writes) in [
            (Some("a.example.com"), 1),
            (Some("b.example.com"), 3),
            (None, 4),
        ] {
            for _ in 0..3 {
                dns.keep_now("one", host).unwrap();
            }
            assert_eq!(dns.writes(), writes);
            for name in ["a.example.com", "b.example.com"] {
                let owner = (host == Some(name)).then_some("one");
                assert_eq!(dns.owner_of(name).as_deref(), owner);
            }
        }
    }

    #[test]
    fn nobody_takes_or_removes_what_belongs_to_another() {
        let dns = InMemoryDns::default();
        dns.keep_now("one", Some("a.example.com")).unwrap();
        let taken = dns.keep_now("two", Some("a.example.com"));
        assert_eq!(taken, Err(DnsError::Taken("a.example.com".into())));
        dns.keep_now("two", None).unwrap();
        assert_eq!(dns.owner_of("a.example.com").as_deref(), Some("one"));
    }

    #[test]
    fn an_outage_concerns_one_domain() {
        let dns = InMemoryDns::default();
        dns.keep_now("one", Some("a.eu.example.com")).unwrap();
        dns.start_outage("eu.example.com");
        let down = Err(DnsError::Unavailable("eu.example.com".into()));
        assert_eq!(dns.keep_now("one", Some("a.eu.example.com")), down);
        assert_eq!(dns.keep_now("one", None), down);
        assert_eq!(dns.keep_now("two", Some("eu.example.com")), down);
        assert_eq!(dns.keep_now("two", Some("neu.example.com")), Ok(()));
        dns.end_outage();
        assert_eq!(dns.keep_now("one", None), Ok(()));
    }
}
