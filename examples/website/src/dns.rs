//! The world outside of Kubernetes: a DNS provider.
//!
//! It stands for whatever an operator looks after besides objects of the cluster: buckets, tenants,
//! certificates. What matters is the shape of the trait:
//!
//! - Every call can be repeated. A reconcile may end after any call, and the next one begins anew.
//! - What is there can be read back. The operator compares with that, not with its own memory.
//! - Records carry the uid of the site that they belong to, not its name. A site that is deleted and
//!   created again is another site, and a late clean-up of the first must not touch the second's.

use futures::future::{BoxFuture, FutureExt, ready};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A provider of host names.
pub trait Dns: Debug + Send + Sync {
    /// The hosts that are registered for `owner`.
    fn hosts<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<BTreeSet<String>, DnsError>>;

    /// Registers `host` for `owner`. Nothing happens if it already is.
    fn register<'a>(&'a self, host: &'a str, owner: &'a str)
    -> BoxFuture<'a, Result<(), DnsError>>;

    /// Removes `host` if it is registered for `owner`. Nothing happens otherwise.
    fn unregister<'a>(
        &'a self,
        host: &'a str,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), DnsError>>;
}

/// Why the provider did not do what it should. Both may pass by themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// The provider does not answer.
    #[error("the DNS provider of {0} does not answer")]
    Unavailable(String),
    /// The host is registered for another owner.
    #[error("the host {0} belongs to another site")]
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

    /// The hosts of an owner, outage or not.
    pub fn records_of(&self, owner: &str) -> Vec<String> {
        let state = self.lock();
        let records = state.records.iter().filter(|(_, of)| *of == owner);
        records.map(|(host, _)| host.clone()).collect()
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

    fn hosts_now(&self, owner: &str) -> Result<BTreeSet<String>, DnsError> {
        let state = self.lock();
        let records = state.records.iter().filter(|(_, of)| *of == owner);
        records
            .map(|(host, _)| state.reach(host).map(|()| host.clone()))
            .collect()
    }

    fn register_now(&self, host: &str, owner: &str) -> Result<(), DnsError> {
        let mut state = self.lock();
        state.reach(host)?;
        match state.records.get(host) {
            Some(of) if of == owner => Ok(()),
            Some(_) => Err(DnsError::Taken(host.into())),
            None => {
                state.records.insert(host.into(), owner.into());
                self.wrote();
                Ok(())
            }
        }
    }

    fn unregister_now(&self, host: &str, owner: &str) -> Result<(), DnsError> {
        let mut state = self.lock();
        state.reach(host)?;
        if state.records.get(host).is_some_and(|of| of == owner) {
            state.records.remove(host);
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
    fn hosts<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<BTreeSet<String>, DnsError>> {
        ready(self.hosts_now(owner)).boxed()
    }

    fn register<'a>(
        &'a self,
        host: &'a str,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), DnsError>> {
        ready(self.register_now(host, owner)).boxed()
    }

    fn unregister<'a>(
        &'a self,
        host: &'a str,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), DnsError>> {
        ready(self.unregister_now(host, owner)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_can_be_repeated() {
        let dns = InMemoryDns::default();
        for _ in 0..3 {
            dns.register_now("a.example.com", "one").unwrap();
        }
        assert_eq!(dns.writes(), 1);
        for _ in 0..3 {
            dns.unregister_now("a.example.com", "one").unwrap();
        }
        assert_eq!(dns.writes(), 2);
        assert_eq!(dns.hosts_now("one"), Ok(BTreeSet::new()));
    }

    #[test]
    fn nobody_takes_or_removes_what_belongs_to_another() {
        let dns = InMemoryDns::default();
        dns.register_now("a.example.com", "one").unwrap();
        let taken = dns.register_now("a.example.com", "two");
        assert_eq!(taken, Err(DnsError::Taken("a.example.com".into())));
        dns.unregister_now("a.example.com", "two").unwrap();
        assert_eq!(dns.owner_of("a.example.com").as_deref(), Some("one"));
    }

    #[test]
    fn an_outage_concerns_one_domain() {
        let dns = InMemoryDns::default();
        dns.register_now("a.eu.example.com", "one").unwrap();
        dns.start_outage("eu.example.com");
        let down = || DnsError::Unavailable("eu.example.com".into());
        assert_eq!(dns.hosts_now("one"), Err(down()));
        assert_eq!(dns.register_now("eu.example.com", "two"), Err(down()));
        assert_eq!(dns.register_now("neu.example.com", "two"), Ok(()));
        assert_eq!(dns.unregister_now("a.eu.example.com", "one"), Err(down()));
        dns.end_outage();
        assert_eq!(
            dns.hosts_now("one"),
            Ok(BTreeSet::from(["a.eu.example.com".into()]))
        );
    }
}
