use super::*;
use serde_json::json;

fn owner() -> Owner {
    Owner {
        api_version: "example.com/v1".into(),
        kind: "Site".into(),
        name: "blog".into(),
        uid: "u1".into(),
        namespace: Some("shop".into()),
    }
}

/// D5: owners that the garbage collector would not find are refused.
#[test]
fn where_children_may_be() {
    use Misplaced::{NoNamespace, OtherNamespace, Unsaid};
    use Scope::{Cluster, Namespaced, Unknown};
    let own = || Ok(Some("shop".to_owned()));
    let table = [
        (Some("shop"), Namespaced, None, own()),
        (Some("shop"), Namespaced, Some(""), own()),
        (Some("shop"), Namespaced, Some("shop"), own()),
        (Some("shop"), Unknown, None, own()),
        (Some("shop"), Namespaced, Some("other"), Err(OtherNamespace)),
        (Some("shop"), Unknown, Some("other"), Err(OtherNamespace)),
        (Some("shop"), Cluster, None, Err(NoNamespace)),
        (None, Cluster, None, Ok(None)),
        (None, Unknown, None, Ok(None)),
        (None, Namespaced, Some("shop"), own()),
        (None, Namespaced, None, Err(Unsaid)),
    ];
    for (namespace, scope, said, expected) in table {
        let owner = Owner {
            namespace: namespace.map(str::to_owned),
            ..owner()
        };
        let place = owner.place(scope, said);
        assert_eq!(place, expected, "{namespace:?} {scope:?} {said:?}");
    }
}

#[test]
fn an_owner_is_named_once() {
    let mut child = json!({ "metadata": { "ownerReferences": [
        { "uid": "u1", "name": "old" }, { "uid": "u0" },
    ] } });
    owner().claim(&mut child);
    owner().claim(&mut child);
    assert_eq!(
        child["metadata"]["ownerReferences"],
        json!([{ "uid": "u0" }, {
            "apiVersion": "example.com/v1", "kind": "Site", "name": "blog", "uid": "u1",
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    let mut bare = json!({});
    owner().claim(&mut bare);
    assert_eq!(bare["metadata"]["ownerReferences"][0]["uid"], "u1");
}

/// An object that is controlled by a site of this name and uid.
fn controlled(group: &str, name: &str, uid: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [
        { "uid": "u9", "kind": "Site", "name": "x", "apiVersion": "example.com/v1" },
        {
            "apiVersion": format!("{group}/v2"), "kind": "Site", "name": name, "uid": uid,
            "controller": true,
        },
    ] } })
}

/// S1: what belongs to somebody else, or to an earlier object of the name, is not touched.
#[test]
fn what_is_done_about_what_is_there() {
    let desired = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let mut applied = controlled("example.com", "blog", "u1");
    applied["metadata"]["managedFields"] = json!([
        { "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {} },
    ]);
    let with = |mut object: Value, name: &str, value: Value| {
        object["metadata"][name] = value;
        object
    };
    let deleting = |object| with(object, "deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let taken = |by: &str| Err(Refusal::Taken(by.to_owned()));
    let ours = || controlled("example.com", "blog", "u1");
    for (what, live, expected) in [
        ("nobody's", json!({ "metadata": {} }), Ok(Step::Apply)),
        (
            "nobody's, going",
            deleting(json!({ "metadata": {} })),
            Err(Refusal::Leaving),
        ),
        ("ours", ours(), Ok(Step::Apply)),
        ("ours, going", deleting(ours()), Ok(Step::Await)),
        ("ours, wanted otherwise", applied, Ok(Step::Apply)),
        (
            "an earlier site's",
            controlled("example.com", "blog", "u0"),
            Ok(Step::Await),
        ),
        (
            "another site's",
            controlled("example.com", "shop", "u0"),
            taken("Site/shop"),
        ),
        (
            "another kind's",
            controlled("example.org", "blog", "u0"),
            taken("Site/blog"),
        ),
    ] {
        assert_eq!(owner().step(&live, &desired, "m"), expected, "{what}");
    }

    assert!(owner().has(&ours()["metadata"]));
    assert!(!owner().has(&deleting(ours())["metadata"]));
    assert!(!owner().has(&controlled("example.com", "blog", "u0")["metadata"]));
    assert!(!owner().has(&json!({ "ownerReferences": [{ "uid": "u1" }] })));
    assert!(!owner().has(&json!({})));
}

#[test]
fn names_fit_and_stay() {
    let long = "a".repeat(60);
    for (owner, role, expected) in [
        ("blog", "web", "blog-web".to_owned()),
        (&long, "c", format!("{long}-c")),
        ("", "web", name("", "web")),
    ] {
        assert_eq!(name(owner, role), expected);
        assert_eq!(name(owner, role), expected, "the same each time");
    }
    let dns = |name: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty()
            && name.len() <= 63
            && name.bytes().all(inner)
            && !name.starts_with('-')
            && !name.ends_with('-')
    };
    let mut names = std::collections::BTreeSet::new();
    let owners = [
        "",
        "-",
        "a",
        "A",
        "a.b",
        "a-b",
        "ä",
        &long,
        &"b".repeat(253),
        "-a-",
    ];
    let roles = ["", "-", "x", "X", "x.y", "é", &"r".repeat(100)];
    for owner in owners {
        for role in roles {
            let name = name(owner, role);
            assert!(dns(&name), "{owner:?} {role:?}: {name}");
            assert!(
                names.insert(name.clone()),
                "{owner:?} {role:?}: {name} is taken"
            );
            for limit in [0, 10, 52] {
                let name = name_within(owner, role, limit);
                assert!(dns(&name) && name.len() <= limit.max(10), "{name}");
            }
        }
    }
}

/// The known values of the algorithm; others would restart everybody's pods.
#[test]
fn the_fingerprint_is_fnv_1a() {
    assert_eq!(fingerprint("1"), "af63ac4c86019afc");
    assert_eq!(fingerprint("[]"), "09612b07b5ecb5a5");
}

#[test]
fn managers_in_conflicts() {
    for (message, expected) in [
        (r#"conflict with "one""#, Some("one")),
        (
            r#"conflict with "kubectl-edit" using apps/v1"#,
            Some("kubectl-edit"),
        ),
        (r#"conflict with "a \"b\" \\" using v1"#, Some(r#"a "b" \"#)),
        (
            r#"conflict with "x" with subresource "scale" using v1 at 2026"#,
            Some("x"),
        ),
        ("conflict", None),
        (r#"conflict with "x"#, None),
    ] {
        assert_eq!(manager_in(message).as_deref(), expected, "{message}");
    }
}

/// What a manager `m` owns and sees of an object, and whether it has to say again what it wants.
struct Case {
    fields: Value,
    live: Value,
}

impl Case {
    fn object(&self, api_version: &str) -> Value {
        let mut object = self.live.clone();
        object["metadata"]["managedFields"] = json!([
            { "manager": "other", "operation": "Update", "fieldsV1": { "f:spec": {} } },
            { "manager": "m", "operation": "Update", "fieldsV1": { "f:spec": {} } },
            { "manager": "m", "operation": "Apply", "apiVersion": api_version,
              "subresource": "status", "fieldsV1": { "f:status": {} } },
            { "manager": "m", "operation": "Apply", "apiVersion": api_version,
              "fieldsV1": self.fields },
        ]);
        object
    }

    #[track_caller]
    fn check(&self, api_version: &str, desired: Value, expected: bool) {
        let mut desired = desired;
        desired["apiVersion"] = json!(api_version);
        desired["kind"] = json!("Kind");
        desired["metadata"]["name"] = json!("a");
        let live = self.object(api_version);
        assert_eq!(
            is_applied(&live, &desired, "m"),
            expected,
            "{desired} on {live}"
        );
        assert!(
            !is_applied(&live, &desired, "n"),
            "somebody who owns nothing"
        );
        desired["apiVersion"] = json!("example.net/v7");
        assert!(!is_applied(&live, &desired, "m"), "in another version");
    }
}

/// H11, H26, B26: what the server or somebody else put next to our fields is no difference.
#[test]
fn fields_that_are_owned_by_themselves() {
    let case = Case {
        fields: json!({ "f:spec": { "f:replicas": {}, "f:paused": {}, "f:image": {} } }),
        live: json!({ "metadata": { "name": "a", "labels": { "theirs": "x" } }, "spec": {
            "replicas": 2, "image": "i", "strategy": "filled in",
        } }),
    };
    let spec = |replicas: u32| json!({ "replicas": replicas, "paused": false, "image": "i" });
    case.check("apps/v1", json!({ "spec": spec(2) }), true);
    case.check(
        "apps/v1",
        json!({ "spec": spec(2), "status": { "x": 1 } }),
        true,
    );
    case.check("apps/v1", json!({ "spec": spec(3) }), false);
    // A custom resource keeps what says nothing, so it would be there.
    case.check("example.com/v1", json!({ "spec": spec(2) }), false);
    // A field that is not wanted any more is to be dropped, and a new one to be said.
    case.check(
        "apps/v1",
        json!({ "spec": { "replicas": 2, "image": "i" } }),
        false,
    );
    let more = json!({ "replicas": 2, "paused": false, "image": "i", "strategy": "filled in" });
    case.check("apps/v1", json!({ "spec": more }), false);
    let none = json!({ "replicas": 2, "paused": false, "image": "i", "strategy": null });
    case.check("apps/v1", json!({ "spec": none }), true);
    case.check("apps/v1", json!({}), false);

    let without = json!({ "metadata": { "name": "a" }, "spec": spec(2) });
    let desired = json!({ "apiVersion": "apps/v1", "spec": spec(2) });
    assert!(
        !is_applied(&without, &desired, "m"),
        "without managedFields nobody knows"
    );
}

/// H12, H26, B26: notations that the server changes.
#[test]
fn quantities_of_built_in_kinds() {
    let case = Case {
        fields: json!({ "f:limits": { "f:cpu": {} }, "f:args": {}, "f:emptyDir": { "f:sizeLimit": {} } }),
        live: json!({ "metadata": {}, "limits": { "cpu": "1" }, "args": ["1"],
            "emptyDir": { "sizeLimit": "1Gi" } }),
    };
    let wanted = |cpu: &str, args: &str| json!({ "limits": { "cpu": cpu }, "args": [args], "emptyDir": { "sizeLimit": "1024Mi" } });
    case.check("v1", wanted("1000m", "1"), true);
    case.check("v1", wanted("1001m", "1"), false);
    case.check("v1", wanted("1", "1000m"), false);
    case.check("example.com/v1", wanted("1", "1"), false);
}

/// A1, H11, H18, H20: a map or list that is owned as a whole has to be equal as a whole, but for what
/// the server fills in.
#[test]
fn fields_that_are_owned_as_a_whole() {
    let check = |live: Value, desired: Value, built_in: bool, custom: bool| {
        let case = Case {
            fields: json!({ "f:x": {} }),
            live: json!({ "metadata": {}, "x": live }),
        };
        case.check("v1", json!({ "x": desired }), built_in);
        case.check("example.com/v1", json!({ "x": desired }), custom);
    };
    check(
        json!({ "a": 1 }),
        json!({ "a": 1.0, "b": null }),
        true,
        true,
    );
    // It may have been said before, and is to be dropped.
    check(json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), false, false);
    check(json!([1, 2]), json!([1]), false, false);
    check(json!([2, 1]), json!([1, 2]), false, false);
    check(json!([{ "a": 1 }]), json!([{ "a": 1 }]), true, true);
    check(
        json!([{ "a": 1, "b": 2 }]),
        json!([{ "a": 1 }]),
        false,
        false,
    );
    check(Value::Null, json!([]), true, false);
    check(json!([]), json!([]), true, true);
    check(json!({ "a": 1 }), json!({ "a": 1, "b": "" }), true, false);
    for (live, desired) in [
        (
            json!([{ "fieldRef": { "apiVersion": "v1", "fieldPath": "p" } }]),
            json!([{ "fieldRef": { "fieldPath": "p" } }]),
        ),
        (
            json!([{ "ports": [{ "port": 80, "protocol": "TCP" }] }]),
            json!([{ "ports": [{ "port": 80 }] }]),
        ),
    ] {
        check(live, desired, true, false);
    }
    let case = Case {
        fields: json!({ "f:spec": { "f:volumeClaimTemplates": {} } }),
        live: json!({ "metadata": {}, "spec": { "volumeClaimTemplates": [{
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "d" },
            "spec": { "resources": { "requests": { "storage": "1Gi" } }, "volumeMode": "Filesystem" },
            "status": { "phase": "Pending" },
        }] } }),
    };
    let claim = |size: &str| {
        json!({ "spec": { "volumeClaimTemplates": [{ "metadata": { "name": "d" },
            "spec": { "resources": { "requests": { "storage": size } } } }] } })
    };
    case.check("apps/v1", claim("1024Mi"), true);
    case.check("apps/v1", claim("2Gi"), false);
}

/// H9, H10, H20: elements by their keys; those that others add are no difference, and the order of
/// ours is one.
#[test]
fn elements_of_lists() {
    let case = Case {
        fields: json!({ "f:ports": {
            r#"k:{"port":80,"protocol":"TCP"}"#: { ".": {}, "f:port": {}, "f:name": {} },
            r#"k:{"port":80,"protocol":"UDP"}"#:
                { ".": {}, "f:port": {}, "f:protocol": {}, "f:name": {} },
        }, "f:finalizers": { r#"v:"a""#: {}, r#"v:"b""#: {} } }),
        live: json!({ "metadata": {}, "finalizers": ["a", "theirs", "b"], "ports": [
            { "port": 443, "protocol": "TCP" },
            { "port": 80, "protocol": "TCP", "name": "t", "targetPort": 80 },
            { "port": 80, "protocol": "UDP", "name": "u" },
        ] }),
    };
    let tcp = || json!({ "port": 80, "name": "t" });
    let udp = || json!({ "port": 80, "name": "u", "protocol": "UDP" });
    let want =
        |ports: Value, finalizers: Value| json!({ "ports": ports, "finalizers": finalizers });
    case.check("v1", want(json!([tcp(), udp()]), json!(["a", "b"])), true);
    case.check("v1", want(json!([udp(), tcp()]), json!(["a", "b"])), false);
    case.check("v1", want(json!([tcp(), udp()]), json!(["b", "a"])), false);
    case.check("v1", want(json!([tcp()]), json!(["a", "b"])), false);
    case.check("v1", want(json!([tcp(), udp()]), json!(["a"])), false);
    case.check(
        "v1",
        want(json!([tcp(), tcp(), udp()]), json!(["a", "b"])),
        false,
    );
    let renamed = json!({ "port": 80, "name": "x" });
    case.check(
        "v1",
        want(json!([renamed, udp()]), json!(["a", "b"])),
        false,
    );
    case.check("v1", want(json!("text"), json!(["a", "b"])), false);
    case.check("v1", want(json!([]), json!(["a", "b"])), false);

    // Nobody owns an element of an empty list.
    let case = Case {
        fields: json!({ "f:a": {} }),
        live: json!({ "metadata": {}, "a": 1 }),
    };
    case.check("v1", json!({ "a": 1, "ports": [] }), true);
    case.check("example.com/v1", json!({ "a": 1, "ports": [] }), false);
}
