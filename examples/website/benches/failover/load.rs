//! Changes, as many in a second as are wanted.

use super::sites::{SITES, name};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval},
};
use website::Website;

/// How many changes are made in a second.
pub(crate) const RATE: u32 = 200;
/// How many changes may be under way at once.
const UNDER_WAY: usize = 64;

/// Changes that are being made.
pub(crate) struct Load(JoinHandle<(usize, usize)>);

// === impl Load ===

impl Load {
    /// Makes changes for so long.
    pub(crate) fn start(client: &Client, length: Duration) -> Self {
        let sites = Api::default_namespaced(client.clone());
        Self(tokio::spawn(change(sites, length)))
    }

    /// Waits for the end, and gives how many changes there were, and how many of them the server did not take.
    pub(crate) async fn ended(self) -> (usize, usize) {
        self.0.await.unwrap()
    }
}

async fn change(sites: Api<Website>, length: Duration) -> (usize, usize) {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    // What the machine was too slow for is made up.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let mut changes = JoinSet::new();
    let end = Instant::now() + length;
    let mut count = 0_usize;
    while Instant::now() < end {
        ticks.tick().await;
        let room = Arc::clone(&room).acquire_owned().await;
        let (sites, page, name) = (
            sites.clone(),
            format!("<p>Page {count}"),
            name(count % SITES),
        );
        count += 1;
        changes.spawn(async move {
            let _room = room;
            let patch = Patch::Merge(json!({ "spec": { "html": page } }));
            let answer = sites.patch(&name, &PatchParams::default(), &patch).await;
            answer.is_ok()
        });
    }
    let taken = changes.join_all().await.into_iter().filter(|taken| *taken);
    (count, count - taken.count())
}
