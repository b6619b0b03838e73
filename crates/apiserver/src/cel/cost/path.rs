//! Where in the schema a value comes from.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Items,
    Values,
    Keys,
    Indices,
    Field(Arc<str>),
}

/// A path, as a server keeps it: paths with the same beginning can share their cells, so that a
/// segment that is added to one of them replaces what another has there. A server estimates with
/// the replaced segments, and accepts or refuses a definition by that.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    cells: Rc<RefCell<Vec<Segment>>>,
    length: usize,
}

// === impl Path ===

impl Path {
    pub(super) fn root(name: Arc<str>) -> Self {
        Self {
            cells: Rc::new(RefCell::new(vec![Segment::Field(name)])),
            length: 1,
        }
    }

    /// The path to a part. A path that fills its cells gets twice as many of its own.
    pub(super) fn join(&self, segment: Segment) -> Self {
        let length = self.length + 1;
        if self.length < self.cells.borrow().len() {
            self.cells.borrow_mut()[self.length] = segment;
            let cells = Rc::clone(&self.cells);
            return Self { cells, length };
        }
        let mut cells = self.segments();
        cells.push(segment);
        cells.resize((self.length * 2).max(1), Segment::Indices);
        let cells = Rc::new(RefCell::new(cells));
        Self { cells, length }
    }

    /// The segments as they are now. None for a value that comes from no place of the schema.
    pub(super) fn segments(&self) -> Vec<Segment> {
        self.cells.borrow()[..self.length].to_vec()
    }
}
