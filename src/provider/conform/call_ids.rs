//! Ids of calls in the letters that a target takes. Each id is a function of those before it in the prompt.

use super::letters::{MOST, hash, hashed, word};
use crate::{
    message::{Message, ToolCall},
    provider::model::CallIds,
};
use std::collections::{BTreeMap, BTreeSet};

/// The longest id that is taken where letters do not matter (autogen#6377).
const SHORT: usize = 40;

/// Gives calls, and the results right after them, ids that the target takes; those it takes stay as they are. Says which
/// were changed to what.
pub(super) fn fit(messages: &mut [Message], ids: CallIds) -> Vec<(String, String)> {
    let mut renamed = Vec::new();
    if ids == CallIds::Any {
        return renamed;
    }
    // Where an id may come again, one that is taken as it is says nothing about the others.
    let as_they_are = |message: &Message| {
        message.tool_calls().iter().all(|call| !call.id.is_empty() && call.id.len() <= SHORT)
    };
    if ids == CallIds::Short && messages.iter().all(as_they_are) {
        return renamed;
    }
    let mut taken = Taken::default();
    let mut current: BTreeMap<String, String> = BTreeMap::new();
    for message in messages {
        let calls = message.tool_calls();
        if !calls.is_empty() {
            current = named(calls, ids, &mut taken);
            if calls.iter().any(|call| current[&call.id] != call.id) {
                let changed = calls.iter().filter(|call| current[&call.id] != call.id);
                renamed.extend(changed.map(|call| (call.id.clone(), current[&call.id].clone())));
                let sent = calls.iter().map(|call| current[&call.id].clone()).collect();
                *message = message.with_call_ids(sent);
            }
        } else if let Some(id) = message.answers().and_then(|id| current.get(id))
            && message.answers() != Some(id)
        {
            *message = message.answering(id);
        }
    }
    renamed
}

/// Ids that are in use, and the number with which each is tried next.
#[derive(Default)]
struct Taken {
    ids: BTreeSet<String>,
    next: BTreeMap<String, u64>,
}

/// The ids of one message's calls as they are sent.
fn named(calls: &[ToolCall], ids: CallIds, taken: &mut Taken) -> BTreeMap<String, String> {
    let mut named = BTreeMap::new();
    for call in calls {
        let fitting = spelt(&call.id, ids);
        let mut id = fitting.clone();
        let nth = taken.next.entry(fitting.clone()).or_insert(2);
        // Any text may be used again by a later message; where each id is one, a number makes the next one.
        while ids != CallIds::Short && taken.ids.contains(&id) {
            id = match ids {
                CallIds::Nine => nine(&format!("{}#{nth}", call.id)),
                _ => {
                    let most = if ids == CallIds::Once { SHORT } else { MOST };
                    let suffix = format!("_{nth}");
                    fitting.chars().take(most - suffix.len()).collect::<String>() + &suffix
                }
            };
            *nth += 1;
        }
        taken.ids.insert(id.clone());
        named.insert(call.id.clone(), id);
    }
    named
}

/// The id in the letters that are taken.
fn spelt(id: &str, ids: CallIds) -> String {
    match ids {
        _ if id.is_empty() && ids != CallIds::Nine => "call".into(),
        CallIds::Any => id.into(),
        CallIds::Short | CallIds::Once if id.chars().count() <= SHORT => id.into(),
        CallIds::Short | CallIds::Once => hashed(id, id, SHORT),
        CallIds::Word if id.chars().count() <= MOST => word(id),
        CallIds::Word => hashed(&word(id), id, MOST),
        CallIds::Nine if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => id.into(),
        CallIds::Nine => nine(id),
    }
}

/// Nine letters and digits in place of a longer id.
fn nine(id: &str) -> String {
    hash(id)[..9].into()
}
