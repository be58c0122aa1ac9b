//! The sizes of the documents that compete, laid out so that the next one that fits is found without looking at each.

/// Sizes by slot, what each run of them comes to, and the smallest of each block.
#[derive(Debug)]
pub(crate) struct SizeIndex {
    /// What all candidates before a slot come to.
    sums: Vec<u128>,
    /// A tree of minimums: the sizes are its leaves, from `leaves` on.
    least: Vec<u64>,
    leaves: usize,
    len: u32,
}

impl SizeIndex {
    /// Larger sizes than any room are `u64::MAX`.
    pub(crate) fn new(sizes: &[u64]) -> Self {
        let leaves = sizes.len().next_power_of_two();
        let mut least = vec![u64::MAX; leaves * 2];
        least[leaves..leaves + sizes.len()].copy_from_slice(sizes);
        for at in (1..leaves).rev() {
            least[at] = least[2 * at].min(least[2 * at + 1]);
        }
        let mut sums = vec![0];
        for size in sizes {
            sums.push(sums[sums.len() - 1] + u128::from(*size));
        }
        Self { sums, least, leaves, len: sizes.len() as u32 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn size(&self, place: u32) -> u64 {
        self.least[self.leaves + place as usize]
    }

    /// How far from a slot on, and no further than to `end`, all candidates fit one after the other, and what
    /// they come to.
    pub(crate) fn run(&self, from: u32, end: u32, room: u64) -> (u32, u64) {
        let (from, end) = (from as usize, end as usize);
        let before = self.sums[from];
        let fitting = self.sums[from..=end].partition_point(|sum| *sum <= before + u128::from(room));
        let to = from + fitting - 1;
        (to as u32, u64::try_from(self.sums[to] - before).unwrap_or(room))
    }

    /// The first slot from `from` on whose candidate fits, and the smallest size of those before it.
    pub(crate) fn next(&self, from: u32, room: u64) -> (Option<u32>, u64) {
        let mut skipped = u64::MAX;
        let mut node = self.leaves + from as usize;
        if from >= self.len {
            return (None, skipped);
        }
        // Up, over whole blocks in which nothing fits, then down into the first in which something does.
        loop {
            if self.least[node] <= room {
                while node < self.leaves {
                    node *= 2;
                    if self.least[node] > room {
                        skipped = skipped.min(self.least[node]);
                        node += 1;
                    }
                }
                return (Some((node - self.leaves) as u32), skipped);
            }
            skipped = skipped.min(self.least[node]);
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return (None, skipped);
            }
            node += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_shelf_answers_as_a_walk_does(
            sizes in prop::collection::vec(prop_oneof![9 => 0u64..50, 1 => Just(u64::MAX)], 1..40),
            from in 0usize..40, room in 0u64..200,
        ) {
            let from = from % sizes.len();
            let shelf = SizeIndex::new(&sizes);
            let (mut to, mut sum) = (from, 0u64);
            while to < sizes.len() && sizes[to] <= room - sum {
                sum += sizes[to];
                to += 1;
            }
            prop_assert_eq!(shelf.run(from as u32, sizes.len() as u32, room), (to as u32, sum));
            let next = (from..sizes.len()).find(|at| sizes[*at] <= room);
            let skipped = sizes[from..next.unwrap_or(sizes.len())].iter().min().copied();
            prop_assert_eq!(shelf.next(from as u32, room), (next.map(|at| at as u32), skipped.unwrap_or(u64::MAX)));
        }
    }
}
