//! Old caches, and changes that nobody saw.

use crate::kit::{Case, Done, Hands, Thing, done, is_deleting, text};
use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;
use std::sync::Arc;

pub(crate) const CASES: &[Case] = &[
    Case::new("S1 clean-up by name in place of uid", "STALE", s1),
    Case::new("S17 a feature that is off in an old cache", "STALE", s17)
        .steps(OFF)
        .trusting(),
    Case::new(
        "S21 counted in a cache that lacks the own writes",
        "STALE",
        s21,
    ),
    Case::new("U1 removed only if the change was seen", "UNOBS", u1).steps(OTHER_MODE),
    Case::new(
        "U2 scaled down by the difference that was seen",
        "UNOBS",
        u2,
    )
    .steps(SMALLER),
    Case::new("U3 a state that passes must be seen", "UNOBS", u3).steps(BRIEFLY),
    Case::new("U5 external resource without a finalizer", "LEAK", u5).cloud(),
    Case::new(
        "U7 cleaned up only if the object was seen before",
        "UNOBS",
        u7,
    )
    .cloud(),
    Case::new("U10 deletions of children filtered out", "STUCK", u10),
    Case::new("U12 moved only if the change was seen", "UNOBS", u12).steps(LARGER),
    Case::new("U11 children that nobody watches", "STUCK", u11).blind(),
];

const OFF: &[&str] = &[r#"{ "mode": "off" }"#];
const OTHER_MODE: &[&str] = &[r#"{ "mode": "other" }"#];
const BRIEFLY: &[&str] = &[r#"[{ "size": "2", "mode": "maintenance" }, { "mode": "on" }]"#];
const LARGER: &[&str] = &[r#"{ "size": "2" }"#];
const SMALLER: &[&str] = &[r#"{ "size": "3" }"#, r#"{ "size": "2" }"#];

fn s1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let uid = t.uid().unwrap_or_default();
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) {
                for map in h.list().await? {
                    if h.is_faulty() {
                        h.delete::<ConfigMap>(&map.name_any()).await?;
                    } else if text(&map, "for") == uid {
                        h.delete_exactly(&map).await?;
                    }
                }
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
            return done();
        }
        // No owner: the data outlives the object unless its finalizer says otherwise.
        let live = h.map("volume").await?;
        if live.is_none() {
            let body = json!({
                "metadata": { "name": "volume", "labels": { "of": "a" } },
                "data": { "for": uid },
            });
            let map: ConfigMap = serde_json::from_value(body).unwrap();
            h.api()
                .create(&kube::api::PostParams::default(), &map)
                .await?;
        }
        // Nothing wakes for a child without an owner.
        Ok(homeostat::Action::requeue(std::time::Duration::from_secs(
            60,
        )))
    }
    .boxed()
}

fn s17(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if t.spec.mode.as_deref() == Some("on") {
            let live = h.map("proxy").await?;
            let fresh = live.is_none() && !h.is_faulty();
            let wanted = if fresh {
                h.get::<Thing>("a").await?
            } else {
                None
            };
            let is_wanted = |it: &Thing| it.uid() == t.uid() && it.spec == t.spec;
            if live.is_none() && (h.is_faulty() || wanted.is_some_and(|it| is_wanted(&it))) {
                h.create_map(&t, "proxy", json!({ "k": "v" })).await?;
            }
        } else if let Some(live) = h.map("proxy").await? {
            let fresh = h.get::<Thing>("a").await?;
            let is_off = |it: &Thing| it.spec.mode.as_deref() != Some("on");
            if h.is_faulty() {
                h.delete::<ConfigMap>("proxy").await?;
            } else if fresh.is_some_and(|it| it.uid() == t.uid() && is_off(&it)) {
                h.delete_exactly(&live).await?;
            }
        }
        done()
    }
    .boxed()
}

fn s21(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let there = if h.is_faulty() {
            h.maps
                .state()
                .iter()
                .filter(|map| map.labels().contains_key("of"))
                .count()
        } else {
            h.list().await?.len()
        };
        for _ in there..2 {
            let metadata = json!({ "generateName": "pod-", "labels": { "of": "a" } });
            h.create::<ConfigMap>(&t, json!({ "metadata": metadata }))
                .await?;
        }
        h.status(&t, json!({ "step": "Scaled" })).await?;
        done()
    }
    .boxed()
}

fn u1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let mode = t.spec.mode.clone().unwrap_or_default();
        let body =
            json!({ "metadata": { "name": format!("for-{mode}"), "labels": { "of": "a" } } });
        h.apply::<ConfigMap>(&t, body).await?;
        if h.is_faulty() {
            if let Some(before) = h.remember("mode", &mode).filter(|before| *before != mode) {
                h.delete::<ConfigMap>(&format!("for-{before}")).await?;
            }
        } else {
            for map in h.list().await? {
                if map.name_any() != format!("for-{mode}") {
                    h.delete_exactly(&map).await?;
                }
            }
        }
        done()
    }
    .boxed()
}

fn u2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size: u32 = t.spec.size.parse().unwrap_or(1);
        for index in 0..size {
            let name = format!("pod-{index}");
            let body = json!({ "metadata": { "name": name, "labels": { "of": "a" } } });
            h.apply::<ConfigMap>(&t, body).await?;
        }
        if h.is_faulty() {
            let before = h.remember("size", &t.spec.size);
            let before: u32 = before.and_then(|before| before.parse().ok()).unwrap_or(0);
            for index in size..before {
                h.delete::<ConfigMap>(&format!("pod-{index}")).await?;
            }
        } else {
            let index = |map: &ConfigMap| map.name_any().trim_start_matches("pod-").parse::<u32>();
            for map in h.list().await? {
                if index(&map).is_ok_and(|index| index >= size) {
                    h.delete_exactly(&map).await?;
                }
            }
        }
        done()
    }
    .boxed()
}

fn u5(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let uid = t.uid().unwrap_or_default();
        if is_deleting(&t) {
            h.cloud.remove_of(&uid);
            if Hands::has_finalizer(&t) {
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !h.is_faulty() && !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
        }
        h.cloud.make(&uid, &uid);
        h.status(&t, json!({ "step": "Made" })).await?;
        done()
    }
    .boxed()
}

fn u7(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let uid = t.uid().unwrap_or_default();
        if is_deleting(&t) {
            let is_known = h.recall(&uid).is_some();
            if Hands::has_finalizer(&t) && (is_known || !h.is_faulty()) {
                h.cloud.remove_of(&uid);
                h.hold(&t, false).await?;
            }
            return done();
        }
        h.remember(&uid, "seen");
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
            return done();
        }
        h.cloud.make(&uid, &uid);
        h.apply_map(&t, "node", json!({ "k": "v" })).await?;
        done()
    }
    .boxed()
}

/// The runs that a deletion would cause are dropped, as by a filter that compares generations.
fn u10(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let generation = t.metadata.generation.unwrap_or(0).to_string();
        let key = t.uid().unwrap_or_default();
        let before = h.remember(&key, &generation);
        if h.is_faulty() && before.as_deref() == Some(generation.as_str()) {
            return done();
        }
        h.apply_map(&t, "node", json!({ "k": "v" }))
            .await
            .inspect_err(|_| {
                h.remember(&key, "failed");
            })?;
        done()
    }
    .boxed()
}

fn u11(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        h.apply_map(&t, "node", json!({ "k": "v" })).await?;
        done()
    }
    .boxed()
}

/// The size is only followed in maintenance, and when the process begins.
fn u3(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if is_deleting(&t) {
            return done();
        }
        let size = t.spec.size.as_str();
        let uid = t.uid().unwrap_or_default();
        let is_first = h.recall(&uid).is_none();
        let follows = is_first || t.spec.mode.as_deref() == Some("maintenance");
        let live = h.map("volume").await?;
        if live.is_none() || follows || !h.is_faulty() {
            h.apply_map(&t, "volume", json!({ "size": size })).await?;
        }
        h.remember(&uid, "seen");
        done()
    }
    .boxed()
}

/// Sizes beyond the first need a record of the move. The faulty one makes it when it resizes.
fn u12(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        let live = h.map("volume").await?;
        let resizes = live.as_ref().is_some_and(|live| text(live, "size") != size);
        let is_moved = if h.is_faulty() { resizes } else { size != "1" };
        if is_moved && h.map("moved").await?.is_none() {
            h.create_map(&t, "moved", json!({ "from": "1" })).await?;
        }
        if live.is_none() || resizes {
            h.apply_map(&t, "volume", json!({ "size": size })).await?;
        }
        done()
    }
    .boxed()
}
