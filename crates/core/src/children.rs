//! Children: the objects that one object owns and that are kept as somebody wants them (rule R25).
//!
//! Everything in here is decided from objects in JSON, as a server shows them: whose a child is, where
//! it may be, whether to apply it would change anything, and which children are left over.

mod absent;
mod applied;
mod name;

pub use self::{
    absent::absent,
    applied::is_applied,
    name::{fingerprint, name, name_within},
};

use serde_json::{Value, json};

/// The object that owns children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its group and version, as `apps/v1`.
    pub api_version: String,
    /// Its kind, as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its namespace; none if it is in none.
    pub namespace: Option<String>,
}

/// Whether the objects of a kind are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each is in one.
    Namespaced,
    /// None is.
    Cluster,
    /// Nobody knows; then they are where it is said that they are.
    Unknown,
}

/// Why an object cannot own another one where that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The child is to be in another namespace than its owner.
    OtherNamespace,
    /// The child is in no namespace, and its owner is in one.
    NoNamespace,
    /// The child has to be in a namespace, and nobody says in which.
    Unsaid,
}

/// What is to be done about a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: to apply it would change nothing.
    Keep,
    /// Apply it.
    Apply,
    /// Nothing yet: the object of its name goes away, and whoever watches the children is told.
    Await,
}

/// Whose an object is that has the name of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the child.
    Ours,
    /// Nobody controls it.
    Nobodys,
    /// It goes away, and whoever watches the children is told when it is gone.
    Leaving,
}

/// Why an object of a child's name is not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else controls it: kind and name.
    Taken(String),
    /// It is nobody's, and is being deleted.
    Leaving,
}

// === impl Owner ===

impl Owner {
    /// In which namespace a child is. `namespace` is what the child says itself.
    ///
    /// # Errors
    ///
    /// When the garbage collector would not find the owner of an object there, and delete it.
    pub fn place(
        &self,
        scope: Scope,
        namespace: Option<&str>,
    ) -> Result<Option<String>, Misplaced> {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        match (self.namespace.as_deref(), scope, namespace) {
            (Some(_), Scope::Cluster, _) => Err(Misplaced::NoNamespace),
            (Some(own), _, Some(said)) if own != said => Err(Misplaced::OtherNamespace),
            (Some(own), Scope::Namespaced | Scope::Unknown, _) => Ok(Some(own.to_owned())),
            (None, Scope::Namespaced, None) => Err(Misplaced::Unsaid),
            (None, Scope::Cluster, _) => Ok(None),
            (None, Scope::Namespaced | Scope::Unknown, said) => Ok(said.map(str::to_owned)),
        }
    }

    /// Makes this the controller of `child`. Other owners that it names stay.
    pub fn claim(&self, child: &mut Value) {
        let reference = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        let Some(members) = child.as_object_mut() else {
            return;
        };
        let metadata = members.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else {
            return;
        };
        let before = metadata.remove("ownerReferences").unwrap_or_default();
        let others = before.as_array().into_iter().flatten();
        let others = others.filter(|owner| owner["uid"] != *self.uid).cloned();
        let owners: Vec<Value> = others.chain([reference]).collect();
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }

    /// What is to be done about a child that should be as `desired` and is there as `live`.
    ///
    /// An object that nobody controls is adopted.
    ///
    /// # Errors
    ///
    /// When it is not ours to touch.
    pub fn step(&self, live: &Value, desired: &Value, manager: &str) -> Result<Step, Refusal> {
        Ok(match self.standing(live)? {
            Standing::Leaving => Step::Await,
            Standing::Ours if is_applied(live, desired, manager) => Step::Keep,
            Standing::Ours | Standing::Nobodys => Step::Apply,
        })
    }

    /// Whose `live` is, which has the name of a child.
    ///
    /// # Errors
    ///
    /// When it is not ours to touch.
    pub fn standing(&self, live: &Value) -> Result<Standing, Refusal> {
        let leaving = !live["metadata"]["deletionTimestamp"].is_null();
        match controller(&live["metadata"]) {
            Some(by) if by["uid"] == *self.uid && leaving => Ok(Standing::Leaving),
            Some(by) if by["uid"] == *self.uid => Ok(Standing::Ours),
            // What an earlier object of this name has left behind is on its way out.
            Some(by) if self.is_namesake(by) => Ok(Standing::Leaving),
            Some(by) => {
                let text = |name: &str| by[name].as_str().unwrap_or_default();
                let by = format!("{}/{}", text("kind"), text("name"));
                Err(Refusal::Taken(by))
            }
            // No watch of children tells us when it is gone.
            None if leaving => Err(Refusal::Leaving),
            None => Ok(Standing::Nobodys),
        }
    }

    /// Whether an object of which this is the `metadata` is a child of ours that is there to stay.
    #[must_use]
    pub fn has(&self, metadata: &Value) -> bool {
        let ours = controller(metadata).is_some_and(|by| by["uid"] == *self.uid);
        ours && metadata["deletionTimestamp"].is_null()
    }

    fn is_namesake(&self, reference: &Value) -> bool {
        let version = reference["apiVersion"].as_str().unwrap_or_default();
        reference["kind"] == *self.kind
            && reference["name"] == *self.name
            && group(version) == group(&self.api_version)
    }
}

/// Who controls an object; there is one at most.
fn controller(metadata: &Value) -> Option<&Value> {
    let owners = metadata["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.find(|owner| owner["controller"] == true)
}

/// The group of a group and version.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The manager that a server names as the other side of a conflict: in `message`, in quotes.
#[must_use]
pub fn manager_in(message: &str) -> Option<String> {
    let (_, rest) = message.split_once('"')?;
    let mut manager = String::new();
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return Some(manager),
            '\\' => manager.push(letters.next()?),
            letter => manager.push(letter),
        }
    }
}

#[cfg(test)]
mod tests;
