//! Documents in the prompt: new ones in one message, retained ones at their places together with state.
//!
//! - Input: the selection, and the texts that are retained where they were sent.
//! - Output: rows and messages of the draft, and lines of the overhead.
//! - Rules: O1, S10, S14, B3, N3.

use super::{LaidOut, arrangement, included::ask_about_document};
use crate::{
    conversation::SentText,
    error::Error,
    item::{ItemKind, Priority, Section, Source},
    message::{Message, Role},
    plan::{
        DocumentFacts, Overhead, PlannedItem, ShorterForm,
        reason::{ExcludedReason, IncludedReason, LimitedBy, PolicyRule},
    },
    planner::{
        candidates::{CandidateId, Rank},
        eligibility::Eligibility,
    },
    provider::{conform::TurnPosition, sent_document},
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
        // They have the format in which they were sent, which may not be that of new ones.
        let block = self.meter.block_around(documents.first().map_or("", |first| &first.text));
        let mut pieces = block;
        for (document, row) in
            documents.iter().zip(self.candidates.retained().document_rows(documents, place))
        {
            if row != document.id {
                self.draft.renamed.insert(row.clone(), document.id.clone());
            }
            let text = self.candidates.retained().as_sent(document);
            let tokens = self.meter.sent_document(&text)?;
            pieces += tokens;
            let form = self.candidates.retained().shorter_form(place, document);
            let facts = form.map(|name| {
                let shorter_form = Some(ShorterForm { name: Arc::clone(name), fuller: SENT_BEFORE });
                Box::new(DocumentFacts { shorter_form, ..DocumentFacts::default() })
            });
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
                document: facts,
                body: Message::user(text),
            });
        }
        self.end_of_block(self.candidates.retained().documents_message(documents), block, pieces)
    }

    /// Writes the new documents as one message of the user role. External text never gets the system role.
    pub(super) fn block(&mut self) -> Result<(), Error> {
        if !self.chosen.has_documents() {
            return Ok(());
        }
        self.draft.first_rows.push(self.draft.rows.len());
        let mut sent: Vec<String> = Vec::new();
        let block = self.meter.block();
        let (mut pieces, mut added) = (block, 0);
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
            let whole = bodies.concat();
            if chunks.len() > 1 {
                added += i128::from(self.meter.sent_document(&whole)?) - i128::from(paid);
            }
            pieces += paid;
            sent.push(whole);
        }
        self.draft.document_ranks = numbered(&in_order);
        self.draft.documents = in_order;
        // If the block does not add up, its own joins contain those of its texts.
        if self.meter.block_adds_up() && added != 0 {
            self.line(Overhead::Joins, added);
        }
        self.end_of_block(sent_document::message(sent.iter().map(String::as_str)), block, pieces)
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
            })),
            body: Message::user(body),
        });
        Ok(tokens)
    }

    /// Writes the message that contains documents, and the lines of the overhead for it: the tokens `around`
    /// them, and the difference to the sum of all `pieces`.
    fn end_of_block(&mut self, block: Message, around: u64, pieces: u64) -> Result<(), Error> {
        self.line(Overhead::RagBlock, i128::from(around));
        // This counter counts the message as one text, which differs from the sum of its pieces (N3).
        if !block.has_opaque_parts() && !self.meter.text_block_adds_up() && !self.meter.is_rendered() {
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
