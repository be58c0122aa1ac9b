//! Turns and exchanges, updated on each push. Pairs tool results with their calls (rules H1, H3).

use super::index::{ExchangeIndex, TurnIndex};
use crate::{
    message::{Message, Role},
    provider::meter,
};
use smallvec::{SmallVec, smallvec};
use smol_str::SmolStr;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
};

/// The bytes above which a tool result is listed as large. Offloading smaller ones saves little.
const LARGE: u64 = 1_000;

/// The structure of a conversation: the messages of each exchange, and the exchanges of each turn.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct Turns {
    list: Vec<Turn>,
    exchanges: Vec<Exchange>,
    /// The place of each message in the structure, by position in the log.
    places: Vec<Place>,
    /// Cumulative bytes: the size of each message plus all messages before it (see `meter::bytes`).
    sizes: Vec<u64>,
    /// The positions of tool results above [`LARGE`] bytes, so that the sums of sizes can leave out the
    /// middle of offloaded ones without reading all messages.
    large: Vec<u32>,
    /// For each turn whose user message has calls (rule H9), the position of the result of each call.
    user_calls: BTreeMap<TurnIndex, Vec<Option<u32>>>,
    /// Unanswered calls by id, newest last: the place of the calling message and the indexes of its calls.
    open: BTreeMap<SmolStr, Vec<(Place, VecDeque<u32>)>>,
    /// Ids of calls that have a result.
    answered: BTreeSet<SmolStr>,
    /// Messages before this position are archived and not kept by a pin, except the leading system messages.
    archived_prefix: u32,
    /// Ids of calls that were answered before `archived_prefix`.
    answered_there: BTreeSet<SmolStr>,
    /// Results of the newest turn that arrived before a call with their id, by id.
    waiting: BTreeMap<SmolStr, VecDeque<ExchangeIndex>>,
    /// The number of system messages at the start of the log.
    leading: u32,
    /// True after the first message that is not a leading system message.
    begun: bool,
    /// True if the newest turn is archived, so that the next message starts another turn.
    closed: bool,
}

/// A turn: a user message that is not empty, and the messages after it up to the next one.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// The user message. `None` is possible only for the first turn, and for a turn right after an archived
    /// one.
    user_message: Option<u32>,
    /// The first exchange of the turn.
    first: ExchangeIndex,
}

/// Positions of messages that are included or dropped together: usually one message, or a call and its
/// results.
pub(crate) type Members = SmallVec<[u32; 4]>;

/// An exchange, the smallest unit that may be included or dropped: one message, or a call and all its
/// results.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// The position of the message, or of the message with the calls.
    pub(crate) at: u32,
    /// The position of the result of each call.
    pub(crate) answers: Box<[Option<u32>]>,
    /// The reason if the exchange can never be sent.
    pub(crate) fault: Option<Fault>,
}

/// The reason why a message can never be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A tool result without a call.
    Orphan,
    /// A second result for the same call.
    Second,
    /// An empty message.
    Empty,
    /// A result that moved to another exchange, because a later call claimed it.
    Moved,
}

/// The place of a message in the structure of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// One of the system messages at the start.
    Leading,
    /// The user message of this turn, or a result of its calls.
    UserMessage(TurnIndex),
    /// A part of this exchange.
    Exchange(ExchangeIndex),
    /// An archived message, part of no turn.
    Archived,
}

impl Exchange {
    /// Returns the positions of the messages: first the message with the calls, then the results in log
    /// order.
    pub(crate) fn members(&self) -> Members {
        let mut members = smallvec![self.at];
        if !self.answers.is_empty() {
            members.extend(self.answers.iter().flatten().copied());
            members[1..].sort_unstable();
        }
        members
    }
}

impl Turns {
    /// Adds the message that is about to become `messages[messages.len()]` to the structure.
    pub(super) fn push(&mut self, message: &Message, messages: &[Message]) {
        let position = self.places.len() as u32;
        debug_assert_eq!(position as usize, messages.len());
        self.file(message, position);
        // A user's calls and their results are sent as text (rule H9), with delimiter lines that need more
        // bytes.
        let of_a_user = matches!(self.place_of(position), Place::UserMessage(_));
        let bytes = if of_a_user { meter::bytes_of_a_user(message) } else { meter::bytes(message) };
        self.sizes.push(self.size_before(position) + bytes);
        if message.role() == Role::Tool && bytes > LARGE {
            self.large.push(position);
        }
    }

    /// Returns the positions of large tool results.
    pub(crate) fn large_results(&self) -> &[u32] {
        &self.large
    }

    /// Returns the structure without the archived messages. `kept` selects archived messages that a pin
    /// keeps. `is_compacted` selects the archived tool results whose calls count as answered. An active
    /// message never becomes part of an archived turn.
    pub(super) fn without_archived(
        &self,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        kept: impl Fn(u32) -> bool,
        is_compacted: impl Fn(u32) -> bool,
    ) -> Self {
        let turns = Self { sizes: self.sizes.clone(), large: self.large.clone(), ..Self::default() };
        turns.file_from(0, messages, is_archived, kept, is_compacted)
    }

    /// Returns the structure after a compaction. Requires that nothing else changed since `self` was built,
    /// and that no pin keeps an archived message. Messages archived earlier are not visited again.
    pub(super) fn compacted(
        self,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        is_compacted: impl Fn(u32) -> bool,
    ) -> Self {
        let Self { sizes, large, mut places, leading, archived_prefix, answered_there, .. } = self;
        let mut turns = Self {
            sizes,
            large,
            leading,
            archived_prefix: archived_prefix.max(leading),
            answered_there,
            ..Self::default()
        };
        // Starts behind the prefix known to be archived, so that repeated compactions visit each message
        // once.
        while (turns.archived_prefix as usize) < messages.len() && is_archived(turns.archived_prefix) {
            let position = turns.archived_prefix;
            if let Some(id) = messages[position as usize].answers().filter(|_| is_compacted(position)) {
                turns.answered_there.insert(id.into());
            }
            places[position as usize] = Place::Archived;
            turns.archived_prefix += 1;
        }
        turns.begun = turns.archived_prefix > leading;
        places.truncate(turns.archived_prefix as usize);
        turns.places = places;
        let from = turns.archived_prefix as usize;
        turns.file_from(from, messages, is_archived, |_| false, is_compacted)
    }

    /// Files the messages from index `first` on.
    fn file_from(
        mut self,
        first: usize,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        kept: impl Fn(u32) -> bool,
        is_compacted: impl Fn(u32) -> bool,
    ) -> Self {
        let turns = &mut self;
        for (message, position) in messages.iter().zip(0..).skip(first) {
            let archived = is_archived(position);
            if archived && !kept(position) {
                turns.begun = true;
                turns.places.push(Place::Archived);
                // A summary replaces these messages, so a call that was answered among them counts as
                // answered.
                if let Some(id) = message.answers().filter(|_| is_compacted(position)) {
                    turns.answered.insert(id.into());
                }
                continue;
            }
            // A turn that exists only because of a pin is closed after each of its messages, so that the next
            // active message starts a new turn.
            turns.closed &= !archived;
            turns.file(message, position);
            let newest = turns.newest().and_then(|newest| turns.first_of(newest));
            turns.closed |= archived && newest.is_some_and(&is_archived);
        }
        self
    }

    /// Files one message: determines its place and pairs its calls with results that came early.
    fn file(&mut self, message: &Message, position: u32) {
        let place = self.place(message, position);
        self.places.push(place);
        match place {
            Place::UserMessage(turn) if !message.tool_calls().is_empty() => {
                self.user_calls.insert(turn, vec![None; message.tool_calls().len()]);
                self.pair_calls(place, message);
            }
            Place::Exchange(_) => self.pair_calls(place, message),
            Place::Leading | Place::UserMessage(_) | Place::Archived => {}
        }
    }

    /// Determines the place of a message, and starts a turn or an exchange if necessary.
    fn place(&mut self, message: &Message, position: u32) -> Place {
        if !self.begun && message.role().instructs() {
            self.leading = position + 1;
            return Place::Leading;
        }
        self.begun = true;
        if message.role() == Role::User && !message.is_empty() {
            // Early results are claimed only by calls of the same turn.
            self.waiting.clear();
            self.closed = false;
            self.list.push(Turn { user_message: Some(position), first: self.next_exchange() });
            return Place::UserMessage(TurnIndex::new(self.list.len() as u32 - 1));
        }
        if self.list.is_empty() || self.closed {
            self.closed = false;
            self.list.push(Turn { user_message: None, first: self.next_exchange() });
        }
        let own = self.next_exchange();
        let fault = match (message.role(), message.answers()) {
            (Role::Tool, Some(id)) => match self.answer(id, position) {
                Some(place) => return place,
                None => Some(self.find_pairing_fault(id, own)),
            },
            (Role::Tool, None) => Some(Fault::Orphan),
            _ => message.is_empty().then_some(Fault::Empty),
        };
        self.exchanges.push(Exchange {
            at: position,
            answers: vec![None; message.tool_calls().len()].into(),
            fault,
        });
        Place::Exchange(own)
    }

    /// Assigns a result to the nearest unanswered call with its id, across turns (rule H1). Returns the place
    /// of the call, or `None` if no call is open.
    fn answer(&mut self, id: &str, position: u32) -> Option<Place> {
        let open = self.open.get_mut(id)?;
        // The newest message with a call of this id, and in it the first call that is still open.
        let (place, calls) = open.last_mut()?;
        let (place, call) = (*place, calls.pop_front()?);
        if calls.is_empty() {
            open.pop();
        }
        if open.is_empty() {
            self.open.remove(id);
        }
        if let Some(answer) = self.answers_of(place).and_then(|answers| answers.get_mut(call as usize)) {
            *answer = Some(position);
        }
        self.answered.insert(id.into());
        Some(place)
    }

    /// Returns the result positions of the calls of a message.
    fn answers_of(&mut self, place: Place) -> Option<&mut [Option<u32>]> {
        match place {
            Place::UserMessage(turn) => self.user_calls.get_mut(&turn).map(Vec::as_mut_slice),
            Place::Exchange(at) => Some(&mut self.exchanges[at.to_usize()].answers),
            Place::Leading | Place::Archived => None,
        }
    }

    /// Classifies a result without an open call: a second result for its call, or an orphan that a later call
    /// of this turn may claim.
    fn find_pairing_fault(&mut self, id: &str, exchange: ExchangeIndex) -> Fault {
        if self.answered.contains(id) || self.answered_there.contains(id) {
            return Fault::Second;
        }
        self.waiting.entry(id.into()).or_default().push_back(exchange);
        Fault::Orphan
    }

    /// Opens the calls of a message. Results of this turn that arrived early answer their calls at once.
    fn pair_calls(&mut self, place: Place, message: &Message) {
        for (call, tool_call) in message.tool_calls().iter().enumerate() {
            let id = SmolStr::from(tool_call.id.as_str());
            if let Some(early) = self.claim_early_result(&id) {
                let at = self.exchanges[early.to_usize()].at;
                // The result's own exchange stays in the list, because removing it would renumber all later
                // exchanges.
                self.exchanges[early.to_usize()].fault = Some(Fault::Moved);
                self.places[at as usize] = place;
                if let Some(answers) = self.answers_of(place) {
                    answers[call] = Some(at);
                }
                self.answered.insert(id);
                continue;
            }
            let open = self.open.entry(id).or_default();
            match open.last_mut() {
                Some((last, calls)) if *last == place => calls.push_back(call as u32),
                _ => open.push((place, VecDeque::from([call as u32]))),
            }
        }
    }

    /// Removes and returns the first early result that waits for a call with this id.
    fn claim_early_result(&mut self, id: &SmolStr) -> Option<ExchangeIndex> {
        let waiting = self.waiting.get_mut(id)?;
        let first = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(id);
        }
        Some(first)
    }

    /// Formats all state that affects the filing of later messages.
    #[cfg(test)]
    pub(super) fn shape(&self) -> String {
        let answered: BTreeSet<&SmolStr> = self.answered.union(&self.answered_there).collect();
        let Self { list, exchanges, places, user_calls, open, waiting, leading, begun, closed, .. } = self;
        format!(
            "{:#?}",
            (list, exchanges, places, user_calls, open, (waiting, leading, begun, closed, answered))
        )
    }

    /// Returns the range of all turns, without archived ones.
    pub(crate) fn all(&self) -> Range<TurnIndex> {
        TurnIndex::new(0)..TurnIndex::new(self.list.len() as u32)
    }

    /// Returns the number of turns.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// Returns the newest turn.
    pub(crate) fn newest(&self) -> Option<TurnIndex> {
        self.count().checked_sub(1).map(TurnIndex::new)
    }

    fn next_exchange(&self) -> ExchangeIndex {
        ExchangeIndex::new(self.exchanges.len() as u32)
    }

    /// Returns the user message of a turn.
    pub(crate) fn user_message(&self, turn: TurnIndex) -> Option<u32> {
        self.list[turn.to_usize()].user_message
    }

    /// Returns the user message of a turn and the results of its calls in log order (rule H9).
    pub(crate) fn user_message_members(&self, turn: TurnIndex) -> Members {
        let mut members: Members = self.user_message(turn).into_iter().collect();
        if let Some(answers) = self.user_calls.get(&turn) {
            members.extend(answers.iter().flatten().copied());
            members[1..].sort_unstable();
        }
        members
    }

    /// Returns the index of the call of a turn's user message that the result at a position answers.
    pub(crate) fn user_call_index(&self, turn: TurnIndex, position: u32) -> Option<usize> {
        self.user_calls.get(&turn)?.iter().position(|answer| *answer == Some(position))
    }

    /// Returns true if the user message of a turn has calls.
    pub(crate) fn has_user_calls(&self, turn: TurnIndex) -> bool {
        self.user_calls.contains_key(&turn)
    }

    /// Returns true if any user message has calls.
    pub(crate) fn has_any_user_calls(&self) -> bool {
        !self.user_calls.is_empty()
    }

    /// Returns the position of the first message of a turn.
    pub(crate) fn first_of(&self, turn: TurnIndex) -> Option<u32> {
        let exchanges = self.exchanges(turn);
        self.user_message(turn).or_else(|| (!exchanges.is_empty()).then(|| self.exchange(exchanges.start).at))
    }

    /// Returns the first position of the turn of a message. Returns `position` itself if the message is part
    /// of no turn.
    pub(crate) fn start_of(&self, position: u32) -> u32 {
        let turn = match self.places.get(position as usize) {
            Some(Place::UserMessage(turn)) => Some(*turn),
            Some(Place::Exchange(at)) => Some(self.turn_of(*at)),
            _ => None,
        };
        turn.and_then(|turn| self.first_of(turn)).map_or(position, |start| start.min(position))
    }

    /// Returns the exchanges of a turn, including those that can never be sent.
    pub(crate) fn exchanges(&self, turn: TurnIndex) -> Range<ExchangeIndex> {
        let turn = turn.to_usize();
        let end = self.list.get(turn + 1).map(|next| next.first);
        self.list[turn].first..end.unwrap_or(self.next_exchange())
    }

    /// Returns the first exchange of a turn. If the turn does not exist, returns the index of the next new
    /// exchange.
    pub(crate) fn first_exchange_from(&self, turn: TurnIndex) -> ExchangeIndex {
        self.list.get(turn.to_usize()).map_or(self.next_exchange(), |turn| turn.first)
    }

    pub(crate) fn exchange(&self, at: ExchangeIndex) -> &Exchange {
        &self.exchanges[at.to_usize()]
    }

    /// Returns the turn of an exchange.
    pub(crate) fn turn_of(&self, exchange: ExchangeIndex) -> TurnIndex {
        // The first turn starts at exchange 0, so the subtraction cannot underflow.
        TurnIndex::new(self.list.partition_point(|turn| turn.first <= exchange) as u32 - 1)
    }

    pub(crate) fn place_of(&self, position: u32) -> Place {
        self.places[position as usize]
    }

    /// Returns the number of system messages at the start.
    pub(crate) fn leading(&self) -> u32 {
        self.leading
    }

    /// Returns the position of the first message, at or after a position, that is in the structure: a leading
    /// system message, or a part of a turn.
    pub(crate) fn survivor(&self, position: u32) -> Option<u32> {
        let mut places = self.places.iter().zip(0..).skip(position as usize);
        places.find(|(place, _)| **place != Place::Archived).map(|(_, position)| position)
    }

    /// Returns the number of messages, including archived ones.
    #[doc(hidden)]
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns true if the only message of an exchange was moved to another exchange.
    pub(crate) fn is_moved(&self, exchange: ExchangeIndex) -> bool {
        self.exchange(exchange).fault == Some(Fault::Moved)
    }

    /// Returns true if an exchange can never be sent.
    pub(crate) fn is_faulty(&self, exchange: Option<ExchangeIndex>) -> bool {
        exchange.is_some_and(|at| self.exchange(at).fault.is_some())
    }

    /// Returns the spans of exchanges with more than one message, and of user messages with results. A span
    /// reaches from the first message to one past the last.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Range<u32>> {
        let exchanges = self.exchanges.iter().filter(|exchange| !exchange.answers.is_empty());
        let heads = self.user_calls.keys().map(|turn| self.user_message_members(*turn));
        heads.chain(exchanges.map(Exchange::members)).filter_map(|members| {
            let (first, last) = (members.iter().min()?, members.iter().max()?);
            Some(*first..last + 1)
        })
    }

    /// Returns the bytes of the messages in a range of positions, without reading them (rule N5).
    pub(crate) fn bytes(&self, range: &Range<u32>) -> u64 {
        self.size_before(range.end) - self.size_before(range.start)
    }

    fn size_before(&self, position: u32) -> u64 {
        let last = position.checked_sub(1);
        last.map_or(0, |last| self.sizes[last as usize])
    }

    /// Returns the first turn that the model is still working on. That is the newest turn, plus earlier turns
    /// whose tool results are followed by user messages only.
    pub(crate) fn worked_on_from(&self) -> TurnIndex {
        // Returns true if the last exchange of a turn has calls, without exchanges that can never be sent.
        // `None` if only the user message remains.
        let ends_with_results = |turn: TurnIndex| {
            let mut exchanges = ExchangeIndex::each(self.exchanges(turn)).rev();
            let last = exchanges.find(|at| self.exchange(*at).fault.is_none());
            last.map(|last| !self.exchange(last).answers.is_empty())
        };
        let newest = self.newest().unwrap_or(TurnIndex::new(0));
        let mut from = newest;
        // Stops at the first turn that ends with a reply, so it does not visit the whole log.
        for turn in TurnIndex::each(TurnIndex::new(0)..newest).rev() {
            match ends_with_results(turn) {
                Some(true) => from = turn,
                Some(false) => break,
                None => {}
            }
        }
        from
    }

    /// Returns the last exchange with calls of the newest turn. Returns `None` if there is none, or if a
    /// non-empty assistant message follows it.
    pub(crate) fn open_exchange(&self, messages: &[Message]) -> Option<ExchangeIndex> {
        let newest = self.newest()?;
        ExchangeIndex::each(self.exchanges(newest)).rev().find_map(|at| {
            let exchange = self.exchange(at);
            let message = &messages[exchange.at as usize];
            let speaks = exchange.fault.is_none() && message.role() == Role::Assistant;
            speaks.then(|| (!message.tool_calls().is_empty()).then_some(at))
        })?
    }
}
