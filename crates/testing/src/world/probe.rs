//! What is done to an operator when all is done.

use super::World;
use crate::{
    hand::{ANNOTATION, edits},
    object::{ObjectId, metadata},
    plan::Plan,
    trace::Part,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How much later an operator starts anew: within the second in which timestamps are equal, after it, and
/// long enough for whatever is done by the hour or the day.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(1_700),
    Duration::from_secs(3_601),
    Duration::from_secs(90_061),
];

/// How long old caches stay old.
const OLD: Duration = Duration::from_secs(30);

impl<X: Send + Sync + 'static> World<X> {
    /// Does what the plan wants when all is done.
    pub(super) async fn probe(&mut self) {
        let plan = self.plan.clone();
        let from = self.begin("the checker's turn");
        self.fired = true;
        match &plan {
            Plan::Idle => {
                for pause in PAUSES {
                    self.recorder
                        .deed(format!("{pause:?} pass, and the operator starts anew"));
                    self.restart(pause, None).await;
                    // Long enough for every run, and short enough for four of them.
                    sleep(Duration::from_secs(30)).await;
                }
            }
            Plan::Noise => self.hand.annotate(&self.setup.given).await,
            Plan::Relist => {
                self.recorder
                    .deed("all watches end, and their versions are expired");
                self.server.compact();
                self.server.faults().drop_watches();
            }
            Plan::Restart(resource, trouble) => {
                self.operator = None;
                self.wire.trouble(resource, *trouble);
                self.start(None);
            }
            Plan::Reversed => self.restart(Duration::from_secs(1), None).await,
            Plan::Replaced => {
                self.replace().await;
                return;
            }
            Plan::Stale(revision) => {
                self.recorder
                    .deed(format!("the operator starts anew with version {revision}"));
                self.restart(Duration::from_secs(1), Some(*revision)).await;
                sleep(OLD).await;
                self.recorder.deed("its watches go on");
                self.wire.let_go_on(true);
            }
            Plan::Lose(object) => self.lose(object).await,
            Plan::Edit(object) => self.edit(object).await,
            Plan::Scaled(object) => self.scale(object).await,
            Plan::Foreign => {
                self.foreign().await;
                return;
            }
            Plan::Nothing
            | Plan::Request(..)
            | Plan::Delete(_)
            | Plan::DeleteWhileDown(_)
            | Plan::DeleteNamespace(_)
            | Plan::Late
            | Plan::Missed(_)
            | Plan::Direct
            | Plan::Lag(_)
            | Plan::Batched(_)
            | Plan::LateCollector => self.fired = false,
        }
        self.end(Part::Probe, "the checker's turn", from).await;
    }

    /// The operator is down while the user deletes and gives again.
    async fn replace(&mut self) {
        let from = self.begin("what was given is replaced");
        self.operator = None;
        self.hand.delete(&self.setup.given).await;
        sleep(Duration::from_secs(30)).await;
        // A finalizer of the operator's keeps the objects, so that the names are taken.
        let created = self.hand.create(&self.setup.given).await.is_ok();
        self.start(None);
        let part = if created { Part::Again } else { Part::Deleted };
        self.end(part, "what was given is replaced", from).await;
    }

    /// The stored object of this name, if it is one of the operator's.
    fn child(&self, wanted: &str) -> Option<Value> {
        let mut found = None;
        self.server.visit_objects(|stored| {
            let id = ObjectId::new(stored.group, stored.resource, stored.namespace, stored.name);
            if found.is_none() && self.recorder.stem(&id).to_string() == wanted {
                found = Some(stored.value.clone());
            }
        });
        found
    }

    async fn lose(&mut self, object: &str) {
        match self.child(object) {
            Some(child) => self.hand.delete(&[child]).await,
            None => self.fired = false,
        }
    }

    async fn edit(&mut self, object: &str) {
        self.fired = false;
        let Some(child) = self.child(object) else {
            return;
        };
        for edit in edits(&child) {
            if self.hand.patch(&child, &edit).await.is_ok() {
                self.recorder
                    .deed(format!("somebody edits {object}: {edit}"));
                self.fired = true;
                return;
            }
        }
    }

    /// An autoscaler says how many replicas there are, and the operator starts anew.
    async fn scale(&mut self, object: &str) {
        self.fired = false;
        let Some(child) = self.child(object) else {
            return;
        };
        let replicas = child["spec"]["replicas"].as_i64().unwrap_or(1) + 2;
        let scale = json!({ "spec": { "replicas": replicas } });
        if self.hand.scale(&child, &scale).await.is_err() {
            return;
        }
        self.fired = true;
        self.recorder
            .deed(format!("an autoscaler scales {object} to {replicas}"));
        self.settle(None).await;
        self.hand.annotate(&self.setup.given).await;
        self.restart(Duration::from_secs(2), None).await;
        self.settle(None).await;
        let found = self.child(object).unwrap_or_default();
        let found = &found["spec"]["replicas"];
        if *found != replicas {
            self.remarks.push(format!(
                "{object}: spec.replicas is {found}, and an autoscaler has set {replicas}"
            ));
        }
    }

    /// Another manager annotates everything, and holds what was given.
    pub(super) async fn interfere(&mut self) {
        self.begin("another manager annotates everything and holds what was given");
        let children = self.children();
        self.hand.annotate(&children).await;
        self.hand.annotate(&self.setup.given).await;
        let given = self.hand.read(&self.setup.given).await;
        let objects = children.iter().chain(&given);
        self.annotated = objects
            .map(|object| metadata(object, "uid").to_owned())
            .collect();
        self.hand.hold(&self.setup.given, true).await;
        self.settle(None).await;
    }

    fn children(&self) -> Vec<Value> {
        let ids = self.hints.children.iter();
        ids.filter_map(|(_, stem)| self.child(&stem.to_string()))
            .collect()
    }

    /// What another manager has set must still be there, and what was given must go when it lets go.
    async fn foreign(&mut self) {
        let from = self.begin("the operator starts anew");
        self.restart(Duration::from_secs(2), None).await;
        self.settle(None).await;
        let mut objects = self.children();
        objects.extend(self.hand.read(&self.setup.given).await);
        for object in objects {
            // What was made anew never had it.
            let had = self
                .annotated
                .iter()
                .any(|uid| uid == metadata(&object, "uid"));
            if had && object["metadata"]["annotations"][ANNOTATION] != "kept" {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                self.remarks.push(format!(
                    "{}/{}: the annotation of another manager was removed",
                    kind.as_str().unwrap_or_default(),
                    name.as_str().unwrap_or_default(),
                ));
            }
        }
        self.end(Part::Probe, "the operator starts anew", from)
            .await;
        let from = self.begin("what was given is deleted, and another manager holds it");
        self.hand.delete(&self.setup.given).await;
        self.end(Part::Probe, "another manager holds what was given", from)
            .await;
        let from = self.begin("another manager lets go");
        if !self.is_held().await {
            let remark = "the finalizer of another manager was removed from what was given";
            self.remarks.push(remark.to_owned());
        }
        self.hand.hold(&self.setup.given, false).await;
        self.end(Part::Deleted, "another manager lets go", from)
            .await;
    }
}
