//! The hash of a key.

use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// A hash of a key, which saves hashing it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed(u32);

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
    pub(super) fn spread(self) -> u64 {
        u64::from(self.0) | u64::from(self.0) << 32
    }

    /// Bits that a shard does not look at as long as there are not too many shards.
    pub(super) fn shard_bits(self) -> usize {
        self.0.rotate_right(12) as usize
    }
}
