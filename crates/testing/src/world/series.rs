//! Several plans in one world, one after the other, each from rest to rest.

use super::World;
use crate::{
    plan::Plan,
    trace::{Part, Rest, Trace},
    wire::{Armed, Mark, NAMESPACE},
};
use serde_json::Value;

/// A part of a series, and what is done to the operator in it.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    pub(crate) part: Part,
    /// None if this part is only the way to a later one.
    pub(crate) plan: Option<Plan>,
    /// The request that the plan is about, if it is about one.
    pub(crate) mark: Option<Mark>,
}

impl Leg {
    /// A part on the way.
    pub(crate) fn way(part: Part) -> Self {
        Self {
            part,
            plan: None,
            mark: None,
        }
    }

    /// Whether nothing is there any more at the end of it.
    pub(crate) fn is_deleting(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::deletes)
    }

    /// A part that starts when all is done.
    pub(crate) fn probe(plan: Plan) -> Self {
        Self {
            part: Part::Probe,
            plan: Some(plan),
            mark: None,
        }
    }
}

impl<X: Send + Sync + 'static> World<X> {
    /// Goes through the legs, and tells what happened in each.
    pub(super) async fn series(
        &mut self,
        legs: &[Leg],
        heard: &mut impl FnMut(&Leg, Trace) -> bool,
    ) -> Result<(), String> {
        self.install().await?;
        self.start(None);
        for leg in legs {
            self.prepare(leg);
            self.go(leg).await?;
            let was_whole = matches!(self.plan, Plan::DeleteNamespace(_));
            let trace = self.cut();
            let is_calm = trace.ends.iter().all(|end| end.rest == Rest::Calm);
            let is_done = trace.fired || leg.plan.is_none();
            if !heard(leg, trace) || !is_calm || !is_done {
                return Ok(());
            }
            if was_whole {
                self.restore().await?;
            }
        }
        Ok(())
    }

    /// From now on this plan is what is done to the operator.
    fn prepare(&mut self, leg: &Leg) {
        self.plan = leg.plan.clone().unwrap_or(Plan::Nothing);
        self.fired = false;
        let downtime = matches!(self.plan, Plan::DeleteWhileDown(_));
        self.deletes.set(downtime);
        let mark = leg.mark.clone();
        self.wire.arm(mark.map(|mark| Armed {
            plan: self.plan.clone(),
            mark,
        }));
        self.watch_invariants();
    }

    async fn go(&mut self, leg: &Leg) -> Result<(), String> {
        let given = self.setup.given.clone();
        match leg.part {
            Part::Probe => self.probe().await,
            Part::Given | Part::Again => {
                let name = "the objects are given";
                let from = self.begin(name);
                self.give(&given).await?;
                self.end(leg.part, name, from).await;
            }
            Part::Step(index) => {
                let name = self.setup.steps[index].name.clone();
                let from = self.begin(&name);
                self.step(index, false).await?;
                self.end(leg.part, &name, from).await;
            }
            Part::Deleted => {
                let name = "what was given is deleted";
                let from = self.begin(name);
                self.hand.delete(&given).await;
                self.end(leg.part, name, from).await;
            }
        }
        Ok(())
    }

    /// The namespace and what is in it before the operator starts, anew.
    async fn restore(&self) -> Result<(), String> {
        self.create_namespace().await?;
        let is_inside = |object: &&Value| {
            let namespace = &object["metadata"]["namespace"];
            namespace.is_null() || *namespace == NAMESPACE
        };
        for object in self.setup.existing.iter().filter(is_inside) {
            // What is in no namespace is still there.
            let _ = self.hand.create(std::slice::from_ref(object)).await;
        }
        Ok(())
    }
}
