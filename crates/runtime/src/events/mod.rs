//! Tells people what happens to objects, with the events that `kubectl describe` shows.
//!
//! ```
//! use homeostat::{Action, events::{Event, EventType, Recorder}};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::Resource;
//! use std::sync::Arc;
//!
//! struct Context {
//!     recorder: Recorder,
//! }
//!
//! async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
//!     let event = Event {
//!         type_: EventType::Normal,
//!         reason: "HostRegistered".into(),
//!         note: Some("Registered web.example.com".into()),
//!         action: "Registering".into(),
//!         secondary: None,
//!     };
//!     ctx.recorder.queue(&event, &map.object_ref(&()));
//!     Ok(Action::await_change())
//! }
//!
//! fn context(client: kube::Client) -> Context {
//!     Context { recorder: Recorder::new(client, "website-controller".into()) }
//! }
//! ```

mod body;
mod worker;

use self::{body::Identity as Told, worker::Shared};
use crate::{
    Identity,
    client::{Outbox, check_run, identity},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use std::{fmt, sync::Arc};

/// What happened.
///
/// Servers limit its texts, so longer ones are cut: `note` to 1024 bytes, `reason` and `action` to
/// 128.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Whether somebody should look at it.
    pub type_: EventType,
    /// Why it happened, as one word for people and machines, like `HostRegistered`.
    pub reason: String,
    /// What happened, for people. What changes every time (a duration, a counter) does not belong
    /// here: the same text again is counted, another text is another event.
    pub note: Option<String>,
    /// What was done or tried, as one word for machines, like `Registering`.
    pub action: String,
    /// Another object that has to do with it, like the child that was made.
    pub secondary: Option<ObjectReference>,
}

/// Whether somebody should look at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// All is well.
    Normal,
    /// Something is wrong.
    Warning,
}

/// Who tells.
///
/// The default is [this program](Identity), on this host. `From<&str>` takes the name of the controller,
/// and that of the host as the instance. `From<String>` takes only the name of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reporter {
    /// The name of the controller, like `example.com/website-controller`. A server wants a name of up
    /// to 63 letters, digits, `-`, `_` and `.`, perhaps after a domain and `/`.
    pub controller: String,
    /// Which of its replicas, usually the name of its pod; up to 128 bytes, longer ones are cut.
    /// `None` stands for the name of the controller.
    pub instance: Option<String>,
}

/// Publishes events. Clones share what they remember and what they have not sent yet.
///
/// # Flow
///
/// [`queue`](Self::queue) takes an event in and returns: it is for reconcilers, which should not fail
/// because nobody could be told. A task sends what was taken in, one request after the other. It runs only
/// while there is something to send, and goes on when the recorder is dropped. A controller that stops
/// waits until what its runs have queued is sent, for ten seconds at most; a program that queues events
/// elsewhere should call [`flush`](Self::flush) before it ends.
///
/// [`publish`](Self::publish) is for those who want to know: when it returns, the server has the event, or
/// has refused it. It makes its request at once, and once.
///
/// An event that is published again is one event with a count (`series`), as `kubectl` shows it:
/// the same object, related object, type, reason, action and note. Another note is another event, so
/// no text is hidden behind an older one. A series is over when it was quiet for half an hour.
///
/// The events of an object are in its namespace, and those of a cluster's object in `default`.
///
/// # Guarantees
///
/// - Queueing neither waits nor fails.
/// - About one object there are at most 25 requests at once, and then one in five minutes. Counts
///   that have to wait are told later. Of new events that have to wait only the latest is told: it
///   says what holds now.
/// - Memory is bounded: 4096 series are remembered.
/// - These limits hold for what is queued. A server that fails or does not answer is tried again after a
///   pause, six times for each event.
///   An event that the server has forgotten in between is made anew, and a name that is taken is
///   replaced.
/// - What cannot be sent is dropped and [counted](Self::dropped). The log has one warning for each
///   kind of failure, and none of what the server sent. That nothing can be created in a namespace
///   which is being deleted is no failure.
///
/// # Assumptions
///
/// It is used in a tokio runtime. The program may do this in the namespaces of its objects:
///
/// ```yaml
/// - apiGroups: ["events.k8s.io"]
///   resources: ["events"]
///   verbs: ["create", "patch"]
/// ```
///
/// # Caveats
///
/// Make one recorder and share it: what one has sent another does not know. Events are for people and
/// gone after an hour; what a program needs to know belongs into a status.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

// === impl Recorder ===

impl Recorder {
    /// A recorder that tells in the name of `reporter`.
    #[must_use]
    pub fn new(client: Client, reporter: Reporter) -> Self {
        Self {
            shared: Arc::new(Shared::new(client, reporter)),
        }
    }

    /// Sends an event about the object that `reference` names, and waits for the answer. For the
    /// reference see [`Resource::object_ref`](kube::Resource::object_ref).
    ///
    /// The request is none of the writes of the run that this is called in, and goes on when this is
    /// dropped.
    ///
    /// # Errors
    ///
    /// What the server or the client says: then the event is not counted, and not tried again. A server that
    /// does not answer within 30 s is a [`kube::Error::Service`]. A reconcile that has read an incomplete
    /// [store](crate::reflector::Store#in-reconcilers) is refused: what it found may not be so.
    pub async fn publish(
        &self,
        ev: &Event,
        reference: &ObjectReference,
    ) -> Result<(), kube::Error> {
        check_run()?;
        let resource_version = reference.resource_version.clone();
        let identity = Told::new(ev, reference);
        self.shared.publish(identity, resource_version).await
    }

    /// Takes in an event about the object that `reference` names, to be sent soon. It never waits and
    /// never fails; see [`dropped`](Self::dropped) and the log for what could not be sent.
    ///
    /// In a reconcile that has read an incomplete [store](crate::reflector::Store#in-reconcilers) it does
    /// nothing: what was found may not be so, and the object runs again when the store is complete.
    pub fn queue(&self, ev: &Event, reference: &ObjectReference) {
        if check_run().is_err() {
            return;
        }
        let resource_version = reference.resource_version.clone();
        let identity = Told::new(ev, reference);
        self.shared.take_in(identity, resource_version);
    }

    /// What a controller that stops waits for.
    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        Arc::clone(&self.shared) as Arc<dyn Outbox>
    }

    /// Waits until all that was queued or published is sent, or given up after some minutes. What waits because
    /// there were too many events about its object is not waited for.
    pub async fn flush(&self) {
        self.shared.settled().await;
    }

    /// How many events (each occurrence counts) could not be sent, and will not be.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("reporter", self.shared.reporter())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

// === impl Reporter ===

impl Default for Reporter {
    fn default() -> Self {
        Self::from(&identity())
    }
}

impl From<&Identity> for Reporter {
    fn from(program: &Identity) -> Self {
        Self::from(&*program.reporter())
    }
}

impl From<String> for Reporter {
    fn from(controller: String) -> Self {
        Self {
            controller,
            instance: None,
        }
    }
}

impl From<&str> for Reporter {
    fn from(controller: &str) -> Self {
        Self {
            controller: controller.into(),
            instance: host(),
        }
    }
}

/// The name of this host. In a pod that is the name of the pod.
fn host() -> Option<String> {
    // A shell or container runtime sets the variable; the kernel of Linux knows it anyway.
    let name = std::env::var("HOSTNAME")
        .or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"))
        .ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

// === impl EventType ===

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
