//! The loop around the machine: it does what the machine wants and hands out what that means.

use super::{
    Result,
    decode::{self, Decoded, Line, Page, Text, Unfit},
    error::{Error, Undecodable},
    event::Event,
    lines::Lines,
    origin::Origin,
    outline::Reading,
    source::{Failure, Source, Target, Trouble, is_cut, next_chunk},
};
use crate::{
    notes::{self, Note},
    progress::Progress,
    recovery,
    reflector::ObjectKey,
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use homeostat_core::{
    time::Time,
    watch::{Action, Change, Input, Machine, Output, Phase},
};
use kube::{Resource, client::Body};
use serde::de::IgnoredAny;
use std::{collections::VecDeque, future, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Follows one collection.
pub(super) struct Driver<K> {
    source: Source,
    what: Arc<Origin>,
    /// Since when requests fail.
    failing_since: Option<Instant>,
    machine: Machine,
    reading: Reading,
    random: fastrand::Rng,
    /// When this was first polled: the origin of the machine's time.
    origin: Option<Instant>,
    watch: Option<Watch>,
    /// What is to be handed out, in order.
    ready: VecDeque<Ready<K>>,
    /// Whether a list comes in.
    listing: bool,
    /// Objects that were deleted while they were being listed.
    held: Vec<Decoded<K>>,
    /// Who is told how far the follower has come, and the version that was told last.
    progress: Option<(Progress, String)>,
}

/// What can be seen of a watch from outside.
pub(crate) enum Observation<K> {
    /// What the watch delivers.
    Item(Result<Event<K>>),
    /// The server accepted a watch: what failed before works again.
    Opened,
}

enum Ready<K> {
    Observation(Observation<K>),
    /// The objects of a page, which are decoded when their turn comes.
    Page(Page),
}

/// An open watch.
struct Watch {
    /// `None` when it has ended.
    body: Option<Body>,
    lines: Lines,
    /// The first lines of something that takes several.
    begun: Vec<u8>,
}

/// What came of an action.
enum Happened<K> {
    Page(Page),
    Opened(Body),
    Object(Change, Decoded<K>),
    Bookmark {
        version: String,
        initial_events_end: bool,
    },
    Closed,
    Failed(Failure),
    Awake,
}

/// What an output can be about.
enum Subject<K> {
    Nothing,
    Page(Page),
    Object(Decoded<K>),
    Failure(Failure),
}

/// The longest line of a watch. Servers store objects of 1.5 MiB by default.
const LINE_LIMIT: usize = 64 << 20;
/// What is left of a pause that is nearly over.
const NEARLY: Duration = Duration::from_secs(5);
/// How long an answer may take when others are answered after an outage, before the request is sent again.
const SUSPECT: Duration = Duration::from_secs(1);
/// How long something may be that takes several lines. Servers write each event in one, and only what answers in
/// their stead, with a `Status`, may not.
const BEGUN_LIMIT: usize = 64 << 10;

// === impl Driver ===

impl<K: Resource + Text> Driver<K> {
    /// All that happens, for ever.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Event<K>>> + Send {
        self.observe().filter_map(|observation| {
            future::ready(match observation {
                Observation::Item(item) => {
                    if let Ok(Event::Delete(obj)) = &item {
                        notes::note(|| Note::Gone(ObjectKey::of(obj)));
                    }
                    Some(item)
                }
                Observation::Opened => None,
            })
        })
    }
}

impl<K: Text> Driver<K> {
    pub(super) fn new(source: Source, what: Arc<Origin>, machine: Machine) -> Self {
        Self {
            source,
            what,
            failing_since: None,
            machine,
            reading: Reading::all(),
            random: fastrand::Rng::new(),
            origin: None,
            watch: None,
            ready: VecDeque::new(),
            listing: false,
            held: Vec::new(),
            progress: None,
        }
    }

    /// The same, and `progress` is told how far whoever follows has come.
    pub(super) fn telling(self, progress: Progress) -> Self {
        Self {
            progress: Some((progress, String::new())),
            ..self
        }
    }

    /// The same, and objects are read in this way.
    pub(super) fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// All that happens, for ever, and when a watch is open.
    pub(super) fn observe(self) -> impl Stream<Item = Observation<K>> + Send {
        let what = Arc::clone(&self.what);
        // In a box, because each item moves it out of the stream and back.
        let items = stream::unfold(Box::new(self), |mut driver| async move {
            let item = driver.next().await;
            Some((item, driver))
        });
        let mut items = Box::pin(items);
        stream::poll_fn(move |cx| {
            what.announce();
            items.as_mut().poll_next(cx)
        })
    }

    async fn next(&mut self) -> Observation<K> {
        loop {
            if let Some(item) = self.pop() {
                return item;
            }
            self.tell_progress();
            let happened = self.act().await;
            self.take_in(happened);
        }
    }

    /// Whoever asks for more has taken in all that was handed out before.
    fn tell_progress(&mut self) {
        let Some((progress, told)) = &mut self.progress else {
            return;
        };
        let version = self.machine.version();
        if version != told {
            told.clear();
            told.push_str(version);
            match version.parse() {
                Ok(version) => progress.listed(Some(version)),
                Err(_) if version.is_empty() => {}
                // A server without numbers: nobody can compare with that.
                Err(_) => progress.listed(None),
            }
        }
    }

    /// Does what the machine wants.
    async fn act(&mut self) -> Happened<K> {
        let origin = self.origin();
        let moment = |time: Time| origin + time.since(Time::ORIGIN);
        let action = self.machine.action();
        if let Action::Read { deadline } = action {
            return self.read(moment(deadline)).await;
        }
        self.watch = None;
        if let Action::Sleep { until } = action {
            let sleep = sleep_until(moment(until));
            match self.machine.not_before() {
                None => sleep.await,
                Some(earliest) => tokio::select! {
                    () = sleep => {}
                    () = told_not_before(moment(earliest), moment(until)) => {}
                },
            }
            return Happened::Awake;
        }
        loop {
            let suspect = Instant::now() + SUSPECT;
            tokio::select! {
                answer = ask(&self.source, action.clone()) => {
                    return answer.unwrap_or_else(Happened::Failed);
                }
                // The server answers others, so it may never have heard of this.
                () = told_since(suspect) => {}
            }
        }
    }

    /// Reads a line of the open watch.
    async fn read(&mut self, deadline: Instant) -> Happened<K> {
        let patience = deadline.saturating_duration_since(Instant::now());
        let Some(watch) = &mut self.watch else {
            return Happened::Closed;
        };
        let read = timeout_at(deadline, watch.message(&self.reading, self.listing)).await;
        match read {
            Err(_) => Happened::Failed(Trouble::Silent(rounded(patience)).into()),
            Ok(Err(trouble)) => Happened::Failed(trouble.into()),
            Ok(Ok(None)) => Happened::Closed,
            Ok(Ok(Some(Line::Object(change, object)))) => Happened::Object(change, object),
            Ok(Ok(Some(Line::Bookmark {
                version,
                initial_events_end,
            }))) => Happened::Bookmark {
                version,
                initial_events_end,
            },
            Ok(Ok(Some(Line::Error(status)))) => Happened::Failed(Failure::Status(status)),
        }
    }

    /// Tells the machine what happened, and makes ready what it says to that.
    fn take_in(&mut self, happened: Happened<K>) {
        let now = Time::ORIGIN + self.origin().elapsed();
        let random = self.random.f64();
        let mut on = |input: Input<'_>| self.machine.on(now, input, random);
        let (outputs, subject) = match happened {
            Happened::Page(page) => {
                let continue_token = page.continue_token.as_deref();
                let outputs = on(Input::Page {
                    version: &page.version,
                    continue_token,
                });
                (outputs, Subject::Page(page))
            }
            Happened::Opened(body) => {
                let outputs = on(Input::Opened);
                let opened = Ready::Observation(Observation::Opened);
                self.ready.push_back(opened);
                works(&self.what, &mut self.failing_since);
                self.watch = Some(Watch {
                    body: Some(body),
                    lines: Lines::new(LINE_LIMIT),
                    begun: Vec::new(),
                });
                (outputs, Subject::Nothing)
            }
            Happened::Object(change, object) => {
                let outputs = on(Input::Event {
                    change,
                    version: decode::version(&object),
                });
                (outputs, Subject::Object(object))
            }
            Happened::Bookmark {
                version,
                initial_events_end,
            } => (
                on(Input::Bookmark {
                    version: &version,
                    initial_events_end,
                }),
                Subject::Nothing,
            ),
            Happened::Closed => (on(Input::Closed), Subject::Nothing),
            Happened::Failed(failure) => {
                let fault = failure.fault();
                let outputs = on(Input::Failed(fault));
                tracing::debug!(collection = %self.source.target, ?fault, "a watch was interrupted");
                (outputs, Subject::Failure(failure))
            }
            Happened::Awake => (on(Input::Awake), Subject::Nothing),
        };
        self.make_ready(outputs, subject);
    }

    fn make_ready(&mut self, outputs: &[Output], mut subject: Subject<K>) {
        for output in outputs {
            match (output, std::mem::replace(&mut subject, Subject::Nothing)) {
                (Output::Objects, Subject::Page(page)) => self.ready.push_back(Ready::Page(page)),
                (Output::InitApply, Subject::Object(object)) => {
                    self.held.retain(|held| !decode::same_object(held, &object));
                    self.push_object(object, Phase::List, Event::InitApply);
                }
                (Output::Apply, Subject::Object(object)) => {
                    self.push_object(object, Phase::Watch, Event::Apply);
                }
                (Output::Delete, Subject::Object(object)) => self.push_delete(object),
                (Output::Hold, Subject::Object(object)) => self.held.push(object),
                (Output::Report(phase), Subject::Failure(failure)) => {
                    let error = Error::new(failure, *phase, &self.source.target);
                    if !self.what.set_failing(true) {
                        self.failing_since = Some(Instant::now());
                        tracing::info!(watch = %self.what, %error, "a watch fails; it is tried again");
                    }
                    self.push(Err(error));
                }
                (Output::Init, other) => {
                    subject = other;
                    self.listing = true;
                    self.held.clear();
                    self.push(Ok(Event::Init));
                }
                (Output::InitDone, _) => {
                    self.listing = false;
                    self.push(Ok(Event::InitDone));
                    for object in std::mem::take(&mut self.held) {
                        self.push_delete(object);
                    }
                }
                (
                    Output::Objects
                    | Output::InitApply
                    | Output::Apply
                    | Output::Delete
                    | Output::Hold
                    | Output::Report(_),
                    _,
                ) => debug_assert!(false, "{output:?} is about something else"),
            }
        }
    }

    fn push(&mut self, item: Result<Event<K>>) {
        let observation = Observation::Item(item);
        self.ready.push_back(Ready::Observation(observation));
    }

    fn push_object(&mut self, object: Decoded<K>, phase: Phase, event: fn(K) -> Event<K>) {
        let item = object.map(event);
        self.push(item.map_err(|unfit| self.undecodable(*unfit, phase, false)));
    }

    fn push_delete(&mut self, object: Decoded<K>) {
        let item = object.map(Event::Delete);
        self.push(item.map_err(|unfit| self.undecodable(*unfit, Phase::Watch, true)));
    }

    /// Takes out what is to be handed out next.
    fn pop(&mut self) -> Option<Observation<K>> {
        loop {
            match self.ready.pop_front()? {
                Ready::Observation(observation) => return Some(observation),
                Ready::Page(mut page) => {
                    if let Some(object) = page.next(&self.reading) {
                        self.ready.push_front(Ready::Page(page));
                        let item = object.map(Event::InitApply);
                        let item =
                            item.map_err(|unfit| self.undecodable(*unfit, Phase::List, false));
                        return Some(Observation::Item(item));
                    }
                }
            }
        }
    }

    fn undecodable(&self, unfit: Unfit, phase: Phase, deleted: bool) -> Error {
        undecodable(&self.source.target, unfit, phase, deleted)
    }

    fn origin(&mut self) -> Instant {
        *self.origin.get_or_insert_with(Instant::now)
    }
}

// === impl Watch ===

impl Watch {
    /// What the next line says, or the next lines if it takes several; `None` at the end.
    async fn message<K: Text>(
        &mut self,
        reading: &Reading,
        listing: bool,
    ) -> Result<Option<Line<K>>, Trouble> {
        loop {
            let Some(line) = self.line().await? else {
                let begun = std::mem::take(&mut self.begun);
                return if begun.is_empty() {
                    Ok(None)
                } else {
                    decode::line(&begun, reading, listing).map(Some)
                };
            };
            if self.begun.is_empty() {
                match decode::line(&line, reading, listing) {
                    Err(_) if decode::is_begun(&line) && line.len() < BEGUN_LIMIT => {
                        self.begun.extend_from_slice(&line);
                    }
                    said => return said.map(Some),
                }
                continue;
            }
            self.begun.push(b'\n');
            self.begun.extend_from_slice(&line);
            // Only the last line ends what was begun, and that is where it is looked at.
            let may_end = line.trim_ascii_end().ends_with(b"}");
            if may_end && !decode::is_begun(&self.begun) || self.begun.len() > BEGUN_LIMIT {
                let whole = std::mem::take(&mut self.begun);
                return decode::line(&whole, reading, listing).map(Some);
            }
        }
    }

    /// The next line; `None` at the end.
    async fn line(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            if let Some(line) = self.lines.next()? {
                return Ok(Some(line));
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            match next_chunk(body).await {
                Ok(Some(chunk)) => self.lines.push(chunk),
                Err(error) if !is_cut(&error) => return Err(Trouble::Request(error)),
                // The last line may lack its end; half a line comes again with the next watch.
                Ok(None) | Err(_) => {
                    self.body = None;
                    let rest = self.lines.finish();
                    let ends = !self.begun.is_empty() && !rest.is_empty();
                    let whole = ends || serde_json::from_slice::<IgnoredAny>(&rest).is_ok();
                    return Ok(whole.then_some(rest));
                }
            }
        }
    }
}

/// What users hear of an object that does not fit its type.
pub(super) fn undecodable(target: &Target, unfit: Unfit, phase: Phase, deleted: bool) -> Error {
    let Unfit {
        kind,
        meta,
        path,
        message,
    } = unfit;
    Error::Undecodable(Box::new(Undecodable {
        kind: kind.unwrap_or_else(|| target.plural.clone()),
        namespace: meta.namespace,
        name: meta.name.unwrap_or_default(),
        resource_version: meta.resource_version,
        path,
        message,
        deleted,
        context: target.context(phase),
    }))
}

/// Sends the request that the machine wants.
async fn ask<K>(source: &Source, action: Action) -> Result<Happened<K>, Failure> {
    match action {
        Action::List {
            limit,
            continue_token,
            resource_version,
            timeout,
        } => source
            .list(limit, continue_token, resource_version, timeout)
            .await
            .and_then(|body| Page::open(&body))
            .map(|page| {
                if let Some(part) = &source.part {
                    part.note(page.is_part);
                }
                Happened::Page(page)
            }),
        Action::Watch {
            resource_version,
            send_initial_events,
            bookmarks,
            timeout,
            start_timeout,
        } => source
            .watch(
                &resource_version,
                send_initial_events,
                bookmarks,
                timeout,
                start_timeout,
            )
            .await
            .map(Happened::Opened),
        Action::Read { .. } | Action::Sleep { .. } => Ok(Happened::Closed),
    }
}

/// Completes when somebody tells that the server may answer again, and the server does not want to be left alone.
///
/// A pause until `end` that is nearly over is not worth it: not all watches have to come back at the same moment.
async fn told_not_before(earliest: Instant, end: Instant) {
    told_since(Instant::now()).await;
    if end.saturating_duration_since(Instant::now()) < NEARLY {
        sleep_until(end).await;
    }
    sleep_until(earliest).await;
}

/// Completes when somebody tells that the server answers again, at this moment or later.
async fn told_since(moment: Instant) {
    loop {
        recovery::told().await;
        if moment <= Instant::now() {
            return;
        }
    }
}

/// Takes in that the server accepts a watch.
fn works(what: &Origin, failing_since: &mut Option<Instant>) {
    let since = failing_since.take();
    if what.set_failing(false)
        && let Some(since) = since
    {
        let failed_for = since.elapsed();
        tracing::info!(watch = %what, ?failed_for, "a watch works again");
    }
}

/// In whole seconds, for people.
fn rounded(duration: Duration) -> Duration {
    Duration::from_secs((duration + Duration::from_millis(500)).as_secs())
}
