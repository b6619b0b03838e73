use homeostat_derive::Classify;

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("a")]
    #[classify(permanent, reason = "invalid spec")]
    Spaces,
    #[error("b")]
    #[classify(permanent, reason = "invalidSpec")]
    NoCapital,
    #[error("c")]
    #[classify(permanent, reason = "")]
    Empty,
    #[error("d")]
    #[classify(permanent, reason = 5)]
    NoText,
    #[error("e")]
    #[classify(permanent)]
    Missing,
    #[error("f")]
    #[classify(conflict, reason = "Slow")]
    NotShown,
    #[error("g")]
    #[classify(transient, reason = "inventory down")]
    TransientSpaces,
}

fn main() {}
