//! Turns and exchanges, kept ready on push. Results are paired with their calls here (rules H1, H3).

use crate::{
    message::{Message, Role},
    meter,
};
use smol_str::SmolStr;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
};

/// The shape of a conversation: which messages form which exchange, which exchanges form which turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    list: Vec<Turn>,
    exchanges: Vec<Exchange>,
    /// What each message is.
    places: Vec<Place>,
    /// Bytes of each message and everything before it (see `meter::bytes`).
    sizes: Vec<u64>,
    /// Unanswered calls by id: the exchange and the calls of it, the newest last.
    open: BTreeMap<SmolStr, Vec<(u32, VecDeque<u32>)>>,
    /// Ids that a result answered.
    answered: BTreeSet<SmolStr>,
    /// Results of the newest turn that came before any call with their id, by id.
    waiting: BTreeMap<SmolStr, VecDeque<u32>>,
    /// The system messages before everything else.
    leading: u32,
    /// Nothing leads any more.
    begun: bool,
    /// The newest turn is archived: what comes next is no part of it.
    closed: bool,
}

/// A non-empty user message and what comes after it, up to the next one.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// The user message; only the first turn can be without one, and one after a turn that is archived.
    head: Option<u32>,
    /// Its first exchange.
    first: u32,
}

/// The smallest unit of a turn that may be kept or left: one message, or a call and all its results.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// The position of its message, or of the message with the calls.
    pub(crate) at: u32,
    /// For each call, the position of its result.
    pub(crate) answers: Vec<Option<u32>>,
    /// Why it can never be sent, if so.
    pub(crate) fault: Option<Fault>,
}

/// Why a message can never be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A result without a call.
    Orphan,
    /// A second result for one call.
    Second,
    /// Nothing in it.
    Empty,
    /// It stands in another exchange: a call that came later claimed it.
    Moved,
}

/// What a message is in the shape of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// One of the system messages before everything else.
    Leading,
    /// The user message that heads this turn.
    Head(u32),
    /// Part of this exchange.
    Exchange(u32),
    /// It is archived, and no part of any turn.
    Archived,
}

impl Exchange {
    /// The positions of its messages, its head first, then the results in log order.
    pub(crate) fn members(&self) -> Vec<u32> {
        let mut members = vec![self.at];
        members.extend(self.answers.iter().flatten());
        members[1..].sort_unstable();
        members
    }
}

impl Turns {
    /// Files the message that is about to become `messages[messages.len()]`.
    pub(super) fn push(&mut self, message: &Message, messages: &[Message]) {
        let position = self.places.len() as u32;
        debug_assert_eq!(position as usize, messages.len());
        self.sizes.push(self.size_before(position) + meter::bytes(message));
        self.file(message, position);
    }

    /// The same turns without what is archived; `kept` of it stays, for a pin, and what was `said` has its answers. What is
    /// active never becomes part of a turn that is archived.
    pub(super) fn without(
        &self,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        kept: impl Fn(u32) -> bool,
        said: impl Fn(u32) -> bool,
    ) -> Self {
        let mut turns = Self { sizes: self.sizes.clone(), ..Self::default() };
        for (message, position) in messages.iter().zip(0..) {
            let archived = is_archived(position);
            if archived && !kept(position) {
                turns.begun = true;
                turns.places.push(Place::Archived);
                // What a summary stands for was said: a call that was answered there is answered.
                if let Some(id) = message.answers().filter(|_| said(position)) {
                    turns.answered.insert(id.into());
                }
                continue;
            }
            turns.closed &= !archived;
            turns.file(message, position);
            let newest = turns.count().checked_sub(1).and_then(|newest| turns.first_of(newest));
            turns.closed |= archived && newest.is_some_and(&is_archived);
        }
        turns
    }

    fn file(&mut self, message: &Message, position: u32) {
        let place = self.place(message, position);
        self.places.push(place);
        if let Place::Exchange(exchange) = place {
            self.pair_calls(exchange, message);
        }
    }

    fn place(&mut self, message: &Message, position: u32) -> Place {
        if !self.begun && message.role().instructs() {
            self.leading = position + 1;
            return Place::Leading;
        }
        self.begun = true;
        if message.role() == Role::User && !message.is_empty() {
            self.waiting.clear();
            self.closed = false;
            self.list.push(Turn { head: Some(position), first: self.exchanges.len() as u32 });
            return Place::Head(self.list.len() as u32 - 1);
        }
        if self.list.is_empty() || self.closed {
            self.closed = false;
            self.list.push(Turn { head: None, first: self.exchanges.len() as u32 });
        }
        let own = self.exchanges.len() as u32;
        let fault = match (message.role(), message.answers()) {
            (Role::Tool, Some(id)) => match self.answer(id, position) {
                Some(exchange) => return Place::Exchange(exchange),
                None => Some(self.unpaired(id, own)),
            },
            (Role::Tool, None) => Some(Fault::Orphan),
            _ => message.is_empty().then_some(Fault::Empty),
        };
        self.exchanges.push(Exchange {
            at: position,
            answers: vec![None; message.tool_calls().len()],
            fault,
        });
        Place::Exchange(own)
    }

    /// Gives a result to the nearest unanswered call with its id, across turns (rule H1).
    fn answer(&mut self, id: &str, position: u32) -> Option<u32> {
        let open = self.open.get_mut(id)?;
        let (exchange, calls) = open.last_mut()?;
        let (exchange, call) = (*exchange, calls.pop_front()?);
        if calls.is_empty() {
            open.pop();
        }
        if open.is_empty() {
            self.open.remove(id);
        }
        self.exchanges[exchange as usize].answers[call as usize] = Some(position);
        self.answered.insert(id.into());
        Some(exchange)
    }

    /// A result that no call waits for: the second one for its call, or one that a later call of this turn may claim.
    fn unpaired(&mut self, id: &str, exchange: u32) -> Fault {
        if self.answered.contains(id) {
            return Fault::Second;
        }
        self.waiting.entry(id.into()).or_default().push_back(exchange);
        Fault::Orphan
    }

    /// Opens the calls of a message; results of this turn that came too early answer them at once.
    fn pair_calls(&mut self, exchange: u32, message: &Message) {
        for (call, tool_call) in message.tool_calls().iter().enumerate() {
            let id = SmolStr::from(tool_call.id.as_str());
            if let Some(early) = self.claim_early_result(&id) {
                let at = self.exchanges[early as usize].at;
                self.exchanges[early as usize].fault = Some(Fault::Moved);
                self.places[at as usize] = Place::Exchange(exchange);
                self.exchanges[exchange as usize].answers[call] = Some(at);
                self.answered.insert(id);
                continue;
            }
            let open = self.open.entry(id).or_default();
            match open.last_mut() {
                Some((last, calls)) if *last == exchange => calls.push_back(call as u32),
                _ => open.push((exchange, VecDeque::from([call as u32]))),
            }
        }
    }

    fn claim_early_result(&mut self, id: &SmolStr) -> Option<u32> {
        let waiting = self.waiting.get_mut(id)?;
        let first = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(id);
        }
        Some(first)
    }

    /// How many turns there are.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// The user message that heads a turn.
    pub(crate) fn head(&self, turn: u32) -> Option<u32> {
        self.list[turn as usize].head
    }

    /// The first message of a turn.
    pub(crate) fn first_of(&self, turn: u32) -> Option<u32> {
        let exchanges = self.exchanges(turn);
        self.head(turn).or_else(|| (!exchanges.is_empty()).then(|| self.exchange(exchanges.start).at))
    }

    /// Where the turn begins that a message is part of; where it is part of none, itself.
    pub(crate) fn start_of(&self, position: u32) -> u32 {
        let turn = match self.places.get(position as usize) {
            Some(Place::Head(turn)) => Some(*turn),
            Some(Place::Exchange(at)) => Some(self.turn_of(*at)),
            _ => None,
        };
        turn.and_then(|turn| self.first_of(turn)).map_or(position, |start| start.min(position))
    }

    /// The exchanges of a turn, those that never can be sent among them.
    pub(crate) fn exchanges(&self, turn: u32) -> Range<u32> {
        let turn = turn as usize;
        let end = self.list.get(turn + 1).map(|next| next.first);
        self.list[turn].first..end.unwrap_or(self.exchanges.len() as u32)
    }

    pub(crate) fn exchange(&self, at: u32) -> &Exchange {
        &self.exchanges[at as usize]
    }

    /// The turn that an exchange belongs to.
    pub(crate) fn turn_of(&self, exchange: u32) -> u32 {
        self.list.partition_point(|turn| turn.first <= exchange) as u32 - 1
    }

    pub(crate) fn place_of(&self, position: u32) -> Place {
        self.places[position as usize]
    }

    /// How many system messages stand before everything else.
    pub(crate) fn leading(&self) -> u32 {
        self.leading
    }

    /// The first message from a position on that is part of a turn.
    pub(crate) fn survivor(&self, position: u32) -> Option<u32> {
        let mut places = self.places.iter().zip(0..).skip(position as usize);
        places.find(|(place, _)| **place != Place::Archived).map(|(_, position)| position)
    }

    /// How many messages there are, archived ones among them.
    pub(crate) fn messages(&self) -> u32 {
        self.places.len() as u32
    }

    /// Whether the only message of an exchange stands in another one now.
    pub(crate) fn is_moved(&self, exchange: u32) -> bool {
        self.exchange(exchange).fault == Some(Fault::Moved)
    }

    /// Whether an exchange can never be sent.
    pub(crate) fn is_faulty(&self, exchange: Option<u32>) -> bool {
        exchange.is_some_and(|at| self.exchange(at).fault.is_some())
    }

    /// From the first to behind the last message of each exchange that has more than one.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Range<u32>> {
        let span = |exchange: &Exchange| {
            let members = exchange.members();
            let first = members.iter().min().copied().unwrap_or(exchange.at);
            let last = members.iter().max().copied().unwrap_or(exchange.at);
            first..last + 1
        };
        self.exchanges.iter().filter(|exchange| !exchange.answers.is_empty()).map(span)
    }

    /// Bytes of the messages in a range of positions, known without reading them (rule N5).
    pub(crate) fn bytes(&self, range: &Range<u32>) -> u64 {
        self.size_before(range.end) - self.size_before(range.start)
    }

    fn size_before(&self, position: u32) -> u64 {
        let last = position.checked_sub(1);
        last.map_or(0, |last| self.sizes[last as usize])
    }

    /// The first turn of what the model is still at: the newest one, and those before it while nothing but user messages
    /// stands between their results and it.
    pub(crate) fn worked_on_from(&self) -> u32 {
        // Whether the last exchange of a turn that can be sent has calls; none where the turn is a user message alone.
        let ends_with_results = |turn: u32| {
            let last = self.exchanges(turn).rev().find(|at| self.exchange(*at).fault.is_none());
            last.map(|last| !self.exchange(last).answers.is_empty())
        };
        let newest = self.count().saturating_sub(1);
        let mut from = newest;
        for turn in (0..newest).rev() {
            match ends_with_results(turn) {
                Some(true) => from = turn,
                Some(false) => break,
                None => {}
            }
        }
        from
    }

    /// The last exchange with calls of the newest turn, when no assistant message with anything in it comes after.
    pub(crate) fn open_exchange(&self, messages: &[Message]) -> Option<u32> {
        let newest = self.count().checked_sub(1)?;
        self.exchanges(newest).rev().find_map(|at| {
            let exchange = self.exchange(at);
            let message = &messages[exchange.at as usize];
            let speaks = exchange.fault.is_none() && message.role() == Role::Assistant;
            speaks.then(|| (!message.tool_calls().is_empty()).then_some(at))
        })?
    }
}
