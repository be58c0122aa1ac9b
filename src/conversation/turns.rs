//! Turns and exchanges, kept ready on push. Results are paired with their calls here (rules H1, H3).

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

/// The shape of a conversation: which messages form which exchange, which exchanges form which turn.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct Turns {
    list: Vec<Turn>,
    exchanges: Vec<Exchange>,
    /// What each message is.
    places: Vec<Place>,
    /// Bytes of each message and everything before it (see `meter::bytes`).
    sizes: Vec<u64>,
    /// For each turn whose user message has calls (rule H9), the position of the result of each.
    of_heads: BTreeMap<TurnIndex, Vec<Option<u32>>>,
    /// Unanswered calls by id: the message they are part of and which of its calls they are, the newest last.
    open: BTreeMap<SmolStr, Vec<(Place, VecDeque<u32>)>>,
    /// Ids that a result answered.
    answered: BTreeSet<SmolStr>,
    /// Messages before this position are archived and kept by no pin, except leading ones.
    gone: u32,
    /// Call ids answered before that position.
    answered_there: BTreeSet<SmolStr>,
    /// Results of the newest turn that came before any call with their id, by id.
    waiting: BTreeMap<SmolStr, VecDeque<ExchangeIndex>>,
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
    first: ExchangeIndex,
}

/// Positions of the messages that are kept and dropped together: mostly one, or a call and its results.
pub(crate) type Members = SmallVec<[u32; 4]>;

/// The smallest unit of a turn that may be kept or left: one message, or a call and all its results.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// The position of its message, or of the message with the calls.
    pub(crate) at: u32,
    /// For each call, the position of its result.
    pub(crate) answers: Box<[Option<u32>]>,
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
    Head(TurnIndex),
    /// Part of this exchange.
    Exchange(ExchangeIndex),
    /// It is archived, and no part of any turn.
    Archived,
}

impl Exchange {
    /// The positions of its messages, its head first, then the results in log order.
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
    /// Files the message that is about to become `messages[messages.len()]`.
    pub(super) fn push(&mut self, message: &Message, messages: &[Message]) {
        let position = self.places.len() as u32;
        debug_assert_eq!(position as usize, messages.len());
        self.file(message, position);
        let of_a_user = matches!(self.place_of(position), Place::Head(_));
        let bytes = if of_a_user { meter::bytes_of_a_user(message) } else { meter::bytes(message) };
        self.sizes.push(self.size_before(position) + bytes);
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
        let turns = Self { sizes: self.sizes.clone(), ..Self::default() };
        turns.file_from(0, messages, is_archived, kept, said)
    }

    /// The same where nothing but a compaction came since, and no pin keeps anything that is archived: what was archived
    /// before it is not looked at again.
    pub(super) fn compacted(
        self,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        said: impl Fn(u32) -> bool,
    ) -> Self {
        let Self { sizes, mut places, leading, gone, answered_there, .. } = self;
        let mut turns = Self { sizes, leading, gone: gone.max(leading), answered_there, ..Self::default() };
        while (turns.gone as usize) < messages.len() && is_archived(turns.gone) {
            let position = turns.gone;
            if let Some(id) = messages[position as usize].answers().filter(|_| said(position)) {
                turns.answered_there.insert(id.into());
            }
            places[position as usize] = Place::Archived;
            turns.gone += 1;
        }
        turns.begun = turns.gone > leading;
        places.truncate(turns.gone as usize);
        turns.places = places;
        let from = turns.gone as usize;
        turns.file_from(from, messages, is_archived, |_| false, said)
    }

    fn file_from(
        mut self,
        first: usize,
        messages: &[Message],
        is_archived: impl Fn(u32) -> bool,
        kept: impl Fn(u32) -> bool,
        said: impl Fn(u32) -> bool,
    ) -> Self {
        let turns = &mut self;
        for (message, position) in messages.iter().zip(0..).skip(first) {
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
            let newest = turns.newest().and_then(|newest| turns.first_of(newest));
            turns.closed |= archived && newest.is_some_and(&is_archived);
        }
        self
    }

    fn file(&mut self, message: &Message, position: u32) {
        let place = self.place(message, position);
        self.places.push(place);
        match place {
            Place::Head(turn) if !message.tool_calls().is_empty() => {
                self.of_heads.insert(turn, vec![None; message.tool_calls().len()]);
                self.pair_calls(place, message);
            }
            Place::Exchange(_) => self.pair_calls(place, message),
            Place::Leading | Place::Head(_) | Place::Archived => {}
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
            self.list.push(Turn { head: Some(position), first: self.next_exchange() });
            return Place::Head(TurnIndex::new(self.list.len() as u32 - 1));
        }
        if self.list.is_empty() || self.closed {
            self.closed = false;
            self.list.push(Turn { head: None, first: self.next_exchange() });
        }
        let own = self.next_exchange();
        let fault = match (message.role(), message.answers()) {
            (Role::Tool, Some(id)) => match self.answer(id, position) {
                Some(place) => return place,
                None => Some(self.unpaired(id, own)),
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

    /// Gives a result to the nearest unanswered call with its id, across turns (rule H1).
    fn answer(&mut self, id: &str, position: u32) -> Option<Place> {
        let open = self.open.get_mut(id)?;
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

    /// The results of the calls of a message.
    fn answers_of(&mut self, place: Place) -> Option<&mut [Option<u32>]> {
        match place {
            Place::Head(turn) => self.of_heads.get_mut(&turn).map(Vec::as_mut_slice),
            Place::Exchange(at) => Some(&mut self.exchanges[at.to_usize()].answers),
            Place::Leading | Place::Archived => None,
        }
    }

    /// A result that no call waits for: the second one for its call, or one that a later call of this turn may claim.
    fn unpaired(&mut self, id: &str, exchange: ExchangeIndex) -> Fault {
        if self.answered.contains(id) || self.answered_there.contains(id) {
            return Fault::Second;
        }
        self.waiting.entry(id.into()).or_default().push_back(exchange);
        Fault::Orphan
    }

    /// Opens the calls of a message; results of this turn that came too early answer them at once.
    fn pair_calls(&mut self, place: Place, message: &Message) {
        for (call, tool_call) in message.tool_calls().iter().enumerate() {
            let id = SmolStr::from(tool_call.id.as_str());
            if let Some(early) = self.claim_early_result(&id) {
                let at = self.exchanges[early.to_usize()].at;
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

    fn claim_early_result(&mut self, id: &SmolStr) -> Option<ExchangeIndex> {
        let waiting = self.waiting.get_mut(id)?;
        let first = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(id);
        }
        Some(first)
    }

    /// Everything that later messages are filed by, as text.
    #[cfg(test)]
    pub(super) fn shape(&self) -> String {
        let answered: BTreeSet<&SmolStr> = self.answered.union(&self.answered_there).collect();
        let Self { list, exchanges, places, of_heads, open, waiting, leading, begun, closed, .. } = self;
        format!(
            "{:#?}",
            (list, exchanges, places, of_heads, open, (waiting, leading, begun, closed, answered))
        )
    }

    /// All turns, those that are archived apart.
    pub(crate) fn all(&self) -> Range<TurnIndex> {
        TurnIndex::new(0)..TurnIndex::new(self.list.len() as u32)
    }

    /// How many turns there are.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// The newest turn.
    pub(crate) fn newest(&self) -> Option<TurnIndex> {
        self.count().checked_sub(1).map(TurnIndex::new)
    }

    fn next_exchange(&self) -> ExchangeIndex {
        ExchangeIndex::new(self.exchanges.len() as u32)
    }

    /// The user message that heads a turn.
    pub(crate) fn head(&self, turn: TurnIndex) -> Option<u32> {
        self.list[turn.to_usize()].head
    }

    /// The user message that heads a turn, and the results of its calls in log order (rule H9).
    pub(crate) fn head_members(&self, turn: TurnIndex) -> Members {
        let mut members: Members = self.head(turn).into_iter().collect();
        if let Some(answers) = self.of_heads.get(&turn) {
            members.extend(answers.iter().flatten().copied());
            members[1..].sort_unstable();
        }
        members
    }

    /// Which of the calls of a turn's user message a result answers.
    pub(crate) fn head_call(&self, turn: TurnIndex, position: u32) -> Option<usize> {
        self.of_heads.get(&turn)?.iter().position(|answer| *answer == Some(position))
    }

    /// Whether the user message of a turn has calls.
    pub(crate) fn head_calls(&self, turn: TurnIndex) -> bool {
        self.of_heads.contains_key(&turn)
    }

    /// Whether any user message has calls.
    pub(crate) fn any_head_calls(&self) -> bool {
        !self.of_heads.is_empty()
    }

    /// The first message of a turn.
    pub(crate) fn first_of(&self, turn: TurnIndex) -> Option<u32> {
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
    pub(crate) fn exchanges(&self, turn: TurnIndex) -> Range<ExchangeIndex> {
        let turn = turn.to_usize();
        let end = self.list.get(turn + 1).map(|next| next.first);
        self.list[turn].first..end.unwrap_or(self.next_exchange())
    }

    /// The first exchange of a turn and all after it; where there is no such turn, the one that comes next.
    pub(crate) fn first_exchange_from(&self, turn: TurnIndex) -> ExchangeIndex {
        self.list.get(turn.to_usize()).map_or(self.next_exchange(), |turn| turn.first)
    }

    pub(crate) fn exchange(&self, at: ExchangeIndex) -> &Exchange {
        &self.exchanges[at.to_usize()]
    }

    /// The turn that an exchange belongs to.
    pub(crate) fn turn_of(&self, exchange: ExchangeIndex) -> TurnIndex {
        TurnIndex::new(self.list.partition_point(|turn| turn.first <= exchange) as u32 - 1)
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
    #[doc(hidden)]
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.places.len() as u32
    }

    /// Whether the only message of an exchange stands in another one now.
    pub(crate) fn is_moved(&self, exchange: ExchangeIndex) -> bool {
        self.exchange(exchange).fault == Some(Fault::Moved)
    }

    /// Whether an exchange can never be sent.
    pub(crate) fn is_faulty(&self, exchange: Option<ExchangeIndex>) -> bool {
        exchange.is_some_and(|at| self.exchange(at).fault.is_some())
    }

    /// From the first to behind the last message of each exchange, and of each user message with results, that has more than
    /// one.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Range<u32>> {
        let exchanges = self.exchanges.iter().filter(|exchange| !exchange.answers.is_empty());
        let heads = self.of_heads.keys().map(|turn| self.head_members(*turn));
        heads.chain(exchanges.map(Exchange::members)).filter_map(|members| {
            let (first, last) = (members.iter().min()?, members.iter().max()?);
            Some(*first..last + 1)
        })
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
    pub(crate) fn worked_on_from(&self) -> TurnIndex {
        // Whether the last exchange of a turn that can be sent has calls; none where the turn is a user message alone.
        let ends_with_results = |turn: TurnIndex| {
            let mut exchanges = ExchangeIndex::each(self.exchanges(turn)).rev();
            let last = exchanges.find(|at| self.exchange(*at).fault.is_none());
            last.map(|last| !self.exchange(last).answers.is_empty())
        };
        let newest = self.newest().unwrap_or(TurnIndex::new(0));
        let mut from = newest;
        for turn in TurnIndex::each(TurnIndex::new(0)..newest).rev() {
            match ends_with_results(turn) {
                Some(true) => from = turn,
                Some(false) => break,
                None => {}
            }
        }
        from
    }

    /// The last exchange with calls of the newest turn, when no assistant message with anything in it comes after.
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
