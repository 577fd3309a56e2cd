//! Numbered slots in chunks that a view shares until they change.
//!
//! A view copies one pointer a chunk. The first change to a chunk after that copies the chunk, and nothing else: so a
//! snapshot of a million leases never holds up the entry that is applied meanwhile.
//!
//! A slot number is a matter of one replica: it depends on what was loaded and freed when. It must never decide
//! anything that replicas have to agree on.

use std::sync::Arc;

/// Slots in one chunk: a copy costs some microseconds, and a view of a million slots some 16,000 pointers.
const CHUNK_SLOTS: usize = 64;

/// The number of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot(u32);

impl Slot {
    /// Below every other slot, for the start of a range.
    pub(super) const FIRST: Self = Self(0);

    pub(super) const fn from_index(index: u32) -> Self {
        Self(index)
    }

    const fn place(self) -> (usize, usize) {
        let index = self.0 as usize;
        (index.wrapping_div(CHUNK_SLOTS), index.wrapping_rem(CHUNK_SLOTS))
    }
}

/// The slots.
#[derive(Debug, Clone)]
pub(super) struct Slab<T> {
    chunks: Vec<Arc<[Option<T>]>>,
    free: Vec<Slot>,
    used: usize,
}

/// The slots as they were when the view was taken.
#[derive(Debug, Clone)]
pub(super) struct SlabView<T> {
    chunks: Vec<Arc<[Option<T>]>>,
}

impl<T: Clone> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.used
    }

    /// The number of slots that exist, used or not: where a scan ends.
    pub(super) fn capacity(&self) -> u32 {
        u32::try_from(self.chunks.len().saturating_mul(CHUNK_SLOTS)).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        let (chunk, at) = slot.place();
        self.chunks.get(chunk)?.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let (chunk, at) = slot.place();
        Arc::make_mut(self.chunks.get_mut(chunk)?).get_mut(at)?.as_mut()
    }

    pub(super) fn insert(&mut self, item: T) -> Slot {
        if self.free.is_empty() {
            self.grow();
        }
        // `grow` left free slots, so the default is never taken.
        let slot = self.free.pop().unwrap_or(Slot::FIRST);
        let (chunk, at) = slot.place();
        if let Some(place) = self
            .chunks
            .get_mut(chunk)
            .and_then(|chunk| Arc::make_mut(chunk).get_mut(at))
        {
            *place = Some(item);
            self.used = self.used.saturating_add(1);
        }
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<T> {
        let (chunk, at) = slot.place();
        let item = Arc::make_mut(self.chunks.get_mut(chunk)?).get_mut(at)?.take()?;
        self.free.push(slot);
        self.used = self.used.saturating_sub(1);
        Some(item)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        iter(&self.chunks)
    }

    pub(super) fn view(&self) -> SlabView<T> {
        SlabView {
            chunks: self.chunks.clone(),
        }
    }

    /// The limits of the machine stay far below 2^32 slots.
    fn grow(&mut self) {
        let first = self.capacity();
        self.chunks
            .push(std::iter::repeat_with(|| None).take(CHUNK_SLOTS).collect());
        let slots = u32::try_from(CHUNK_SLOTS).unwrap_or(0);
        self.free
            .extend((first..first.saturating_add(slots)).rev().map(Slot));
    }
}

impl<T> SlabView<T> {
    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        let (chunk, at) = slot.place();
        self.chunks.get(chunk)?.get(at)?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        iter(&self.chunks)
    }
}

fn iter<T>(chunks: &[Arc<[Option<T>]>]) -> impl Iterator<Item = (Slot, &T)> {
    let places = chunks.iter().flat_map(|chunk| chunk.iter());
    places
        .zip(0_u32..)
        .filter_map(|(place, index)| place.as_ref().map(|item| (Slot(index), item)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_keeps_what_was_there_while_the_slab_goes_on() {
        let mut slab = Slab::new();
        let slots: Vec<Slot> = (0..200).map(|n| slab.insert(n)).collect();
        let view = slab.view();
        *slab.get_mut(slots[3]).unwrap() = 1_000;
        assert_eq!(slab.remove(slots[150]), Some(150));
        assert_eq!(slab.insert(7), slots[150], "a freed slot is used again");
        assert_eq!(slab.len(), 200);
        let seen: Vec<i32> = view.iter().map(|(_, n)| *n).collect();
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_chunk_that_changes_is_copied() {
        let mut slab = Slab::new();
        for n in 0..(3 * CHUNK_SLOTS) {
            slab.insert(n);
        }
        let view = slab.view();
        *slab.get_mut(Slot(0)).unwrap() = 9;
        assert!(!Arc::ptr_eq(&slab.chunks[0], &view.chunks[0]));
        assert!(Arc::ptr_eq(&slab.chunks[1], &view.chunks[1]));
    }

    #[test]
    fn a_slot_that_is_not_there_answers_nothing() {
        let mut slab: Slab<u8> = Slab::new();
        assert_eq!(slab.get(Slot(5)), None);
        assert_eq!(slab.remove(Slot(5)), None);
    }
}
