//! A cache in a test of the user's own: a script of events, with nothing behind it.

use super::runtime::{
    WatchStreamExt, reflector,
    watcher::{self, Event},
};
use crate::cluster::config_map;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

fn say(event: watcher::Result<Event<ConfigMap>>) -> String {
    match event {
        Ok(Event::Apply(map)) => map.name_any(),
        Ok(Event::Delete(map)) => format!("no {}", map.name_any()),
        Ok(Event::Init) => "begin".into(),
        Ok(Event::InitApply(map)) => format!("listed {}", map.name_any()),
        Ok(Event::InitDone) => "end".into(),
        Err(error) => error.to_string(),
    }
}

fn script() -> impl Stream<Item = watcher::Result<Event<ConfigMap>>> {
    let map = |name| config_map(name, &[]);
    stream::iter([
        Ok(Event::Apply(map("a"))),
        Err(watcher::Error::NoResourceVersion),
        Ok(Event::Init),
        Ok(Event::InitApply(map("a"))),
        Ok(Event::InitApply(map("b"))),
        Ok(Event::InitDone),
        Ok(Event::Apply(map("c"))),
        Ok(Event::Delete(map("b"))),
    ])
}

#[tokio::test]
async fn what_is_scripted_comes_out() {
    let expected: Vec<String> = script().map(say).collect().await;
    let (reader, writer) = reflector::store();
    let passed: Vec<String> = script().reflect(writer).map(say).collect().await;
    assert_eq!(passed, expected);
    let mut names: Vec<_> = reader.state().iter().map(|map| map.name_any()).collect();
    names.sort();
    assert_eq!(names, ["a", "c"]);

    let (_reader, writer) = reflector::store_shared(16);
    let passed: Vec<String> = script().reflect_shared(writer).map(say).collect().await;
    assert_eq!(passed, expected);

    let (_reader, writer) = reflector::store();
    let objects = reflector(writer, script()).applied_objects();
    let objects: Vec<_> = objects.filter_map(async |item| item.ok()).collect().await;
    let names: Vec<_> = objects.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["a", "a", "b", "c"]);
}
