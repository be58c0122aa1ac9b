//! Call ids that a target accepts. Each id depends only on the calls before it in the prompt.

use super::letters::{MOST, hash, hashed, word};
use crate::{
    message::{Message, ToolCall},
    provider::model::CallIds,
};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length in characters of an id for targets that accept any characters (autogen#6377).
const SHORT: usize = 40;

/// Replaces ids of calls, and of the results right after them, that the target does not accept. Accepted ids
/// stay unchanged. Returns the changed ids as pairs of the old and the new one.
pub(super) fn fit(messages: &mut [Message], ids: CallIds) -> Vec<(String, String)> {
    let mut renamed = Vec::new();
    if ids == CallIds::Any {
        return renamed;
    }
    // If an id may occur again, an accepted id has no effect on the others, so unchanged prompts are skipped.
    let as_they_are = |message: &Message| {
        message.tool_calls().iter().all(|call| !call.id.is_empty() && call.id.len() <= SHORT)
    };
    if ids == CallIds::Short && messages.iter().all(as_they_are) {
        return renamed;
    }
    let mut taken = Taken::default();
    // The ids of the last message with calls. Results refer to those, so an id that occurs again is no
    // conflict.
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

/// The ids in use, and for each id the number that is tried next. The number keeps long runs of one id
/// linear.
#[derive(Default)]
struct Taken {
    ids: BTreeSet<String>,
    next: BTreeMap<String, u64>,
}

/// Returns the new ids of one message's calls, by their old ids.
fn named(calls: &[ToolCall], ids: CallIds, taken: &mut Taken) -> BTreeMap<String, String> {
    let mut named = BTreeMap::new();
    for call in calls {
        let fitting = spelt(&call.id, ids);
        let mut id = fitting.clone();
        let nth = taken.next.entry(fitting.clone()).or_insert(2);
        // A target with short ids allows later messages to reuse an id. Other targets need a number for
        // uniqueness.
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

/// Returns the id in the characters that the target accepts. It may not be unique.
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

/// Returns nine characters of a hash of an id, letters and digits.
fn nine(id: &str) -> String {
    hash(id)[..9].into()
}
