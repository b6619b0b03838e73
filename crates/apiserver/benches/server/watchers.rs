//! How long one write takes to reach a thousand watchers.

use std::time::Duration;

use futures::future::join_all;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::requests::{JSON, MAPS, map, p99, per_second};
use crate::way::Way;
use crate::{Figure, Target};

pub(crate) const OPERATION: &str = "fan-out";

const WATCHERS: usize = 1_000;

const WRITES: usize = 100;

/// One operation is one write that all have seen.
pub(crate) async fn measure(way: Way) -> Figure {
    let mut bodies = join_all((0..WATCHERS).map(async |_| {
        let mut lane = way.lane().await;
        let path = format!("{MAPS}?watch=1&resourceVersion=1");
        lane.open("GET", &path, JSON, "").await.into_body()
    }))
    .await;
    let mut lane = way.lane().await;
    let mut times = Vec::new();
    let start = Instant::now();
    for index in 0..WRITES {
        let begin = Instant::now();
        let write = lane
            .send("POST", MAPS, JSON, &map(&format!("m{index}")))
            .await;
        drop(write);
        let seen = bodies.iter_mut().map(async |body| {
            let frame = body.frame().await.unwrap().unwrap();
            assert!(frame.data_ref().is_some_and(|data| data.ends_with(b"\n")));
        });
        join_all(seen).await;
        times.push(begin.elapsed());
    }
    let per_second = per_second(WRITES, start.elapsed());
    Figure {
        way: way.name,
        operation: OPERATION,
        per_second,
        p99: p99(&mut times),
        target: Some(Target::P99(Duration::from_millis(10))),
    }
}
