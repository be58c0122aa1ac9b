//! A limit for the work that one file may cause.

/// The remaining steps, about one per examined byte.
#[derive(Debug)]
pub(super) struct Work {
    left: u64,
}

impl Work {
    pub(super) fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Subtracts steps. Returns `None` if fewer are left, and for every later call.
    pub(super) fn charge(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.unwrap_or(0);
        left.map(drop)
    }
}
