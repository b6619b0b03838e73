use serde_json::json;

use super::*;
use crate::schema::builtin_type;

/// A field with bytes.
fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    // Two bytes hold every length that a test needs.
    let length = [length | 0x80, length >> 7];
    [&[number << 3 | 2], &length[..], value].concat()
}

fn varint(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn envelope(api_version: &str, kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())];
    let unknown = [bytes(1, &type_meta.concat()), bytes(2, &fields.concat())];
    [&MAGIC[..], &unknown.concat()].concat()
}

#[track_caller]
fn check(api_version: &str, kind: &str, fields: &[Vec<u8>], mut expected: Value) {
    expected["apiVersion"] = json!(api_version);
    expected["kind"] = json!(kind);
    let read = object(&envelope(api_version, kind, fields), 20);
    assert_eq!(read, Ok(expected));
}

#[test]
fn every_number_in_the_data_leads_to_a_member() {
    for (name, message) in messages() {
        let schema = builtin_type(name);
        for entry in message.iter().flatten() {
            if let Some(inline) = entry.strip_prefix('+') {
                assert!(messages().contains_key(inline), "{name} {entry}");
            } else if let Some(schema) = schema {
                let member = entry.trim_start_matches('*');
                assert!(schema.fields.contains_key(member), "{name} {member}");
            }
        }
    }
}

#[test]
fn zero_counts_where_it_says_something() {
    let metadata = [
        bytes(1, b"a"),
        bytes(2, b""),
        varint(7, 0),
        bytes(8, b""),
        bytes(11, &[bytes(1, b"k"), bytes(2, b"")].concat()),
    ];
    let spec = [varint(1, 0), varint(5, 0), varint(7, 0), bytes(4, b"")];
    check(
        "apps/v1",
        "Deployment",
        &[bytes(1, &metadata.concat()), bytes(2, &spec.concat())],
        json!({
            "metadata": { "name": "a", "labels": { "k": "" } },
            "spec": { "replicas": 0, "strategy": {} },
        }),
    );
}

#[test]
fn values_with_a_form_of_their_own() {
    let secret = bytes(2, &[bytes(1, b"k"), bytes(2, b"v")].concat());
    check(
        "v1",
        "Secret",
        &[secret],
        json!({ "data": { "k": "dg==" } }),
    );
    let number = bytes(4, &[varint(1, 0), varint(2, 80)].concat());
    let name = bytes(4, &[varint(1, 1), bytes(3, b"web")].concat());
    let spec = [bytes(1, &number), bytes(1, &name)];
    check(
        "v1",
        "Service",
        &[bytes(2, &spec.concat())],
        json!({ "spec": { "ports": [{ "targetPort": 80 }, { "targetPort": "web" }] } }),
    );
    let memory = [bytes(1, b"memory"), bytes(2, &bytes(1, b"1Gi"))];
    check(
        "v1",
        "ResourceQuota",
        &[bytes(2, &bytes(1, &memory.concat()))],
        json!({ "spec": { "hard": { "memory": "1Gi" } } }),
    );
    let mount = [bytes(1, b"v"), bytes(2, &bytes(2, b""))];
    check(
        "v1",
        "Pod",
        &[bytes(2, &bytes(1, &mount.concat()))],
        json!({ "spec": { "volumes": [{ "name": "v", "emptyDir": {} }] } }),
    );
    // 200 seconds and half a second after 1970.
    let time = [vec![8, 0xc8, 1], vec![16, 0x80, 0xca, 0xb5, 0xee, 1]].concat();
    check(
        "coordination.k8s.io/v1",
        "Lease",
        &[bytes(2, &bytes(3, &time))],
        json!({ "spec": { "acquireTime": "1970-01-01T00:03:20.500000Z" } }),
    );
    check(
        "v1",
        "DeleteOptions",
        &[varint(1, 0), bytes(4, b"Foreground")],
        json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Foreground" }),
    );
}

#[test]
fn numbers_may_be_packed() {
    let groups = |fields: Vec<u8>| bytes(2, &bytes(14, &fields));
    let expected = json!({ "spec": { "securityContext": { "supplementalGroups": [1, 2] } } });
    let single = [varint(4, 1), varint(4, 2)].concat();
    check("v1", "Pod", &[groups(single)], expected.clone());
    check("v1", "Pod", &[groups(bytes(4, &[1, 2]))], expected);
}

#[test]
fn what_is_not_known_is_skipped_and_what_cannot_be_read_is_refused() {
    let unknown = [120, 1];
    let metadata = bytes(1, &bytes(1, b"a"));
    check(
        "v1",
        "ConfigMap",
        &[unknown.to_vec(), metadata],
        json!({ "metadata": { "name": "a" } }),
    );
    for body in [
        b"".to_vec(),
        b"{}".to_vec(),
        MAGIC.to_vec(),
        envelope("v1", "Nothing", &[]),
        envelope("example.com/v1", "Widget", &[]),
        envelope("v1", "ConfigMap", &[vec![10, 200]]),
        envelope("v1", "ConfigMap", &[vec![0xff; 11]]),
        envelope("v1", "ConfigMap", &[vec![11]]),
        envelope("v1", "ConfigMap", &[bytes(1, &bytes(1, &[0xff]))]),
    ] {
        assert!(object(&body, 20).is_err(), "{body:?}");
    }
    let deep = envelope("v1", "Pod", &[bytes(2, &bytes(2, &bytes(1, b"c")))]);
    assert!(object(&deep, 3).is_ok());
    assert_eq!(object(&deep, 2), Err("exceeded max depth".to_owned()));
}
