//! What probes are told, in the words of Kubernetes' own components.

use super::super::{Handle, handle::Shared};
use futures::{FutureExt, future::BoxFuture};
use std::{fmt::Write, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a check of the user's may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// A check of the user's.
pub(super) struct Check {
    pub(super) name: String,
    pub(super) look: Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
}

/// What a check has found: its name, and what is wrong.
pub(super) type Finding = (String, Result<(), String>);

/// Whether the process has to be started anew.
pub(super) fn live(shared: &Shared) -> Vec<Finding> {
    let ping = ("ping".to_owned(), Ok(()));
    let units = shared.units();
    let controllers = units.values().filter_map(|known| {
        let wedged = known.about.get()?.wedged();
        Some((known.name.clone(), wedged.map_or(Ok(()), Err)))
    });
    std::iter::once(ping).chain(controllers).collect()
}

/// Whether it does what it is there for.
pub(super) fn ready(handle: &Handle) -> Vec<Finding> {
    let status = handle.status();
    let mut findings = vec![("ping".to_owned(), Ok(()))];
    if status.stopping {
        findings.push(("shutdown".into(), Err("the process stops".into())));
    }
    if status.units.is_empty() {
        findings.push(("start".into(), Err("nothing has started yet".into())));
    }
    findings.extend(status.units.iter().map(|unit| {
        let reasons = unit.reasons();
        let found = if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons.join("; "))
        };
        (unit.name.clone(), found)
    }));
    findings
}

/// What the user's checks find, all at once.
pub(super) async fn look(checks: &Arc<[Check]>) -> Vec<Finding> {
    let all = checks.iter().map(|check| {
        let name = check.name.clone();
        timeout(CHECK_TIMEOUT, (check.look)()).map(|found| {
            let late = || Err(format!("it took longer than {CHECK_TIMEOUT:?}"));
            (name, found.unwrap_or_else(|_| late()))
        })
    });
    futures::future::join_all(all).await
}

/// The answer to a probe: whether all is well, and the text.
pub(super) fn answer(probe: &str, findings: &[Finding], query: Query<'_>) -> (bool, String) {
    let excluded = |name: &str| query.excludes(name);
    let well = findings
        .iter()
        .all(|(name, found)| found.is_ok() || excluded(name));
    if well && !query.is_verbose() {
        return (true, "ok".into());
    }
    let mut text = String::new();
    for (name, found) in findings {
        // Writing into a string cannot fail.
        let _written = match found {
            _ if excluded(name) => writeln!(text, "[+]{name} excluded: ok"),
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(why) => writeln!(text, "[-]{name} failed: {}", why.replace('\n', " ")),
        };
    }
    let verdict = if well { "passed" } else { "failed" };
    let _written = writeln!(text, "{probe} check {verdict}");
    (well, text)
}

/// What a probe asks for: `?verbose&exclude=name`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a>(pub(super) &'a str);

// === impl Query ===

impl Query<'_> {
    fn is_verbose(self) -> bool {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        pairs.any(|(key, _)| key == "verbose")
    }

    fn excludes(self, name: &str) -> bool {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        pairs.any(|(key, value)| key == "exclude" && value == name)
    }
}

#[cfg(test)]
mod tests {
    use super::{Query, answer};

    #[test]
    fn probes_are_answered_as_by_kubernetes() {
        let well = vec![("ping".into(), Ok(())), ("site".into(), Ok(()))];
        let ill = vec![
            ("ping".into(), Ok(())),
            ("site".into(), Err("no\nlist".into())),
        ];
        for (findings, query, expected) in [
            (&well, "", (true, "ok")),
            (
                &well,
                "verbose",
                (true, "[+]ping ok\n[+]site ok\nreadyz check passed\n"),
            ),
            (
                &well,
                "verbose=true",
                (true, "[+]ping ok\n[+]site ok\nreadyz check passed\n"),
            ),
            (
                &ill,
                "",
                (
                    false,
                    "[+]ping ok\n[-]site failed: no list\nreadyz check failed\n",
                ),
            ),
            (&ill, "exclude=site", (true, "ok")),
            (
                &ill,
                "exclude=ping",
                (
                    false,
                    "[+]ping excluded: ok\n[-]site failed: no list\nreadyz check failed\n",
                ),
            ),
            (
                &ill,
                "exclude=site&verbose",
                (
                    true,
                    "[+]ping ok\n[+]site excluded: ok\nreadyz check passed\n",
                ),
            ),
        ] {
            let (is_well, text) = answer("readyz", findings, Query(query));
            assert_eq!((is_well, &*text), expected, "{query}");
        }
    }
}
