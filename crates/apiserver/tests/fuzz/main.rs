//! What no input may do to the server, on some hundred random inputs. The fuzzer in `fuzz/` goes on
//! from there: no panic, no answer with 5xx that a real server would not give, and no object that
//! cannot be read afterwards.

#![expect(
    clippy::panic,
    reason = "a fuzzer's finding is a panic that shows the request"
)]

mod input;
mod requests;
mod schemas;

use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_requests(bytes in bytes()) {
        requests::any(&bytes);
    }

    #[test]
    fn rules_patterns_and_formats(bytes in bytes()) {
        requests::rules(&bytes);
    }

    #[test]
    fn patches_of_every_type(bytes in bytes()) {
        requests::patches(&bytes);
    }
}
