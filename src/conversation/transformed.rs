//! Reasoning that a provider dropped from a prompt. Maps the places in the body that the provider reports to
//! messages of the log (rule K7).

use crate::{
    item::ItemId,
    message::WireFormat,
    plan::{ContextPlan, DropReason, PlannedItem},
    provider::render,
    usage::{ContextEvent, TransformedInput},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The parsed report of a provider on the reasoning of a prompt.
#[derive(Default)]
pub(super) struct Dropped {
    /// The messages whose reasoning was dropped, with the reason.
    pub(super) ids: BTreeMap<ItemId, DropReason>,
    /// Events for changes that the plan did not predict.
    pub(super) events: Vec<ContextEvent>,
}

/// Finds the messages that a provider's report refers to. Reasoning that the plan already lists as lost
/// causes no event.
pub(super) fn dropped(plan: &ContextPlan, transformed: &[TransformedInput]) -> Dropped {
    let mut all = Dropped::default();
    if transformed.is_empty() {
        return all;
    }
    let body = match plan.wire_format {
        // Only Anthropic reports paths into the body, so only its body is rendered again.
        WireFormat::Anthropic => serde_json::to_value(render::anthropic(plan)).unwrap_or_default(),
        _ => Value::Null,
    };
    for one in transformed {
        let found = message_of(plan, &body, &one.place);
        let foreseen = found.is_some_and(|id| plan.thoughts.lost.iter().any(|lost| lost.id == *id));
        if let Some(id) = found.filter(|_| one.dropped) {
            let why = DropReason::DroppedByProvider { reason: one.reason.clone() };
            all.ids.entry(id.clone()).or_insert(why);
        }
        if !foreseen {
            all.events.push(ContextEvent::ReasoningDropped {
                ids: found.into_iter().cloned().collect(),
                dropped: one.dropped,
                reason: one.reason.clone(),
            });
        }
    }
    all
}

/// Returns the message whose reasoning is at a place of the body. The place is the id of an item, or the path
/// of a block whose signature occurs in one message.
fn message_of<'p>(plan: &'p ContextPlan, body: &Value, place: &str) -> Option<&'p ItemId> {
    // `messages.1.content.0` becomes the JSON pointer `/messages/1/content/0`.
    let block = body.pointer(&format!("/{}", place.replace('.', "/")));
    let seal = block.and_then(|block| block.get("signature").or_else(|| block.get("data"))?.as_str());
    let is_it = |row: &&PlannedItem| {
        let mut blocks = row.body.reasoning().iter();
        blocks.any(|block| match seal {
            Some(seal) => block.signature.as_deref() == Some(seal),
            None => block.id.as_deref() == Some(place),
        })
    };
    plan.included.iter().find(is_it).map(|row| &row.id)
}
