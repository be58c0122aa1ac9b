//! The rows of a plan for a web page, with all their details.

use super::{
    Html,
    catalog::{Catalog, Place},
    shown::{Piece, Texts, visible},
    states::Inside,
};
use crate::{cut, palette, row::Rows};
use context_window::{
    ContextPlan, Conversation, ExcludedItem, ExcludedReason, ItemId, PlanRequest, PlannedItem, Priority,
    Section, Source, ToolCall, Ttl,
    analysis::Explanation,
    plan::{Decision, Kind, RowKind, about, kind_of_message},
    text::plain::grouped,
};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of rows for excluded items. Further rows become a count.
const MAX_EXCLUDED_ROWS: usize = 600;

/// The maximum number of messages that a page lists inside runs. The newest messages of each run come first.
const MAX_RUN_ROWS: usize = 1_500;

/// A row of the plan for the template.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    /// The number of the item for the script. `None` for a run.
    number: Option<usize>,
    state: &'static str,
    section: &'static str,
    id: String,
    tokens: String,
    /// The tokens as a number, for sorting.
    count: u64,
    /// The CSS class of its kind's colour.
    class: &'static str,
    /// The name of its kind, with the score of a document.
    kind: String,
    why: String,
    preview: String,
    facts: Vec<(&'static str, String)>,
    pieces: Vec<Piece>,
    /// The reason for a missing text; empty if the row has texts.
    absent: &'static str,
    explained: Vec<(&'static str, String)>,
}

/// Explanations by row: if it is a document, if it is included, and its id. Rows with equal keys take theirs
/// in order.
type Explained<'a> = BTreeMap<(bool, bool, &'a str), VecDeque<&'a Explanation>>;

/// The state for building the items of a page.
pub(super) struct Items<'a> {
    html: &'a Html<'a>,
    rows: Rows<'a>,
    texts: Texts,
    explained: Explained<'a>,
    sources: Option<Sources<'a>>,
    pub(super) catalog: Catalog,
    pub(super) inside: Vec<Inside>,
    /// The number of excluded rows that are not listed.
    pub(super) not_listed: usize,
    left_inside: usize,
    /// The log position of each message in the prompt, ascending, with its row.
    positions: Vec<(u32, usize)>,
    /// The last prompt row of each section.
    last_rows: BTreeMap<Section, usize>,
}

impl<'a> Items<'a> {
    pub(super) fn new(html: &'a Html<'a>) -> Self {
        let mut explained = Explained::new();
        for one in html.explanations {
            explained.entry((one.document, one.included, one.id.as_str())).or_default().push_back(one);
        }
        let sources = html.request.map(|request| Sources::new(request, html.plan));
        let rows = html.plan.included.iter().enumerate();
        let log = html.request.map(|request| request.log);
        let position = |row: &PlannedItem| log.and_then(|log| log.position_of(&row.id));
        let own = rows.clone().filter(|(_, row)| row.section == Section::Conversation);
        // `place` searches this list by bisection, so it has to be sorted.
        let mut positions: Vec<_> = own.filter_map(|(at, row)| Some((position(row)?, at))).collect();
        positions.sort_unstable();
        Self {
            positions,
            last_rows: rows.map(|(at, row)| (row.section, at)).collect(),
            html,
            rows: Rows::new(html.plan),
            texts: Texts::new(html.redact),
            explained,
            sources,
            catalog: Catalog::new(html.redact),
            inside: Vec::new(),
            not_listed: 0,
            left_inside: MAX_RUN_ROWS,
        }
    }

    /// Builds the included items in prompt order.
    pub(super) fn included(&mut self) -> Vec<Item> {
        let rows = self.html.plan.rows_by_kind();
        let count = rows.len();
        let mut items = Vec::new();
        for (at, one) in rows.iter().enumerate() {
            let document = one.row.kind.is_document();
            let score = self.sources.as_ref().filter(|_| document && one.row.section == Section::Rag);
            let score = score.and_then(|sources| sources.scores.get(&one.row.id).copied());
            let number = self.catalog.number(one.key(), &one.kind, score, Some((at, 0)));
            items.push(self.planned((at, count), number, one, score));
        }
        items
    }

    /// Builds the excluded items, at most [`MAX_EXCLUDED_ROWS`].
    pub(super) fn excluded(&mut self) -> Vec<Item> {
        let rows = &self.html.plan.excluded;
        self.not_listed = rows.len().saturating_sub(MAX_EXCLUDED_ROWS);
        rows.iter().take(MAX_EXCLUDED_ROWS).enumerate().map(|(at, row)| self.left_out(at, row)).collect()
    }

    fn planned(
        &mut self,
        (at, of): (usize, usize),
        number: usize,
        one: &RowKind<'a>,
        score: Option<f64>,
    ) -> Item {
        let item = one.row;
        let words = self.rows.row(Decision::Included(item));
        let pieces = self.texts.pieces_of_message(&item.body);
        // The text sent for a document begins with a header, so the preview shows the document's own text.
        let own = self.sources.as_ref().filter(|_| item.source == Source::Rag);
        let preview = match own.and_then(|sources| sources.documents.get(&item.id).copied().flatten()) {
            Some(text) => self.texts.line(text),
            None => self.texts.preview(&pieces),
        };
        let place = format!("{} of {}", grouped(at as u64 + 1), grouped(of as u64));
        let mut facts =
            vec![("position", place), ("certainty", item.token_estimate.certainty.name().to_owned())];
        facts.extend(lasting(Some(item.priority), item.ttl));
        facts.extend(score.map(|score| ("score", format!("{score}"))));
        facts.extend(item.body.answers().map(|call| ("answers", visible(call))));
        facts.push(("hash", item.hash()));
        let about = if self.html.redact { String::new() } else { one.about() };
        Item {
            number: Some(number),
            state: "in",
            section: item.section.name(),
            id: visible(&words.id),
            tokens: words.tokens,
            count: item.token_estimate.tokens,
            class: palette::name(&one.kind),
            kind: scored(&self.kind(&one.kind, &about), score),
            why: visible(&words.why),
            preview,
            facts,
            pieces,
            absent: "",
            explained: self.explanation(item.kind.is_document(), true, &item.id),
        }
    }

    fn left_out(&mut self, at: usize, item: &'a ExcludedItem) -> Item {
        let words = self.rows.row(Decision::Excluded(item));
        let last = item.last_id.as_ref();
        let found = match &self.sources {
            Some(sources) => sources.texts(item, &mut self.texts),
            None => Err("No text: the page was created without the request."),
        };
        let (pieces, absent) = match found {
            Ok(pieces) => (pieces, ""),
            Err(why) => (Vec::new(), why),
        };
        let mut facts = vec![("certainty", item.token_estimate.certainty.name().to_owned())];
        let is_run = item.count > 1;
        if is_run {
            facts.insert(0, ("messages", grouped(item.count)));
        }
        facts.extend(lasting(item.priority, item.ttl));
        let (kind, about) = self.kind_of(item);
        let (mut number, mut score) = (None, None);
        if is_run {
            self.add_run_messages(at, item);
        } else {
            let document = item.kind.is_document();
            let sources = self.sources.as_ref();
            score = sources.filter(|_| document).and_then(|sources| sources.scores.get(&item.id).copied());
            facts.extend(score.map(|score| ("score", format!("{score}"))));
            let position = sources.and_then(|sources| sources.request.log.position_of(&item.id));
            let place = self.place(item.section, position, at);
            // A duplicate has the id of another document. The position in its key keeps the two apart.
            let repeats = matches!(&item.reason, ExcludedReason::Duplicate { of } if *of == item.id);
            let key = (item.section, document, item.id.clone(), usize::from(repeats) * (at + 1));
            number = Some(self.catalog.number(key, &kind, score, Some(place)));
        }
        let named = if is_run { "messages".into() } else { scored(&self.kind(&kind, &about), score) };
        Item {
            number,
            state: "out",
            section: item.section.name(),
            id: visible(&words.id),
            tokens: words.tokens,
            count: item.token_estimate.tokens,
            class: if is_run { "run" } else { palette::name(&kind) },
            kind: named,
            why: visible(&words.why),
            preview: self.texts.preview(&pieces),
            facts,
            pieces,
            absent,
            explained: self.explanation(item.kind.is_document(), false, last.unwrap_or(&item.id)),
        }
    }

    /// Returns the name of an item's kind for people. A tool result has the name of its tool and the main
    /// argument of the call.
    fn kind(&self, kind: &Kind, about: &str) -> String {
        let text = match kind {
            Kind::ToolResults(name) if !name.is_empty() && !self.html.redact => {
                format!("{name} {about}").trim_end().to_owned()
            }
            Kind::ToolResults(_) => "tool result".into(),
            Kind::Documents(_) => "document".into(),
            Kind::Pins => "pinned note".into(),
            Kind::Summary => "summary".into(),
            kind => kind.text(),
        };
        visible(&cut(&text, 40))
    }

    /// Returns the kind of an excluded item. For a tool result it also returns the main argument of the call.
    fn kind_of(&self, item: &ExcludedItem) -> (Kind, String) {
        match (item.section, item.source) {
            (Section::Rag, _) => (Kind::Documents(String::new()), String::new()),
            (Section::SystemPinned, Some(Source::System)) => (Kind::System, String::new()),
            (Section::SystemPinned, _) => (Kind::Pins, String::new()),
            (Section::Conversation, _) => {
                let log = self.sources.as_ref().map(|sources| sources.request.log);
                let found = log.and_then(|log| log.position_of(&item.id).map(|at| (log, at)));
                match found {
                    Some((log, at)) => self.kind_at(log, at),
                    // Without the request, or for an item outside the log, the kind is unknown.
                    None => (Kind::User, String::new()),
                }
            }
        }
    }

    /// Returns the kind of the message at a log position. For a tool result it also returns the main argument
    /// of the call, which is empty on a redacted page.
    fn kind_at(&self, log: &Conversation, at: u32) -> (Kind, String) {
        let message = log.message(at);
        let call = message.answers().and_then(|call| call_before(log, at, call));
        let about =
            call.filter(|_| !self.html.redact).map_or_else(String::new, |call| about(&call.arguments));
        (kind_of_message(message, call.map(|call| call.name.as_str())), about)
    }

    /// Lists the newest messages inside a run, within the limit of the page.
    fn add_run_messages(&mut self, run: usize, item: &ExcludedItem) {
        let Some(sources) = &self.sources else { return };
        let log = sources.request.log;
        let ends = [Some(&item.id), item.last_id.as_ref()];
        let [Some(first), Some(last)] = ends.map(|id| id.and_then(|id| log.position_of(id))) else { return };
        // The ids between the ends are known only if the run is contiguous in the log.
        if last < first || u64::from(last - first) + 1 != item.count {
            return;
        }
        // All runs of the page share one limit, which bounds the size of the page.
        let listed = u32::try_from(self.left_inside).unwrap_or(u32::MAX).min(last - first + 1);
        self.left_inside -= listed as usize;
        for at in last + 1 - listed..=last {
            let (kind, about) = self.kind_at(log, at);
            let key = (item.section, false, log.message_id(at), 0);
            let place = self.place(item.section, Some(at), run);
            let number = self.catalog.number(key, &kind, None, Some(place));
            let pieces = self.texts.pieces_of_message(log.message(at));
            let (kind, preview) = (self.kind(&kind, &about), self.texts.preview(&pieces));
            self.inside.push(Inside { item: number, run, kind, preview, pieces });
        }
    }

    /// Returns the place of an excluded item: after the last prompt row of its section that comes before it
    /// in the session.
    fn place(&self, section: Section, position: Option<u32>, nth: usize) -> Place {
        let last = |section| self.last_rows.get(&section).copied();
        let behind = match (section, position) {
            (Section::Conversation, Some(position)) => {
                // O(log n) for n messages in the prompt.
                let before = self.positions.partition_point(|(at, _)| *at < position);
                let row = before.checked_sub(1).map(|before| self.positions[before].1);
                row.or_else(|| last(Section::SystemPinned))
            }
            _ => last(section),
        };
        let behind =
            behind.unwrap_or(if section == Section::Rag { self.html.plan.included.len() } else { 0 });
        (behind, position.map_or(nth as u64, u64::from) + 1)
    }

    /// Takes the next explanation of a row as labelled lines. Returns an empty list if the row has none.
    fn explanation(&mut self, document: bool, included: bool, id: &'a ItemId) -> Vec<(&'static str, String)> {
        let of_this = self.explained.get_mut(&(document, included, id.as_str()));
        let Some(one) = of_this.and_then(VecDeque::pop_front) else { return Vec::new() };
        let lines = crate::explanation(one).lines();
        lines.into_iter().map(|(what, text)| (what, visible(&text))).collect()
    }
}

/// Returns the name of a kind, with the score of a document.
fn scored(kind: &str, score: Option<f64>) -> String {
    score.map_or_else(|| kind.to_owned(), |score| format!("{kind}, score {score}"))
}

/// Returns the tool call of a result. It searches the 64 messages before the result, because a call is close
/// to its result.
fn call_before<'l>(log: &'l Conversation, at: u32, call: &str) -> Option<&'l ToolCall> {
    const LOOKED_AT: u32 = 64;
    let before = (at.saturating_sub(LOOKED_AT)..at).rev();
    before
        .map(|at| log.message(at))
        .find_map(|message| message.tool_calls().iter().find(|one| one.id == call))
}

/// Returns the priority, unless it is normal, and the TTL as labelled facts.
fn lasting(priority: Option<Priority>, ttl: Option<Ttl>) -> Vec<(&'static str, String)> {
    let priority = priority.filter(|priority| *priority != Priority::Normal);
    let ttl = ttl.map(crate::ttl);
    let priority = priority.map(|priority| ("priority", priority.name().to_owned()));
    priority.into_iter().chain(ttl.map(|ttl| ("TTL", ttl))).collect()
}

/// The texts of the request, for excluded items.
struct Sources<'a> {
    request: &'a PlanRequest<'a>,
    /// The text of each document, or `None` if several documents share the id.
    documents: BTreeMap<&'a ItemId, Option<&'a str>>,
    notes: BTreeMap<&'a ItemId, &'a str>,
    /// The score of each document, if there is one list.
    scores: BTreeMap<&'a ItemId, f64>,
}

impl<'a> Sources<'a> {
    fn new(request: &'a PlanRequest<'a>, plan: &'a ContextPlan) -> Self {
        let mut documents = BTreeMap::new();
        for item in &request.rag {
            // Several documents with one id: it is unclear which of them the row means.
            documents.entry(&item.id).and_modify(|text| *text = None).or_insert(Some(&*item.text));
        }
        let notes = request.log.note_entries().iter().map(|(_, note)| (&note.item.id, &*note.item.text));
        let notes = notes.chain(plan.rules().iter().map(|rule| (rule.id(), rule.text()))).collect();
        // Scores of several lists cannot be compared; the reason has the ranks.
        let is_fused = request.rag.list_names().nth(1).is_some();
        let documents_with_scores = request.rag.iter().filter(|_| !is_fused);
        let scores = documents_with_scores.map(|item| (&item.id, item.score)).collect();
        Self { request, documents, notes, scores }
    }

    /// Returns the texts of an excluded row. For a run, these are the texts of its first and last message.
    /// Returns the reason if no text is known.
    fn texts(&self, item: &ExcludedItem, texts: &mut Texts) -> Result<Vec<Piece>, &'static str> {
        const UNKNOWN: &str = "The request has no text for this item.";
        if item.section == Section::Rag {
            let repeats = matches!(&item.reason, ExcludedReason::Duplicate { of } if *of == item.id);
            return match self.documents.get(&item.id) {
                Some(Some(text)) if !repeats => Ok(vec![texts.piece("", text, false)]),
                Some(_) => Err("Several documents have this id."),
                None => Err(UNKNOWN),
            };
        }
        if let Some(text) = self.notes.get(&item.id)
            && item.count == 1
        {
            return Ok(vec![texts.piece("", text, false)]);
        }
        let log = self.request.log;
        let message = |id: &ItemId| log.position_of(id).map(|at| log.message(at));
        let mut pieces = message(&item.id).map(|message| texts.pieces_of_message(message)).ok_or(UNKNOWN)?;
        if let Some(last) = item.last_id.as_ref().and_then(message) {
            let first = pieces.into_iter().map(|piece| piece.with_prefix("first message"));
            pieces = first
                .chain(
                    texts.pieces_of_message(last).into_iter().map(|piece| piece.with_prefix("last message")),
                )
                .collect();
        }
        Ok(pieces)
    }
}
