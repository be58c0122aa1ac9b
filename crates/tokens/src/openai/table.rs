//! The expansion of a vocabulary's merges into its table, which `vocabulary.rs` defines. The build script and
//! the crate both include this file: a program contains the table or, with the feature `compact`, the merges.

use super::hash;
use std::ops::Range;

/// The id that means no token.
pub(super) const NONE: u32 = u32::MAX;

/// The number of tokens of one byte. They come first.
const SINGLE: usize = 256;

/// The number of bytes of a token that its slot contains.
const INLINE: usize = 12;

/// The number of bytes of the header.
const HEADER: usize = 64;

/// The number of bytes of the filter.
const FILTER: usize = 1 << (hash::FILTER_BITS - 2);

/// A vocabulary as its merges: the bytes of the first 256 tokens, then the two tokens that each further one
/// is merged from. An id has 24 bits. The low bytes of all left ids come first, because that compresses
/// better.
#[derive(Clone, Copy)]
pub(super) struct Merges<'a> {
    first: &'a [u8],
    pairs: [&'a [u8]; 6],
}

impl<'a> Merges<'a> {
    pub(super) fn new(merges: &'a [u8]) -> Self {
        let (first, rest) = merges.split_at(SINGLE);
        let count = rest.len() / 6;
        Self { first, pairs: std::array::from_fn(|plane| &rest[plane * count..(plane + 1) * count]) }
    }

    /// Returns the number of bytes of the table.
    pub(super) fn table_size(self) -> usize {
        let lengths: usize = self.lengths().iter().map(|length| usize::from(*length)).sum();
        HEADER + 16 * self.count() + FILTER + 16 * self.slot_count() + lengths + hash::STEP
    }

    fn count(self) -> usize {
        SINGLE + self.pairs[0].len()
    }

    fn slot_count(self) -> usize {
        (self.count() * 2).next_power_of_two()
    }

    /// Returns the two tokens that a token is merged from, or `None` for one byte.
    fn pair(self, id: usize) -> Option<[u32; 2]> {
        let at = id.checked_sub(SINGLE)?;
        let number = |planes: &[&[u8]]| u32::from_le_bytes([planes[0][at], planes[1][at], planes[2][at], 0]);
        let (left, right) = self.pairs.split_at(3);
        Some([number(left), number(right)])
    }

    /// Returns the length in bytes of each token.
    fn lengths(self) -> Vec<u8> {
        let mut lengths = vec![1u8; SINGLE];
        for id in SINGLE..self.count() {
            let pair = self.pair(id).unwrap_or_default();
            lengths.push(pair.iter().map(|part| lengths[*part as usize]).sum());
        }
        lengths
    }

    /// Writes the table into zeros, of which there are as many as [`Merges::table_size`] returns.
    pub(super) fn write_table(self, table: &mut [u8]) {
        let (header, rest) = table.split_at_mut(HEADER);
        let (records, rest) = rest.split_at_mut(16 * self.count());
        let (known, rest) = rest.split_at_mut(FILTER);
        let (slots, bytes) = rest.split_at_mut(16 * self.slot_count());
        header[..4].copy_from_slice(&(self.count() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&self.slot_count().ilog2().to_le_bytes());
        let mut parts = Parts { known, slots, bytes, tokens: Vec::with_capacity(self.count()) };
        let mut hashes = Vec::with_capacity(self.count());
        let mut start = 0;
        for (id, record) in records.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let pair = self.pair(id);
            let (length, marked) = match pair {
                None => {
                    parts.bytes[start] = self.first[id];
                    (1, 0)
                }
                Some([left, right]) => {
                    let (left, right) = (parts.range(left), parts.range(right));
                    let marked = left.len();
                    parts.bytes.copy_within(left, start);
                    let length = marked + right.len();
                    parts.bytes.copy_within(right, start + marked);
                    (length, marked)
                }
            };
            // The first part of the pair has marked the shorter beginnings.
            for length in marked + 1..length {
                parts.mark(parts.hash(start, length), 1);
            }
            let hash = parts.hash(start, length);
            parts.mark(hash, 3);
            parts.tokens.push([start as u32, length as u32]);
            hashes.push(hash);
            let [left, right] = pair.unwrap_or([NONE; 2]);
            let fields = [start as u32 | (length as u32) << 24, left, right, NONE];
            for (to, field) in record.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
                *to = field.to_le_bytes();
            }
            start += length;
        }
        // In a loop of its own, the processor waits for several slots at once.
        for (id, hash) in hashes.into_iter().enumerate() {
            parts.insert(hash, id as u32);
        }
        // The longest shorter token that a token begins with: the first part of its pair, or a longer token.
        for id in SINGLE..self.count() {
            let [left, _] = self.pair(id).unwrap_or_default();
            let (token, least) = (parts.range(id as u32), parts.range(left).len());
            let longer = (least + 1..token.len()).rev().find_map(|length| parts.find(token.start, length));
            records[16 * id + 12..16 * id + 16].copy_from_slice(&longer.unwrap_or(left).to_le_bytes());
        }
    }
}

/// The parts of a table in which texts are looked up. A text is given by its place in the bytes of all
/// tokens.
struct Parts<'a> {
    known: &'a mut [u8],
    slots: &'a mut [u8],
    bytes: &'a mut [u8],
    /// The start and the length of each token so far.
    tokens: Vec<[u32; 2]>,
}

impl Parts<'_> {
    /// Returns the place of a token in the bytes of all tokens.
    fn range(&self, id: u32) -> Range<usize> {
        let [start, length] = self.tokens[id as usize].map(|number| number as usize);
        start..start + length
    }

    /// Returns up to 16 bytes as a number. The padding after the last token keeps every read inside.
    fn word(&self, start: usize, length: usize) -> u128 {
        let word = self.bytes[start..].first_chunk().map_or(0, |chunk| u128::from_le_bytes(*chunk));
        if length < hash::STEP { word & ((1 << (8 * length)) - 1) } else { word }
    }

    #[inline]
    fn hash(&self, start: usize, length: usize) -> u64 {
        if length <= hash::MAX_SHORT_BYTES {
            hash::hash_short(self.word(start, length) as u64, length)
        } else if length < hash::STEP {
            hash::finish(0, self.word(start, length), length)
        } else {
            hash::hash_bytes(&self.bytes[start..start + length])
        }
    }

    #[inline]
    fn mark(&mut self, hash: u64, bits: u8) {
        let place = hash::filter_slot(hash);
        self.known[place / 4] |= bits << (place % 4 * 2);
    }

    /// Returns the slot of a text without its id.
    fn slot(&self, start: usize, length: usize) -> u128 {
        self.word(start, length.min(INLINE)) | (length as u128) << 96
    }

    fn first_place(&self, hash: u64) -> usize {
        (hash >> (64 - (self.slots.len() / 16).ilog2())) as usize
    }

    /// Adds a token to the slots.
    fn insert(&mut self, hash: u64, id: u32) {
        let Range { start, end } = self.range(id);
        let slot = self.slot(start, end - start) | u128::from(id + 1) << 104;
        let mut place = self.first_place(hash);
        let slots = self.slots.as_chunks_mut::<16>().0;
        while slots[place] != [0; 16] {
            place = (place + 1) & (slots.len() - 1);
        }
        slots[place] = slot.to_le_bytes();
    }

    /// Returns the token that consists of these bytes, or `None` if there is none.
    fn find(&self, start: usize, length: usize) -> Option<u32> {
        let hash = self.hash(start, length);
        let filter = hash::filter_slot(hash);
        if self.known[filter / 4] >> (filter % 4 * 2) & 2 == 0 {
            return None;
        }
        let wanted = self.slot(start, length);
        let mut place = self.first_place(hash);
        let slots = self.slots.as_chunks::<16>().0;
        loop {
            let slot = u128::from_le_bytes(slots[place]);
            if slot == 0 {
                return None;
            }
            if slot << 24 == wanted << 24 {
                let id = (slot >> 104) as u32 - 1;
                // The slot contains the whole token up to 12 bytes.
                if length <= INLINE || self.bytes[self.range(id)] == self.bytes[start..start + length] {
                    return Some(id);
                }
            }
            place = (place + 1) & (slots.len() - 1);
        }
    }
}
