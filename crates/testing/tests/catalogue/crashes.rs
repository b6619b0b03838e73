//! States that a crash leaves behind, and answers that are lost.

use crate::kit::{Case, Done, Failure, Hands, Thing, done, is, is_deleting, step, text};
use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{ResourceExt, api::PostParams};
use serde_json::json;
use std::sync::Arc;

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "C1 resize gated on the object that is replaced",
        "CRASH",
        c1,
    )
    .steps(RESIZE),
    Case::new(
        "C2 evidence of the work destroyed by the first write",
        "CRASH",
        c2,
    )
    .steps(RESIZE),
    Case::new("C4 guard on the first of two config maps", "CRASH", c4),
    Case::new("C5 guard on the first of two secrets", "CRASH", c5),
    Case::new("C6 guard on the first of two kinds", "CRASH", c6),
    Case::new("C8 guard on existence in place of content", "CRASH", c8),
    Case::new(
        "C10 a step in the status that nobody goes on from",
        "CRASH",
        c10,
    ),
    Case::new("C11 deleted to be created again, and never", "CRASH", c11).steps(RESIZE),
    Case::new("C13 external resource before its finalizer", "UNOBS", c13).cloud(),
    Case::new("C14 name made by the server", "FAULT(applied)", c14),
    Case::new(
        "C14 external resource before its id is noted",
        "CRASH",
        c14_outside,
    )
    .cloud(),
    Case::new("C16 conflict taken for done", "FAULT", c16).steps(RESIZE),
    Case::new("E1 failed list taken for an empty one", "FAULT", e1),
    Case::new("E2 AlreadyExists taken for fatal", "FAULT(applied)", e2),
    Case::new("E5 the object is gone between two reads", "PANIC", e5),
];

const RESIZE: &[&str] = &[r#"{ "size": "2" }"#];

fn c1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        let data = json!({ "size": size });
        let (set, volume) = (h.map("set").await?, h.map("volume").await?);
        match &volume {
            None => h.create_map(&t, "volume", data.clone()).await?,
            Some(volume) if !h.is_faulty() && text(volume, "size") != size => {
                h.set("volume", data.clone()).await?;
            }
            Some(_) => {}
        }
        match &set {
            None => h.create_map(&t, "set", data).await?,
            Some(set) if text(set, "size") != size => {
                h.delete::<ConfigMap>("set").await?;
                if h.is_faulty() {
                    h.set("volume", data.clone()).await?;
                }
                h.create_map(&t, "set", data).await?;
            }
            Some(_) => {}
        }
        done()
    }
    .boxed()
}

fn c2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        let (config, pod) = (json!({ "size": size }), json!({ "restartedFor": size }));
        if h.is_faulty() {
            let live = h.map("config").await?;
            if live.is_none_or(|live| text(&live, "size") != size) {
                h.apply_map(&t, "config", config).await?;
                h.apply_map(&t, "pod", pod).await?;
            }
        } else {
            h.apply_map(&t, "config", config).await?;
            h.apply_map(&t, "pod", pod).await?;
        }
        done()
    }
    .boxed()
}

fn c4(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let data = json!({ "k": "v" });
        let first = h.map("first").await?;
        let second = if h.is_faulty() {
            first.clone()
        } else {
            h.map("second").await?
        };
        if first.is_none() {
            h.create_map(&t, "first", data.clone()).await?;
        }
        if second.is_none() {
            h.create_map(&t, "second", data).await?;
        }
        done()
    }
    .boxed()
}

fn c5(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let first = h.get::<Secret>("ssl").await?;
        for name in ["ssl", "ssl-internal"] {
            let guard = if h.is_faulty() {
                first.clone()
            } else {
                h.get::<Secret>(name).await?
            };
            if guard.is_none() {
                let body = json!({ "metadata": { "name": name }, "stringData": { "key": "x" } });
                h.create::<Secret>(&t, body).await?;
            }
        }
        done()
    }
    .boxed()
}

fn c6(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let secret = h.get::<Secret>("tls").await?;
        let missing = if h.is_faulty() {
            secret.is_none()
        } else {
            h.get::<Service>("front").await?.is_none()
        };
        if secret.is_none() {
            let body = json!({ "metadata": { "name": "tls" }, "stringData": { "key": "x" } });
            h.create::<Secret>(&t, body).await?;
        }
        if missing {
            let spec = json!({ "ports": [{ "port": 80 }], "selector": { "a": "b" } });
            let body = json!({ "metadata": { "name": "front" }, "spec": spec });
            h.create::<Service>(&t, body).await?;
        }
        done()
    }
    .boxed()
}

fn c8(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let store = h.map("keystore").await?;
        if store.is_none() {
            h.create_map(&t, "keystore", json!({})).await?;
        }
        let is_filled = store.is_some_and(|store| h.is_faulty() || text(&store, "key") == "x");
        if !is_filled {
            h.set("keystore", json!({ "key": "x" })).await?;
        }
        done()
    }
    .boxed()
}

fn c10(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        match step(&t) {
            "" => {
                h.status(&t, json!({ "step": "Creating" })).await?;
                h.apply_map(&t, "node", json!({ "k": "v" })).await?;
                h.status(&t, json!({ "step": "Done" })).await?;
            }
            // Somebody is at it.
            "Creating" if h.is_faulty() => {}
            "Creating" => {
                h.apply_map(&t, "node", json!({ "k": "v" })).await?;
                h.status(&t, json!({ "step": "Done" })).await?;
            }
            _ => h.apply_map(&t, "node", json!({ "k": "v" })).await?,
        }
        done()
    }
    .boxed()
}

fn c11(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        let data = json!({ "size": size });
        match h.map("set").await? {
            Some(set) if text(&set, "size") != size => {
                h.delete::<ConfigMap>("set").await?;
                h.create_map(&t, "set", data).await?;
            }
            Some(_) => {}
            // It was made before, and what is deleted is made again where it is deleted.
            None if h.is_faulty() && step(&t) == "Made" => {}
            None => h.create_map(&t, "set", data).await?,
        }
        h.status(&t, json!({ "step": "Made" })).await?;
        done()
    }
    .boxed()
}

fn c13(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let uid = t.uid().unwrap_or_default();
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) {
                h.cloud.remove_of(&uid);
                h.hold(&t, false).await?;
            }
            return done();
        }
        if h.is_faulty() {
            h.cloud.make(&uid, &uid);
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
        }
        h.cloud.make(&uid, &uid);
        done()
    }
    .boxed()
}

fn c14(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if !h.is_faulty() {
            h.apply_map(&t, "node", json!({ "k": "v" })).await?;
            return done();
        }
        let known = t.status.as_ref().and_then(|status| status.child.clone());
        let live = match &known {
            Some(name) => h.map(name).await?,
            None => None,
        };
        if live.is_none() {
            let body = json!({ "metadata": { "generateName": "node-" }, "data": { "k": "v" } });
            let node: ConfigMap = h.create(&t, body).await?;
            h.status(&t, json!({ "child": node.name_any() })).await?;
        }
        done()
    }
    .boxed()
}

fn c14_outside(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let uid = t.uid().unwrap_or_default();
        let id = t.status.as_ref().and_then(|status| status.child.clone());
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) {
                if h.is_faulty() {
                    h.cloud.remove(&id.unwrap_or_default());
                } else {
                    h.cloud.remove_of(&uid);
                }
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
        } else if !h.is_faulty() {
            h.cloud.make(&uid, &uid);
            h.status(&t, json!({ "child": uid })).await?;
        } else if id.is_none() {
            let id = h.cloud.make_any(&uid);
            h.status(&t, json!({ "child": id })).await?;
        }
        done()
    }
    .boxed()
}

fn c16(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        let Some(mut map) = h.map("node").await? else {
            h.create_map(&t, "node", json!({ "size": size })).await?;
            return done();
        };
        if text(&map, "size") != size {
            let data = map.data.get_or_insert_default();
            data.insert("size".into(), size.into());
            let api = h.api::<ConfigMap>();
            match api.replace("node", &PostParams::default(), &map).await {
                Err(error) if h.is_faulty() && is(&error, "Conflict") => {}
                other => drop(other?),
            }
        }
        done()
    }
    .boxed()
}

fn e1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let labels = json!({ "of": "a" });
        let node =
            json!({ "metadata": { "name": "node", "labels": labels }, "data": { "k": "v" } });
        h.apply::<ConfigMap>(&t, node).await?;
        h.apply_map(&t, "volume", json!({ "of": "node" })).await?;
        let nodes = match h.list().await {
            Err(_) if h.is_faulty() => Vec::new(),
            other => other?,
        };
        if nodes.is_empty() {
            // Nobody uses it any more.
            h.delete::<ConfigMap>("volume").await?;
        }
        done()
    }
    .boxed()
}

fn e2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if step(&t) == "Failed" {
            return done();
        }
        let status = match h.map("node").await? {
            Some(_) if !h.is_faulty() || step(&t) == "Made" => "Made",
            _ => match h.create_map(&t, "node", json!({ "k": "v" })).await {
                Err(Failure::Kube(error)) if is(&error, "AlreadyExists") => "Failed",
                other => {
                    other?;
                    "Made"
                }
            },
        };
        h.status(&t, json!({ "step": status })).await?;
        done()
    }
    .boxed()
}

fn e5(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        match h.apply_map(&t, "node", json!({ "k": "v" })).await {
            // The namespace goes, and with it everything.
            Err(Failure::Kube(error)) if is(&error, "Forbidden") => return done(),
            other => other?,
        }
        let again = h.get::<Thing>("a").await?;
        if h.is_faulty() {
            let again = again.expect("it was there a moment ago");
            h.status(&again, json!({ "step": "Made" })).await?;
        } else if let Some(again) = again {
            h.status(&again, json!({ "step": "Made" })).await?;
        }
        done()
    }
    .boxed()
}
