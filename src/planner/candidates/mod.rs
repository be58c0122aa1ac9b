//! Gathering of candidates: required texts, pins, messages, documents.
//!
//! - Input: a request, its conversation, the last prompt, and the adjustments of earlier rounds.
//! - Output: candidates in the orders of selection.
//! - Rules: S1, S2, S8 to S12, T1, T2, H1 to H3, O5.
//!
//! [`Candidates`] holds the texts. It hands out [`CandidateIndex`] and [`Costs`], which hold none, and
//! selection works on those two. Gathering counts no tokens: [`Costs`] counts a candidate when a decision
//! needs it, and only as far as the decision needs it (N5).

use crate::{
    config::{Config, Placement, RagOptions, ToolResults},
    conversation::{Conversation, ExchangeIndex, Members, Note, Notes, RuleNote, TurnIndex},
    error::Error,
    item::{ItemId, ItemKind, Ttl},
    message::{Message, Role},
    plan::{
        PlannedItem, SearchedRules, Target,
        anchor::{Anchor, Sticky, StickyDocuments},
        labels::Labels,
        reason::{ExcludedReason, PolicyRule},
    },
    planner::{
        eligibility::{Eligibility, EligibilityRules},
        replan::Replan,
        request::PlanRequest,
        retained::RetainedItems,
        standing_rules,
    },
    provider::{conform::TurnPosition, meter::Meter, wording},
    rag::{Form, LabelledItem, ListRank, RagItem},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

mod id;
mod checks;
mod ranking;
mod documents;
mod dependents;
mod groups;
mod summaries;
mod required;
mod pins;
mod index;
mod map;
mod full_messages;
mod results;
mod result_forms;
mod offloaded;
mod similar;
mod chunks;
mod comparisons;
mod costs;
mod taken;
mod shorten;

pub(crate) use comparisons::{Comparisons, Neighbours};
pub(crate) use costs::Costs;
#[cfg(test)]
pub(crate) use costs::WEIGHED;
pub(crate) use documents::{Document, Required, without_member};
pub(crate) use groups::{Group, Groups};
pub(crate) use id::{CandidateId, Rank, Slot};
pub(crate) use index::CandidateIndex;
pub(crate) use map::CandidateMap;
pub(crate) use pins::Pin;
use summaries::Summary;
pub(crate) use summaries::{sent_for, sent_to};
pub(crate) use taken::{Shorter, TakenDocuments};

/// All candidates of one request, in the orders of selection.
pub(crate) struct Candidates<'a> {
    log: &'a Conversation,
    request: &'a PlanRequest<'a>,
    /// The notes of the conversation, followed by the user's rules (rule R1).
    notes: Cow<'a, Notes>,
    config: &'a Config,
    meter: &'a Meter,
    rules: EligibilityRules<'a>,
    system: Vec<(ItemId, Message)>,
    state: Vec<(ItemId, Message)>,
    /// The summaries that are sent, in prompt order.
    summaries: Vec<Summary>,
    focus: Option<Message>,
    /// Ids, orders, pins and turns: everything that selection may see.
    index: CandidateIndex<'a>,
    /// The reason that the last prompt's window is not continued, if it was lost.
    pub(crate) lost_window: Option<&'static str>,
    /// The first turn that the model is still working on. This is the live turn, or an earlier one if every
    /// turn from there on ends with tool results that have no reply. These turns are sent with their
    /// reasoning.
    live_from: TurnIndex,
    /// The first exchange from that turn on.
    live_exchanges_from: ExchangeIndex,
    /// The forms of large results (rule S7).
    forms: result_forms::ResultForms,
    /// Position before which results were sent as stubs (rule S7).
    cleared_before: Option<u32>,
    /// Messages whose reasoning is withheld, as they are sent, by position (rule K1).
    withheld: BTreeMap<u32, Message>,
    /// Texts that are retained where they were sent (rules S10 to S12).
    /// The labels that documents had in earlier prompts (rule S16).
    labels: Labels,
    retained: RetainedItems<'a>,
    /// The exchange that still waits for results.
    pub(crate) open: Option<ExchangeIndex>,
}

/// Returns the messages whose reasoning is withheld, without that reasoning.
fn without_reasoning(log: &Conversation, replan: &Replan) -> BTreeMap<u32, Message> {
    let positions = replan.without_reasoning();
    positions.map(|position| (position, log.message(position).without_reasoning())).collect()
}

/// Checks that no id is used twice among the conversation, focus hint, state, summaries and placeholder
/// results (rule O5).
fn check_ids(
    request: &PlanRequest<'_>,
    has_focus: bool,
    summaries: &[Summary],
    placeholders: &[ItemId],
) -> Result<(), Error> {
    let focus = has_focus.then(|| ItemId::from(FOCUS));
    let focus = focus.iter().map(|id| (id, "the focus hint"));
    let state = request.state.iter().map(|(id, _)| (id, "a state entry"));
    let summaries = summaries.iter().map(|summary| (summary.id(), "a summary"));
    let placeholders = placeholders.iter().map(|id| (id, "a placeholder result"));
    request.log.check_ids(focus.chain(state).chain(summaries).chain(placeholders))
}

/// Checks that no other item of the conversation has the id of a rule of the user (rule O5).
fn check_rule_ids(log: &Conversation, notes: &Notes) -> Result<(), Error> {
    let rules = notes.iter().filter(|(_, note)| note.rule.is_some());
    log.check_ids(rules.map(|(_, note)| (&note.item.id, "a standing rule")))
}

/// Returns the turn of a candidate of the conversation.
fn turn_of(log: &Conversation, id: CandidateId) -> TurnIndex {
    match id {
        CandidateId::Exchange(at) => log.turns().turn_of(at),
        CandidateId::UserMessage(turn) => turn,
        _ => TurnIndex::new(0),
    }
}

/// Returns the anchor of the prompt before this one, if it remembers its items.
fn last_prompt<'a>(request: &'a PlanRequest<'a>) -> Option<&'a Anchor> {
    request.last_anchor().filter(|anchor| anchor.prompt.is_some())
}

/// Returns the candidate of a message of the conversation.
fn candidate_at(log: &Conversation, position: u32) -> Option<CandidateId> {
    CandidateId::from_place(log.turns().place_of(position))
}

/// Returns the positions of the messages of a candidate.
fn members(log: &Conversation, id: CandidateId) -> Members {
    match id {
        CandidateId::UserMessage(turn) => log.turns().user_message_members(turn),
        CandidateId::Exchange(at) => log.turns().exchange(at).members(),
        _ => Members::new(),
    }
}

/// Returns the start of the last prompt's window. If that window is lost, returns the reason too (rule S5).
fn find_window_start(log: &Conversation, sticky: Sticky<'_>) -> (Option<CandidateId>, Option<&'static str>) {
    let Some(id) = sticky.window_start else { return (None, sticky.lost) };
    let position = log.position_of(id);
    let start = position.and_then(|position| find_survivor(log, position));
    // A start that a compaction archived needs no notice: the compaction has one of its own.
    let is_archived = position.is_some_and(|position| log.archive_index().archived(position).is_some());
    let is_lost = start.is_none() && !is_archived;
    (start, if is_lost { Some("its first message is not in this conversation") } else { sticky.lost })
}

/// Returns the candidate of a message, or of the first message after it that can still be sent.
fn find_survivor(log: &Conversation, position: u32) -> Option<CandidateId> {
    let mut at = log.turns().survivor(position)?;
    while log.archive_index().archived(at).is_some() {
        at = log.turns().survivor(at + 1)?;
    }
    candidate_at(log, at)
}

/// The id of the focus hint.
const FOCUS: &str = "focus";

impl<'a> Candidates<'a> {
    /// Gathers the candidates: required items, then pins and documents in order. The rest of the conversation
    /// is not visited.
    ///
    /// # Errors
    ///
    /// - An id is used twice (rule O5)
    /// - A score is not a number (rule S8)
    /// - A pinned call has no result, and the policy is to reject it (rule H2)
    /// - The counter fails
    pub(crate) fn gather(
        request: &'a PlanRequest<'a>,
        config: &'a Config,
        placement: Placement,
        target: &Target,
        meter: &'a Meter,
        sticky: Sticky<'_>,
        replan: &Replan,
    ) -> Result<Self, Error> {
        let (log, profile) = (request.log, *meter.profile());
        let with_question = (sticky.question_sent && sticky.lost.is_none()).then_some(sticky.rag);
        // Without a set, the documents of the last prompt compete with all others.
        let sticky = if replan.gives_up_documents() {
            Sticky { rag: StickyDocuments::default(), ..sticky }
        } else {
            sticky
        };
        let rules = EligibilityRules::new(log, config, profile);
        let retains = placement == Placement::WithQuestion;
        let labels = request.labels();
        let labels_to_give = config.rag.labels.then_some(&labels);
        let again = replan.sent_again();
        let mut retained = RetainedItems::new(request, target, meter, retains, sticky, again);
        let documents_come_last = retained.documents_come_last();
        // Documents at the end join the retained ones, so no set has to stay together.
        let set = if documents_come_last { StickyDocuments::default() } else { sticky.rag };
        let last = documents::LastDocuments { set, with_question };
        let new = retained.competing_documents();
        let source = documents::DocumentSource {
            items: &request.rag,
            new,
            rules: &config.rag,
            eligibility: &rules,
            meter,
            labels: labels_to_give,
        };
        let (mut documents, sticky_document_count) = source.documents(last)?;
        dependents::add_required(&request.rag, &mut documents, |id| retained.places_of(id));
        let groups = Groups::find(&request.rag, &documents);

        let summaries = summaries::find_summaries(log, target);
        let focus = request.focus.as_deref().filter(|hint| !hint.trim().is_empty()).map(wording::focus);
        // Ids of placeholder results are checked after layout, which knows the ones that are needed.
        check_ids(request, focus.is_some(), &summaries, &[])?;
        let system = required::system_texts(log, &retained, replan.sent_again());
        let state = required::state_entries(request, &mut retained, replan.sent_again());
        let open = log.open_exchange();
        let required_conversation = required::conversation(&rules, open)?;
        let (window_start, lost_window) = find_window_start(log, sticky);
        let notes = standing_rules::notes_and_rules(request, config.compaction.rules);
        check_rule_ids(log, &notes)?;
        let start = window_start.map(|start| turn_of(log, start));
        let has_left = |note: &Note, rule: &RuleNote| {
            replan.sent_again().rules.contains(&note.item.id)
                || standing_rules::is_surely_left_out(log, rule, start)
        };
        let sources = pins::PinSources { rules: &rules, request, notes: &notes, documents_come_last };
        let (pins, ineligible_pins) = sources.gather(&required_conversation, has_left)?;

        let live_from = log.turns().worked_on_from();
        let kept = sticky_document_count.map_or(documents.len(), |count| count as usize);
        let has_recalled = documents[..kept].iter().any(|one| one.is_recalled && one.out.is_none());
        let has_forms_or_dependents = documents.iter().any(Document::has_forms_or_depends);
        let ranks = (0..).map(Rank::new).zip(&documents);
        let index = CandidateIndex {
            turns: log.turns(),
            required_system: required::ids(&system, focus.is_some(), &state),
            required_conversation,
            pins_are_notes: pins.iter().all(|pin| matches!(pin.id, CandidateId::Note(_))),
            has_rules: notes.iter().any(|(_, note)| note.rule.is_some()),
            undroppable: pins::undroppable_slots(&pins),
            brought: pins.iter().map(|pin| (pin.id, pin.brings)).collect(),
            pins,
            ineligible_pins,
            competing: ranks.filter(|(_, one)| one.out.is_none()).map(|(rank, _)| rank).collect(),
            documents,
            sticky_document_count,
            others_join: !sticky.checks,
            window_start,
            live_turn: log.live_turn(),
            states: state.len() as u64,
            has_late: state.iter().any(|(_, message)| message.role().instructs()),
            state_comes_last: profile.accepts_state_last(),
            documents_come_last,
            documents_stay: retains,
            has_recalled,
            has_forms_or_dependents,
            groups,
            summary_follows_the_question: summaries::follow_the_question(&summaries, log),
            clears_results: config.conversation.tool_results == ToolResults::Clear,
        };
        Ok(Self {
            log,
            request,
            notes,
            config,
            meter,
            rules,
            system,
            state,
            summaries,
            focus,
            index,
            lost_window,
            live_from,
            live_exchanges_from: log.turns().first_exchange_from(live_from),
            forms: result_forms::ResultForms::for_request(request, config, sticky.last),
            cleared_before: sticky.cleared_before.and_then(|id| log.position_of(id)),
            withheld: without_reasoning(log, replan),
            retained,
            labels,
            open,
        })
    }

    /// Returns the meter that counts them.
    pub(crate) fn meter(&self) -> &'a Meter {
        self.meter
    }

    /// Returns the candidates without their texts, for selection.
    pub(crate) fn index(&self) -> &CandidateIndex<'a> {
        &self.index
    }

    /// Checks that no id is used twice among the conversation, focus hint, state, summaries and placeholder
    /// results (rule O5).
    pub(crate) fn check_ids(&self, placeholders: &[ItemId]) -> Result<(), Error> {
        check_ids(self.request, self.focus.is_some(), &self.summaries, placeholders)
    }

    /// Returns the notes of the conversation, followed by the user's rules.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Returns the messages of all notes, and of the user's rules that may be sent.
    pub(crate) fn notes_to_summarise(&self) -> Vec<Message> {
        let waits = |number: &u32| self.index.ineligible_pins.contains_key(&CandidateId::Note(*number));
        let notes = self.notes.iter().filter(|(number, note)| note.rule.is_none() || !waits(number));
        notes.map(|(_, note)| note.message.clone()).collect()
    }

    /// Returns the user's rules for the anchor of the prompt.
    pub(crate) fn rules_to_remember(&self) -> SearchedRules {
        self.request.rules_to_remember(self.config.compaction.rules)
    }

    /// Returns the user's rules whose messages are not among the rows of a prompt, and that wait for that
    /// (rule R1).
    pub(crate) fn missing_rules(&self, rows: &[PlannedItem]) -> BTreeSet<ItemId> {
        if !self.index.has_rules {
            return BTreeSet::new();
        }
        let messages = rows.iter().filter(|row| row.kind == ItemKind::Message);
        let sent: BTreeSet<&ItemId> = messages.map(|row| &row.id).collect();
        self.rules_without(|message| sent.contains(message))
    }

    /// Returns the user's rules whose messages are not among the chosen candidates, and that wait for that.
    pub(crate) fn unselected_rules(&self, is_chosen: impl Fn(CandidateId) -> bool) -> BTreeSet<ItemId> {
        let candidate = |id: &ItemId| {
            // An empty message is not sent with its unit.
            let position = self.log.position_of(id).filter(|at| !self.log.message(*at).is_empty());
            candidate_at(self.log, position?)
        };
        self.rules_without(|message| candidate(message).is_some_and(&is_chosen))
    }

    /// Returns the user's rules that wait until their messages are not sent, and whose messages are not.
    fn rules_without(&self, is_sent: impl Fn(&ItemId) -> bool) -> BTreeSet<ItemId> {
        let waits =
            |(_, reason): &(&CandidateId, &ExcludedReason)| matches!(reason, ExcludedReason::InWindow { .. });
        let waiting = self.index.ineligible_pins.iter().filter(waits);
        let left = waiting.filter_map(|(id, _)| match id {
            CandidateId::Note(at) => Some(self.notes.get(*at)),
            _ => None,
        });
        let left = left.filter(|note| {
            let message = note.rule.as_ref().and_then(standing_rules::message_of);
            message.is_some_and(|message| !is_sent(message))
        });
        left.map(|note| note.item.id.clone()).collect()
    }

    /// Checks if no item of the conversation has a TTL.
    pub(crate) fn nothing_ages(&self) -> bool {
        self.rules.is_idle()
    }

    /// Checks if no item of the conversation has a TTL and no message is archived.
    pub(super) fn nothing_leaves(&self) -> bool {
        self.log.archive_index().is_whole() && self.nothing_ages()
    }

    /// Returns the user message of a turn. Returns `None` if it has expired.
    fn unexpired_user_message(&self, turn: TurnIndex) -> Option<CandidateId> {
        pins::unexpired_user_message(&self.rules, &self.index.required_conversation, turn)
    }

    /// Checks if one of these messages is pinned.
    fn is_pinned(&self, members: &[u32]) -> bool {
        let pins = self.log.pin_priorities();
        !pins.is_empty() && members.iter().any(|position| pins.contains_key(position))
    }

    /// Checks if a candidate may be included, before it is counted.
    pub(crate) fn eligibility(&self, id: CandidateId) -> Result<Eligibility, Error> {
        let at = match id {
            CandidateId::Note(at) => {
                return Ok(self.rules.note(&self.notes.get(at).item.id));
            }
            CandidateId::Document(rank) => {
                let item = self.document(rank);
                return Ok(self.rules.document(&item.id, item.ttl));
            }
            CandidateId::System(_) | CandidateId::Focus | CandidateId::State(_) | CandidateId::Summary(_) => {
                return Ok(Eligibility::Eligible);
            }
            CandidateId::UserMessage(_) => None,
            CandidateId::Exchange(at) => Some(at),
        };
        if let Some(at) = at
            && let Some(rule) = self.rules.refuse_exchange(at)?
        {
            return Ok(Eligibility::Out(ExcludedReason::Policy(rule)));
        }
        // Required items never expire, and in most conversations nothing does.
        if self.nothing_leaves() || self.index.required_conversation.contains(&id) {
            return Ok(Eligibility::Eligible);
        }
        let members = self.members(id);
        if let Some(by) = self.archived(&members) {
            return Ok(Eligibility::Out(by));
        }
        let own = self.rules.messages(&members);
        // An exchange without pins leaves with its expired user message (T1).
        if let (Eligibility::Eligible | Eligibility::Asks(_), Some(at)) = (&own, at) {
            let turn = self.log.turns().turn_of(at);
            let head = self.log.turns().user_message(turn);
            if head.is_some() && self.unexpired_user_message(turn).is_none() && !self.is_pinned(&members) {
                return self.eligibility(CandidateId::UserMessage(turn));
            }
        }
        Ok(own)
    }

    /// Returns the candidates of the conversation in no particular order: summaries, user messages and
    /// exchanges.
    pub(crate) fn conversation(&self) -> impl Iterator<Item = CandidateId> {
        let turns = self.log.turns();
        let summaries = (0..self.summaries.len() as u32).map(CandidateId::Summary);
        let of_turns = TurnIndex::each(turns.all()).flat_map(|turn| {
            let head = turns.user_message(turn).map(|_| CandidateId::UserMessage(turn));
            head.into_iter().chain(ExchangeIndex::each(turns.exchanges(turn)).map(CandidateId::Exchange))
        });
        summaries.chain(of_turns)
    }

    /// Returns the positions of the messages of a candidate.
    pub(crate) fn members(&self, id: CandidateId) -> Members {
        members(self.log, id)
    }

    /// Returns the texts that are retained where they were sent.
    pub(crate) fn retained(&self) -> &RetainedItems<'a> {
        &self.retained
    }

    /// Returns the position of the first message of a question or an exchange. Retained texts are sent before
    /// it.
    pub(crate) fn place_of(&self, id: CandidateId) -> Option<u32> {
        let turns = self.log.turns();
        match id {
            CandidateId::UserMessage(turn) => turns.user_message(turn),
            CandidateId::Exchange(at) => Some(turns.exchange(at).at),
            _ => None,
        }
    }

    /// Returns the part of the prompt that contains the messages of a candidate. Providers accept different
    /// content in each part.
    pub(crate) fn turn_position(&self, id: CandidateId) -> TurnPosition {
        let turn = match id {
            CandidateId::UserMessage(turn) => turn,
            CandidateId::Exchange(at) if at >= self.live_exchanges_from => return TurnPosition::Live,
            CandidateId::State(_) | CandidateId::Document(_) => return TurnPosition::Live,
            CandidateId::System(_) | CandidateId::Focus | CandidateId::Note(_) => {
                return TurnPosition::Preamble;
            }
            CandidateId::Exchange(_) | CandidateId::Summary(_) => return TurnPosition::Past,
        };
        if turn >= self.live_from { TurnPosition::Live } else { TurnPosition::Past }
    }

    /// Returns the part of the prompt that contains a message of the conversation.
    pub(crate) fn turn_position_of(&self, position: u32) -> TurnPosition {
        self.candidate_of(position).map_or(TurnPosition::Preamble, |id| self.turn_position(id))
    }

    /// Returns the candidate of a message of the conversation.
    pub(crate) fn candidate_of(&self, position: u32) -> Option<CandidateId> {
        candidate_at(self.log, position)
    }

    pub(crate) fn log(&self) -> &'a Conversation {
        self.log
    }

    /// Returns the reason to exclude messages that a compaction archived. A pin may still keep them.
    fn archived(&self, members: &[u32]) -> Option<ExcludedReason> {
        let archive_index = self.log.archive_index();
        if archive_index.is_whole() {
            return None;
        }
        members.iter().find_map(|position| archive_index.archived(*position)).map(ExcludedReason::from)
    }

    /// Returns the sort key of a candidate of the conversation in prompt order.
    pub(crate) fn order_of(&self, id: CandidateId) -> Option<(u32, u8, u32)> {
        match id {
            CandidateId::Summary(at) => Some(self.summaries[at as usize].order),
            CandidateId::Exchange(at) => Some(self.log.order_of(self.log.turns().exchange(at).at)),
            other => self.members(other).first().map(|position| self.log.order_of(*position)),
        }
    }

    /// Returns the anchor of the prompt before this one, if it remembers its items.
    pub(crate) fn last_prompt(&self) -> Option<&'a Anchor> {
        last_prompt(self.request)
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

    pub(crate) fn focus(&self) -> Option<(ItemId, &Message)> {
        self.focus.as_ref().map(|focus| (FOCUS.into(), focus))
    }

    /// Returns the options for documents.
    pub(crate) fn rag_options(&self) -> &'a RagOptions {
        &self.config.rag
    }

    /// Returns a document in its whole form.
    pub(crate) fn document(&self, rank: Rank) -> LabelledItem<'a> {
        self.document_in(rank, Form::WHOLE)
    }

    /// Returns a document in one of its forms.
    pub(crate) fn document_in(&self, rank: Rank, form: Form) -> LabelledItem<'a> {
        let document = self.index.document(rank);
        LabelledItem { item: &self.request.rag[document.at], form, label: document.label }
    }

    /// Returns the labels of the conversation after a prompt with these documents.
    pub(crate) fn labels_with(&self, sent: &[Rank]) -> Labels {
        let mut labels = self.labels.clone();
        let documents = sent.iter().map(|rank| self.document(*rank));
        labels.extend(documents.filter_map(|document| Some((document.label?, document.item))));
        labels
    }

    /// Returns the ranks of a document in the lists of the request. Returns nothing if there is one list.
    pub(crate) fn list_ranks(&self, rank: Rank) -> Box<[ListRank]> {
        let lists = self.request.rag.fused_lists();
        let ranks = self.index.document(rank).ranks.iter().filter(|_| !lists.is_empty());
        ranks
            .map(|(list, rank)| ListRank::new(lists[*list as usize].name.clone(), u64::from(*rank)))
            .collect()
    }

    /// Returns the first and the last of the messages that a document quotes.
    pub(crate) fn quoted_messages(&self, item: &RagItem) -> Option<[ItemId; 2]> {
        let messages = item.messages.as_ref()?;
        let last = messages.end.checked_sub(1)?;
        let is_known = messages.start <= last && last < self.log.turns().messages();
        is_known.then(|| [messages.start, last].map(|position| self.log.message_id(position)))
    }

    /// Returns the id of the live question.
    pub(crate) fn live_id(&self) -> Option<ItemId> {
        self.log.live_question().map(|position| self.log.message_id(position))
    }

    /// Returns the role of the message at a position.
    pub(crate) fn role_of(&self, position: u32) -> Role {
        self.log.message(position).role()
    }

    /// Returns the reason to exclude a message without content, which can never be sent.
    pub(crate) fn empty_message() -> ExcludedReason {
        ExcludedReason::Policy(PolicyRule::EmptyMessage)
    }
}
