//! Faults that a test injects in front of the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::http::Answer;
use crate::object;
use crate::requests::{RequestFacts, Verb};
use crate::resource::Resource;
use crate::status::{Status, Subject};
use crate::storage::Object;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// 403 with a Status of reason Forbidden.
    Forbidden,
    /// 404 in plain text, as for a resource that nobody serves.
    NotServed,
    /// 404 with a Status of reason `NotFound`.
    NotFound,
    /// 409 with a Status of reason Conflict.
    Conflict,
    /// HTTP 410 with a Status of reason Expired.
    Expired,
    /// 429 in plain text with `Retry-After` in seconds, as the server's flow control answers.
    TooManyRequests {
        /// The header's value.
        retry_after: u32,
    },
    /// 500 with a Status of reason `InternalError`.
    InternalError,
    /// 503 with a Status of reason `ServiceUnavailable`.
    Unavailable,
    /// 504 with a Status of reason Timeout. The request is not carried out.
    Timeout,
    /// The same after the request was carried out, which may also happen to a real server.
    LateTimeout,
    /// The connection fails when the request was carried out: nobody hears the answer.
    LostAnswer,
    /// The request waits, then the other rules and the server have their turn.
    Delay(Duration),
    /// No answer ever comes, and the request is not carried out.
    Hang,
    /// The connection fails before anything is sent.
    Refuse,
    /// A watch that ends at once: 200 without an event. Other requests are not touched.
    CloseWatch,
    /// The object of the rule's name shows this value at this JSON pointer in every list and watch
    /// event; what is stored stays as it is. Each time counts.
    Corrupt {
        /// Where: `/metadata/labels`.
        pointer: String,
        /// What stands there instead.
        value: Value,
    },
}

/// Which requests a fault is for. An empty rule is for all; each method narrows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    verbs: Vec<Verb>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_agent: Option<String>,
    times: Option<u32>,
    after: u32,
}

/// The faults of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Faults {
    rules: Arc<Mutex<Rules>>,
    drops: watch::Sender<u64>,
}

/// Keeps a fault in force; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the fault ends when its guard is dropped"]
pub struct FaultGuard {
    rules: Arc<Mutex<Rules>>,
    id: u64,
}

#[derive(Debug, Default)]
struct Rules {
    next_id: u64,
    active: Vec<Active>,
}

#[derive(Debug)]
struct Active {
    id: u64,
    rule: Rule,
    fault: Fault,
    /// How often a request fitted the rule and met the fault.
    hits: u32,
    /// How many fitting requests still pass before the first one that meets the fault.
    passes: u32,
}

/// What becomes of a request.
pub(crate) enum Verdict {
    Serve,
    Refuse,
    Answer(Answer),
    /// The request is carried out, and this is answered, or nothing.
    ServeInVain(Option<Answer>),
}

// === impl Fault ===

impl Fault {
    /// Makes an object undecodable for any typed client: its labels become a text.
    #[must_use]
    pub fn corrupt_labels() -> Self {
        Self::Corrupt {
            pointer: "/metadata/labels".to_owned(),
            value: json!("corrupt"),
        }
    }

    fn answer(&self, facts: &RequestFacts) -> Answer {
        let subject = Subject {
            group: &facts.group,
            kind: &facts.resource,
            name: &facts.name,
        };
        let status = match self {
            Self::Forbidden => Status::forbidden(subject, "an injected fault does not allow it"),
            Self::NotFound => Status::not_found(subject),
            Self::Conflict => Status::modified(subject),
            Self::Expired => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            Self::InternalError => Status::internal_error("an injected fault"),
            Self::Unavailable => Status::unavailable("an injected fault"),
            Self::Timeout | Self::LateTimeout => {
                Status::timeout("Timeout: request did not complete within the allotted timeout")
            }
            Self::NotServed => return Answer::page_not_found(),
            Self::TooManyRequests { retry_after } => {
                return Answer::Text {
                    code: 429,
                    text: "Too many requests, please try again later.\n".to_owned(),
                    retry_after: Some(*retry_after),
                };
            }
            Self::CloseWatch
            | Self::Delay(_)
            | Self::Hang
            | Self::Refuse
            | Self::LostAnswer
            | Self::Corrupt { .. } => return Answer::Events(Empty::new().boxed_unsync()),
        };
        status.into()
    }
}

// === impl Rule ===

impl Rule {
    /// A rule for every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Only requests of this verb; called again, of either.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only resources of this group; empty for the core group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Only the resource of this plural name.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only this subresource; empty for the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only this namespace; empty for requests that name none.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only the object of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only clients whose `User-Agent` starts with this.
    #[must_use]
    pub fn user_agent(mut self, prefix: &str) -> Self {
        self.user_agent = Some(prefix.to_owned());
        self
    }

    /// Only so many requests, then never again.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only after so many fitting requests have passed.
    #[must_use]
    pub fn after(mut self, requests: u32) -> Self {
        self.after = requests;
        self
    }

    fn fits(&self, facts: &RequestFacts) -> bool {
        let Self {
            verbs,
            subresource,
            user_agent,
            ..
        } = self;
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        (verbs.is_empty() || verbs.contains(&facts.verb))
            && is(subresource, &facts.subresource)
            && user_agent
                .as_ref()
                .is_none_or(|prefix| facts.user_agent.starts_with(prefix))
            && self.fits_object(&facts.group, &facts.resource, &facts.namespace, &facts.name)
    }

    fn fits_object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        is(&self.group, group)
            && is(&self.resource, resource)
            && is(&self.namespace, namespace)
            && is(&self.name, name)
    }
}

// === impl Faults ===

impl Faults {
    pub(crate) fn new(drops: watch::Sender<u64>) -> Self {
        Self {
            rules: Arc::default(),
            drops,
        }
    }

    /// Puts a fault in force until its guard is dropped, or it has met as many requests as the rule
    /// allows. Of several rules that fit, the oldest wins.
    pub fn inject(&self, rule: Rule, fault: Fault) -> FaultGuard {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let id = rules.next_id;
        rules.next_id += 1;
        let passes = rule.after;
        rules.active.push(Active {
            id,
            rule,
            fault,
            hits: 0,
            passes,
        });
        FaultGuard {
            rules: Arc::clone(&self.rules),
            id,
        }
    }

    /// Ends every watch that is open now, as a proxy that restarts does.
    pub fn drop_watches(&self) {
        self.drops.send_modify(|count| *count += 1);
    }

    /// Waits as long as faults delay a request, and says what becomes of it.
    pub(crate) async fn judge(&self, facts: &RequestFacts) -> Verdict {
        let mut delayed: Vec<u64> = Vec::new();
        loop {
            match self.next(facts, &delayed) {
                None => return Verdict::Serve,
                Some((id, Fault::Delay(duration))) => {
                    delayed.push(id);
                    sleep(duration).await;
                }
                Some((_, Fault::Hang)) => std::future::pending().await,
                Some((_, Fault::Refuse)) => return Verdict::Refuse,
                Some((_, Fault::LostAnswer)) => return Verdict::ServeInVain(None),
                Some((_, fault @ Fault::LateTimeout)) => {
                    return Verdict::ServeInVain(Some(fault.answer(facts)));
                }
                Some((_, fault)) => return Verdict::Answer(fault.answer(facts)),
            }
        }
    }

    /// The next fault that a request meets.
    fn next(&self, facts: &RequestFacts, except: &[u64]) -> Option<(u64, Fault)> {
        self.meet(|active| {
            let watch_only = active.fault == Fault::CloseWatch && facts.verb != Verb::Watch;
            let of_objects = matches!(active.fault, Fault::Corrupt { .. });
            !watch_only && !of_objects && !except.contains(&active.id) && active.rule.fits(facts)
        })
    }

    fn meet(&self, fits: impl Fn(&Active) -> bool) -> Option<(u64, Fault)> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        for active in rules.active.iter_mut().filter(|active| fits(active)) {
            if active.passes > 0 {
                active.passes -= 1;
            } else if active.rule.times.is_none_or(|times| active.hits < times) {
                active.hits += 1;
                return Some((active.id, active.fault.clone()));
            }
        }
        None
    }

    /// Whether any object of the resource is shown otherwise than it is stored.
    pub(crate) fn corrupts(&self, resource: &Resource) -> bool {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let about = |rule: &Rule| {
            let is = |wanted: &Option<String>, found: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted == found)
            };
            is(&rule.group, &resource.group) && is(&rule.resource, &resource.plural)
        };
        rules
            .active
            .iter()
            .any(|active| matches!(active.fault, Fault::Corrupt { .. }) && about(&active.rule))
    }

    fn corruption(&self, resource: &Resource, object: &Value) -> Option<(String, Value)> {
        let (group, plural) = (&resource.group, &resource.plural);
        let (namespace, name) = (object::namespace(object), object::name(object));
        let met = self.meet(|active| {
            matches!(active.fault, Fault::Corrupt { .. })
                && active.rule.fits_object(group, plural, namespace, name)
        })?;
        match met.1 {
            Fault::Corrupt { pointer, value } => Some((pointer, value)),
            Fault::Forbidden
            | Fault::NotServed
            | Fault::NotFound
            | Fault::Conflict
            | Fault::Expired
            | Fault::TooManyRequests { .. }
            | Fault::InternalError
            | Fault::Unavailable
            | Fault::Timeout
            | Fault::LateTimeout
            | Fault::LostAnswer
            | Fault::Delay(_)
            | Fault::Hang
            | Fault::Refuse
            | Fault::CloseWatch => None,
        }
    }

    /// An object as a watch event shows it.
    pub(crate) fn corrupted(&self, resource: &Resource, object: Object) -> Object {
        // Without such a fault the object need not be decoded.
        if !self.corrupts(resource) {
            return object;
        }
        match self.corruption(resource, &object) {
            Some((pointer, value)) => {
                let mut corrupt = Value::clone(&object);
                object::set_at(&mut corrupt, &pointer.replace('/', "."), value);
                Object::new(corrupt)
            }
            None => object,
        }
    }

    /// A list as the answer shows it.
    pub(crate) fn corrupted_list(&self, resource: &Resource, mut list: Value) -> Value {
        for item in list["items"].as_array_mut().into_iter().flatten() {
            if let Some((pointer, value)) = self.corruption(resource, item) {
                object::set_at(item, &pointer.replace('/', "."), value);
            }
        }
        list
    }
}

// === impl FaultGuard ===

impl FaultGuard {
    /// How many requests (or shown objects) have met the fault.
    #[must_use]
    pub fn hits(&self) -> u32 {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules
            .active
            .iter()
            .find(|active| active.id == self.id)
            .map_or(0, |active| active.hits)
    }

    /// Lets the fault stay in force as long as the server lives.
    pub fn keep(self) {
        // The rule is removed by drop alone.
        std::mem::forget(self);
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.active.retain(|active| active.id != self.id);
    }
}
