//! An operator that keeps a copy of each `ConfigMap` that asks for one, and sends traces of that to a collector.
//!
//! A trace begins with an event of a watch. Inside of it is the run of the reconciler that answers the event, and inside of
//! that are the requests of the run.

use futures::StreamExt;
use homeostat::{Action, Controller, error_policy, watcher};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource as Service, trace::SdkTracerProvider};
use std::{future::ready, sync::Arc};
use tracing::{Level, Subscriber, instrument};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    registry::LookupSpan,
};

/// The name of this operator, as a field manager and as a service in traces.
pub const NAME: &str = "copier";

/// The label of `ConfigMaps` that are copied.
pub const COPIED: &str = "copier.homeostat.dev/copied";

/// What the reconciler needs.
struct Context {
    client: Client,
}

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the copy: {0}")]
struct CopyFailed(#[source] kube::Error);

/// Makes the copy `<name>-copy` what it should be.
async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, CopyFailed> {
    let copy = copy_of(&map);
    let name = copy.name_any();
    write(&ctx.client, &name, &copy).await.map_err(CopyFailed)?;
    Ok(Action::await_change())
}

/// A span of your own stands between the run and the request.
#[instrument(skip(client, copy))]
async fn write(client: &Client, name: &str, copy: &ConfigMap) -> Result<(), kube::Error> {
    let namespace = copy.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    maps.patch(name, &PatchParams::apply(NAME).force(), &Patch::Apply(copy))
        .await?;
    Ok(())
}

fn copy_of(map: &ConfigMap) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-copy", map.name_any())),
            namespace: map.namespace(),
            owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: map.data.clone(),
        ..ConfigMap::default()
    }
}

/// Runs the operator until `stop` is ready.
pub async fn run(client: Client, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let copied = watcher::Config::default().labels(COPIED);
    Controller::new(maps.clone(), copied)
        .owns(maps, watcher::Config::default())
        .graceful_shutdown_on(stop)
        .run(
            reconcile,
            error_policy::backoff,
            Arc::new(Context { client }),
        )
        // The log tells of failures.
        .for_each(|_| ready(()))
        .await;
}

/// Sends spans to a collector that speaks OTLP over HTTP, such as `http://localhost:4318`.
///
/// Call `shutdown` on the provider before the program ends: the last spans are sent then.
///
/// # Errors
///
/// If the collector's address is none.
pub fn provider(collector: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
        .build()?;
    let service = Service::builder().with_service_name(NAME).build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(service)
        .build())
}

/// What becomes a span of a trace.
///
/// Events of watches have a target of their own, which is off unless you ask for it. The span of a request is the kube
/// client's.
#[must_use]
pub fn spans() -> Targets {
    Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("homeostat::events", Level::TRACE)
        .with_target("kube_client::client", Level::DEBUG)
        // The exporter's own requests would be traced, too.
        .with_target("opentelemetry", LevelFilter::OFF)
        .with_target("reqwest", LevelFilter::OFF)
}

/// Writes the log to the standard error, and traces to the provider's collector.
pub fn subscriber(
    provider: &SdkTracerProvider,
) -> impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + use<> {
    use tracing_subscriber::Layer;

    let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer(NAME));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(traces.with_filter(spans()))
        .with(log.with_filter(LevelFilter::INFO))
}
