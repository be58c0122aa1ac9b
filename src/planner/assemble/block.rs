//! Documents in the prompt: new ones in one message, retained ones at their places together with state.
//!
//! - Input: the selection, and the texts that are retained where they were sent.
//! - Output: rows and messages of the draft, and lines of the overhead.
//! - Rules: O1, S10, S14, S20, S21, B3, N3.

use super::{LaidOut, arrangement, included::ask_about_document};
use crate::{
    conversation::SentText,
    error::Error,
    item::{ItemId, ItemKind, Priority, Section, Source},
    message::{Message, Role},
    plan::{
        DocumentFacts, Overhead, PlannedItem, ShorterForm,
        reason::{ExcludedReason, IncludedReason, LimitedBy, PolicyRule},
    },
    planner::{
        candidates::{CandidateId, Rank},
        eligibility::Eligibility,
        select::Inclusion,
    },
    provider::{
        conform::TurnPosition,
        sent_document::{self, BlockLayout},
    },
    rag::LabelledItem,
};
use std::sync::Arc;

/// The reason why a document keeps a shorter form: no tokens are offered to its fuller ones.
const SENT_BEFORE: ExcludedReason =
    ExcludedReason::Budget { room: 0, limited_by: LimitedBy::StickyDocuments };

impl<'r> LaidOut<'r> {
    /// Writes the texts that are retained before a candidate (rule S10).
    pub(super) fn sent_before(&mut self, candidate: CandidateId) -> Result<(), Error> {
        let released_before = self.costs.rendering().released_before;
        let Some(place) = self.candidates.place_of(candidate) else { return Ok(()) };
        let retained = self.candidates.retained();
        let documents = retained.documents_before(place, released_before);
        if !documents.is_empty() {
            self.sent_documents(candidate, place, documents)?;
        }
        let state = retained.state_before(place, released_before);
        let CandidateId::Exchange(at) = candidate else { return Ok(()) };
        // State right after the question was merged into it when it was new, so it is merged again.
        let question = CandidateId::UserMessage(self.candidates.log().turns().turn_of(at));
        // Next to instructions, every state entry is a message of its own.
        let alone = state.iter().all(|(_, message)| !message.role().instructs());
        let merges = self.draft.last == Some(question) && documents.is_empty() && alone;
        for (row, message) in state {
            self.push(candidate, row, ItemKind::State, None, &message)?;
            if merges {
                self.join_the_last();
            }
        }
        Ok(())
    }

    /// Appends the text of the last message to the message before it, as a part.
    fn join_the_last(&mut self) {
        let messages = &mut self.draft.prompt.messages;
        if let (Some(last), Some(before)) = (messages.pop(), messages.pop()) {
            messages.push(before.with_texts([last.text().to_owned()]));
            self.draft.first_rows.pop();
            self.line(Overhead::Merged, -i128::from(self.meter.saved_by_merging(Role::User)));
        }
    }

    /// Writes the documents that are retained before a candidate.
    fn sent_documents(
        &mut self,
        candidate: CandidateId,
        place: u32,
        documents: &[SentText],
    ) -> Result<(), Error> {
        let kept = self.chosen.included.get(candidate);
        self.draft.first_rows.push(self.draft.rows.len());
        let rows: Vec<ItemId> = self.candidates.retained().document_rows(documents, place).collect();
        let texts: Vec<&str> = documents.iter().map(|document| &*document.text).collect();
        let (mut pieces, mut added) = (self.meter.block(), 0);
        let mut of_all = documents.iter().zip(rows);
        for one in sent_document::documents(&texts) {
            let (tokens, joined) = self.meter.document_pieces(one)?;
            added += joined;
            for (tokens, (document, row)) in tokens.into_iter().zip(of_all.by_ref()) {
                pieces += tokens;
                self.sent_row(kept, place, document, row, tokens);
            }
        }
        self.end_of_block(self.candidates.retained().documents_message(documents), (pieces, added))
    }

    /// Writes the row of a document that is retained before the message at `place`.
    fn sent_row(&mut self, kept: Inclusion, place: u32, document: &SentText, row: ItemId, tokens: u64) {
        if row != document.id {
            self.draft.renamed.insert(row.clone(), document.id.clone());
        }
        let form = self.candidates.retained().shorter_form(place, document);
        let shorter_form = form.map(|name| ShorterForm { name: Arc::clone(name), fuller: SENT_BEFORE });
        let block = self.block_layout();
        let has_facts = shorter_form.is_some() || block.is_some();
        self.draft.rows.push(PlannedItem {
            id: row,
            kind: ItemKind::Document,
            source: Source::Rag,
            section: kept.section,
            role: None,
            priority: Priority::Normal,
            ttl: None,
            reason: kept.reason,
            token_estimate: self.meter.counted(tokens),
            document: has_facts
                .then(|| Box::new(DocumentFacts { shorter_form, block, ..DocumentFacts::default() })),
            body: Message::user(&*document.text),
        });
    }

    /// Writes the new documents as one message of the user role. External text never gets the system role.
    pub(super) fn block(&mut self) -> Result<(), Error> {
        if !self.chosen.has_documents() {
            return Ok(());
        }
        self.draft.first_rows.push(self.draft.rows.len());
        let mut sent: Vec<String> = Vec::new();
        let (mut pieces, mut added) = (self.meter.block(), 0);
        let texts = arrangement::in_prompt_order(self.candidates, &self.chosen.taken, self.context.order);
        let mut in_order: Vec<Rank> = Vec::new();
        for chunks in &texts {
            let items: Vec<(LabelledItem<'_>, usize)> =
                chunks.iter().map(|(rank, overlap)| (self.sent_document(*rank), *overlap as usize)).collect();
            let bodies = match items.as_slice() {
                [(item, _)] => vec![self.meter.delimited_document(*item)],
                items => self.meter.joined_documents(items),
            };
            let mut paid = 0;
            let mut before = None;
            for ((rank, _), body) in chunks.iter().zip(&bodies) {
                in_order.push(*rank);
                paid += self.document(*rank, before, body)?;
                before = Some(*rank);
            }
            // Each chunk was priced by its rest, before the whole text was known.
            if chunks.len() > 1 {
                let texts: Vec<&str> = bodies.iter().map(String::as_str).collect();
                let (tokens, joined) = self.meter.document_pieces(&texts)?;
                added += joined + tokens.into_iter().map(i128::from).sum::<i128>() - i128::from(paid);
            }
            pieces += paid;
            sent.extend(bodies);
        }
        self.draft.document_ranks = numbered(&in_order);
        self.draft.documents = in_order;
        let texts: Vec<&str> = sent.iter().map(String::as_str).collect();
        self.end_of_block(self.meter.block_layout().message(&texts), (pieces, added))
    }

    /// Returns the block of documents for its rows. Returns `None` for a plain one.
    fn block_layout(&self) -> Option<Arc<BlockLayout>> {
        let layout = self.meter.block_layout();
        (**layout != BlockLayout::PLAIN).then(|| Arc::clone(layout))
    }

    /// Returns an included document in the form in which it is sent.
    fn sent_document(&self, rank: Rank) -> LabelledItem<'r> {
        let form = self.chosen.taken.form(rank, self.candidates.index().document(rank));
        self.candidates.document_in(rank, form)
    }

    /// Returns the form of a document, with the reason why no fuller one is sent. Returns `None` if it is
    /// sent whole.
    fn shorter_form(&self, rank: Rank, item: LabelledItem<'_>) -> Option<ShorterForm> {
        let name = Arc::clone(item.form_name(item.form)?);
        let fuller = self.chosen.taken.shorter(rank).and_then(|shorter| shorter.fuller.clone());
        let fuller = fuller.unwrap_or_else(|| match self.candidates.rag_options().max_item_tokens {
            Some(limit) if !self.candidates.index().stays(rank) => {
                ExcludedReason::Policy(PolicyRule::MaxItemTokens { limit })
            }
            _ => SENT_BEFORE,
        });
        Some(ShorterForm { name, fuller })
    }

    /// Writes the row of a document, whose part of the prompt is `body`. It continues the text of the
    /// document `before`. Returns its tokens.
    fn document(&mut self, rank: Rank, before: Option<Rank>, body: &str) -> Result<u64, Error> {
        let candidate = CandidateId::Document(rank);
        let item = self.sent_document(rank);
        let tokens = self.chosen.taken.paid().get(&rank).copied().unwrap_or_default();
        if let Eligibility::Asks(ids) = self.candidates.eligibility(candidate)? {
            self.draft.documents_to_confirm.extend(ids.iter().cloned());
            self.draft.notices.extend(ids.into_iter().map(ask_about_document));
        }
        self.draft.rows.push(PlannedItem {
            id: item.id.clone(),
            kind: ItemKind::Document,
            source: Source::Rag,
            section: Section::Rag,
            role: None,
            priority: Priority::Normal,
            ttl: item.ttl,
            reason: if item.messages.is_some() { IncludedReason::Recalled } else { IncludedReason::Relevant },
            token_estimate: self.meter.counted(tokens),
            document: Some(Box::new(DocumentFacts {
                origin: item.origin.clone(),
                ranks: self.candidates.list_ranks(rank),
                continues: before.map(|before| self.candidates.document(before).id.clone()),
                messages: self.candidates.quoted_messages(&item),
                label: item.label,
                shorter_form: self.shorter_form(rank, item),
                block: self.block_layout(),
            })),
            body: Message::user(body),
        });
        Ok(tokens)
    }

    /// Writes the message that contains documents, and the lines of the overhead for it. `pieces` are the
    /// tokens of the rows and of the message around them, `added` those that joining their texts adds.
    fn end_of_block(&mut self, block: Message, (pieces, added): (u64, i128)) -> Result<(), Error> {
        self.line(Overhead::RagBlock, i128::from(self.meter.block()));
        if self.meter.block_adds_up() {
            if added != 0 {
                self.line(Overhead::Joins, added);
            }
        } else if !self.meter.is_rendered() {
            // This counter counts the message as one text, which differs from the sum of its pieces (N3).
            let whole = i128::from(self.meter.message(&block, TurnPosition::Live, u64::MAX)?.in_full());
            self.line(Overhead::Joins, whole - i128::from(pieces));
        }
        self.draft.prompt.messages.push(block);
        Ok(())
    }
}

/// Returns the places of documents in the order of their ranks, in prompt order. Returns nothing if they are
/// in that order.
fn numbered(in_order: &[Rank]) -> Vec<u32> {
    if in_order.is_sorted() {
        return Vec::new();
    }
    let mut sorted = in_order.to_vec();
    sorted.sort_unstable();
    let place = |rank: &Rank| sorted.binary_search(rank).unwrap_or_default() as u32;
    in_order.iter().map(place).collect()
}
