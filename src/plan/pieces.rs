//! The items of a prompt as hashes, for comparison with later prompts, and the anchor of a plan.

use super::{
    Anchor, ContextPlan, ExcludedItem, LastPrompt, LedgerLine, NoticeCode, Overhead, PlannedItem, PromptHead,
    PromptPiece, TOOLS, Target, rows::hash_message,
};
use crate::{
    config::DocumentFormat,
    item::{ItemId, Section, Source},
    message::{Message, Tool, WireFormat},
    provider::{model::RequestLimits, sent_document::SentFormat},
};
use std::{collections::BTreeMap, sync::Arc};

/// A hash over the declared tools, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolsHash(blake3::Hasher);

impl ToolsHash {
    pub(crate) fn add(&mut self, tool: &Tool) {
        for text in [&*tool.name, &*tool.description, &*tool.schema, tool.hosted_json().unwrap_or_default()] {
            // Each length comes first, so that text cannot move from one field to the next without a change
            // of the hash.
            self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        if let Some((_, json)) = &tool.written {
            // The marker separates the JSON of the tool in its wire format from the fields before it.
            self.0.update(b"written").update(&(json.len() as u64).to_le_bytes()).update(json.as_bytes());
        }
    }

    /// Returns the hash as 32 hexadecimal digits.
    pub(crate) fn text(&self) -> String {
        self.0.finalize().to_hex()[..32].into()
    }
}

/// The rows of the previous prompt with their hashes. Rows keep their order from prompt to prompt, so each
/// search starts after the row that was found last.
struct KnownRows<'p> {
    pieces: &'p [PromptPiece],
    rows: &'p [Message],
    /// Number of comparisons left. Rows that moved far are hashed again instead of searched for everywhere.
    tries: usize,
}

impl KnownRows<'_> {
    /// Returns the item of a row whose message is the very one that was sent before.
    fn find(&mut self, row: &PlannedItem) -> Option<&PromptPiece> {
        let tries = self.tries.min(self.rows.len()).min(self.pieces.len());
        let found = self.rows[..tries].iter().position(|sent| sent.is_same(&row.body));
        // A failed search uses up its comparisons too, so that all searches together take linear time.
        self.tries -= found.map_or(tries, |at| at + 1);
        let at = found?;
        let piece = &self.pieces[at];
        self.rows = &self.rows[at + 1..];
        self.pieces = &self.pieces[at + 1..];
        Some(piece)
    }
}

/// Returns the names of the forms of documents that are not sent whole, by index.
fn document_forms(documents: &[&PlannedItem]) -> Vec<(u32, Arc<str>)> {
    (0..).zip(documents).filter_map(|(at, row)| Some((at, Arc::clone(&row.shorter_form()?.name)))).collect()
}

impl ContextPlan {
    /// Returns the anchor, which lets the next prompt repeat the beginning of this one (sticky window, rule
    /// S5).
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let limits = RequestLimits {
            model_context_len: Some(self.limits.model_context_len),
            max_input: self.limits.max_input,
            max_completion_tokens: Some(self.limits.max_completion_tokens),
            safety_buffer: Some(self.limits.safety_buffer),
            prompt_budget: Some(self.prompt_budget),
            ..RequestLimits::new()
        };
        let documents: Vec<&PlannedItem> =
            self.included.iter().filter(|item| item.source == Source::Rag).collect();
        let (rag_ranks, rag_joined) = self.document_places(&documents);
        // A prompt over its budget has no window to continue, so the next plan chooses one again.
        let fits = self.overflow.is_none();
        let sent = self.sent_prompt();
        let pieces = sent.pieces();
        // Only these wire formats sign reasoning, so only there is it bound to the prompt before it.
        let has_signatures = matches!(self.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses);
        Anchor {
            target: Some(Target::new(&self.model, &self.provider).with_wire_format(self.wire_format)),
            limits: Some(limits),
            live: self.carryover.live.clone(),
            window_start: self.carryover.anchored_at.clone().filter(|_| fits),
            rag: fits.then(|| documents.iter().map(|item| sent.sent_id(item).clone()).collect()),
            rag_ranks,
            rag_joined,
            rag_forms: document_forms(&documents),
            rag_format: match documents.last().map(|row| row.format()) {
                Some(SentFormat::Native { .. }) => DocumentFormat::Native,
                _ => DocumentFormat::Text,
            },
            rag_released: self.released_documents(),
            cleared_before: self.cleared_before.clone(),
            result_forms: self.carryover.result_forms.clone(),
            rules: self.carryover.rules.found(),
            rules_through: self.carryover.rules.through.clone(),
            labels: self.carryover.labels.clone(),
            released_through: self.carryover.released_through.clone(),
            sender: self.carryover.sender.clone(),
            head: has_signatures.then(|| PromptHead::from_pieces(&pieces)),
            lost: self.thoughts.lost.clone(),
            prompt: Some(pieces.into()),
        }
    }

    /// Checks if documents of earlier questions were released since this question was first sent.
    fn released_documents(&self) -> bool {
        let before = self.carryover.before.as_ref().map(|before| &before.anchor);
        let is_same = |before: &&Arc<Anchor>| before.live.is_some() && before.live == self.carryover.live;
        self.notices.iter().any(|notice| notice.code == NoticeCode::DocumentsReleased)
            || before.filter(is_same).is_some_and(|before| before.rag_released)
    }

    /// Returns the ranks of the documents of this prompt, in prompt order. Returns nothing if they ascend.
    pub(crate) fn document_ranks(&self) -> &[u32] {
        &self.carryover.document_ranks
    }

    /// Returns the ranks of these documents, and the indices of those that continue the text of the one
    /// before. The ranks are empty if they ascend.
    fn document_places(&self, documents: &[&PlannedItem]) -> (Vec<u32>, Vec<u32>) {
        let ranks = &self.carryover.document_ranks;
        // Retained documents keep their places; the ranks are those of the documents of this prompt.
        let new: Vec<u32> =
            (0..).zip(documents).filter(|(_, row)| row.section == Section::Rag).map(|(at, _)| at).collect();
        let mut all: Vec<u32> = (0..documents.len() as u32).collect();
        for (at, rank) in new.iter().zip(ranks) {
            all[*at as usize] = new[*rank as usize];
        }
        let joined =
            (0..).zip(documents).filter(|(_, row)| row.continues().is_some()).map(|(at, _)| at).collect();
        (if ranks.is_sorted() { Vec::new() } else { all }, joined)
    }

    /// Returns the parts of the plan with which other prompts are compared.
    pub(crate) fn sent_prompt(&self) -> SentPrompt<'_> {
        SentPrompt {
            included: &self.included,
            excluded: &self.excluded,
            tools: &self.carryover.prompt.tools,
            overhead: &self.overhead,
            renamed: &self.carryover.renamed,
            before: self.carryover.before.as_ref(),
        }
    }

    /// Returns the items of the prompt in order, tool definitions first.
    pub(crate) fn pieces(&self) -> Vec<PromptPiece> {
        self.sent_prompt().pieces()
    }

    /// Returns the messages of the rows, for comparison with those of the next plan.
    pub(crate) fn rows_sent(&self) -> Arc<[Message]> {
        self.included.iter().map(|row| row.body.clone()).collect()
    }
}

/// The parts of a planned prompt with which later prompts are compared.
#[derive(Clone, Copy)]
pub(crate) struct SentPrompt<'p> {
    pub(crate) included: &'p [PlannedItem],
    pub(crate) excluded: &'p [ExcludedItem],
    /// The tool definitions at the beginning of the prompt.
    pub(crate) tools: &'p [Tool],
    pub(crate) overhead: &'p [LedgerLine],
    /// The ids of documents by row id, if the two differ.
    pub(crate) renamed: &'p BTreeMap<ItemId, ItemId>,
    /// The prompt before this one, if it is remembered.
    pub(crate) before: Option<&'p LastPrompt>,
}

impl<'p> SentPrompt<'p> {
    /// Returns the items of the prompt in order, tool definitions first.
    pub(crate) fn pieces(&self) -> Vec<PromptPiece> {
        let tools = self.overhead.iter().find(|line| line.what == Overhead::Tools);
        let tools = tools.filter(|_| !self.tools.is_empty()).map(|line| {
            let mut hash = ToolsHash::default();
            self.tools.iter().for_each(|tool| hash.add(tool));
            let tokens = u64::try_from(line.tokens).unwrap_or_default();
            PromptPiece { id: TOOLS.into(), hash: hash.text().into(), hash_without_reasoning: None, tokens }
        });
        let mut known = self.known_rows();
        let rows = self.included.iter().map(|row| {
            let (id, tokens) = (self.sent_id(row).clone(), row.token_estimate.tokens);
            // A message that was sent before has the same hash, so it is not hashed again.
            if let Some(known) = known.find(row) {
                let (hash, hash_without_reasoning) =
                    (known.hash.clone(), known.hash_without_reasoning.clone());
                return PromptPiece { id, hash, hash_without_reasoning, tokens };
            }
            let without = || hash_message(&row.body.without_reasoning()).into();
            let hash_without_reasoning = (!row.body.reasoning().is_empty()).then(without);
            PromptPiece { id, hash: row.hash().into(), hash_without_reasoning, tokens }
        });
        tools.into_iter().chain(rows).collect()
    }

    /// Returns the id of a row, or of the document in it. The id of a document stays the same if another
    /// document takes over the row id.
    pub(crate) fn sent_id(&self, row: &'p PlannedItem) -> &'p ItemId {
        if self.renamed.is_empty() || !row.kind.is_document() {
            return &row.id;
        }
        self.renamed.get(&row.id).unwrap_or(&row.id)
    }

    fn known_rows(&self) -> KnownRows<'p> {
        let rows =
            self.before.and_then(|before| Some((before.anchor.prompt.as_deref()?, before.rows.as_deref()?)));
        let (pieces, rows) = rows.unwrap_or_default();
        // Tool definitions are the first item, but no row. They are skipped.
        let pieces = pieces.len().checked_sub(rows.len()).map_or(&[][..], |tools| &pieces[tools..]);
        KnownRows { pieces, rows, tries: 2 * rows.len() }
    }
}
