use homeostat_derive::Classify;

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("external service: {0}")]
    External(String),
    #[error("missing spec field: {0}")]
    #[classify(permanent, reason = "InvalidSpec")]
    MissingField(String),
    #[error("not there yet")]
    NotReady,
}

#[derive(Debug, thiserror::Error, Classify)]
#[error("something")]
struct Something;

fn main() {}
