//! What a manager measures, for Prometheus.

use super::handle::Shared;
use crate::{
    client::{REQUEST_BOUNDS, Sums},
    controller::{About, BOUNDS, Ended, Failure, REASONS},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text},
    metrics::MetricType,
    registry::{Registry, Unit},
};
use std::{fmt, io::Write as _, sync::Arc, time::Duration};

/// What a metric is, and how it is called by the answers to scrapes.
struct Metric {
    /// Without its unit and `_total`.
    name: &'static str,
    help: &'static str,
    unit: Option<&'static str>,
    kind: MetricType,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $(in $unit:literal)? = $full:literal, $help:literal;)+) => {
        $(const $constant: Metric = Metric {
            name: $name,
            help: $help,
            unit: metrics!(@unit $($unit)?),
            kind: MetricType::$kind,
        };)+

        /// The names of all metrics of a manager, as Prometheus shows them. Those of histograms are followed by
        /// `_bucket`, `_sum` and `_count`.
        pub const NAMES: &[&str] = &[$($full),+];
    };
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
}

metrics! {
    RECONCILES: Counter "homeostat_reconciles" = "homeostat_reconciles_total",
        "Reconciles that have ended, by how they ended";
    FAILED: Counter "homeostat_reconcile_errors" = "homeostat_reconcile_errors_total",
        "Reconciles that have failed, by what follows: retried after a delay (transient), after the server's (throttled), in a moment (conflict), after a change (permanent); or why: unreachable, panic, timeout";
    CONCURRENCY: Gauge "homeostat_max_concurrent_reconciles" = "homeostat_max_concurrent_reconciles",
        "How many reconciles may run at once";
    DURATION: Histogram "homeostat_reconcile_duration" in "seconds" = "homeostat_reconcile_duration_seconds",
        "How long reconciles took";
    RETRIES: Counter "homeostat_retries" = "homeostat_retries_total",
        "Reconciles that were started because the one before failed and its delay was over";
    EARLY: Counter "homeostat_early_reconciles" = "homeostat_early_reconciles_total",
        "Reconciles that did not count because they read a store before it was complete";
    ADDED: Counter "homeostat_queue_adds" = "homeostat_queue_adds_total",
        "What has asked for reconciles, by reason";
    DEPTH: Gauge "homeostat_queue_depth" = "homeostat_queue_depth",
        "Objects that wait or run, by state: ready, waiting for a time, backing off, parked until a change, running";
    OLDEST: Gauge "homeostat_queue_oldest" in "seconds" = "homeostat_queue_oldest_seconds",
        "How long the object has been ready that waits for the longest time";
    LONGEST: Gauge "homeostat_longest_running" in "seconds" = "homeostat_longest_running_seconds",
        "How long the reconcile has been going on that runs for the longest time";
    STUCK: Gauge "homeostat_stuck_reconciles" = "homeostat_stuck_reconciles",
        "Reconciles that hold all slots of a controller for more than a minute";
    REQUESTS: Counter "homeostat_reconcile_requests" = "homeostat_reconcile_requests_total",
        "Requests of reconciles through a tracked client";
    WRITES: Counter "homeostat_reconcile_writes" = "homeostat_reconcile_writes_total",
        "Writes of reconciles that the server has accepted";
    VAIN: Counter "homeostat_reconcile_vain_writes" = "homeostat_reconcile_vain_writes_total",
        "Writes of reconciles that have certainly changed nothing";
    WAITS: Counter "homeostat_write_waits" = "homeostat_write_waits_total",
        "Waits until caches have seen what a reconcile wrote, by whether they did in time";
    SELF: Counter "homeostat_self_triggered_reconciles" = "homeostat_self_triggered_reconciles_total",
        "Reconciles that nothing but the object's own writes have led to";
    LOOPS: Counter "homeostat_loops" = "homeostat_loops_total",
        "Reconcile loops that were found";
    OUTAGES: Counter "homeostat_outages" = "homeostat_outages_total",
        "How often the API server was found not to answer";
    READY: Gauge "homeostat_controller_ready" = "homeostat_controller_ready",
        "Whether all caches of a controller are complete and its watches work";
    MISSING: Gauge "homeostat_controller_definition_missing" = "homeostat_controller_definition_missing",
        "Whether the server does not serve a controller's own kind";
    OPENED: Counter "homeostat_watch_starts" = "homeostat_watch_starts_total",
        "How often a watch was opened";
    LISTS: Counter "homeostat_watch_lists" = "homeostat_watch_lists_total",
        "Lists that were complete: more than one means that changes were missed in between";
    FAILURES: Counter "homeostat_watch_failures" = "homeostat_watch_failures_total",
        "Requests of a watch that failed";
    EVENTS: Counter "homeostat_watch_events" = "homeostat_watch_events_total",
        "Changes that a watch has told of";
    UNDECODABLE: Counter "homeostat_watch_undecodable_objects" = "homeostat_watch_undecodable_objects_total",
        "Objects that did not fit their Rust type, each time that they came";
    SILENCE: Gauge "homeostat_watch_last_event_age" in "seconds" = "homeostat_watch_last_event_age_seconds",
        "How long ago a watch told of a change";
    OBJECTS: Gauge "homeostat_cache_objects" = "homeostat_cache_objects",
        "Objects in the cache of a watch";
    BYTES: Gauge "homeostat_cache_objects_size" in "bytes" = "homeostat_cache_objects_size_bytes",
        "About how many bytes the objects in the cache of a watch have, as JSON: their number times their average size";
    API: Counter "homeostat_api_requests" = "homeostat_api_requests_total",
        "Requests through tracked clients, by verb, resource and code of the answer; none if there was no answer";
    API_TIME: Counter "homeostat_api_request_time" in "seconds" = "homeostat_api_request_time_seconds_total",
        "How long requests took until their answer began, all together";
    API_DURATION: Histogram "homeostat_api_request_duration" in "seconds" = "homeostat_api_request_duration_seconds",
        "How long requests took until their answer began";
    LEADER: Gauge "homeostat_leader" = "homeostat_leader",
        "Whether this replica leads";
    TERMS: Counter "homeostat_leader_terms" = "homeostat_leader_terms_total",
        "How often this replica has begun to lead";
}

/// The metrics of a manager, as they are when somebody asks.
pub(super) struct Measured {
    shared: Arc<Shared>,
}

/// The labels of a series.
type Labels = Vec<(&'static str, String)>;

/// A series of a controller, and its value.
type Series<V> = (Labels, V);

// === impl Measured ===

impl Measured {
    /// A registry that has nothing else.
    pub(super) fn registry(shared: Arc<Shared>) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Self { shared }));
        registry
    }

    /// The series of all controllers, as `of` tells them of one.
    fn controllers<V>(
        &self,
        of: impl Fn(&About) -> Vec<(Option<(&'static str, &'static str)>, V)>,
    ) -> Vec<Series<V>> {
        let units = self.shared.units();
        let controllers = units
            .values()
            .filter_map(|known| Some((&known.name, known.about.get()?)));
        let series = controllers.flat_map(|(name, about)| {
            of(about).into_iter().map(|(label, value)| {
                let mut labels = vec![("controller", name.clone())];
                labels.extend(label.map(|(key, value)| (key, value.to_owned())));
                (labels, value)
            })
        });
        series.collect()
    }

    fn encode_runs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let ended = self.controllers(|about| {
            let of = |how: Ended| (Some(("result", how.name())), about.meter().runs(how));
            Ended::ALL.into_iter().map(of).collect()
        });
        counters(encoder, &RECONCILES, &ended)?;
        let failed = self.controllers(|about| {
            let of = |what: Failure| (Some(("class", what.name())), about.meter().failures(what));
            Failure::ALL.into_iter().map(of).collect()
        });
        counters(encoder, &FAILED, &failed)?;
        let durations = self.controllers(|about| vec![(None, about.meter().durations())]);
        let durations = durations.into_iter().map(|(labels, durations)| {
            let sum = durations.sum;
            (labels, (sum, durations.counts.to_vec()))
        });
        histograms(encoder, &DURATION, &BOUNDS, &durations.collect::<Vec<_>>())?;
        let added = self.controllers(|about| {
            let reasons = REASONS.iter().enumerate();
            let of = |(place, reason): (usize, &&'static str)| {
                (Some(("reason", *reason)), about.meter().adds(place))
            };
            reasons.map(of).collect()
        });
        counters(encoder, &ADDED, &added)?;
        let one = |value: fn(&About) -> u64| self.controllers(|about| vec![(None, value(about))]);
        counters(encoder, &RETRIES, &one(|about| about.meter().retries()))?;
        counters(encoder, &EARLY, &one(|about| about.counts().early_runs))?;
        counters(encoder, &REQUESTS, &one(|about| about.counts().requests))?;
        counters(encoder, &WRITES, &one(|about| about.counts().writes))?;
        counters(encoder, &VAIN, &one(|about| about.counts().vain_writes))?;
        counters(
            encoder,
            &SELF,
            &one(|about| about.counts().self_triggered_runs),
        )?;
        counters(encoder, &LOOPS, &one(|about| about.counts().loops))?;
        counters(encoder, &OUTAGES, &one(|about| about.counts().outages))?;
        let waits = self.controllers(|about| {
            let counts = about.counts();
            let seen = counts.waits.saturating_sub(counts.overdue_waits);
            vec![
                (Some(("result", "seen")), seen),
                (Some(("result", "overdue")), counts.overdue_waits),
            ]
        });
        counters(encoder, &WAITS, &waits)
    }

    fn encode_queues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let depths = self.controllers(|about| {
            let depths = about.meter().depths().into_iter();
            let of = |(state, depth): (_, usize)| (Some(("state", state)), as_gauge(depth));
            depths.map(of).collect()
        });
        gauges(encoder, &DEPTH, &depths)?;
        let one = |value: fn(&About) -> f64| self.controllers(|about| vec![(None, value(about))]);
        gauges(
            encoder,
            &OLDEST,
            &one(|about| about.meter().oldest().as_secs_f64()),
        )?;
        gauges(
            encoder,
            &LONGEST,
            &one(|about| about.longest_running().as_secs_f64()),
        )?;
        gauges(
            encoder,
            &CONCURRENCY,
            &one(|about| as_gauge(about.meter().concurrency())),
        )?;
        gauges(
            encoder,
            &STUCK,
            &one(|about| as_gauge(about.readiness.stuck().len())),
        )?;
        gauges(
            encoder,
            &READY,
            &one(|about| truth(about.readiness.is_ready())),
        )?;
        gauges(
            encoder,
            &MISSING,
            &one(|about| {
                let own = about.readiness.sources().into_iter().next();
                truth(own.is_some_and(|own| own.not_served))
            }),
        )
    }

    fn encode_watches(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.shared.watches.tallied();
        let of = |value: &dyn Fn(&crate::controller::Tallied) -> u64| -> Vec<Series<u64>> {
            all.iter()
                .map(|(watch, tallied, _)| (vec![("watch", watch.clone())], value(tallied)))
                .collect()
        };
        counters(encoder, &OPENED, &of(&|tallied| tallied.opened))?;
        counters(encoder, &LISTS, &of(&|tallied| tallied.lists))?;
        counters(encoder, &FAILURES, &of(&|tallied| tallied.failures))?;
        counters(encoder, &EVENTS, &of(&|tallied| tallied.events))?;
        counters(encoder, &UNDECODABLE, &of(&|tallied| tallied.undecodable))?;
        let ages = all.iter().filter_map(|(watch, tallied, _)| {
            let age = tallied.last_event?.elapsed().as_secs_f64();
            Some((vec![("watch", watch.clone())], age))
        });
        gauges(encoder, &SILENCE, &ages.collect::<Vec<_>>())?;
        let objects = all.iter().filter_map(|(watch, _, objects)| {
            Some((vec![("watch", watch.clone())], as_gauge((*objects)?)))
        });
        gauges(encoder, &OBJECTS, &objects.collect::<Vec<_>>())?;
        let bytes = all.iter().filter_map(|(watch, tallied, objects)| {
            let size = usize::try_from(tallied.size).unwrap_or(usize::MAX);
            let bytes = (*objects)?.saturating_mul(size);
            Some((vec![("watch", watch.clone())], as_gauge(bytes)))
        });
        gauges(encoder, &BYTES, &bytes.collect::<Vec<_>>())
    }

    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Sums {
            requests,
            times,
            durations,
        } = self.shared.watches.traffic().sums();
        let labels = |verb: &str, resource: &str| {
            vec![("verb", verb.to_owned()), ("resource", resource.to_owned())]
        };
        let requests = requests.into_iter().map(|(verb, resource, code, count)| {
            let mut labels = labels(verb, &resource);
            labels.push(("code", code));
            (labels, count)
        });
        counters(encoder, &API, &requests.collect::<Vec<_>>())?;
        let times = times.into_iter();
        let times =
            times.map(|(verb, resource, time)| (labels(verb, &resource), time.as_secs_f64()));
        let times: Vec<_> = times.collect();
        if let Some(mut described) = begin(encoder, &API_TIME, !times.is_empty())? {
            for (labels, value) in &times {
                let mut one = described.encode_family(labels)?;
                one.encode_counter::<NoLabelSet, _, f64>(value, None)?;
            }
        }
        let durations = durations
            .into_iter()
            .map(|(verb, sum, counts)| (vec![("verb", verb.to_owned())], (sum, counts.to_vec())));
        let durations: Vec<_> = durations.collect();
        histograms(encoder, &API_DURATION, &REQUEST_BOUNDS, &durations)
    }

    fn encode_leadership(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(leadership) = self.shared.leadership.get() else {
            return Ok(());
        };
        let status = leadership.status();
        gauges(encoder, &LEADER, &[(Vec::new(), truth(status.leads))])?;
        counters(encoder, &TERMS, &[(Vec::new(), status.terms)])
    }
}

impl Collector for Measured {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_runs(&mut encoder)?;
        self.encode_queues(&mut encoder)?;
        self.encode_watches(&mut encoder)?;
        self.encode_requests(&mut encoder)?;
        self.encode_leadership(&mut encoder)
    }
}

impl fmt::Debug for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measured").finish_non_exhaustive()
    }
}

/// Begins a metric, unless it has no series: those that do not exist are not described.
fn begin<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    metric: &'e Metric,
    is_there: bool,
) -> Result<Option<MetricEncoder<'e>>, fmt::Error> {
    if !is_there {
        return Ok(None);
    }
    let unit: Option<&'static Unit> = metric.unit.map(|unit| match unit {
        "bytes" => &Unit::Bytes,
        _ => &Unit::Seconds,
    });
    let described = encoder.encode_descriptor(metric.name, metric.help, unit, metric.kind);
    described.map(Some)
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    series: &[Series<u64>],
) -> fmt::Result {
    let Some(mut described) = begin(encoder, metric, !series.is_empty())? else {
        return Ok(());
    };
    for (labels, value) in series {
        let mut one = described.encode_family(labels)?;
        one.encode_counter::<NoLabelSet, _, f64>(value, None)?;
    }
    Ok(())
}

/// Histograms with these bounds in milliseconds: the sum, and how many lie in which bucket.
fn histograms(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    bounds: &[u64],
    series: &[Series<(Duration, Vec<u64>)>],
) -> fmt::Result {
    let Some(mut described) = begin(encoder, metric, !series.is_empty())? else {
        return Ok(());
    };
    for (labels, (sum, counts)) in series {
        let bounds = bounds.iter().map(|&bound| seconds(bound));
        let bounds = bounds.chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(counts.iter().copied()).collect();
        let mut one = described.encode_family(labels)?;
        let count = counts.iter().sum();
        one.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)?;
    }
    Ok(())
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    series: &[Series<f64>],
) -> fmt::Result {
    let Some(mut described) = begin(encoder, metric, !series.is_empty())? else {
        return Ok(());
    };
    for (labels, value) in series {
        described.encode_family(labels)?.encode_gauge(value)?;
    }
    Ok(())
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of objects in memory is far below the integers that a float cannot hold"
)]
fn as_gauge(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the bounds are numbers that a float can hold"
)]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}

/// The answer to a scrape, with what is in all of the registries.
pub(super) fn answer<B>(registries: &[Registry], request: &Request<B>) -> Response<Full<Bytes>> {
    let accepts = |name: header::HeaderName, what: &str| {
        let values = request.headers().get_all(name).iter();
        let mut values = values.filter_map(|value| value.to_str().ok());
        values.any(|value| {
            value.split(',').any(|one| {
                let mut parts = one.split(';').map(str::trim);
                let is_it = parts.next() == Some(what);
                is_it && !parts.any(|part| part == "q=0")
            })
        })
    };
    let open = accepts(header::ACCEPT, "application/openmetrics-text");
    let mut said = String::new();
    let mut all = registries.iter();
    let encoded = if open {
        let encoded = all.try_for_each(|registry| text::encode_registry(&mut said, registry));
        encoded.and_then(|()| text::encode_eof(&mut said))
    } else {
        all.try_for_each(|registry| prometheus_text::encode(&mut said, registry))
    };
    let mut response = Response::new(Full::default());
    if let Err(error) = encoded {
        // A collector of the user's has failed.
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        *response.body_mut() =
            Full::new(Bytes::from(format!("metrics cannot be written: {error}\n")));
        return response;
    }
    let content_type = if open {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::VARY,
        HeaderValue::from_static("Accept, Accept-Encoding"),
    );
    let body = match accepts(header::ACCEPT_ENCODING, "gzip").then(|| zipped(said.as_bytes())) {
        Some(Ok(zipped)) => {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            zipped
        }
        Some(Err(_)) | None => said.into_bytes(),
    };
    *response.body_mut() = Full::new(Bytes::from(body));
    response
}

fn zipped(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}
