//! What must compile, as it does with `kube::runtime`: see each test's name.

use futures::{StreamExt, stream};
use homeostat::{Action, Controller, reflector, watcher};
use k8s_openapi::api::core::v1::ConfigMap;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// `Send`, and not `Sync`.
#[derive(Debug, thiserror::Error)]
#[error("failed {} times", .0.get())]
struct NotSync(Cell<u32>);

fn controller(names: &[&str]) -> Controller<ConfigMap> {
    let (reader, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    let objects: Vec<_> = names.iter().map(|name| named(name)).collect();
    for obj in &objects {
        writer.apply_watcher_event(&watcher::Event::InitApply(obj.clone()));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    Controller::for_stream(stream::iter(objects.into_iter().map(Ok)), reader)
}

fn named(name: &str) -> ConfigMap {
    let mut obj = ConfigMap::default();
    obj.metadata.name = Some(name.into());
    obj
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_sync() {
    async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, NotSync> {
        Err(NotSync(Cell::new(3)))
    }
    let policy = |_: Arc<ConfigMap>, error: &NotSync, _: Arc<()>| {
        assert_eq!(error.0.get(), 3);
        Action::await_change()
    };
    let run = controller(&["a"]).run(reconcile, policy, Arc::new(()));
    assert_eq!(
        run.filter(|item| std::future::ready(item.is_err()))
            .count()
            .await,
        1
    );
}

/// Neither `Send` nor `Sync`: what the future needs is taken out of it first.
#[tokio::test(start_paused = true)]
async fn a_context_without_bounds() {
    struct Context {
        names: Rc<RefCell<Vec<String>>>,
    }
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "that it compiles is what is tested"
    )]
    let context = Arc::new(Context {
        names: Rc::default(),
    });
    let reconcile = |obj: Arc<ConfigMap>, context: Arc<Context>| {
        context.names.borrow_mut().extend(obj.metadata.name.clone());
        async { Ok::<_, NotSync>(Action::await_change()) }
    };
    let policy = |_: Arc<ConfigMap>, _: &NotSync, _: Arc<Context>| Action::await_change();
    let run = controller(&["a", "b"]).run(reconcile, policy, Arc::clone(&context));
    assert_eq!(run.count().await, 2);
    assert_eq!(*context.names.borrow(), ["a", "b"]);
}

/// Closures that borrow and count, `FnMut` for the reconciler.
#[tokio::test(start_paused = true)]
async fn closures_that_borrow() {
    let mut reconciles = 0;
    let failures = Cell::new(0);
    let delay = Duration::from_secs(1);
    {
        let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| {
            reconciles += 1;
            let result = match reconciles {
                1 => Err(NotSync(Cell::new(1))),
                _ => Ok(Action::await_change()),
            };
            std::future::ready(result)
        };
        let policy = |_: Arc<ConfigMap>, _: &NotSync, _: Arc<()>| {
            failures.set(failures.get() + 1);
            Action::requeue(delay)
        };
        let run = controller(&["a", "b"]).run(reconcile, policy, Arc::new(()));
        assert_eq!(run.count().await, 2);
    }
    assert_eq!((reconciles, failures.get()), (2, 1));
}

/// With everything `Send`, the stream is, so it can be spawned.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_spawned() {
    async fn reconcile(_: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> {
        Ok(Action::await_change())
    }
    fn policy(_: Arc<ConfigMap>, _: &kube::Error, _: Arc<()>) -> Action {
        Action::requeue(Duration::from_secs(60))
    }
    let run = controller(&["a", "b", "c"]).run(reconcile, policy, Arc::new(()));
    assert_eq!(tokio::spawn(run.count()).await.ok(), Some(3));
}
