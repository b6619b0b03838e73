//! Which file of a crate needs which, and that no file needs itself through others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::names::{Import, Names};
use super::tree::Tree;
use super::{Finding, Rule};

mod names;

pub(crate) const CIRCLE: Rule = Rule {
    name: "circle",
    why: "modules import downwards only; what two files share stands in a third one below both",
    check: circle,
};

/// Folders whose files still need each other, with the reason.
const TANGLED: &[(&str, &str)] = &[(
    "crates/cli/src/demo/",
    "the demo is told anew: its stage, report and narrator come apart then",
)];

/// The modules of the repository, one for each file.
struct Modules<'a> {
    files: BTreeMap<&'a str, Module<'a>>,
}

struct Module<'a> {
    names: Names<'a>,
    /// The file that declares this one.
    parent: Option<&'a str>,
    /// The modules that this file declares in files of their own, by their names.
    children: BTreeMap<&'a str, &'a str>,
}

/// What each file needs, with the line where it says so first.
type Needs<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

fn circle(tree: &Tree) -> Vec<Finding> {
    let modules = Modules::of(tree);
    let mut needs = modules.needs();
    let mut findings = Vec::new();
    while let Some(room) = next_room(&needs) {
        // A module and those inside of it are one room: they may use what it defines.
        let outer = room.iter().copied().find(|outer| {
            let mut others = room.iter().filter(|other| *other != outer);
            others.all(|other| modules.is_inside(other, outer))
        });
        if let Some(outer) = outer {
            for inner in &room {
                needs.entry(inner).or_default().remove(outer);
            }
            continue;
        }
        let circle = room
            .first()
            .and_then(|first| shortest_circle(&needs, first));
        let circle = circle.unwrap_or_default();
        let tangled = |file: &&str| TANGLED.iter().any(|(folder, _)| file.starts_with(folder));
        if let [first, second, ..] = circle[..]
            && !circle.iter().all(tangled)
        {
            findings.push(Finding {
                path: first.to_owned(),
                line: needs[first][second],
                advice: format!(
                    "{} is a circle: give what they share a module of its own below both",
                    circle.join(" -> ")
                ),
            });
        }
        // All files that need each other are one fault, which the first of them shows.
        for file in &room {
            let others = |needed: &&str, _: &mut usize| !room.contains(needed);
            needs.entry(file).or_default().retain(others);
        }
    }
    findings
}

/// The first files that need each other.
fn next_room<'a>(needs: &Needs<'a>) -> Option<BTreeSet<&'a str>> {
    needs.keys().find_map(|&path| {
        let mut room = reach(needs, path);
        room.contains(path).then(|| {
            room.retain(|other| reach(needs, other).contains(path));
            room
        })
    })
}

/// Every file that this one needs, directly or through others.
fn reach<'a>(needs: &Needs<'a>, path: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = direct(needs, path).collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(direct(needs, file));
        }
    }
    reached
}

/// The shortest way from a file to itself, with the file at both ends.
fn shortest_circle<'a>(needs: &Needs<'a>, path: &'a str) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([path]);
    while let Some(file) = next.pop_front() {
        for needed in direct(needs, file) {
            if needed == path {
                let mut way = vec![path, file];
                while let Some(before) = from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(needed) {
                from.insert(needed, file);
                next.push_back(needed);
            }
        }
    }
    None
}

fn direct<'a>(needs: &Needs<'a>, path: &str) -> impl Iterator<Item = &'a str> {
    needs
        .get(path)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .copied()
}

// === impl Modules ===

impl<'a> Modules<'a> {
    fn of(tree: &'a Tree) -> Self {
        let mut files: BTreeMap<&str, Module<'_>> = tree
            .sources()
            .map(|(path, source)| {
                let module = Module {
                    names: Names::of(source),
                    parent: None,
                    children: BTreeMap::new(),
                };
                (path, module)
            })
            .collect();
        // A file that nobody declares is the root of a crate, and declares its modules beside it.
        // Whether it is declared is known once those above it are.
        let mut roots: Vec<&str> = files.keys().copied().collect();
        roots.sort_by_key(|path| (path.matches('/').count(), !is_root(path)));
        for path in roots {
            let beside = is_root(path) || files[path].parent.is_none();
            let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
            let stem = file.trim_end_matches(".rs");
            for name in files[path].names.modules.clone() {
                let places = if beside {
                    [
                        format!("{folder}/{name}.rs"),
                        format!("{folder}/{name}/mod.rs"),
                    ]
                } else {
                    [
                        format!("{folder}/{stem}/{name}.rs"),
                        format!("{folder}/{stem}/{name}/mod.rs"),
                    ]
                };
                let found = places
                    .iter()
                    .find_map(|place| files.get_key_value(place.as_str()))
                    .map(|(path, _)| *path);
                if let Some(child) = found {
                    files.entry(path).and_modify(|module| {
                        module.children.insert(name, child);
                    });
                    files.entry(child).and_modify(|module| {
                        module.parent.get_or_insert(path);
                    });
                }
            }
        }
        Self { files }
    }

    /// Whether a file is declared by the other, or by one inside of it.
    fn is_inside(&self, file: &str, outer: &str) -> bool {
        let mut above = self.files[file].parent;
        while let Some(parent) = above {
            if parent == outer {
                return true;
            }
            above = self.files[parent].parent;
        }
        false
    }

    fn needs(&self) -> Needs<'a> {
        let mut needs = Needs::new();
        for (&path, module) in &self.files {
            let mut needed = BTreeMap::new();
            for reference in module.names.references() {
                let target = self.resolve(path, &reference.path, &mut BTreeSet::new());
                if let Some(target) = target.filter(|target| *target != path) {
                    let line = needed.entry(target).or_insert(reference.line);
                    *line = reference.line.min(*line);
                }
            }
            needs.insert(path, needed);
        }
        needs
    }

    /// The file that defines what the path means in this file, as far as it is in this crate.
    fn resolve(
        &self,
        file: &'a str,
        path: &[&'a str],
        seen: &mut BTreeSet<(&'a str, &'a str)>,
    ) -> Option<&'a str> {
        let (first, rest) = path.split_first()?;
        let module = &self.files[file];
        match *first {
            "crate" => {
                let mut root = file;
                while let Some(parent) = self.files[root].parent {
                    root = parent;
                }
                self.inside(root, rest, seen)
            }
            "self" => self.inside(file, rest, seen),
            "super" => self.inside(module.parent?, rest, seen),
            _ => self.named(file, first, rest, seen),
        }
    }

    /// What the rest of a path means inside of this file.
    fn inside(
        &self,
        file: &'a str,
        path: &[&'a str],
        seen: &mut BTreeSet<(&'a str, &'a str)>,
    ) -> Option<&'a str> {
        match path.split_first() {
            None => Some(file),
            Some((&"super", rest)) => self.inside(self.files[file].parent?, rest, seen),
            Some((first, rest)) => {
                let foreign = self.files[file].names.imports(first);
                let here = (!foreign).then_some(file);
                self.named(file, first, rest, seen).or(here)
            }
        }
    }

    /// What a name means that this file declares or imports; nothing if it does neither.
    fn named(
        &self,
        file: &'a str,
        name: &'a str,
        rest: &[&'a str],
        seen: &mut BTreeSet<(&'a str, &'a str)>,
    ) -> Option<&'a str> {
        if !seen.insert((file, name)) {
            return None;
        }
        let module = &self.files[file];
        if let Some(child) = module.children.get(name) {
            return self.inside(child, rest, seen);
        }
        if module.names.defines(name) {
            return Some(file);
        }
        for Import { path, alias, .. } in &module.names.imports {
            let full: Vec<&str> = if *alias == "*" {
                path.iter().copied().chain([name]).collect()
            } else if *alias == name {
                path.iter().chain(rest).copied().collect()
            } else {
                continue;
            };
            if path.first() == Some(&name) && *alias == name && path.len() == 1 {
                continue;
            }
            if let Some(found) = self.resolve(file, &full, seen)
                && (*alias != "*" || self.files[found].names.defines(name))
            {
                return Some(found);
            }
        }
        None
    }
}

/// Whether a file by its name declares its modules beside it.
fn is_root(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "lib.rs" | "main.rs" | "mod.rs" | "build.rs")
}
