//! Where the state of a key is kept.

use super::hashed::Hashed;
use super::segmented::Segmented;
use super::table::Table;
use std::hash::Hash;

/// Values by key, each in a numbered slot that stays the same until the value is removed.
///
/// What is looked at for every key (table, hashes) is small and lies apart from the slots, which
/// are not. Freed slots are used again; the memory stays at its peak. It grows bit by bit: no
/// single insert takes long.
///
/// The hash has no random seed: the same calls give the same numbers.
#[derive(Clone, Debug)]
pub(super) struct Slots<K, V> {
    /// The slots in use, by the hash of their key.
    table: Table,
    /// Of the key in each slot.
    hashes: Segmented<Hashed>,
    entries: Segmented<Option<(K, V)>>,
    free: Free,
}

/// The slots that are not in use.
///
/// They are given out in the order of their numbers as far as possible: slots that are taken one
/// after the other mostly lie side by side, and a queue comes back to them in the same order.
#[derive(Clone, Debug, Default)]
struct Free {
    /// A bit for each slot, in groups of 64. Set if the slot is free.
    groups: Vec<u64>,
    /// The groups that have a bit set.
    open: Vec<u32>,
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
        } = self;
        let slot = free.take();
        let index = slot as usize;
        entries.reach(index, || None);
        hashes.reach(index, || hash);
        entries[index] = Some((key, value));
        hashes[index] = hash;
        table.insert(hash, slot, |slot| hashes[slot as usize]);
        slot
    }

    /// Removes the value in `slot`, whose key has this hash.
    pub(super) fn remove(&mut self, hash: Hashed, slot: u32) {
        if self.table.remove(hash, slot) {
            self.entries[slot as usize] = None;
            self.free.give(slot);
        } else {
            debug_assert!(false, "slot {slot} holds nothing with this hash");
        }
    }

    pub(super) fn key(&self, slot: u32) -> &K {
        &self.entry(slot).0
    }

    pub(super) fn value(&self, slot: u32) -> &V {
        &self.entry(slot).1
    }

    pub(super) fn value_mut(&mut self, slot: u32) -> &mut V {
        let entry = self.entries[slot as usize].as_mut();
        &mut entry.expect("only slots in use are asked for").1
    }

    /// All keys and values, in the order of slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        let entries = self.entries.iter().zip(0_u32..);
        entries.filter_map(|(entry, slot)| entry.as_ref().map(|(key, value)| (slot, key, value)))
    }

    fn entry(&self, slot: u32) -> &(K, V) {
        self.entries[slot as usize]
            .as_ref()
            .expect("only slots in use are asked for")
    }
}

impl Free {
    /// A free slot. There is one more than there were at the most.
    fn take(&mut self) -> u32 {
        let Some(&group) = self.open.last() else {
            let group = u32::try_from(self.groups.len()).expect("there are less slots than that");
            self.groups.push(u64::MAX);
            self.open.push(group);
            return self.take();
        };
        let bits = &mut self.groups[group as usize];
        let slot = group * u64::BITS + bits.trailing_zeros();
        *bits &= *bits - 1;
        if *bits == 0 {
            self.open.pop();
        }
        slot
    }

    fn give(&mut self, slot: u32) {
        let group = slot / u64::BITS;
        let bits = &mut self.groups[group as usize];
        if *bits == 0 {
            self.open.push(group);
        }
        *bits |= 1 << (slot % u64::BITS);
    }
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self {
            table: Table::default(),
            hashes: Segmented::default(),
            entries: Segmented::default(),
            free: Free::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashed, Slots};
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
        /// Against a sorted map: a slot belongs to one key and stays the same, and slots that were
        /// given up are used again before there are more.
        #[test]
        fn behave_like_a_sorted_map(
            steps in prop::collection::vec((any::<bool>(), 0_u16..400), 1..2000),
        ) {
            let mut slots: Slots<Key, u16> = Slots::default();
            let mut model: BTreeMap<Key, u32> = BTreeMap::new();
            let mut peak = 0;
            for (insert, number) in steps {
                let key = Key(number);
                let hash = Hashed::of(&key);
                let known = model.get(&key).copied();
                prop_assert_eq!(slots.find(hash, &key), known);
                match known {
                    None if insert => {
                        let slot = slots.insert(hash, key, number);
                        prop_assert!(!model.values().any(|&other| other == slot));
                        model.insert(key, slot);
                    }
                    Some(slot) if !insert => {
                        slots.remove(hash, slot);
                        model.remove(&key);
                    }
                    None | Some(_) => {}
                }
                peak = peak.max(model.len());
                prop_assert_eq!(slots.len(), model.len());
                prop_assert!(slots.entries.len() <= peak.next_multiple_of(64));
            }
            for (key, slot) in &model {
                prop_assert_eq!((slots.key(*slot), *slots.value(*slot)), (key, key.0));
            }
            let kept: BTreeSet<Key> = slots.iter().map(|(_, key, _)| *key).collect();
            prop_assert!(kept.iter().eq(model.keys()));
        }
    }
}
