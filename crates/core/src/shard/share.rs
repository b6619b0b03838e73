//! Which keys a member owns.

use std::{fmt, sync::Arc};

/// Into how many equal parts the space of hashes is cut. All members must have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    bits: u32,
}

/// Why a number of slots is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSlots(u32);

/// A member, as far as it matters for who owns what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    name: String,
    hash: u64,
}

/// What a member owns: of the members that it counts, those slots for which it has the greatest score.
#[derive(Clone, PartialEq, Eq)]
pub struct Share {
    slots: Slots,
    view: u64,
    /// Sorted by name.
    members: Arc<[Member]>,
    own: usize,
}

/// A range of hashes: from `start` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first hash of it.
    pub start: u64,
    /// The last hash of it.
    pub last: u64,
}

/// The FNV-1a hash of a text with 64 bits, as Kubernetes computes it of an object's uid for `shardSelector`.
#[must_use]
pub const fn hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash ^= bytes[at] as u64;
        hash = hash.wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Spreads each bit of `z` over all bits: the last step of `SplitMix64`.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

// === impl Slots ===

impl Slots {
    /// `count` slots, which must be a power of two of at most 2^20.
    ///
    /// # Errors
    ///
    /// If it is another number.
    pub const fn new(count: u32) -> Result<Self, InvalidSlots> {
        if !count.is_power_of_two() || count > 1 << 20 {
            return Err(InvalidSlots(count));
        }
        let bits = count.trailing_zeros();
        Ok(Self { bits })
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        1 << self.bits
    }

    /// The number of the slot that a hash lies in.
    #[must_use]
    pub const fn of(self, hash: u64) -> u64 {
        // All bits are shifted out if there is one slot.
        match hash.checked_shr(u64::BITS - self.bits) {
            Some(slot) => slot,
            None => 0,
        }
    }

    /// The hashes that lie in a slot.
    #[must_use]
    pub const fn range(self, slot: u64) -> Range {
        let size = u64::MAX >> self.bits;
        let start = match slot.checked_shl(u64::BITS - self.bits) {
            Some(start) => start,
            None => 0,
        };
        Range {
            start,
            last: start | size,
        }
    }
}

/// 1,024 slots.
impl Default for Slots {
    fn default() -> Self {
        Self { bits: 10 }
    }
}

// === impl InvalidSlots ===

impl fmt::Display for InvalidSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is no number of slots: use a power of two from 1 to 1048576",
            self.0
        )
    }
}

impl std::error::Error for InvalidSlots {}

// === impl Member ===

impl Member {
    /// The member of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let hash = hash(&name);
        Self { name, hash }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much this member is to own a slot.
    #[must_use]
    pub const fn score(&self, slot: u64) -> u64 {
        let slot = slot.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mix(self.hash ^ slot)
    }
}

// === impl Share ===

impl Share {
    /// What `own` owns if these are the others. Shares of one member are told apart by `view`.
    #[must_use]
    pub fn new<'a>(
        slots: Slots,
        view: u64,
        own: &str,
        others: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut members: Vec<_> = others.into_iter().map(Member::new).collect();
        members.push(Member::new(own));
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members.dedup();
        let own = members.iter().position(|member| member.name == own);
        Self {
            slots,
            view,
            members: members.into(),
            own: own.unwrap_or_default(),
        }
    }

    /// Which share of this member it is. Later ones have greater numbers.
    #[must_use]
    pub const fn view(&self) -> u64 {
        self.view
    }

    /// All members that are counted, this one included, by name.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member whose share it is.
    #[must_use]
    pub fn own(&self) -> &Member {
        &self.members[self.own]
    }

    /// Whether this member owns what has this [`hash`].
    #[must_use]
    pub fn owns(&self, hash: u64) -> bool {
        self.owns_slot(self.slots.of(hash))
    }

    /// Who owns what has this [`hash`], among the members that are counted.
    #[must_use]
    pub fn owner(&self, hash: u64) -> &Member {
        &self.members[self.owner_of_slot(self.slots.of(hash))]
    }

    /// The hashes that this member owns, from the lowest to the highest. Adjacent slots are one range.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for slot in (0..u64::from(self.slots.count())).filter(|slot| self.owns_slot(*slot)) {
            let Range { start, last } = self.slots.range(slot);
            match ranges.last_mut() {
                Some(before) if before.last.checked_add(1) == Some(start) => before.last = last,
                Some(_) | None => ranges.push(Range { start, last }),
            }
        }
        ranges
    }

    fn owns_slot(&self, slot: u64) -> bool {
        self.owner_of_slot(slot) == self.own
    }

    fn owner_of_slot(&self, slot: u64) -> usize {
        // Of equal scores the last one counts, which has the greatest name.
        let scores = self.members.iter().map(|member| member.score(slot));
        let greatest = scores.enumerate().max_by_key(|(_, score)| *score);
        greatest.map_or(self.own, |(at, _)| at)
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.iter().map(Member::name);
        f.debug_struct("Share")
            .field("own", &self.own().name)
            .field("view", &self.view)
            .field("members", &members.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
