//! A vector that never moves what is in it.

use std::ops::{Index, IndexMut};

/// How many elements lie side by side.
const SEGMENT: usize = 1024;

/// A vector in segments. When it grows, nothing is copied but the first few elements, so that no
/// single push takes long, however many elements there are.
#[derive(Clone, Debug)]
pub(super) struct Segmented<T> {
    /// All are full but the last one in use. Behind it there is at most one, which is empty.
    segments: Vec<Vec<T>>,
    len: usize,
}

impl<T> Segmented<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, value: T) {
        let segment = self.len / SEGMENT;
        if segment == self.segments.len() {
            // Few elements take little memory.
            let capacity = if segment == 0 { 0 } else { SEGMENT };
            self.segments.push(Vec::with_capacity(capacity));
        }
        self.segments[segment].push(value);
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        self.len = last;
        let segment = last / SEGMENT;
        self.segments.truncate(segment + 2);
        self.segments[segment].pop()
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.segments.first()?.first()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().flatten()
    }
}

impl<T> Index<usize> for Segmented<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.segments[index / SEGMENT][index % SEGMENT]
    }
}

impl<T> IndexMut<usize> for Segmented<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.segments[index / SEGMENT][index % SEGMENT]
    }
}

impl<T> Default for Segmented<T> {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SEGMENT, Segmented};

    #[test]
    fn behaves_like_a_vector_and_moves_nothing() {
        let (mut segmented, mut model) = (Segmented::default(), Vec::new());
        let mut places = Vec::new();
        for round in 0..4 {
            for value in 0..2 * SEGMENT + 7 {
                segmented.push(value + round);
                model.push(value + round);
            }
            for _ in 0..SEGMENT - 3 {
                assert_eq!(segmented.pop(), model.pop());
            }
            assert!(segmented.iter().eq(&model));
            assert_eq!(segmented.len(), model.len());
            assert_eq!(segmented.first(), model.first());
            let now: Vec<_> = (SEGMENT..segmented.len())
                .map(|index| std::ptr::from_ref(&segmented[index]))
                .collect();
            assert!(now.starts_with(&places));
            places = now;
        }
        while segmented.pop().is_some() {}
        assert_eq!(segmented.segments.len(), 2, "memory is given back");
    }
}
