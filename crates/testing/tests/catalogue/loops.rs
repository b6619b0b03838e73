//! Reconcilers that are never done, or are not done again when they are asked again.

use crate::kit::{Case, Done, Hands, Thing, done};
use futures::{FutureExt, future::BoxFuture};
use homeostat::clock;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const CASES: &[Case] = &[
    Case::new("H1 the time of the last run in the status", "LOOP", h1),
    Case::new("H2 the same in whole seconds", "IDEM", h2),
    Case::new("H4 lastTransitionTime without a transition", "IDEM", h4),
    Case::new("H7 a counter in the status", "LOOP", h7),
    Case::new("H9 a list in the order of a hash map", "IDEM", h9),
    Case::new(
        "H10 the environment in the order of a hash map",
        "IDEM",
        h10,
    ),
    Case::new(
        "H11 compared with what the server has filled in",
        "LOOP",
        h11,
    ),
    Case::new("H12 stringData compared with data", "LOOP", h12),
    Case::new("H17 a password for each start", "IDEM", h17),
    Case::new("H19 deleted and created by each run", "LOOP", h19),
    Case::new("H22 a child written to and fro", "LOOP", h22),
    Case::new("A5 two managers of one field", "LOOP", a5),
    Case::new("D5 an owner that does not exist", "LOOP", d5),
];

fn h1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let note = if h.is_faulty() {
            clock::now().to_string()
        } else {
            "well".to_owned()
        };
        h.status(&t, json!({ "note": note })).await?;
        // A request takes its time.
        tokio::time::sleep(std::time::Duration::from_millis(7)).await;
        done()
    }
    .boxed()
}

fn h2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let note = if h.is_faulty() {
            clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        } else {
            "well".to_owned()
        };
        h.status(&t, json!({ "note": note })).await?;
        done()
    }
    .boxed()
}

fn h4(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let now = clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let known = t.status.as_ref().and_then(|status| status.list.clone());
        let list = match known {
            Some(known) if !h.is_faulty() => known,
            Some(_) | None => vec!["Ready".to_owned(), now],
        };
        h.status(&t, json!({ "list": list })).await?;
        done()
    }
    .boxed()
}

fn h7(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let note = t.status.as_ref().and_then(|status| status.note.clone());
        let count: u32 = note.and_then(|note| note.parse().ok()).unwrap_or(0);
        let count = if h.is_faulty() { count + 1 } else { 1 };
        h.status(&t, json!({ "note": count.to_string() })).await?;
        done()
    }
    .boxed()
}

/// Words, in an order that each process chooses anew, or always in the same.
fn words(h: &Hands) -> Vec<String> {
    let mut words: Vec<(u64, String)> = ('a'..='h')
        .map(|word| {
            let order = if h.is_faulty() {
                h.chance.wrapping_mul(u64::from(word) | 1) >> 7
            } else {
                u64::from(word)
            };
            (order, word.to_string())
        })
        .collect();
    words.sort();
    words.into_iter().map(|(_, word)| word).collect()
}

fn h9(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        h.status(&t, json!({ "list": words(&h) })).await?;
        done()
    }
    .boxed()
}

fn h10(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let env = words(&h).join(",");
        h.apply_map(&t, "env", json!({ "names": env })).await?;
        done()
    }
    .boxed()
}

fn deployment() -> Value {
    let labels = json!({ "app": "web" });
    let container = json!({ "name": "web", "image": "nginx" });
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

fn h11(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let wanted = deployment();
        if h.is_faulty() {
            let live = h.get::<Deployment>("web").await?;
            let as_wanted: Deployment = serde_json::from_value(wanted.clone()).unwrap();
            let differs = live.as_ref().map(|live| live.spec != as_wanted.spec);
            if differs == Some(true) {
                h.delete::<Deployment>("web").await?;
            }
            if differs != Some(false) {
                h.create::<Deployment>(&t, wanted).await?;
            }
        } else {
            h.apply::<Deployment>(&t, wanted).await?;
        }
        done()
    }
    .boxed()
}

fn h12(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let body = json!({ "metadata": { "name": "login" }, "stringData": { "user": "me" } });
        let Some(live) = h.get::<Secret>("login").await? else {
            h.create::<Secret>(&t, body).await?;
            return done();
        };
        let data = live.data.as_ref().and_then(|data| data.get("user"));
        let is_as_wanted = if h.is_faulty() {
            live.string_data.is_some()
        } else {
            data.is_some_and(|user| user.0 == b"me")
        };
        if !is_as_wanted {
            let count = live.annotations().get("written").map_or("", String::as_str);
            let annotations = json!({ "written": format!("{count}x") });
            let mut patch = json!({ "stringData": { "user": "me" } });
            if h.is_faulty() {
                patch["metadata"] = json!({ "annotations": annotations });
            }
            let api = h.api::<Secret>();
            api.patch("login", &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        done()
    }
    .boxed()
}

fn h17(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let password = format!("{:x}", h.chance);
        let live = h.map("login").await?;
        if live.is_none() || (h.is_faulty() && h.recall("started").is_none()) {
            h.apply_map(&t, "login", json!({ "password": password }))
                .await?;
            h.remember("started", "yes");
        }
        done()
    }
    .boxed()
}

fn h19(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if h.is_faulty() {
            h.delete::<ConfigMap>("node").await?;
            h.create_map(&t, "node", json!({ "k": "v" })).await?;
        } else {
            h.apply_map(&t, "node", json!({ "k": "v" })).await?;
        }
        done()
    }
    .boxed()
}

fn h22(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let states: &[&str] = if h.is_faulty() {
            &["old", "new"]
        } else {
            &["new"]
        };
        for state in states {
            h.apply_map(&t, "set", json!({ "state": state })).await?;
        }
        done()
    }
    .boxed()
}

fn a5(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        h.apply_map(&t, "node", json!({ "size": t.spec.size }))
            .await?;
        if h.is_faulty() {
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "node" },
                "data": { "size": "9" },
            });
            let params = PatchParams::apply("second").force();
            h.api::<ConfigMap>()
                .patch("node", &params, &Patch::Apply(body))
                .await?;
        }
        done()
    }
    .boxed()
}

fn d5(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let mut owner = Thing::clone(&t);
        if h.is_faulty() {
            owner.meta_mut().uid = Some("00000000-0000-4000-8000-000000000000".into());
        }
        h.apply_map(&owner, "node", json!({ "k": "v" })).await?;
        done()
    }
    .boxed()
}
