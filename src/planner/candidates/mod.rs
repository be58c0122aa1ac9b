//! Who may come in, and in which order. [`Pool`] holds the bodies; selection sees handles and weights only.

use crate::{
    config::{Config, ToolResults},
    conversation::{Conversation, Place},
    error::Error,
    item::{ItemId, RagItem, Section, Source, Ttl},
    message::{Message, Role},
    plan::{
        anchor::{Anchor, Sticky},
        reason::{ExcludedReason, IncludedReason, PolicyRule},
    },
    planner::{
        expiry::{Expiry, Fate},
        repair,
        request::PlanRequest,
    },
    provider::{conform::Standing, meter::Meter, wording},
};
use std::collections::{BTreeMap, BTreeSet};

mod documents;
mod pins;
mod shelf;
mod summaries;
mod trace;
mod results;
mod scale;
mod sizes;
mod traced;

pub(crate) use documents::Document;
pub(crate) use pins::Pin;
pub(crate) use results::{Results, Shortened};
pub(crate) use scale::Scale;
#[cfg(test)]
pub(crate) use shelf::Shelf;
pub(crate) use sizes::{List, Sizes};
use summaries::Summary;
pub(crate) use trace::{Basis, Quantity, Trace};
pub(crate) use traced::Scope;

/// A handle on a candidate: a number, no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unit {
    /// A system text, or a leading system message.
    System(u32),
    Focus,
    State(u32),
    Note(u32),
    /// The summary of this place among those that are sent.
    Summary(u32),
    /// The user message that heads this turn.
    Head(u32),
    /// The exchange of this number.
    Exchange(u32),
    /// The document of this rank. Documents order last: the kept ones are the end of a map.
    Document(u32),
}

impl Unit {
    /// What a message of the conversation belongs to; nothing where it leads.
    pub(crate) fn of(place: Place) -> Option<Self> {
        match place {
            Place::Leading | Place::Archived => None,
            Place::Head(turn) => Some(Self::Head(turn)),
            Place::Exchange(at) => Some(Self::Exchange(at)),
        }
    }
}

/// Every candidate of one request, in the orders in which they are offered.
pub(crate) struct Pool<'a> {
    log: &'a Conversation,
    request: &'a PlanRequest<'a>,
    config: &'a Config,
    expiry: Expiry<'a>,
    system: Vec<(ItemId, Message)>,
    state: Vec<(ItemId, Message)>,
    /// The summaries that stand for archived messages, each with its place in the prompt.
    summaries: Vec<Summary>,
    focus: Option<Message>,
    documents: Vec<Document>,
    /// The ranks of those that nothing keeps out before it is weighed: they compete, in this order.
    competing: Vec<u32>,
    /// How many of the documents, from the first, are the set that stays while the live question does (rule S5).
    pub(crate) sticky_documents: Option<u32>,
    /// Where the last prompt's window started, if that still holds (rule S5).
    pub(crate) window_start: Option<Unit>,
    /// Why the last prompt's window is not continued, where there was one.
    pub(crate) lost_window: Option<&'static str>,
    /// The first turn of what the model is still at: the live turn, and those before it while nothing stands between
    /// their results and the next user message. What it thought there goes back with it.
    live_from: u32,
    /// State stands at the end of the prompt; otherwise before the live question (rule O1).
    pub(crate) state_comes_last: bool,
    /// Results before this position were sent as stubs (rule S7).
    cleared_before: Option<u32>,
    /// The exchange whose results the conversation still waits for.
    pub(crate) open: Option<u32>,
    /// System texts, focus hint and state (rule S1).
    pub(crate) required_system: Vec<Unit>,
    /// The live question and the open exchange, or what stands in for them.
    pub(crate) required_conversation: Vec<Unit>,
    /// In the order of rule S2.
    pub(crate) pins: Vec<Pin>,
    pins_are_notes: bool,
    /// For each pinned exchange, the user message it brings.
    brought: BTreeMap<Unit, Option<Unit>>,
    /// Pins that expired or can never be sent.
    pub(crate) dead_pins: BTreeMap<Unit, ExcludedReason>,
    /// System texts and state with nothing in them.
    pub(crate) empty_texts: Vec<(ItemId, Source)>,
    /// Leading system messages with nothing in them.
    pub(crate) empty_leading: Vec<u32>,
}

/// The focus hint's id.
const FOCUS: &str = "focus";

impl<'a> Pool<'a> {
    /// Gathers the candidates: required items, pins and documents in order. The conversation itself is not walked.
    ///
    /// # Errors
    ///
    /// Ids used twice (rule O5), scores that are no numbers (S8), pinned calls without results that are to be
    /// rejected (H2), and counters that fail.
    pub(crate) fn gather(
        request: &'a PlanRequest<'a>,
        config: &'a Config,
        meter: &Meter,
        sticky: Sticky<'_>,
    ) -> Result<Self, Error> {
        let log = request.log;
        let expiry = Expiry::new(log, config.ttl.policy);
        let (documents, sticky_documents) =
            documents::in_order(&request.rag, sticky.rag, &config.rag, &expiry, meter)?;
        let mut pool = Self {
            log,
            request,
            config,
            competing: documents
                .iter()
                .zip(0..)
                .filter(|(one, _)| one.out.is_none())
                .map(|(_, rank)| rank)
                .collect(),
            documents,
            sticky_documents,
            window_start: None,
            lost_window: sticky.lost,
            live_from: log.turns().worked_on_from(),
            state_comes_last: meter.profile().takes_state_last(),
            cleared_before: sticky.cleared_before.and_then(|id| log.position_of(id)),
            expiry,
            system: Vec::new(),
            state: Vec::new(),
            summaries: summaries::of(log),
            focus: request.focus.as_deref().filter(|hint| !hint.trim().is_empty()).map(wording::focus),
            open: log.open_exchange(),
            required_system: Vec::new(),
            required_conversation: Vec::new(),
            pins: Vec::new(),
            pins_are_notes: true,
            brought: BTreeMap::new(),
            dead_pins: BTreeMap::new(),
            empty_texts: Vec::new(),
            empty_leading: Vec::new(),
        };
        let start = sticky.window_start.and_then(|id| log.position_of(id));
        pool.window_start = start.and_then(|position| pool.survivor(position));
        let archived = start.is_some_and(|position| log.archive_index().archived(position).is_some());
        if sticky.window_start.is_some() && pool.window_start.is_none() && !archived {
            pool.lost_window = Some("its first message is not in this conversation");
        }
        pool.check_ids(&[])?;
        pool.require_system();
        pool.require_conversation()?;
        pool.order_pins()?;
        Ok(pool)
    }

    /// Fails on an id that is used twice among the log, focus hint, state and made-up results (rule O5).
    pub(crate) fn check_ids(&self, made_up: &[ItemId]) -> Result<(), Error> {
        let focus = self.focus.as_ref().map(|_| ItemId::from(FOCUS));
        let focus = focus.iter().map(|id| (id, "the focus hint"));
        let state = self.request.state.iter().map(|(id, _)| (id, "a piece of state"));
        let made_up = made_up.iter().map(|id| (id, "a placeholder result"));
        let summaries = self.summary_ids().map(|id| (id, "a summary"));
        self.log.check_ids(focus.chain(state).chain(summaries).chain(made_up))
    }

    /// What is in whatever happens, each unit once: who pays for it, and why (rules S1, S2, S6).
    pub(crate) fn minimum(&self) -> Vec<(Unit, Section, IncludedReason)> {
        let why = |unit: &Unit| match unit {
            Unit::Summary(_) => IncludedReason::Summary,
            _ => IncludedReason::Required,
        };
        let required = |section| move |unit: &Unit| (*unit, section, why(unit));
        let conversation = self.required_conversation.iter().map(required(Section::Conversation));
        let system = self.required_system.iter().map(required(Section::SystemPinned));
        let pins = self.pins.iter().filter(|pin| pin.undroppable);
        let pinned = pins
            .flat_map(|pin| [Some(pin.unit), pin.brings])
            .flatten()
            .map(|unit| (unit, Section::SystemPinned, IncludedReason::Pinned));
        let mut seen = BTreeSet::new();
        conversation.chain(system).chain(pinned).filter(|(unit, ..)| seen.insert(*unit)).collect()
    }

    /// Whether state would be merged into the live question if there were nothing but the minimum (rule O1).
    pub(crate) fn merges_in_the_minimum(&self) -> bool {
        if !self.state_comes_last {
            return false;
        }
        let Some(Unit::Head(live)) = self.live_question() else { return false };
        if self.summary_follows_the_question() {
            return false;
        }
        let exchanges = self.log.turns().exchanges(live);
        let follows = |unit: Unit| matches!(unit, Unit::Exchange(at) if exchanges.contains(&at));
        !self.minimum().into_iter().any(|(unit, ..)| follows(unit))
    }

    /// What the whole prompt rests on, paid by `system_pinned` (rule S1).
    fn require_system(&mut self) {
        for text in self.log.system() {
            let id = text.given_id().cloned().unwrap_or_else(|| ItemId::from(""));
            if text.is_empty() {
                self.empty_texts.push((id, Source::System));
            } else {
                self.system.push((id, text.clone()));
            }
        }
        for position in 0..self.log.turns().leading() {
            let message = self.log.message(position);
            if message.is_empty() {
                self.empty_leading.push(position);
            } else {
                self.system.push((self.log.message_id(position), message.clone()));
            }
        }
        for (id, text) in &self.request.state {
            if text.trim().is_empty() {
                self.empty_texts.push((id.clone(), Source::State));
            } else {
                self.state.push((id.clone(), Message::user(wording::state(id.as_str(), text))));
            }
        }
        self.required_system = (0..self.system.len() as u32)
            .map(Unit::System)
            .chain(self.focus.iter().map(|_| Unit::Focus))
            .chain((0..self.state.len() as u32).map(Unit::State))
            .collect();
    }

    /// The live question and the open exchange; without any user message, the newest exchange (rule S1).
    fn require_conversation(&mut self) -> Result<(), Error> {
        let mut required = self.live_units()?;
        // A summary stays, and so does the question that stands before it (rule O1).
        for (placed, at) in self.log.archive_index().summaries().zip(0..) {
            let active = |head: &u32| self.log.archive_index().archived(*head).is_none();
            let head = placed.head.filter(active).and_then(|head| self.unit_of(head));
            required.extend(head.filter(|head| !required.contains(head)));
            required.push(Unit::Summary(at));
        }
        self.required_conversation = required;
        Ok(())
    }

    /// The live question and the open exchange, or what stands in for them.
    fn live_units(&self) -> Result<Vec<Unit>, Error> {
        let turns = self.log.turns();
        let Some(live) = self.log.live_turn() else { return Ok(Vec::new()) };
        let repair = self.config.conversation.repair;
        let sound = |at: &u32| match repair::refused(self.log, turns.exchange(*at), repair) {
            Ok(refusal) => refusal.is_none().then_some(Ok(*at)),
            Err(error) => Some(Err(error)),
        };
        let mut required: Vec<Unit> = Vec::new();
        match turns.head(live) {
            Some(_) => required.push(Unit::Head(live)),
            None => {
                let newest = turns.exchanges(live).rev().find_map(|at| sound(&at));
                required.extend(newest.transpose()?.map(Unit::Exchange));
            }
        }
        let open = self.open.as_ref().and_then(sound).transpose()?.map(Unit::Exchange);
        required.extend(open.filter(|open| required.first() != Some(open)));
        Ok(required)
    }

    /// A turn's user message, unless it has expired.
    fn live_head(&self, turn: u32) -> Option<Unit> {
        self.log.turns().head(turn)?;
        let unit = Unit::Head(turn);
        let dead = matches!(self.expiry.messages(&self.members(unit)), Fate::Out(_));
        (self.required_conversation.contains(&unit) || !dead).then_some(unit)
    }

    fn is_pinned(&self, members: &[u32]) -> bool {
        let pins = self.log.pins();
        !pins.is_empty() && members.iter().any(|position| pins.contains_key(position))
    }

    /// What becomes of a message or exchange that the walk examines, before it is weighed.
    pub(crate) fn fate(&self, unit: Unit) -> Result<Fate, Error> {
        let (at, members) = match unit {
            Unit::Note(at) => return Ok(self.expiry.note(&self.log.notes()[at as usize].item.id)),
            Unit::Document(rank) => {
                let item = self.document(rank);
                return Ok(self.expiry.document(&item.id, item.ttl));
            }
            Unit::System(_) | Unit::Focus | Unit::State(_) | Unit::Summary(_) => return Ok(Fate::Lives),
            Unit::Head(_) => (None, self.members(unit)),
            Unit::Exchange(at) => (Some(at), self.members(unit)),
        };
        if let Some(at) = at {
            let exchange = self.log.turns().exchange(at);
            let repair = self.config.conversation.repair;
            if let Some(rule) = repair::refused(self.log, exchange, repair)? {
                return Ok(Fate::Out(ExcludedReason::Policy(rule)));
            }
        }
        if self.required_conversation.contains(&unit) {
            return Ok(Fate::Lives);
        }
        if let Some(by) = self.archived(&members) {
            return Ok(Fate::Out(by));
        }
        let own = self.expiry.messages(&members);
        if let (Fate::Lives | Fate::Asks(_), Some(at)) = (&own, at) {
            let turn = self.log.turns().turn_of(at);
            let head = self.log.turns().head(turn);
            if head.is_some() && self.live_head(turn).is_none() && !self.is_pinned(&members) {
                return self.fate(Unit::Head(turn));
            }
        }
        Ok(own)
    }

    /// The positions of the messages that a unit stands for.
    pub(crate) fn members(&self, unit: Unit) -> Vec<u32> {
        let turns = self.log.turns();
        match unit {
            Unit::Head(turn) => turns.head_members(turn),
            Unit::Exchange(at) => turns.exchange(at).members(),
            _ => Vec::new(),
        }
    }

    /// Where the messages of a unit stand: what a target takes of them depends on that.
    pub(crate) fn standing(&self, unit: Unit) -> Standing {
        let turn = match unit {
            Unit::Head(turn) => turn,
            Unit::Exchange(at) => self.log.turns().turn_of(at),
            Unit::State(_) | Unit::Document(_) => return Standing::Live,
            Unit::System(_) | Unit::Focus | Unit::Note(_) => return Standing::Head,
            Unit::Summary(_) => return Standing::Past,
        };
        if turn >= self.live_from { Standing::Live } else { Standing::Past }
    }

    /// A user message with calls, or a result of one, as the text of the user that it is sent as (rule H9).
    pub(crate) fn as_text_of_the_user(&self, position: u32) -> Option<Message> {
        let turns = self.log.turns();
        let Place::Head(turn) = turns.place_of(position) else { return None };
        if !turns.head_calls(turn) {
            return None;
        }
        let head = self.log.message(turns.head(turn)?);
        let calls = head.tool_calls();
        let number = |nth: usize| (calls.len() > 1).then_some(nth + 1);
        if turns.head(turn) == Some(position) {
            return Some(head.with_calls_as_texts(|nth, call| wording::user_call(call, number(nth))));
        }
        let result = self.log.message(position);
        let nth = turns.head_call(turn, position).and_then(number);
        Some(result.as_a_users(|text| wording::user_result(text, result.is_failed(), nth)))
    }

    /// The same for a message of the log.
    pub(crate) fn standing_of(&self, position: u32) -> Standing {
        self.unit_of(position).map_or(Standing::Head, |unit| self.standing(unit))
    }

    /// The user message that a pin brings, for a unit that is one.
    pub(crate) fn brought_by(&self, unit: Unit) -> Option<Unit> {
        self.brought.get(&unit).copied().flatten()
    }

    /// The unit that a message of the conversation belongs to.
    pub(crate) fn unit_of(&self, position: u32) -> Option<Unit> {
        Unit::of(self.log.turns().place_of(position))
    }

    pub(crate) fn log(&self) -> &'a Conversation {
        self.log
    }

    /// Why what a compaction archived is out, though a pin may keep it.
    fn archived(&self, members: &[u32]) -> Option<ExcludedReason> {
        let archive_index = self.log.archive_index();
        if archive_index.is_whole() {
            return None;
        }
        members.iter().find_map(|position| archive_index.archived(*position)).map(ExcludedReason::from)
    }

    /// What the message at a position belongs to, or the first one after it that is still sent.
    fn survivor(&self, position: u32) -> Option<Unit> {
        let mut at = self.log.turns().survivor(position)?;
        while self.log.archive_index().archived(at).is_some() {
            at = self.log.turns().survivor(at + 1)?;
        }
        self.unit_of(at)
    }

    /// Where a unit of the conversation stands in the prompt.
    pub(crate) fn order_of(&self, unit: Unit) -> Option<(u32, u8, u32)> {
        match unit {
            Unit::Summary(at) => Some(self.summaries[at as usize].order),
            Unit::Exchange(at) => Some(self.log.order_of(self.log.turns().exchange(at).at)),
            other => self.members(other).first().map(|position| self.log.order_of(*position)),
        }
    }

    /// The prompt before this one, where that is remembered.
    pub(crate) fn last_prompt(&self) -> Option<&'a Anchor> {
        let anchor = self.request.previous.as_ref().or(self.log.anchor());
        anchor.filter(|anchor| anchor.prompt.is_some())
    }

    pub(crate) fn request(&self) -> &'a PlanRequest<'a> {
        self.request
    }

    pub(crate) fn ttl_of(&self, id: &ItemId) -> Option<Ttl> {
        self.log.lifetime(id).map(|lifetime| lifetime.left)
    }

    pub(crate) fn system(&self, at: u32) -> &(ItemId, Message) {
        &self.system[at as usize]
    }

    pub(crate) fn state(&self, at: u32) -> &(ItemId, Message) {
        &self.state[at as usize]
    }

    pub(crate) fn states(&self) -> u64 {
        self.state.len() as u64
    }

    pub(crate) fn focus(&self) -> Option<(ItemId, &Message)> {
        self.focus.as_ref().map(|focus| (FOCUS.into(), focus))
    }

    pub(crate) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Whether a unit comes in by the walk of rules S4 and S5 alone, once all that is newer is in: where nothing else takes
    /// what is left over, or gives it back.
    pub(crate) fn is_a_goal(&self, unit: Unit) -> bool {
        let walked = matches!(unit, Unit::Head(_) | Unit::Exchange(_));
        let alone =
            self.competing.is_empty() && self.state.is_empty() && self.pins.iter().all(|pin| pin.undroppable);
        let required = self.minimum().into_iter().any(|(one, ..)| one == unit);
        walked && alone && !required
    }

    /// Whether all pins are notes, so that each is weighed for itself and none brings anything along.
    pub(crate) fn pins_are_notes(&self) -> bool {
        self.pins_are_notes
    }

    /// How many documents compete when the set of the last prompt is no matter.
    pub(crate) fn places(&self) -> u32 {
        self.competing.len() as u32
    }

    /// The rank of the document at this place among those that compete.
    pub(crate) fn rank_at(&self, place: u32) -> u32 {
        self.competing[place as usize]
    }

    /// The documents that compete: those that stay while the live question does, or all.
    pub(crate) fn competing_documents(&self) -> impl Iterator<Item = (Unit, &Document)> {
        let competing = self.sticky_documents.unwrap_or(u32::MAX) as usize;
        let documents = self.documents.iter().zip(0..).take(competing);
        documents
            .filter(|(document, _)| document.out.is_none())
            .map(|(document, rank)| (Unit::Document(rank), document))
    }

    pub(crate) fn document(&self, rank: u32) -> &'a RagItem {
        &self.request.rag[self.documents[rank as usize].at]
    }

    /// The turn that this request is about.
    pub(crate) fn live_turn(&self) -> Option<u32> {
        self.log.live_turn()
    }

    /// Whether a live question is there at all, for state to be merged into.
    pub(crate) fn live_question(&self) -> Option<Unit> {
        let live = self.live_turn()?;
        self.log.turns().head(live).map(|_| Unit::Head(live))
    }

    /// Whether old tool results are to be cleared (rule S7).
    pub(crate) fn clears_results(&self) -> bool {
        self.config.conversation.tool_results == ToolResults::Clear
    }

    /// The live question's id.
    pub(crate) fn live_id(&self) -> Option<ItemId> {
        self.log.live_question().map(|position| self.log.message_id(position))
    }

    /// Who speaks in a message.
    pub(crate) fn role_of(&self, position: u32) -> Role {
        self.log.message(position).role()
    }

    /// Why a message can never be sent: nothing in it.
    pub(crate) fn empty_message() -> ExcludedReason {
        ExcludedReason::Policy(PolicyRule::EmptyMessage)
    }
}
