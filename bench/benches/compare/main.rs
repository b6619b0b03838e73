//! Runs homeostat and kube-runtime alternately, each in a process of its own, against a server process that sends
//! prepared bytes.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it reports on its standard streams"
)]
#![expect(clippy::unwrap_used, reason = "it cannot go on then")]
#![expect(
    clippy::cast_precision_loss,
    reason = "what is measured is small, and figures are rounded"
)]

mod compare;
mod measure;
mod objects;
mod scenario;
mod server;
mod subject;

use scenario::Scenario;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        ["serve", scenario] => server::serve(Scenario::named(scenario).unwrap()),
        ["run", scenario, runtime, address] => {
            subject::run(Scenario::named(scenario).unwrap(), runtime, address);
        }
        ref words => compare::run(words),
    }
}
