//! The server process: an API server that tells what it was asked for.

use super::log::{Entry, OPERATORS};
use homeostat_apiserver::{ApiServer, Config, User, Verb};
use std::io::{self, BufRead, Write};

/// Who changes sites.
pub(crate) const PERSON: &str = "person";

/// Serves until standard input ends. For each line there it prints its log, one line each, and an empty one.
pub(crate) async fn run() {
    let mut config = Config::default();
    // All of them, since the log is what is judged.
    config.max_logged_requests = usize::MAX;
    config.sharded_list_and_watch = true;
    let users = OPERATORS.into_iter().chain([PERSON]);
    let builder = ApiServer::builder().config(config);
    let builder = users.fold(builder, |builder, name| {
        builder.token(name, User::new(name).group("system:masters"))
    });
    let server = builder.build();
    let listening = server.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
    println!("{}", listening.address());
    let asked = || {
        io::stdin()
            .lock()
            .lines()
            .next()
            .is_some_and(|line| line.is_ok())
    };
    while tokio::task::spawn_blocking(asked).await.unwrap() {
        let mut lines = String::new();
        for request in server.requests().all() {
            if !matches!(
                request.verb,
                Verb::Get | Verb::List | Verb::Watch | Verb::Other
            ) {
                lines += &serde_json::to_string(&Entry::of(&request)).unwrap();
                lines.push('\n');
            }
        }
        lines.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(lines.as_bytes())
            .and_then(|()| out.flush())
            .unwrap();
    }
}
