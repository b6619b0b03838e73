//! Waiting against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use homeostat::{
    conditions,
    wait::{
        Condition, Error, LastSeen, await_condition, await_condition_within,
        delete::{self, delete_and_finalize},
    },
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
};
use serde_json::{Value, json};
use std::{error::Error as _, time::Duration};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

async fn create(api: &Api<ConfigMap>, name: &str, finalizers: &[&str]) -> ConfigMap {
    let map = json!({ "metadata": { "name": name, "finalizers": finalizers } });
    let map = serde_json::from_value(map).unwrap();
    api.create(&PostParams::default(), &map).await.unwrap()
}

async fn merge(api: &Api<ConfigMap>, name: &str, patch: Value) {
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(patch))
        .await
        .unwrap();
}

/// The map says that it is ready.
fn is_ready() -> impl Condition<ConfigMap> {
    |map: Option<&ConfigMap>| {
        let ready = map.and_then(|map| map.data.as_ref()?.get("ready"));
        ready.is_some_and(|ready| ready == "yes")
    }
}

#[tokio::test(start_paused = true)]
async fn until_an_object_is_as_wanted() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let waiting = tokio::spawn(await_condition(api.clone(), "a", is_ready()));
    sleep(SECOND).await;
    create(&api, "b", &[]).await;
    merge(&api, "b", json!({ "data": { "ready": "yes" } })).await;
    create(&api, "a", &[]).await;
    sleep(SECOND).await;
    assert!(!waiting.is_finished());
    merge(&api, "a", json!({ "data": { "ready": "yes" } })).await;
    let map = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(map.name_any(), "a");

    // Now it is, and so it is at once.
    let begin = Instant::now();
    let map = await_condition(api.clone(), "a", is_ready().and(conditions::is_created())).await;
    assert!(map.unwrap().is_some());
    let none = await_condition(api, "c", conditions::is_created().not()).await;
    assert!(none.unwrap().is_none());
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

/// A server that is down, slow or overloaded is waited for.
#[tokio::test(start_paused = true)]
async fn errors_that_pass() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let faults = [
        ("refused", Fault::Refuse),
        ("failed", Fault::InternalError),
        ("unavailable", Fault::Unavailable),
        ("overloaded", Fault::TooManyRequests { retry_after: 1 }),
        ("silent", Fault::Hang),
        ("expired", Fault::Expired),
    ];
    for (name, fault) in faults {
        let guard = server
            .faults()
            .inject(Rule::any().verb(Verb::List).verb(Verb::Watch), fault);
        let waiting = tokio::spawn(await_condition(api.clone(), name, conditions::is_created()));
        sleep(600 * SECOND).await;
        assert!(!waiting.is_finished(), "{name}");
        drop(guard);
        create(&api, name, &[]).await;
        let map = timeout(120 * SECOND, waiting)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(map.unwrap().name_any(), name);
    }
}

/// What is refused for a moment may be allowed in the next, as after a role was granted.
#[tokio::test(start_paused = true)]
async fn refusals_are_an_error_when_they_last() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[]).await;
    for fault in [Fault::Forbidden, Fault::NotServed] {
        let rule = Rule::any().resource("configmaps");
        let guard = server.faults().inject(rule, fault);
        let waiting = tokio::spawn(await_condition(api.clone(), "a", conditions::is_created()));
        sleep(5 * SECOND).await;
        assert!(!waiting.is_finished());
        drop(guard);
        assert!(waiting.await.unwrap().unwrap().is_some());
    }
    for (fault, code) in [(Fault::Forbidden, 403), (Fault::NotServed, 404)] {
        let rule = Rule::any().resource("configmaps");
        let guard = server.faults().inject(rule, fault);
        let begin = Instant::now();
        let error = await_condition(api.clone(), "a", conditions::is_created())
            .await
            .unwrap_err();
        let took = begin.elapsed();
        assert!((12 * SECOND..30 * SECOND).contains(&took), "{took:?}");
        let Error::ProbeFailed(watcher::Error::InitialListFailed(kube::Error::Api(status))) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(status.code, code);
        drop(guard);
    }
}

/// T06: who may list and not watch sees the object once, and not when it changes.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_allowed_is_an_error() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[]).await;
    let guard = server
        .faults()
        .inject(Rule::any().verb(Verb::Watch), Fault::Forbidden);
    let map = await_condition(api.clone(), "a", conditions::is_created()).await;
    assert!(map.unwrap().is_some());
    let error = timeout(60 * SECOND, await_condition(api, "a", is_ready())).await;
    let error = error.unwrap().unwrap_err();
    let Error::ProbeFailed(watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        panic!("{error:?}");
    };
    assert!(status.is_forbidden());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_its_type_is_an_error() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[]).await;
    let rule = Rule::any().name("a");
    let guard = server.faults().inject(rule, Fault::corrupt_labels());
    let error = await_condition(api, "a", is_ready()).await.unwrap_err();
    let Error::ProbeFailed(watcher::Error::Undecodable(object)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (object.name.as_str(), object.path.as_str()),
        ("a", "metadata.labels")
    );
    drop(guard);
}

/// The error of a deadline says what was last seen.
#[tokio::test(start_paused = true)]
async fn deadlines() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let wait = async || {
        let begin = Instant::now();
        let waiting = await_condition_within(api.clone(), "a", is_ready(), 5 * SECOND);
        let error = waiting.await.unwrap_err();
        assert_eq!(begin.elapsed(), 5 * SECOND);
        let text = error.to_string();
        let Error::DeadlineExceeded { seen, trouble, .. } = error else {
            panic!("{error:?}");
        };
        (seen, trouble.is_some(), text)
    };
    let text = |seen: &str| {
        let path = "/api/v1/namespaces/default/configmaps/a";
        format!("{path} did not fulfil the condition within 5s: {seen}")
    };

    let expected = (LastSeen::Missing, false, text("it does not exist"));
    assert_eq!(wait().await, expected);

    let resource_version = create(&api, "a", &[]).await.resource_version();
    let version = resource_version.clone().unwrap();
    let existing = text(&format!("it exists, with resourceVersion {version}"));
    let expected = (LastSeen::Existing { resource_version }, false, existing);
    assert_eq!(wait().await, expected);

    let guard = server.faults().inject(Rule::any(), Fault::InternalError);
    let expected = (LastSeen::Never, true, text("it was not seen at all"));
    assert_eq!(wait().await, expected);
    let waiting = await_condition_within(api.clone(), "a", is_ready(), SECOND);
    let error = waiting.await.unwrap_err();
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("list configmaps")
    );
    drop(guard);

    merge(&api, "a", json!({ "data": { "ready": "yes" } })).await;
    let waiting = await_condition_within(api, "a", is_ready(), Duration::MAX);
    assert!(waiting.await.unwrap().is_some());
}

/// A kind is waited for, and then an object of it, before either exists.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later() {
    let server = ApiServer::builder().build();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Site"));
    let sites: Api<DynamicObject> = Api::namespaced_with(server.client(), "default", &kind);
    let site = tokio::spawn(await_condition(
        sites.clone(),
        "a",
        |site: Option<&DynamicObject>| site.is_some(),
    ));
    let crds: Api<CustomResourceDefinition> = Api::all(server.client());
    let name = "sites.example.com";
    let crd = await_condition(crds.clone(), name, conditions::is_crd_established());
    let crd = tokio::spawn(crd);
    sleep(3 * SECOND).await;
    let definition = json!({
        "metadata": { "name": name },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Site", "plural": "sites" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let definition = serde_json::from_value(definition).unwrap();
    crds.create(&PostParams::default(), &definition)
        .await
        .unwrap();
    assert!(
        timeout(SECOND, crd)
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .is_some()
    );
    sites
        .create(&PostParams::default(), &DynamicObject::new("a", &kind))
        .await
        .unwrap();
    let site = timeout(30 * SECOND, site).await.unwrap().unwrap().unwrap();
    assert_eq!(site.unwrap().name_any(), "a");
}

#[tokio::test(start_paused = true)]
async fn until_an_object_is_gone() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let params = DeleteParams::default();
    let begin = Instant::now();
    create(&api, "a", &[]).await;
    delete_and_finalize(api.clone(), "a", &params)
        .await
        .unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert_eq!(begin.elapsed(), Duration::ZERO);

    create(&api, "a", &["example.com/hold"]).await;
    let deletion = {
        let (api, params) = (api.clone(), params.clone());
        tokio::spawn(async move { delete_and_finalize(api, "a", &params).await })
    };
    sleep(600 * SECOND).await;
    assert!(!deletion.is_finished());
    merge(&api, "a", json!({ "metadata": { "finalizers": null } })).await;
    // The next one of this name is another object.
    create(&api, "a", &["example.com/hold"]).await;
    timeout(SECOND, deletion).await.unwrap().unwrap().unwrap();

    let dry = params.clone().dry_run();
    delete_and_finalize(api.clone(), "a", &dry).await.unwrap();
    assert!(
        api.get("a")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );

    let error = delete_and_finalize(api, "b", &params).await.unwrap_err();
    let delete::Error::Delete(kube::Error::Api(status)) = error else {
        panic!("{error:?}");
    };
    assert!(status.is_not_found());
}

/// S1: an object that takes the name before the deletion is carried out is not deleted.
#[tokio::test(start_paused = true)]
async fn another_object_of_the_name_is_not_deleted() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[]).await;
    let rule = Rule::any().verb(Verb::Delete).times(1);
    let late = server
        .faults()
        .inject(rule, Fault::Delay(Duration::from_secs(2)));
    let params = DeleteParams::default();
    let deletion = {
        let (api, params) = (api.clone(), params.clone());
        tokio::spawn(async move { delete_and_finalize(api, "a", &params).await })
    };
    sleep(Duration::from_secs(1)).await;
    api.delete("a", &params).await.unwrap();
    let other = create(&api, "a", &[]).await;
    let error = deletion.await.unwrap().unwrap_err();
    let delete::Error::Delete(kube::Error::Api(status)) = error else {
        panic!("{error}");
    };
    assert_eq!((status.code, late.hits()), (409, 1));
    let left = api.get("a").await.unwrap();
    assert_eq!(left.metadata.uid, other.metadata.uid);
}
