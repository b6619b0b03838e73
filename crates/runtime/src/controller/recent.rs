//! A map of what was touched last.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::{hash::Hash, mem};

/// The values of the keys that were touched last, up to a number of them. Each call takes the same time however many
/// there are.
pub(super) struct Recent<K, V> {
    limit: usize,
    /// Where the entry of a key is. Never walked through.
    places: HashMap<K, usize, FxBuildHasher>,
    entries: Vec<Entry<K, V>>,
    /// The entries that were touched last and first of all; of no meaning while there is none.
    newest: usize,
    oldest: usize,
}

struct Entry<K, V> {
    key: K,
    value: V,
    /// The entries that were touched next after this one and before it. Those of the newest and the oldest lead
    /// nowhere.
    newer: usize,
    older: usize,
}

/// Something whose memory can be used again.
pub(super) trait Renew: Default {
    /// Makes it what a new one is.
    fn renew(&mut self);
}

// === impl Recent ===

impl<K: Hash + Eq + Clone, V: Renew> Recent<K, V> {
    /// An empty map for so many keys, at least one.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            places: HashMap::default(),
            entries: Vec::new(),
            newest: 0,
            oldest: 0,
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let place = *self.places.get(key)?;
        Some(&self.entries.get(place)?.value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = *self.places.get(key)?;
        Some(&mut self.entries.get_mut(place)?.value)
    }

    /// All keys and values, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    /// The value of a key, which is the newest from now on. A new key takes the place of the oldest if there are too
    /// many.
    pub(super) fn touch(&mut self, key: &K) -> &mut V {
        let place = match self.places.get(key) {
            Some(&place) => {
                if place != self.newest {
                    self.take_out(place);
                    self.put_first(place);
                }
                place
            }
            None if self.entries.len() < self.limit => {
                let place = self.entries.len();
                self.entries.push(Entry {
                    key: key.clone(),
                    value: V::default(),
                    newer: place,
                    older: place,
                });
                if place > 0 {
                    self.put_first(place);
                }
                self.places.insert(key.clone(), place);
                place
            }
            None => {
                let place = self.oldest;
                if place != self.newest {
                    self.take_out(place);
                    self.put_first(place);
                }
                let entry = &mut self.entries[place];
                entry.value.renew();
                let before = mem::replace(&mut entry.key, key.clone());
                self.places.remove(&before);
                self.places.insert(key.clone(), place);
                place
            }
        };
        &mut self.entries[place].value
    }

    /// Takes an entry, which is not the newest, out of the order.
    fn take_out(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        if place == self.oldest {
            self.oldest = newer;
        } else {
            self.entries[older].newer = newer;
        }
        self.entries[newer].older = older;
    }

    /// Puts an entry that is not in the order before all others.
    fn put_first(&mut self, place: usize) {
        self.entries[self.newest].newer = place;
        self.entries[place].older = self.newest;
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::{Recent, Renew};

    impl Renew for Vec<u32> {
        fn renew(&mut self) {
            self.clear();
        }
    }

    /// Against a list, newest first.
    #[test]
    fn the_oldest_makes_room() {
        for limit in 1..5 {
            let mut recent: Recent<u32, Vec<u32>> = Recent::new(limit);
            let mut model: Vec<(u32, Vec<u32>)> = Vec::new();
            let mut random = fastrand::Rng::with_seed(7);
            for step in 0..2000 {
                let key = random.u32(0..7);
                recent.touch(&key).push(step);
                let known = model.iter().position(|(other, _)| *other == key);
                let mut entry = known.map_or((key, Vec::new()), |at| model.remove(at));
                entry.1.push(step);
                model.insert(0, entry);
                model.truncate(limit);
                for key in 0..7 {
                    let known = model.iter().find(|(other, _)| *other == key);
                    assert_eq!(recent.get(&key), known.map(|(_, value)| value));
                    assert_eq!(recent.get_mut(&key).is_some(), known.is_some());
                }
                assert_eq!(recent.iter().count(), model.len());
            }
        }
    }
}
