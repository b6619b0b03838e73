//! `homeostat why`: what an object waits for, as its operator knows it.

use crate::failure::Failure;
use http::Request;
use kube::{Client, Config};
use serde_json::Value;
use std::{fmt::Write, process::ExitCode};

/// Arguments of `homeostat why`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Say what an object waits for, and what its operator has tried",
    long_about = "Asks a running operator about an object: what it waits for and since when, what the last runs did, and \
    what you can do. The operator needs the server of homeostat's Manager (`Manager::serve`). If it runs in a cluster, \
    forward its port first.\n\n\
    Exit status: 0 if nothing is wrong with the object, 1 if it fails or if there is no answer, 2 for a bad argument.",
    after_long_help = "Examples:
  kubectl port-forward deployment/website 8080 &
  homeostat why website/blog                      in the namespace default
  homeostat why website/blog -n shop --json       for programs
  homeostat why website/blog --server https://operator.example --token \"$TOKEN\""
)]
pub(crate) struct Args {
    /// The kind of the object, or the name of its controller, and its name
    #[arg(value_name = "KIND/NAME", value_parser = object)]
    object: (String, String),
    /// The namespace of the object
    #[arg(short, long, default_value = "default", conflicts_with = "cluster")]
    namespace: String,
    /// It is an object of the cluster, without a namespace
    #[arg(long)]
    cluster: bool,
    /// Where the operator's server is
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    server: http::Uri,
    /// What the server wants to know from other machines
    #[arg(long, env = "HOMEOSTAT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn object(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        _ => Err("write KIND/NAME, as in website/blog".into()),
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let answer = runtime
        .map_err(|error| Failure::Other(error.to_string()))
        .and_then(|runtime| runtime.block_on(ask(args)));
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return failure.report("why"),
    };
    if args.json {
        println!("{}", answer.value);
    } else {
        print!("{}", answer.text());
    }
    if answer.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What the operator knows.
struct Answer {
    title: String,
    /// The controller, from the state of the operator.
    unit: Value,
    value: Value,
}

async fn ask(args: &Args) -> Result<Answer, Failure> {
    let (kind, name) = &args.object;
    let client = Client::try_from(Config::new(args.server.clone()));
    let client = client.map_err(|error| Failure::Other(error.to_string()))?;
    let get = async |path: &str| {
        let mut request = Request::get(path);
        if let Some(token) = &args.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Vec::new());
        let request = request.map_err(|error| Failure::Usage(error.to_string()))?;
        let said = client.request_text(request).await;
        let said = said.map_err(|error| unanswered(args, &error))?;
        serde_json::from_str(&said).map_err(|_| no_operator(args))
    };
    let state: Value = get("/api/state").await?;
    let units = state["units"].as_array().cloned().unwrap_or_default();
    let unit = units.iter().find(|unit| is_meant(unit, kind));
    let Some(unit) = unit else {
        let known = units.iter().filter(|unit| unit["overview"].is_object());
        let known: Vec<_> = known.filter_map(|unit| unit["name"].as_str()).collect();
        return Err(Failure::Other(format!(
            "no controller of the operator at {} is called {kind} or reconciles this kind; it has: {}",
            args.server,
            known.join(", ")
        )));
    };
    let mut query = vec![
        ("controller", unit["name"].as_str().unwrap_or_default()),
        ("name", name),
    ];
    if !args.cluster {
        query.push(("namespace", &args.namespace));
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish();
    let value = get(&format!("/api/explain?{query}")).await?;
    let place = if args.cluster {
        name.clone()
    } else {
        format!("{}/{name}", args.namespace)
    };
    let kind = unit["overview"]["kind"].as_str().unwrap_or(kind);
    Ok(Answer {
        title: format!("{kind} {place}"),
        unit: unit.clone(),
        value,
    })
}

/// Whether people mean this controller.
fn is_meant(unit: &Value, kind: &str) -> bool {
    let wanted = kind.to_lowercase();
    let is = |value: &Value| {
        value.as_str().is_some_and(|text| {
            let text = text.to_lowercase();
            text == wanted || format!("{text}s") == wanted
        })
    };
    is(&unit["name"]) || is(&unit["overview"]["kind"])
}

fn unanswered(args: &Args, error: &kube::Error) -> Failure {
    if let kube::Error::Api(status) = error {
        return Failure::Other(status.message.trim().to_owned());
    }
    let mut why = error.to_string();
    let mut inner = std::error::Error::source(error);
    while let Some(error) = inner {
        let said = error.to_string();
        if !why.contains(&said) {
            let _never_fails = write!(why, ": {said}");
        }
        inner = error.source();
    }
    Failure::Other(format!(
        "no answer from {}: {why}. Is the operator's server there? In a cluster, run \
         `kubectl port-forward deployment/NAME 8080` first",
        args.server
    ))
}

fn no_operator(args: &Args) -> Failure {
    Failure::Other(format!(
        "{} is no server of a homeostat Manager: its answer is no JSON",
        args.server
    ))
}

// === impl Answer ===

impl Answer {
    fn is_well(&self) -> bool {
        self.value["error"].is_null()
    }

    fn text(&self) -> String {
        let Self { title, unit, value } = self;
        let said = |name: &str| value[name].as_str().unwrap_or_default();
        let seconds = |name: &str| value[name].as_f64();
        let mut text = format!("{title}: {}", said("state"));
        if let Some(time) = seconds("run_in_s") {
            let _ = write!(text, ", next run in {}", length(time));
        }
        if let Some(time) = seconds("running_for_s") {
            let _ = write!(text, " for {}", length(time));
        }
        match value["failures"].as_u64() {
            None | Some(0) => {}
            Some(1) => text += ", failed once",
            Some(times) => {
                let _ = write!(text, ", failed {times} times in a row");
            }
        }
        text.push('\n');
        let mut line = |name: &str, what: &str| {
            if !what.is_empty() {
                let _ = writeln!(text, "{name}: {what}");
            }
        };
        line("last error", said("error"));
        if self.value["error"].is_null() {
            line("reason of the run", said("reason"));
        }
        for why in unit["waits_for"].as_array().into_iter().flatten() {
            line("its controller waits for", why.as_str().unwrap_or_default());
        }
        line("what to do", advice(said("state"), unit));
        text.push_str("\nlast runs:\n");
        for run in said("explanation").lines() {
            let _ = writeln!(text, "  {run}");
        }
        text
    }
}

/// What a person can do about it.
fn advice(state: &str, unit: &Value) -> &'static str {
    if unit["phase"] == "stands by" {
        return "nothing here: this replica stands by; ask the one that leads";
    }
    match state {
        "at rest" => "nothing: the last run succeeded, and the object runs when something changes",
        "backs off" => {
            "remove the cause of the error; the object is tried again by itself, or at once from the operator's page"
        }
        "waits for a change" => {
            "change the object, or what it refers to: the error is one that trying again does not help"
        }
        "waits for a slot" => {
            "wait, or raise the concurrency: the object is ready, and other objects take all slots"
        }
        "waits for its time" => {
            "wait: its reconciler has asked for a run at that time, or changes are gathered"
        }
        "runs" => {
            "wait; if it takes too long, look at what the run waits for, and set a reconcile timeout"
        }
        _ => "",
    }
}

fn length(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1000.0),
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_meant, length, object};
    use serde_json::json;

    #[test]
    fn a_controller_is_meant_by_its_name_its_kind_and_the_plural() {
        let unit = json!({ "name": "sites", "overview": { "kind": "Website" } });
        for (kind, meant) in [
            ("website", true),
            ("Website", true),
            ("websites", true),
            ("sites", true),
            ("site", false),
            ("web", false),
        ] {
            assert_eq!(is_meant(&unit, kind), meant, "{kind}");
        }
    }

    #[test]
    fn what_is_no_kind_and_name_is_refused() {
        assert_eq!(object("a/b"), Ok(("a".into(), "b".into())));
        for wrong in ["blog", "/blog", "website/", ""] {
            assert!(object(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_short() {
        for (seconds, said) in [
            (0.25, "250 ms"),
            (12.4, "12 s"),
            (300.0, "5 min"),
            (7200.0, "2.0 h"),
        ] {
            assert_eq!(length(seconds), said);
        }
    }
}
