//! Fills the templates of a project.
//!
//! `{{name}}` is replaced. Lines between `%%if word` and `%%else` or `%%end` stay if the word holds.

use super::{Plan, roles};
use serde_json::json;
use std::collections::BTreeMap;

/// What stands for what.
pub(super) struct Template {
    values: BTreeMap<&'static str, String>,
    words: BTreeMap<&'static str, bool>,
}

// === impl Template ===

impl Template {
    pub(super) fn of(plan: &Plan) -> Self {
        let names = &plan.names;
        let has_workload = plan.owned.iter().any(|owned| owned.workload);
        let mut values = BTreeMap::from([
            ("name", names.project.clone()),
            ("crate", names.library.clone()),
            ("group", names.group.clone()),
            ("version", names.version.clone()),
            ("kind", names.kind.clone()),
            ("singular", names.singular.clone()),
            ("plural", names.plural.clone()),
            ("rbac", roles::manifest(plan)),
        ]);
        values.extend(texts(plan));
        values.extend(children(plan));
        values.extend(answers(plan));
        values.extend(dependencies(plan));
        Self {
            values,
            words: BTreeMap::from([
                ("status", plan.status),
                ("finalizer", plan.finalizer),
                ("workload", has_workload),
                ("published", plan.clone.is_none()),
            ]),
        }
    }

    pub(super) fn fill(&self, template: &str) -> String {
        let mut text = String::new();
        let mut stays = true;
        for line in template.lines() {
            match line.strip_prefix("%%") {
                Some("end") => stays = true,
                Some("else") => stays = !stays,
                Some(condition) => {
                    let word = condition.trim_start_matches("if ");
                    stays = *self.words.get(word).expect("the templates use known words");
                }
                None if stays => self.fill_line(line, &mut text),
                None => {}
            }
        }
        text
    }

    /// A line that is nothing but an empty value is left out.
    fn fill_line(&self, line: &str, text: &mut String) {
        let mut rest = line;
        let mut filled = String::new();
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after
                .split_once("}}")
                .expect("the templates are well formed");
            filled.push_str(before);
            filled.push_str(
                self.values
                    .get(name)
                    .expect("the templates use known names"),
            );
            rest = after;
        }
        filled.push_str(rest);
        if filled.trim().is_empty() && !line.trim().is_empty() {
            return;
        }
        text.push_str(&filled);
        if !filled.ends_with('\n') {
            text.push('\n');
        }
    }
}

fn texts(plan: &Plan) -> Vec<(&'static str, String)> {
    let kind = &plan.names.kind;
    let text = |when: bool, then: &str| if when { then.to_owned() } else { String::new() };
    let kinds: Vec<String> = plan
        .owned
        .iter()
        .map(|owned| format!("a {}", owned.kind))
        .collect();
    let owned_text = match kinds.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        all => all.concat(),
    };
    let reconcile_items = [
        (plan.finalizer, "FINALIZER"),
        (plan.status, "RECONCILED"),
        (plan.finalizer, "clean_up"),
        (true, "reconcile"),
    ];
    let mut resource_items = vec![kind.clone(), format!("{kind}Spec")];
    resource_items.extend(plan.status.then(|| format!("{kind}Status")));
    resource_items.push("crd_yaml".to_owned());
    let reconcile_items = reconcile_items.iter().filter(|(is_there, _)| *is_there);
    let reconcile_items: Vec<&str> = reconcile_items.map(|(_, item)| *item).collect();
    vec![
        (
            "what_they_read",
            text(plan.status, ", and what they read back"),
        ),
        ("owned_text", owned_text),
        ("reconcile_items", reconcile_items.join(", ")),
        ("resource_items", resource_items.join(", ")),
        ("status_import", text(plan.status, ", status")),
        (
            "kube_import",
            text(
                plan.status || !plan.finalizer,
                "use kube::{Api, ResourceExt};",
            ),
        ),
        ("clock_import", text(plan.status, ", clock, status::patch")),
    ]
}

/// What is different with other children.
fn children(plan: &Plan) -> Vec<(&'static str, String)> {
    let owned = &plan.owned;
    let first = owned
        .first()
        .expect("a new operator owns at least one kind");
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for owned in owned {
        modules.entry(owned.module).or_default().push(owned.kind);
    }
    let imports: Vec<String> = modules
        .iter()
        .map(|(module, kinds)| {
            format!(
                "use k8s_openapi::api::{module}::{{{}}};\n",
                kinds.join(", ")
            )
        })
        .collect();
    let functions = owned.iter().map(|owned| owned.code(&plan.names.kind));
    let owns: Vec<String> = owned
        .iter()
        .enumerate()
        .map(|(index, it)| {
            let last = index + 1 == owned.len();
            let ours = if last { "ours" } else { "ours.clone()" };
            format!(
                "        .owns(Api::<{}>::all(client.clone()), {ours})\n",
                it.kind
            )
        })
        .collect();
    vec![
        ("first", first.kind.to_owned()),
        (
            "first_import",
            format!("use k8s_openapi::api::{}::{};", first.module, first.kind),
        ),
        ("child_imports", imports.concat()),
        ("owned_imports", imports.concat()),
        ("child_functions", functions.collect()),
        ("owns", owns.concat()),
    ]
}

/// What is done with the answers of applies.
fn answers(plan: &Plan) -> Vec<(&'static str, String)> {
    let owned = &plan.owned;
    // Without a status nobody looks at what an apply answers.
    let applied: Vec<String> = owned
        .iter()
        .map(|it| {
            let function = it.function;
            let apply = format!("set.apply(children::{function}(&object)).await?;\n");
            if plan.status {
                format!("    let {function} = {apply}")
            } else {
                format!("    {apply}")
            }
        })
        .collect();
    let any = |conditions: Vec<String>| {
        if conditions.is_empty() {
            "false".to_owned()
        } else {
            conditions.join(" || ")
        }
    };
    let replacing = owned
        .iter()
        .map(|it| format!("{}.is_leaving()", it.function))
        .collect();
    let workloads: Vec<_> = owned.iter().filter(|owned| owned.workload).collect();
    let progressing = workloads
        .iter()
        .map(|it| format!("!status::is_{}_rolled_out(&{})", it.function, it.function))
        .collect();
    let status_imports = workloads
        .iter()
        .map(|it| format!("use k8s_openapi::api::{}::{};\n", it.module, it.kind));
    let rolled_out = workloads.iter().map(|it| rolled_out(it.kind, it.function));
    vec![
        ("apply_children", applied.concat()),
        ("replacing", any(replacing)),
        ("progressing", any(progressing)),
        ("status_imports", status_imports.collect()),
        ("rolled_out", rolled_out.collect()),
    ]
}

/// The function that tells whether all pods of a workload are up.
fn rolled_out(kind: &str, function: &str) -> String {
    // One of them has the number in an option, the other has not.
    let replicas = if kind == "Deployment" {
        "status.replicas"
    } else {
        "Some(status.replicas)"
    };
    format!(
        "
/// Whether all replicas run the newest template, and none runs an older one.
#[must_use]
pub fn is_{function}_rolled_out(workload: &{kind}) -> bool {{
    let (Some(spec), Some(status)) = (&workload.spec, &workload.status) else {{
        return false;
    }};
    let wanted = spec.replicas.unwrap_or(1);
    let counts = [{replicas}, status.updated_replicas, status.ready_replicas];
    // A status is about the generation that it names. It leaves out zeros.
    status.observed_generation >= workload.metadata.generation
        && counts.iter().all(|count| count.unwrap_or(0) == wanted)
}}
"
    )
}

fn dependencies(plan: &Plan) -> Vec<(&'static str, String)> {
    let dependency = |folder: &str| match &plan.clone {
        // As TOML writes texts.
        Some(clone) => format!("path = {}", json!(clone.join("crates").join(folder))),
        None => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
    };
    vec![
        ("homeostat", dependency("runtime")),
        ("apiserver", dependency("apiserver")),
        ("testing", dependency("testing")),
    ]
}
