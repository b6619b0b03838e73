use std::rc::Rc;

use serde_json::Value as Json;

use super::equal::{equal, same};
use super::map::Key;
use super::{Outcome, Value};
use crate::cel::fault::Fault;

/// A list.
#[derive(Debug, Clone)]
pub(crate) struct List<'a> {
    elements: Elements<'a>,
    order: Order<'a>,
}

#[derive(Debug, Clone)]
enum Elements<'a> {
    Kept {
        elements: &'a [Json],
        schema: &'a Json,
    },
    Made(Rc<Vec<Value<'a>>>),
}

/// No longer list is made of two: to look at all of it would take too many steps.
const MAX_LENGTH: usize = 1_000_000;

/// What the places of elements mean.
#[derive(Debug, Clone, Copy)]
enum Order<'a> {
    Places,
    /// Each element is there once, wherever it stands.
    Set,
    /// The same for elements with the same values of these members.
    Map(&'a Json),
}

// === impl List ===

impl<'a> List<'a> {
    pub(super) fn of(elements: &'a [Json], schema: &'a Json) -> Self {
        let order = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Order::Set,
            Some("map") => Order::Map(&schema["x-kubernetes-list-map-keys"]),
            _ => Order::Places,
        };
        Self {
            elements: Elements::Kept {
                elements,
                schema: &schema["items"],
            },
            order,
        }
    }

    pub(crate) fn made(elements: Vec<Value<'a>>) -> Self {
        Self {
            elements: Elements::Made(Rc::new(elements)),
            order: Order::Places,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.elements {
            Elements::Kept { elements, .. } => elements.len(),
            Elements::Made(elements) => elements.len(),
        }
    }

    /// An element. None if there are not so many.
    pub(crate) fn get(&self, index: usize) -> Option<Outcome<'a>> {
        match &self.elements {
            Elements::Kept { elements, schema } => {
                Some(Value::of_part(elements.get(index)?, schema))
            }
            Elements::Made(elements) => Some(Ok(elements.get(index)?.clone())),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Outcome<'a>> + use<'_, 'a> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// # Errors
    ///
    /// An element has no value.
    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, Fault> {
        self.iter().collect()
    }

    /// Adds elements. A list that nobody else has grows in place.
    ///
    /// # Errors
    ///
    /// An element has no value.
    pub(crate) fn plus(self, other: &Self) -> Result<Self, Fault> {
        let order = self.order;
        if self.len() + other.len() > MAX_LENGTH {
            return Err(Fault::Cost);
        }
        let added = other.to_vec()?;
        let mut elements = match self.elements {
            Elements::Made(elements) => {
                Rc::try_unwrap(elements).unwrap_or_else(|shared| shared.to_vec())
            }
            Elements::Kept { .. } => self.to_vec()?,
        };
        match order {
            Order::Places => elements.extend(added),
            Order::Set => {
                for element in added {
                    if !elements.iter().any(|known| equal(known, &element)) {
                        elements.push(element);
                    }
                }
            }
            Order::Map(keys) => {
                for element in added {
                    let key = identity(&element, keys);
                    let known = elements
                        .iter_mut()
                        .find(|known| key.is_some() && identity(known, keys) == key);
                    match known {
                        Some(known) => *known = element,
                        None => elements.push(element),
                    }
                }
            }
        }
        Ok(Self {
            elements: Elements::Made(Rc::new(elements)),
            order,
        })
    }

    pub(super) fn equals(&self, other: &Self, left: &mut u32) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let (Ok(own), Ok(others)) = (self.to_vec(), other.to_vec()) else {
            return false;
        };
        match self.order {
            Order::Places => own
                .iter()
                .zip(&others)
                .all(|(own, other)| same(own, other, left)),
            Order::Set => own
                .iter()
                .all(|own| others.iter().any(|other| same(own, other, left))),
            Order::Map(keys) => own.iter().all(|own| {
                let key = identity(own, keys);
                let mut others = others.iter();
                others
                    .find(|other| identity(other, keys) == key)
                    .is_some_and(|other| same(own, other, left))
            }),
        }
    }
}

/// The values by which an element of a list is told apart.
fn identity(element: &Value<'_>, keys: &Json) -> Option<Vec<Option<Key>>> {
    let Value::Object(object) = element else {
        return None;
    };
    let keys = keys.as_array()?.iter().filter_map(Json::as_str);
    Some(
        keys.map(|key| match object.member(key) {
            Some(Ok(value)) => Key::of(&value),
            _ => None,
        })
        .collect(),
    )
}
