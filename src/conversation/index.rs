//! Separate types for turn and exchange numbers, so that one cannot be passed as the other.

/// Defines an index type for one kind of item, counted from 0.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        #[allow(dead_code, reason = "not every kind of number needs all of them")]
        impl $name {
            pub(crate) fn new(number: u32) -> Self {
                Self(number)
            }

            pub(crate) fn number(self) -> u32 {
                self.0
            }

            pub(crate) fn to_usize(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn next(self) -> Self {
                Self(self.0 + 1)
            }

            /// Returns every index of a range, in order.
            pub(crate) fn each(range: std::ops::Range<Self>) -> impl DoubleEndedIterator<Item = Self> + Clone {
                (range.start.0..range.end.0).map(Self)
            }
        }
    };
}

pub(crate) use index;

index! {
    /// A turn of the conversation, counted from the oldest.
    TurnIndex
}

index! {
    /// An exchange of the conversation, counted from the oldest.
    ExchangeIndex
}
