//! Notices of pins that do not fit.
//!
//! - Input: a selection, with its costs and budgets.
//! - Output: one notice for each pin, with the tokens that it needs and the tokens that are missing.
//! - Rules: S2.

use crate::{
    error::Error,
    item::ItemId,
    plan::{
        Notice, NoticeCode,
        reason::{ExcludedReason, LimitedBy},
    },
    planner::{
        budget::Budgets,
        candidates::{CandidateId, Candidates, Costs, Pin},
        select::Selection,
    },
    provider::meter::Meter,
    provider::weight::Weight,
    text::plain::grouped,
    tokens::Certainty,
};

/// Returns the notices in the order of rule S2. Only for a plan within its budget: an overflow reports pins
/// itself.
///
/// # Errors
///
/// Fails if counting a pin fails.
pub(super) fn notices(
    candidates: &Candidates<'_>,
    costs: &Costs<'_>,
    meter: &Meter,
    budgets: &Budgets,
    chosen: &Selection,
) -> Result<Vec<Notice>, Error> {
    let mut notices = Vec::new();
    // A pinned message in the window is included anyway, so it needs no notice.
    for pin in candidates.index().pins.iter().filter(|pin| !chosen.has(pin.id)) {
        let Some(ExcludedReason::Budget { room, limited_by }) = chosen.reasons.pins.get(&pin.id) else {
            continue;
        };
        let of_what = match limited_by {
            LimitedBy::Size => "",
            LimitedBy::Cap => " under the section's cap (sections.system_pinned.cap)",
            LimitedBy::PinsLimit => " of the limit for pins (sections.system_pinned.pins_limit)",
            LimitedBy::RulesLimit => " of the limit for standing rules (compaction.rules_limit)",
            _ => continue,
        };
        let needs = match tokens(pin, costs, chosen, budgets.available.total())? {
            Some(n) => {
                let about = if meter.counted(n).certainty == Certainty::Exact { "" } else { "about " };
                let missing = grouped(n.saturating_sub(*room));
                format!("it needs {about}{} tokens, {missing} more than were left", grouped(n))
            }
            None => format!(
                "it needs more than the {} tokens of this prompt, {} were left",
                grouped(budgets.available.total()),
                grouped(*room)
            ),
        };
        let (code, name) = if pin.is_rule {
            (NoticeCode::RuleDropped, "standing rule")
        } else {
            (NoticeCode::PinDropped, "pin")
        };
        let text = format!("this {name} does not fit: {needs}{of_what}");
        notices.push(Notice { code, ids: ids(pin, candidates), text });
    }
    Ok(notices)
}

/// Returns the tokens of a pin and the user message that it brings. Returns `None` if they exceed `most`.
fn tokens(pin: &Pin, costs: &Costs<'_>, chosen: &Selection, most: u64) -> Result<Option<u64>, Error> {
    let mut sum = 0u64;
    for id in [Some(pin.id), pin.brings].into_iter().flatten().filter(|id| !chosen.has(*id)) {
        let Weight::Exactly(n) = costs.weigh(id, most)? else { return Ok(None) };
        sum = sum.saturating_add(n);
    }
    Ok(Some(sum))
}

/// Returns the id of a note, or the ids of the pinned messages of an exchange.
fn ids(pin: &Pin, candidates: &Candidates<'_>) -> Vec<ItemId> {
    let log = candidates.log();
    if let CandidateId::Note(at) = pin.id {
        return vec![candidates.notes().get(at).item.id.clone()];
    }
    let members = candidates.members(pin.id).into_iter();
    members
        .filter(|position| log.pin_priorities().contains_key(position))
        .map(|at| log.message_id(at))
        .collect()
}
