//! Where the state of a key is kept.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// Values by key, each in a numbered slot that stays the same until the value is removed.
///
/// The table holds hashes and numbers only. So it is small, it grows without looking at any key,
/// and everything about a key lies in one place. Freed slots are used again, last freed first; the
/// memory stays at its peak.
///
/// The hash has no random seed: the same calls give the same numbers.
#[derive(Clone, Debug)]
pub(super) struct Slots<K, V> {
    table: HashTable<Bucket>,
    entries: Vec<Option<(K, V)>>,
    free: Vec<u32>,
}

/// A hash of a key, which saves hashing it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed(u32);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    hash: Hashed,
    slot: u32,
}

impl<K: Hash + Eq, V> Slots<K, V> {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn find(&self, hash: Hashed, key: &K) -> Option<u32> {
        let is_key = |bucket: &Bucket| self.key(bucket.slot) == key;
        self.table
            .find(hash.spread(), is_key)
            .map(|bucket| bucket.slot)
    }

    /// The slot of `key`, which gets the value `new` if it has none yet.
    pub(super) fn find_or_insert(&mut self, key: K, new: V) -> u32 {
        let hash = Hashed::of(&key);
        let is_key = |bucket: &Bucket| matches!(&self.entries[bucket.slot as usize], Some((other, _)) if *other == key);
        match self
            .table
            .entry(hash.spread(), is_key, |bucket| bucket.hash.spread())
        {
            Entry::Occupied(found) => found.get().slot,
            Entry::Vacant(vacant) => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    u32::try_from(self.entries.len() - 1).expect("four billion keys exceed memory")
                });
                vacant.insert(Bucket { hash, slot });
                self.entries[slot as usize] = Some((key, new));
                slot
            }
        }
    }

    /// Removes the value in `slot`, whose key has this hash.
    pub(super) fn remove(&mut self, hash: Hashed, slot: u32) {
        match self
            .table
            .find_entry(hash.spread(), |bucket| bucket.slot == slot)
        {
            Ok(found) => {
                found.remove();
                self.entries[slot as usize] = None;
                self.free.push(slot);
            }
            Err(_) => debug_assert!(false, "slot {slot} holds nothing with this hash"),
        }
    }

    pub(super) fn key(&self, slot: u32) -> &K {
        &self.slot(slot).0
    }

    pub(super) fn value(&self, slot: u32) -> &V {
        &self.slot(slot).1
    }

    pub(super) fn value_mut(&mut self, slot: u32) -> &mut V {
        let value = self.entries[slot as usize].as_mut();
        &mut value.expect("only slots in use are asked for").1
    }

    /// All keys and values, in the order of slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        let entries = self.entries.iter().zip(0_u32..);
        entries.filter_map(|(entry, slot)| entry.as_ref().map(|(key, value)| (slot, key, value)))
    }

    fn slot(&self, slot: u32) -> &(K, V) {
        self.entries[slot as usize]
            .as_ref()
            .expect("only slots in use are asked for")
    }
}

impl Hashed {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper half is folded in before"
    )]
    pub(super) fn of(key: &impl Hash) -> Self {
        let hash = FxBuildHasher.hash_one(key);
        // The best bits of this hash are its lowest 26 and, further up, those in the middle.
        Self((hash ^ (hash >> 32)) as u32)
    }

    /// The table looks at the lowest and at the highest bits of 64.
    fn spread(self) -> u64 {
        u64::from(self.0) | u64::from(self.0) << 32
    }
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self {
            table: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}
