//! A list of values with a summary of every stretch of it.
//!
//! Input: values by place, and changes of single values. Output: summaries of stretches, and the first place
//! at which a sum or a minimum crosses a limit. Lookups and changes take logarithmic time. Rules: none.

/// The summary of a stretch of values.
pub(super) trait Summary: Copy {
    /// The summary of an empty stretch.
    const NOTHING: Self;

    /// Joins the summary of a stretch with that of the stretch after it. Joining must be associative.
    fn join(self, after: Self) -> Self;
}

/// Values by place. Each value is the summary of a stretch of one.
#[derive(Debug)]
pub(super) struct Tree<S> {
    /// The nodes of a binary tree. The root is at 1, the children of a node are at twice its index and at the
    /// next one, and the values are from `leaves` on.
    nodes: Vec<S>,
    leaves: usize,
    len: usize,
}

impl<S: Summary> Tree<S> {
    pub(super) fn new(values: impl Iterator<Item = S>) -> Self {
        let values: Vec<S> = values.collect();
        let (len, leaves) = (values.len(), values.len().next_power_of_two());
        // Unused leaves are empty stretches, so that every level is complete.
        let mut nodes = vec![S::NOTHING; leaves];
        nodes.extend(values);
        nodes.resize(2 * leaves, S::NOTHING);
        for at in (1..leaves).rev() {
            nodes[at] = nodes[2 * at].join(nodes[2 * at + 1]);
        }
        Self { nodes, leaves, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> S {
        self.nodes[self.leaves + at]
    }

    pub(super) fn set(&mut self, at: usize, value: S) {
        let mut node = self.leaves + at;
        self.nodes[node] = value;
        while node > 1 {
            visit();
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].join(self.nodes[2 * node + 1]);
        }
    }

    /// Returns the summary of all values.
    pub(super) fn all(&self) -> S {
        self.nodes[1]
    }

    /// Returns the summary of the values from `from` up to, but without, `to`.
    pub(super) fn fold(&self, from: usize, to: usize) -> S {
        // The two sides are joined separately, because a join depends on the order.
        let (mut left, mut right) = (S::NOTHING, S::NOTHING);
        let (mut from, mut to) = (self.leaves + from, self.leaves + to);
        while from < to {
            visit();
            if from % 2 == 1 {
                left = left.join(self.nodes[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                right = self.nodes[to].join(right);
            }
            (from, to) = (from / 2, to / 2);
        }
        left.join(right)
    }

    /// Returns the first place from `from` on at which the summary no longer holds, at most `end`, and the
    /// summary of the values before it. `holds` must be true for an empty stretch, and must stay false once
    /// it is false.
    pub(super) fn search(&self, from: usize, end: usize, holds: impl Fn(S) -> bool) -> (usize, S) {
        debug_assert!(end <= self.len, "{end} of {}", self.len);
        let place = self.first_beyond(from, holds).min(end).max(from);
        (place, self.fold(from, place))
    }

    fn first_beyond(&self, from: usize, holds: impl Fn(S) -> bool) -> usize {
        if from >= self.len {
            return self.len;
        }
        let (mut node, mut before) = (self.leaves + from, S::NOTHING);
        // First up, over whole blocks that hold, then down into the first block that does not.
        loop {
            visit();
            while node.is_multiple_of(2) {
                node /= 2;
            }
            let with = before.join(self.nodes[node]);
            if !holds(with) {
                break;
            }
            before = with;
            node += 1;
            // A power of two is the first node of a level, so the search has passed the last value.
            if node.is_power_of_two() {
                return self.len;
            }
        }
        while node < self.leaves {
            visit();
            node *= 2;
            let with = before.join(self.nodes[node]);
            if holds(with) {
                before = with;
                node += 1;
            }
        }
        node - self.leaves
    }
}

/// The costs of a stretch of candidates, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Tokens of all candidates.
    pub(super) tokens: u64,
    /// Tokens of the smallest candidate.
    pub(super) least: u64,
    /// Number of candidates.
    pub(super) count: u32,
}

impl Stretch {
    /// Creates the stretch of one candidate.
    pub(super) fn one(tokens: u64) -> Self {
        Self { tokens, least: tokens, count: 1 }
    }
}

impl Summary for Stretch {
    const NOTHING: Self = Self { tokens: 0, least: u64::MAX, count: 0 };

    fn join(self, after: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(after.tokens),
            least: self.least.min(after.least),
            count: self.count + after.count,
        }
    }
}

/// Counts the visited nodes and differences. Does nothing outside of tests.
pub(super) fn visit() {
    #[cfg(test)]
    tests::VISITED.with(|visited| visited.set(visited.get() + 1));
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    thread_local! {
        /// Number of visited nodes of all trees.
        pub(super) static VISITED: Cell<u64> = const { Cell::new(0) };
    }

    /// Returns the number of visits since the last call.
    pub(crate) fn visited() -> u64 {
        VISITED.with(|visited| visited.replace(0))
    }

    proptest! {
        #[test]
        fn tree_search_equals_a_linear_walk(
            sizes in prop::collection::vec(0u64..50, 1..40),
            changes in prop::collection::vec((0usize..40, 0u64..50), 0..10),
            (from, end) in (0usize..40, 0usize..41),
            limit in 0u64..200,
        ) {
            let mut sizes = sizes;
            let mut tree = Tree::new(sizes.iter().map(|size| Stretch::one(*size)));
            for (at, size) in changes.into_iter().filter(|(at, _)| *at < 40) {
                let at = at % sizes.len();
                sizes[at] = size;
                tree.set(at, Stretch::one(size));
            }
            let end = end % (sizes.len() + 1);
            let from = from % (end + 1);
            let fold = |to: usize| {
                let part = &sizes[from..to];
                let least = part.iter().copied().min().unwrap_or(u64::MAX);
                Stretch { tokens: part.iter().sum(), least, count: part.len() as u32 }
            };
            let sum = (from..end).find(|at| fold(at + 1).tokens > limit).unwrap_or(end);
            prop_assert_eq!(tree.search(from, end, |all| all.tokens <= limit), (sum, fold(sum)));
            let least = (from..end).find(|at| sizes[*at] <= limit).unwrap_or(end);
            prop_assert_eq!(tree.search(from, end, |all| all.least > limit), (least, fold(least)));
        }
    }
}
