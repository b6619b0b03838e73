//! Scripts with what the queue says to them. Each script goes through the model, too, so that the
//! two have to agree on it.

mod again;
mod gates;
mod model;
mod rules;
mod sequences;
mod worlds;

use super::{Action, Class, Config, Outcome, Priority, RateLimit};
use crate::backoff::Backoff;
use crate::time::Time;
use expect_test::Expect;
use model::{Pair, Said, Step};
use std::fmt::Write;
use std::str::SplitWhitespace;
use std::time::Duration;

/// Compares what was said to a script.
#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many calls"
)]
fn check(script: &str, expected: Expect) {
    expected.assert_eq(&transcript(script));
}

/// Runs a script, and returns what was said to it.
///
/// A script starts with settings, one a line (`concurrency 1`, `debounce 1s`, `max-wait 3s`,
/// `rate 2 burst 3`, `ageing 5s`, `early 1s to 30s`; the backoff has no jitter unless there is `jitter 0.2`). Then
/// come steps, each after its time:
///
/// - `0s add a cause`, for key `a`; followed by `desired`, `related` or `status`, and `low` as wanted,
/// - `0s schedule a 5s`, for a run after that time,
/// - `0s next` says what to do,
/// - `0s done a success await`; or `failure`, and `requeue 5s`, `soon`, `backoff` or `backoff 30s`
///   (at least); followed by `random 0.5` if wanted,
/// - `0s gate a 5s` while it runs, `0s open a`, `0s damp a 5s` while it runs, followed by `firm`,
/// - `0s forget a`, `0s close`, `0s drain`,
/// - `0s show a` and `0s counts` say what is known.
#[track_caller]
fn transcript(script: &str) -> String {
    let mut transcript = String::new();
    let mut config = Config::default().backoff(Backoff::default().jitter(0.0));
    let mut pair: Option<Pair<'_>> = None;

    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let mut words = line.split_whitespace();
        let first = word(&mut words);
        let Some(at) = first
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| duration(first))
        else {
            config = configured(config, first, &mut words);
            continue;
        };
        let pair = pair.get_or_insert_with(|| Pair::new(&config));
        assert!(
            Time::ORIGIN + at >= pair.now,
            "a script goes on in time: {line}"
        );
        pair.now = Time::ORIGIN + at;

        let said = match word(&mut words) {
            "show" => {
                let key = key(&mut words);
                pair.known(key).map_or("idle".into(), |known| {
                    let model::Known {
                        state,
                        next_run,
                        failures,
                        causes,
                        gate,
                        damped,
                    } = known;
                    let mut text = format!(
                        "{state:?}, next run {next_run:?}, failures {failures}, {causes:?}"
                    );
                    for (what, until) in [("gate closed", gate), ("damped", damped)] {
                        if let Some(until) = until {
                            write!(text, ", {what} until {until:?}").expect("a string takes all");
                        }
                    }
                    text
                })
            }
            "counts" => format!("{:?}", pair.queue.counts()),
            verb => {
                let step = step(verb, &mut words);
                let said = pair
                    .take(step)
                    .unwrap_or_else(|error| panic!("{line}\n{error}"));
                pair.compare('a'..='z')
                    .unwrap_or_else(|error| panic!("{line}\n{error}"));
                let Some(said) = said else { continue };
                describe(&said)
            }
        };
        assert_eq!(words.next(), None, "{line}");
        writeln!(transcript, "{line}: {said}").expect("a string takes all");
    }
    transcript
}

fn configured(config: Config, name: &str, words: &mut SplitWhitespace<'_>) -> Config {
    match name {
        "concurrency" => config.concurrency(number(words)),
        "debounce" => config.debounce(duration(word(words))),
        "max-wait" => config.debounce_max_wait(duration(word(words))),
        "ageing" => config.ageing(duration(word(words))),
        "early" => {
            let first = duration(word(words));
            assert_eq!(word(words), "to");
            config.early(Backoff::exponential(first, duration(word(words))))
        }
        "jitter" => config.backoff(Backoff::default().jitter(number(words))),
        "rate" => {
            let per_second = number(words);
            assert_eq!(word(words), "burst");
            config.rate_limit(RateLimit {
                per_second,
                burst: number(words),
            })
        }
        other => panic!("no such setting: {other}"),
    }
}

fn step<'a>(verb: &str, words: &mut SplitWhitespace<'a>) -> Step<'a> {
    match verb {
        "add" => {
            let (key, cause) = (key(words), word(words));
            let (mut class, mut priority) = (Class::Own, Priority::Normal);
            for word in words {
                match word {
                    "desired" => class = Class::Desired,
                    "related" => class = Class::Related,
                    "status" => class = Class::Status,
                    "low" => priority = Priority::Low,
                    other => panic!("no such trigger: {other}"),
                }
            }
            Step::Add {
                key,
                cause,
                class,
                priority,
            }
        }
        "schedule" => Step::Schedule {
            key: key(words),
            after: duration(word(words)),
        },
        "next" => Step::Next,
        "done" => {
            let (key, result, action) = (key(words), word(words), word(words));
            let mut rest = words.peekable();
            let action = match action {
                "await" => Action::AwaitChange,
                "soon" => Action::Soon,
                "requeue" => Action::Requeue(duration(rest.next().expect("a delay"))),
                "backoff" => Action::Backoff {
                    at_least: rest.next_if(|&word| word != "random").map(duration),
                },
                other => panic!("no such action: {other}"),
            };
            let random = rest.next().map_or(0.0, |word| {
                assert_eq!(word, "random");
                rest.next()
                    .and_then(|number| number.parse().ok())
                    .expect("a number")
            });
            let outcome = match result {
                "success" => Outcome::success(action),
                "failure" => Outcome::failure(action),
                other => panic!("no such result: {other}"),
            };
            Step::Done {
                key,
                outcome,
                random,
            }
        }
        "forget" => Step::Forget { key: key(words) },
        "gate" => Step::Gate {
            key: key(words),
            time: duration(word(words)),
        },
        "open" => Step::Open { key: key(words) },
        "damp" => Step::Damp {
            key: key(words),
            time: duration(word(words)),
            firm: words.next().is_some_and(|word| word == "firm"),
        },
        "close" => Step::Close,
        "drain" => Step::Drain,
        other => panic!("no such step: {other}"),
    }
}

/// Leaves out what is as nearly always.
fn describe(said: &Said<'_>) -> String {
    let (key, causes, omitted, timer, priority, failures, since) = match said {
        Said::Run {
            key,
            causes,
            omitted,
            timer,
            priority,
            failures,
            ready_since,
        } => (key, causes, omitted, timer, priority, failures, ready_since),
        Said::WaitUntil(time) => return format!("wait until {time:?}"),
        Said::Idle => return "idle".into(),
    };
    let mut text = format!("run {key} {causes:?} ready since {since:?}");
    if *omitted > 0 {
        write!(text, " and {omitted} more causes").expect("a string takes all");
    }
    if let Some(timer) = timer {
        write!(text, ", {timer:?}").expect("a string takes all");
    }
    if *priority == Priority::Low {
        text.push_str(", Low");
    }
    if *failures > 0 {
        write!(text, ", failures {failures}").expect("a string takes all");
    }
    text
}

fn word<'a>(words: &mut SplitWhitespace<'a>) -> &'a str {
    words.next().expect("one more word")
}

fn key(words: &mut SplitWhitespace<'_>) -> char {
    word(words).parse().expect("a key is one letter")
}

fn number<N: std::str::FromStr>(words: &mut SplitWhitespace<'_>) -> N {
    word(words).parse().ok().expect("a number")
}

fn duration(text: &str) -> Duration {
    let parse = |number: &str| number.parse::<f64>().expect("a number");
    if text == "forever" {
        Duration::MAX
    } else if let Some(millis) = text.strip_suffix("ms") {
        Duration::from_secs_f64(parse(millis) / 1000.0)
    } else {
        Duration::from_secs_f64(parse(text.strip_suffix('s').expect("a unit")))
    }
}
