//! Rows and messages of the prompt, in prompt order.
//!
//! - Input: the selection, and the texts of its candidates.
//! - Output: the draft of a [`LaidOut`]: rows, messages, overhead and notices, before the target's form is
//!   applied.
//! - Rules: O1, O2, S4, S7, T2, H1, H9.

use super::LaidOut;
use crate::{
    config::Placement,
    conversation::ExchangeIndex,
    error::Error,
    item::{ItemId, ItemKind, Priority, Source, Ttl},
    message::{Mark, Message, Role},
    plan::{Notice, NoticeCode, Overhead, PlannedItem, reason::IncludedReason},
    planner::{
        candidates::{CandidateId, Candidates},
        eligibility::Eligibility,
        repair::{self, SentMessage},
        select,
    },
    provider::{conform::Changes, meter},
};
use std::borrow::Cow;

/// Returns the notice codes of the changes that a target needs to one message (rules H4, H6, H7).
fn codes(changes: Changes) -> impl Iterator<Item = NoticeCode> {
    let codes = [
        (changes.becomes_note, NoticeCode::InstructionsAsNote),
        (changes.parts, NoticeCode::PartReplaced),
        (changes.arguments, NoticeCode::ArgumentsWrapped),
        (changes.functions, NoticeCode::FunctionRenamed),
        (changes.name, NoticeCode::NameChanged),
        (changes.reasoning, NoticeCode::ReasoningDropped),
    ];
    codes.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, code)| code)
}

/// Returns the source of a message of the conversation. It does not depend on the section that pays.
pub(super) fn source_of(role: Role) -> Source {
    match role {
        Role::System | Role::Developer => Source::System,
        Role::Tool => Source::Tool,
        Role::User | Role::Assistant => Source::Conversation,
    }
}

/// Returns the numbers of the notes that last, and of those with a limited TTL.
fn notes_by_lifetime(candidates: &Candidates<'_>) -> (Vec<u32>, Vec<u32>) {
    let (mut lasting, mut fleeting) = (Vec::new(), Vec::new());
    for (number, note) in candidates.notes().iter() {
        if note.rule.is_some() {
            continue;
        }
        let limited = matches!(candidates.ttl_of(&note.item.id), Some(Ttl::Limited(_) | Ttl::NoneRemaining));
        if limited { fleeting.push(number) } else { lasting.push(number) }
    }
    (lasting, fleeting)
}

/// Returns the notes in prompt order, those with a limited TTL last, then the user's rules.
pub(crate) fn notes(candidates: &Candidates<'_>) -> Vec<CandidateId> {
    let (lasting, fleeting) = notes_by_lifetime(candidates);
    let rules = rules(candidates);
    lasting.into_iter().chain(fleeting).map(CandidateId::Note).chain(rules).collect()
}

/// Returns the user's rules in prompt order.
fn rules(candidates: &Candidates<'_>) -> impl Iterator<Item = CandidateId> {
    let rules = candidates.notes().iter().filter(|(_, note)| note.rule.is_some());
    rules.map(|(number, _)| CandidateId::Note(number))
}

impl LaidOut<'_> {
    /// Writes the selection in prompt order, before the target's form is applied.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(super) fn write(&mut self) -> Result<(), Error> {
        self.preamble()?;
        self.after_the_preamble()
    }

    /// Writes everything after the preamble (rule O1).
    fn after_the_preamble(&mut self) -> Result<(), Error> {
        let (index, question) = (self.candidates.index(), super::question(self.candidates));
        let merges = select::merges_state(index, self.chosen);
        let comes_first = self.context.placement == Placement::BeforeConversation;
        let comes_last = index.documents_come_last;
        if comes_first || question.is_none() && !comes_last {
            self.block()?;
        }
        for candidate in self.conversation() {
            let is_question = question == Some(candidate);
            if is_question {
                self.mark();
                if !comes_first && !comes_last {
                    self.block()?;
                }
                if !index.state_comes_last {
                    self.state()?;
                }
            }
            self.candidate(candidate)?;
            self.draft.last = Some(candidate);
            if is_question && merges {
                self.mark();
                self.merge_state()?;
            }
        }
        if comes_last {
            self.block()?;
        }
        if !merges {
            self.mark();
            if index.state_comes_last || question.is_none() {
                self.state()?;
            }
        }
        if self.candidates.retained().retains_texts() {
            self.mark();
        }
        Ok(())
    }

    /// Writes the system texts, the focus hint, the notes, those with a limited TTL last, then the rules.
    fn preamble(&mut self) -> Result<(), Error> {
        let (lasting, fleeting) = notes_by_lifetime(self.candidates);
        let system = self.candidates.index().required_system.iter().copied();
        let in_order: Vec<CandidateId> = system
            .filter(|candidate| !matches!(candidate, CandidateId::State(_)))
            .chain(lasting.into_iter().chain(fleeting.iter().copied()).map(CandidateId::Note))
            .chain(rules(self.candidates))
            .filter(|candidate| self.chosen.has(*candidate))
            .collect();
        // Numbers of notes ascend, so a binary search finds them.
        let fleeting = |candidate: &CandidateId| matches!(candidate, CandidateId::Note(at) if fleeting.binary_search(at).is_ok());
        // The next prompt begins with the same rows up to here; notes with a limited TTL may expire before
        // it.
        let lasts = in_order.iter().take_while(|candidate| !fleeting(candidate)).count();
        for (at, candidate) in in_order.into_iter().enumerate() {
            if at == lasts {
                self.mark();
            }
            self.candidate(candidate)?;
        }
        if self.draft.stable.is_empty() {
            self.mark();
        }
        Ok(())
    }

    /// Marks the end of the last message as one that the next prompt repeats.
    fn mark(&mut self) {
        let messages = &self.draft.prompt.messages;
        let end = messages
            .last()
            .map(|last| Mark { message: messages.len() - 1, part: last.parts().len().saturating_sub(1) });
        self.draft.stable.extend(end.filter(|end| self.draft.stable.last() != Some(end)));
    }

    /// Returns the included candidates of the conversation, with summaries, in prompt order.
    fn conversation(&self) -> Vec<CandidateId> {
        // The newest was included first, so the reverse is mostly in order, which the sort makes use of.
        let kept = self.chosen.included.ids().rev().filter(|candidate| {
            matches!(
                candidate,
                CandidateId::Summary(_) | CandidateId::UserMessage(_) | CandidateId::Exchange(_)
            )
        });
        let mut in_order = Vec::with_capacity(self.chosen.included.len());
        in_order.extend(kept.map(|candidate| (self.candidates.order_of(candidate), candidate)));
        in_order.sort();
        in_order.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// Writes the rows and messages of a candidate, with the texts that are retained before it.
    fn candidate(&mut self, candidate: CandidateId) -> Result<(), Error> {
        let candidates = self.candidates;
        self.sent_before(candidate)?;
        match candidate {
            CandidateId::System(at) => {
                let (id, message) = candidates.system(at).clone();
                self.push(candidate, id, ItemKind::SystemText, None, &message)
            }
            CandidateId::Focus => match candidates.focus() {
                Some((id, focus)) => self.push(candidate, id, ItemKind::FocusHint, None, focus),
                None => Ok(()),
            },
            CandidateId::State(at) => {
                let (id, message) = candidates.state(at);
                self.push(candidate, id.clone(), ItemKind::State, None, message)
            }
            CandidateId::Note(at) => {
                let note = candidates.notes().get(at);
                self.ask(candidate)?;
                let kind = if note.rule.is_some() { ItemKind::Rule } else { ItemKind::Note };
                self.push(candidate, note.item.id.clone(), kind, None, &note.message)
            }
            CandidateId::Summary(at) => {
                let (id, compaction, message) = self.candidates.summary(at);
                self.push(candidate, id.clone(), ItemKind::Summary { compaction }, None, message)
            }
            CandidateId::Document(_) => Ok(()),
            CandidateId::UserMessage(_) => {
                self.ask(candidate)?;
                let members = candidates.members(candidate);
                self.add_user_call_notice(&members);
                members.into_iter().try_for_each(|position| self.message(candidate, position))
            }
            CandidateId::Exchange(at) => self.exchange(candidate, at),
        }
    }

    /// Writes one message of the conversation.
    fn message(&mut self, candidate: CandidateId, position: u32) -> Result<(), Error> {
        let message = self.candidates.full_message(position);
        let id = self.candidates.log().message_id(position);
        self.push(candidate, id, ItemKind::Message, Some(position), &message)
    }

    /// Adds a notice of tool calls by the user, which are sent as text together with their results (rule H9).
    fn add_user_call_notice(&mut self, members: &[u32]) {
        let log = self.candidates.log();
        if members.first().is_some_and(|head| !log.message(*head).tool_calls().is_empty()) {
            self.draft.notices.push(Notice {
                code: NoticeCode::UserCallsAsText,
                text: "tool calls of the user and their results are sent as user text".into(),
                ids: members.iter().map(|position| log.message_id(*position)).collect(),
            });
        }
    }

    /// Writes the messages of an exchange after repair, and the notices of the repairs.
    fn exchange(&mut self, candidate: CandidateId, at: ExchangeIndex) -> Result<(), Error> {
        let log = self.candidates.log();
        let exchange = log.turns().exchange(at);
        self.ask(candidate)?;
        if exchange.answers.is_empty() {
            return self.message(candidate, exchange.at);
        }
        let open = self.candidates.open == Some(at);
        self.draft.notices.extend(repair::notices(log, exchange, open));
        for piece in repair::repaired_messages(log, exchange) {
            let kind = match piece.position {
                Some(_) => ItemKind::Message,
                None => {
                    self.draft.placeholder_ids.push(piece.id.clone());
                    ItemKind::PlaceholderResult { of: log.message_id(exchange.at) }
                }
            };
            let message = self.as_sent(&piece);
            self.push(candidate, piece.id, kind, piece.position, &message)?;
        }
        Ok(())
    }

    /// Returns a message of an exchange as it is sent: a result may be offloaded, cleared or clipped (rule
    /// S7), and reasoning withheld.
    fn as_sent(&mut self, piece: &SentMessage) -> Message {
        let rendering = self.costs.rendering();
        let is_result = piece.message.role() == Role::Tool;
        let position = piece.position.filter(|_| is_result);
        // A clipped result belongs to the open exchange, which is never cleared.
        let clipped = position.is_some_and(|at| rendering.clipped.contains_key(&at));
        let cleared = !clipped && position.is_some_and(|at| self.candidates.is_cleared(at, rendering));
        let offloaded = position.filter(|at| !cleared && self.candidates.offloaded(*at).is_some());
        self.draft.offloaded.extend(offloaded.map(|_| piece.id.clone()));
        if let Some(position) = position.filter(|_| clipped || cleared) {
            let list = if clipped { &mut self.draft.clipped } else { &mut self.draft.cleared };
            list.push(piece.id.clone());
            return piece.in_form(self.candidates.rendered(position, rendering).into_owned());
        }
        let whole = position.filter(|at| self.candidates.lacks_recall_tool(*at));
        self.draft.not_offloaded.extend(whole.map(|_| piece.id.clone()));
        self.candidates.full_piece(piece)
    }

    /// Adds a notice for each item that is kept one more turn under the policy `ask` (rule T2).
    fn ask(&mut self, candidate: CandidateId) -> Result<(), Error> {
        if self.candidates.nothing_ages()
            || self.chosen.included.get(candidate).reason == IncludedReason::Required
        {
            return Ok(());
        }
        if let Eligibility::Asks(ids) = self.candidates.eligibility(candidate)? {
            self.draft.items_to_confirm.extend(ids.iter().cloned());
            self.draft.notices.extend(ids.into_iter().map(ask_about));
        }
        Ok(())
    }

    /// Writes a row and its message in the form that the target accepts, and counts its tokens. `position` is
    /// that of a message of the conversation.
    pub(super) fn push(
        &mut self,
        candidate: CandidateId,
        id: ItemId,
        kind: ItemKind,
        position: Option<u32>,
        message: &Message,
    ) -> Result<(), Error> {
        let source = self.source(&kind, position);
        let kept = self.chosen.included.get(candidate);
        let turn_position = self.candidates.turn_position(candidate);
        let profile = self.meter.profile();
        let (sent, changes) = profile.adapt(message, turn_position);
        if let Cow::Owned(_) = sent {
            self.draft.changed.extend(codes(changes).map(|code| (code, id.clone())));
        }
        let tokens = self.meter.weigh(message, &sent, turn_position, u64::MAX)?.in_full();
        let message = sent.into_owned();
        // State and documents do not count for the rate of bytes per token (`pressure`).
        if source != Source::State {
            self.draft.bytes += self.bytes(position, &message);
        }
        self.draft.first_rows.push(self.draft.rows.len());
        self.draft.prompt.messages.push(message.clone());
        self.draft.rows.push(PlannedItem {
            ttl: self.candidates.ttl_of(&id),
            id,
            kind,
            source,
            section: kept.section,
            role: Some(message.role()),
            priority: self.priority(candidate, position),
            reason: self.reason(candidate, kept.reason),
            token_estimate: self.meter.counted_message(&message, tokens),
            document: None,
            body: message,
        });
        Ok(())
    }

    /// Returns the source of a row that is not a document, by its kind and by the role of its message.
    fn source(&self, kind: &ItemKind, position: Option<u32>) -> Source {
        match kind {
            ItemKind::SystemText | ItemKind::FocusHint => Source::System,
            ItemKind::State => Source::State,
            ItemKind::Note => Source::Pinned,
            ItemKind::Rule => Source::Rule,
            ItemKind::Summary { .. } => Source::Summary,
            _ => position.map_or(Source::Synthetic, |at| source_of(self.candidates.role_of(at))),
        }
    }

    /// Returns the priority of a note, or of a pinned message of the conversation.
    fn priority(&self, candidate: CandidateId, position: Option<u32>) -> Priority {
        let log = self.candidates.log();
        match candidate {
            CandidateId::Note(at) => self.candidates.notes().get(at).item.priority,
            _ => position.and_then(|at| log.pin_priorities().get(&at)).copied().unwrap_or_default(),
        }
    }

    /// Returns the reason to include a candidate. The user message of a trimmed turn has the reason
    /// `Question`: it is included for the exchanges of its turn, not for its age (rule S4).
    fn reason(&self, candidate: CandidateId, kept_for: IncludedReason) -> IncludedReason {
        let index = self.candidates.index();
        let trimmed = || match self.chosen.window_start {
            Some(start @ CandidateId::Exchange(_)) => index.user_message(index.turn_of(start)),
            _ => None,
        };
        match kept_for {
            IncludedReason::Recent if trimmed() == Some(candidate) => IncludedReason::Question,
            reason => reason,
        }
    }

    /// Returns the bytes of a row's message (see `meter::bytes`). They are known for a message that is sent
    /// unchanged.
    fn bytes(&self, position: Option<u32>, message: &Message) -> u64 {
        let log = self.candidates.log();
        match position.filter(|position| log.message(*position).is_same(message)) {
            Some(position) => log.turns().bytes(&(position..position + 1)),
            None => meter::bytes(message),
        }
    }

    /// Writes state entries as messages of their own.
    fn state(&mut self) -> Result<(), Error> {
        let states = (0..self.candidates.index().states() as u32).map(CandidateId::State);
        states.into_iter().try_for_each(|candidate| self.candidate(candidate))
    }

    /// Writes state as further parts of the live question, which is the last message.
    fn merge_state(&mut self) -> Result<(), Error> {
        let Some(question) = self.draft.prompt.messages.pop() else {
            return Ok(());
        };
        self.state()?; // rows and messages; the messages become parts
        let rows = self.draft.rows.len() - self.candidates.index().states() as usize;
        let texts = self.draft.rows[rows..].iter().map(|row| row.body.text().to_owned());
        let merged = question.with_texts(texts);
        let messages = &mut self.draft.prompt.messages;
        messages.truncate(messages.len() - self.candidates.index().states() as usize);
        messages.push(merged);
        // The merged entries keep their rows, but are no longer messages with a first row.
        self.draft.first_rows.truncate(self.draft.prompt.messages.len());
        let saved = self.meter.saved_by_merging(Role::User) * self.candidates.index().states();
        self.line(Overhead::Merged, -i128::from(saved));
        Ok(())
    }

    /// Adds tokens to a line of the overhead.
    pub(super) fn line(&mut self, what: Overhead, tokens: i128) {
        self.draft.line(self.meter, what, tokens);
    }
}

/// Returns the question about an expired item of the conversation.
fn ask_about(id: ItemId) -> Notice {
    question(id, "expired, kept for one more turn: pin it again to keep it")
}

/// Returns the question about an expired document.
pub(super) fn ask_about_document(id: ItemId) -> Notice {
    question(id, "expired, kept for one more turn: give it a new TTL to keep it")
}

fn question(id: ItemId, text: &str) -> Notice {
    Notice { code: NoticeCode::TtlQuestion, text: text.into(), ids: vec![id] }
}
