//! The time of day, which a test can move.
//!
//! [`now`] is what a reconciler should call when it needs the time of day. In a program it is the machine's time. Under
//! tokio's paused time it goes with tokio's clock: it stands still until the test advances it. The embedded API server
//! of `homeostat-apiserver` follows the same rule, so `creationTimestamp`, `lastTransitionTime` and what your code calls
//! "now" agree to within a few milliseconds.
//!
//! ```
//! use homeostat::clock;
//! use homeostat_apiserver::ApiServer;
//! use k8s_openapi::{api::core::v1::ConfigMap, jiff::SignedDuration};
//! use kube::{Api, api::{ObjectMeta, PostParams}};
//! use std::time::Duration;
//!
//! // In a test of your own: #[tokio::test(start_paused = true)]
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() -> Result<(), kube::Error> {
//!     let server = ApiServer::builder().build();
//!     let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//!     let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
//!     let map = ConfigMap { metadata, ..ConfigMap::default() };
//!     let created = maps.create(&PostParams::default(), &map).await?;
//!
//!     tokio::time::sleep(Duration::from_secs(3600)).await;
//!     let created = created.metadata.creation_timestamp.expect("the server sets it").0;
//!     // The server writes whole seconds.
//!     assert_eq!(clock::now().duration_since(created).as_hours(), 1);
//!     assert!(clock::now().duration_since(created) < SignedDuration::from_secs(3602));
//!     Ok(())
//! }
//! ```
//!
//! A test that wants the same dates in every run begins with [`start_at`], and gives the server the same start:
//! `ApiServer::builder().clock(TokioClock::starting_at(time))`.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::{cell::Cell, marker::PhantomData, sync::OnceLock};
use tokio::time::Instant;

/// A moment by the machine's two clocks.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    instant: Instant,
    time: Timestamp,
}

/// Where paused time begins, for the whole process.
static ANCHOR: OnceLock<Anchor> = OnceLock::new();

thread_local! {
    /// What a test has set for its thread.
    static STARTED: Cell<Option<Anchor>> = const { Cell::new(None) };
}

/// Keeps the start that [`start_at`] set. When it is dropped, the thread's time is as it was before.
#[derive(Debug)]
#[must_use = "the time goes back to what it was when this is dropped"]
pub struct Started {
    before: Option<Anchor>,
    /// It belongs to its thread.
    not_send: PhantomData<*const ()>,
}

/// The time of day: the machine's, or what tokio's paused clock makes of it.
///
/// ```
/// let now = homeostat::clock::now();
/// println!("checked at {now}");
/// ```
///
/// # Caveats
///
/// A value that changes with time does not belong into a status that every reconcile writes: it makes a
/// [loop](crate::loops).
#[must_use]
pub fn now() -> Timestamp {
    if let Some(started) = STARTED.get() {
        return started.at(Instant::now());
    }
    // While tokio's clock is that of the machine, the middle one of three looks at it is between the others. While
    // it is paused, it is not: it stands still, or was moved ahead.
    let before = machine_instant();
    let by_tokio = Instant::now();
    let after = machine_instant();
    if before <= by_tokio && by_tokio <= after {
        Timestamp::now()
    } else {
        ANCHOR.get_or_init(Anchor::of_machine).at(by_tokio)
    }
}

/// Makes this thread's time of day be `time` now. It goes on with tokio's clock.
///
/// It is meant for tests on a `current_thread` runtime, whose tasks all run in one thread.
///
/// ```
/// use homeostat::clock;
/// use std::time::Duration;
///
/// // In a test of your own: #[tokio::test(start_paused = true)]
/// #[tokio::main(flavor = "current_thread", start_paused = true)]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let _started = clock::start_at("2026-01-01T00:00:00Z".parse()?);
///     tokio::time::sleep(Duration::from_secs(90)).await;
///     assert_eq!(clock::now().to_string(), "2026-01-01T00:01:30Z");
///     Ok(())
/// }
/// ```
pub fn start_at(time: Timestamp) -> Started {
    let started = Anchor {
        instant: Instant::now(),
        time,
    };
    Started {
        before: STARTED.replace(Some(started)),
        not_send: PhantomData,
    }
}

/// Stamps log lines with [`now`], so that the log of a test under paused time shows the test's time.
///
/// ```
/// use homeostat::clock::Timer;
///
/// tracing_subscriber::fmt().with_timer(Timer).init();
/// ```
#[cfg(feature = "tracing-subscriber")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Timer;

/// The machine's monotonic clock, whatever tokio makes of it.
fn machine_instant() -> Instant {
    #[expect(
        clippy::disallowed_types,
        reason = "whether tokio's clock is paused can be seen only beside the machine's"
    )]
    Instant::from_std(std::time::Instant::now())
}

// === impl Anchor ===

impl Anchor {
    fn of_machine() -> Self {
        // What was measured fastest is the most exact: the thread can be interrupted between two looks.
        let measured = (0..5).map(|_| {
            let instant = machine_instant();
            let time = Timestamp::now();
            (
                machine_instant().saturating_duration_since(instant),
                Self { instant, time },
            )
        });
        let fastest = measured.min_by_key(|(took, _)| *took);
        fastest.map_or_else(
            || Self {
                instant: machine_instant(),
                time: Timestamp::now(),
            },
            |(_, anchor)| anchor,
        )
    }

    /// The time of day at `instant`, which can be before the anchor.
    fn at(self, instant: Instant) -> Timestamp {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let ahead = signed(instant.saturating_duration_since(self.instant));
        let behind = signed(self.instant.saturating_duration_since(instant));
        self.time
            .saturating_add(ahead)
            .and_then(|time| time.saturating_sub(behind))
            .unwrap_or(Timestamp::MAX)
    }
}

// === impl Started ===

impl Drop for Started {
    fn drop(&mut self) {
        STARTED.set(self.before);
    }
}

// === impl Timer ===

#[cfg(feature = "tracing-subscriber")]
impl tracing_subscriber::fmt::time::FormatTime for Timer {
    fn format_time(
        &self,
        writer: &mut tracing_subscriber::fmt::format::Writer<'_>,
    ) -> std::fmt::Result {
        write!(writer, "{:.6}", now())
    }
}

#[cfg(test)]
mod tests {
    use super::{now, start_at};
    use k8s_openapi::jiff::{SignedDuration, Timestamp};
    use std::time::Duration;
    use tokio::time::{advance, pause, resume};

    #[tokio::test]
    async fn it_is_the_machines_time_unless_tokios_clock_is_paused() {
        let (before, here, after) = (Timestamp::now(), now(), Timestamp::now());
        assert!(before <= here && here <= after);
        pause();
        advance(Duration::from_secs(3600)).await;
        assert!(now().duration_since(after) >= SignedDuration::from_secs(3599));
        let stands = now();
        assert_eq!(now(), stands);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_with_tokios_paused_clock() {
        let start = now();
        assert!(Timestamp::now().duration_since(start).abs() < SignedDuration::from_mins(1));
        advance(Duration::from_millis(1500)).await;
        assert_eq!(
            now().duration_since(start),
            SignedDuration::from_millis(1500)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn it_starts_where_a_test_wants() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let machine = now();
        {
            let _outer = start_at(time("2030-05-06T07:08:09Z"));
            advance(Duration::from_secs(1)).await;
            assert_eq!(now(), time("2030-05-06T07:08:10Z"));
            {
                let _inner = start_at(time("1999-12-31T23:59:59Z"));
                advance(Duration::from_secs(1)).await;
                assert_eq!(now(), time("2000-01-01T00:00:00Z"));
            }
            assert_eq!(now(), time("2030-05-06T07:08:11Z"));
        }
        assert_eq!(now().duration_since(machine), SignedDuration::from_secs(2));
        resume();
    }

    #[tokio::test]
    async fn outside_of_a_runtime_it_is_the_machines_time() {
        let seen = std::thread::spawn(|| (Timestamp::now(), now(), Timestamp::now()));
        let (before, here, after) = seen.join().unwrap();
        assert!(before <= here && here <= after);
    }
}
