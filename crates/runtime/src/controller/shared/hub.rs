//! One watch and those who follow it.

use super::{
    follower::{Follower, Observed},
    tally::Tally,
};
use crate::{
    client,
    progress::Progress,
    sharding::Shares,
    watcher::{self, Event, Observation},
};
use futures::{StreamExt, stream::BoxStream};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, sync::Arc, task::Poll};
use tokio::{sync::mpsc, task::yield_now};

/// How much is taken in before the tasks next to this one get their turn.
const OBSERVED_PER_TURN: u32 = 128;

/// What a hub is told from outside.
pub(super) enum Order<K> {
    /// One more follows it.
    Follow(Box<dyn Follower<K>>),
    /// Something about its followers has changed.
    Look,
}

/// Drives one watch for all who follow it.
pub(super) struct Hub<K: Resource> {
    api: Api<K>,
    config: watcher::Config,
    /// What belongs to this replica, and what is known of how the server selects it.
    shares: Option<(Shares, Arc<watcher::Server>)>,
    /// Which part is asked for.
    part: Option<watcher::Part>,
    /// How far the watch has come.
    progress: Progress,
    /// The version that followers were told last.
    told: Option<u64>,
    stream: BoxStream<'static, Observation<K>>,
    followers: Vec<Box<dyn Follower<K>>>,
    /// Those that come while a list is under way, of which they have missed the beginning.
    waiting: Vec<Box<dyn Follower<K>>>,
    orders: mpsc::UnboundedReceiver<Order<K>>,
    tally: Arc<Tally>,
    /// Whether a request was sent.
    begun: bool,
    /// Whether a list is under way, and whether one was ever complete.
    listing: bool,
    listed: bool,
    failing: Option<watcher::Error>,
}

enum Next<K> {
    Order(Option<Order<K>>),
    Observation(Option<Observation<K>>),
    /// The watch has come further.
    Moved,
    /// Other objects belong to this replica.
    Share,
}

// === impl Hub ===

impl<K> Hub<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(super) fn new(
        (api, config): (Api<K>, watcher::Config),
        shares: Option<Shares>,
        orders: mpsc::UnboundedReceiver<Order<K>>,
        tally: Arc<Tally>,
    ) -> Self {
        let progress = Progress::default();
        let stream = watcher::observe(api.clone(), config.clone(), progress.clone()).boxed();
        Self {
            api,
            config,
            shares: shares.map(|shares| (shares, Arc::default())),
            part: None,
            progress,
            told: None,
            stream,
            followers: Vec::new(),
            waiting: Vec::new(),
            orders,
            tally,
            begun: false,
            listing: false,
            listed: false,
            failing: None,
        }
    }

    /// Follows the watch until nobody follows it any more and `is_over` agrees. It asks that once more, under whatever
    /// keeps others from joining.
    pub(super) async fn run(mut self, is_over: impl Fn(&dyn Fn() -> bool) -> bool) {
        if let Some((shares, _)) = &mut self.shares {
            shares.known().await;
            self.select();
        }
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order);
        }
        let (mut changed, mut taken) = (true, 0_u32);
        loop {
            if std::mem::take(&mut changed)
                && self.is_idle()
                && is_over(&|| self.orders.is_empty() && self.is_idle())
            {
                return;
            }
            match self.next().await {
                Next::Order(Some(order)) => {
                    self.obey(order);
                    changed = true;
                }
                // Nobody can join any more, and those who follow it go on.
                Next::Order(None) | Next::Observation(None) => return,
                Next::Observation(Some(observation)) => self.take_in(observation),
                Next::Moved => {}
                Next::Share => self.follow_share(),
            }
            self.tell_progress();
            taken += 1;
            if taken.is_multiple_of(OBSERVED_PER_TURN) {
                yield_now().await;
            }
        }
    }

    /// Whether nobody would miss the watch.
    fn is_idle(&self) -> bool {
        let mut all = self.followers.iter().chain(&self.waiting);
        all.all(|one| one.is_over())
    }

    async fn next(&mut self) -> Next<K> {
        let (orders, stream, progress) = (&mut self.orders, &mut self.stream, &self.progress);
        let shares = &mut self.shares;
        let changed = async {
            match shares {
                Some((shares, _)) => shares.changed().await,
                None => std::future::pending().await,
            }
        };
        let tally = &self.tally;
        let told = self.told;
        self.begun = true;
        let happened = std::future::poll_fn(move |cx| {
            if let Poll::Ready(order) = orders.poll_recv(cx) {
                return Poll::Ready(Next::Order(order));
            }
            let (polled, objects, bytes) = watcher::measured(|| stream.poll_next_unpin(cx));
            if objects > 0 {
                tally.decoded(objects, bytes);
            }
            match polled {
                Poll::Ready(observation) => Poll::Ready(Next::Observation(observation)),
                // The watch tells how far it is just before it waits for more.
                Poll::Pending if reached(progress) != told => Poll::Ready(Next::Moved),
                Poll::Pending => Poll::Pending,
            }
        });
        tokio::select! {
            biased;
            () = changed => Next::Share,
            next = happened => next,
        }
    }

    /// Lists anew if other objects belong to this replica and the server selects them. For whoever follows it is a list
    /// like any other: what belongs to others is gone in it.
    fn follow_share(&mut self) {
        let Some((_, server)) = &self.shares else {
            return;
        };
        if server.may_select() && self.select() {
            self.listing = false;
        }
    }

    /// Asks for what belongs to this replica. False if that is what is asked for.
    fn select(&mut self) -> bool {
        let Some((shares, server)) = &mut self.shares else {
            return false;
        };
        let part = watcher::Part::of(&shares.now(), Arc::clone(server));
        if self.part.as_ref().is_some_and(|before| before.is(&part)) {
            return false;
        }
        self.part = Some(part);
        self.stream = self.observe();
        true
    }

    fn observe(&self) -> BoxStream<'static, Observation<K>> {
        let (api, config) = (self.api.clone(), self.config.clone());
        let progress = self.progress.clone();
        match self.part.clone() {
            Some(part) => watcher::observe_part(api, config, progress, part).boxed(),
            None => watcher::observe(api, config, progress).boxed(),
        }
    }

    fn obey(&mut self, order: Order<K>) {
        match order {
            Order::Follow(follower) => self.admit(follower),
            Order::Look => {
                // A store goes on being filled as long as there is a watch.
                self.followers
                    .retain(|one| one.keeps_objects() || !one.is_over());
                for follower in &mut self.followers {
                    follower.admit(self.failing.as_ref());
                }
            }
        }
    }

    /// Takes in one more who follows the watch, and tells it what the others know.
    fn admit(&mut self, mut follower: Box<dyn Follower<K>>) {
        if follower.keeps_objects() {
            // It comes first: what it shows is there before others tell of it.
            self.followers.insert(0, follower);
            return self.begin_again();
        }
        if self.listing && self.followers.iter().any(|one| one.keeps_objects()) {
            return self.waiting.push(follower);
        }
        let all = self.followers.iter().find_map(|one| one.replay());
        match all {
            Some(events) => {
                for event in events {
                    follower.take_in(Observed::Event(event));
                }
                if let Some(version) = self.told {
                    follower.reached(version);
                }
                self.followers.push(follower);
            }
            None if self.listed || self.listing => {
                self.followers.push(follower);
                self.begin_again();
            }
            None => self.followers.push(follower),
        }
        if let Some(error) = &self.failing
            && let Some(follower) = self.followers.last_mut()
        {
            follower.take_in(Observed::Failed(error.retold()));
        }
    }

    /// Lists anew, for one who needs all objects when nobody keeps them. For the others it is a list like any other:
    /// it causes nothing that is not new.
    fn begin_again(&mut self) {
        if !self.begun {
            return;
        }
        self.listing = false;
        self.stream = self.observe();
    }

    fn take_in(&mut self, observation: Observation<K>) {
        self.tally.take_in(&observation);
        let observed = match observation {
            Observation::Opened => {
                self.failing = None;
                Observed::Opened
            }
            Observation::Item(Ok(event)) => {
                match &event {
                    Event::Init => self.listing = true,
                    Event::InitDone => {
                        self.listing = false;
                        self.listed = true;
                    }
                    Event::Apply(_) | Event::Delete(_) | Event::InitApply(_) => {}
                }
                Observed::Event(event)
            }
            Observation::Item(Err(error)) => {
                if !matches!(error, watcher::Error::Undecodable(_)) {
                    self.failing = Some(error.retold());
                }
                Observed::Failed(error)
            }
        };
        let noted = client::requests_noted();
        let mut rest = self.followers.iter_mut();
        if let Some(first) = rest.next() {
            // Copies are made before the first takes it in, and handed on after.
            let copies: Vec<_> = rest.map(|one| (observed.copy(), one)).collect();
            first.note(noted);
            first.take_in(observed);
            for (observed, follower) in copies {
                follower.note(noted);
                follower.take_in(observed);
            }
        }
        if !self.listing {
            for follower in std::mem::take(&mut self.waiting) {
                self.admit(follower);
            }
        }
    }

    /// Tells all how far the watch has come. They are told in the order of what they are told of.
    fn tell_progress(&mut self) {
        let reached = reached(&self.progress);
        if reached != self.told
            && let Some(version) = reached
        {
            self.told = reached;
            for follower in &mut self.followers {
                follower.reached(version);
            }
        }
    }
}

fn reached(progress: &Progress) -> Option<u64> {
    progress.is_listed().then(|| progress.version())
}
