//! Recall in an application: index, file and options in one value.
//!
//! - Input: requests to the planner.
//! - Output: the requests with the earlier messages that their questions need.
//! - Rules: the search is for the live question. Without a word that at most half of the passages have,
//!   nothing comes back; with up to 16 passages, any word counts. Rankings of the application are fused with
//!   the one by words by their ranks, as ranked lists of documents are (rule S8).

use crate::{
    error::Error,
    file::{IndexFile, Opened},
    hit::Hit,
    index::RecallIndex,
    options::{MessageRanking, RecallOptions},
    query::{Query, live_question, unanswered_question},
    search::{Cuts, Found, search, statistics, text_score},
};
use context_window::{Conversation, ItemId, PlanRequest, RagItem, fused_value};
use std::{cmp::Reverse, collections::BTreeMap, ops::Range, path::Path};

/// The earlier messages of a conversation, found again for its questions.
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest};
/// use context_window_recall::Recall;
///
/// let mut log = Conversation::from([Message::user("My cat is called Fig."), Message::assistant("Noted.")]);
/// let mut recall = Recall::new();
/// log.push(Message::user("Which food does my cat like?"));
/// let request = recall.for_request(PlanRequest::new(&log));
///
/// let hits = recall.search(&log, "cat");
/// assert_eq!(hits[0].id, "recall:m0");
/// assert!(hits[0].text.starts_with("user: My cat is called Fig.\nassistant: Noted.\n"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Recall {
    index: RecallIndex,
    options: RecallOptions,
    file: Option<IndexFile>,
}

impl Recall {
    /// Creates a recall whose index is in memory only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the index file of a conversation, and indexes the messages that the file lacks. Creates the file
    /// at the next save if it does not exist.
    ///
    /// A file that is damaged or of another conversation is no error: the index is built again, and
    /// [`Opened`] has the reason.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn open(path: impl AsRef<Path>, log: &Conversation) -> Result<(Self, Opened), Error> {
        let (file, index, opened) = IndexFile::open(path.as_ref(), log)?;
        Ok((Self { index, options: RecallOptions::default(), file: Some(file) }, opened))
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: RecallOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &RecallOptions {
        &self.options
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &RecallIndex {
        &self.index
    }

    /// Indexes the messages that the conversation got since the last update, and returns their number.
    pub fn update(&mut self, log: &Conversation) -> usize {
        if !self.index.is_of(log) {
            // Its frames are those of the other conversation.
            self.replace_file();
        }
        self.index.update(log)
    }

    /// Appends to the file what was indexed since the last save. Save the conversation first: messages that
    /// only the index has are dropped by the next [`Recall::open`]. Does nothing without a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written. The index is unchanged, and can be saved again.
    pub fn save(&mut self) -> Result<(), Error> {
        match &mut self.file {
            Some(file) => file.save(&mut self.index),
            None => Ok(()),
        }
    }

    /// Removes messages from the index by their ids, and returns the number of those that were indexed (see
    /// [`RecallIndex::forget`]). The next save replaces the file by one without their words.
    pub fn forget<I: Into<ItemId>>(&mut self, log: &Conversation, ids: impl IntoIterator<Item = I>) -> usize {
        self.replace_file();
        self.index.forget(log, ids.into_iter().map(Into::into))
    }

    /// Indexes new messages, searches for the live question of a request, and adds the passages that were
    /// found to the request.
    #[must_use]
    pub fn for_request<'a>(&mut self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        self.for_request_with(request, &[])
    }

    /// Does the same with further rankings of messages, such as one by embeddings. A passage has the best
    /// rank of its messages in each.
    #[must_use]
    pub fn for_request_with<'a>(
        &mut self,
        request: PlanRequest<'a>,
        rankings: &[MessageRanking],
    ) -> PlanRequest<'a> {
        let log = request.log;
        self.update(log);
        let Some(question) = live_question(log) else { return request };
        let mut bm25 = statistics(&self.index);
        let query = Query::from_log(&self.index, &bm25, log, question);
        let cuts = Cuts::new(&self.index, Some(question));
        let mut found = Vec::new();
        // "Thank you, go on" needs nothing back.
        if query.has_distinctive_word {
            let least = query.mass.saturating_mul(u64::from(self.options.min_score)) / 1_000;
            found = search(&self.index, log, &query, &cuts, &mut bm25, least);
        }
        if !rankings.is_empty() {
            found = self.fuse(log, &found, rankings, &cuts);
        }
        let hits = self.hits(log, &found, |text, part| text_score(&query, &mut bm25, text, part));
        let mut documents: Vec<RagItem> = hits.into_iter().flat_map(Hit::into_documents).collect();
        // Their scores are their ranks from the end, so that the messages of one hit stay together.
        for (score, document) in (1u32..).zip(documents.iter_mut().rev()) {
            document.score = f64::from(score);
        }
        if documents.is_empty() { request } else { request.with_recall(documents) }
    }

    /// Searches the indexed messages for a text, such as that of a search field. Best hits come first. The
    /// live question is no hit while it is not answered.
    #[must_use]
    pub fn search(&self, log: &Conversation, query: &str) -> Vec<Hit> {
        if !self.index.is_of(log) {
            return Vec::new();
        }
        let mut bm25 = statistics(&self.index);
        let query = Query::new(&self.index, &bm25, query);
        let cuts = Cuts::new(&self.index, unanswered_question(log));
        let found = search(&self.index, log, &query, &cuts, &mut bm25, 1);
        self.hits(log, &found, |text, part| text_score(&query, &mut bm25, text, part))
    }

    /// Returns the first hits that are loaded. `score` scores a part of a message's text.
    fn hits(
        &self,
        log: &Conversation,
        found: &[Found],
        mut score: impl FnMut(&str, &Range<usize>) -> u64,
    ) -> Vec<Hit> {
        let hit = |found: &Found| Hit::new(&self.index, log, &self.options, *found, &mut score);
        found.iter().filter_map(hit).take(self.options.max_hits).collect()
    }

    /// Fuses the ranking by words with those of the application.
    fn fuse(
        &self,
        log: &Conversation,
        by_words: &[Found],
        rankings: &[MessageRanking],
        cuts: &Cuts,
    ) -> Vec<Found> {
        let mut scores: BTreeMap<usize, u64> = BTreeMap::new();
        let mut add = |weight: u8, passages: &mut dyn Iterator<Item = usize>| {
            let mut seen = Vec::new();
            for passage in passages {
                // Several messages of a passage count once.
                if seen.contains(&passage) || cuts.end(&self.index, passage).is_none() {
                    continue;
                }
                seen.push(passage);
                *scores.entry(passage).or_default() += fused_value(weight.into(), seen.len() as u64);
            }
        };
        add(1, &mut by_words.iter().map(|found| found.passage));
        for ranking in rankings {
            let positions = ranking.ids.iter().filter_map(|id| log.position_of_message(id.as_str()));
            add(ranking.weight, &mut positions.flat_map(|at| self.index.passages_of(at as u32)));
        }
        let fused = scores.into_iter().filter_map(|(passage, score)| {
            Some(Found { passage, end: cuts.end(&self.index, passage)?, score })
        });
        let mut fused: Vec<Found> = fused.collect();
        fused.sort_by_key(|found| Reverse((found.score, found.passage)));
        fused
    }

    fn replace_file(&mut self) {
        if let Some(file) = &mut self.file {
            file.replace();
        }
    }
}
