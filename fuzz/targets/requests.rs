//! `cargo +nightly fuzz run -s none requests -- -max_total_time=600`. What it does to the server stands in crates/apiserver/tests/fuzz.

#![no_main]

#[path = "../../crates/apiserver/tests/fuzz/input.rs"]
mod input;
#[path = "../../crates/apiserver/tests/fuzz/requests.rs"]
#[expect(dead_code, reason = "each target does its own part of this")]
mod requests;
#[path = "../../crates/apiserver/tests/fuzz/schemas.rs"]
mod schemas;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requests::any(bytes));
