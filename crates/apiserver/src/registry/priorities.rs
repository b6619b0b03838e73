//! Priorities of pods, and claims that grow: what admission plugins of a cluster decide.

use serde_json::{Value, json};

use super::{Registry, Target};
use crate::object;
use crate::quantity;
use crate::status::Status;
use crate::storage::Key;

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

const PREEMPTS: &str = "PreemptLowerPriority";

/// What a class gives to a pod.
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

impl Registry {
    /// Gives a new pod the priority of its class.
    ///
    /// # Errors
    ///
    /// 403 for a class that is not there, and for a pod that asks for something else.
    pub(super) fn admit_priority(&self, target: &Target, pod: &mut Value) -> Result<(), Status> {
        let name = object::name(pod).to_owned();
        let refused = |why: &str| Status::forbidden(target.resource.subject(&name), why);
        let wanted = pod["spec"]["priorityClassName"]
            .as_str()
            .unwrap_or_default();
        let class = if wanted.is_empty() {
            self.default_class()
        } else {
            let found = self.class(wanted);
            let missing = || refused(&format!("no PriorityClass with name {wanted} was found"));
            Some(found.ok_or_else(missing)?)
        };
        let (class_name, value, preemption) = match class {
            Some(class) => (class.name, class.value, class.preemption),
            None => (String::new(), 0, PREEMPTS.to_owned()),
        };
        let spec = &mut pod["spec"];
        if let Some(asked) = spec["priority"].as_i64().filter(|asked| *asked != value) {
            return Err(refused(&format!(
                "the integer value of priority ({asked}) must not be provided in pod spec; priority \
                 admission controller computed {value} from the given PriorityClass name"
            )));
        }
        if let Some(asked) = spec["preemptionPolicy"].as_str()
            && asked != preemption
        {
            return Err(refused(&format!(
                "the string value of PreemptionPolicy ({asked}) must not be provided in pod spec; \
                 priority admission controller computed {preemption} from the given PriorityClass \
                 name"
            )));
        }
        if !class_name.is_empty() {
            spec["priorityClassName"] = json!(class_name);
        }
        spec["priority"] = json!(value);
        spec["preemptionPolicy"] = json!(preemption);
        Ok(())
    }

    fn class(&self, name: &str) -> Option<Class> {
        let stored = self
            .catalog
            .find("scheduling.k8s.io", "v1", "priorityclasses");
        let stored = stored.and_then(|resource| {
            let key = Key::new(&resource.storage, "", name);
            self.store.get(&key)
        });
        if let Some(class) = stored {
            return Some(Class::of(&class));
        }
        let system = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
        system.map(|(name, value)| Class {
            name: (*name).to_owned(),
            value: *value,
            preemption: PREEMPTS.to_owned(),
        })
    }

    /// The class of pods that name none: of several, the lowest.
    fn default_class(&self) -> Option<Class> {
        let resource = self
            .catalog
            .find("scheduling.k8s.io", "v1", "priorityclasses")?;
        let now = self.store.revision();
        let classes = self.store.scan(&resource.storage, None, now, None);
        let defaults = classes.filter(|(_, class)| class["globalDefault"] == true);
        defaults
            .map(|(_, class)| Class::of(&class))
            .min_by_key(|class| class.value)
    }

    /// Whether a change of an object is allowed beyond what the object itself says: a claim grows only
    /// if its storage class lets it.
    ///
    /// # Errors
    ///
    /// 403 if it does not.
    pub(super) fn admit_change(
        &self,
        target: &Target,
        new: &Value,
        old: &Value,
    ) -> Result<(), Status> {
        let is_claim = target.resource.is("", "persistentvolumeclaims");
        let size = |claim: &Value| {
            let size = &claim["spec"]["resources"]["requests"]["storage"];
            size.as_str().unwrap_or_default().to_owned()
        };
        if !is_claim || target.subresource.is_some() || !quantity::is_less(&size(old), &size(new)) {
            return Ok(());
        }
        let subject = target.resource.subject(&target.name);
        if old["status"]["phase"] != "Bound" {
            let why = "Only bound persistent volume claims can be expanded";
            return Err(Status::forbidden(subject, why));
        }
        let class = new["spec"]["storageClassName"].as_str();
        let resource = self.catalog.find("storage.k8s.io", "v1", "storageclasses");
        let class = class.zip(resource).and_then(|(name, resource)| {
            let key = Key::new(&resource.storage, "", name);
            self.store.get(&key)
        });
        if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that \
                   provisions the pvc must support resize";
        Err(Status::forbidden(subject, why))
    }
}

// === impl Class ===

impl Class {
    fn of(class: &Value) -> Self {
        let preemption = class["preemptionPolicy"].as_str();
        Self {
            name: object::name(class).to_owned(),
            value: class["value"].as_i64().unwrap_or_default(),
            preemption: preemption.unwrap_or(PREEMPTS).to_owned(),
        }
    }
}
