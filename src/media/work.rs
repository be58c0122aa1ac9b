//! A bound on the work that one file may cause.

/// Steps that are left: about one for each byte that is looked at.
#[derive(Debug)]
pub(super) struct Work {
    left: u64,
}

impl Work {
    pub(super) fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Takes steps away. Returns `None` if there are not so many left, and from then on.
    pub(super) fn charge(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.unwrap_or(0);
        left.map(drop)
    }
}
