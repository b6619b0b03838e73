//! Notes panics of the code that is checked, whoever catches them.

use crate::{log::Event, recorder::Recorder};
use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    /// The log of the world that this thread runs.
    static WORLD: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Until this is dropped, panics of this thread go to a log in place of the terminal.
#[derive(Debug)]
pub(crate) struct Noted(());

static HOOK: Once = Once::new();

/// Notes the panics of this thread.
pub(crate) fn note_in(recorder: Recorder) -> Noted {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let recorder = WORLD.with(|world| world.try_borrow().ok().and_then(|w| w.clone()));
            match recorder {
                Some(recorder) => {
                    let place = info.location().map(ToString::to_string);
                    let payload = info.payload();
                    let text = payload.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
                    let text = text.unwrap_or("a value that is no text");
                    let place = place.unwrap_or_default();
                    recorder.note(Event::Panic(format!("at {place}: {text}")));
                }
                None => before(info),
            }
        }));
    });
    WORLD.with(|world| *world.borrow_mut() = Some(recorder));
    Noted(())
}

impl Drop for Noted {
    fn drop(&mut self) {
        WORLD.with(|world| *world.borrow_mut() = None);
    }
}
