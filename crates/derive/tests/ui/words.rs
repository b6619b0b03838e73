use homeostat_derive::Classify;

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("a")]
    #[classify(temporary)]
    Unknown,
    #[error("b")]
    #[classify(transient, conflict)]
    Two,
    #[error("c")]
    #[classify(transient)]
    #[classify(transient)]
    Twice,
    #[error("d")]
    #[classify()]
    Nothing,
    #[error("e")]
    #[classify]
    Bare,
    #[error("f")]
    #[classify(reason = "Odd")]
    OnlyReason,
    #[error("g")]
    Field(#[classify(transient)] String),
}

#[derive(Debug, thiserror::Error, Classify)]
#[classify(transient)]
enum Whole {
    #[error("a")]
    A,
}

#[derive(Classify)]
union Union {
    a: u8,
}

fn main() {}
