//! Documents and state that stay where they were sent (rule S10): part of the question or the exchange that they stand
//! before. What the request brings again of them is no candidate: it is there already.

use super::{CandidateId, Candidates};
use crate::{
    conversation::{Conversation, SentText},
    item::{ItemId, ItemKind, RagItem},
    message::{Message, Role, Tool},
    plan::{
        NewState, PlannedItem, TOOLS, Upkeep,
        anchor::{SentAgain, Sticky},
    },
    planner::{late, rendering::ToolResultRendering, request::PlanRequest},
    provider::{meter::Meter, render, wording},
};
use std::collections::{BTreeMap, BTreeSet};

/// What stands where it was sent.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Whether anything does.
    pub(crate) stays: bool,
    /// What stands before this position is no longer sent.
    pub(crate) released_before: u32,
    /// New documents come last, because their question was sent without them.
    pub(crate) documents_come_last: bool,
    /// What documents and state of earlier questions cost (rule S11).
    pub(crate) upkeep: Option<Upkeep>,
    /// Documents that the request brings again, with the positions of the messages after them.
    pub(super) documents: BTreeMap<ItemId, u32>,
    /// Documents of the request that do not stand already.
    new_documents: BTreeSet<ItemId>,
    /// State that the request brings again, with the ids of the rows in which it stands.
    pub(super) state: BTreeMap<ItemId, ItemId>,
    /// The live question, while nothing was answered to it: what it was sent with is chosen anew.
    unanswered: Option<u32>,
}

impl Standing {
    /// What stands of what was sent, for a request that is planned with `stays`.
    pub(super) fn of(
        request: &PlanRequest<'_>,
        sticky: Sticky<'_>,
        stays: bool,
        state_comes_last: bool,
    ) -> Self {
        if !stays {
            return Self::default();
        }
        let log = request.log;
        let live = log.live_question();
        let answered = log.live_turn().is_some_and(|turn| !log.turns().exchanges(turn).is_empty());
        let released_before =
            sticky.released_through.and_then(|id| log.position_of(id)).map_or(0, |position| position + 1);
        let mut standing = Self {
            stays,
            released_before,
            unanswered: live.filter(|_| !answered),
            upkeep: sticky.upkeep,
            ..Self::default()
        };
        // A caller who keeps the anchor, and not what was sent, brings the documents of the question again.
        let brings_the_set = request.previous.is_some()
            && !sticky.rag.is_empty()
            && !sticky.rag.iter().any(|id| standing.documents_of(log, id).next().is_some());
        let has_documents = live.is_some_and(|live| !log.sent_with().documents(live).is_empty());
        standing.documents_come_last =
            answered && (sticky.question_sent || has_documents) && state_comes_last && !brings_the_set;
        standing
    }

    /// Whether documents that were sent with this question are sent still, or what was sent before this reply.
    pub(super) fn holds(&self, log: &Conversation, position: u32) -> bool {
        position >= self.released_before
            && self.unanswered != Some(position)
            && position < log.turns().messages()
            && log.archive_index().archived(position).is_none()
    }

    /// Returns the documents of this id that are sent as they were, with their places.
    fn documents_of<'l>(
        &'l self,
        log: &'l Conversation,
        id: &'l ItemId,
    ) -> impl Iterator<Item = (u32, &'l SentText)> {
        let places = log.sent_with().documents_of(id).filter(|_| self.stays);
        places.filter(|(at, _)| self.holds(log, *at))
    }

    /// Returns true if the request brings something again that stands already.
    pub(crate) fn brings_again(&self) -> bool {
        !self.documents.is_empty() || !self.state.is_empty()
    }

    /// Returns the position of the message after a document. Returns `None` if the request does not bring it again.
    pub(crate) fn place_of(&self, id: &ItemId) -> Option<u32> {
        self.documents.get(id).copied()
    }

    /// The live question, while nothing was answered to it.
    pub(super) fn unanswered(&self) -> Option<u32> {
        self.unanswered
    }

    /// Takes note of the documents that the request brings again, and returns the others' places in the request.
    pub(super) fn new_documents(
        &mut self,
        log: &Conversation,
        items: &[RagItem],
        again: &SentAgain,
        meter: &Meter,
    ) -> Vec<usize> {
        let mut new = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let is_it = |(_, sent): &(u32, &SentText)| sent.text == meter.fenced(item);
            let place = self.documents_of(log, &item.id).find(is_it).map(|(place, _)| place);
            let goes_again = again.documents.contains(&item.id);
            if let Some(place) = place.filter(|_| !goes_again) {
                self.documents.insert(item.id.clone(), place);
            } else {
                // Only beside one of its id that stays does it matter.
                if self.stays && log.sent_with().documents_of(&item.id).next().is_some() {
                    self.new_documents.insert(item.id.clone());
                }
                new.push(at);
            }
        }
        new
    }

    /// Whether a piece of state stands already: then it is taken note of.
    pub(super) fn has_state(
        &mut self,
        log: &Conversation,
        id: &ItemId,
        text: &str,
        again: &SentAgain,
    ) -> bool {
        if again.state.contains(id) {
            return false;
        }
        let newest = log.sent_with().state_of(id).find(|(at, _)| self.holds(log, *at));
        let standing = newest.filter(|(_, sent)| sent.text == text);
        if let Some((at, _)) = standing {
            self.state.insert(id.clone(), state_row(id, at));
        }
        standing.is_some()
    }
}

/// The row of a piece of state that stays: its id, and the position of the reply that it stands before.
pub(crate) fn state_row(id: &ItemId, reply: u32) -> ItemId {
    ItemId::from(format!("{id}@{reply}"))
}

impl<'a> Candidates<'a> {
    /// What stands where it was sent.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The documents that stand before a candidate, whose texts before `released_before` are no longer sent.
    pub(crate) fn documents_before(&self, id: CandidateId, released_before: u32) -> &'a [SentText] {
        match self.stands_at(id, released_before) {
            Some(at) => self.log.sent_with().documents(at),
            None => &[],
        }
    }

    /// The row of each of the documents that stand before a message. The newest document of an id goes by it, one of the
    /// request before one that stands; an older one by the position of its message, too (rule O5).
    pub(crate) fn document_rows<'d>(
        &'d self,
        documents: &'d [SentText],
        at: u32,
    ) -> impl Iterator<Item = ItemId> + 'd {
        documents.iter().enumerate().map(move |(nth, sent)| {
            let places = self.log.sent_with().documents_of(&sent.id);
            let newer = places.take_while(|(other, _)| *other > at);
            let is_newest = !newer.into_iter().any(|(other, _)| self.standing.holds(self.log, other))
                && (!self.standing.new_documents.contains(&sent.id)
                    || self.standing.documents.contains_key(&sent.id));
            match documents[..nth].iter().filter(|other| other.id == sent.id).count() {
                0 if is_newest => sent.id.clone(),
                0 => ItemId::from(format!("{}@{at}", sent.id)),
                same => ItemId::from(format!("{}@{at}#{}", sent.id, same + 1)),
            }
        })
    }

    /// The state that stands before an exchange, as it is sent.
    pub(crate) fn state_before(&self, id: CandidateId, released_before: u32) -> Vec<(&'a ItemId, Message)> {
        let state = match (id, self.stands_at(id, released_before)) {
            (CandidateId::Exchange(_), Some(at)) => self.log.sent_with().state(at),
            _ => &[],
        };
        state.iter().filter_map(|sent| Some((&sent.id, self.as_it_was_sent(sent)?))).collect()
    }

    /// State as it was sent; none for what is in the head now (rule S12).
    fn as_it_was_sent(&self, sent: &SentText) -> Option<Message> {
        if sent.id.as_str() == TOOLS && !self.request.state.iter().any(|(id, _)| id.as_str() == TOOLS) {
            return self.late.has_tools(&sent.text).then(|| self.late_tools(&sent.text));
        }
        if self.log.system().iter().any(|text| text.id() == Some(&sent.id)) {
            return self.late.is_late(&sent.id).then(|| Message::system(&*sent.text));
        }
        Some(Message::user(&*sent.text))
    }

    fn late_tools(&self, text: &str) -> Message {
        let tools = late::remembered(text);
        render::added_tools(self.profile.wire_format(), &self.profile.tools(&tools))
    }

    /// Whether a system text is sent behind the head: there already, or from now on.
    pub(super) fn is_late(&self, id: &ItemId, text: &str, again: &SentAgain) -> bool {
        let stands = || {
            let mut places =
                self.log.sent_with().state_of(id).filter(|(at, _)| self.standing.holds(self.log, *at));
            let left = again.state.contains(id);
            !left && places.any(|(_, sent)| sent.text == text)
        };
        self.late.is_late(id) && (self.late.takes_more || stands())
    }

    /// What joined the head since its beginning was sent: at the end, instructions after state.
    pub(super) fn send_late(&mut self, again: &SentAgain) {
        for text in self.log.system() {
            let Some(id) = text.id().filter(|id| !text.is_empty() && self.is_late(id, text.text(), again))
            else {
                continue;
            };
            let said = text.text();
            if !self.standing.has_state(self.log, id, said, again) {
                self.send_from_now_on(id, Some(said.to_owned()), Message::system(said));
            }
        }
        let id = ItemId::from(TOOLS);
        let log = self.log;
        let stands = log.sent_with().state_of(&id).filter(|(at, _)| self.standing.holds(log, *at));
        let stands = stands.map(|(at, sent)| (state_row(&id, at), sent.text.as_str()));
        let is_there = |row: &ItemId| !again.state.contains(row);
        let stands = stands.filter(|(row, text)| is_there(row) && self.late.has_tools(text));
        let (rows, texts): (Vec<ItemId>, Vec<&str>) = stands.unzip();
        let new = self.late.new_tools(&self.profile, texts.into_iter());
        self.standing.state.extend(rows.into_iter().map(|row| (row.clone(), row)));
        if let Some(text) = new {
            let message = self.late_tools(&text);
            self.send_from_now_on(&id, Some(text), message);
        }
    }

    /// Sends a piece of state that stays before the reply, whose position is the number of messages so far.
    pub(super) fn send_from_now_on(&mut self, id: &ItemId, text: Option<String>, message: Message) {
        let row = state_row(id, self.log.turns().messages());
        self.new_state.insert(row.clone(), NewState { id: id.clone(), text });
        self.state.push((row, message));
    }

    /// The documents and the state that stand before the message at a position.
    pub(crate) fn standing_before(&self, position: u32) -> (Vec<SentText>, Vec<SentText>) {
        let sent_with = self.log.sent_with();
        if !self.standing.stays || !self.standing.holds(self.log, position) {
            return (Vec::new(), Vec::new());
        }
        // Instructions and tools are in the head of the other request.
        let is_state =
            |sent: &&SentText| self.as_it_was_sent(sent).is_some_and(|sent| sent.role() == Role::User);
        let state = sent_with.state(position).iter().filter(is_state).cloned().collect();
        (sent_with.documents(position).to_vec(), state)
    }

    /// The rows of the state that stands before a candidate.
    pub(crate) fn state_rows_before(&self, id: CandidateId, released_before: u32) -> Vec<ItemId> {
        let Some(at) = self.stands_at(id, released_before) else { return Vec::new() };
        self.state_before(id, released_before).into_iter().map(|(id, _)| state_row(id, at)).collect()
    }

    pub(crate) fn stands_at(&self, id: CandidateId, released_before: u32) -> Option<u32> {
        let turns = self.log.turns();
        let at = match id {
            CandidateId::UserMessage(turn) => turns.head(turn)?,
            CandidateId::Exchange(at) => turns.exchange(at).at,
            _ => return None,
        };
        let standing = &self.standing;
        (standing.stays && at >= released_before && standing.holds(self.log, at)).then_some(at)
    }

    /// The messages that are sent before those of a candidate.
    pub(super) fn sent_before(&self, id: CandidateId, released_before: u32) -> Vec<Message> {
        if !self.standing.stays {
            return Vec::new();
        }
        let documents = self.documents_before(id, released_before);
        let block = (!documents.is_empty()).then(|| Message::user(block(documents)));
        let state = self.state_before(id, released_before);
        block.into_iter().chain(state.into_iter().map(|(_, message)| message)).collect()
    }

    /// The state that is sent anew and stays, by its rows.
    pub(crate) fn new_state(&self) -> &BTreeMap<ItemId, NewState> {
        &self.new_state
    }

    /// The tools that are declared before the messages.
    pub(crate) fn tools_on_top(&self) -> &'a [Tool] {
        self.late.on_top(self.request.tools)
    }
}

impl Candidates<'_> {
    /// What the request brings again of what stands, and what has no row in a prompt.
    pub(crate) fn missing(&self, rows: &[PlannedItem]) -> SentAgain {
        let standing =
            |id: &ItemId, is: fn(&PlannedItem) -> bool| rows.iter().any(|row| row.id == *id && is(row));
        // Beside a newer one of its id, a document goes by its place, too (O5).
        let row_of = |id: &ItemId, at: u32| {
            let documents = self.log.sent_with().documents(at);
            let mut rows = documents.iter().zip(self.document_rows(documents, at));
            rows.find(|(sent, _)| sent.id == *id).map(|(_, row)| row)
        };
        let is_sent =
            |id: &ItemId, at| row_of(id, at).is_some_and(|row| standing(&row, |row| row.kind.is_document()));
        let documents = self.standing.documents.iter().filter(|(id, at)| !is_sent(id, **at));
        let documents = documents.map(|(id, _)| id);
        let state = self.standing.state.iter();
        let state = state.filter(|(_, row)| !standing(row, |row| row.kind == ItemKind::State));
        SentAgain {
            documents: documents.cloned().collect(),
            state: state.map(|(id, _)| id.clone()).collect(),
        }
    }

    /// Returns a rendering without the retained texts before a position. Returns `None` if there are none.
    pub(super) fn release_before(
        &self,
        position: u32,
        rendering: &ToolResultRendering,
    ) -> Option<ToolResultRendering> {
        let before = rendering.released_before;
        if !self.standing.stays || position <= before {
            return None;
        }
        let mut within = self.log.sent_with().within(before..position);
        let any = within.any(|(at, _)| self.standing.holds(self.log, at));
        any.then(|| ToolResultRendering {
            released_before: position,
            releases: true,
            cuts: true,
            ..rendering.clone()
        })
    }

    /// Returns the last message whose retained texts are no longer sent. Returns `None` if there is none.
    pub(crate) fn released_through(&self, rendering: &ToolResultRendering) -> Option<ItemId> {
        rendering.released_before.checked_sub(1).map(|last| self.log.message_id(last))
    }

    /// Returns the documents and the state that leave with a rendering.
    pub(crate) fn left_by(&self, rendering: &ToolResultRendering) -> impl Iterator<Item = ItemId> {
        let left = self.standing.released_before..rendering.released_before;
        let within = self.log.sent_with().within(left);
        within.filter(|(at, _)| self.standing.holds(self.log, *at)).map(|(_, sent)| sent.id.clone())
    }
}

/// Documents that were sent, in one text.
pub(crate) fn block(documents: &[SentText]) -> String {
    let texts = documents.iter().map(|document| &*document.text);
    [wording::BLOCK_OPEN].into_iter().chain(texts).chain([wording::BLOCK_CLOSE]).collect()
}
