//! The tokens that a target adds to the items of a prompt or saves in it, computed without assembling the
//! prompt.
//!
//! Input: one selection after the other. Output: the added tokens, computed from the neighbours of each
//! included candidate. Rules: merges (N3), placeholder messages (H5).
//!
//! [`SequenceCosts`] holds the messages of the conversation in prompt order in a tree of [`AdjacencyCounts`].
//! From one selection to the next it updates only the candidates that come or go. So an explanation for many
//! budgets needs no plan for each of them.

use super::{
    ManyBudgets,
    shared::{SharedInclusions, changed},
    tree::{Summary, Tree},
};
use crate::{
    config::Placement,
    error::Error,
    item::ItemId,
    message::{Message, Role},
    planner::{
        assemble::{self, BRIDGE, CONTINUE, LEAD},
        candidates::{CandidateId, CandidateMap, Candidates},
        repair,
        select::{Selection, merges_state},
    },
    provider::{
        conform::{AdjacencyChanges, AdjacencyCounts, TargetProfile, TurnPosition},
        meter::Meter,
    },
};
use std::borrow::Cow;

impl Summary for AdjacencyCounts {
    const NOTHING: Self = Self::NOTHING;

    fn join(self, after: Self) -> Self {
        Self::join(self, after)
    }
}

/// The tokens that a target adds to the items of a prompt.
#[derive(Debug, Clone, Copy)]
pub(in crate::analysis::explain) struct AddedTokens {
    /// All added tokens, minus the saved ones.
    pub(in crate::analysis::explain) tokens: i128,
    /// Tokens of the placeholder messages.
    pub(in crate::analysis::explain) placeholders: u64,
    pub(in crate::analysis::explain) leads: bool,
    pub(in crate::analysis::explain) continues: bool,
}

/// The messages of a prompt by their roles, in prompt order, updated from one selection to the next.
pub(in crate::analysis::explain) struct SequenceCosts<'p> {
    candidates: &'p Candidates<'p>,
    meter: &'p Meter,
    /// The place of each candidate of the conversation in the tree.
    places: CandidateMap<u32>,
    /// The places of the new documents (`block`) and of state that is not merged into the question (`state`).
    block: usize,
    state: usize,
    len: usize,
    tree: Tree<AdjacencyCounts>,
    /// By place, the seams of candidates that were included before. They never change, so they are computed
    /// once.
    known: Vec<Option<AdjacencyCounts>>,
    /// The selection that the tree represents: the candidates that it includes one by one, and the shared
    /// ones.
    before: (Vec<CandidateId>, SharedInclusions),
    /// Tokens of the placeholder messages: the first message, one between two messages, the last message.
    placeholders: [u64; 3],
    /// The notes in prompt order, if the target joins them with the other instructions into one text.
    joined_notes: Vec<CandidateId>,
    /// Tokens of the instructions as one text, minus their tokens as separate texts.
    joined_instructions: i128,
}

impl<'p> SequenceCosts<'p> {
    /// Lays out the conversation in prompt order. Returns `None` if the additions of a target depend on more
    /// than the neighbours. That is so if prompts are counted as they are rendered, if texts stay where they
    /// were sent, or if instructions come at the end. It is also so if an item has the id of a placeholder
    /// message.
    ///
    /// # Errors
    ///
    /// Any error of the token counter.
    pub(in crate::analysis::explain) fn new(
        candidates: &'p Candidates<'p>,
        meter: &'p Meter,
        placement: Placement,
    ) -> Result<Option<Self>, Error> {
        let (index, log) = (candidates.index(), candidates.log());
        let sent_with = log.sent_with();
        let retained_texts = candidates.retained().retains_texts()
            && (sent_with.all_documents().next().is_some() || sent_with.all_state().next().is_some());
        if meter.is_rendered() || index.has_late() || retained_texts || needs_id(candidates) {
            return Ok(None);
        }
        let mut ids: Vec<CandidateId> = candidates.conversation().collect();
        ids.sort_by_cached_key(|id| (candidates.order_of(*id), *id));
        let question = assemble::question(candidates);
        let question = question.and_then(|question| ids.iter().position(|id| *id == question));
        let end = ids.len();
        let block = match question {
            _ if index.documents_come_last => end,
            Some(question) if placement != Placement::BeforeConversation => question,
            _ => 0,
        };
        let state = question.filter(|_| !index.state_comes_last).unwrap_or(end);
        // Documents come before state at the same place, and both come before the candidate at that place.
        let place = |at: usize| at + usize::from(block <= at) + usize::from(state <= at);
        let mut places = CandidateMap::for_candidates(index);
        for (at, id) in ids.iter().enumerate() {
            places.insert(*id, place(at) as u32);
        }
        let len = end + 2;
        let cost = |message: &Message| {
            Ok::<_, Error>(meter.message(message, TurnPosition::Live, u64::MAX)?.in_full())
        };
        let [lead, bridge, last] = TargetProfile::placeholders();
        Ok(Some(Self {
            candidates,
            meter,
            places,
            block: block + usize::from(state < block),
            state: state + usize::from(block <= state),
            len,
            tree: Tree::new(std::iter::repeat_n(AdjacencyCounts::NOTHING, len)),
            known: vec![None; len],
            before: Default::default(),
            placeholders: [cost(&lead)?, cost(&bridge)?, cost(&last)?],
            joined_notes: if meter.profile().joins_instructions() {
                assemble::notes(candidates)
            } else {
                Vec::new()
            },
            joined_instructions: joined_instructions(candidates, meter, &[])?,
        }))
    }

    /// Returns the tokens that the target adds to this selection, or `None` if they depend on more than the
    /// neighbours. The work follows the number of candidates that came or went since the last call.
    ///
    /// # Errors
    ///
    /// Any error of the token counter.
    pub(in crate::analysis::explain) fn added(
        &mut self,
        chosen: &Selection<ManyBudgets>,
    ) -> Result<Option<AddedTokens>, Error> {
        let mut has_other_notes = false;
        let included = &chosen.included;
        let (singles, shared) = &self.before;
        let different = changed((included.ids(), &included.shared), (singles.iter().copied(), shared));
        // Copied only after a difference, because neighbouring budgets mostly select the same.
        if !different.is_empty() {
            self.before = (included.ids().collect(), included.shared.clone());
        }
        for id in different {
            has_other_notes |= matches!(id, CandidateId::Note(_));
            if let Some(place) = self.places.get(id) {
                let adjacency = if chosen.has(id) {
                    self.adjacency(id, place as usize)
                } else {
                    AdjacencyCounts::NOTHING
                };
                self.set(place as usize, adjacency);
            }
        }
        // The join of the instructions depends on all included notes, so it is computed again only if a note
        // came or went.
        if has_other_notes && !self.joined_notes.is_empty() {
            let notes: Vec<CandidateId> =
                self.joined_notes.iter().copied().filter(|note| chosen.has(*note)).collect();
            self.joined_instructions = joined_instructions(self.candidates, self.meter, &notes)?;
        }
        let has_documents = chosen.has_documents();
        let profile = self.meter.profile();
        let user = profile.adjacency(&Message::user(""));
        self.set(self.block, if has_documents { user } else { AdjacencyCounts::NOTHING });
        // Merged state is part of the question and adds no message.
        let states =
            if merges_state(self.candidates.index(), chosen) { 0 } else { self.candidates.index().states() };
        let states = (0..states).fold(AdjacencyCounts::NOTHING, |all, _| all.join(user));
        self.set(self.state, states);
        let changes = profile.changes_at(self.tree.all());
        let Some(changes) = changes.filter(|_| !has_documents || self.meter.block_adds_up()) else {
            return Ok(None);
        };
        let AdjacencyChanges { leads, continues, bridges, merged_users, merged_assistants } = changes;
        let [lead, bridge, last] = self.placeholders;
        let placeholders =
            u64::from(leads) * lead + u64::from(bridges) * bridge + u64::from(continues) * last;
        let merged = |role: Role, count: u32| u64::from(count) * self.meter.saved_by_merging(role);
        let merged = merged(Role::User, merged_users) + merged(Role::Assistant, merged_assistants);
        let tokens = i128::from(placeholders) - i128::from(merged) + self.joined_instructions;
        Ok(Some(AddedTokens { tokens, placeholders, leads, continues }))
    }

    /// Checks if a placeholder message follows the results of this exchange, in the selection of the last
    /// call of `added`.
    pub(in crate::analysis::explain) fn is_bridged(&self, exchange: CandidateId) -> bool {
        let Some(place) = self.places.get(exchange) else { return false };
        let own = self.tree.get(place as usize);
        // Places of excluded candidates have no seams, so the search passes over them to the next message.
        let (next, _) = self.tree.search(place as usize + 1, self.len, AdjacencyCounts::is_nothing);
        own.last() == Some(Role::Tool) && next < self.len && self.tree.get(next).first() == Some(Role::User)
    }

    fn set(&mut self, place: usize, adjacency: AdjacencyCounts) {
        if self.tree.get(place) != adjacency {
            self.tree.set(place, adjacency);
        }
    }

    fn adjacency(&mut self, id: CandidateId, place: usize) -> AdjacencyCounts {
        let (candidates, meter) = (self.candidates, self.meter);
        *self.known[place].get_or_insert_with(|| {
            let position = candidates.turn_position(id);
            let adjacency =
                |message: &Message| meter.profile().adjacency(&meter.profile().message(message, position));
            let messages = messages(candidates, id);
            messages.iter().fold(AdjacencyCounts::NOTHING, |all, message| all.join(adjacency(message)))
        })
    }
}

/// Returns the messages of a candidate of the conversation before the target changes them. Tool results have
/// their full length.
fn messages<'c>(candidates: &'c Candidates<'_>, id: CandidateId) -> Vec<Cow<'c, Message>> {
    match id {
        CandidateId::Summary(at) => vec![Cow::Borrowed(candidates.summary(at).2)],
        CandidateId::Exchange(at) => {
            let exchange = candidates.log().turns().exchange(at);
            if exchange.answers.is_empty() {
                return vec![candidates.full_message(exchange.at)];
            }
            let pieces = repair::repaired_messages(candidates.log(), exchange);
            pieces.iter().map(|piece| Cow::Owned(candidates.full_piece(piece))).collect()
        }
        _ => candidates.members(id).into_iter().map(|position| candidates.full_message(position)).collect(),
    }
}

/// Returns the tokens of the instructions at the beginning as one text, minus their tokens as separate texts.
/// `notes` are the included notes. Returns 0 for a target that accepts several instructions.
fn joined_instructions(
    candidates: &Candidates<'_>,
    meter: &Meter,
    notes: &[CandidateId],
) -> Result<i128, Error> {
    if !meter.profile().joins_instructions() {
        return Ok(0);
    }
    let instructions = candidates.index().required_system.iter().chain(notes).filter_map(|id| match id {
        CandidateId::System(at) => Some(&candidates.system(*at).1),
        CandidateId::Focus => candidates.focus().map(|(_, focus)| focus),
        CandidateId::Note(at) => Some(&candidates.notes().get(*at).message),
        _ => None,
    });
    let instructions: Vec<&Message> = instructions.collect();
    if instructions.len() < 2 { Ok(0) } else { meter.joined_instructions(&instructions) }
}

/// Checks if an item has an id that a placeholder message would have. Planning fails if that message is
/// needed (unique ids, rule O5).
fn needs_id(candidates: &Candidates<'_>) -> bool {
    let (log, request) = (candidates.log(), candidates.request());
    let takes = |id: &ItemId| {
        let id = id.as_str();
        id == LEAD || id == CONTINUE || id.starts_with(BRIDGE)
    };
    let messages = (0..log.turns().messages()).map(|position| log.message_id(position));
    let notes = candidates.notes().iter().map(|(_, note)| &note.item.id);
    let state = request.state.iter().map(|(id, _)| id);
    let system = log.system().iter().filter_map(Message::id);
    messages.into_iter().any(|id| takes(&id)) || notes.chain(state).chain(system).any(takes)
}
