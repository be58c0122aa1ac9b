//! The messages as the target takes them (rules H4 to H7), and what that adds or saves (rule N3).

use super::{Frame, included::Parts, marks};
use crate::{
    candidates::Pool,
    error::Error,
    item::{ItemId, Priority, Section, Source},
    message::{Message, Role, Tool},
    meter::Meter,
    plan::{Notice, PlannedItem},
    reason::IncludedReason,
    recipient::Standing,
    render, wording,
};

/// Adds what the target demands, brings the messages into their last form, and says what was done.
///
/// # Errors
///
/// A made-up id that is taken (rule O5), and counters that fail.
pub(super) fn conform(
    parts: &mut Parts,
    pool: &Pool<'_>,
    meter: &Meter,
    frame: &Frame<'_>,
) -> Result<(), Error> {
    supply(parts, meter)?;
    pool.check_ids(&parts.made_up)?;
    let stable = marks::long_enough(parts, frame);
    let given = std::mem::take(&mut parts.prompt.messages);
    let ends: Vec<usize> =
        given.iter().map(|message| message.content_parts().len().saturating_sub(1)).collect();
    let conformed = meter.recipient().sequence(given);
    for role in &conformed.merged {
        parts.line(meter, "merged", -i128::from(meter.saved_by_merging(*role)));
    }
    if conformed.joined > 0
        && let Some(joined) = conformed.messages.first()
    {
        let rows: u64 = parts.rows[..conformed.joined].iter().map(|row| row.tokens.n).sum();
        let apart = rows.saturating_sub(meter.around_one_text(Role::System));
        let tokens = meter.joins(joined.text(), std::iter::once(apart))?;
        parts.line(meter, "joins", tokens);
    }
    for message in conformed.messages.iter().filter(|message| meter.recipient().joins_thoughts(message)) {
        let texts: Vec<&str> = message.reasonings().iter().map(|reasoning| reasoning.text.as_str()).collect();
        let apart: Result<Vec<u64>, Error> =
            texts.iter().map(|text| Ok(meter.counter().count(text)?.n)).collect();
        let tokens = meter.joins(&texts.join("\n\n"), apart?.into_iter())?;
        parts.line(meter, "joins", tokens);
    }
    for (before, after) in &conformed.rewritten {
        let tokens = |message: &Message| meter.message(message, Standing::Live, u64::MAX);
        let more = i128::from(tokens(after)?.in_full()) - i128::from(tokens(before)?.in_full());
        parts.line(meter, "joins", more);
    }
    parts.prompt.marks = marks::placed(&stable, &ends, &conformed.places);
    for (at, place) in conformed.places.iter().enumerate() {
        let (row, role) = (&mut parts.rows[parts.first_rows[at]], conformed.messages[place.message].role());
        if row.role.is_some_and(Role::instructs) {
            row.role = Some(role);
        }
    }
    parts.prompt.messages = conformed.messages;
    let given = std::mem::take(&mut parts.prompt.tools);
    parts.prompt.tools = meter.recipient().tools(&given).into_owned();
    let foreign: Vec<Tool> = given.into_iter().filter(|tool| !meter.recipient().takes_tool(tool)).collect();
    if !foreign.is_empty() {
        let names: Vec<&str> = foreign.iter().map(|tool| tool.name.as_str()).collect();
        let text = format!("tools that another provider runs are not declared: {}", names.join(", "));
        parts.notices.push(Notice { rule: "H6", ids: Vec::new(), text });
    }
    parts.prompt.framing = Some(meter.recipient().framing());
    parts.prompt.wants = meter.recipient().wants();
    #[cfg(feature = "chat-template")]
    meter.neutralise(&mut parts.prompt);
    about_the_ids(parts, &conformed.respelt);
    if let Some(unsigned) = render::unsigned_calls(&parts.prompt) {
        let text = format!(
            "{unsigned} calls of the current turn have no signature: the target is told to pass over that"
        );
        parts.notices.push(Notice { rule: "H6", ids: Vec::new(), text });
    }
    let notices = about_the_messages(parts);
    parts.notices.extend(notices);
    Ok(())
}

/// Messages that nobody wrote and the target demands (rule H5).
fn supply(parts: &mut Parts, meter: &Meter) -> Result<(), Error> {
    let recipient = meter.recipient();
    if recipient.wants_lead(&parts.prompt.messages) {
        let head = parts.prompt.messages.iter().take_while(|message| message.role().instructs()).count();
        let text = "a message of the user is sent before it: the target begins with one";
        insert(parts, meter, head, "synth:lead", Message::user(wording::LEAD), text)?;
    }
    let mut at = 1;
    while at < parts.prompt.messages.len() {
        let messages = &parts.prompt.messages;
        if recipient.wants_bridge(messages.get(at - 1), &messages[at]) {
            // Named after the result before it: a document may have the name of a message.
            let id = format!("synth:bridge:{}", parts.rows[parts.first_rows[at - 1]].id);
            let text =
                "a message of the assistant is sent before it: the target takes no user right after results";
            insert(parts, meter, at, &id, Message::assistant(wording::BRIDGE), text)?;
            at += 1;
        }
        at += 1;
    }
    if recipient.wants_more(&parts.prompt.messages) {
        let text = "a message of the user is sent last: the target does not end with the assistant";
        let end = parts.prompt.messages.len();
        insert(parts, meter, end, "synth:continue", Message::user(wording::GO_ON), text)?;
    }
    Ok(())
}

/// A made-up message before the one at this place, its row, and the notice.
fn insert(
    parts: &mut Parts,
    meter: &Meter,
    at: usize,
    id: &str,
    message: Message,
    text: &str,
) -> Result<(), Error> {
    let row = parts.first_rows.get(at).copied().unwrap_or(parts.rows.len());
    let tokens = meter.message(&message, Standing::Live, u64::MAX)?.in_full();
    let id = ItemId::from(id);
    parts.made_up.push(id.clone());
    parts.notices.push(Notice { rule: "H5", ids: vec![id.clone()], text: text.into() });
    parts.prompt.messages.insert(at, message.clone());
    parts.first_rows[at..].iter_mut().for_each(|first| *first += 1);
    parts.first_rows.insert(at, row);
    parts.stable.iter_mut().filter(|mark| mark.message >= at).for_each(|mark| mark.message += 1);
    parts.rows.insert(
        row,
        PlannedItem {
            id,
            source: Source::Synthetic,
            section: Section::Conversation,
            role: Some(message.role()),
            priority: Priority::Normal,
            ttl: None,
            reason: IncludedReason::Required,
            tokens: meter.counted(tokens),
            body: message,
        },
    );
    Ok(())
}

/// Ids of calls that the target takes in other letters only, or once in a prompt.
fn about_the_ids(parts: &mut Parts, respelt: &[(String, String)]) {
    let [(from, to), rest @ ..] = respelt else { return };
    let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
    let text = format!("ids of calls are sent as the target takes them: `{from}` as `{to}`{more}");
    parts.notices.push(Notice { rule: "H6", ids: Vec::new(), text });
}

/// What is sent otherwise than it is.
fn about_the_messages(parts: &Parts) -> Vec<Notice> {
    let changed = &parts.changed;
    let notices = [
        ("H4", &changed.fenced, "sent as a note: the target has a place of its own for instructions"),
        ("H6", &changed.parts, "a part that the target does not take here is named in its place"),
        ("H6", &changed.arguments, "arguments that are no JSON object are sent in one"),
        ("H6", &changed.functions, "functions are named in the letters that the target takes"),
        ("H7", &changed.names, "its speaker's name is not sent as it is: the target does not take it"),
        ("H7", &changed.reasoning, "its reasoning is not sent back: the target has no use for it here"),
    ];
    let said = notices.into_iter().filter(|(_, ids, _)| !ids.is_empty());
    said.map(|(rule, ids, text)| Notice { rule, ids: ids.clone(), text: text.into() }).collect()
}
