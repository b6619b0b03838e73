//! Requests for objects.

mod body;
mod duplicates;

use std::sync::Arc;

use serde_json::Value;
use tokio::time::timeout;

use super::incoming::Incoming;
use super::media::Media;
use super::presentation::Presentation;
use super::presentation::Wanted;
use super::route::ResourcePath;

use super::{Answer, watch};
use crate::registry::{
    self, ListWant, Patch, PatchKind, Registry, Reply, Target, Vouched, WriteOptions, parse_version,
};
use crate::resource::{Catalog, Custom, Resource};
use crate::state::Core;
use crate::status::Status;
use crate::task;

/// What came of a request: the answer, and whether something was written.
pub(super) struct Outcome {
    pub(super) answer: Answer,
    pub(super) changed: bool,
}

/// Methods by what they do to an object or a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// Media types of patches.
const PATCH_TYPES: [(&str, PatchKind); 4] = [
    ("application/json-patch+json", PatchKind::Json),
    ("application/merge-patch+json", PatchKind::Merge),
    (
        "application/strategic-merge-patch+json",
        PatchKind::Strategic,
    ),
    ("application/apply-patch+yaml", PatchKind::Apply),
];

/// Those that custom resources take.
const CUSTOM_PATCH_TYPES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// From how many bytes on a body is looked through before the registry is held for it. To read and check so much takes
/// about a millisecond.
const LARGE: usize = 8 * 1024;

/// The media types of patches that a resource takes.
pub(super) fn patch_types(resource: &Resource) -> Vec<&'static str> {
    if resource.is_custom() {
        CUSTOM_PATCH_TYPES.to_vec()
    } else {
        PATCH_TYPES.iter().map(|(name, _)| *name).collect()
    }
}

/// Answers a request for an object or a collection.
pub(super) async fn serve(
    core: &Arc<Core>,
    path: &ResourcePath,
    request: &Arc<Incoming>,
) -> Outcome {
    let (target, verb) = match core.stage.with(|registry| find(registry, path, request)) {
        Ok(found) => found,
        Err(answer) => {
            return Outcome {
                answer,
                changed: false,
            };
        }
    };
    let mut outcome = carry_on(core, &target, verb, request).await;
    if let Some(deprecation) = target.resource.deprecation() {
        outcome.answer.warn(deprecation.to_owned());
    }
    outcome
}

async fn carry_on(
    core: &Arc<Core>,
    target: &Target,
    verb: Verb,
    request: &Arc<Incoming>,
) -> Outcome {
    let wanted = match verb {
        Verb::Watch => Wanted::Stream,
        Verb::List => Wanted::List,
        Verb::Get => Wanted::Object,
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
            Wanted::Reply
        }
    };
    let presentation = match Presentation::choose(&target.resource, request, wanted) {
        Ok(presentation) => presentation,
        Err(status) => {
            return Outcome {
                answer: status.into(),
                changed: false,
            };
        }
    };
    let result = match verb {
        Verb::Watch => open_watch(core, target.clone(), request, presentation),
        Verb::List => list(core, target, request, presentation).await,
        Verb::Get => get(core, target, request, presentation).await,
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
            let ahead = look_ahead(core, target, verb, request).await;
            return write(core, target, verb, request, ahead, presentation);
        }
    };
    Outcome {
        answer: result.unwrap_or_else(Answer::from),
        changed: false,
    }
}

/// What was found out about a write before others have to wait for it.
#[derive(Default)]
struct Ahead {
    body: Option<ReadBody>,
    vouched: Option<Arc<Vouched>>,
}

/// The object in a body, and the paths of members that occur more than once.
type ReadBody = (Result<Value, Status>, Vec<String>);

/// Reads a large body, and looks through it, before others have to wait for its write. The same for the first object
/// of a custom kind, for which what the definition says is compiled. In process everything goes on in one order, so
/// nothing is done beside it there.
async fn look_ahead(
    core: &Arc<Core>,
    target: &Target,
    verb: Verb,
    request: &Arc<Incoming>,
) -> Ahead {
    if !request.from_outside || request.body.is_empty() {
        return Ahead::default();
    }
    let resource = &target.resource;
    let is_first = || resource.custom.as_ref().is_some_and(Custom::is_first);
    if !is_first() && request.body.len() < LARGE {
        return Ahead::default();
    }
    let (core, request) = (Arc::clone(core), Arc::clone(request));
    let resource = Arc::clone(resource);
    let work = move || Ahead::of(&core, &resource, verb, &request);
    task::apart(work).await.unwrap_or_default()
}

// === impl Ahead ===

impl Ahead {
    fn of(core: &Core, resource: &Arc<Resource>, verb: Verb, request: &Incoming) -> Self {
        let look = |object: &Value| registry::look_ahead(resource, object).map(Arc::new);
        match verb {
            Verb::Create | Verb::Update => {
                let body = read_object(core, resource, request);
                Self {
                    vouched: body.0.as_ref().ok().and_then(look),
                    body: Some(body),
                }
            }
            Verb::Patch => Self {
                vouched: serde_json::from_slice(&request.body)
                    .ok()
                    .as_ref()
                    .and_then(look),
                body: None,
            },
            Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => {
                Self::default()
            }
        }
    }
}

fn read_object(core: &Core, resource: &Resource, request: &Incoming) -> ReadBody {
    let mut duplicates = Vec::new();
    let body = body::object(&core.config, request, &resource.kind, &mut duplicates);
    (body, duplicates)
}

fn open_watch(
    core: &Arc<Core>,
    target: Target,
    request: &Incoming,
    presentation: Presentation,
) -> Result<Answer, Status> {
    let mut target = target;
    let mut options = request.query.list_options(&target.resource, &core.config)?;
    // The old path of an object's watch.
    if !target.name.is_empty() {
        options
            .selection
            .only_name(&std::mem::take(&mut target.name));
    }
    watch::open(core, target, options, presentation).map(Answer::Events)
}

async fn get(
    core: &Arc<Core>,
    target: &Target,
    request: &Incoming,
    presentation: Presentation,
) -> Result<Answer, Status> {
    let version = parse_version(request.query.get("resourceVersion"))
        .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
    reach(core, version).await;
    let object = core.stage.with(|registry| {
        let current = registry.store.revision();
        if version > current {
            return Err(Status::future_version(version, current));
        }
        registry.get(target)
    })?;
    Ok(presentation.object(&target.resource, &object, 200, Vec::new(), core.now()))
}

async fn list(
    core: &Arc<Core>,
    target: &Target,
    request: &Incoming,
    presentation: Presentation,
) -> Result<Answer, Status> {
    let options = request.query.list_options(&target.resource, &core.config)?;
    options.check_list()?;
    if options.continue_token.is_empty() {
        let (ListWant::NotOlderThan(version) | ListWant::Exact(version)) = options.want()?;
        reach(core, version).await;
    }
    let as_stored = presentation == Presentation::Object
        && Media::of_answer(&request.accept) == Media::Json
        && !core.faults.corrupts(&target.resource);
    if as_stored {
        let text = core
            .stage
            .with(|registry| registry.list_text(target, &options))?;
        return Ok(Answer::List {
            text,
            warnings: Vec::new(),
        });
    }
    let body = core
        .stage
        .with(|registry| registry.list(target, &options))?;
    let body = core.faults.corrupted_list(&target.resource, body);
    Ok(presentation.list(&target.resource, body, core.now()))
}

/// Waits for a version, but not for long; whoever needs it has to look whether it is there.
async fn reach(core: &Arc<Core>, version: u64) {
    if version == 0 {
        return;
    }
    let mut revisions = core.stage.with(|registry| registry.store.revisions());
    let reached = revisions.wait_for(|revision| *revision >= version);
    let _ = timeout(core.config.fresh_read_timeout, reached).await;
}

/// The target of a request and what is to be done to it.
fn find(
    registry: &Registry,
    path: &ResourcePath,
    request: &Incoming,
) -> Result<(Target, Verb), Answer> {
    let catalog = &registry.catalog;
    let Some(resource) = catalog.find(&path.group, &path.version, &path.plural) else {
        return Err(not_served(&path.group));
    };
    if resource.namespaced && path.namespace.is_empty() && !path.name.is_empty()
        || !resource.namespaced && !path.namespace.is_empty()
        || path.too_long
    {
        return Err(if resource.is_custom() {
            Answer::page_not_found()
        } else {
            Status::no_such_resource().into()
        });
    }
    let target = Target {
        resource: Arc::clone(resource),
        namespace: path.namespace.clone(),
        name: path.name.clone(),
        subresource: path.subresource.clone(),
    };
    if let Some(name) = &path.subresource
        && resource.subresource(name).is_none()
    {
        return Err(unknown_subresource(resource, &target).into());
    }
    let verb = verb(&target, path, request).map_err(Answer::from)?;
    if verb == Verb::Create && target.resource.is_custom() && is_misplaced(&target) {
        return Err(Answer::page_not_found());
    }
    if let Some(status) = nothing_runs(registry, &target) {
        return Err(status.into());
    }
    Ok((target, verb))
}

/// The answer for subresources that lead to something that runs: nothing does here.
fn nothing_runs(registry: &Registry, target: &Target) -> Option<Status> {
    let resource = &target.resource;
    if !resource.group.is_empty() {
        return None;
    }
    let leads_to_pod = match (resource.plural.as_str(), target.subresource.as_deref()?) {
        ("pods", "attach" | "exec" | "log" | "portforward" | "proxy") => true,
        ("nodes" | "services", "proxy") => false,
        _ => return None,
    };
    if let Err(status) = registry.get(&target.main()) {
        return Some(status);
    }
    Some(if leads_to_pod {
        Status::bad_request(format!("pod {} does not have a host assigned", target.name))
    } else {
        let (kind, name) = (&resource.singular, &target.name);
        Status::unavailable(format!("no endpoints available for {kind} {name:?}"))
    })
}

/// Whether a namespace is missing.
fn is_misplaced(target: &Target) -> bool {
    target.resource.namespaced && target.namespace.is_empty()
}

/// The answer for a resource that nobody serves.
fn not_served(group: &str) -> Answer {
    if Catalog::is_builtin_group(group) {
        Status::no_such_resource().into()
    } else {
        Answer::page_not_found()
    }
}

fn unknown_subresource(resource: &Resource, target: &Target) -> Status {
    if resource.is_custom() {
        Status::not_found(resource.subject(&target.name))
    } else {
        Status::no_such_resource()
    }
}

fn verb(target: &Target, path: &ResourcePath, request: &Incoming) -> Result<Verb, Status> {
    let resource = &target.resource;
    let collection = target.name.is_empty();
    let watching = request.query.flag("watch");
    let verb = match request.method.as_str() {
        "GET" if path.watch => Verb::Watch,
        "GET" if !collection => Verb::Get,
        "GET" if watching => Verb::Watch,
        "GET" => Verb::List,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if collection => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => return Err(Status::method_not_allowed()),
    };
    let verbs = match &target.subresource {
        Some(name) => resource
            .subresource(name)
            .map(|subresource| &subresource.verbs),
        None => Some(&resource.verbs),
    };
    let known = verbs.is_some_and(|verbs| verbs.iter().any(|one| one == verb.name()));
    let fits = match verb {
        Verb::Create if target.subresource.is_some() => true,

        Verb::Create => collection && (resource.is_custom() || !is_misplaced(target)),
        Verb::Update | Verb::Patch if resource.is_custom() && collection => {
            return Err(Status::bad_request("name must be provided"));
        }
        Verb::Update | Verb::Patch => !collection,
        Verb::DeleteCollection => !is_misplaced(target),
        Verb::Get | Verb::List | Verb::Watch | Verb::Delete => true,
    };
    if known && fits {
        return Ok(verb);
    }
    Err(if resource.is_custom() {
        Status::verb_not_supported(resource.subject(""), verb.name())
    } else {
        Status::method_not_allowed()
    })
}

// === impl Verb ===

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

fn write(
    core: &Arc<Core>,
    target: &Target,
    verb: Verb,
    request: &Incoming,
    ahead: Ahead,
    presentation: Presentation,
) -> Outcome {
    let (result, changed) = core.stage.with(|registry| {
        let before = registry.store.revision();
        let result = carry_out(core, registry, target, verb, request, ahead);
        (result, registry.store.revision() != before)
    });
    let answer = match result {
        Ok(Written::Object(reply)) => {
            let Reply {
                code,
                body,
                warnings,
            } = reply;
            presentation.object(&target.resource, &body, code, warnings, core.now())
        }
        Ok(Written::List(list)) => presentation.list(&target.resource, list, core.now()),
        Err(status) => status.into(),
    };
    Outcome { answer, changed }
}

/// What a write answers.
enum Written {
    Object(Reply),
    List(Value),
}

fn carry_out(
    core: &Core,
    registry: &mut Registry,
    target: &Target,
    verb: Verb,
    request: &Incoming,
    ahead: Ahead,
) -> Result<Written, Status> {
    let resource = &target.resource;
    let Ahead { body, vouched } = ahead;
    let options = |kind| {
        let (requester, user_agent) = (&request.requester, &request.user_agent);
        let options = request.query.write_options(kind, requester, user_agent)?;
        Ok::<_, Status>(WriteOptions { vouched, ..options })
    };
    let body = || {
        let (body, duplicates) = body.unwrap_or_else(|| read_object(core, resource, request));
        Ok::<_, Status>((body?, duplicates))
    };
    let reply = match verb {
        Verb::Create => {
            let mut options = options("CreateOptions")?;
            options.body = request.body.clone();
            let (body, duplicates) = body()?;
            options.duplicates = duplicates;
            registry.create(target, body, &options)?
        }
        Verb::Update => {
            let mut options = options("UpdateOptions")?;
            options.body = request.body.clone();
            let (body, duplicates) = body()?;
            options.duplicates = duplicates;
            registry.update(target, body, &options)?
        }
        Verb::Patch => {
            let options = options("PatchOptions")?;
            let patch = read_patch(core, registry, target, request)?;
            registry.patch(target, &patch, &options)?
        }
        Verb::Delete => {
            let body = body::delete_options(&core.config, request)?;
            let options = request.query.delete_options(body.as_ref())?;
            registry.delete(target, &options)?
        }
        Verb::DeleteCollection => {
            let body = body::delete_options(&core.config, request)?;
            let options = request.query.delete_options(body.as_ref())?;
            let list = request.query.list_options(resource, &core.config)?;
            return registry
                .delete_collection(target, &list, &options)
                .map(Written::List);
        }
        Verb::Get | Verb::List | Verb::Watch => return Err(Status::method_not_allowed()),
    };
    Ok(Written::Object(reply))
}

fn read_patch(
    core: &Core,
    registry: &Registry,
    target: &Target,
    request: &Incoming,
) -> Result<Patch, Status> {
    let resource = &*target.resource;
    let media_type = request.media_type();
    let kind = PATCH_TYPES
        .iter()
        .find(|(name, _)| *name == media_type)
        .map(|(_, kind)| *kind);
    let kind = match kind {
        Some(PatchKind::Strategic) | None if resource.is_custom() => {
            return Err(Status::unsupported_media_type(&CUSTOM_PATCH_TYPES));
        }
        None => return Err(Status::unsupported_patch_type()),
        Some(kind) => kind,
    };
    let force = request.query.flag("force");
    if kind != PatchKind::Apply && !request.query.get("force").is_empty() {
        return Err(Status::force_without_apply());
    }
    let body = match body::patch(&core.config, request, kind) {
        Ok(body) => body,
        // What is not there is missed before anybody reads what is to be done with it.
        Err(status) if kind != PatchKind::Apply => {
            return Err(registry.get(&target.main()).map_or_else(
                |missing| {
                    if missing.is_not_found() {
                        missing
                    } else {
                        status.clone()
                    }
                },
                |_| status.clone(),
            ));
        }
        Err(status) => return Err(status),
    };
    Ok(Patch { kind, body, force })
}
