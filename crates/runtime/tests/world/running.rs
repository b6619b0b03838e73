//! A controller that runs in the background, and what came of it.

use super::Widget;
use futures::StreamExt;
use homeostat::{
    Action, Controller,
    controller::{Readiness, SourceStatus},
    reflector::Store,
};
use kube::ResourceExt;
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as StdError,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// A controller of widgets; it stops when this is dropped.
pub(crate) struct Running {
    log: Arc<Mutex<Log>>,
    pub(crate) store: Store<Widget>,
    pub(crate) readiness: Readiness,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    /// The runs of all objects in the order of their starts.
    runs: Vec<Run>,
    counts: BTreeMap<String, usize>,
    active: BTreeSet<String>,
    /// Objects that were run twice at once.
    doubled: Vec<String>,
    successes: usize,
    errors: Vec<(Duration, String)>,
}

/// A run: when it started, since the world began, and with what.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) at: Duration,
    pub(crate) name: String,
    pub(crate) value: u32,
    pub(crate) seen: Option<u32>,
}

/// Notes that a run has ended, however that came.
struct Active {
    log: Arc<Mutex<Log>>,
    name: String,
}

// === impl Running ===

impl Running {
    pub(super) fn start<E, Fut>(
        client: kube::Client,
        start: Instant,
        controller: Controller<Widget>,
        mut reconcile: impl FnMut(Arc<Widget>, usize) -> Fut + Send + 'static,
        policy: impl Fn(Arc<Widget>, &E, Arc<()>) -> Action + Send + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: StdError + Send + 'static,
    {
        let log = Arc::new(Mutex::new(Log::default()));
        let (store, readiness) = (controller.store(), controller.readiness());
        let noting = {
            let log = Arc::clone(&log);
            move |obj: Arc<Widget>, _: Arc<()>| {
                let (nth, active) = Log::note(&log, &obj, start.elapsed());
                let run = reconcile(obj, nth);
                async move {
                    let _active = active;
                    run.await
                }
            }
        };
        let run = controller.run(noting, policy, Arc::new(()));
        let results = Arc::clone(&log);
        if std::env::var("ARM").is_ok() {
            let run = run.inspect(move |item| {
                let mut log = results.lock().unwrap();
                match item {
                    Ok(_) => log.successes += 1,
                    Err(error) => log.errors.push((start.elapsed(), error.to_string())),
                }
            });
            let manager = homeostat::Manager::new(client)
                .stop_on(futures::stream::pending())
                .add(run);
            let task = tokio::spawn(async move { drop(manager.run().await) });
            return Self {
                log,
                store,
                readiness,
                task,
            };
        }
        let task = tokio::spawn(run.for_each(move |item| {
            let mut log = results.lock().unwrap();
            match item {
                Ok(_) => log.successes += 1,
                Err(error) => log.errors.push((start.elapsed(), error.to_string())),
            }
            std::future::ready(())
        }));
        Self {
            log,
            store,
            readiness,
            task,
        }
    }

    /// When the runs of an object started, in whole seconds.
    pub(crate) fn of(&self, name: &str) -> Vec<u64> {
        let runs = self.runs().into_iter();
        runs.filter(|run| run.name == name)
            .map(|run| run.at.as_secs())
            .collect()
    }

    /// All runs in the order of their starts.
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.log.lock().unwrap().runs.clone()
    }

    /// The names of the objects in the order in which their runs started.
    pub(crate) fn order(&self) -> Vec<String> {
        self.runs().into_iter().map(|run| run.name).collect()
    }

    /// The value that each run of an object was given.
    pub(crate) fn values(&self, name: &str) -> Vec<u32> {
        let runs = self.runs().into_iter();
        runs.filter(|run| run.name == name)
            .map(|run| run.value)
            .collect()
    }

    /// The first run that started at `seconds` or later.
    pub(crate) fn first_since(&self, seconds: f64) -> Option<Run> {
        let since = Duration::from_secs_f64(seconds);
        self.runs().into_iter().find(|run| run.at >= since)
    }

    /// Objects that were run twice at once.
    pub(crate) fn doubled(&self) -> Vec<String> {
        self.log.lock().unwrap().doubled.clone()
    }

    /// How many items of the stream tell of a success.
    pub(crate) fn successes(&self) -> usize {
        self.log.lock().unwrap().successes
    }

    /// When an item of the stream told of an error, and which.
    pub(crate) fn timed_errors(&self) -> Vec<(Duration, String)> {
        self.log.lock().unwrap().errors.clone()
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        let errors = self.timed_errors().into_iter();
        errors.map(|(_, error)| error).collect()
    }

    /// The state of the source whose label begins like this.
    pub(crate) fn source(&self, label: &str) -> SourceStatus {
        let sources = self.readiness.sources().into_iter();
        let mut found = sources.filter(|source| source.name.starts_with(label));
        found.next().expect("there is such a source")
    }

    /// The names of the widgets in the store.
    pub(crate) fn stored(&self) -> Vec<String> {
        let objects = self.store.state().into_iter();
        objects.map(|obj| obj.name_any()).collect()
    }

    /// Whether the controller's stream has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Log ===

impl Log {
    fn note(log: &Arc<Mutex<Self>>, obj: &Widget, at: Duration) -> (usize, Active) {
        let name = obj.name_any();
        let active = Active {
            log: Arc::clone(log),
            name: name.clone(),
        };
        let mut log = log.lock().unwrap();
        if !log.active.insert(name.clone()) {
            log.doubled.push(name.clone());
        }
        let count = log.counts.entry(name.clone()).or_default();
        *count += 1;
        let nth = *count;
        log.runs.push(Run {
            at,
            name,
            value: obj.spec.value,
            seen: obj.status.as_ref().map(|status| status.seen),
        });
        (nth, active)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.log.lock().unwrap().active.remove(&self.name);
    }
}
