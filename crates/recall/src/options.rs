//! Options of recall.

use context_window::ItemId;
use std::collections::BTreeMap;

/// Options of a [`crate::Recall`].
///
/// ```
/// use context_window_recall::{Recall, RecallOptions};
///
/// let options = RecallOptions::new().with_max_hits(20).with_dates([("m0", 1_700_000_000)]);
/// let recall = Recall::new().with_options(options);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecallOptions {
    /// The maximum number of passages for a question (default: 100).
    pub max_hits: usize,
    /// The least score of a passage, per mille of the sum of the rarities of the question's words (default:
    /// 100). A word that is once in a passage of average length has about 1,000 per mille of its rarity.
    pub min_score: u16,
    /// The dates of messages by id, in seconds since 1970 (UTC). They are written before the messages.
    pub dates: BTreeMap<ItemId, i64>,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self { max_hits: 100, min_score: 100, dates: BTreeMap::new() }
    }
}

impl RecallOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of passages for a question.
    #[must_use]
    pub fn with_max_hits(mut self, hits: usize) -> Self {
        self.max_hits = hits;
        self
    }

    /// Sets the least score of a passage, per mille of the sum of the rarities of the question's words.
    #[must_use]
    pub fn with_min_score(mut self, per_mille: u16) -> Self {
        self.min_score = per_mille;
        self
    }

    /// Adds dates of messages, in seconds since 1970 (UTC). A hit begins with the speaker and the date, so
    /// that the model can understand "last week".
    #[must_use]
    pub fn with_dates<I: Into<ItemId>>(mut self, dates: impl IntoIterator<Item = (I, i64)>) -> Self {
        self.dates.extend(dates.into_iter().map(|(id, seconds)| (id.into(), seconds)));
        self
    }
}

/// A ranking of messages by the application, such as one by embeddings, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRanking {
    pub(crate) weight: u8,
    pub(crate) ids: Vec<ItemId>,
}

impl MessageRanking {
    /// Creates a ranking of messages by their ids, best first. Its weight is that of the ranking by words.
    #[must_use]
    pub fn new<I: Into<ItemId>>(ids: impl IntoIterator<Item = I>) -> Self {
        Self { weight: 1, ids: ids.into_iter().map(Into::into).collect() }
    }

    /// Sets the weight of its ranks (default: 1).
    #[must_use]
    pub fn with_weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }
}
