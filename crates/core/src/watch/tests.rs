//! Scripts: inputs go in, and a line for each says what the machine wanted and made of it.

use super::{Action, Change, Config, Fault, Input, Machine, Output, Phase, Streaming};
use crate::time::Time;
use expect_test::{Expect, expect};
use std::fmt::Write as _;
use std::time::Duration;

/// Runs a script, one input on a line, against a machine whose random numbers are all 0.
///
/// `+5s applied 12` lets five seconds pass first. `wake` comes when the sleep is over and `silent`
/// when the deadline has passed.
#[track_caller]
fn check(config: Config, script: &str, expect: &Expect) {
    let mut machine = Machine::new(config);
    let mut now = Time::ORIGIN;
    let mut log = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let action = machine.action();
        let line = match line
            .strip_prefix('+')
            .and_then(|rest| rest.split_once("s "))
        {
            Some((seconds, rest)) => {
                now += Duration::from_secs_f64(seconds.parse().unwrap());
                rest
            }
            None => line,
        };
        match (&action, line) {
            (Action::Sleep { until }, "wake") => now = *until,
            (Action::Read { deadline }, "silent") => now = *deadline,
            _ => {}
        }
        let outputs = machine.on(now, parse(line), 0.0);
        let outputs: Vec<_> = outputs.iter().copied().map(name).collect();
        let outputs = outputs.join(" ");
        let action = describe(&action);
        let row = format!(
            "{:<7} {action:<26} {line:<14} {outputs}",
            format!("{now:?}")
        );
        writeln!(log, "{}", row.trim_end()).unwrap();
    }
    writeln!(log, "{:<7} {}", "", describe(&machine.action())).unwrap();
    expect.assert_eq(&log);
}

fn parse(line: &str) -> Input<'_> {
    let words: Vec<_> = line.split(' ').collect();
    let event = |change, version| Input::Event { change, version };
    match words[..] {
        ["page", version] => Input::Page {
            version,
            continue_token: None,
        },
        ["page", version, token] => Input::Page {
            version,
            continue_token: Some(token),
        },
        ["opened"] => Input::Opened,
        ["applied", version] => event(Change::Applied, version),
        ["deleted", version] => event(Change::Deleted, version),
        ["bookmark", version] => Input::Bookmark {
            version,
            initial_events_end: false,
        },
        ["end", version] => Input::Bookmark {
            version,
            initial_events_end: true,
        },
        ["closed"] => Input::Closed,
        ["refused"] => Input::Failed(Fault::Refused),
        ["forbidden"] => Input::Failed(Fault::Forbidden),
        ["missing"] => Input::Failed(Fault::Missing),
        ["expired"] => Input::Failed(Fault::Expired),
        ["silent"] => Input::Failed(Fault::Silent),
        ["error"] => Input::Failed(Fault::Other { retry_after: None }),
        ["error", seconds] => Input::Failed(Fault::Other {
            retry_after: Some(Duration::from_secs(seconds.parse().unwrap())),
        }),
        ["wake"] => Input::Awake,
        _ => panic!("no such input: {line}"),
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::List {
            limit,
            continue_token,
            resource_version,
            timeout,
        } => {
            assert_eq!(*timeout, Duration::from_secs(70));
            let mut text = "list".to_owned();
            for (name, value) in [
                ("limit", &limit.map(|limit| limit.to_string())),
                ("continue", continue_token),
                ("version", resource_version),
            ] {
                if let Some(value) = value {
                    write!(text, " {name}={value}").unwrap();
                }
            }
            text
        }
        Action::Watch {
            resource_version,
            send_initial_events,
            bookmarks,
            ..
        } => {
            let kind = if *send_initial_events {
                "stream"
            } else {
                "watch"
            };
            let bookmarks = if *bookmarks { "" } else { " no bookmarks" };
            format!("{kind} '{resource_version}'{bookmarks}")
        }
        Action::Read { deadline } => format!("read until {deadline:?}"),
        Action::Sleep { until } => format!("sleep until {until:?}"),
    }
}

fn name(output: Output) -> String {
    match output {
        Output::Report(phase) => format!("Report {phase:?}"),
        Output::Init
        | Output::Objects
        | Output::InitApply
        | Output::InitDone
        | Output::Apply
        | Output::Delete
        | Output::Hold => format!("{output:?}"),
    }
}

/// A machine that never streams, as if the server had refused it long ago.
fn pages() -> Config {
    Config {
        bookmarks: false,
        page_size: Some(2),
        ..Config::default()
    }
}

// T15: a watch that ends is taken up at the last version, and nothing is sent again.
#[test]
fn streaming_list() {
    check(
        Config::default(),
        "opened
         applied 5
         deleted 11
         end 12
         applied 13
         bookmark 20
         deleted 21
         +290s closed
         opened
         bookmark 30
         +290s closed",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             applied 5      InitApply
            0ns     read until 10s             deleted 11     Hold
            0ns     read until 10s             end 12         InitDone
            0ns     read until 295s            applied 13     Apply
            0ns     read until 295s            bookmark 20
            0ns     read until 295s            deleted 21     Delete
            290s    read until 295s            closed
            290s    watch '21'                 opened
            290s    read until 585s            bookmark 30
            580s    read until 585s            closed
                    watch '30'
        "]],
    );
}

// T17: every page is asked for with the token of the one before.
#[test]
fn list_in_pages() {
    check(
        Config {
            page_size: Some(2),
            ..Config::default()
        },
        "refused
         page 10 a
         page 10 b
         page 10
         opened
         applied 11
         expired
         page 20",
        &expect![[r"
            0ns     stream ''                  refused
            0ns     list limit=2               page 10 a      Init Objects
            0ns     list limit=2 continue=a    page 10 b      Objects
            0ns     list limit=2 continue=b    page 10        Objects InitDone
            0ns     watch '10'                 opened
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     list limit=2               page 20        Init Objects InitDone
                    watch '20'
        "]],
    );
}

// T17: a page that fails is asked for again, and those before it are not.
#[test]
fn failed_page_is_retried() {
    check(
        pages(),
        "page 10 a
         error
         wake
         silent
         wake
         page 10 b
         refused
         wake
         page 20",
        &expect![[r"
            0ns     list limit=2               page 10 a      Init Objects
            0ns     list limit=2 continue=a    error          Report List
            800ms   sleep until 800ms          wake
            800ms   list limit=2 continue=a    silent         Report List
            2.4s    sleep until 2.4s           wake
            2.4s    list limit=2 continue=a    page 10 b      Objects
            2.4s    list limit=2 continue=b    refused        Report List
            5.6s    sleep until 5.6s           wake
            5.6s    list limit=2               page 20        Init Objects InitDone
                    watch '20' no bookmarks
        "]],
    );
}

// Pages of different versions: nothing is missed from the earliest on.
#[test]
fn earliest_version_of_the_pages_counts() {
    check(
        pages(),
        "page 10 a
         page 12 b
         page 14",
        &expect![[r"
            0ns     list limit=2               page 10 a      Init Objects
            0ns     list limit=2 continue=a    page 12 b      Objects
            0ns     list limit=2 continue=b    page 14        Objects InitDone
                    watch '10' no bookmarks
        "]],
    );
}

// T16: a streaming list that broke off starts anew, with a new Init.
#[test]
fn streaming_list_breaks_off() {
    check(
        Config::default(),
        "opened
         applied 5
         applied 6
         closed
         wake
         opened
         applied 5
         end 7
         +290s closed",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             applied 5      InitApply
            0ns     read until 10s             applied 6      InitApply
            0ns     read until 10s             closed
            800ms   sleep until 800ms          wake
            800ms   stream ''                  opened         Init
            800ms   read until 10.8s           applied 5      InitApply
            800ms   read until 10.8s           end 7          InitDone
            290.8s  read until 295.8s          closed
                    watch '7'
        "]],
    );
}

#[test]
fn streaming_list_that_never_ends_gives_way_to_pages() {
    check(
        Config::default(),
        "opened
         error
         wake
         opened
         applied 5
         closed
         wake
         page 10
         opened
         applied 11
         expired",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             error          Report List
            800ms   sleep until 800ms          wake
            800ms   stream ''                  opened         Init
            800ms   read until 10.8s           applied 5      InitApply
            800ms   read until 10.8s           closed
            2.4s    sleep until 2.4s           wake
            2.4s    list limit=500             page 10        Init Objects InitDone
            2.4s    watch '10'                 opened
            2.4s    read until 297.4s          applied 11     Apply
            2.4s    read until 297.4s          expired
                    list limit=500
        "]],
    );
}

// A server that does not know sendInitialEvents sends all objects, then bookmarks without the mark,
// or nothing at all.
#[test]
fn server_ignores_streaming() {
    check(
        Config::default(),
        "opened
         applied 5
         bookmark 9
         page 9",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             applied 5      InitApply
            0ns     read until 10s             bookmark 9
            0ns     list limit=500             page 9         Init Objects InitDone
                    watch '9'
        "]],
    );
    check(
        Config::default(),
        "opened
         +1s applied 5
         silent
         page 9",
        &expect![[r"
            0ns     stream ''                  opened         Init
            1s      read until 10s             applied 5      InitApply
            11s     read until 11s             silent
            11s     list limit=500             page 9         Init Objects InitDone
                    watch '9'
        "]],
    );
}

#[test]
fn streaming_list_fails() {
    check(
        Config::default(),
        "error
         wake
         silent
         wake
         expired
         wake
         opened
         error
         wake
         opened
         expired
         wake",
        &expect![[r"
            0ns     stream ''                  error          Report List
            800ms   sleep until 800ms          wake
            800ms   stream ''                  silent         Report List
            2.4s    sleep until 2.4s           wake
            2.4s    stream ''                  expired
            5.6s    sleep until 5.6s           wake
            5.6s    stream ''                  opened         Init
            5.6s    read until 15.6s           error          Report List
            12s     sleep until 12s            wake
            12s     stream ''                  opened         Init
            12s     read until 22s             expired
            24.8s   sleep until 24.8s          wake
                    list limit=500
        "]],
    );
}

// T06: who may list and not watch gets the list, and the reason why nothing follows.
#[test]
fn watch_is_forbidden() {
    check(
        Config::default(),
        "forbidden
         page 10
         forbidden
         wake
         forbidden
         wake
         expired",
        &expect![[r"
            0ns     stream ''                  forbidden
            0ns     list limit=500             page 10        Init Objects InitDone
            0ns     watch '10'                 forbidden      Report WatchStart
            800ms   sleep until 800ms          wake
            800ms   watch '10'                 forbidden      Report WatchStart
            2.4s    sleep until 2.4s           wake
            2.4s    watch '10'                 expired
                    sleep until 5.6s
        "]],
    );
}

// A kind that cannot be watched is polled.
#[test]
fn watch_is_refused() {
    check(
        pages(),
        "page 10
         refused
         wake
         page 12
         opened
         refused
         wake",
        &expect![[r"
            0ns     list limit=2               page 10        Init Objects InitDone
            0ns     watch '10' no bookmarks    refused        Report WatchStart
            800ms   sleep until 800ms          wake
            800ms   list limit=2               page 12        Init Objects InitDone
            800ms   watch '12' no bookmarks    opened
            800ms   read until 295.8s          refused        Report Watch
            2.4s    sleep until 2.4s           wake
                    list limit=2
        "]],
    );
}

#[test]
fn streaming_is_tried_always() {
    check(
        Config {
            streaming: Streaming::Always,
            ..Config::default()
        },
        "refused
         page 10
         opened
         applied 11
         expired
         opened
         silent
         page 20",
        &expect![[r"
            0ns     stream ''                  refused
            0ns     list limit=500             page 10        Init Objects InitDone
            0ns     watch '10'                 opened
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     stream ''                  opened         Init
            10s     read until 10s             silent
            10s     list limit=500             page 20        Init Objects InitDone
                    watch '20'
        "]],
    );
}

#[test]
fn streaming_is_never_tried() {
    check(
        Config {
            streaming: Streaming::Never,
            page_size: Some(7),
            ..Config::default()
        },
        "page 10
         opened
         applied 11
         expired
         page 20
         opened",
        &expect![[r"
            0ns     list limit=7               page 10        Init Objects InitDone
            0ns     watch '10'                 opened
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     list limit=7               page 20        Init Objects InitDone
            0ns     watch '20'                 opened
                    read until 295s
        "]],
    );
}

// T13, T21: an expired version leads to a new list and to no report, whether the server says so in
// the stream or instead of it. Only when a fresh list is too old already there is a pause.
#[test]
fn expired_version() {
    check(
        Config::default(),
        "opened
         end 10
         applied 11
         expired
         opened
         end 20
         +290s closed
         expired
         opened",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             end 10         InitDone
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     stream ''                  opened         Init
            0ns     read until 10s             end 20         InitDone
            290s    read until 295s            closed
            290s    watch '20'                 expired
            290s    stream ''                  opened         Init
                    read until 300s
        "]],
    );
}

// A server that never goes on from the lists that it sends is not asked for them in a rush.
#[test]
fn streamed_list_is_expired_at_once() {
    check(
        Config::default(),
        "opened
         end 10
         bookmark 10
         expired
         wake
         opened
         end 20
         bookmark 21
         expired
         opened
         end 30
         +2s expired",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             end 10         InitDone
            0ns     read until 295s            bookmark 10
            0ns     read until 295s            expired
            800ms   sleep until 800ms          wake
            800ms   stream ''                  opened         Init
            800ms   read until 10.8s           end 20         InitDone
            800ms   read until 295.8s          bookmark 21
            800ms   read until 295.8s          expired
            800ms   stream ''                  opened         Init
            800ms   read until 10.8s           end 30         InitDone
            2.8s    read until 295.8s          expired
                    stream ''
        "]],
    );
}

// T23: pages that take longer than the server remembers.
#[test]
fn list_expires() {
    check(
        pages(),
        "page 10 a
         page 10 b
         expired
         page 20
         opened
         expired
         wake
         page 30
         expired
         wake
         page 40
         opened
         applied 41
         expired
         page 50 a",
        &expect![[r"
            0ns     list limit=2               page 10 a      Init Objects
            0ns     list limit=2 continue=a    page 10 b      Objects
            0ns     list limit=2 continue=b    expired
            0ns     list                       page 20        Init Objects InitDone
            0ns     watch '20' no bookmarks    opened
            0ns     read until 295s            expired
            800ms   sleep until 800ms          wake
            800ms   list                       page 30        Init Objects InitDone
            800ms   watch '30' no bookmarks    expired
            2.4s    sleep until 2.4s           wake
            2.4s    list                       page 40        Init Objects InitDone
            2.4s    watch '40' no bookmarks    opened
            2.4s    read until 297.4s          applied 41     Apply
            2.4s    read until 297.4s          expired
            2.4s    list limit=2               page 50 a      Init Objects
                    list limit=2 continue=a
        "]],
    );
    check(
        pages(),
        "expired
         wake
         expired
         wake
         page 10",
        &expect![[r"
            0ns     list limit=2               expired
            800ms   sleep until 800ms          wake
            800ms   list                       expired
            2.4s    sleep until 2.4s           wake
            2.4s    list                       page 10        Init Objects InitDone
                    watch '10' no bookmarks
        "]],
    );
}

// T07: a watch that closes at once, with nothing or always the same in it, backs off; one that was
// of use is resumed at once.
#[test]
fn watch_closes_at_once() {
    check(
        pages(),
        "page 10
         opened
         closed
         wake
         opened
         bookmark 10
         closed
         wake
         opened
         applied 10
         closed
         wake
         opened
         applied 11
         closed
         opened
         +1s closed",
        &expect![[r"
            0ns     list limit=2               page 10        Init Objects InitDone
            0ns     watch '10' no bookmarks    opened
            0ns     read until 295s            closed
            800ms   sleep until 800ms          wake
            800ms   watch '10' no bookmarks    opened
            800ms   read until 295.8s          bookmark 10
            800ms   read until 295.8s          closed
            2.4s    sleep until 2.4s           wake
            2.4s    watch '10' no bookmarks    opened
            2.4s    read until 297.4s          applied 10     Apply
            2.4s    read until 297.4s          closed
            5.6s    sleep until 5.6s           wake
            5.6s    watch '10' no bookmarks    opened
            5.6s    read until 300.6s          applied 11     Apply
            5.6s    read until 300.6s          closed
            5.6s    watch '11' no bookmarks    opened
            6.6s    read until 300.6s          closed
                    watch '11' no bookmarks
        "]],
    );
}

#[test]
fn stream_closes_right_after_the_list() {
    check(
        Config::default(),
        "opened
         end 10
         closed
         wake
         opened
         closed",
        &expect![[r"
            0ns     stream ''                  opened         Init
            0ns     read until 10s             end 10         InitDone
            0ns     read until 295s            closed
            800ms   sleep until 800ms          wake
            800ms   watch '10'                 opened
            800ms   read until 295.8s          closed
                    sleep until 2.4s
        "]],
    );
}

// T19: a list and the start of a watch have a timeout, and a silent watch counts as dead.
#[test]
fn silence() {
    check(
        pages(),
        "silent
         wake
         page 10
         silent
         wake
         opened
         +100s applied 11
         silent
         wake
         opened",
        &expect![[r"
            0ns     list limit=2               silent         Report List
            800ms   sleep until 800ms          wake
            800ms   list limit=2               page 10        Init Objects InitDone
            800ms   watch '10' no bookmarks    silent         Report WatchStart
            2.4s    sleep until 2.4s           wake
            2.4s    watch '10' no bookmarks    opened
            102.4s  read until 297.4s          applied 11     Apply
            397.4s  read until 397.4s          silent         Report Watch
            398.2s  sleep until 398.2s         wake
            398.2s  watch '11' no bookmarks    opened
                    read until 693.2s
        "]],
    );
}

// T10: 30 s without trouble, in one watch or in several, and the next failure is the first.
#[test]
fn backoff_starts_over_after_health() {
    check(
        pages(),
        "error
         wake
         error
         wake
         error
         wake
         page 10
         opened
         +29s error
         wake
         opened
         +20s closed
         opened
         +10s error
         wake
         error",
        &expect![[r"
            0ns     list limit=2               error          Report List
            800ms   sleep until 800ms          wake
            800ms   list limit=2               error          Report List
            2.4s    sleep until 2.4s           wake
            2.4s    list limit=2               error          Report List
            5.6s    sleep until 5.6s           wake
            5.6s    list limit=2               page 10        Init Objects InitDone
            5.6s    watch '10' no bookmarks    opened
            34.6s   read until 300.6s          error          Report Watch
            41s     sleep until 41s            wake
            41s     watch '10' no bookmarks    opened
            61s     read until 336s            closed
            61s     watch '10' no bookmarks    opened
            71s     read until 356s            error          Report Watch
            71.8s   sleep until 71.8s          wake
            71.8s   watch '10' no bookmarks    error          Report WatchStart
                    sleep until 73.4s
        "]],
    );
}

#[test]
fn server_asks_for_a_delay() {
    check(
        pages(),
        "error 7
         wake
         error 1
         wake
         page 10
         error 60
         wake
         error 100000",
        &expect![[r"
            0ns     list limit=2               error 7        Report List
            7s      sleep until 7s             wake
            7s      list limit=2               error 1        Report List
            8.6s    sleep until 8.6s           wake
            8.6s    list limit=2               page 10        Init Objects InitDone
            8.6s    watch '10' no bookmarks    error 60       Report WatchStart
            68.6s   sleep until 68.6s          wake
            68.6s   watch '10' no bookmarks    error 100000   Report WatchStart
                    sleep until 368.6s
        "]],
    );
}

// R11: any version works with a page size, and never goes back in time.
#[test]
fn any_version() {
    check(
        Config {
            any_version: true,
            page_size: Some(2),
            ..Config::default()
        },
        "refused
         page 10
         opened
         applied 11
         expired
         expired
         wake
         page 5 a
         page 5",
        &expect![[r"
            0ns     stream '0'                 refused
            0ns     list version=0             page 10        Init Objects InitDone
            0ns     watch '10'                 opened
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     list version=11            expired
            800ms   sleep until 800ms          wake
            800ms   list version=0             page 5 a       Init Objects
            800ms   list continue=a            page 5         Objects InitDone
                    watch '5'
        "]],
    );
    check(
        Config {
            any_version: true,
            ..Config::default()
        },
        "opened
         end 10
         applied 11
         expired
         expired
         wake",
        &expect![[r"
            0ns     stream '0'                 opened         Init
            0ns     read until 10s             end 10         InitDone
            0ns     read until 295s            applied 11     Apply
            0ns     read until 295s            expired
            0ns     stream '11'                expired
            800ms   sleep until 800ms          wake
                    stream '0'
        "]],
    );
}

// T08: no number of failures ends it, and the delay stays in bounds.
#[test]
fn thousand_failures() {
    let mut machine = Machine::new(Config::default());
    let mut now = Time::ORIGIN;
    for n in 1..=1000_u32 {
        let fault = Fault::Other { retry_after: None };
        let outputs = machine.on(now, Input::Failed(fault), 0.999);
        assert_eq!(outputs, [Output::Report(Phase::List)], "failure {n}");
        let Action::Sleep { until } = machine.action() else {
            panic!("no pause after failure {n}")
        };
        assert!(until.since(now) < Duration::from_secs(45), "failure {n}");
        now = until;
        machine.on(now, Input::Awake, 0.999);
        assert!(matches!(machine.action(), Action::Watch { .. }));
    }
}

// T09: chance lengthens the delay by up to a half.
#[test]
fn jitter() {
    let delay = |random| {
        let mut machine = Machine::new(Config::default());
        machine.on(
            Time::ORIGIN,
            Input::Failed(Fault::Other { retry_after: None }),
            random,
        );
        match machine.action() {
            Action::Sleep { until } => until.since(Time::ORIGIN).as_millis(),
            Action::List { .. } | Action::Watch { .. } | Action::Read { .. } => 0,
        }
    };
    assert_eq!([delay(0.0), delay(0.5), delay(0.75)], [800, 1000, 1100]);
}
