//! What a manager runs: controllers, tasks and servers.

use super::Stopping;
use crate::readable;
use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use std::{error::Error as StdError, fmt};

/// A controller of a [`Manager`](super::Manager).
///
/// ```
/// use homeostat::{Action, Controller, Manager, error_policy, manager::Unit, watcher};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Client};
/// use std::sync::Arc;
///
/// # async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> {
/// #     Ok(Action::await_change())
/// # }
/// fn build(client: Client) -> Manager {
///     let maps = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
///         .run(reconcile, error_policy::backoff, Arc::new(()));
///     Manager::new(client).add(Unit::new(maps).named("config").on_every_replica())
/// }
/// ```
pub struct Unit {
    pub(super) name: Option<String>,
    pub(super) role: Role,
    pub(super) body: Body,
}

/// A background task of a [`Manager`](super::Manager), or a server.
///
/// It is called with what tells it to stop, and ends then within the manager's time for that. Its error, its panic and
/// its end are told, and end nobody else.
pub struct Task(Unit);

/// When something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// While this replica leads.
    Leader,
    /// On every replica.
    Replica,
    /// On every replica, from before the others start until they have stopped.
    Server,
}

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

pub(super) enum Body {
    Controller(BoxStream<'static, Result<(), String>>),
    Task(Start),
}

/// Starts a task, once in each term of leadership.
pub(super) type Start = Box<dyn FnMut(Stopping) -> BoxFuture<'static, Result<(), BoxError>> + Send>;

// === impl Unit ===

impl Unit {
    /// A controller, as the stream that its `run` returns.
    pub fn new<T, E>(controller: impl Stream<Item = Result<T, E>> + Send + 'static) -> Self
    where
        E: StdError + 'static,
    {
        let items = controller.map(|item| match item {
            Ok(_) => Ok(()),
            Err(error) => Err(readable(&error).to_string()),
        });
        Self {
            name: None,
            role: Role::Leader,
            body: Body::Controller(items.boxed()),
        }
    }

    /// Its name in the log, in [`Status`](super::Status) and for [`Handle::remove`](super::Handle::remove).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Works on replicas that do not lead, too.
    #[must_use]
    pub fn on_every_replica(mut self) -> Self {
        self.role = Role::Replica;
        self
    }
}

impl<S, T, E> From<S> for Unit
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    E: StdError + 'static,
{
    fn from(controller: S) -> Self {
        Self::new(controller)
    }
}

impl From<Task> for Unit {
    fn from(Task(unit): Task) -> Self {
        unit
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unit")
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

// === impl Task ===

impl Task {
    /// A task that runs while this replica leads. It is started again when this replica leads again, and dropped at
    /// its next `await` when leadership is lost.
    ///
    /// ```
    /// use homeostat::manager::Task;
    /// use std::{io, time::Duration};
    ///
    /// let sweep = Task::new("sweep", |stopping| async move {
    ///     while !stopping.is_requested() {
    ///         // Sweep, then rest.
    ///         tokio::select! {
    ///             () = stopping.requested() => {}
    ///             () = tokio::time::sleep(Duration::from_secs(60)) => {}
    ///         }
    ///     }
    ///     Ok::<_, io::Error>(())
    /// });
    /// # drop(sweep);
    /// ```
    #[must_use]
    pub fn new<F, E>(
        name: impl Into<String>,
        mut task: impl FnMut(Stopping) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let start = move |stopping| {
            task(stopping)
                .map(|result| result.map_err(Into::into))
                .boxed()
        };
        Self(Unit {
            name: Some(name.into()),
            role: Role::Leader,
            body: Body::Task(Box::new(start)),
        })
    }

    /// A server, which starts on every replica before controllers do and stops after them.
    #[must_use]
    pub fn server<F, E>(
        name: impl Into<String>,
        task: impl FnMut(Stopping) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let Self(mut unit) = Self::new(name, task);
        unit.role = Role::Server;
        Self(unit)
    }

    /// Runs on replicas that do not lead, too.
    #[must_use]
    pub fn on_every_replica(self) -> Self {
        Self(self.0.on_every_replica())
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0).finish()
    }
}
