//! A hash table that grows bit by bit.

use super::hashed::Hashed;
use hashbrown::HashTable;

/// How many entries a shard has on average before another one is added.
const SHARD: usize = 2048;

/// Slots by the hash of their key, in shards. When the table is full, one shard is split in two
/// (linear hashing), so that no single insert moves more than some thousand entries, however many
/// there are.
#[derive(Clone, Debug)]
pub(super) struct Table {
    shards: Vec<HashTable<u32>>,
    len: usize,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn find(&self, hash: Hashed, is: impl Fn(u32) -> bool) -> Option<u32> {
        let shard = &self.shards[self.shard(hash)];
        shard.find(hash.spread(), |&slot| is(slot)).copied()
    }

    /// Enters a slot that is not there yet. `hash_of` tells the hashes of others.
    pub(super) fn insert(&mut self, hash: Hashed, slot: u32, hash_of: impl Fn(u32) -> Hashed) {
        if self.len >= self.shards.len() * SHARD {
            self.split(&hash_of);
        }
        let shard = self.shard(hash);
        self.shards[shard].insert_unique(hash.spread(), slot, |&slot| hash_of(slot).spread());
        self.len += 1;
    }

    /// Takes a slot out; false if it is not there.
    pub(super) fn remove(&mut self, hash: Hashed, slot: u32) -> bool {
        let shard = self.shard(hash);
        let found = self.shards[shard].find_entry(hash.spread(), |&other| other == slot);
        let Ok(found) = found else { return false };
        found.remove();
        self.len -= 1;
        true
    }

    /// The shard of a hash: as many of its bits as there are shards for. Those with a number that
    /// has not been split off yet are still in the shard that they will come from.
    fn shard(&self, hash: Hashed) -> usize {
        let wide = self.shards.len().next_power_of_two();
        let shard = hash.shard_bits() & (wide - 1);
        if shard < self.shards.len() {
            shard
        } else {
            shard - wide / 2
        }
    }

    /// Adds a shard, with a half of those entries that another one has.
    fn split(&mut self, hash_of: &impl Fn(u32) -> Hashed) {
        let new = self.shards.len();
        let old = new - (new + 1).next_power_of_two() / 2;
        self.shards.push(HashTable::new());
        let entries = std::mem::take(&mut self.shards[old]);
        for slot in entries {
            let hash = hash_of(slot);
            let shard = self.shard(hash);
            debug_assert!(
                shard == old || shard == new,
                "an entry goes to another shard"
            );
            self.shards[shard].insert_unique(hash.spread(), slot, |&slot| hash_of(slot).spread());
        }
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            shards: vec![HashTable::new()],
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashed, SHARD, Table};

    /// All are found, and no shard becomes large.
    #[test]
    fn grows_evenly() {
        let hashes: Vec<_> = (0..200_000_u32).map(|number| Hashed::of(&number)).collect();
        let hash_of = |slot: u32| hashes[slot as usize];
        let mut table = Table::default();
        for slot in 0..200_000 {
            table.insert(hash_of(slot), slot, hash_of);
        }
        assert_eq!(table.len(), 200_000);
        let largest = table.shards.iter().map(hashbrown::HashTable::len).max();
        assert!(largest.unwrap() < 3 * SHARD, "{largest:?}");
        for slot in 0..200_000 {
            assert_eq!(table.find(hash_of(slot), |other| other == slot), Some(slot));
        }
        for slot in (0..200_000).step_by(3) {
            assert!(table.remove(hash_of(slot), slot));
            assert!(!table.remove(hash_of(slot), slot));
        }
        for slot in 0..200_000 {
            let found = table.find(hash_of(slot), |other| other == slot);
            assert_eq!(found.is_some(), slot % 3 != 0);
        }
    }
}
