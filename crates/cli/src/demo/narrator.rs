//! Tells people what happens, as it happens.

use std::{
    fmt::Display,
    io::{IsTerminal, Write},
    sync::Arc,
};
use tokio::time::Instant;

/// Who does something in the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// The person whom the demo plays.
    You,
    /// The operator.
    Operator,
    /// The API server, and whatever else lives in it.
    Cluster,
}

/// Writes lines, each with its time. Clones write to the same place.
#[derive(Debug, Clone)]
pub(super) struct Narrator {
    start: Instant,
    style: Option<Arc<Style>>,
}

#[derive(Debug)]
struct Style {
    colors: bool,
}

// === impl Narrator ===

impl Narrator {
    /// Says nothing.
    pub(super) fn silent() -> Self {
        Self {
            start: Instant::now(),
            style: None,
        }
    }

    /// Speaks on standard output; in colours if that is a terminal and `NO_COLOR` is not set.
    pub(super) fn on_terminal() -> Self {
        let colors = std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            start: Instant::now(),
            style: Some(Arc::new(Style { colors })),
        }
    }

    /// How long the story has lasted, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Begins a chapter.
    pub(super) fn chapter(&self, number: usize, title: &str, about: &str) {
        if let Some(style) = &self.style {
            let title = style.paint("1", &format!("{number}. {title}"));
            self.line(&format!("\n{title}\n   {}", style.paint("2", about)));
        }
    }

    /// Tells that somebody does something.
    pub(super) fn tell(&self, who: Who, what: impl Display) {
        if let Some(style) = &self.style {
            let (name, color) = match who {
                Who::You => ("you", "36"),
                Who::Operator => ("operator", "32"),
                Who::Cluster => ("cluster", "33"),
            };
            let name = style.paint(color, &format!("{name:<8}"));
            self.line(&format!("{:>7.2} s  {name}  {what}", self.seconds()));
        }
    }

    /// Tells how it ended.
    pub(super) fn summary(&self, converged: bool, report: impl Display) {
        if let Some(style) = &self.style {
            let title = if converged {
                style.paint("1;32", "Converged.")
            } else {
                style.paint("1;31", "Did not converge.")
            };
            self.line(&format!("\n{title}\n{report}"));
        }
    }

    /// Says something that belongs to no chapter.
    pub(super) fn line(&self, text: &str) {
        if self.style.is_some() {
            // Whoever closed the other end does not want to hear more.
            drop(writeln!(std::io::stdout(), "{text}"));
        }
    }
}

impl Style {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colors {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
