//! Retained texts of one request, and texts that are sent for the first time.
//!
//! - Input: a request, and the texts that its conversation remembers as sent.
//! - Output: [`RetainedItems`]: the retained texts before each message, and the documents and state that are
//!   new.
//! - Rules: S10, S11, S12, S17, S20, S21, O5.

use super::late::{self, LateAdditions};
use crate::{
    conversation::{Conversation, Place, SentText, sent_state_row},
    item::{ItemId, ItemKind},
    message::{Message, Role, Tool},
    plan::{
        NewState, PlannedItem, RetentionCost, TOOLS, Target,
        anchor::{SentAgain, Sticky},
    },
    planner::{rendering::ToolResultRendering, request::PlanRequest},
    provider::{conform::TargetProfile, meter::Meter, native, render, sent_document::BlockLayout, wording},
    rag::{Form, RagItem},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The retained texts of a request, each with the question or exchange that it was sent before (rule S10).
///
/// If the request repeats a retained text, that text is not a candidate: the prompt already contains it.
#[derive(Debug)]
pub(crate) struct RetainedItems<'a> {
    request: &'a PlanRequest<'a>,
    profile: TargetProfile,
    /// The block in which documents are sent.
    block: Arc<BlockLayout>,
    /// Parts of the head that are sent at the end (rule S12).
    late: LateAdditions<'a>,
    /// True if texts are retained at all.
    retains_texts: bool,
    /// Position before which texts are no longer sent.
    released_before: u32,
    /// Position before which texts left in an earlier round. The first rendering of each round is without
    /// them.
    left_before: u32,
    /// Positions whose texts were not in the prompt of an earlier round.
    left_places: BTreeSet<u32>,
    /// True if new documents come last, because their question was sent without them.
    documents_come_last: bool,
    /// The costs of the retained texts of earlier questions (rule S11).
    retention_cost: Option<RetentionCost>,
    /// The live question, until it has a reply. The texts before it are selected again.
    unanswered: Option<u32>,
    /// Documents that the request repeats, with the positions of the messages after them.
    documents: BTreeMap<ItemId, u32>,
    /// The names of their forms, if they were not sent whole, by place, id and text.
    shorter_forms: BTreeMap<(u32, ItemId, String), Arc<str>>,
    /// Ids of new documents of the request that have the id of a document sent before.
    new_documents: BTreeSet<ItemId>,
    /// Indices in the request of the documents that are not retained.
    competing: Vec<usize>,
    /// State that the request repeats, with the positions and the rows that hold it.
    state: BTreeMap<ItemId, (u32, ItemId)>,
    /// State that is sent for the first time and retained from then on, by its row.
    new_state: BTreeMap<ItemId, NewState>,
}

impl<'a> RetainedItems<'a> {
    /// Finds the retained texts of a request. If `retains_texts` is false, none are retained.
    pub(crate) fn new(
        request: &'a PlanRequest<'a>,
        target: &Target,
        meter: &Meter,
        retains_texts: bool,
        sticky: Sticky<'_>,
        again: &SentAgain,
    ) -> Self {
        let log = request.log;
        let profile = *meter.profile();
        let live = log.live_question();
        let is_answered = log.live_turn().is_some_and(|turn| !log.turns().exchanges(turn).is_empty());
        // The texts before that message were released too, so the boundary is the position after it.
        let released =
            sticky.released_through.and_then(|id| log.position_of(id)).map(|position| position + 1);
        let mut retained = Self {
            request,
            profile,
            block: Arc::clone(meter.block_layout()),
            late: LateAdditions::new(request, target, &profile, retains_texts),
            retains_texts,
            released_before: released.filter(|_| retains_texts).unwrap_or_default(),
            left_before: again.left_before,
            left_places: again.left_places.clone(),
            documents_come_last: false,
            retention_cost: sticky.retention_cost.filter(|_| retains_texts),
            unanswered: live.filter(|_| retains_texts && !is_answered),
            documents: BTreeMap::new(),
            shorter_forms: BTreeMap::new(),
            new_documents: BTreeSet::new(),
            competing: Vec::new(),
            state: BTreeMap::new(),
            new_state: BTreeMap::new(),
        };
        // A caller that keeps the anchor but not the sent texts supplies the documents of the question again.
        let brings_the_set = request.previous.is_some()
            && !sticky.rag.is_empty()
            && !sticky.rag.ids().iter().any(|id| retained.documents_with_id(id).next().is_some());
        let has_documents = live.is_some_and(|live| !log.sent_with().documents(live).is_empty());
        retained.documents_come_last = retains_texts
            && is_answered
            && (sticky.question_sent || has_documents)
            && profile.accepts_state_last()
            && !brings_the_set;
        retained.match_documents(again);
        retained
    }

    /// Matches the documents of the request with the retained ones. The others compete for tokens.
    fn match_documents(&mut self, again: &SentAgain) {
        let log = self.log();
        self.competing.reserve(self.request.rag.len());
        for (at, item) in self.request.rag.iter().enumerate() {
            // Only an identical text is a repeat, in the form in which it was sent (rule S17). The line
            // before it stays as it was sent (rule S21).
            let sent_form = |(place, sent): (u32, &SentText)| {
                let is_sent = |form: &Form| wording::is_sent_as(&sent.text, item.text_in(*form));
                let chunk = || self.is_chunk(place, sent, item).then_some(Form::WHOLE);
                let form = item.forms().find(is_sent).or_else(chunk)?;
                Some(((place, sent.id.clone(), sent.text.clone()), form))
            };
            let sent = self.documents_with_id(&item.id).find_map(sent_form);
            if let Some((sent, form)) = sent.filter(|_| !again.documents.contains(&item.id)) {
                self.documents.insert(item.id.clone(), sent.0);
                if let Some(name) = item.form_name(form) {
                    self.shorter_forms.insert(sent, Arc::clone(name));
                }
                continue;
            }
            // A retained document gets another row id only if a new document has its id.
            if self.retains_texts && log.sent_with().documents_with_id(&item.id).next().is_some() {
                self.new_documents.insert(item.id.clone());
            }
            self.competing.push(at);
        }
    }

    fn log(&self) -> &'a Conversation {
        self.request.log
    }

    /// Checks if a retained text is a chunk of a joined text that contains a document as it would be sent
    /// (rule S14).
    fn is_chunk(&self, place: u32, sent: &SentText, item: &RagItem) -> bool {
        let documents = self.log().sent_with().documents(place);
        let Some(at) = documents.iter().position(|document| std::ptr::eq(document, sent)) else {
            return false;
        };
        let (opens, closes) = (wording::opens_document, wording::closes_document);
        if opens(&sent.text) && closes(&sent.text) {
            return false;
        }
        let first = documents[..=at].iter().rposition(|document| opens(&document.text));
        let last = documents[at..].iter().position(|document| closes(&document.text));
        let (Some(first), Some(last)) = (first, last) else { return false };
        let whole: String = documents[first..=at + last].iter().map(|document| &*document.text).collect();
        whole.contains(&wording::delimited_part(&item.text, "document"))
    }

    /// Checks if texts are retained for this request at all.
    pub(crate) fn retains_texts(&self) -> bool {
        self.retains_texts
    }

    /// Returns the position before which texts are no longer sent.
    pub(crate) fn released_before(&self) -> u32 {
        self.released_before
    }

    /// Returns the position before which texts left in an earlier round.
    pub(crate) fn left_before(&self) -> u32 {
        self.left_before
    }

    /// Checks if new documents come last, because their question was sent without them.
    pub(crate) fn documents_come_last(&self) -> bool {
        self.documents_come_last
    }

    /// Returns the costs of the retained texts of earlier questions (rule S11).
    pub(crate) fn retention_cost(&self) -> Option<RetentionCost> {
        self.retention_cost
    }

    /// Returns the live question, until it has a reply.
    pub(crate) fn unanswered(&self) -> Option<u32> {
        self.unanswered
    }

    /// Checks if the texts before a message are still sent.
    pub(crate) fn is_retained_at(&self, position: u32) -> bool {
        position >= self.released_before
            && self.unanswered != Some(position)
            && !self.left_places.contains(&position)
            && position < self.log().turns().messages()
            && self.log().archive_index().archived(position).is_none()
    }

    /// Checks if the texts before a message are sent in a rendering that releases those before
    /// `released_before`.
    pub(crate) fn is_sent_at(&self, position: u32, released_before: u32) -> bool {
        self.retains_texts && position >= released_before && self.is_retained_at(position)
    }

    /// Returns the retained documents of an id with their places, newest first.
    fn documents_with_id<'l>(&'l self, id: &'l ItemId) -> impl Iterator<Item = (u32, &'l SentText)> {
        let places = self.log().sent_with().documents_with_id(id).filter(|_| self.retains_texts);
        places.filter(|(at, _)| self.is_retained_at(*at))
    }

    /// Returns the messages before which documents with an id are retained.
    pub(crate) fn places_of(&self, id: &ItemId) -> Vec<u32> {
        self.documents_with_id(id).map(|(place, _)| place).collect()
    }

    /// Returns the indices in the request of the documents that are not retained.
    pub(crate) fn competing_documents(&self) -> &[usize] {
        &self.competing
    }

    /// Checks if the request repeats a retained text.
    pub(crate) fn has_repeats(&self) -> bool {
        !self.documents.is_empty() || !self.state.is_empty()
    }

    /// Returns the position of the message after a document that the request repeats.
    pub(crate) fn place_of_document(&self, id: &ItemId) -> Option<u32> {
        self.documents.get(id).copied()
    }

    /// Returns the name of the form in which a document that the request repeats was sent before the message
    /// at `place`. Returns `None` if it was sent whole.
    pub(crate) fn shorter_form(&self, place: u32, sent: &SentText) -> Option<&Arc<str>> {
        if self.shorter_forms.is_empty() {
            return None;
        }
        self.shorter_forms.get(&(place, sent.id.clone(), sent.text.clone()))
    }

    /// Returns the documents that are sent before a message.
    pub(crate) fn documents_before(&self, position: u32, released_before: u32) -> &'a [SentText] {
        if self.is_sent_at(position, released_before) {
            self.log().sent_with().documents(position)
        } else {
            &[]
        }
    }

    /// Builds the message of documents that are retained.
    pub(crate) fn documents_message(&self, documents: &[SentText]) -> Message {
        let texts: Vec<&str> = documents.iter().map(|document| &*document.text).collect();
        self.block.message(&texts)
    }

    /// Returns the row ids of the documents before a message.
    ///
    /// The newest document of an id keeps it as its row id, and a new document of the request is newer than a
    /// retained one. The row id of an older document also contains the position of its message (rule O5).
    pub(crate) fn document_rows<'d>(
        &'d self,
        documents: &'d [SentText],
        at: u32,
    ) -> impl Iterator<Item = ItemId> + 'd {
        documents.iter().enumerate().map(move |(nth, sent)| {
            let places = self.log().sent_with().documents_with_id(&sent.id);
            let newer = places.take_while(|(other, _)| *other > at);
            let is_newest = !newer.into_iter().any(|(other, _)| self.is_retained_at(other))
                && (!self.new_documents.contains(&sent.id) || self.documents.contains_key(&sent.id));
            // Two documents before one message may share an id and differ in text.
            let same = documents[..nth].iter().filter(|other| other.id == sent.id).count();
            if same == 0 && is_newest { sent.id.clone() } else { sent.document_row(at, same) }
        })
    }

    /// Returns the state entries that are sent before an exchange, each with its row id. `position` is the
    /// first message of the exchange.
    pub(crate) fn state_before(&self, position: u32, released_before: u32) -> Vec<(ItemId, Message)> {
        let state = self.log().sent_with().state(position);
        let is_exchange = || matches!(self.log().turns().place_of(position), Place::Exchange(_));
        if state.is_empty() || !self.is_sent_at(position, released_before) || !is_exchange() {
            return Vec::new();
        }
        state.iter().filter_map(|sent| Some((sent.state_row(position), self.state_message(sent)?))).collect()
    }

    /// Returns the message of a state entry as it was sent. Returns `None` if its text is part of the head
    /// now (rule S12).
    fn state_message(&self, sent: &SentText) -> Option<Message> {
        if sent.id.as_str() == TOOLS && !self.request.state.iter().any(|(id, _)| id.as_str() == TOOLS) {
            return self.late.has_tools(&sent.text).then(|| self.tools_message(&sent.text));
        }
        if self.log().system().iter().any(|text| text.id() == Some(&sent.id)) {
            return self.late.is_late(&sent.id).then(|| Message::system(&*sent.text));
        }
        Some(Message::user(&*sent.text))
    }

    /// Returns the message that declares a remembered list of tools.
    fn tools_message(&self, text: &str) -> Message {
        let tools = late::remembered(text);
        render::added_tools(self.profile.wire_format(), &self.profile.tools(&tools))
    }

    /// Returns the messages that are sent before those of a question or an exchange.
    pub(crate) fn messages_before(&self, position: u32, released_before: u32) -> Vec<Message> {
        if !self.retains_texts {
            return Vec::new();
        }
        let documents = self.documents_before(position, released_before);
        let block = (!documents.is_empty()).then(|| self.documents_message(documents));
        let state = self.state_before(position, released_before);
        block.into_iter().chain(state.into_iter().map(|(_, message)| message)).collect()
    }

    /// Returns the documents and the state before a message, for a request that has its instructions and
    /// tools in the head.
    pub(crate) fn texts_before(&self, position: u32) -> (Vec<SentText>, Vec<SentText>) {
        let sent_with = self.log().sent_with();
        if !self.retains_texts || !self.is_retained_at(position) {
            return (Vec::new(), Vec::new());
        }
        let is_state =
            |sent: &&SentText| self.state_message(sent).is_some_and(|sent| sent.role() == Role::User);
        let state = sent_with.state(position).iter().filter(is_state).cloned().collect();
        (sent_with.documents(position).to_vec(), state)
    }

    /// Checks if a system text is sent after the head: it was sent there before, or is from now on.
    pub(crate) fn is_late(&self, id: &ItemId, text: &str, again: &SentAgain) -> bool {
        let is_sent = || {
            let places = self.log().sent_with().state_with_id(id);
            let mut places = places.filter(|(at, _)| self.is_retained_at(*at));
            !again.state.contains(id) && places.any(|(_, sent)| sent.text == text)
        };
        self.late.is_late(id) && (self.late.takes_more || is_sent())
    }

    /// Checks if state is retained. This needs a target that takes it at the end of a prompt.
    pub(crate) fn retains_state(&self) -> bool {
        self.retains_texts && self.profile.accepts_state_last()
    }

    /// Records a state entry of the request. Returns its row and message, or `None` if it is retained
    /// already.
    pub(crate) fn add_state(
        &mut self,
        id: &ItemId,
        text: &str,
        message: Message,
        again: &SentAgain,
    ) -> Option<(ItemId, Message)> {
        if !again.state.contains(id) {
            let log = self.log();
            let newest = log.sent_with().state_with_id(id).find(|(at, _)| self.is_retained_at(*at));
            if let Some((at, sent)) = newest.filter(|(_, sent)| sent.text == text) {
                self.state.insert(id.clone(), (at, sent.state_row(at)));
                return None;
            }
        }
        // State of the user role is remembered as it is sent; instructions and tools have a text of their
        // own.
        let remembered = (message.role() != Role::User).then(|| text.to_owned());
        Some(self.retain_from_now_on(id, remembered, message))
    }

    /// Records the system texts and tools that joined the head after the beginning of the prompt was sent.
    /// Returns the messages to send at the end, instructions first, each with its row.
    pub(crate) fn add_late(&mut self, again: &SentAgain) -> Vec<(ItemId, Message)> {
        let mut new = Vec::new();
        let log = self.log();
        for text in log.system() {
            let Some(id) = text.id().filter(|id| !text.is_empty() && self.is_late(id, text.text(), again))
            else {
                continue;
            };
            new.extend(self.add_state(id, text.text(), Message::system(text.text()), again));
        }
        let id = ItemId::from(TOOLS);
        let sent = log.sent_with().state_with_id(&id).filter(|(at, _)| self.is_retained_at(*at));
        let sent = sent.map(|(at, sent)| ((at, sent.state_row(at)), sent.text.as_str()));
        let sent = sent.filter(|((_, row), text)| !again.state.contains(row) && self.late.has_tools(text));
        let (rows, texts): (Vec<(u32, ItemId)>, Vec<&str>) = sent.unzip();
        let tools = self.late.new_tools(&self.profile, texts.into_iter());
        // Lists of tools are recorded by row, because all of them have the same id.
        self.state.extend(rows.into_iter().map(|(at, row)| (row.clone(), (at, row))));
        if let Some(text) = tools {
            let message = self.tools_message(&text);
            new.push(self.retain_from_now_on(&id, Some(text), message));
        }
        new
    }

    /// Retains a text from this prompt on. Its place is before the reply, whose position is the number of
    /// messages so far.
    fn retain_from_now_on(
        &mut self,
        id: &ItemId,
        text: Option<String>,
        message: Message,
    ) -> (ItemId, Message) {
        let row = sent_state_row(id, self.log().turns().messages());
        self.new_state.insert(row.clone(), NewState { id: id.clone(), text });
        (row, message)
    }

    /// Returns the state that is sent for the first time and retained from then on, by row.
    pub(crate) fn new_state(&self) -> &BTreeMap<ItemId, NewState> {
        &self.new_state
    }

    /// Returns the tools that are declared before the messages.
    pub(crate) fn head_tools(&self) -> &'a [Tool] {
        self.late.in_head(self.request.tools)
    }

    /// Returns the retained texts that the request repeats and that have no row in a prompt.
    pub(crate) fn missing(&self, rows: &[PlannedItem]) -> SentAgain {
        let has_row =
            |id: &ItemId, is: fn(&PlannedItem) -> bool| rows.iter().any(|row| row.id == *id && is(row));
        // A document has another row id if a newer one has its id (O5).
        let row_of = |id: &ItemId, at: u32| {
            let documents = self.log().sent_with().documents(at);
            let mut rows = documents.iter().zip(self.document_rows(documents, at));
            rows.find(|(sent, _)| sent.id == *id).map(|(_, row)| row)
        };
        let is_sent =
            |id: &ItemId, at| row_of(id, at).is_some_and(|row| has_row(&row, |row| row.kind.is_document()));
        let documents = self.documents.iter().filter(|(id, at)| !is_sent(id, **at));
        let state =
            self.state.iter().filter(|(_, (_, row))| !has_row(row, |row| row.kind == ItemKind::State));
        let copies = documents.clone().flat_map(|(id, at)| std::iter::once(*at).chain(self.copies_of(id)));
        let state_copies = state.clone().flat_map(|(id, (at, _))| self.copies_of_state(id, *at));
        let places = copies.chain(state_copies);
        SentAgain {
            documents: documents.map(|(id, _)| id.clone()).collect(),
            state: state.map(|(id, _)| id.clone()).collect(),
            left_places: places.collect(),
            ..SentAgain::default()
        }
    }

    /// Returns the places of all retained copies of a document of the request. An older one may come back
    /// with a pin.
    fn copies_of(&self, id: &'a ItemId) -> impl Iterator<Item = u32> {
        let items = self.request.rag.iter().filter(move |item| item.id == *id);
        items.flat_map(move |item| {
            let is_copy = move |(place, sent): &(u32, &SentText)| {
                item.forms().any(|form| wording::is_sent_as(&sent.text, item.text_in(form)))
                    || self.is_chunk(*place, sent, item)
            };
            self.documents_with_id(&item.id).filter(is_copy).map(|(at, _)| at)
        })
    }

    /// Returns the places of all retained copies of the state entry at a place, with that place itself.
    fn copies_of_state(&self, id: &'a ItemId, at: u32) -> impl Iterator<Item = u32> {
        let places = || self.log().sent_with().state_with_id(id);
        let text = places().find(|(place, _)| *place == at).map(|(_, sent)| &sent.text);
        let copies = places().filter(move |(_, sent)| Some(&sent.text) == text).map(|(place, _)| place);
        std::iter::once(at).chain(copies.filter(|place| self.is_retained_at(*place)))
    }

    /// Returns a rendering without the retained texts before a position. Returns `None` if there are none.
    pub(crate) fn release_before(
        &self,
        position: u32,
        rendering: &ToolResultRendering,
    ) -> Option<ToolResultRendering> {
        let before = rendering.released_before;
        if !self.retains_texts || position <= before {
            return None;
        }
        let mut within = self.log().sent_with().within(before..position);
        let any = within.any(|(at, _)| self.is_retained_at(at));
        any.then(|| ToolResultRendering {
            released_before: position,
            releases: true,
            cuts: true,
            ..rendering.clone()
        })
    }

    /// Returns the last message whose retained texts are no longer sent. Returns `None` if there is none.
    pub(crate) fn released_through(&self, rendering: &ToolResultRendering) -> Option<ItemId> {
        rendering.released_before.checked_sub(1).map(|last| self.log().message_id(last))
    }

    /// Returns the texts that leave with a rendering.
    pub(crate) fn released_by(&self, rendering: &ToolResultRendering) -> impl Iterator<Item = ItemId> {
        let within = self.log().sent_with().within(self.released_before..rendering.released_before);
        within.filter(|(at, _)| self.is_retained_at(*at)).map(|(_, sent)| sent.id.clone())
    }
}

/// Checks if native documents have citations: unless a block of the conversation has none, because the
/// provider takes them on all blocks or on none. The first block that may be sent decides.
pub(crate) fn enables_citations(log: &Conversation) -> bool {
    let pins = log.pin_priorities();
    // An archived message is sent if it is pinned.
    let is_sent =
        |position: &u32| log.archive_index().archived(*position).is_none() || pins.contains_key(position);
    let parts =
        (0..log.turns().messages()).filter(is_sent).flat_map(|position| log.message(position).parts());
    parts.into_iter().find_map(native::enables_citations).unwrap_or(true)
}

/// Checks if a conversation has documents that were sent with its messages, and that no prompt has left out
/// since. `released_through` is the last message whose documents left.
pub(crate) fn has_documents(log: &Conversation, released_through: Option<&ItemId>) -> bool {
    let start = released_through.and_then(|id| log.position_of(id)).map_or(0, |position| position + 1);
    let known = start..log.turns().messages();
    log.sent_with().within(known).any(|(at, _)| {
        log.archive_index().archived(at).is_none() && !log.sent_with().documents(at).is_empty()
    })
}
