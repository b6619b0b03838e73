//! Sharding: which of several members runs a key, from when, and until when.
//!
//! Several replicas of a program, the members, divide keys among each other. Each member holds a lease of its own,
//! which only it renews, and lists the leases of all others. A [`Machine`] in each member decides when to write and
//! when to list, and what follows: its [`Share`], which says of each key whether this member runs it. The machine
//! never sees an object, a clock or a connection.
//!
//! # Who owns a key
//!
//! A key is hashed to 64 bits with [FNV-1a](hash), and the space of hashes is cut into [`Slots`] of equal size. Of each
//! slot, the owner is the member with the greatest score for it (rendezvous hashing, or "highest random weight").
//! The score is a fixed function of the member's name and of the slot's number, so it is the same on each machine and
//! in each version of this crate:
//!
//! ```text
//! score(name, slot) = mix(fnv1a(name) xor (slot + 1) * 0x9e3779b97f4a7c15)
//! mix(z): z = (z xor z >> 30) * 0xbf58476d1ce4e5b9
//!         z = (z xor z >> 27) * 0x94d049bb133111eb
//!         z xor z >> 31
//! ```
//!
//! All arithmetic is modulo 2^64, and of two members with equal scores the one with the greater name wins. When a
//! member joins, slots move to it only, and when one is gone, only its own slots move.
//!
//! Slots are ranges of hashes because a Kubernetes server selects objects by ranges of the FNV-1a hash of their uid
//! (`shardSelector`, KEP-5866). Rendezvous hashing of each single key would divide more evenly, and no server could
//! select by it. How uneven slots make it: with `n` members and `s` slots, the standard deviation of a member's share
//! is about `sqrt(n / s)` of it. With 1,024 slots that is 5 % for 3 members, and 10 % for 10 members.
//!
//! # The hand-over
//!
//! There is no common view that all members would have to agree on, and no leader. What is needed holds between each
//! pair of members. Let `A` and `B` be two of them:
//!
//! - *If `A` counts `B` as a member and `B` counts `A`, then they never own the same slot*, since both compare
//!   the same two scores. It does not matter whom else they count.
//! - So the only danger is a member that does not know another one yet. When a member joins, it writes its lease first,
//!   and lists all leases after that. It knows everybody who has written before from then on. It then runs nothing until
//!   each member of this list *knows it*, or is gone: [`Record::knows`] in the lease of the other says so. Of two members,
//!   the one that wrote later has seen the other in its first list. So for each pair at least one waits for the other.
//! - A member that sees a new one counts it at once, starts nothing any more that is not its own under the new count,
//!   and lets end or cancels what still runs of it. Only [when that is done](Input::Released) it writes that it knows the new
//!   one.
//! - A member that leaves stops all it runs and then writes that its lease is released. The others take over at once.
//!
//! # When a member is gone
//!
//! - A member runs something only until [`Config::renew_deadline`] after it sent its last write that was accepted, and
//!   equally long after it sent its last list that was answered. If neither comes, its *epoch* ends: it stops all it runs,
//!   and what it may have been granted counts no more. It then joins anew, with the next epoch, as if it were another member.
//!   An answer that comes after the end of an epoch does not revive it.
//! - Another member counts it as gone when its lease has not changed for the lease's duration. The time counts on the
//!   observer's own clock from when *its list showed* this version of the lease, and the list that shows the same version must
//!   have been *sent* after that time. So a member whose lists are delayed or fail takes nobody for gone.
//! - The first of these times is over before the second. The write that made the version was sent before the list that first
//!   showed it was answered, so its epoch ends within the renew deadline from then, which is shorter than the
//!   duration. A renewal that is accepted later than the second list cannot have been answered before the epoch's end.
//! - A lease that is missing counts as a version of its own. Whoever held it does not know yet. So members clean up in two
//!   steps: one of them writes into the lease of a member that is gone that it is released, which the server refuses if the
//!   lease was renewed after all, and deletes it some time later.
//!
//! # Guarantees
//!
//! - At no instant do two members run a key of the same slot, as long as their clocks run equally fast. Messages may be
//!   delayed, lost or answered late, members may be paused at any point, and clocks may show different times.
//! - When members have come, gone or been cut off, and from then on requests are answered, each slot is run by a member
//!   within [`Config::duration`] plus two [`Config::retry`], the time that two requests take, and the time that
//!   members need to stop what they run.
//!
//! # Assumptions
//!
//! - A name belongs to one life of one member. Two that share it would both run the same keys.
//! - Nobody but members takes leases away. If a person deletes the lease of a member that lives, a member that joins just
//!   then does not know of it until the other notices, which is at its next write.
//! - All members have the same number of slots. A member that sees another number runs nothing: [`Machine::obstacle`].
//!
//! # What it costs
//!
//! Each member makes two requests for each [`Config::retry`]: it writes its own lease, of about 700 bytes, and lists all. With
//! `n` members and a retry of `r` seconds these are `2 n / r` requests and about `700 n² / r` bytes for each second.
//! With the defaults that is 3 requests and, with the writes, 5 kB a second for 3 members. With 1,000 members it is only bearable with longer
//! times: with a retry of 20 s these are 100 requests and 35 MB a second.

mod machine;
mod membership;
mod other;
mod share;

pub use self::{
    machine::Machine,
    share::{InvalidSlots, Member, Range, Share, Slots, hash},
};
pub use crate::lease::{Config, InvalidConfig};

use crate::time::Time;
use std::time::Duration;

/// One life of a member: from when it has joined until it is fenced or leaves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// The member's name.
    pub name: String,
    /// How often it has joined.
    pub epoch: u32,
}

/// What is written in the lease of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The member's name; empty if it has released the lease.
    pub name: String,
    /// How often it has joined.
    pub epoch: u32,
    /// How long the lease is valid after it was written, if it says so.
    pub duration: Option<Duration>,
    /// How many slots there are, if it says so.
    pub slots: Option<u32>,
    /// Whether it runs keys, so that it waits for nobody to know it.
    pub ready: bool,
    /// The members that wait, for which this one has stopped what they own.
    pub knows: Vec<Life>,
}

/// A lease that was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of the lease, which is not the member's.
    pub lease: String,
    /// Its version.
    pub version: String,
    /// What it says.
    pub record: Record,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// List the leases of all members, in the state in which they are when the server gets the request.
    List {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
    },
    /// Write the own lease.
    Write {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
        /// The version that the lease must still have; `None` means that it must not exist.
        version: Option<String>,
        /// What it is to say.
        record: Record,
    },
    /// Write into the lease of a member that is gone that it is released, so that whoever sees it need not wait.
    Bury {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
        /// The name of the lease.
        lease: String,
        /// The version that it must still have.
        version: String,
        /// What it is to say.
        record: Record,
    },
    /// Delete a lease that was released some time ago.
    Remove {
        /// Which request this is.
        attempt: u64,
        /// When to give up and say [`Answer::Failed`].
        deadline: Time,
        /// The name of the lease.
        lease: String,
        /// The version that it must still have.
        version: String,
    },
    /// Nothing before this moment.
    Sleep {
        /// When to say [`Input::Awake`].
        until: Time,
    },
    /// Nothing any more.
    End,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The moment has come that the machine slept until, or that [`Machine::runs_until`] names.
    Awake,
    /// A request was answered.
    Answered {
        /// Which one.
        attempt: u64,
        /// What came of it.
        answer: Answer,
    },
    /// No key runs any more that does not belong to the share with this [view](Share::view).
    Released {
        /// The view.
        view: u64,
    },
    /// Nothing runs any more. It is said after the epoch has ended, and after [`Stop`](Self::Stop).
    Idle,
    /// The program ends. The lease is renewed until [`Input::Idle`], then released.
    Stop,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These are the leases, with the own one if it exists.
    Listed(Vec<Found>),
    /// The lease was written.
    Written {
        /// Its version now.
        version: String,
    },
    /// The lease was deleted, or is no more.
    Removed,
    /// The lease was not written or deleted, since it has another version or exists already.
    Conflict,
    /// There is no lease to be written.
    Missing,
    /// Nobody knows: the server did not answer, or answered with an error.
    Failed,
}

/// What an input led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// This member runs keys, and did not before.
    Runs,
    /// The [share](Machine::share) is another one. What runs outside of it must be brought to an end, and then the
    /// machine must be told [`Input::Released`].
    Moved,
    /// This member runs nothing any more. All that it runs must be stopped at once, and then the machine must be told
    /// [`Input::Idle`].
    Lost(Loss),
}

/// Why a member runs nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It could not renew its lease in time.
    NotRenewed,
    /// It could not list the leases of others in time.
    NotListed,
    /// Its lease was taken away.
    Deleted,
    /// The members do not agree in how many slots there are.
    SlotsDiffer,
    /// It was told to stop, and nothing runs any more.
    Released,
}

#[cfg(test)]
mod tests;
