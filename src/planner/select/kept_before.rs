//! The candidates that come or go from one selection to the next.

use super::{kept::KeptCandidates, pin_slots::PinSlots, slots::SlotSet, trail::Trail};
use crate::planner::candidates::CandidateId;
use std::rc::Rc;

/// The candidates of an earlier selection, as far as it takes to find those that came or went since.
#[derive(Debug, Default)]
pub(crate) struct KeptBefore {
    each: Vec<CandidateId>,
    pins: Option<(Rc<PinSlots>, SlotSet)>,
    trail: Option<(Rc<Trail>, usize)>,
    awaits_pins: bool,
}

impl KeptBefore {
    /// Takes this selection for the earlier one from here on. Returns the candidates that may have come or
    /// gone; those that are in both times may be among them. The work follows the differences where both
    /// selections share their pins and their trail.
    pub(crate) fn move_to(&mut self, kept: &KeptCandidates) -> Vec<CandidateId> {
        let now = Self {
            each: kept.each().collect(),
            pins: kept.pins.clone(),
            trail: kept.trail.clone(),
            awaits_pins: kept.awaits_pins(),
        };
        let before = std::mem::replace(self, now);
        let same = self.each.iter().zip(&before.each).take_while(|(here, there)| here == there).count();
        let mut changed: Vec<CandidateId> =
            self.each[same..].iter().chain(&before.each[same..]).copied().collect();
        let nothing = SlotSet::default();
        let shared = match (&self.pins, &before.pins) {
            (Some((here, _)), Some((there, _))) => Rc::ptr_eq(here, there),
            _ => false,
        };
        let pins = |of: &Self, other: &Self| {
            let Some((pins, slots)) = &of.pins else { return Vec::new() };
            let others = other.pins.as_ref().filter(|_| shared).map_or(&nothing, |(_, slots)| slots);
            slots.without(others).flat_map(|slot| pins.with_pin(slot)).collect::<Vec<_>>()
        };
        changed.extend(pins(self, &before));
        changed.extend(pins(&before, self));
        changed.extend(self.walked_differently(&before, shared));
        changed
    }

    fn walked_differently(&self, before: &Self, shares_pins: bool) -> Vec<CandidateId> {
        let steps = |of: &Self| of.trail.as_ref().map_or(0, |(_, steps)| *steps);
        let is_common = match (&self.trail, &before.trail) {
            (Some((here, _)), Some((there, _))) => {
                Rc::ptr_eq(here, there) || shares_pins && here.holds_pins && there.holds_pins
            }
            _ => false,
        };
        let (longer, other) = if steps(self) >= steps(before) { (self, before) } else { (before, self) };
        let from = |of: &Self, from: usize| {
            let ids = of.trail.iter().flat_map(move |(trail, steps)| trail.ids(*steps).skip(from));
            ids.collect::<Vec<_>>()
        };
        if is_common && !self.awaits_pins && !before.awaits_pins {
            return from(longer, steps(other));
        }
        [from(longer, 0), from(other, 0)].concat()
    }
}
