//! Volumes and claims.

use serde_json::Value;

use super::super::field::Field;
use crate::object;
use crate::quantity;
use crate::status::Cause;

/// What a volume can be made of, in the order in which the server counts.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// A volume is made of one thing.
pub(super) fn volume(volume: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    one_source(volume, &SOURCES, field, causes);
}

fn one_source(volume: &Value, sources: &[&str], field: &Field<'_>, causes: &mut Vec<Cause>) {
    let mut own = sources.iter().filter(|source| !volume[**source].is_null());
    if own.next().is_none() {
        causes.push(Cause::required(*field, "must specify a volume type"));
    }
    for source in own {
        let why = "may not specify more than 1 volume type";
        causes.push(Cause::forbidden(field.member(source), why));
    }
}

/// A persistent volume has a size.
pub(super) fn persistent_volume(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    if spec["capacity"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        causes.push(Cause::required(field.member("capacity"), ""));
    }
    modes(spec, field, causes);
}

/// A claim is for some amount.
pub(super) fn claim(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    modes(spec, field, causes);
    let place = field.member("resources");
    let place = place.key("storage");
    let amount = &spec["resources"]["requests"]["storage"];
    match amount.as_str() {
        None => causes.push(Cause::required(place, "")),
        Some(text) => {
            if quantity::is_less(text, "0") {
                let why = "must be greater than or equal to 0";
                causes.push(Cause::invalid(place, amount, why));
            }
            if !quantity::is_positive(text) {
                causes.push(Cause::invalid(place, amount, "must be greater than zero"));
            }
        }
    }
}

fn modes(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("accessModes");
    let mut alone = false;
    for mode in object::elements(spec, "accessModes") {
        if !MODES.iter().any(|known| mode == known) {
            causes.push(Cause::not_supported(place, mode, &MODES));
        }
        alone |= mode == "ReadWriteOncePod";
    }
    if alone && object::elements(spec, "accessModes").count() > 1 {
        let why = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(place, why));
    }
}
