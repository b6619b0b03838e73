//! The rights that a new operator needs.

use super::Plan;
use crate::rbac::{Place, Right, Rights, yaml};

/// The manifest with the operator's account, roles and bindings.
pub(super) fn manifest(plan: &Plan) -> String {
    let names = &plan.names;
    let mut rights = Rights::default();
    let mut add = |place, group: &str, resource: &str, name: Option<&str>, verbs: &[&str]| {
        let right = |verb: &&str| Right {
            place,
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
            path: String::new(),
            verb: (*verb).to_owned(),
        };
        rights.needed.extend(verbs.iter().map(right));
    };
    let (everywhere, group, plural) = (Place::Everywhere, &names.group, &names.plural);
    add(everywhere, group, plural, None, &["list", "watch"]);
    if plan.status {
        add(
            everywhere,
            group,
            &format!("{plural}/status"),
            None,
            &["patch"],
        );
    }
    // The finalizer is written, or without one the object is looked at before anything is made for it.
    add(everywhere, group, plural, None, &["get"]);
    if plan.finalizer {
        add(everywhere, group, plural, None, &["patch"]);
    }
    add(
        everywhere,
        group,
        &format!("{plural}/finalizers"),
        None,
        &["update"],
    );
    for owned in &plan.owned {
        let verbs = ["get", "list", "watch", "create", "patch"];
        add(everywhere, owned.group, owned.plural, None, &verbs);
    }
    let lease = ("coordination.k8s.io", "leases");
    add(Place::Own, lease.0, lease.1, None, &["create"]);
    add(
        Place::Own,
        lease.0,
        lease.1,
        Some(&names.project),
        &["get", "update"],
    );
    let project = &names.project;
    yaml(&rights, project, &format!("{project}-system"))
}
