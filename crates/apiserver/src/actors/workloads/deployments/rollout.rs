//! How many replicas each set of a deployment gets next.

/// How many pods a deployment wants, and how many there may be more or fewer on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) wanted: i64,
    surge: i64,
    unavailable: i64,
}

/// How many replicas a set is to have, and how many of them are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) replicas: i64,
    pub(super) available: i64,
}

/// A set that is to be scaled: the new one, or one of the old ones by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    New(i64),
    Old(usize, i64),
}

// === impl Limits ===

impl Limits {
    /// If neither more nor fewer are allowed, there may be one fewer: otherwise nothing could ever happen.
    pub(super) fn new(wanted: i64, surge: i64, unavailable: i64) -> Self {
        let stuck = surge == 0 && unavailable == 0;
        Self {
            wanted,
            surge,
            unavailable: if stuck { 1 } else { unavailable.min(wanted) },
        }
    }

    /// The most replicas that there may be.
    pub(super) fn most(self) -> i64 {
        if self.wanted == 0 {
            return 0;
        }
        self.wanted + self.surge
    }

    /// How many may be missing.
    pub(super) fn spare(self) -> i64 {
        self.unavailable
    }

    /// The fewest that are available.
    fn least(self) -> i64 {
        self.wanted - self.unavailable
    }

    /// To what size the new set can grow now.
    pub(super) fn grow(self, new: i64, old: &[Part]) -> i64 {
        let all: i64 = new + old.iter().map(|part| part.replicas).sum::<i64>();
        let room = (self.wanted + self.surge - all).max(0);
        new + room.min(self.wanted - new).max(0)
    }

    /// What is scaled next: the new set as far as there is room, and otherwise old ones as far as enough stay available.
    pub(super) fn next(self, new: Part, old: &[Part]) -> Vec<Scale> {
        if new.replicas > self.wanted {
            return vec![Scale::New(self.wanted)];
        }
        let grown = self.grow(new.replicas, old);
        if grown > new.replicas {
            return vec![Scale::New(grown)];
        }
        self.shrink(new, old)
    }

    fn shrink(self, new: Part, old: &[Part]) -> Vec<Scale> {
        let all: i64 = new.replicas + old.iter().map(|part| part.replicas).sum::<i64>();
        let pending = new.replicas - new.available;
        let spare = all - self.least() - pending;
        let mut sizes: Vec<i64> = old.iter().map(|part| part.replicas).collect();
        // Those that are of no use go first.
        let mut left = spare.max(0);
        for (size, part) in sizes.iter_mut().zip(old) {
            let useless = (*size - part.available).max(0).min(left);
            *size -= useless;
            left -= useless;
        }
        let available: i64 = new.available + old.iter().map(|part| part.available).sum::<i64>();
        let mut left = left.min((available - self.least()).max(0));
        for size in &mut sizes {
            let given_up = left.min(*size);
            *size -= given_up;
            left -= given_up;
        }
        let changed = sizes.iter().zip(old).enumerate();
        let changed = changed.filter(|(_, (size, part))| **size != part.replicas);
        changed
            .map(|(index, (size, _))| Scale::Old(index, *size))
            .collect()
    }

    /// The sizes of several sets of which none is the only one, after the number that is wanted has changed. With each
    /// the most replicas that its deployment could have had when it was scaled last.
    pub(super) fn in_proportion(self, parts: &[(Part, Option<i64>)]) -> Vec<i64> {
        let most = self.most();
        let all: i64 = parts.iter().map(|(part, _)| part.replicas).sum();
        let to_add = most - all;
        let mut order: Vec<usize> = (0..parts.len()).collect();
        // The largest first. Of equal ones the newest grows and the oldest shrinks; the last is the newest.
        order.sort_by_key(|index| {
            let place = i64::try_from(*index).unwrap_or(i64::MAX);
            let tie = if to_add > 0 { -place } else { place };
            (-parts[*index].0.replicas, tie)
        });
        let mut added = 0;
        let mut sizes: Vec<i64> = parts.iter().map(|(part, _)| part.replicas).collect();
        for index in &order {
            let (part, max) = parts[*index];
            let share = if most == 0 {
                -part.replicas
            } else {
                let max = max.filter(|max| *max > 0).unwrap_or(all.max(1));
                rounded(part.replicas * most, max) - part.replicas
            };
            let left = to_add - added;
            let share = if to_add > 0 {
                share.max(0).min(left)
            } else {
                share.min(0).max(left)
            };
            sizes[*index] += share;
            added += share;
        }
        if let Some(first) = order.first() {
            sizes[*first] = (sizes[*first] + to_add - added).max(0);
        }
        sizes
    }
}

/// The quotient of two numbers that are not negative, rounded to the nearest one.
fn rounded(number: i64, by: i64) -> i64 {
    (2 * number + by) / (2 * by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(list: &[(i64, i64)]) -> Vec<Part> {
        let part = |(replicas, available): &(i64, i64)| Part {
            replicas: *replicas,
            available: *available,
        };
        list.iter().map(part).collect()
    }

    #[track_caller]
    fn check(limits: (i64, i64, i64), new: (i64, i64), old: &[(i64, i64)], expected: &[Scale]) {
        let (wanted, surge, unavailable) = limits;
        let found = Limits::new(wanted, surge, unavailable).next(parts(&[new])[0], &parts(old));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_next_step() {
        use Scale::{New, Old};
        check((4, 1, 1), (0, 0), &[(4, 4)], &[New(1)]);
        check((4, 1, 1), (1, 0), &[(4, 4)], &[Old(0, 3)]);
        check((4, 1, 1), (1, 0), &[(3, 3)], &[New(2)]);
        check((4, 1, 1), (2, 0), &[(3, 3)], &[]);
        check((4, 1, 1), (2, 2), &[(3, 3)], &[Old(0, 1)]);
        check((4, 0, 0), (0, 0), &[(4, 4)], &[Old(0, 3)]);
        check((4, 4, 0), (0, 0), &[(4, 4)], &[New(4)]);
        check((4, 4, 0), (4, 0), &[(4, 4)], &[]);
        check((4, 4, 0), (4, 4), &[(4, 4)], &[Old(0, 0)]);
        // What is of no use goes first, from whichever set.
        check((4, 1, 0), (1, 0), &[(4, 4), (1, 0)], &[Old(1, 0)]);
        check((2, 1, 0), (3, 3), &[], &[New(2)]);
        check((0, 1, 1), (0, 0), &[(2, 2)], &[Old(0, 0)]);
    }

    #[track_caller]
    fn proportion(limits: (i64, i64), sets: &[(i64, i64)], expected: &[i64]) {
        let limits = Limits::new(limits.0, limits.1, 0);
        let parts: Vec<(Part, Option<i64>)> = sets
            .iter()
            .map(|(replicas, max)| (parts(&[(*replicas, 0)])[0], Some(*max)))
            .collect();
        assert_eq!(limits.in_proportion(&parts), expected);
    }

    #[test]
    fn several_sets_are_scaled_in_proportion() {
        proportion((15, 3), &[(8, 13), (5, 13)], &[11, 7]);
        proportion((5, 3), &[(8, 13), (5, 13)], &[5, 3]);
        proportion((0, 3), &[(8, 13), (5, 13)], &[0, 0]);
        proportion((11, 3), &[(2, 13), (5, 13), (6, 13)], &[2, 5, 7]);
        proportion((20, 5), &[(5, 12), (5, 12)], &[10, 15]);
    }

    /// A small world: sets whose pods become available or stop to be in any order, while the plan is followed.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct World {
        new: (i64, i64),
        old: (i64, i64),
    }

    /// All worlds that can be reached when pods become available or stop to be at any time: the bounds hold in each, and
    /// from each the rollout comes to its end when pods become available.
    #[test]
    fn a_rollout_keeps_its_bounds_and_ends() {
        let mut worlds = 0;
        for wanted in 0..=4 {
            for surge in 0..=3 {
                for unavailable in 0..=3 {
                    let limits = Limits::new(wanted, surge, unavailable);
                    worlds += explore(limits);
                }
            }
        }
        assert!(worlds > 1_000, "only {worlds} worlds were seen");
    }

    fn explore(limits: Limits) -> usize {
        let mut seen = std::collections::BTreeSet::new();
        let start = World {
            new: (0, 0),
            old: (limits.wanted, limits.wanted),
        };
        let mut open = vec![start];
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            let total = world.new.0 + world.old.0;
            assert!(
                total <= limits.wanted + limits.surge,
                "{limits:?}: {world:?}"
            );
            assert!(ends(limits, world.clone()), "{limits:?}: {world:?}");
            let after = follow(limits, &world);
            open.extend(after);
            for change in [1, -1] {
                let mut changed = [world.clone(), world.clone()];
                changed[0].new.1 += change;
                changed[1].old.1 += change;
                let possible = |(all, available): (i64, i64)| (0..=all).contains(&available);
                let possible = |world: &World| possible(world.new) && possible(world.old);
                open.extend(changed.into_iter().filter(possible));
            }
        }
        seen.len()
    }

    /// The world after the next step of the plan. What goes is what is of no use, then what is available.
    fn follow(limits: Limits, world: &World) -> Option<World> {
        let old = parts(&[world.old]);
        let scale = limits.next(parts(&[world.new])[0], &old);
        let mut next = world.clone();
        match scale[..] {
            [] => return None,
            [Scale::New(replicas)] => next.new.0 = replicas,
            [Scale::Old(0, replicas)] => {
                next.old = (replicas, next.old.1.min(replicas));
                let available = |world: &World| world.new.1 + world.old.1;
                let least = limits.least().min(available(world));
                assert!(
                    available(&next) >= least,
                    "{limits:?}: {world:?} -> {next:?}"
                );
            }
            _ => panic!("{scale:?}"),
        }
        Some(next)
    }

    /// Whether the rollout ends when all pods become available as soon as they can.
    fn ends(limits: Limits, mut world: World) -> bool {
        for _ in 0..100 {
            world.new.1 = world.new.0;
            match follow(limits, &world) {
                Some(next) => world = next,
                None => return world.new.0 == limits.wanted && world.old.0 == 0,
            }
        }
        false
    }
}
