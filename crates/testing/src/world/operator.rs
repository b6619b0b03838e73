//! The operator as a process that can end at any moment and begins anew.

use crate::{
    log::Event,
    recorder::Recorder,
    setup::Setup,
    task::Task,
    wire::{Process, Wire},
};
use futures::{StreamExt, future::LocalBoxFuture};
use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};
use tokio::time::sleep;

/// What is done while the operator is down after a crash.
pub(super) type Down = Rc<dyn Fn() -> LocalBoxFuture<'static, ()>>;

/// How long a crashed operator is down, as a pod is that starts anew.
const DOWN: Duration = Duration::from_secs(5);

/// How a process begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    /// Its number, and that of the first one after a crash less one.
    pub(super) number: u32,
    /// The version that its caches show at first.
    pub(super) snapshot: Option<u64>,
}

/// An operator that is started anew when it crashes, until this is dropped.
pub(super) struct Operator {
    _task: Task,
    present: Rc<RefCell<Option<Arc<Process>>>>,
    recorder: Recorder,
}

impl Operator {
    pub(super) fn start<X: Send + Sync + 'static>(
        setup: &Arc<Setup<X>>,
        external: &Arc<X>,
        wire: &Wire,
        recorder: &Recorder,
        birth: Birth,
        down: Down,
    ) -> Self {
        let present: Rc<RefCell<Option<Arc<Process>>>> = Rc::default();
        let (setup, external) = (Arc::clone(setup), Arc::clone(external));
        let (wire, note, current) = (wire.clone(), recorder.clone(), Rc::clone(&present));
        let lives = async move {
            let Birth {
                mut number,
                mut snapshot,
            } = birth;
            loop {
                let process = Process::new(number, snapshot.take());
                current.replace(Some(Arc::clone(&process)));
                note.note(Event::Started { process: number });
                let life = Task::start(live(
                    Arc::clone(&setup),
                    Arc::clone(&external),
                    wire.client(&process),
                    note.clone(),
                ));
                wire.crashed().await;
                drop(life);
                note.note(Event::Stopped { process: number });
                down().await;
                sleep(DOWN).await;
                number += 1;
            }
        };
        Self {
            _task: Task::start(lives),
            present,
            recorder: recorder.clone(),
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(process) = self.present.borrow().as_ref() {
            process.kill();
            let process = process.number;
            self.recorder.note(Event::Stopped { process });
        }
    }
}

async fn live<X: 'static>(
    setup: Arc<Setup<X>>,
    external: Arc<X>,
    client: kube::Client,
    recorder: Recorder,
) {
    let Some(start) = &setup.start else { return };
    let mut outcomes = start(client, external);
    while let Some(outcome) = outcomes.next().await {
        recorder.note(Event::Outcome(outcome));
    }
}
