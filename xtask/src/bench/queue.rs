//! How the cost of a queue operation grows with the number of keys.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;
use std::vec;

use clap::builder::RangedU64ValueParser;
use homeostat_core::queue::{Action, Class, Config, Next, Outcome, Priority, Queue, Trigger};
use homeostat_core::time::Time;
use serde_json::json;

#[expect(clippy::disallowed_types, reason = "a benchmark measures real time")]
use std::time::Instant;

/// Runs that are under way at once, as with the queue's default.
const CONCURRENCY: usize = 16;

/// Keys that are made at once, between measurements.
const BLOCK: usize = 256;

/// Arguments of `cargo xtask bench queue`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print one JSON object per number of keys, with `keys`, `ns_per_op` (keys become ready one
    /// after the other), `burst_ns_per_op` (all at once), `memory_read_ns` (one random read) and `worst_add_us` (the
    /// add that takes longest while a new queue grows to this size)
    #[arg(long)]
    json: bool,
    /// How many keys there are
    #[arg(
        long,
        num_args = 1..,
        default_values_t = [10_000, 100_000, 1_000_000],
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000),
    )]
    keys: Vec<usize>,
    /// How often to measure; the medians count
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Of all choices that are left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    mix: Mix,
}

/// How runs end, in percent. Those that are left wait for a change.
#[derive(clap::Args, Clone, Copy, Debug)]
struct Mix {
    /// Percent of the runs that fail, so that their keys back off
    #[arg(long, default_value_t = 10)]
    failed: u64,
    /// Percent of the runs that ask for a requeue after five minutes
    #[arg(long, default_value_t = 0)]
    requeued: u64,
}

/// Namespace and name, as in the queue of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Changed,
    Child(u32),
}

/// A queue and what drives it.
struct Bench {
    queue: Queue<Key, Cause>,
    /// The numbers of all keys, in the order of the next pass.
    order: Vec<u32>,
    now: Time,
    random: Random,
    mix: Mix,
    running: VecDeque<Key>,
    /// Adds, starts and ends so far.
    operations: u32,
    /// On these.
    spent: Duration,
}

/// A generator of numbers that look random (`SplitMix64`).
struct Random(u64);

/// What is measured for a number of keys, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// An operation, when keys become ready one after the other.
    steady: f64,
    /// An operation, when all keys become ready at once.
    burst: f64,
    /// One read at a random place of a memory that has two cache lines per key: what the machine
    /// asks for, whatever the queue does.
    read: f64,
    /// The longest add while an empty queue takes in all keys.
    worst: f64,
}

/// Measures and prints.
pub(crate) fn run(args: &Args) {
    let mut first = None;
    if !args.json {
        println!(
            "{:>10} {:>16} {:>16} {:>16} {:>16}",
            "keys", "ns/op", "all at once", "memory read", "worst add"
        );
    }
    for &keys in &args.keys {
        let costs = Costs {
            steady: measure(args, keys, Bench::steady),
            burst: measure(args, keys, Bench::burst),
            read: median(
                (0..args.rounds.max(1))
                    .map(|_| read(keys, args.seed))
                    .collect(),
            ),
            worst: least((0..args.rounds.max(1)).map(|_| worst(keys))),
        };
        let Costs {
            steady,
            burst,
            read,
            worst,
        } = costs;
        if args.json {
            let [steady, burst, read] = [steady, burst, read].map(|ns| (ns * 10.0).round() / 10.0);
            let line = json!({
                "keys": keys,
                "ns_per_op": steady,
                "burst_ns_per_op": burst,
                "memory_read_ns": read,
                "worst_add_us": (worst / 100.0).round() / 10.0,
            });
            println!("{line}");
        } else {
            let base = *first.get_or_insert(costs);
            let cell = |ns: f64, base: f64| format!("{ns:.1} {:>5.1}x", ns / base);
            let steady = cell(steady, base.steady);
            let (burst, read) = (cell(burst, base.burst), cell(read, base.read));
            let worst = format!("{:.0} us", worst / 1e3);
            println!("{keys:>10} {steady:>16} {burst:>16} {read:>16} {worst:>16}");
        }
    }
}

/// Nanoseconds for a read whose place depends on the one before.
fn read(keys: usize, seed: u64) -> f64 {
    /// Words in a cache line.
    const LINE: usize = 8;
    const READS: u32 = 200_000;

    let lines = keys.max(1) * 2;
    let mut order: Vec<usize> = (0..lines).collect();
    Random(seed).shuffle(&mut order);
    let mut memory = vec![0; lines * LINE];
    for (index, &line) in order.iter().enumerate() {
        memory[line * LINE] = order[(index + 1) % lines] * LINE;
    }
    let mut place = 0;
    #[expect(clippy::disallowed_types, reason = "a benchmark measures real time")]
    let start = Instant::now();
    for _ in 0..READS {
        place = memory[place];
    }
    black_box(place);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(READS)
}

/// Nanoseconds that the longest add takes while an empty queue takes in so many keys.
fn worst(keys: usize) -> f64 {
    let mut queue = Queue::new(&Config::default());
    let mut worst = Duration::ZERO;
    for number in 0..u32::try_from(keys).unwrap_or(u32::MAX) {
        let trigger = trigger(number);
        #[expect(clippy::disallowed_types, reason = "a benchmark measures real time")]
        let start = Instant::now();
        queue.add(Time::ORIGIN, trigger);
        worst = worst.max(start.elapsed());
    }
    black_box(queue.counts());
    worst.as_secs_f64() * 1e9
}

/// The least: what else the machine does only ever makes it longer.
fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// The median of nanoseconds per operation of `pass`, on a new queue.
fn measure(args: &Args, keys: usize, pass: fn(&mut Bench)) -> f64 {
    let mut bench = Bench::new(keys, args.seed, args.mix);
    // Few keys are gone through several times, so that every round takes long enough to measure.
    let repeat = (200_000 / keys.max(1)).max(1);
    bench.measure(repeat, pass);
    let rounds = 0..args.rounds.max(1);
    let costs = rounds.map(|_| bench.measure(repeat, pass)).collect();
    black_box(bench.queue.counts());
    median(costs)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

// === impl Bench ===

impl Bench {
    fn new(keys: usize, seed: u64, mix: Mix) -> Self {
        Self {
            queue: Queue::new(&Config::default()),
            order: (0..u32::try_from(keys).unwrap_or(u32::MAX)).collect(),
            now: Time::ORIGIN,
            random: Random(seed),
            mix,
            running: VecDeque::with_capacity(CONCURRENCY),
            operations: 0,
            spent: Duration::ZERO,
        }
    }

    /// All keys become ready, then all run.
    fn burst(&mut self) {
        self.feed(|bench, triggers| triggers.for_each(|trigger| bench.add(trigger)));
        self.timed(|bench| while bench.start() {});
        self.finish();
    }

    /// One key after the other becomes ready, and what is ready runs.
    fn steady(&mut self) {
        self.feed(|bench, triggers| {
            for trigger in triggers {
                bench.add(trigger);
                while bench.start() {}
            }
        });
        self.finish();
    }

    /// Hands a trigger of each key to `take`, in random order.
    ///
    /// Making the keys is not measured, and comes just before, as if they had just been decoded.
    fn feed(&mut self, take: impl Fn(&mut Self, vec::Drain<'_, Trigger<Key, Cause>>)) {
        self.random.shuffle(&mut self.order);
        let mut triggers = Vec::with_capacity(BLOCK);
        for start in (0..self.order.len()).step_by(BLOCK) {
            let end = (start + BLOCK).min(self.order.len());
            triggers.extend(self.order[start..end].iter().map(|&number| trigger(number)));
            self.timed(|bench| take(bench, triggers.drain(..)));
        }
    }

    fn finish(&mut self) {
        self.timed(|bench| {
            while let Some(key) = bench.running.pop_front() {
                bench.end(&key);
            }
        });
    }

    fn timed(&mut self, work: impl FnOnce(&mut Self)) {
        #[expect(clippy::disallowed_types, reason = "a benchmark measures real time")]
        let start = Instant::now();
        work(self);
        self.spent += start.elapsed();
    }

    /// Nanoseconds per operation of `pass`, which adds, starts and ends each key once.
    fn measure(&mut self, repeat: usize, pass: fn(&mut Self)) -> f64 {
        (self.operations, self.spent) = (0, Duration::ZERO);
        for _ in 0..repeat {
            pass(self);
        }
        self.spent.as_secs_f64() * 1e9 / f64::from(self.operations)
    }

    fn add(&mut self, trigger: Trigger<Key, Cause>) {
        self.operations += 1;
        self.queue.add(self.now, trigger);
    }

    /// Starts the next key, after the end of the longest run if there are enough of them. False if
    /// no key is ready.
    fn start(&mut self) -> bool {
        if self.running.len() == CONCURRENCY
            && let Some(key) = self.running.pop_front()
        {
            self.end(&key);
        }
        self.now += Duration::from_micros(1);
        match self.queue.next(self.now) {
            Next::Run(run) => {
                self.running.push_back(run.key);
                self.operations += 1;
                true
            }
            Next::WaitUntil(_) | Next::Idle => false,
        }
    }

    fn end(&mut self, key: &Key) {
        let dice = self.random.next() % 100;
        let outcome = if dice < self.mix.failed {
            Outcome::failure(Action::Backoff { at_least: None })
        } else if dice < self.mix.failed + self.mix.requeued {
            Outcome::success(Action::Requeue(Duration::from_secs(300)))
        } else {
            Outcome::success(Action::AwaitChange)
        };
        self.operations += 1;
        self.queue.done(self.now, key, outcome, self.random.share());
    }
}

/// What an event leads to. Its key is new, as if it had just been decoded.
fn trigger(number: u32) -> Trigger<Key, Cause> {
    Trigger {
        key: Key {
            namespace: format!("tenant-{}", number / 100).into(),
            name: format!("website-{number:x}-production").into(),
        },
        cause: if number.is_multiple_of(4) {
            Cause::Child(number)
        } else {
            Cause::Changed
        },
        class: Class::Desired,
        priority: Priority::Normal,
    }
}

// === impl Random ===

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for index in (1..values.len()).rev() {
            let other = usize::try_from(self.next() % (index as u64 + 1)).unwrap_or(index);
            values.swap(index, other);
        }
    }

    /// From zero to less than one.
    fn share(&mut self) -> f64 {
        let number = u32::try_from(self.next() >> 32).unwrap_or_default();
        f64::from(number) / (f64::from(u32::MAX) + 1.0)
    }
}
