//! What requests need, noted in a file: from it `homeostat rbac` writes roles.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::json;

use super::Attributes;

/// Names the folder where the servers of a process note what requests need.
const FOLDER: &str = "HOMEOSTAT_REQUESTS";

/// How many different needs are noted. An operator has some dozens.
const MOST: usize = 10_000;

/// How many names of objects are noted of a need. Who needs more has no list of names.
const MOST_NAMES: usize = 16;

/// Notes each need once.
pub(crate) struct Needs {
    file: Mutex<File>,
    seen: Mutex<BTreeMap<[String; 9], Vec<String>>>,
}

/// Why something is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was asked for.
    Asked,
    /// A cluster with `OwnerReferencesPermissionEnforcement` wants it of who sets `blockOwnerDeletion`.
    OwnerReference,
}

// === impl Needs ===

impl Needs {
    /// Notes into a file of its own in a folder, which is made.
    ///
    /// # Errors
    ///
    /// Folder or file cannot be made.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = folder.join(format!("{}.jsonl", std::process::id()));
        Ok(Self {
            file: Mutex::new(OpenOptions::new().create(true).append(true).open(file)?),
            seen: Mutex::default(),
        })
    }

    /// What all servers of this process share, if the environment names a folder.
    pub(crate) fn of_process() -> Option<Arc<Self>> {
        static NEEDS: OnceLock<Option<Arc<Needs>>> = OnceLock::new();
        let open = || {
            let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty())?;
            match Self::in_folder(Path::new(&folder)) {
                Ok(needs) => Some(Arc::new(needs)),
                Err(error) => {
                    tracing::error!(%error, ?folder, "{FOLDER} names no folder that can be written");
                    None
                }
            }
        };
        NEEDS.get_or_init(open).clone()
    }

    pub(super) fn note(&self, wanted: &Attributes<'_>, agent: &str, why: Why) {
        let Attributes {
            user,
            verb,
            group,
            version: _,
            resource,
            subresource,
            namespace,
            name,
            path,
        } = *wanted;
        let why = match why {
            Why::Asked => "asked",
            Why::OwnerReference => "owner reference",
        };
        let key = [
            &user.name,
            agent,
            verb,
            group,
            resource,
            subresource,
            namespace,
            path,
            why,
        ];
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = seen.len() >= MOST;
        let key = key.map(str::to_owned);
        if is_full && !seen.contains_key(&key) {
            return;
        }
        let names = seen.entry(key).or_default();
        if names.len() >= MOST_NAMES || names.iter().any(|known| known == name) {
            return;
        }
        names.push(name.to_owned());
        drop(seen);
        let line = json!({
            "user": user.name, "userAgent": agent, "verb": verb, "group": group, "resource": resource,
            "subresource": subresource, "namespace": namespace, "name": name, "path": path, "why": why,
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // In one piece, because the process may end at any time.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::error!(%error, "what a request needs cannot be noted");
        }
    }
}

impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Needs").finish_non_exhaustive()
    }
}
