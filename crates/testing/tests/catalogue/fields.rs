//! Fields and finalizers of others, deletion, and what cannot be changed any more.

use crate::kit::{Case, Done, Failure, Hands, Thing, done, is, is_deleting, text};
use futures::{FutureExt, future::BoxFuture};
use homeostat::Action;
use homeostat_testing::State;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

pub(crate) const CASES: &[Case] = &[
    Case::new("A3 apply without force against kubectl edit", "FIGHT", a3),
    Case::new(
        "F2 whole objects written over others' annotations",
        "FIGHT",
        f2,
    )
    .steps(RESIZE),
    Case::new("F3 replicas that an autoscaler has", "FIGHT", f3).autoscaled(),
    Case::new("H27 everything is applied in each run", "NOP", h27).frugal(),
    Case::new("D2 a merge patch drops others' finalizers", "FIGHT", d2),
    Case::new(
        "D3 a finalizer for an object that is being deleted",
        "FIGHT",
        d3,
    ),
    Case::new("D6 the clean-up needs what was never made", "DELETE", d6),
    Case::new("D7 created in a namespace that goes", "GC", d7),
    Case::new("G1 found before the collector came", "GC", g1).steps(RESIZE),
    Case::new("N1 a name that chance has chosen", "UNSTABLE", n1),
    Case::new("E6 a field that cannot be unset", "PATH", e6).steps(UNSET),
    Case::new("H18 an immutable field follows the spec", "STUCK", h18).steps(RESIZE),
    Case::new(
        "I1 the old one goes before the new one comes",
        "INVARIANT",
        i1,
    )
    .steps(OTHER_MODE)
    .always(one_is_there),
    Case::new("V1 a reconciler that does nothing", "VACUOUS", v1),
];

const RESIZE: &[&str] = &[r#"{ "size": "2" }"#];
const UNSET: &[&str] = &[r#"{ "mode": null }"#];
const OTHER_MODE: &[&str] = &[r#"{ "mode": "other" }"#];

fn a3(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let mut params = PatchParams::apply("op");
        params.force = !h.is_faulty();
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v" },
            "metadata": { "name": "node", "ownerReferences": [kube::Resource::owner_ref(&*t, &())] },
        });
        h.api::<ConfigMap>()
            .patch("node", &params, &Patch::Apply(body))
            .await?;
        done()
    }
    .boxed()
}

fn f2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let body = json!({ "metadata": { "name": "node" }, "data": { "size": t.spec.size } });
        if !h.is_faulty() {
            h.apply::<ConfigMap>(&t, body).await?;
            return done();
        }
        let wanted: ConfigMap = crate::kit::owned(&t, body.clone());
        match h.map("node").await? {
            None => drop(h.create::<ConfigMap>(&t, body).await?),
            Some(live) if live.data != wanted.data => {
                let params = PostParams::default();
                h.api::<ConfigMap>()
                    .replace("node", &params, &wanted)
                    .await?;
            }
            Some(_) => {}
        }
        done()
    }
    .boxed()
}

fn d2(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) && h.is_faulty() {
                h.set_finalizers(&t, json!([]), None).await?;
            } else if Hands::has_finalizer(&t) {
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
        }
        done()
    }
    .boxed()
}

fn d3(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if is_deleting(&t) && Hands::has_finalizer(&t) {
            h.hold(&t, false).await?;
        } else if !Hands::has_finalizer(&t) && (h.is_faulty() || !is_deleting(&t)) {
            h.hold(&t, true).await?;
        }
        done()
    }
    .boxed()
}

fn d6(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) {
                let login = h.map("login").await?;
                if login.is_none() && h.is_faulty() {
                    return Err(Failure::Text("there is no login to clean up with"));
                }
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
            return done();
        }
        h.apply_map(&t, "login", json!({ "user": "me" })).await?;
        done()
    }
    .boxed()
}

fn d7(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if is_deleting(&t) {
            if Hands::has_finalizer(&t) {
                h.expect_present(&t).await?;
                let backup = h.apply_map(&t, "backup", json!({ "of": "a" })).await;
                match backup {
                    Err(Failure::Kube(error)) if !h.is_faulty() && is(&error, "Forbidden") => {}
                    other => other?,
                }
                h.hold(&t, false).await?;
            }
            return done();
        }
        if !Hands::has_finalizer(&t) {
            h.hold(&t, true).await?;
        }
        done()
    }
    .boxed()
}

fn e6(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let mut data = json!({ "size": t.spec.size });
        if let Some(mode) = &t.spec.mode {
            data["mode"] = mode.as_str().into();
        }
        if h.is_faulty() && h.map("node").await?.is_some() {
            h.set("node", data).await?;
        } else {
            h.apply_map(&t, "node", data).await?;
        }
        done()
    }
    .boxed()
}

fn h18(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = if h.is_faulty() { t.spec.size.as_str() } else { "any" };
        let labels = json!({ "app": "web", "size": size });
        let container = json!({ "name": "web", "image": format!("nginx:{}", t.spec.size) });
        let body = json!({
            "metadata": { "name": "web" },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
            },
        });
        h.apply::<Deployment>(&t, body).await?;
        done()
    }
    .boxed()
}

fn i1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let wanted = format!("for-{}", t.spec.mode.as_deref().unwrap_or_default());
        let maps = h.list().await?;
        let old = maps.iter().filter(|map| map.name_any() != wanted);
        if h.is_faulty() {
            for map in old.clone() {
                h.delete_exactly(map).await?;
            }
        }
        let body = json!({ "metadata": { "name": wanted, "labels": { "of": "a" } } });
        h.apply::<ConfigMap>(&t, body).await?;
        if !h.is_faulty() {
            for map in old {
                h.delete_exactly(map).await?;
            }
        }
        h.status(&t, json!({ "step": "Served" })).await?;
        done()
    }
    .boxed()
}

/// Once it is served, something serves it, unless the whole goes.
fn one_is_there(state: &State) -> Result<(), String> {
    let thing = state.get("things.example.com", "check", "a");
    let is_served = thing.is_some_and(|thing| {
        thing["status"]["step"] == "Served" && thing["metadata"]["deletionTimestamp"].is_null()
    });
    let serving = |name| state.get("configmaps", "check", name).is_some();
    if is_served && !serving("for-on") && !serving("for-other") {
        return Err("nothing serves it".to_owned());
    }
    Ok(())
}

fn v1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        if !h.is_faulty() {
            h.apply_map(&t, "node", json!({ "k": "v" })).await?;
        }
        done()
    }
    .boxed()
}

fn f3(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let labels = json!({ "app": "a" });
        let containers = json!([{ "name": "app", "image": "app:1" }]);
        let template =
            json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
        let mut spec = json!({ "selector": { "matchLabels": labels }, "template": template });
        if h.is_faulty() {
            spec["replicas"] = json!(1);
        }
        let body = json!({ "metadata": { "name": "web" }, "spec": spec });
        h.apply::<Deployment>(&t, body).await?;
        done()
    }
    .boxed()
}

fn h27(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let live = h.map("node").await?;
        let is_there = live.is_some_and(|live| {
            live.data
                .is_some_and(|data| data.get("k").is_some_and(|value| value == "v"))
        });
        if h.is_faulty() || !is_there {
            h.apply_map(&t, "node", json!({ "k": "v" })).await?;
        }
        done()
    }
    .boxed()
}

/// A set is replaced, and its pod is the collector's. The faulty one takes the pod of the former set for its own.
fn g1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let size = t.spec.size.as_str();
        if is_deleting(&t) {
            return done();
        }
        let mut set = h.map("set").await?;
        if let Some(old) = set.take_if(|set| text(set, "size") != size) {
            h.delete_exactly(&old).await?;
        }
        let set = if let Some(set) = set {
            set
        } else {
            let body = json!({ "metadata": { "name": "set" }, "data": { "size": size } });
            h.create::<ConfigMap>(&t, body).await?
        };
        let mut pod = h.map("pod").await?;
        if let Some(old) = pod.take_if(|pod| !h.is_faulty() && !is_owned_by(pod, &set)) {
            h.delete_exactly(&old).await?;
        }
        if pod.is_none() {
            let owner =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "set", "uid": set.uid() });
            let body = json!({ "metadata": { "name": "pod", "ownerReferences": [owner] } });
            let pod: ConfigMap = serde_json::from_value(body).unwrap();
            h.api().create(&PostParams::default(), &pod).await?;
        }
        if h.is_faulty() {
            return done();
        }
        // Nothing wakes for the children of a child.
        Ok(Action::requeue(Duration::from_secs(60)))
    }
    .boxed()
}

fn is_owned_by(map: &ConfigMap, owner: &ConfigMap) -> bool {
    let uid = owner.uid().unwrap_or_default();
    map.owner_references().iter().any(|it| it.uid == uid)
}

fn n1(h: Arc<Hands>, t: Arc<Thing>) -> BoxFuture<'static, Done> {
    async move {
        let name = if h.is_faulty() {
            format!("node-{:x}", h.chance)
        } else {
            "node".to_owned()
        };
        if h.map(&name).await?.is_none() {
            h.create_map(&t, &name, json!({ "k": "v" })).await?;
        }
        done()
    }
    .boxed()
}
