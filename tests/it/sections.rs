//! Properties of section budgets over generated sessions: pins first (rule S2), and the room for documents.

use crate::support::generate;
use context_window::{
    ContextPlan, ExcludedReason, IncludedReason, ItemKind, RagItem, Section, config::RagOptions,
    plan::NoticeCode,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(generate::cases(3_000, 40_000))]

    /// If the minimum and all pins fit, and the pins are within their limit, every live pin is included, for
    /// any demand of conversation and documents (rule S2). The required and pinned items are read from a plan
    /// with room for all of them.
    #[test]
    fn pins_come_before_conversation_and_documents(mut session in generate::session()) {
        session.config.sections.system_pinned.cap = None;
        session.declares_recall = false;
        let mut ample = session.clone();
        ample.config.sections.pins_limit = 1_000;
        ample.budget = 1_000_000;
        let ample = ample.plan().unwrap();
        let tokens = |reason: &[IncludedReason]| -> u64 {
            let rows = ample.included.iter().filter(|row| reason.contains(&row.reason));
            rows.map(|row| row.token_estimate.tokens).sum()
        };
        let pins = tokens(&[IncludedReason::Pinned]);
        let least = pins + tokens(&[IncludedReason::Required, IncludedReason::Summary]);
        let there = session.budget.saturating_sub(3);
        let limit = there * u64::from(session.config.sections.pins_limit) / 1_000;
        let plan = session.plan().unwrap();
        let dropped: Vec<_> = plan.notices.iter().filter(|notice| notice.code == NoticeCode::PinDropped).collect();
        if least <= there && pins <= limit {
            let pinned = |plan: &ContextPlan| -> Vec<String> {
                let rows = plan.included.iter().filter(|row| row.reason == IncludedReason::Pinned);
                rows.map(|row| row.id.to_string()).collect()
            };
            prop_assert_eq!(pinned(&plan), pinned(&ample));
            prop_assert!(dropped.is_empty(), "{:?}", dropped);
        }
        // Every note excluded for lack of room has a notice, and no included note has one.
        for row in &plan.excluded {
            let told = dropped.iter().any(|notice| notice.ids.contains(&row.id));
            let is_note = row.kind == ItemKind::Note && matches!(row.reason, ExcludedReason::Budget { .. });
            prop_assert!(!is_note || told != plan.overflow.is_some(), "{:?}", row);
        }
        for id in dropped.iter().flat_map(|notice| &notice.ids) {
            prop_assert!(plan.included.iter().all(|row| row.id != *id || row.section == Section::Rag), "{}", id);
        }
    }

    /// A document of `most` tokens is included, and one with a token more is not. With a document of `free`
    /// tokens, everything stays that is included without documents.
    #[test]
    fn retrieval_budget_equals_the_room_for_documents(mut session in generate::session()) {
        let rag = RagOptions::default();
        session.config.rag = rag;
        session.rag = Vec::new();
        // A document may displace a message whose rule then takes some of its tokens.
        session.rules.iter_mut().for_each(|rule| rule.1 = None);
        let (log, manager) = (session.log(), session.manager());
        let without = session.plan().unwrap();
        let budget = manager.retrieval_budget(&session.request(&log)).unwrap();
        prop_assert!(budget.free <= budget.most);
        let document = |tokens: u64| -> Option<RagItem> {
            let of = |size: usize| RagItem::new("d", 1.0, "D".repeat(size));
            let least = manager.count_document(&of(1)).unwrap().tokens;
            let size = tokens.checked_sub(least)? + 1;
            let item = of(size as usize);
            assert_eq!(manager.count_document(&item).unwrap().tokens, tokens);
            Some(item)
        };
        let plan = |tokens: u64| document(tokens).map(|item| {
            manager.build_plan(&session.request(&log).with_rag([item])).unwrap()
        });
        let has = |plan: &ContextPlan| plan.section(Section::Rag).included == 1;
        // The conversation may pay for a pin inside the last prompt's window if a document takes its tokens.
        if session.before.is_none() || session.lines.iter().all(|line| line.life.pin.is_none()) {
            for tokens in [budget.most, budget.free, budget.share.min(budget.most)] {
                prop_assert!(plan(tokens).is_none_or(|plan| has(&plan)), "{budget:?} {tokens}");
            }
            prop_assert!(plan(budget.most + 1).is_none_or(|plan| !has(&plan)), "{budget:?}");
        }
        // Pins beyond their limit get only free tokens, which a document may reduce.
        let limit = session.budget.saturating_sub(3) * u64::from(session.config.sections.pins_limit) / 1_000;
        let pinned = without.included.iter().filter(|row| row.reason == IncludedReason::Pinned);
        let free_is_exact = pinned.map(|row| row.token_estimate.tokens).sum::<u64>() <= limit;
        let all_pins = without.notices.iter().all(|notice| notice.code != NoticeCode::PinDropped);
        if let Some(with) = plan(budget.free).filter(|_| session.before.is_none() && all_pins && free_is_exact) {
            let ids = |plan: &ContextPlan| -> BTreeSet<String> {
                let rows = plan.included.iter().filter(|row| row.section != Section::Rag);
                rows.map(|row| row.id.to_string()).collect()
            };
            prop_assert_eq!(ids(&with), ids(&without));
        }
    }
}
