//! Where the state of a key is kept.

use super::hashed::Hashed;
use super::paged::{PAGE, Paged};
use super::table::Table;
use std::hash::Hash;

/// Values by key, each in a numbered slot that stays the same until the value is removed.
///
/// What is looked at for every key (table, hashes) is small and lies apart from the slots, which
/// are not. The free slot with the lowest number is used first, so that slots which are taken one after
/// the other mostly lie side by side, and whole pages become free after a burst. Their memory is given
/// back, but for one page. It grows bit by bit: no single insert takes long.
///
/// The hash has no random seed: the same calls give the same numbers.
#[derive(Clone, Debug)]
pub(super) struct Slots<K, V> {
    /// The slots in use, by the hash of their key.
    table: Table,
    /// Of the key in each slot.
    hashes: Paged<Hashed>,
    entries: Paged<Option<(K, V)>>,
    free: Free,
    /// How many slots of each page are in use.
    used: Vec<u32>,
    /// A page that has memory though none of its slots is in use, so that a few keys that come and go do
    /// not make it come and go.
    spare: Option<u32>,
}

/// The slots that are not in use: a bit for each, set if it is free. In the level above there is a bit for each
/// group of 64, set if one of them is free; and so on.
#[derive(Clone, Debug, Default)]
struct Free {
    levels: [Vec<u64>; 3],
}

impl<K: Hash + Eq, V> Slots<K, V> {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn find(&self, hash: Hashed, key: &K) -> Option<u32> {
        self.table.find(hash, |slot| self.key(slot) == key)
    }

    /// Keeps a value for `key`, which has this hash and is not there yet. Returns its slot.
    pub(super) fn insert(&mut self, hash: Hashed, key: K, value: V) -> u32 {
        let Self {
            table,
            hashes,
            entries,
            free,
            used,
            spare,
        } = self;
        let slot = free.take();
        let page = slot / PAGE;
        *entries.reach(slot, || None) = Some((key, value));
        *hashes.reach(slot, || hash) = hash;
        if page as usize == used.len() {
            used.push(0);
        }
        used[page as usize] += 1;
        if *spare == Some(page) {
            *spare = None;
        }
        table.insert(hash, slot, |slot| hashes[slot]);
        slot
    }

    /// Removes the value in `slot`, whose key has this hash. Returns the page of slots that none is in use of
    /// any more, if its memory was given back.
    pub(super) fn remove(&mut self, hash: Hashed, slot: u32) -> Option<u32> {
        if !self.table.remove(hash, slot) {
            debug_assert!(false, "slot {slot} holds nothing with this hash");
            return None;
        }
        self.entries[slot] = None;
        self.free.give(slot);
        let page = slot / PAGE;
        let used = &mut self.used[page as usize];
        *used -= 1;
        if *used > 0 {
            return None;
        }
        // The lower one is used again first.
        let other = self.spare.replace(page)?;
        self.spare = Some(page.min(other));
        let page = page.max(other);
        self.entries.give_back(page);
        self.hashes.give_back(page);
        Some(page)
    }

    pub(super) fn key(&self, slot: u32) -> &K {
        &self.entry(slot).0
    }

    pub(super) fn value(&self, slot: u32) -> &V {
        &self.entry(slot).1
    }

    pub(super) fn value_mut(&mut self, slot: u32) -> &mut V {
        let entry = self.entries[slot].as_mut();
        &mut entry.expect("only slots in use are asked for").1
    }

    /// All keys and values, in the order of slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        let entries = self.entries.iter();
        entries.filter_map(|(slot, entry)| entry.as_ref().map(|(key, value)| (slot, key, value)))
    }

    fn entry(&self, slot: u32) -> &(K, V) {
        self.entries[slot]
            .as_ref()
            .expect("only slots in use are asked for")
    }
}

impl Free {
    /// The free slot with the lowest number. There is one more than there were at the most.
    fn take(&mut self) -> u32 {
        let top = &self.levels[self.levels.len() - 1];
        let mut place = match top.iter().position(|&word| word != 0) {
            Some(place) => place,
            None => self.grow(),
        };
        for level in self.levels.iter().rev() {
            place = place * 64 + level[place].trailing_zeros() as usize;
        }
        self.mark(place, false);
        u32::try_from(place).expect("there are less slots than that")
    }

    fn give(&mut self, slot: u32) {
        self.mark(slot as usize, true);
    }

    /// Adds 64 slots that are free. Returns the place of their word in the highest level.
    fn grow(&mut self) -> usize {
        let [bits, ..] = &mut self.levels;
        let first = bits.len() * 64;
        let mut words = bits.len() + 1;
        for level in &mut self.levels {
            level.resize(words, 0);
            words = words.div_ceil(64);
        }
        self.mark(first, true);
        let [bits, .., top] = &mut self.levels;
        bits[first / 64] = u64::MAX;
        top.len() - 1
    }

    fn mark(&mut self, slot: usize, free: bool) {
        let mut place = slot;
        for level in &mut self.levels {
            let word = &mut level[place / 64];
            let before = *word;
            let bit = 1 << (place % 64);
            *word = if free { before | bit } else { before & !bit };
            if (before == 0) == (*word == 0) {
                break;
            }
            place /= 64;
        }
    }
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self {
            table: Table::default(),
            hashes: Paged::default(),
            entries: Paged::default(),
            free: Free::default(),
            used: Vec::new(),
            spare: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashed, PAGE, Slots};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::hash::{Hash, Hasher};

    /// A key of which many have the same hash.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Key(u16);

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (self.0 % 50).hash(state);
        }
    }

    proptest! {
        /// Against a sorted map: a slot belongs to one key and stays the same, and the lowest slot that was
        /// given up is used again first.
        #[test]
        fn behave_like_a_sorted_map(
            steps in prop::collection::vec((any::<bool>(), 0_u16..400), 1..2000),
        ) {
            let mut slots: Slots<Key, u16> = Slots::default();
            let mut model: BTreeMap<Key, u32> = BTreeMap::new();
            for (insert, number) in steps {
                let key = Key(number);
                let hash = Hashed::of(&key);
                let known = model.get(&key).copied();
                prop_assert_eq!(slots.find(hash, &key), known);
                match known {
                    None if insert => {
                        let slot = slots.insert(hash, key, number);
                        let taken: BTreeSet<u32> = model.values().copied().collect();
                        let lowest = (0..=400).find(|free| !taken.contains(free));
                        prop_assert_eq!(Some(slot), lowest);
                        model.insert(key, slot);
                    }
                    Some(slot) if !insert => {
                        slots.remove(hash, slot);
                        model.remove(&key);
                    }
                    None | Some(_) => {}
                }
                prop_assert_eq!(slots.len(), model.len());
            }
            for (key, slot) in &model {
                prop_assert_eq!((slots.key(*slot), *slots.value(*slot)), (key, key.0));
            }
            let kept: BTreeSet<Key> = slots.iter().map(|(_, key, _)| *key).collect();
            prop_assert!(kept.iter().eq(model.keys()));
        }
    }

    /// After a burst, what is kept is as much as the keys that are left take, and one page.
    #[test]
    fn memory_is_given_back() {
        let mut slots: Slots<u32, u32> = Slots::default();
        let hash = |number: u32| Hashed::of(&number);
        let many = 20 * PAGE;
        for round in 0..3 {
            for number in 0..many {
                assert_eq!(slots.insert(hash(number), number, round), number);
            }
            let mut given = BTreeSet::new();
            let stay = [3, 7 * PAGE, many - 1];
            for number in (0..many).filter(|number| !stay.contains(number)) {
                let page = slots.remove(hash(number), number);
                assert!(page.is_none_or(|page| given.insert(page)));
            }
            assert_eq!(given.len(), 20 - 3 - 1);
            assert_eq!((slots.entries.pages(), slots.hashes.pages()), (4, 4));
            assert_eq!(
                slots.iter().map(|(slot, _, _)| slot).collect::<Vec<_>>(),
                stay
            );
            // A key that comes and goes takes nothing and gives nothing back.
            for _ in 0..3 {
                assert_eq!(slots.insert(hash(0), 0, round), 0);
                assert_eq!(slots.remove(hash(0), 0), None);
            }
            for number in stay {
                slots.remove(hash(number), number);
            }
            assert_eq!((slots.len(), slots.entries.pages()), (0, 1));
        }
    }
}
