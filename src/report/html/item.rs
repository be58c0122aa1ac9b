//! The rows of a plan with everything that is known of each.

use super::{
    Html,
    shown::{Piece, Texts, visible},
};
use crate::{
    analysis::explain::Explanation,
    item::{ItemId, Priority, Section, Source, Ttl},
    plan::{Decision, ExcludedItem, PlannedItem, reason::ExcludedReason},
    planner::request::PlanRequest,
    report::{self, row},
    text::plain::grouped,
};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// A row of the plan as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    state: &'static str,
    section: &'static str,
    /// The section as people read it.
    section_title: &'static str,
    id: String,
    tokens: String,
    /// What it is, and the role it is sent in.
    kind: String,
    why: String,
    preview: String,
    facts: Vec<(&'static str, String)>,
    pieces: Vec<Piece>,
    /// Why there is no text, where there is none.
    absent: &'static str,
    explained: Vec<(&'static str, String)>,
}

/// Explanations by the row they belong to: a document or not, in or out, the id.
type Explained<'a> = BTreeMap<(bool, bool, &'a str), VecDeque<&'a Explanation>>;

/// What the items of a page are made from.
pub(super) struct Items<'a> {
    html: &'a Html<'a>,
    texts: Texts,
    explained: Explained<'a>,
    sources: Option<Sources<'a>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(html: &'a Html<'a>) -> Self {
        let mut explained = Explained::new();
        for one in html.explanations {
            explained.entry((one.document, one.included, one.id.as_str())).or_default().push_back(one);
        }
        let sources = html.request.map(Sources::new);
        Self { html, texts: Texts::new(html.redact), explained, sources }
    }

    /// What is in, in prompt order.
    pub(super) fn included(&mut self) -> Vec<Item> {
        let rows = &self.html.plan.included;
        rows.iter().enumerate().map(|(at, row)| self.planned(at, row, rows.len())).collect()
    }

    /// What is out.
    pub(super) fn excluded(&mut self) -> Vec<Item> {
        self.html.plan.excluded.iter().map(|row| self.left_out(row)).collect()
    }

    fn planned(&mut self, at: usize, item: &'a PlannedItem, of: usize) -> Item {
        let words = row(self.html.plan, Decision::Included(item));
        let pieces = self.texts.of(&item.body);
        // What is sent for a document begins with its header; its own text says more.
        let own = self.sources.as_ref().filter(|_| item.source == Source::Rag);
        let preview = match own.and_then(|sources| sources.documents.get(&item.id).copied().flatten()) {
            Some(text) => self.texts.line(text),
            None => self.texts.preview(&pieces),
        };
        let place = format!("{} of {}", grouped(at as u64 + 1), grouped(of as u64));
        let mut facts = vec![("position", place), ("certainty", item.tokens.certainty.name().to_owned())];
        facts.extend(lasting(Some(item.priority), item.ttl));
        facts.extend(item.body.answers().map(|call| ("answers", visible(call))));
        facts.push(("hash", item.hash()));
        Item {
            state: "in",
            section: item.section.name(),
            section_title: report::section(item.section),
            id: visible(&words.id),
            tokens: words.tokens,
            kind: kind(Some(item.source), item.role.map(crate::message::Role::name)),
            why: visible(&words.why),
            preview,
            facts,
            pieces,
            absent: "",
            explained: self.explanation(item.kind.is_document(), true, &item.id),
        }
    }

    fn left_out(&mut self, item: &'a ExcludedItem) -> Item {
        let words = row(self.html.plan, Decision::Excluded(item));
        let last = item.last_id.as_ref();
        let found = match &self.sources {
            Some(sources) => sources.texts(item, &mut self.texts),
            None => Err("No text: this page was made without the request."),
        };
        let (pieces, absent) = match found {
            Ok(pieces) => (pieces, ""),
            Err(why) => (Vec::new(), why),
        };
        let mut facts = vec![("certainty", item.tokens.certainty.name().to_owned())];
        if item.count > 1 {
            facts.insert(0, ("messages", grouped(item.count)));
        }
        facts.extend(lasting(item.priority, item.ttl));
        Item {
            state: "out",
            section: item.section.name(),
            section_title: report::section(item.section),
            id: visible(&words.id),
            tokens: words.tokens,
            kind: if item.count > 1 { "messages".into() } else { kind(item.source, None) },
            why: visible(&words.why),
            preview: self.texts.preview(&pieces),
            facts,
            pieces,
            absent,
            explained: self.explanation(item.kind.is_document(), false, last.unwrap_or(&item.id)),
        }
    }

    fn explanation(&mut self, document: bool, included: bool, id: &'a ItemId) -> Vec<(&'static str, String)> {
        let of_this = self.explained.get_mut(&(document, included, id.as_str()));
        let Some(one) = of_this.and_then(VecDeque::pop_front) else { return Vec::new() };
        let lines = report::explanation(one).lines();
        lines.into_iter().map(|(what, text)| (what, visible(&text))).collect()
    }
}

fn kind(source: Option<Source>, role: Option<&'static str>) -> String {
    let source = source.map(report::source);
    let role = role.filter(|role| Some(*role) != source);
    source.into_iter().chain(role).collect::<Vec<_>>().join(" · ")
}

fn lasting(priority: Option<Priority>, ttl: Option<Ttl>) -> Vec<(&'static str, String)> {
    let priority = priority.filter(|priority| *priority != Priority::Normal);
    let ttl = ttl.map(report::ttl);
    let priority = priority.map(|priority| ("priority", priority.name().to_owned()));
    priority.into_iter().chain(ttl.map(|ttl| ("TTL", ttl))).collect()
}

/// Where texts of what is left out are found.
struct Sources<'a> {
    request: &'a PlanRequest<'a>,
    /// The text of each document; none where several share an id.
    documents: BTreeMap<&'a ItemId, Option<&'a str>>,
    notes: BTreeMap<&'a ItemId, &'a str>,
}

impl<'a> Sources<'a> {
    fn new(request: &'a PlanRequest<'a>) -> Self {
        let mut documents = BTreeMap::new();
        for item in &request.rag {
            documents.entry(&item.id).and_modify(|text| *text = None).or_insert(Some(&*item.text));
        }
        let notes = request.log.note_entries().iter().map(|note| (&note.item.id, &*note.item.text)).collect();
        Self { request, documents, notes }
    }

    /// The texts of an excluded row, of a run those of its first and last message; or why there are none.
    fn texts(&self, item: &ExcludedItem, texts: &mut Texts) -> Result<Vec<Piece>, &'static str> {
        const UNKNOWN: &str = "The request has no text for it.";
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
        let mut pieces = message(&item.id).map(|message| texts.of(message)).ok_or(UNKNOWN)?;
        if let Some(last) = item.last_id.as_ref().and_then(message) {
            let first = pieces.into_iter().map(|piece| piece.of("first message"));
            pieces = first.chain(texts.of(last).into_iter().map(|piece| piece.of("last message"))).collect();
        }
        Ok(pieces)
    }
}
