//! What a process has seen and used.

use crate::{objects, scenario::Scenario, server::now};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::sync::Notify;

/// What reconcilers have seen.
pub(crate) struct Seen {
    versions: Vec<AtomicU64>,
    /// The versions that are waited for.
    awaited: Vec<AtomicU64>,
    missing: AtomicUsize,
    complete: Notify,
    reconciles: AtomicUsize,
    /// From sending to the start of the reconcile, in nanoseconds.
    delays: Mutex<Vec<u64>>,
}

/// What a process has used.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) cpu_s: f64,
    pub(crate) peak_mb: f64,
    /// At the end.
    pub(crate) rest_mb: f64,
    pub(crate) wall_s: f64,
    pub(crate) reconciles: usize,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

impl Seen {
    /// Of so many controllers.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let objects = scenario.objects * scenario.controllers;
        let zeros = || (0..objects).map(|_| AtomicU64::new(0)).collect();
        Self {
            versions: zeros(),
            awaited: zeros(),
            missing: AtomicUsize::new(0),
            complete: Notify::new(),
            reconciles: AtomicUsize::new(0),
            delays: Mutex::new(Vec::with_capacity(scenario.events())),
        }
    }

    /// Takes in a run of a controller.
    pub(crate) fn take_in(&self, controller: usize, meta: &ObjectMeta) {
        self.reconciles.fetch_add(1, Relaxed);
        let sent = meta
            .annotations
            .as_ref()
            .and_then(|all| all.get(objects::SENT));
        if let Some(sent) = sent
            .and_then(|sent| sent.parse::<u128>().ok())
            .filter(|sent| *sent > 0)
        {
            let delay = u64::try_from(now().saturating_sub(sent)).unwrap_or(u64::MAX);
            self.delays
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(delay);
        }
        let number = objects::number(meta.name.as_deref().unwrap_or_default()).unwrap();
        let index = controller * self.objects(controller) + number;
        let version = meta
            .resource_version
            .as_deref()
            .unwrap_or_default()
            .parse()
            .unwrap();
        let before = self.versions[index].fetch_max(version, Relaxed);
        let awaited = self.awaited[index].load(Relaxed);
        if before < awaited && version >= awaited && self.missing.fetch_sub(1, Relaxed) == 1 {
            self.complete.notify_one();
        }
    }

    /// How many objects each controller has, if there is more than one.
    fn objects(&self, controller: usize) -> usize {
        if controller == 0 {
            0
        } else {
            self.versions.len() / crate::scenario::CONTROLLERS
        }
    }

    /// From now on, these versions of the objects are waited for. They must not have begun to come.
    pub(crate) fn expect(&self, versions: &[u64]) {
        self.missing.store(0, Relaxed);
        for (index, awaited) in self.awaited.iter().enumerate() {
            let version = versions[index % versions.len()];
            awaited.store(version, Relaxed);
            let is_missing = self.versions[index].load(Relaxed) < version;
            self.missing.fetch_add(is_missing.into(), Relaxed);
        }
    }

    /// Waits until each controller has seen what is waited for.
    pub(crate) async fn complete(&self) {
        self.complete.notified().await;
    }

    pub(crate) fn reconciles(&self) -> usize {
        self.reconciles.load(Relaxed)
    }

    /// The median delay in microseconds, and the one that a hundredth exceeds.
    pub(crate) fn delays(&self) -> Option<(f64, f64)> {
        let mut delays = self
            .delays
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        delays.sort_unstable();
        let at = |percent: usize| {
            delays
                .get(delays.len() * percent / 100)
                .map(|nanos| *nanos as f64 / 1e3)
        };
        Some((at(50)?, at(99)?))
    }
}

/// Seconds of CPU that this process has used.
pub(crate) fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // In user mode and in the kernel, in hundredths of a second on every Linux.
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// A line of `/proc/self/status` in megabytes.
pub(crate) fn memory(line: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let value = status
        .lines()
        .find_map(|text| text.strip_prefix(line))
        .unwrap();
    let kilobytes: f64 = value
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap();
    kilobytes / 1024.0
}
