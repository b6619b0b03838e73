//! What a program says, line by line.

use std::time::Duration;
use tokio::{sync::watch, time::timeout};

/// The output of a program. Clones are one output.
#[derive(Clone, Default)]
pub(crate) struct Journal(watch::Sender<Vec<String>>);

impl Journal {
    /// Says a line.
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.0.send_modify(|lines| lines.push(line.into()));
    }

    /// Waits until the output is as wanted, and fails with what was said instead. Answers the lines.
    pub(crate) async fn until(&self, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut lines = self.0.subscribe();
        let waiting = lines.wait_for(|lines| wanted(lines));
        let Ok(lines) = timeout(Duration::from_secs(3600), waiting).await else {
            panic!("this is all that was said: {:#?}", self.lines());
        };
        lines.expect("the sender is here").clone()
    }

    /// Waits until there are so many lines.
    pub(crate) async fn until_count(&self, count: usize) -> Vec<String> {
        self.until(|lines| lines.len() >= count).await
    }

    /// Waits until this was said.
    pub(crate) async fn until_said(&self, line: &str) {
        self.until(|lines| lines.iter().any(|said| said == line))
            .await;
    }

    /// All that was said.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// All that was said, which is then forgotten.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.send_replace(Vec::new())
    }
}
