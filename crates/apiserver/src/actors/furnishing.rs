//! What is in every namespace of a cluster: an account for its pods, and the certificate authority
//! by which they know the server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::write_options;
use crate::registry::Registry;
use crate::storage::{Change, ChangeKind, Key};

/// What a namespace has: its resource, its name, and what it is beside that.
struct Piece {
    plural: &'static str,
    name: &'static str,
    content: fn() -> Value,
}

const PIECES: [Piece; 2] = [
    Piece {
        plural: "serviceaccounts",
        name: "default",
        content: || json!({}),
    },
    Piece {
        plural: "configmaps",
        name: "kube-root-ca.crt",
        content: authority,
    },
];

fn authority() -> Value {
    let about = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
                 internal endpoints such as the internal service IP or kubernetes.default.svc. No \
                 other usage is guaranteed across distributions of Kubernetes clusters.";
    json!({
        "metadata": { "annotations": { "kubernetes.io/description": about } },
        // Nobody in a cluster connects to this server.
        "data": { "ca.crt": "" },
    })
}

/// Looks at every namespace that is new or has lost a piece.
#[derive(Debug, Default)]
pub(super) struct Furnishing {
    seen: u64,
    queue: BTreeSet<String>,
}

// === impl Furnishing ===

impl Furnishing {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        if self.seen < registry.store.compacted() {
            // Some changes are forgotten already: look at everything.
            let namespaces = registry.store.keys().filter(|key| is_namespace(key));
            self.queue.extend(namespaces.map(|key| key.name.clone()));
        } else {
            let changes = registry.store.all_changes_after(self.seen);
            self.queue
                .extend(changes.filter_map(|change| concerned(change)));
        }
        self.seen = registry.store.revision();
        while let Some(namespace) = self.queue.pop_first() {
            if furnish(registry, &namespace) {
                self.queue.insert(namespace);
                return true;
            }
        }
        false
    }
}

/// The namespace that may lack something after a change.
fn concerned(change: &Change) -> Option<String> {
    let key = &change.key;
    let is_gone = change.kind == ChangeKind::Deleted;
    if is_namespace(key) {
        return (!is_gone).then(|| key.name.clone());
    }
    let is_piece = |piece: &Piece| {
        key.resource.strip_prefix('/') == Some(piece.plural) && key.name == piece.name
    };
    (is_gone && PIECES.iter().any(is_piece)).then(|| key.namespace.clone())
}

fn is_namespace(key: &Key) -> bool {
    &*key.resource == "/namespaces"
}

/// Puts the first piece that is missing into a namespace. True if it did.
fn furnish(registry: &mut Registry, namespace: &str) -> bool {
    PIECES.iter().any(|piece| {
        let Piece {
            plural,
            name,
            content,
        } = piece;
        let Some(target) = registry.target("", "v1", plural, namespace, name) else {
            return false;
        };
        if registry.store.get(&target.key()).is_some() {
            return false;
        }
        let mut piece = content();
        piece["metadata"]["name"] = json!(name);
        // A namespace that is being deleted takes nothing in.
        registry.create(&target, piece, &write_options()).is_ok()
    })
}
