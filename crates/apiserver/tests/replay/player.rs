//! Playing a case against a server.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::bindings::Bindings;
use crate::compare::{Rigour, compare};
use crate::stage::{ReplyBody, Stage};

/// How long an event may take.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a stream must stay silent to count as open.
const SILENCE: Duration = Duration::from_millis(150);

/// How long a stream may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// The headers that are recorded.
const HEADERS: [&str; 5] = [
    "content-type",
    "warning",
    "retry-after",
    "allow",
    "location",
];

struct Player<'a> {
    stage: &'a Stage,
    bindings: Bindings,
    ordered: bool,
    /// Watches that were opened and are not read yet, in order.
    open: Vec<(Value, ReplyBody)>,
}

/// What no other case on the server is called.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    namespace: String,
    group: String,
}

/// Plays a case with names of its own. The answer says which step differs and how.
pub(crate) async fn play(text: &str, stage: &Stage, names: &Names) -> Result<(), String> {
    let text = text
        .replace("${ns}", &names.namespace)
        .replace("${group}", &names.group);
    let case: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut player = Player {
        stage,
        bindings: Bindings::default(),
        ordered: case["managedFieldsOrdered"] == true,
        open: Vec::new(),
    };
    let outcome = player.act(&case).await;
    player.clean_up(&case).await;
    outcome
}

// === impl Names ===

impl Names {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            namespace: format!("replay-{number}"),
            group: format!("replay-{number}.example.com"),
        }
    }
}

// === impl Player ===

impl Player<'_> {
    async fn act(&mut self, case: &Value) -> Result<(), String> {
        for (phase, check_body) in [("setup", false), ("steps", true)] {
            for step in case[phase].as_array().into_iter().flatten() {
                let id = &step["id"];
                self.step(step, check_body)
                    .await
                    .map_err(|why| format!("{phase} {id}: {why}"))?;
            }
        }
        for (step, stream) in std::mem::take(&mut self.open) {
            let id = step["id"].clone();
            self.read_events(&step, stream)
                .await
                .map_err(|why| format!("watch {id}: {why}"))?;
        }
        Ok(())
    }

    /// Deletes the namespaces and definitions that the case created; how that goes is not part of it.
    async fn clean_up(&self, case: &Value) {
        let steps = ["setup", "steps"].map(|phase| case[phase].as_array());
        for step in steps.into_iter().flatten().flatten() {
            let request = &step["request"];
            let path = request["path"].as_str().unwrap_or_default();
            let shared =
                path.ends_with("/namespaces") || path.ends_with("/customresourcedefinitions");
            let name = request["body"]["metadata"]["name"].as_str();
            if let Some(name) = name.filter(|_| shared && request["method"] == "POST") {
                let request = json!({ "method": "DELETE", "path": format!("{path}/{name}") });
                if let Ok(request) = self.request(&request) {
                    let _ = self.stage.send(request).await;
                }
            }
        }
    }

    async fn step(&mut self, step: &Value, check_body: bool) -> Result<(), String> {
        if let Some(wait) = step["wait"]["ms"].as_u64() {
            sleep(Duration::from_millis(wait)).await;
        } else if step["compact"] == true {
            self.stage.compact().await?;
        } else if step["watch"].is_object() {
            self.open_watch(step).await?;
        } else if step["background"] == true {
            let request = self.request(&step["request"])?;
            let stage = self.stage.clone();
            tokio::spawn(async move { stage.send(request).await.map(drop) });
        } else if step["eventually"].is_object() {
            self.eventually(step, check_body).await?;
        } else {
            self.once(step, check_body).await?;
        }
        self.read_due(&step["id"]).await
    }

    async fn eventually(&mut self, step: &Value, check_body: bool) -> Result<(), String> {
        let limit = &step["eventually"];
        let milliseconds =
            |member: &str| Duration::from_millis(limit[member].as_u64().unwrap_or(100));
        let start = Instant::now();
        loop {
            let outcome = self.once(step, check_body).await;
            if outcome.is_ok() || start.elapsed() > milliseconds("timeoutMs") {
                return outcome;
            }
            sleep(milliseconds("intervalMs")).await;
        }
    }

    async fn once(&mut self, step: &Value, check_body: bool) -> Result<(), String> {
        let before = self.bindings.clone();
        let request = self.request(&step["request"])?;
        let head = request.method() == "HEAD";
        let response = self.stage.send(request).await?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let body = if head {
            json!("")
        } else {
            read_body(&parts.headers, &bytes)
        };
        let outcome = self.check(
            step,
            parts.status.as_u16(),
            &parts.headers,
            &body,
            check_body,
        );
        if outcome.is_err() {
            self.bindings = before;
        }
        outcome
    }

    fn check(
        &mut self,
        step: &Value,
        status: u16,
        headers: &HeaderMap,
        body: &Value,
        check_body: bool,
    ) -> Result<(), String> {
        let recorded = &step["response"];
        if recorded["status"] != status {
            let code = &recorded["status"];
            return Err(format!("status: recorded {code}, found {status}: {body}"));
        }
        if !check_body {
            return Ok(());
        }
        let rigour = self.rigour(step);
        check_headers(&recorded["headers"], headers, rigour, &mut self.bindings)?;
        if let Some(expected) = recorded.get("body") {
            compare(expected, body, rigour, &mut self.bindings)?;
        }
        check_list_version(body)
    }

    fn rigour(&self, step: &Value) -> Rigour {
        Rigour {
            strict: step["strict"] != false,
            subset: step["match"] == "subset",
            ordered: self.ordered,
        }
    }

    fn request(&self, step: &Value) -> Result<Request<Full<Bytes>>, String> {
        let path = self
            .bindings
            .fill(step["path"].as_str().unwrap_or_default())?;
        let mut uri: String = path
            .split('/')
            .map(encode_part)
            .collect::<Vec<_>>()
            .join("/");
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in step["query"].as_object().into_iter().flatten() {
            let values = value
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![value.clone()]);
            for value in values {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                query.append_pair(name, &self.bindings.fill(&text)?);
            }
        }
        let query = query.finish();
        if !query.is_empty() {
            uri = format!("{uri}?{query}");
        }
        let body = match (step.get("body"), step["rawBody"].as_str()) {
            (Some(body), _) => Some(spaced(&self.bindings.fill_value(body)?)),
            (None, Some(raw)) => Some(self.bindings.fill(raw)?),
            (None, None) => None,
        };
        let mut headers: BTreeMap<String, Option<String>> = BTreeMap::from([
            ("user-agent".to_owned(), Some("conformance/1".to_owned())),
            ("accept".to_owned(), Some("application/json".to_owned())),
        ]);
        if body.is_some() {
            headers.insert(
                "content-type".to_owned(),
                Some("application/json".to_owned()),
            );
        }
        for (name, value) in step["headers"].as_object().into_iter().flatten() {
            headers.insert(name.to_lowercase(), value.as_str().map(str::to_owned));
        }
        let method = step["method"].as_str().unwrap_or("GET");
        let mut request = Request::builder().method(method).uri(&uri);
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        request
            .body(body)
            .map_err(|error| format!("{uri}: {error}"))
    }

    async fn open_watch(&mut self, step: &Value) -> Result<(), String> {
        let request = self.request(&step["watch"])?;
        let response = self.stage.send(request).await?;
        let (parts, body) = response.into_parts();
        if parts.status.as_u16() == 200 && step["response"]["status"] == 200 {
            let rigour = self.rigour(step);
            let recorded = &step["response"]["headers"];
            check_headers(recorded, &parts.headers, rigour, &mut self.bindings)?;
            self.open.push((step.clone(), body));
            return Ok(());
        }
        let bytes = timeout(EVENT_TIMEOUT, body.collect())
            .await
            .map_err(|_| format!("status {}: the stream stays open", parts.status))??
            .to_bytes();
        let body = read_body(&parts.headers, &bytes);
        self.check(step, parts.status.as_u16(), &parts.headers, &body, true)
    }

    /// Reads the watches whose turn it is after a step.
    async fn read_due(&mut self, done: &Value) -> Result<(), String> {
        let open = std::mem::take(&mut self.open);
        for (step, stream) in open {
            let at_once = step["after"].is_null() && step["events"].is_array();
            if step["after"] == *done || (at_once && step["id"] == *done) {
                let id = &step["id"];
                let outcome = self.read_events(&step, stream).await;
                outcome.map_err(|why| format!("watch {id}: {why}"))?;
            } else {
                self.open.push((step, stream));
            }
        }
        Ok(())
    }

    async fn read_events(&mut self, step: &Value, stream: ReplyBody) -> Result<(), String> {
        let rigour = self.rigour(step);
        let mut lines = Lines {
            stream,
            buffer: Vec::new(),
        };
        let events = step["events"].as_array();
        for (index, recorded) in events.into_iter().flatten().enumerate() {
            let event = match timeout(EVENT_TIMEOUT, lines.next_event()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => return Err(format!("event {index}: the stream ended")),
                Ok(Err(why)) => return Err(why),
                Err(_) => return Err(format!("event {index}: recorded {recorded}, found none")),
            };
            compare(recorded, &event, rigour, &mut self.bindings)
                .map_err(|why| format!("event {index}: {why}"))?;
        }
        if events.is_none() {
            return Ok(());
        }
        match step["end"].as_str() {
            Some("open") => match timeout(SILENCE, lines.next_event()).await {
                Err(_) => Ok(()),
                Ok(Ok(None)) => Err("the stream ended".to_owned()),
                Ok(found) => Err(format!("one event too many: {found:?}")),
            },
            Some("eof") => match timeout(END_TIMEOUT, lines.next_event()).await {
                Ok(Ok(None)) => Ok(()),
                Ok(found) => Err(format!("one event too many: {found:?}")),
                Err(_) => Err("the stream does not end".to_owned()),
            },
            Some(_) | None => Ok(()),
        }
    }
}

/// The lines of a stream.
struct Lines {
    stream: ReplyBody,
    buffer: Vec<u8>,
}

// === impl Lines ===

impl Lines {
    /// The next event that is recorded: bookmarks without the annotation are not.
    async fn next_event(&mut self) -> Result<Option<Value>, String> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let event: Value =
                    serde_json::from_slice(&line).map_err(|error| error.to_string())?;
                // A table has it in its row.
                let table = &event["object"]["rows"][0]["object"];
                let marked = [&event["object"], table].iter().any(|object| {
                    !object["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null()
                });
                if event["type"] != "BOOKMARK" || marked {
                    return Ok(Some(event));
                }
            }
            match self.stream.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.buffer.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

/// JSON with a space behind each comma and colon, as the recorded requests had it: some messages show
/// the beginning of the body.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(spaced).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), spaced(value))
            };
            let list: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", list.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn read_body(headers: &HeaderMap, bytes: &[u8]) -> Value {
    let kind = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let text = String::from_utf8_lossy(bytes);
    if kind.contains("json") || (kind.starts_with("text/plain") && text.starts_with('{')) {
        serde_json::from_slice(bytes).unwrap_or_else(|_| json!(text))
    } else {
        json!(text)
    }
}

fn check_headers(
    recorded: &Value,
    found: &HeaderMap,
    rigour: Rigour,
    bindings: &mut Bindings,
) -> Result<(), String> {
    for name in HEADERS {
        let values: Vec<String> = found
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        let expected: Vec<&str> = match recorded[name].as_array() {
            Some(list) => list.iter().filter_map(Value::as_str).collect(),
            None => recorded[name].as_str().into_iter().collect(),
        };
        let fits = expected.len() == values.len()
            && expected
                .iter()
                .zip(&values)
                .all(|(expected, found)| match name {
                    "content-type" => {
                        let plain = |text: &str| text.replace(' ', "").to_lowercase();
                        plain(expected) == plain(found)
                    }
                    "warning" if !rigour.strict => true,
                    _ => bindings.text_fits(expected, found),
                });
        if !fits {
            return Err(format!(
                "header {name}: recorded {expected:?}, found {values:?}"
            ));
        }
    }
    Ok(())
}

/// A list's version is never below that of an item.
fn check_list_version(body: &Value) -> Result<(), String> {
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let Some(list) = version(body) else {
        return Ok(());
    };
    for item in body["items"].as_array().into_iter().flatten() {
        if version(item).is_some_and(|item| item > list) {
            return Err(format!(
                "the list's version {list} is below that of an item: {item}"
            ));
        }
    }
    Ok(())
}

fn encode_part(part: &str) -> String {
    part.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~:%$+,;=@!*'()&".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
