//! Rules for what makes pods.

use serde_json::{Value, json};

use crate::object;
use crate::registry::{cron, selector};
use crate::status::Cause;

/// The longest name of a cron job: its jobs' names are longer by eleven characters.
const MAX_CRON_JOB_NAME: usize = 52;

/// The rules that something breaks whose pods last: it finds its pods, and they start again.
pub(super) fn lasting(object: &Value) -> Vec<Cause> {
    let (wanted, template) = (&object["spec"]["selector"], &object["spec"]["template"]);
    let mut causes = Vec::new();
    if wanted.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    }
    if !selector::selects(wanted, template) {
        let labels = &template["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
    let policy = &template["spec"]["restartPolicy"];
    if *policy != "Always" {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause::not_supported(field, policy, &["Always"]));
    }
    causes
}

/// What goes on for ever has no deadline.
pub(super) fn no_deadline(object: &Value, kind: &str) -> Option<Cause> {
    let spec = &object["spec"]["template"]["spec"];
    let why = format!("activeDeadlineSeconds in {kind} is not Supported");
    let field = "spec.template.spec.activeDeadlineSeconds";
    (!spec["activeDeadlineSeconds"].is_null()).then(|| Cause::forbidden(field, &why))
}

/// The rules that a job breaks.
pub(super) fn job(job: &Value, old: Option<&Value>) -> Vec<Cause> {
    let Some(old) = old else {
        return restart_cause(&job["spec"], "spec").into_iter().collect();
    };
    let (new, old_spec) = (&job["spec"], &old["spec"]);
    let why = "field is immutable";
    let mut causes = Vec::new();
    // A job that counts its pods by index can grow and shrink as a whole.
    let elastic = new["completionMode"] == "Indexed" && new["completions"] == new["parallelism"];
    if new["completions"] != old_spec["completions"] && !elastic {
        causes.push(Cause::invalid("spec.completions", &new["completions"], why));
    }
    // Before a job starts, whoever queues it may still say where its pods go.
    let waits = old_spec["suspend"] == true && old["status"]["startTime"].is_null();
    if new["template"] != old_spec["template"] && !waits {
        causes.push(Cause::invalid("spec.template", &new["template"], why));
    }
    causes
}

/// The rules that a cron job breaks.
pub(super) fn cron_job(cron_job: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::name(cron_job);
    if name.len() > MAX_CRON_JOB_NAME {
        let why = "must be no more than 52 characters";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    let schedule = &cron_job["spec"]["schedule"];
    match schedule.as_str().unwrap_or_default() {
        "" => causes.push(Cause::required("spec.schedule", "")),
        text => {
            let problem = cron::problem(text);
            causes.extend(problem.map(|why| Cause::invalid("spec.schedule", schedule, &why)));
        }
    }
    causes.extend(restart_cause(
        &cron_job["spec"]["jobTemplate"]["spec"],
        "spec.jobTemplate.spec",
    ));
    causes
}

/// The pods of a job end.
fn restart_cause(job: &Value, path: &str) -> Option<Cause> {
    let policy = &job["template"]["spec"]["restartPolicy"];
    let ends = *policy == "OnFailure" || *policy == "Never";
    let why = "valid values: \"OnFailure\", \"Never\"";
    (!ends).then(|| Cause::required(format!("{path}.template.spec.restartPolicy"), why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(causes: &[Cause], fields: &[&str]) {
        let found: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(found, fields);
    }

    fn spec(image: &str, more: &Value) -> Value {
        let pod = json!({ "restartPolicy": "Never", "image": image });
        let mut spec = json!({ "template": { "spec": pod } });
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        json!({ "spec": spec })
    }

    #[test]
    fn what_lasts() {
        let deployment = |app: &str, policy: &str| {
            json!({ "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": {
                    "metadata": { "labels": { "app": app } }, "spec": { "restartPolicy": policy },
                },
            } })
        };
        check(&lasting(&deployment("a", "Always")), &[]);
        check(
            &lasting(&deployment("b", "Never")),
            &[
                "spec.template.metadata.labels",
                "spec.template.spec.restartPolicy",
            ],
        );
        let mut blind = deployment("a", "Always");
        blind["spec"]["selector"] = Value::Null;
        check(
            &lasting(&blind),
            &["spec.selector", "spec.template.metadata.labels"],
        );
    }

    #[test]
    fn jobs() {
        let none = json!({});
        check(&job(&spec("a", &none), None), &[]);
        let endless = json!({ "spec": { "template": { "spec": {} } } });
        check(&job(&endless, None), &["spec.template.spec.restartPolicy"]);
        let old = spec("a", &none);
        check(&job(&old, Some(&old)), &[]);
        check(&job(&spec("b", &none), Some(&old)), &["spec.template"]);
        let waiting = spec("a", &json!({ "suspend": true }));
        check(&job(&spec("b", &none), Some(&waiting)), &[]);
        let more = json!({ "completions": 2, "parallelism": 2 });
        check(&job(&spec("a", &more), Some(&old)), &["spec.completions"]);
        let indexed = json!({ "completions": 2, "parallelism": 2, "completionMode": "Indexed" });
        check(&job(&spec("a", &indexed), Some(&old)), &[]);
    }

    #[test]
    fn cron_jobs() {
        let with = |schedule: &str| {
            let mut object = json!({ "spec": { "schedule": schedule } });
            object["spec"]["jobTemplate"] = spec("a", &json!({}));
            object
        };
        check(&cron_job(&with("@daily")), &[]);
        check(&cron_job(&with("often")), &["spec.schedule"]);
        check(&cron_job(&with("")), &["spec.schedule"]);
    }
}
