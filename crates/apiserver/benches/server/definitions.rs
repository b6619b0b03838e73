//! How much memory many definitions take, and whether requests go on while a large one is created.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::memory::status;
use crate::requests::{JSON, p99, per_second};
use crate::single_thread;
use crate::way::Way;
use crate::{Figure, Target};

/// The measurement that runs in a process of its own.
pub(crate) const CHILD: &str = "memory-of-definitions";

pub(crate) const OPERATION: &str = "beside-definition";

pub(crate) const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// As many as widely used projects have together.
pub(crate) const COUNT: usize = 400;

/// 150 MB, in kilobytes.
pub(crate) const MOST: u64 = 150_000;

/// The size in the middle, and how many times as large the largest is.
const MEDIAN: f64 = 30_000.0;
const LARGEST: f64 = 40.0;

/// A definition of about this many bytes of JSON, with members as deep and as described as real ones.
pub(crate) fn definition(number: usize, bytes: usize) -> String {
    let leaf = |index: usize| {
        json!({
            "type": "object",
            "description": format!("Part {index} says how this is done, and what holds if it is left out."),
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9-]+$" },
                "count": { "type": "integer", "format": "int32", "minimum": 0 },
                "mode": { "type": "string", "enum": ["Always", "Never"], "default": "Always" },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "items": { "type": "array", "maxItems": 16, "items": {
                    "type": "object",
                    "properties": { "key": { "type": "string", "maxLength": 63 } },
                } },
            },
            "x-kubernetes-validations": [
                { "rule": "self.name != 'none'", "message": "a part has a name" },
            ],
        })
    };
    let each = leaf(1000).to_string().len() + 12;
    let mut parts = Map::new();
    for index in 0..(bytes / each).max(1) {
        let group = parts.entry(format!("group{}", index / 16));
        let group = group.or_insert_with(|| json!({ "type": "object", "properties": {} }));
        group["properties"][format!("part{index}")] = leaf(index);
    }
    let plural = format!("things{number}");
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": Value::Object(parts) },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.bench{}.example.com", number % 40) },
        "spec": {
            "group": format!("bench{}.example.com", number % 40),
            "scope": "Namespaced",
            "names": { "plural": plural, "kind": format!("Thing{number}") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            }],
        },
    })
    .to_string()
}

/// The size of one of them: half are smaller than the median, and few are much larger.
fn size(number: usize) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "there are some hundred")]
    let place = 2.0 * (number as f64 + 0.5) / COUNT as f64 - 1.0;
    let bytes = MEDIAN * LARGEST.powf(place * place.abs().powf(1.5));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 750 bytes and 1.2 MB"
    )]
    {
        bytes as usize
    }
}

/// Creates all of them, and prints how many kilobytes of memory this process has.
pub(crate) fn measure_memory() {
    single_thread().block_on(async {
        let way = Way::in_process().await;
        let mut lane = way.lane().await;
        for number in 0..COUNT {
            lane.send("POST", PATH, JSON, &definition(number, size(number)))
                .await;
        }
        println!("{} {}", status("VmRSS:"), status("VmHWM:"));
    });
}

/// One operation is a small request beside the creation of a definition of 1.2 MB.
pub(crate) async fn measure(way: Way) -> Figure {
    let bodies = (0..5).map(|number| definition(number, 1_200_000)).collect();
    let start = Instant::now();
    let Beside { mut small, .. } = beside(&way, PATH, bodies).await;
    Figure {
        way: way.name,
        operation: OPERATION,
        per_second: per_second(small.len(), start.elapsed()),
        p99: p99(&mut small),
        target: Some(Target::P99(Duration::from_millis(20))),
    }
}

/// How long requests took that went on at the same time.
pub(crate) struct Beside {
    pub(crate) large: Vec<Duration>,
    pub(crate) small: Vec<Duration>,
}

/// Creates something large, one after the other, and asks for the version all the while.
pub(crate) async fn beside(way: &Way, path: &str, bodies: Vec<String>) -> Beside {
    let mut times = Beside {
        large: Vec::new(),
        small: Vec::new(),
    };
    for body in bodies {
        let (mut large, mut small) = (way.lane().await, way.lane().await);
        let begin = Instant::now();
        let create = async {
            large.send("POST", path, JSON, &body).await;
            begin.elapsed()
        };
        let mut create = std::pin::pin!(create);
        let mut created = None;
        // The last one counts too: it may have waited for the creation.
        while created.is_none() {
            let begin = Instant::now();
            let version = small.send("GET", "/version", JSON, "");
            let mut version = std::pin::pin!(version);
            tokio::select! {
                biased;
                _ = &mut version => {}
                time = &mut create => {
                    created = Some(time);
                    version.await;
                }
            }
            times.small.push(begin.elapsed());
            created = created.or_else(|| futures::FutureExt::now_or_never(&mut create));
        }
        times.large.extend(created);
    }
    times
}
