//! Runs the scenarios and tells the medians.

use crate::{
    measure::Used,
    scenario::{SCENARIOS, Scenario},
};
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

const RUNTIMES: [&str; 2] = ["homeostat", "kube-runtime"];

/// What is to be done.
struct Options {
    scenarios: Vec<Scenario>,
    runtimes: Vec<&'static str>,
    json: bool,
    rounds: usize,
}

/// Runs what `words` ask for: names of scenarios or beginnings of them, `--json`, `--rounds N`, `--only RUNTIME`.
pub(crate) fn run(words: &[&str]) {
    let Some(options) = options(words) else {
        eprintln!("usage: cargo xtask bench [SCENARIO]... [--json] [--rounds N] [--only RUNTIME]");
        eprintln!("scenarios, each also by the beginning of its name:");
        for scenario in SCENARIOS {
            eprintln!("  {}", scenario.name);
        }
        std::process::exit(2);
    };
    for scenario in &options.scenarios {
        let medians = measure(scenario, &options);
        if let ([own, other], false) = (medians.as_slice(), options.json) {
            println!(
                "{:<24} CPU {:.2}, peak memory {:.2}",
                scenario.name,
                own.cpu_s / other.cpu_s,
                own.peak_mb / other.peak_mb
            );
        }
    }
}

fn options(words: &[&str]) -> Option<Options> {
    let mut options = Options {
        scenarios: Vec::new(),
        runtimes: RUNTIMES.into(),
        json: false,
        rounds: 5,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            // Cargo says this to every benchmark.
            "--bench" => {}
            "--json" => options.json = true,
            "--rounds" => {
                options.rounds = words.next()?.parse().ok().filter(|rounds| *rounds > 0)?;
            }
            "--only" => {
                let only = words.next()?;
                options.runtimes.retain(|runtime| runtime == only);
                options.runtimes.first()?;
            }
            start => {
                let before = options.scenarios.len();
                let fitting = SCENARIOS
                    .iter()
                    .filter(|scenario| scenario.name.starts_with(start));
                options.scenarios.extend(fitting);
                (options.scenarios.len() > before).then_some(())?;
            }
        }
    }
    if options.scenarios.is_empty() {
        options.scenarios = SCENARIOS.into();
    }
    Some(options)
}

/// Runs a scenario with each runtime in turn, and tells the medians of each.
fn measure(scenario: &Scenario, options: &Options) -> Vec<Used> {
    let mut all = vec![Vec::new(); options.runtimes.len()];
    for _ in 0..options.rounds {
        for (runtime, all) in options.runtimes.iter().zip(&mut all) {
            all.push(once(scenario, runtime));
        }
    }
    let told = options.runtimes.iter().zip(&all).map(|(runtime, all)| {
        let used = medians(all);
        let cpu = all.iter().map(|used| used.cpu_s);
        let (least, most) = (cpu.clone().fold(f64::MAX, f64::min), cpu.fold(0.0, f64::max));
        if options.json {
            let line = json!({
                "scenario": scenario.name,
                "runtime": runtime,
                "cpu_s": rounded(used.cpu_s),
                "cpu_s_least": rounded(least),
                "cpu_s_most": rounded(most),
                "peak_mb": rounded(used.peak_mb),
                "rest_mb": rounded(used.rest_mb),
                "wall_s": rounded(used.wall_s),
                "reconciles": used.reconciles,
                "p50_us": used.p50_us.map(rounded),
                "p99_us": used.p99_us.map(rounded),
            });
            println!("{line}");
        } else {
            let delays = used.p50_us.zip(used.p99_us);
            let delays = delays.map(|(p50, p99)| format!(", p50 {p50:.0} us, p99 {p99:.0} us"));
            println!(
                "{:<24} {runtime:<12} CPU {:.2} s ({least:.2} to {most:.2}), peak {:.0} MB, at rest {:.0} MB, {:.2} s, {} reconciles{}",
                scenario.name,
                used.cpu_s,
                used.peak_mb,
                used.rest_mb,
                used.wall_s,
                used.reconciles,
                delays.unwrap_or_default()
            );
        }
        used
    });
    told.collect()
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn medians(all: &[Used]) -> Used {
    let median = |value: fn(&Used) -> f64| {
        let mut values: Vec<f64> = all.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let has_delays = all.iter().all(|used| used.p50_us.is_some());
    let mut reconciles: Vec<usize> = all.iter().map(|used| used.reconciles).collect();
    reconciles.sort_unstable();
    Used {
        cpu_s: median(|used| used.cpu_s),
        peak_mb: median(|used| used.peak_mb),
        rest_mb: median(|used| used.rest_mb),
        wall_s: median(|used| used.wall_s),
        reconciles: reconciles[reconciles.len() / 2],
        p50_us: has_delays.then(|| median(|used| used.p50_us.unwrap_or_default())),
        p99_us: has_delays.then(|| median(|used| used.p99_us.unwrap_or_default())),
    }
}

/// Runs a scenario once. The process that is measured ends only when each object was reconciled in its last version.
fn once(scenario: &Scenario, runtime: &str) -> Used {
    let program = std::env::current_exe().unwrap();
    let mut server = Command::new(&program)
        .args(["serve", scenario.name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    lines.read_line(&mut address).unwrap();
    let run = ["run", scenario.name, runtime, address.trim()];
    let output = Command::new(&program)
        .args(run)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(
        output.status.success(),
        "{runtime} did not come to the end of {}",
        scenario.name
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
