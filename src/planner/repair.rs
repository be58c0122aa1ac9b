//! Exchanges with broken tool calls, made sound (H1, H2).
//!
//! - Input: one exchange of the conversation, and the policy for calls without a result.
//! - Output: its messages as they are sent, notices of the repairs, or the policy that excludes the exchange.
//! - Rules: H1, H2, H3.
//!
//! Repairs are pure functions. They run only for the exchanges that a plan examines, and the conversation
//! keeps its messages as they are.

use crate::{
    config::Repair,
    conversation::{Conversation, Exchange, Fault},
    error::{Error, Repr},
    item::ItemId,
    message::{Message, ToolCall},
    plan::{Notice, NoticeCode, reason::PolicyRule},
    provider::{conform::TargetProfile, wording},
    text::plain::short,
};
use std::collections::{BTreeMap, BTreeSet};

/// A message of an exchange as it is sent.
pub(crate) struct SentMessage {
    pub(crate) id: ItemId,
    pub(crate) message: Message,
    /// The position in the log; `None` for a placeholder result.
    pub(crate) position: Option<u32>,
}

impl SentMessage {
    /// Returns a shorter form of this result with the call id under which it is sent: one of two calls with
    /// the same id has a new id in the prompt (H1).
    pub(crate) fn in_form(&self, form: Message) -> Message {
        match self.message.answers() {
            Some(id) if form.answers() != Some(id) => form.answering(id),
            _ => form,
        }
    }
}

/// Returns the policy that excludes an exchange from every prompt. Returns `None` if it may be sent.
///
/// # Errors
///
/// Fails if a call has no result and the policy is [`Repair::Reject`].
pub(crate) fn exclusion_policy(
    log: &Conversation,
    exchange: &Exchange,
    repair: Repair,
    profile: &TargetProfile,
) -> Result<Option<PolicyRule>, Error> {
    if let Some(fault) = exchange.fault {
        return Ok(Some(match fault {
            Fault::Second => PolicyRule::SecondResult,
            Fault::Empty => PolicyRule::EmptyMessage,
            Fault::Orphan | Fault::Moved => PolicyRule::OrphanResult,
        }));
    }
    let Some(missing) = exchange.answers.iter().position(Option::is_none) else {
        // A call with its results can be sent in every wire format. Only a message without calls may hold
        // nothing that this target reads.
        let is_foreign = exchange.answers.is_empty() && profile.accepts_nothing_of(log.message(exchange.at));
        return Ok(is_foreign.then_some(PolicyRule::ForeignMessage));
    };
    match repair {
        Repair::Synthesize => Ok(None),
        Repair::Drop => Ok(Some(PolicyRule::MissingResult)),
        Repair::Reject => Err(Error::new(Repr::MissingResult {
            message: log.message_id(exchange.at),
            call: short(&log.message(exchange.at).tool_calls()[missing].id).into_owned(),
        })),
    }
}

/// Returns the placeholder results that a repair adds. They are counted before they are sent.
pub(crate) fn synthetic_results(log: &Conversation, exchange: &Exchange) -> Vec<Message> {
    let calls = log.message(exchange.at).tool_calls();
    let missing = calls.iter().zip(&exchange.answers);
    missing.filter(|(_, answer)| answer.is_none()).map(|(call, _)| wording::missing_result(call)).collect()
}

/// Returns the messages of an exchange as they are sent: the call, its results in log order, then placeholder
/// results.
pub(crate) fn repaired_messages(log: &Conversation, exchange: &Exchange) -> Vec<SentMessage> {
    let calls = log.message(exchange.at).tool_calls();
    let sent_ids = distinct_ids(calls);
    let sent_id = |call: usize| sent_ids.as_ref().map_or(&calls[call].id, |ids| &ids[call]);
    let renamed = |call: usize| *sent_id(call) != calls[call].id;
    let head = log.message(exchange.at);
    let mut pieces = vec![SentMessage {
        id: log.message_id(exchange.at),
        message: match &sent_ids {
            Some(ids) => head.with_call_ids(ids.clone()),
            None => head.clone(),
        },
        position: Some(exchange.at),
    }];
    let mut results: Vec<(u32, usize)> = exchange
        .answers
        .iter()
        .enumerate()
        .filter_map(|(call, position)| position.map(|position| (position, call)))
        .collect();
    // Calls may be answered in another order than they were made: the log decides.
    results.sort_unstable();
    pieces.extend(results.into_iter().map(|(position, call)| {
        let message = log.message(position);
        SentMessage {
            id: log.message_id(position),
            message: if renamed(call) { message.answering(sent_id(call)) } else { message.clone() },
            position: Some(position),
        }
    }));
    let missing = (0..calls.len()).filter(|call| exchange.answers[*call].is_none());
    pieces.extend(missing.map(|call| {
        let id = sent_id(call);
        SentMessage {
            id: format!("synth:{}:{id}", log.message_id(exchange.at)).into(),
            message: wording::missing_result(&calls[call]).answering(id),
            position: None,
        }
    }));
    pieces
}

/// Returns the notices of the repairs of an included exchange, one for each rule. `open` is true if the
/// exchange still waits for results.
pub(crate) fn notices(log: &Conversation, exchange: &Exchange, open: bool) -> Vec<Notice> {
    let calls = log.message(exchange.at).tool_calls();
    let mut notices = Vec::new();
    let sent_ids = distinct_ids(calls).unwrap_or_default();
    // Grouped by the original id: each id gives one notice, however many calls share it.
    let mut renamed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (call, sent) in calls.iter().zip(&sent_ids).filter(|(call, sent)| call.id != **sent) {
        renamed.entry(&call.id).or_default().push(sent);
    }
    for (id, sent) in renamed {
        let (id, sent) = (short(id), sent.into_iter().map(short).collect::<Vec<_>>());
        let text = match sent.as_slice() {
            [first, .., last] => {
                format!(
                    "call id `{id}` is used {} times: the others are renamed `{first}` to `{last}`",
                    sent.len() + 1
                )
            }
            other => format!("call id `{id}` is used twice: one is renamed `{}`", other.concat()),
        };
        notices.push(Notice {
            code: NoticeCode::CallIdRenamed,
            ids: vec![log.message_id(exchange.at)],
            text,
        });
    }
    let members = exchange.members();
    // A result that is not right after its call in the log was moved there for the prompt.
    let apart = members
        .iter()
        .zip(exchange.at..)
        .filter(|(position, in_place)| *position != in_place)
        .map(|(position, _)| log.message_id(*position));
    let apart: Vec<ItemId> = apart.collect();
    if !apart.is_empty() {
        notices.push(Notice {
            code: NoticeCode::ResultMoved,
            text: format!("moved right after its call in {}", short(log.message_id(exchange.at).as_str())),
            ids: apart,
        });
    }
    if exchange.answers.iter().all(Option::is_some) {
        return notices;
    }
    let pieces = repaired_messages(log, exchange);
    let placeholders: Vec<&SentMessage> = pieces.iter().filter(|piece| piece.position.is_none()).collect();
    let pending = if open { "pending " } else { "" };
    let what = match placeholders.as_slice() {
        [] => return notices,
        [one] => format!(
            "{pending}call `{}` has no result: a placeholder result is sent",
            short(one.message.answers().unwrap_or_default())
        ),
        more => format!("{} {pending}calls have no result: placeholder results are sent", more.len()),
    };
    let ids = placeholders.iter().map(|piece| piece.id.clone()).collect();
    notices.push(Notice { code: NoticeCode::PlaceholderResult, ids, text: what });
    notices
}

/// Returns distinct ids for the calls of one message: the second use of `x` becomes `x#2`, the third `x#3`.
/// Returns `None` if all ids are distinct already.
fn distinct_ids(calls: &[ToolCall]) -> Option<Vec<String>> {
    let mut given = BTreeSet::new();
    if calls.len() < 2 || calls.iter().all(|call| given.insert(&call.id)) {
        return None;
    }
    // All original ids are taken from the start: a later call may be named `x#2` by its provider.
    let mut used_ids: BTreeSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut distinct = |call: &ToolCall, seen: &mut u32| {
        *seen += 1;
        if *seen == 1 {
            return call.id.clone();
        }
        loop {
            let id = format!("{}#{seen}", call.id);
            if used_ids.insert(id.clone()) {
                return id;
            }
            *seen += 1;
        }
    };
    Some(calls.iter().map(|call| distinct(call, seen.entry(&call.id).or_default())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_call_ids_become_distinct() {
        let calls = ["x", "x", "y", "x", "x#2"].map(|id| ToolCall::new(id, "f", "{}"));
        let distinct = ["x", "x#3", "y", "x#4", "x#2"].map(String::from);
        assert_eq!(distinct_ids(&calls), Some(distinct.into()));
        assert_eq!(distinct_ids(&calls[1..3]), None);
        assert_eq!(distinct_ids(&calls[..2]), Some(["x", "x#2"].map(String::from).into()));
    }
}
