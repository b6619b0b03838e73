//! A program that watches whatever kind its command line names.

use super::{
    HOMEOSTAT,
    runtime::watcher::{self, Event, watcher},
};
use crate::{
    cluster::{Cluster, create, delete, during, from, merge, serve},
    journal::Journal,
};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    core::{ApiResource, DynamicObject},
    discovery::{ApiGroup, Discovery, Scope, verbs},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Valve")]
struct ValveSpec {
    open: bool,
}

/// What the command line says.
#[derive(Default)]
struct Arguments {
    resource: String,
    namespace: Option<String>,
    selector: Option<String>,
    fields: Option<String>,
}

impl Arguments {
    fn parse(line: &str) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(str::to_owned);
            match word {
                "-n" => arguments.namespace = value(),
                "-l" => arguments.selector = value(),
                "-f" => arguments.fields = value(),
                _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
                resource => resource.clone_into(&mut arguments.resource),
            }
        }
        Ok(arguments)
    }

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default().timeout(120).page_size(50);
        if let Some(selector) = &self.selector {
            config = config.labels(selector);
        }
        if let Some(fields) = &self.fields {
            config = config.fields(fields);
        }
        config
    }
}

/// The resource that is called this, or this and its group, or by its kind.
async fn resolve(client: &Client, name: &str) -> Result<Option<(ApiResource, Scope)>, kube::Error> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let resources = discovery.groups().flat_map(ApiGroup::recommended_resources);
    let found = resources
        .filter(|(_, capabilities)| capabilities.supports_operation(verbs::WATCH))
        .find(|(resource, _)| {
            let full = format!("{}.{}", resource.plural, resource.group);
            [&resource.plural, &resource.kind, &full].contains(&&name.to_owned())
        });
    Ok(found.map(|(resource, capabilities)| (resource, capabilities.scope)))
}

async fn run(client: Client, line: &str, output: Journal) {
    let arguments = match Arguments::parse(line) {
        Ok(arguments) => arguments,
        Err(error) => return output.say(error),
    };
    let (resource, scope) = match resolve(&client, &arguments.resource).await {
        Ok(Some(found)) => found,
        Ok(None) => return output.say(format!("no resource {:?}", arguments.resource)),
        Err(error) => return output.say(error.to_string()),
    };
    let api: Api<DynamicObject> = match (scope, &arguments.namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    };
    let events = watcher(api, arguments.config());
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => output.say("begin"),
            Ok(Event::InitApply(object)) => output.say(format!("  {}", object.name_any())),
            Ok(Event::InitDone) => output.say("end"),
            Ok(event @ (Event::Apply(_) | Event::Delete(_))) => output.say(event.to_string()),
            Err(error) => output.say(error.to_string()),
        }
    }
}

/// A namespaced kind, by its plural and group, with both selectors.
#[tokio::test(start_paused = true)]
async fn a_builtin_kind_is_watched() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let deployments = cluster.api::<Deployment>();
    let deployment = |name: &str, app: &str| {
        let labels = json!({ "app": app });
        from::<Deployment>(json!({
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
                },
            },
        }))
    };
    create(&deployments, &deployment("a", "web")).await;
    create(&deployments, &deployment("b", "mail")).await;
    create(&deployments, &deployment("c", "web")).await;

    let line = "deployments.apps -n default -l app=web -f metadata.name!=c";
    during(run(cluster.program(), line, output.clone()), async {
        output.until_said("end").await;
        merge(&deployments, "a", json!({ "spec": { "replicas": 2 } })).await;
        merge(&deployments, "b", json!({ "spec": { "replicas": 2 } })).await;
        delete(&deployments, "a").await;
        output.until_count(5).await;
    })
    .await;
    // Homeostat's events are shown with their namespace.
    let shown = if HOMEOSTAT { "default/a" } else { "a" };
    let (applied, deleted) = (format!("Apply({shown})"), format!("Delete({shown})"));
    let expected = ["begin", "  a", "end", applied.as_str(), &deleted];
    assert_eq!(output.lines(), expected);
}

/// A kind of the cluster that a definition made, by its kind.
#[tokio::test(start_paused = true)]
async fn a_custom_kind_is_watched() {
    let cluster = Cluster::start();
    serve::<Valve>(&cluster).await;
    let output = Journal::default();
    let valves = Api::<Valve>::all(cluster.client());
    during(run(cluster.program(), "Valve", output.clone()), async {
        output.until_said("end").await;
        create(&valves, &Valve::new("main", ValveSpec { open: true })).await;
        merge(&valves, "main", json!({ "spec": { "open": false } })).await;
        delete(&valves, "main").await;
        output.until_count(5).await;
    })
    .await;
    let expected = ["begin", "end", "Apply(main)", "Apply(main)", "Delete(main)"];
    assert_eq!(output.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_named() {
    let cluster = Cluster::start();
    let output = Journal::default();
    run(cluster.program(), "pods --all", output.clone()).await;
    run(cluster.program(), "unicorns", output.clone()).await;
    let expected = ["unknown option --all", "no resource \"unicorns\""];
    assert_eq!(output.lines(), expected);
}
