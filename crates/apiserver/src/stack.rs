//! Room to recurse: parsing and evaluating a nested rule or pattern takes far more stack than the threads of a
//! server have, and an overflow ends the process.

use std::thread;

/// Several times what the deepest input that is read needs. Only as much as is used takes memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Does the work on a thread with a large stack and waits for it. None if it panicked, which a
/// library may do over an input that it did not expect, or if there can be no such thread.
pub(crate) fn with_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("deep".to_owned())
            .stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}
