//! Security contexts: as whom and with which rights containers run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::Field;
use super::super::shown::{PROFILE, SECURITY};
use crate::object;
use crate::registry::forms;
use crate::status::Cause;

const ID: &str = "must be between 0 and 2147483647, inclusive";

/// The largest number of a user or a group.
const MAX_ID: i64 = 2_147_483_647;

const SYSCTL: &str = "must have at most 253 characters and match regex \
                      ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// What a pod's security context says for all its containers.
pub(super) fn of_pods(context: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for member in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context[member], &field.member(member), causes);
    }
    let groups = field.member("supplementalGroups");
    for (index, group) in object::elements(context, "supplementalGroups").enumerate() {
        id(group, &groups.element(index), causes);
    }
    sysctls(context, field, causes);
}

/// What a container's security context says.
pub(super) fn of_containers(context: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for member in ["runAsUser", "runAsGroup"] {
        id(&context[member], &field.member(member), causes);
    }
    if context["allowPrivilegeEscalation"] != false {
        return;
    }
    let mut contradicts = |what: &str| {
        let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        causes.push(Cause::invalid_shown(*field, &SECURITY.of(context), &why));
    };
    if context["privileged"] == true {
        contradicts("`privileged` to true");
    }
    let added = object::elements(&context["capabilities"], "add");
    for _ in added.filter(|one| **one == "CAP_SYS_ADMIN") {
        contradicts("`capabilities.Add` CAP_SYS_ADMIN");
    }
}

/// A profile of system calls.
pub(super) fn seccomp(profile: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    kind(profile, "seccompProfile", field, causes);
    let place = field.member("localhostProfile");
    let path = &profile["localhostProfile"];
    match (profile["type"] == "Localhost", path.as_str()) {
        (true, None) => {
            let why = "must be set when seccomp type is Localhost";
            causes.push(Cause::required(place, why));
        }
        (true, Some(path)) => descending(path, &place, causes),
        (false, Some(_)) => {
            let why = "can only be set when seccomp type is Localhost";
            causes.push(Cause::invalid_shown(place, &PROFILE.of(profile), why));
        }
        (false, None) => {}
    }
}

/// A profile of what programs may do.
pub(super) fn app_armor(profile: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    kind(profile, "appArmorProfile", field, causes);
    let place = field.member("localhostProfile");
    let path = &profile["localhostProfile"];
    let needed = "must be set when AppArmor type is Localhost";
    match (profile["type"] == "Localhost", path.as_str()) {
        (true, Some(text)) if text.trim() != text => {
            let why = "must not be padded with whitespace";
            causes.push(Cause::invalid(place, path, why));
        }
        (true, None | Some("")) => causes.push(Cause::required(place, needed)),
        (false, Some(_)) => {
            let why = "can only be set when AppArmor type is Localhost";
            causes.push(Cause::invalid(place, path, why));
        }
        (true, Some(_)) | (false, None) => {}
    }
}

fn kind(profile: &Value, member: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("type");
    match profile["type"].as_str().unwrap_or_default() {
        "" => {
            let why = format!("type is required when {member} is set");
            causes.push(Cause::required(place, &why));
        }
        kind if PROFILES.contains(&kind) => {}
        kind => causes.push(Cause::not_supported(place, &json!(kind), &PROFILES)),
    }
}

/// A path that leads down from where it starts.
pub(super) fn descending(path: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if path.starts_with('/') {
        let why = "must be a relative path";
        causes.push(Cause::invalid(*field, &json!(path), why));
    }
    if path.split('/').any(|part| part == "..") {
        causes.push(Cause::invalid(
            *field,
            &json!(path),
            "must not contain '..'",
        ));
    }
}

fn id(value: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|id| !(0..=MAX_ID).contains(&id)) {
        causes.push(Cause::invalid(*field, value, ID));
    }
}

fn sysctls(context: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let list = field.member("sysctls");
    let mut known = BTreeSet::new();
    for (index, sysctl) in object::elements(context, "sysctls").enumerate() {
        let place = list.element(index);
        let place = place.member("name");
        let name = sysctl["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(place, ""));
        } else if name.len() > 253 || !forms::is_sysctl(name) {
            causes.push(Cause::invalid(place, &json!(name), SYSCTL));
        } else if !known.insert(name) {
            causes.push(Cause::duplicate(place, &json!(name)));
        }
    }
}

/// What a pod's members say that exclude each other.
pub(super) fn of_hosts(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if spec["hostPID"] == true && spec["shareProcessNamespace"] == true {
        let place = field.member("securityContext");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(Cause::invalid(
            place.member("shareProcessNamespace"),
            &json!(true),
            why,
        ));
    }
    let has_own_users = spec["hostUsers"] == false;
    for (member, shown) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if has_own_users && spec[member] == true {
            let why = "when `hostUsers` is false";
            causes.push(Cause::forbidden(field.member(shown), why));
        }
    }
    for member in ["containers", "initContainers", "ephemeralContainers"] {
        let list = field.member(member);
        for (index, container) in object::elements(spec, member).enumerate() {
            let mount = &container["securityContext"]["procMount"];
            if *mount == "Unmasked" && !has_own_users {
                let place = list.element(index);
                let place = place.member("securityContext");
                let why = "`hostUsers` must be false to use `Unmasked`";
                causes.push(Cause::invalid(place.member("procMount"), mount, why));
            }
        }
    }
}

/// What pods of one system cannot have.
pub(super) fn of_systems(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let os = &spec["os"];
    let place = field.member("os");
    match os["name"].as_str() {
        _ if os.is_null() => {}
        None | Some("") => {
            causes.push(Cause::required(place.member("name"), "cannot be empty"));
        }
        Some("linux") => {
            let why = "windows options cannot be set for a linux pod";
            contexts(spec, &["windowsOptions"], why, field, causes);
        }
        Some("windows") => of_windows(spec, field, causes),
        Some(name) => {
            let known = ["linux", "windows"];
            causes.push(Cause::not_supported(place, &json!(name), &known));
        }
    }
}

const NOT_OF_WINDOWS: &str = "cannot be set for a windows pod";

fn of_windows(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for member in ["hostPID", "hostIPC"] {
        if spec[member] == true {
            causes.push(Cause::forbidden(field.member(member), NOT_OF_WINDOWS));
        }
    }
    let of_linux = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "shareProcessNamespace",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
    ];
    contexts(spec, &of_linux, NOT_OF_WINDOWS, field, causes);
}

/// Forbids members of the security contexts of a pod and its containers.
fn contexts(spec: &Value, members: &[&str], why: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let mut forbid = |owner: &Value, field: &Field<'_>| {
        let place = field.member("securityContext");
        let context = &owner["securityContext"];
        for member in members.iter().filter(|member| !context[**member].is_null()) {
            causes.push(Cause::forbidden(place.member(member), why));
        }
    };
    forbid(spec, field);
    for member in ["containers", "initContainers", "ephemeralContainers"] {
        let list = field.member(member);
        for (index, container) in object::elements(spec, member).enumerate() {
            forbid(container, &list.element(index));
        }
    }
}
