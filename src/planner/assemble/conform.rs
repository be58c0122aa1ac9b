//! Messages in the form that the target takes (rules H4 to H7), and the tokens that this adds or saves (rule
//! N3).

use super::{PlanContext, included::Draft, marks};
use crate::{
    error::Error,
    item::{ItemId, ItemKind, Priority, Section, Source},
    message::{Message, Role, WireFormat},
    plan::{Notice, NoticeCode, Overhead, PlannedItem, reason::IncludedReason},
    planner::candidates::Candidates,
    provider::{
        conform::{Inserted, Missing, Normalized, TurnPosition},
        meter::{self, DeclarationNote, Meter, and_more},
        render,
    },
    text::plain::short,
};

/// The id of the placeholder message of the user that comes first.
pub(crate) const LEAD: &str = "synth:lead";
/// The id of the one that comes last.
pub(crate) const CONTINUE: &str = "synth:continue";
/// The beginning of the id of one of the assistant; the id of the result before it follows.
pub(crate) const BRIDGE: &str = "synth:bridge:";

/// Brings the messages into the form that the target takes, with what it demands, and says what was done.
///
/// # Errors
///
/// The id of a placeholder that is taken (rule O5), and counters that fail.
pub(super) fn conform(
    draft: &mut Draft,
    candidates: &Candidates<'_>,
    meter: &Meter,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    let stable = marks::long_enough(draft, context);
    let given = std::mem::take(&mut draft.prompt.messages);
    let ends: Vec<usize> = given.iter().map(|message| message.parts().len().saturating_sub(1)).collect();
    let normalized = meter.profile().sequence(given);
    draft.prompt.marks = marks::placed(&stable, &ends, &normalized.places);
    account(draft, meter, &normalized)?;
    roles(draft, &normalized);
    draft.row_messages = row_messages(draft, &normalized);
    inserted(draft, meter, &normalized)?;
    candidates.check_ids(&draft.made_up)?;
    draft.prompt.messages = normalized.messages;
    tools(draft, meter)?;
    draft.prompt.wire_format = Some(meter.profile().wire_format());
    draft.prompt.wants = meter.profile().wants();
    #[cfg(feature = "chat-template")]
    meter.neutralise(&mut draft.prompt);
    about_the_calls(draft, &normalized.renamed);
    about_the_messages(draft);
    Ok(())
}

/// Adds the lines of tokens that merging, joining and rewriting save or add (rule N3).
fn account(draft: &mut Draft, meter: &Meter, normalized: &Normalized) -> Result<(), Error> {
    for role in &normalized.merged {
        draft.line(meter, Overhead::Merged, -i128::from(meter.saved_by_merging(*role)));
    }
    if normalized.joined > 0
        && let Some(joined) = normalized.messages.first()
    {
        let rows: u64 = draft.rows[..normalized.joined].iter().map(|row| row.token_estimate.tokens).sum();
        let apart = rows.saturating_sub(meter.around_one_text(Role::System));
        let tokens = meter.joins(joined.text(), std::iter::once(apart))?;
        draft.line(meter, Overhead::Joins, tokens);
    }
    for message in normalized.messages.iter().filter(|message| meter.profile().joins_thoughts(message)) {
        let texts: Vec<&str> = message.reasoning().iter().map(|reasoning| reasoning.text.as_str()).collect();
        let apart: Result<Vec<u64>, Error> =
            texts.iter().map(|text| Ok(meter.counter().count(text)?.tokens)).collect();
        let tokens = meter.joins(&texts.join("\n\n"), apart?.into_iter())?;
        draft.line(meter, Overhead::Joins, tokens);
    }
    for (before, after) in &normalized.rewritten {
        let tokens = |message: &Message| meter.message(message, TurnPosition::Live, u64::MAX);
        let more = i128::from(tokens(after)?.in_full()) - i128::from(tokens(before)?.in_full());
        draft.line(meter, Overhead::Joins, more);
    }
    Ok(())
}

/// Instructions are rows of the role in which they are sent.
fn roles(draft: &mut Draft, normalized: &Normalized) {
    for (at, place) in normalized.places.iter().enumerate() {
        let (row, role) = (&mut draft.rows[draft.first_rows[at]], normalized.messages[place.message].role());
        if row.role.is_some_and(Role::instructs) {
            row.role = Some(role);
        }
    }
}

/// For each row, the message of the finished prompt that it is part of; rows of messages that nobody wrote
/// are yet to come.
fn row_messages(draft: &Draft, normalized: &Normalized) -> Vec<usize> {
    let ends = draft.first_rows.iter().skip(1).copied().chain([draft.rows.len()]);
    let rows = draft.first_rows.iter().zip(ends).zip(&normalized.places);
    rows.flat_map(|((first, end), place)| (*first..end).map(|_| place.message)).collect()
}

/// Rows of the messages that nobody wrote, and notices of them (rule H5).
fn inserted(draft: &mut Draft, meter: &Meter, normalized: &Normalized) -> Result<(), Error> {
    let provider = provider(meter.profile().wire_format());
    // Each given row comes after the rows that were inserted before it.
    for (more, Inserted { why, before, message }) in normalized.inserted.iter().enumerate() {
        let row = draft.first_rows.get(*before).map_or(draft.rows.len(), |first| first + more);
        let (kind, id, text) = match why {
            Missing::Lead => (
                ItemKind::Lead,
                LEAD.to_owned(),
                format!("placeholder user message added: {provider} requires a user message first"),
            ),
            // Named after the result before it: a document may have the name of a message.
            Missing::Bridge => (
                ItemKind::Bridge,
                format!("{BRIDGE}{}", draft.rows[draft.first_rows[before - 1] + more].id),
                format!(
                    "placeholder assistant message added: {provider} takes no user message right after results"
                ),
            ),
            Missing::Continue => (
                ItemKind::Continue,
                CONTINUE.to_owned(),
                format!("placeholder user message added: {provider} requires a final user message"),
            ),
        };
        let id = ItemId::from(id);
        let tokens = meter.message(message, TurnPosition::Live, u64::MAX)?.in_full();
        draft.bytes += meter::bytes(message);
        draft.made_up.push(id.clone());
        draft.notices.push(Notice { code: NoticeCode::PlaceholderMessage, ids: vec![id.clone()], text });
        let planned = PlannedItem {
            id,
            kind,
            source: Source::Synthetic,
            section: Section::Conversation,
            role: Some(message.role()),
            priority: Priority::Normal,
            ttl: None,
            reason: IncludedReason::Required,
            token_estimate: meter.counted(tokens),
            origin: None,
            body: message.clone(),
        };
        let at = normalized.messages.iter().position(|one| one == message).unwrap_or_default();
        draft.row_messages.insert(row.min(draft.row_messages.len()), at);
        draft.rows.insert(row, planned);
    }
    Ok(())
}

/// Who demands something, as people know it.
fn provider(format: WireFormat) -> &'static str {
    match format {
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => "OpenAI",
        WireFormat::Anthropic => "Anthropic",
        WireFormat::Gemini => "Gemini",
        WireFormat::ChatTemplate => "the chat template",
        WireFormat::Plain => "the provider",
    }
}

/// The tools as they are declared, with notices about what had to change.
fn tools(draft: &mut Draft, meter: &Meter) -> Result<(), Error> {
    let declared = meter.declared(&std::mem::take(&mut draft.prompt.tools))?;
    draft.prompt.tools.clone_from(&declared.tools);
    let notes = declared.notes.iter();
    draft.notices.extend(notes.map(|(note, text)| {
        let code = match note {
            DeclarationNote::NotDeclared => NoticeCode::ToolsNotDeclared,
            DeclarationNote::Renamed => NoticeCode::ToolsRenamed,
            DeclarationNote::FieldsLeftOut => NoticeCode::ToolFieldsLeftOut,
            DeclarationNote::SchemaChanged => NoticeCode::SchemaChanged,
        };
        Notice { code, ids: Vec::new(), text: text.clone() }
    }));
    Ok(())
}

/// Ids of calls that the target takes in other letters only, or once in a prompt, and calls without the
/// signature it asks for.
fn about_the_calls(draft: &mut Draft, renamed: &[(String, String)]) {
    let mut say = |code: NoticeCode, text: String| draft.notices.push(Notice { code, ids: Vec::new(), text });
    if let [(from, to), rest @ ..] = renamed {
        let more = and_more(rest.len());
        let (from, to) = (short(from), short(to));
        say(
            NoticeCode::CallIdsChanged,
            format!("call ids are changed to what the provider accepts: `{from}` to `{to}`{more}"),
        );
    }
    if let Some(unsigned) = render::unsigned_calls(&draft.prompt) {
        let calls = if unsigned == 1 { "1 call".into() } else { format!("{unsigned} calls") };
        say(
            NoticeCode::SignatureMissing,
            format!("no signature on {calls} of the current turn: the provider is told to skip the check"),
        );
    }
}

/// Adds a notice for each kind of change that the target needed.
fn about_the_messages(draft: &mut Draft) {
    let texts = [
        (
            NoticeCode::InstructionsAsNote,
            "instructions sent as a note: the provider does not take them between messages",
        ),
        (
            NoticeCode::PartReplaced,
            "parts that the provider does not support are left out, or replaced by a placeholder",
        ),
        (NoticeCode::ArgumentsWrapped, "arguments that are not a JSON object are wrapped in one"),
        (NoticeCode::FunctionRenamed, "function names are changed to characters that the provider accepts"),
        (NoticeCode::NameChanged, "the speaker's name is dropped or changed: not supported here"),
        (NoticeCode::ReasoningDropped, "reasoning stripped: the provider does not take it back here"),
    ];
    for (code, text) in texts {
        let changed = draft.changed.iter().filter(|(changed, _)| *changed == code);
        let ids: Vec<ItemId> = changed.map(|(_, id)| id.clone()).collect();
        if !ids.is_empty() {
            draft.notices.push(Notice { code, ids, text: text.into() });
        }
    }
}
