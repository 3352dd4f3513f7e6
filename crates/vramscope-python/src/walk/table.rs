//! The numbers of objects, by their addresses.

use super::nodes::Object;

/// A hash table of numbers. An object's address is where the number says, so an entry has 4 bytes.
#[derive(Default)]
pub(super) struct Table {
    /// A number, or `FREE`.
    slots: Vec<u32>,
    filled: u32,
}

const FREE: u32 = u32::MAX;
const FIRST_SLOTS: usize = 1 << 16;

impl Table {
    /// The number of an object. One that is not known gets `next`. `objects` has the object of each
    /// number that was given.
    pub(super) fn insert(&mut self, object: Object, next: u32, objects: &[Object]) -> u32 {
        if (self.filled as usize + 1) * 3 > self.slots.len() * 2 {
            self.grow(objects);
        }
        let mask = self.slots.len() - 1;
        let mut at = place(object) & mask;
        loop {
            match self.slots[at] {
                FREE => {
                    self.slots[at] = next;
                    self.filled += 1;
                    return next;
                }
                number if objects[number as usize] == object => return number,
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.filled
    }

    fn grow(&mut self, objects: &[Object]) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        let before = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for number in before.into_iter().filter(|&number| number != FREE) {
            let mut at = place(objects[number as usize]) & (slots - 1);
            while self.slots[at] != FREE {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = number;
        }
    }
}

/// Where an address belongs. Objects lie 16 bytes apart at least.
fn place(object: Object) -> usize {
    let mixed = (object as usize as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 20) as usize
}
