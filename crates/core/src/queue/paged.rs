//! Values by the number of a slot.

use std::ops::{Index, IndexMut};

/// How many slots lie side by side.
pub(super) const PAGE: u32 = 256;

/// An array by slot, in pages. A page takes memory from the first use of one of its slots until it is
/// [given back](Self::give_back). Nothing is moved when there are more, so no single call takes long.
#[derive(Clone, Debug)]
pub(super) struct Paged<T>(Vec<Vec<T>>);

impl<T> Paged<T> {
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let (page, place) = place(slot);
        self.0.get_mut(page)?.get_mut(place)
    }

    /// The value of `slot`, which is there from now on. `empty` makes it, and what lies before it in its page.
    pub(super) fn reach(&mut self, slot: u32, mut empty: impl FnMut() -> T) -> &mut T {
        let (page, place) = place(slot);
        if page >= self.0.len() {
            self.0.resize_with(page + 1, Vec::new);
        }
        let values = &mut self.0[page];
        // Few slots take little memory.
        if page > 0 && values.capacity() == 0 {
            values.reserve_exact(PAGE as usize);
        }
        while values.len() <= place {
            values.push(empty());
        }
        &mut values[place]
    }

    /// Gives back the memory of a page, none of whose slots is in use.
    pub(super) fn give_back(&mut self, page: u32) {
        if let Some(values) = self.0.get_mut(page as usize) {
            *values = Vec::new();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let firsts = (0_u32..).step_by(PAGE as usize);
        let pages = firsts.zip(&self.0);
        pages.flat_map(|(first, values)| (first..).zip(values))
    }

    /// How many pages take memory.
    #[cfg(test)]
    pub(super) fn pages(&self) -> usize {
        self.0.iter().filter(|page| page.capacity() > 0).count()
    }
}

fn place(slot: u32) -> (usize, usize) {
    ((slot / PAGE) as usize, (slot % PAGE) as usize)
}

impl<T> Index<u32> for Paged<T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        let (page, place) = place(slot);
        &self.0[page][place]
    }
}

impl<T> IndexMut<u32> for Paged<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        let (page, place) = place(slot);
        &mut self.0[page][place]
    }
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Paged};

    #[test]
    fn a_page_is_there_from_its_first_use_until_it_is_given_back() {
        let mut paged = Paged::default();
        *paged.reach(3 * PAGE + 2, || 0) = 7;
        *paged.reach(1, || 0) = 5;
        assert_eq!(paged.pages(), 2);
        assert_eq!((paged[3 * PAGE + 2], paged[3 * PAGE]), (7, 0));
        assert_eq!(paged.get_mut(PAGE), None);
        let all: Vec<_> = paged.iter().filter(|(_, value)| **value > 0).collect();
        assert_eq!(all, [(1, &5), (3 * PAGE + 2, &7)]);
        paged.give_back(3);
        paged.give_back(17);
        assert_eq!(paged.pages(), 1);
        assert_eq!(paged.get_mut(3 * PAGE + 2), None);
        assert_eq!(*paged.reach(3 * PAGE + 2, || 0), 0);
    }
}
