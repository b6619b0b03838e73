//! How evenly keys are divided, and how many of them move.

use super::super::{Member, Share, hash};
use super::*;

/// A million keys take some minutes without optimization, so there are fewer of them unless somebody asks.
fn keys() -> u64 {
    let asked = std::env::var("HOMEOSTAT_KEYS").ok();
    asked.and_then(|keys| keys.parse().ok()).unwrap_or(20_000)
}

/// What is measured when the last of so many members joins.
#[derive(Debug)]
struct Measured {
    /// How many times the average the fullest and the emptiest member have.
    most: f64,
    least: f64,
    /// How many keys the new member gets, as a part of what it would get in an even world.
    moved: f64,
}

/// Divides what has these hashes among members, who join one after the other.
fn measure(slots: Slots, hashes: &[u64], sizes: &[usize]) -> Vec<Measured> {
    let mut best: Vec<(u64, usize)> = vec![(0, 0); hashes.len()];
    let mut measured = Vec::new();
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let all = sizes.last().copied().unwrap_or_default();
    for index in 0..all {
        let member = Member::new(format!("homeostat-7d9c5b8f6-{index:04}"));
        let mut moved = 0;
        for (hash, best) in hashes.iter().zip(&mut best) {
            let score = member.score(slots.of(*hash));
            if score > best.0 || index == 0 {
                *best = (score, index);
                moved += 1;
            }
        }
        let members = index + 1;
        if sizes.contains(&members) {
            let mut sizes = vec![0_usize; members];
            for (_, owner) in &best {
                sizes[*owner] += 1;
            }
            let even = count(hashes.len()) / count(members);
            let most = sizes.iter().max().copied().unwrap_or_default();
            let least = sizes.iter().min().copied().unwrap_or_default();
            measured.push(Measured {
                most: count(most) / even,
                least: count(least) / even,
                moved: count(moved) / even,
            });
        }
    }
    measured
}

fn hashes(keys: u64) -> Vec<u64> {
    // As uids look like.
    let uid = |key: u64| {
        let (a, b) = (hash(&key.to_string()), hash(&format!("{key} again")));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    };
    (0..keys).map(|key| hash(&uid(key))).collect()
}

#[test]
fn a_join_moves_little_more_than_its_share() {
    let keys = hashes(keys());
    // Where each key is nearly a slot of its own, the numbers are those of rendezvous hashing itself.
    let fine = Slots::new(1 << 20).expect("a power of two");
    let sizes: &[usize] = if keys.len() >= 1_000_000 {
        &[2, 3, 10, 30, 100, 300, 1000]
    } else {
        &[2, 3, 10]
    };
    for (size, measured) in sizes.iter().zip(measure(fine, &keys, sizes)) {
        println!("{size} members, 2^20 slots: {measured:.3?}");
        assert!(measured.moved <= 1.1, "{size}: {measured:?}");
    }
    for (size, measured) in sizes.iter().zip(measure(Slots::default(), &keys, sizes)) {
        println!("{size} members, 1024 slots: {measured:.3?}");
    }
}

#[test]
fn only_the_keys_of_the_new_member_move() {
    let names: Vec<String> = (0..6).map(|index| format!("member-{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for size in 1..names.len() {
        let before = Share::new(Slots::default(), 1, names[0], names[..size].iter().copied());
        let after = Share::new(
            Slots::default(),
            2,
            names[0],
            names[..=size].iter().copied(),
        );
        let mut moved = 0_u32;
        for slot in 0..1024_u64 {
            let (from, to) = (before.owner(slot << 54), after.owner(slot << 54));
            if from != to {
                moved += 1;
                assert_eq!(to.name(), names[size]);
            }
        }
        // Five standard deviations of a random choice.
        let even = 1024.0 / f64::from(u32::try_from(size + 1).unwrap_or(1));
        let moved = f64::from(moved);
        assert!(
            (moved - even).abs() < 5.0 * even.sqrt(),
            "{moved} of {even}"
        );
    }
}

#[test]
fn three_members_have_about_a_third_each() {
    let keys = hashes(20_000);
    let measured = measure(Slots::default(), &keys, &[3]);
    assert!(measured[0].most < 1.2, "{measured:?}");
    assert!(measured[0].least > 0.8, "{measured:?}");
}
