//! Requests, one kind after the other.

use std::pin::Pin;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::way::{Lane, Way};
use crate::{Figure, LISTED, Target};

type Measuring = Pin<Box<dyn Future<Output = Figure>>>;

/// The name of an operation, and what measures so many of it.
type Operation = (&'static str, fn(Way, usize) -> Measuring);

/// What is measured, and how.
pub(crate) const OPERATIONS: [Operation; 5] = [
    ("create", |way, count| Box::pin(create(way, count))),
    ("get", |way, count| Box::pin(get(way, count))),
    ("merge-patch", |way, count| {
        Box::pin(merge_patch(way, count))
    }),
    ("apply", |way, count| Box::pin(apply(way, count))),
    ("list", |way, count| Box::pin(list(way, count))),
];

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const JSON: &str = "application/json";

/// How many objects are read and changed in turn.
const OBJECTS: usize = 1_000;

/// A `ConfigMap` with 1 KB in it.
pub(crate) fn map(name: &str) -> String {
    let data = "0123456789abcdef".repeat(64);
    json!({ "metadata": { "name": name }, "data": { "k": data } }).to_string()
}

pub(crate) async fn fill(way: &Way, count: usize) {
    let mut lane = way.lane().await;
    for index in 0..count {
        lane.send("POST", MAPS, JSON, &map(&format!("m{index}")))
            .await;
    }
}

async fn create(way: Way, count: usize) -> Figure {
    let target = (way.lanes == 1).then_some(Target::PerSecond(30_000.0));
    let create = async |lane: &mut Lane, index: usize| {
        lane.send("POST", MAPS, JSON, &map(&format!("m{index}")))
            .await;
    };
    measure(way, "create", count, target, create).await
}

async fn get(way: Way, count: usize) -> Figure {
    fill(&way, OBJECTS).await;
    let target = (way.lanes == 1).then_some(Target::PerSecond(100_000.0));
    let get = async |lane: &mut Lane, index: usize| {
        let path = format!("{MAPS}/m{}", index % OBJECTS);
        lane.send("GET", &path, JSON, "").await;
    };
    measure(way, "get", count, target, get).await
}

async fn merge_patch(way: Way, count: usize) -> Figure {
    fill(&way, OBJECTS).await;
    let patch = async |lane: &mut Lane, index: usize| {
        let path = format!("{MAPS}/m{}", index % OBJECTS);
        let body = json!({ "data": { "n": index.to_string() } }).to_string();
        lane.send("PATCH", &path, "application/merge-patch+json", &body)
            .await;
    };
    measure(way, "merge-patch", count, None, patch).await
}

async fn apply(way: Way, count: usize) -> Figure {
    let apply = async |lane: &mut Lane, index: usize| {
        let name = format!("m{}", index % OBJECTS);
        let path = format!("{MAPS}/{name}?fieldManager=bench");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
            "data": { "n": index.to_string(), "k": "v" },
        });
        lane.send(
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            &body.to_string(),
        )
        .await;
    };
    measure(way, "apply", count, None, apply).await
}

async fn list(way: Way, count: usize) -> Figure {
    fill(&way, LISTED).await;
    let list = async |lane: &mut Lane, _: usize| {
        let body = lane.send("GET", MAPS, JSON, "").await;
        assert!(body.len() > LISTED * 1_000);
    };
    measure(way, "list", count.div_ceil(1_000), None, list).await
}

/// Makes requests on all lanes at once, and takes the time of each.
async fn measure(
    way: Way,
    operation: &'static str,
    count: usize,
    target: Option<Target>,
    request: impl AsyncFn(&mut Lane, usize),
) -> Figure {
    let lanes = join_all((0..way.lanes).map(|_| way.lane())).await;
    let start = Instant::now();
    let (request, lane_count) = (&request, way.lanes);
    let times = join_all(
        lanes
            .into_iter()
            .enumerate()
            .map(async |(number, mut lane)| {
                let mut times = Vec::with_capacity(count / lane_count + 1);
                for index in (number..count).step_by(lane_count) {
                    let begin = Instant::now();
                    request(&mut lane, index).await;
                    times.push(begin.elapsed());
                }
                times
            }),
    );
    let mut times: Vec<Duration> = times.await.concat();
    let elapsed = start.elapsed();
    Figure {
        way: way.name,
        operation,
        per_second: per_second(times.len(), elapsed),
        p99: p99(&mut times),
        target,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nobody waits for more than 2^52 operations"
)]
pub(crate) fn per_second(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

pub(crate) fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}
