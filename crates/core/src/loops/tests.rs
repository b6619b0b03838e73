//! Faults and what is reported of them, and what must not be reported.

mod blind;
mod course;
#[expect(
    clippy::needless_raw_string_hashes,
    reason = "`expect-test` writes them"
)]
mod faults;
#[expect(
    clippy::needless_raw_string_hashes,
    reason = "`expect-test` writes them"
)]
mod places;
mod silence;
mod worlds;

use super::{Answer, Cause, Config, Detector, Form, Incident, Object, Run, Sight, Write};
use crate::time::Time;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A key whose runs write to objects in a world of one.
struct World {
    detector: Detector<&'static str>,
    now: Time,
    reports: Vec<Arc<Incident>>,
    delays: Vec<Answer>,
    /// What is written in the current run.
    writes: Vec<Write>,
}

fn site() -> Object {
    Object::new("Site", Some("default"), "blog")
}

fn deployment() -> Object {
    Object::new("Deployment", Some("default"), "blog")
}

/// An object with this content that these managers own the fields of.
fn object(content: &Value, managers: &[(&str, Value)]) -> Value {
    let mut object = content.clone();
    let entries = managers.iter().enumerate().map(|(at, (name, fields))| {
        json!({
            "manager": name, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": format!("2026-01-01T00:00:{at:02}Z"), "fieldsV1": fields,
        })
    });
    object["metadata"]["managedFields"] = entries.collect();
    object
}

impl World {
    fn new(config: Config) -> Self {
        Self {
            detector: Detector::new(config),
            now: Time::ORIGIN,
            reports: Vec::new(),
            delays: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// A write of `site-operator` that sends `sent`.
    fn write(
        &mut self,
        object: Object,
        form: Form,
        sent: Value,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        let sight = self.detector.observes(&"blog").then(|| {
            Box::new(Sight {
                form,
                sent,
                before: before.cloned(),
                after: after.cloned(),
            })
        });
        self.writes.push(Write {
            object,
            manager: Some("site-operator".into()),
            changed: Some(before != after),
            sight,
        });
    }

    /// Nothing happens for so long.
    fn rest(&mut self, time: Duration) {
        self.now += time;
    }

    /// Ends the run that was caused so, 20 ms after the one before.
    fn run(&mut self, causes: &[Cause]) -> Answer {
        self.end(causes, false)
    }

    /// A run that failed is held for a second.
    fn end(&mut self, causes: &[Cause], failed: bool) -> Answer {
        self.end_until(causes, failed, failed.then_some(Duration::from_secs(1)))
    }

    /// Ends a run whose key runs again by itself after this time.
    fn end_until(&mut self, causes: &[Cause], failed: bool, after: Option<Duration>) -> Answer {
        self.now += Duration::from_millis(20);
        let run = Run {
            object: site(),
            started: self.now,
            causes: causes.to_vec(),
            failed,
            after,
            writes: std::mem::take(&mut self.writes),
        };
        self.now += Duration::from_millis(5);
        let answer = self.detector.finished(self.now, &"blog", &run);
        self.reports.extend(answer.report.clone());
        self.delays.push(answer.clone());
        answer
    }

    fn report(&self) -> String {
        let reports: Vec<String> = self.reports.iter().map(ToString::to_string).collect();
        reports.join("\n---\n")
    }
}
