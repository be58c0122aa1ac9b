//! Messages in the form that the target accepts.
//!
//! - Input: a draft, and the profile of the target.
//! - Output: the conforming messages in the draft, with notices of the changes and lines for the tokens that
//!   they add or save.
//! - Rules: H4 to H7 (form), N3 (tokens), O5 (ids of placeholders).

use super::{PlanContext, laid_out::Draft, marks};
use crate::{
    error::Error,
    item::{ItemId, ItemKind, Priority, Section, Source},
    message::{Message, Role, WireFormat},
    plan::{Notice, NoticeCode, Overhead, PlannedItem, reason::IncludedReason},
    planner::candidates::Candidates,
    provider::{
        conform::{Inserted, Normalized, Placeholder, TurnPosition},
        meter::{self, DeclarationNote, Meter, and_more},
        render,
    },
    text::plain::short,
};

/// The id of the placeholder user message at the beginning.
pub(crate) const LEAD: &str = "synth:lead";
/// The id of the placeholder user message at the end.
pub(crate) const CONTINUE: &str = "synth:continue";
/// The prefix of the id of a placeholder assistant message; the id of the tool result before it follows.
pub(crate) const BRIDGE: &str = "synth:bridge:";

/// Converts the messages of a draft to the form that the target accepts, adds the messages that it demands,
/// and records notices.
///
/// # Errors
///
/// Fails if the id of a placeholder is already in use (rule O5), or if a token counter fails.
pub(super) fn conform(
    draft: &mut Draft,
    candidates: &Candidates<'_>,
    meter: &Meter,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    let stable = marks::long_enough(draft, context);
    let given = std::mem::take(&mut draft.prompt.messages);
    // The last part of each message, before messages are joined: marks refer to these parts.
    let ends: Vec<usize> = given.iter().map(|message| message.parts().len().saturating_sub(1)).collect();
    let normalized = meter.profile().sequence(given);
    draft.prompt.marks = marks::placed(&stable, &ends, &normalized.places);
    account(draft, meter, &normalized)?;
    roles(draft, &normalized);
    draft.row_messages = row_messages(draft, &normalized);
    inserted(draft, meter, &normalized)?;
    // The ids of all placeholders are known only now.
    candidates.check_ids(&draft.placeholder_ids)?;
    draft.prompt.messages = normalized.messages;
    tools(draft, meter)?;
    draft.prompt.wire_format = Some(meter.profile().wire_format());
    draft.prompt.requirements = meter.profile().requirements();
    #[cfg(feature = "chat-template")]
    meter.neutralize(&mut draft.prompt);
    about_the_calls(draft, &normalized.renamed);
    about_the_messages(draft);
    Ok(())
}

/// Adds the tokens that merging, joining and rewriting messages save or add (rule N3).
fn account(draft: &mut Draft, meter: &Meter, normalized: &Normalized) -> Result<(), Error> {
    for role in &normalized.merged {
        draft.line(meter, Overhead::Merged, -i128::from(meter.saved_by_merging(*role)));
    }
    // Several leading instructions became one text, which differs from the sum of their tokens.
    if normalized.joined > 0
        && let Some(joined) = normalized.messages.first()
    {
        let rows: u64 = draft.rows[..normalized.joined].iter().map(|row| row.token_estimate.tokens).sum();
        let apart = rows.saturating_sub(meter.around_one_text(Role::System));
        let tokens = meter.joins(joined.text(), std::iter::once(apart))?;
        draft.line(meter, Overhead::Joins, tokens);
    }
    for message in normalized.messages.iter().filter(|message| meter.profile().joins_reasoning(message)) {
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

/// Sets the roles of rows with instructions to the roles in which they are sent.
fn roles(draft: &mut Draft, normalized: &Normalized) {
    for (at, place) in normalized.places.iter().enumerate() {
        let (row, role) = (&mut draft.rows[draft.first_rows[at]], normalized.messages[place.message].role());
        if row.role.is_some_and(Role::instructs) {
            row.role = Some(role);
        }
    }
}

/// Returns the index of the finished message for each row. Rows of placeholder messages are not among them
/// yet.
fn row_messages(draft: &Draft, normalized: &Normalized) -> Vec<usize> {
    let ends = draft.first_rows.iter().skip(1).copied().chain([draft.rows.len()]);
    let rows = draft.first_rows.iter().zip(ends).zip(&normalized.places);
    rows.flat_map(|((first, end), place)| (*first..end).map(|_| place.message)).collect()
}

/// Adds the rows and notices of placeholder messages (rule H5).
fn inserted(draft: &mut Draft, meter: &Meter, normalized: &Normalized) -> Result<(), Error> {
    let provider = provider(meter.profile().wire_format());
    // `more` rows were inserted before this one, so each original row has moved by that number.
    for (more, Inserted { why, before, message }) in normalized.inserted.iter().enumerate() {
        let row = draft.first_rows.get(*before).map_or(draft.rows.len(), |first| first + more);
        let (kind, id, text) = match why {
            Placeholder::Lead => (
                ItemKind::Lead,
                LEAD.to_owned(),
                format!("placeholder user message added: {provider} requires a user message first"),
            ),
            // The id contains that of the row before it, because a document may have the name of a message.
            Placeholder::Bridge => (
                ItemKind::Bridge,
                format!("{BRIDGE}{}", draft.rows[draft.first_rows[before - 1] + more].id),
                format!(
                    "placeholder assistant message added: {provider} accepts no user message directly after tool results"
                ),
            ),
            Placeholder::Continue => (
                ItemKind::Continue,
                CONTINUE.to_owned(),
                format!("placeholder user message added: {provider} requires a final user message"),
            ),
        };
        let id = ItemId::from(id);
        let tokens = meter.message(message, TurnPosition::Live, u64::MAX)?.in_full();
        draft.bytes += meter::bytes(message);
        draft.placeholder_ids.push(id.clone());
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
            document: None,
            body: message.clone(),
        };
        let at = normalized.messages.iter().position(|one| one == message).unwrap_or_default();
        draft.row_messages.insert(row.min(draft.row_messages.len()), at);
        draft.rows.insert(row, planned);
    }
    Ok(())
}

/// Returns the name of the provider that demands a placeholder, for notices.
fn provider(format: WireFormat) -> &'static str {
    match format {
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => "OpenAI",
        WireFormat::Anthropic => "Anthropic",
        WireFormat::Gemini => "Gemini",
        WireFormat::ChatTemplate => "the chat template",
        WireFormat::Plain => "the provider",
    }
}

/// Declares the tools of the draft, and adds notices of the changes to them.
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

/// Adds notices about changed call ids and missing signatures of calls. Some targets accept other characters
/// only, or require ids that are unique in the prompt.
fn about_the_calls(draft: &mut Draft, renamed: &[(String, String)]) {
    let mut say = |code: NoticeCode, text: String| draft.notices.push(Notice { code, ids: Vec::new(), text });
    if let [(from, to), rest @ ..] = renamed {
        let more = and_more(rest.len());
        let (from, to) = (short(from), short(to));
        say(
            NoticeCode::CallIdsChanged,
            format!("tool call ids are changed to ids that the provider accepts: `{from}` to `{to}`{more}"),
        );
    }
    if let Some(unsigned) = render::unsigned_calls(&draft.prompt) {
        let calls = if unsigned == 1 { "1 call".into() } else { format!("{unsigned} calls") };
        say(
            NoticeCode::SignatureMissing,
            format!("no signature on {calls} of the current turn: the request disables the provider's check"),
        );
    }
}

/// Adds one notice for each kind of change that the target needed.
fn about_the_messages(draft: &mut Draft) {
    let texts = [
        (
            NoticeCode::InstructionsAsNote,
            "instructions sent as a note: the provider does not accept them between messages",
        ),
        (
            NoticeCode::PartReplaced,
            "parts that the provider does not support are left out, or replaced by a placeholder",
        ),
        (NoticeCode::ArgumentsWrapped, "arguments that are not a JSON object are wrapped in one"),
        (NoticeCode::FunctionRenamed, "function names are changed to characters that the provider accepts"),
        (
            NoticeCode::NameChanged,
            "the speaker's name is removed or changed: the provider does not support it",
        ),
        (NoticeCode::ReasoningDropped, "reasoning removed: the provider does not accept it at this position"),
    ];
    for (code, text) in texts {
        let changed = draft.changed.iter().filter(|(changed, _)| *changed == code);
        let ids: Vec<ItemId> = changed.map(|(_, id)| id.clone()).collect();
        if !ids.is_empty() {
            draft.notices.push(Notice { code, ids, text: text.into() });
        }
    }
}
