//! Properties of plans over generated sessions, including broken ones. `FULL=1` runs many more cases.

use crate::support::{
    generate::{self, Document, Life, Line, Quoting, Session},
    laws::{self, Case},
    recount,
};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, IncludedReason, Message, Model, PlanRequest,
    PlannedItem, Priority, RagItem, Role, Section, Source, TokenCounter, Ttl,
    config::{DocumentOrder, Placement, RagFill, Sections, ToolResults, TtlPolicy, Variants},
    conversation::Entry,
    plan::{Overhead, Remedy},
    tokens::Certainty,
};
use proptest::{prelude::*, test_runner::TestRunner};
use std::{cell::Cell, collections::BTreeSet};

/// A session with its log, manager and plan, the input of most properties.
struct Planned<'a> {
    session: &'a Session,
    log: &'a Conversation,
    manager: &'a ContextWindowManager,
    plan: &'a ContextPlan,
}

impl Planned<'_> {
    fn request(&self) -> PlanRequest<'_> {
        self.session.request(self.log)
    }

    /// Checks the properties of every plan. Each plans the same request at most once more.
    fn check_laws(&self) -> Result<(), TestCaseError> {
        let case = Case {
            manager: self.manager,
            request: &self.request(),
            messages: self.log.messages(),
            rag: self.session.rag_ids(),
            config: &self.session.config,
            plan: self.plan,
        };
        laws::hold(&case).map_err(TestCaseError::fail)
    }
}

fn check(session: &Session, manager: &ContextWindowManager) -> Result<ContextPlan, TestCaseError> {
    let log = session.log();
    let plan = plan(session, &log, manager)?;
    Planned { session, log: &log, manager, plan: &plan }.check_laws()?;
    Ok(plan)
}

fn plan(
    session: &Session,
    log: &Conversation,
    manager: &ContextWindowManager,
) -> Result<ContextPlan, TestCaseError> {
    manager.build_plan(&session.request(log)).map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Formats everything visible in a log: its messages, its events, and the state derived from them.
fn seen(log: &Conversation) -> String {
    let entries = log.entries().map(|entry| match entry {
        Entry::Message(message) => format!("{message:?}"),
        Entry::Event(event) => format!("{event:?}"),
    });
    let mut all: Vec<String> = entries.collect();
    all.extend(log.history().map(|row| format!("{row:?}")));
    all.extend(log.active().map(|part| format!("{part:?}")));
    all.push(format!("{:?} {:?} {:?}", log.anchor(), log.level(), log.billed()));
    all.join("\n")
}

/// Returns the ids of the included items of a section.
fn ids(plan: &ContextPlan, section: Section) -> Vec<String> {
    plan.included.iter().filter(|row| row.section == section).map(|row| row.id.to_string()).collect()
}

proptest! {
    #![proptest_config(generate::cases(3_000, 40_000))]

    /// Each session is generated and planned once for all properties that begin with its plan.
    #[test]
    fn every_law_holds_for_every_plan(session in generate::session(), order in 0usize..720) {
        let (log, manager) = (session.log(), session.manager());
        // Before any other plan of this log: later plans are compared with the first one.
        let unseen = seen(&log);
        let plan = plan(&session, &log, &manager)?;
        let planned = Planned { session: &session, log: &log, manager: &manager, plan: &plan };
        planning_changes_nothing(&planned, &unseen)?;
        // This plans the log again after another planner has. The plan equals the first one, which was made
        // from a log without earlier plans.
        planned.check_laws()?;
        shuffled_documents_change_nothing(&planned, order)?;
        the_total_is_the_count_of_the_prompt(&planned)?;
        joined_texts_contain_their_chunks(&planned)?;
        the_order_of_documents_changes_no_decision(&planned)?;
        documents_of_the_last_prompt_are_repeated(&planned)?;
        check_ttl_falls_only_for_included_items(&planned)?;
        unlimited_pins_are_in(&planned)?;
        repair_is_idempotent(&planned)?;
        a_plan_from_its_own_anchor_settles(&planned)?;
    }

    /// Properties of sessions that are changed before planning. Each session is generated once for all of
    /// them.
    #[test]
    fn every_law_holds_for_changed_sessions(session in generate::session(), rough in prop::bool::ANY, more in 0u64..300) {
        every_law_holds_with_estimates_too(&session, rough)?;
        prompts_fit_if_counts_do_not_add_up(&session)?;
        prefix_fill_is_monotone(session.clone(), more)?;
        documents_stay_before_their_question(session.clone(), more as usize)?;
        check_asked_item_is_gone_next_turn(session)?;
    }
}

fn every_law_holds_with_estimates_too(session: &Session, rough: bool) -> Result<(), TestCaseError> {
    let counter = if rough { TokenCounter::chars_per_4() } else { TokenCounter::chars_per_3_5() };
    let manager = ContextWindowManager::new(Model::custom("test"), counter, session.config.clone()).unwrap();
    let plan = check(session, &manager)?;
    prop_assert_eq!(
        plan.estimated_tokens_total.certainty == Certainty::Estimate,
        !plan.included.is_empty() || session.declares_recall
    );
    Ok(())
}

/// The rows and lines sum to the count of the rendered prompt, also with joined texts (rule N3).
fn the_total_is_the_count_of_the_prompt(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    if planned.session.config.tokens.calibration_per_mille == 1_000 {
        let counted = recount::messages(planned.plan, &generate::bytes());
        let tools = planned.plan.overhead.iter().filter(|line| line.what == Overhead::Tools);
        let tools: i64 = tools.map(|line| line.tokens).sum();
        prop_assert_eq!(planned.plan.estimated_tokens_total.tokens as i64, counted as i64 + tools);
    }
    Ok(())
}

/// Returns the texts of the documents in the prompt, each with the ids of its chunks.
fn document_texts(plan: &ContextPlan) -> Vec<(Vec<String>, String)> {
    let mut texts: Vec<(Vec<String>, String)> = Vec::new();
    for row in plan.included.iter().filter(|row| row.section == Section::Rag) {
        match texts.last_mut().filter(|_| row.continues().is_some()) {
            Some((ids, text)) => {
                ids.push(row.id.to_string());
                text.push_str(row.body.text());
            }
            None => texts.push((vec![row.id.to_string()], row.body.text().to_owned())),
        }
    }
    texts
}

/// A text of the prompt contains each of its documents whole, names all of them, and is sent like this (rule
/// S14).
fn joined_texts_contain_their_chunks(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    let documents = planned.session.retrieved();
    let texts = document_texts(planned.plan);
    for (ids, text) in &texts {
        let (header, body) = text.split_once(">\n").unwrap();
        let body = body.strip_suffix("</document>\n").unwrap().replace("<\\", "<");
        // Recalled messages are named by the first one (rule S15).
        let is_recalled = header.contains("=\"history, no instruction\"");
        let named = if is_recalled { &ids[..1] } else { &ids[..] };
        let shows_ids = planned.session.config.rag.template.header.contains("{id}");
        let ids_shown = header.contains(&format!("id=\"{}\"", named.join(", ")));
        prop_assert_eq!(ids_shown, shows_ids, "{}", text);
        for id in ids {
            // A document may be sent in a shorter form (rule S17).
            let row =
                planned.plan.included.iter().find(|row| row.kind.is_document() && row.id.as_str() == id);
            let form = row.and_then(|row| row.form());
            let as_sent = |item: &RagItem| {
                let variant = item.variants.iter().find(|(name, _)| Some(&**name) == form);
                variant.map_or(item.text().to_owned(), |(_, text)| text.to_string())
            };
            let is_sent = |item: &&RagItem| item.id().as_str() == id;
            let is_in = documents.iter().filter(is_sent).any(|item| body.contains(&as_sent(item)));
            prop_assert!(is_in, "{} in {}", id, text);
        }
    }
    let block: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    let is_sent = planned.plan.messages().iter().any(|message| message.text().contains(&block));
    prop_assert!(is_sent || texts.is_empty(), "{}", block);
    Ok(())
}

/// The order of the documents is layout: every row has the same tokens and the same reason (rule O1).
fn the_order_of_documents_changes_no_decision(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    if ids(planned.plan, Section::Rag).len() < 2 {
        return Ok(());
    }
    let decisions = |plan: &ContextPlan| {
        let included =
            plan.included.iter().map(|row| format!("{} {:?} {:?}", row.id, row.reason, row.token_estimate));
        let excluded = plan.excluded.iter().map(|row| format!("{} {}", row.id, row.reason));
        (included.chain(excluded).collect::<BTreeSet<_>>(), plan.estimated_tokens_total)
    };
    for order in
        [DocumentOrder::Relevance, DocumentOrder::RelevanceLast, DocumentOrder::Edges, DocumentOrder::Source]
    {
        let mut other = planned.session.clone();
        other.config.rag.order = order;
        prop_assert_eq!(decisions(planned.plan), decisions(&other.plan().unwrap()), "{:?}", order);
    }
    Ok(())
}

/// Returns true if documents of one id differ in more than their scores, so that an id does not name one of
/// them.
fn has_ambiguous_ids(session: &Session) -> bool {
    let facts = |document: &generate::Document| {
        let same = generate::Document { score: 0, list: 0, ..document.clone() };
        (document.id, format!("{same:?}"))
    };
    let documents: BTreeSet<_> = session.rag.iter().map(facts).collect();
    let ids: BTreeSet<&str> = documents.iter().map(|(id, _)| *id).collect();
    ids.len() < documents.len()
}

/// If the documents of a prompt stay, the next prompt of the same question begins its documents with their
/// bytes, joined texts and any order included (rule S5).
fn documents_of_the_last_prompt_are_repeated(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    let texts = document_texts(planned.plan);
    if texts.is_empty() || planned.plan.live().is_none() || has_ambiguous_ids(planned.session) {
        return Ok(());
    }
    let next = planned.manager.build_plan(&planned.request().with_previous(planned.plan.anchor())).unwrap();
    let again = document_texts(&next);
    let ids: BTreeSet<&String> = again.iter().flat_map(|(ids, _)| ids).collect();
    if texts.iter().flat_map(|(ids, _)| ids).all(|id| ids.contains(id)) {
        prop_assert_eq!(&again[..texts.len()], &texts[..]);
    }
    Ok(())
}

/// A text has more tokens than its pieces here, so some prompts are planned again with fewer of them. They
/// fit nevertheless, and the total is the count of the prompt as a whole (rules N3, S6).
fn prompts_fit_if_counts_do_not_add_up(session: &Session) -> Result<(), TestCaseError> {
    let counter =
        || TokenCounter::from_fn("quarters", |text| Ok::<_, std::fmt::Error>(text.len() as u64 / 4));
    // The sizes of a session are in bytes.
    let mut session =
        Session { budget: (session.budget / 4).max(1), declares_recall: false, ..session.clone() };
    session.config.tokens.calibration_per_mille = 1_000;
    let manager =
        ContextWindowManager::new(Model::custom("test"), counter(), session.config.clone()).unwrap();
    let log = session.log();
    let plan = plan(&session, &log, &manager)?;
    let total = plan.estimated_tokens_total.tokens;
    let is_minimal = !plan.included.iter().any(|row| row.kind.is_document());
    prop_assert!(total <= session.budget || plan.overflow.is_some() && is_minimal, "{:?}", plan.overflow);
    prop_assert_eq!(total, recount::messages(&plan, &counter()));
    Ok(())
}

/// If documents stay with their question, each prompt begins with the whole previous one, joined texts and
/// any order included. Texts that were sent are not joined again (rule S10).
fn documents_stay_before_their_question(mut session: Session, some: usize) -> Result<(), TestCaseError> {
    session.config.rag.placement = Placement::WithQuestion;
    session.config.rag.question_limit = 1000;
    session.config.conversation.tool_results = ToolResults::Keep;
    session.declares_recall = false;
    session.config.sections = Sections::default();
    session.config.ttl_policy = TtlPolicy::Unlimited;
    session.budget = 1_000_000;
    session.before = None;
    let (mut log, manager) = (session.log(), session.manager());
    let mut first = session.clone();
    first.rag.truncate(some % (session.rag.len() + 1));
    log.push(Message::user("What now?"));
    let before = manager.build_plan(&first.request(&log)).unwrap();
    log.push_reply(&before, Message::assistant("This."), None);
    log.push(Message::user("And then?"));
    let after = manager.build_plan(&session.request(&log)).unwrap();
    let shared = before.messages().iter().zip(after.messages()).take_while(|(before, after)| before == after);
    prop_assert_eq!(
        shared.count(),
        before.messages().len(),
        "{:#?}\n{:#?}",
        before.messages(),
        after.messages()
    );
    // A retained text is not sent again, also as a chunk of a joined one.
    let twice = after.included.iter().find(|row| row.kind.is_document() && row.id.as_str().contains('@'));
    prop_assert!(has_ambiguous_ids(&session) || twice.is_none(), "{:?}", twice);
    let counted = recount::messages(&after, &generate::bytes());
    let calibrated = session.config.tokens.calibration_per_mille != 1_000;
    prop_assert!(calibrated || after.estimated_tokens_total.tokens == counted);
    Ok(())
}

/// The order of the supplied documents has no effect, nor has their order within a list (rules S8, O3).
fn shuffled_documents_change_nothing(planned: &Planned<'_>, order: usize) -> Result<(), TestCaseError> {
    let mut other = planned.session.clone();
    if other.rag.len() < 2 {
        // The one order is already planned twice by the general properties.
        return Ok(());
    }
    let mut order = order;
    for at in (1..other.rag.len()).rev() {
        other.rag.swap(at, order % (at + 1));
        order /= at + 1;
    }
    let other = planned.manager.build_plan(&other.request(planned.log)).unwrap();
    prop_assert_eq!(laws::all_bytes(planned.plan), laws::all_bytes(&other));
    Ok(())
}

/// With `fill = "prefix"` a larger RAG budget never loses an item (rule S8). Only RAG has a share, so that
/// the budget is its budget. Limits of tokens skip items, joined texts are priced by their neighbours, in
/// depth fuller forms take the tokens of other items, and dependents get tokens left over, so all four are
/// off.
fn prefix_fill_is_monotone(mut session: Session, more: u64) -> Result<(), TestCaseError> {
    session.config.rag.fill = RagFill::Prefix;
    if session.config.rag.variants == Variants::Depth {
        session.config.rag.variants = Variants::Breadth;
    }
    session.rag.iter_mut().for_each(|document| {
        document.variants.sort_by(|a, b| b.cmp(a));
        document.requires.clear();
    });
    session.config.rag.max_source_tokens = None;
    session.config.rag.lists.values_mut().for_each(|list| list.max_tokens = None);
    session.config.rag.join_chunks = false;
    session.config.rag.order = DocumentOrder::Relevance;
    session.lines.clear();
    session.notes.clear();
    session.rules.clear();
    let small = session.plan().unwrap();
    session.budget += more;
    let large = session.plan().unwrap();
    let (small, large) = (ids(&small, Section::Rag), ids(&large, Section::Rag));
    if session.rag.iter().all(|document| document.group.is_none()) {
        prop_assert_eq!(&large[..small.len()], &small[..]);
    }
    // A group takes the place of its best member, so documents may join before the others.
    let mut left = large.iter();
    prop_assert!(small.iter().all(|id| left.any(|other| other == id)), "{:?} {:?}", small, large);
    Ok(())
}

/// Planning reads and never writes, and the lifetimes of a clone fall independently.
///
/// The cached counts and stubs of messages are not visible, so later plans are compared instead: those of a
/// planner with another counter, against a log without earlier plans, and those of the same planner in the
/// general properties. `before` is everything that was visible in the log before its plan.
fn planning_changes_nothing(planned: &Planned<'_>, before: &str) -> Result<(), TestCaseError> {
    let Planned { session, log, plan: first, .. } = *planned;
    let mut clone = log.clone();
    clone.complete_turn(first);
    prop_assert_ne!(before, &seen(&clone));
    prop_assert_eq!(before, &seen(log));
    let other =
        ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), session.config.clone())
            .unwrap();
    let again = other.build_plan(&session.request(log)).unwrap();
    let fresh = other.build_plan(&session.request(&session.log())).unwrap();
    prop_assert_eq!(laws::all_bytes(&again), laws::all_bytes(&fresh));
    Ok(())
}

/// A TTL decreases by one, only for included items, and never below zero (rule T3).
fn check_ttl_falls_only_for_included_items(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    let Planned { session, log, manager, plan: before } = *planned;
    let mut log = log.clone();
    log.complete_turn(before);
    let after = manager.build_plan(&session.request(&log)).unwrap();
    let old = |id: &str| before.included.iter().find(|row| row.id.as_str() == id).map(|row| row.ttl);
    let rows = after.included.iter();
    for row in rows.filter(|row| row.section != Section::Rag && row.source != Source::State) {
        let was_in = old(row.id.as_str());
        let expected = match was_in {
            Some(Some(Ttl::Limited(n))) => Some(Ttl::turns(n.get() - 1)),
            Some(ttl) => ttl,
            None => continue,
        };
        prop_assert_eq!(row.ttl, expected, "{}", row.id);
    }
    Ok(())
}

/// Under `ask`, an expired item stays exactly one more turn and is gone in the next one (rule T2).
fn check_asked_item_is_gone_next_turn(mut session: Session) -> Result<(), TestCaseError> {
    session.config.ttl_policy = TtlPolicy::Ask;
    let mut log = session.log();
    let manager = session.manager();
    let plan = manager.build_plan(&session.request(&log)).unwrap();
    let asked: Vec<String> = plan
        .notices
        .iter()
        .filter(|notice| notice.rule() == "T2")
        .flat_map(|notice| notice.ids.iter().map(ToString::to_string))
        .collect();
    log.complete_turn(&plan);
    let next = manager.build_plan(&session.request(&log)).unwrap();
    for notice in next.notices.iter().filter(|notice| notice.rule() == "T2") {
        prop_assert!(!asked.contains(&notice.ids[0].to_string()), "asked twice about {}", notice.ids[0]);
    }
    let over = |row: &&PlannedItem| row.ttl == Some(Ttl::NoneRemaining);
    for id in asked.iter().filter(|id| !id.starts_with('m')) {
        prop_assert!(
            !next.included.iter().filter(over).any(|row| row.id.as_str() == id),
            "{} is still in",
            id
        );
    }
    Ok(())
}

/// An undroppable pin is included at every budget (rule S2).
fn unlimited_pins_are_in(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    for (at, (.., ttl)) in planned.session.notes.iter().enumerate() {
        if *ttl == Some(Ttl::Unlimited) {
            let id = format!("n{at}");
            prop_assert!(planned.plan.included.iter().any(|row| row.id.as_str() == id), "{}", id);
        }
    }
    Ok(())
}

/// Planning a rendered prompt again changes nothing, and a valid history is unchanged (rules H).
fn repair_is_idempotent(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    let plan = planned.plan;
    // The prompt as its own log with enough room; state and documents are messages there.
    let log = Conversation::from_iter(plan.messages().iter().cloned());
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let limits = context_window::RequestLimits::prompt_budget(1_000_000);
    let again = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
    prop_assert_eq!(again.messages(), plan.messages());
    prop_assert!(again.notices.iter().all(|notice| notice.rule() == "B1"), "{:?}", again.notices);
    prop_assert!(again.excluded.is_empty(), "{:?}", again.excluded);
    Ok(())
}

/// Planned repeatedly from its own anchor, the prompt of an unchanged conversation settles (rule S5). A
/// window that grew into free tokens is cut to its low mark, a pin takes another one's room, and then nothing
/// changes.
///
/// Three cases are left out. Documents of one id under `rag.max_source_tokens`, or some of them recalled,
/// alternate, because the anchor names a document by its id: such sessions are skipped. So are joined texts
/// under a list's limit of tokens: the tokens of one text are shared by its chunks in the order in which they
/// were included, and the next prompt includes them in the order of the text. Documents that are kept for
/// their question and pins can take turns: each set is offered the free tokens that the other one left (rules
/// S5, B6).
fn a_plan_from_its_own_anchor_settles(planned: &Planned<'_>) -> Result<(), TestCaseError> {
    let rag = &planned.session.rag;
    let distinct: BTreeSet<&str> = rag.iter().map(|item| item.id).collect();
    let options = &planned.manager.requested_config().rag;
    let has_recalled = rag.iter().any(|item| item.recalls.is_some());
    if distinct.len() < rag.len() && (options.max_source_tokens.is_some() || has_recalled) {
        return Ok(());
    }
    if options.join_chunks && options.lists.values().any(|list| list.max_tokens.is_some()) {
        return Ok(());
    }
    let next = |plan: &ContextPlan| {
        let request = planned.request().with_previous(plan.anchor());
        planned.manager.build_plan(&request).unwrap()
    };
    let mut settled = next(planned.plan);
    let mut anchor = planned.plan.anchor();
    for _ in 1..4 {
        // The same anchor always gives the same plan, so nothing can change any more.
        if settled.anchor() == anchor && !generate::is_full() {
            break;
        }
        anchor = settled.anchor();
        settled = next(&settled);
    }
    let again = next(&settled);
    if again.included != settled.included {
        prop_assert_ne!(ids(&again, Section::Rag), ids(&settled, Section::Rag));
        // Joined chunks alternate without a pin: a chunk costs less beside the one that it continues.
        let same_pins = ids(&again, Section::SystemPinned) == ids(&settled, Section::SystemPinned);
        prop_assert!(!same_pins || options.join_chunks);
        prop_assert_eq!(&next(&again).included, &settled.included);
        return Ok(());
    }
    prop_assert_eq!(again.anchor(), settled.anchor());
    Ok(())
}

fn settles(session: &Session) -> Result<(), TestCaseError> {
    let (log, manager) = (session.log(), session.manager());
    let plan = plan(session, &log, &manager)?;
    a_plan_from_its_own_anchor_settles(&Planned { session, log: &log, manager: &manager, plan: &plan })
}

/// H2: placeholder results depend on the call alone, so that they are equal a turn later.
#[test]
fn synthetic_results_are_stable() {
    let compared = Cell::new(0);
    let mut runner = TestRunner::new(generate::cases(3_000, 40_000));
    let ran = runner.run(&generate::session(), |mut session| {
        session.budget = 1_000_000;
        let now = session.plan().unwrap();
        let life = generate::Life { pin: None, ttl: None };
        session.lines.push(generate::Line {
            role: Role::User,
            size: 5,
            calls: Vec::new(),
            answers: None,
            life,
        });
        let later = session.plan().unwrap();
        for row in now.included.iter().filter(|row| row.source == Source::Synthetic) {
            if let Some(same) = later.included.iter().find(|other| other.id == row.id) {
                prop_assert_eq!(row.hash(), same.hash());
                compared.set(compared.get() + 1);
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    // Guards against a vacuous test: one case in three has to compare a result.
    assert!(compared.get() >= 1_000, "{} made-up results were compared", compared.get());
}

#[test]
fn ties_fall_to_the_id() {
    let log = Conversation::from([Message::user("q")]);
    let items = [(0.5, "b"), (0.5, "a"), (-0.0, "d"), (0.0, "c")];
    let items = items.map(|(score, id)| (score, id.to_owned(), format!("text of {id}")));
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(items)).unwrap();
    assert_eq!(ids(&plan, Section::Rag), ["a", "b", "c", "d"]);
}

/// A property that does not hold: with backfill a larger budget may lose a document. With sizes 6, 3, 2 by
/// rank, a budget of 5 takes 3 + 2 and a budget of 6 takes 6.
#[test]
fn non_monotone_backfill_is_reported() {
    let log = Conversation::new();
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let fence = "<document id=\"a\">\n\n</document>\n".len() as u64;
    let sizes = [(3.0, "a", fence as usize + 51), (2.0, "b", 30), (1.0, "c", 20)];
    let items = || sizes.map(|(score, id, size)| (score, id.to_owned(), id.repeat(size)));
    let at = |room: u64| {
        let empty = 3 + (7 + 12 + 12);
        let limits = context_window::RequestLimits::prompt_budget(empty + room);
        ids(
            &manager.build_plan(&PlanRequest::new(&log).with_rag(items()).with_limits(limits)).unwrap(),
            Section::Rag,
        )
    };
    assert_eq!(at(2 * fence + 50), ["b", "c"]);
    assert_eq!(at(2 * fence + 51), ["a"]);
}

#[test]
fn the_live_question_is_in_even_when_it_alone_is_over_the_budget() {
    let log = Conversation::from([
        Message::user("old"),
        Message::assistant("answer"),
        Message::user("x".repeat(500)),
    ]);
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let limits = context_window::RequestLimits::prompt_budget(100);
    let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
    assert_eq!(
        plan.included.iter().map(|row| (row.id.as_str(), row.reason)).collect::<Vec<_>>(),
        [("m2", IncludedReason::Required)]
    );
    assert_eq!(plan.overflow.unwrap().tokens, 3 + 7 + 500 - 100);
}

/// Regression test: a pin after the live user message ends the merge of state into it. A later pin spent the
/// tokens of that merge nevertheless.
#[test]
fn merge_savings_are_spent_once_at_any_budget() {
    let life = |pin| generate::Life { pin, ttl: None };
    let line =
        |role, size, pin| generate::Line { role, size, calls: Vec::new(), answers: None, life: life(pin) };
    let document = |id, size, score| Document { origin: Some("o1"), ..Document::plain(id, size, score) };
    let high = context_window::Priority::High;
    let mut config = context_window::Config::default();
    config.sections = context_window::config::Sections::shares(0, 0, 1000);
    let mut session = Session {
        rules: Vec::new(),
        system: None,
        focus: None,
        states: vec![14],
        notes: vec![(14, high, None)],
        lines: vec![line(Role::User, 31, None), line(Role::Assistant, 7, Some(high))],
        rag: vec![document("d1", 57, 1), document("d2", 1, 0)],
        has_lists: false,
        quotes: Vec::new(),
        budget: 0,
        config,
        before: None,
        declares_recall: false,
    };
    for budget in 1..500 {
        session.budget = budget;
        check(&session, &session.manager()).unwrap();
    }
}

proptest! {
    #![proptest_config(generate::cases(3_000, 40_000))]

    /// Every remedy of an overflow makes the prompt fit, and the proposed budget is exact to one token (rule
    /// S6).
    #[test]
    fn proposed_overflow_remedies_help(
        mut session in generate::session(), tight in 1u64..200, margin in prop_oneof![Just(1_000u32), 500u32..=2_000],
    ) {
        session.budget = tight;
        session.config.tokens.calibration_per_mille = margin;
        let plan = session.plan().unwrap();
        let Some(overflow) = &plan.overflow else { return Ok(()) };
        prop_assert_eq!(overflow.tokens, plan.estimated_tokens_total.tokens - tight);
        let results = session.config.conversation.tool_results;
        if margin == 1_000 && !matches!(results, ToolResults::Clip | ToolResults::Offload) {
            // The conflicting set is too large, no smaller set is, and without any one of its members the
            // rest fits.
            let sizes: Vec<u64> = plan.included.iter().map(|row| row.token_estimate.tokens).collect();
            let beside = plan.estimated_tokens_total.tokens - sizes.iter().sum::<u64>().min(plan.estimated_tokens_total.tokens);
            if plan.overhead.iter().all(|line| line.tokens > 0) {
                let of = |id: &context_window::ItemId| plan.included.iter().find(|row| row.id == *id).unwrap().token_estimate.tokens;
                let conflict: Vec<u64> = overflow.conflict.iter().map(of).collect();
                let together = beside + conflict.iter().sum::<u64>();
                prop_assert!(together > tight);
                prop_assert!(conflict.iter().all(|one| together - one <= tight), "{:?}", overflow.conflict);
                if sizes.len() < 12 {
                    let too_much = |set: &u32| {
                        let of_set = (0..sizes.len()).filter(|at| set >> at & 1 == 1);
                        beside + of_set.map(|at| sizes[at]).sum::<u64>() > tight
                    };
                    let smallest = (0..1u32 << sizes.len()).filter(too_much).map(u32::count_ones).min();
                    prop_assert_eq!(smallest, Some(conflict.len() as u32));
                }
            }
        }
        // Planning again confirms each remedy and reports the items then included.
        let confirmed = session.manager().explainer(&session.request(&session.log())).remedies().unwrap();
        prop_assert_eq!(confirmed.iter().map(|confirmed| &confirmed.remedy).collect::<Vec<_>>(), overflow.remedies.iter().collect::<Vec<_>>());
        prop_assert!(confirmed.iter().all(|one| one.estimated_tokens_total.tokens <= one.prompt_budget));
        for remedy in &overflow.remedies {
            let mut log = session.log();
            let mut other = session.clone();
            match remedy {
                Remedy::RaiseBudget { to } => {
                    other.budget = *to - 1;
                    prop_assert!(other.plan().unwrap().overflow.is_some(), "{} is more than it takes", to);
                    other.budget = *to;
                }
                Remedy::Unpin { id } => prop_assert!(log.unpin(id)),
                Remedy::Shorten { id, by } => {
                    let by = *by as usize;
                    let number = |prefix: &str| id.as_str().strip_prefix(prefix).and_then(|at| at.parse::<usize>().ok());
                    if let Some(at) = number("m") {
                        other.shorten(Quoting::Line(at), by);
                    } else if let Some(at) = number("n") {
                        other.shorten(Quoting::Note(at), by);
                    } else if let Some(at) = number("st") {
                        other.states[at] -= by;
                    } else if id.as_str() == "focus" {
                        *other.focus.as_mut().unwrap() -= by;
                    } else {
                        *other.system.as_mut().unwrap() -= by;
                    }
                    log = other.log();
                }
                other => prop_assert!(false, "{:?} in a request that sets its budget", other),
            }
            let again = other.manager().build_plan(&other.request(&log)).unwrap();
            prop_assert!(again.overflow.is_none(), "{:?} does not help: {:?}", remedy, again.overflow);
        }
    }
}

/// Regression test: a window included through a pin alone had no start. Every second plan found it again and
/// charged the pin to the conversation.
#[test]
fn a_window_in_by_its_pins_alone_settles() {
    let life = |pin, ttl| generate::Life { pin, ttl };
    let line = |role, size, calls: &[&'static str], life| generate::Line {
        role,
        size,
        calls: calls.to_vec(),
        answers: None,
        life,
    };
    let mut config = context_window::Config::default();
    config.sections = context_window::config::Sections::shares(0, 471, 529);
    config.conversation.low_mark = 1;
    config.ttl_policy = context_window::config::TtlPolicy::Ask;
    let mut session = Session {
        rules: Vec::new(),
        system: Some(1),
        focus: Some(45),
        states: vec![24],
        notes: Vec::new(),
        lines: vec![
            line(Role::User, 5, &[], life(None, None)),
            line(Role::Assistant, 12, &["x"], life(None, None)),
            line(
                Role::Assistant,
                2,
                &[],
                life(Some(context_window::Priority::High), Some(context_window::Ttl::NoneRemaining)),
            ),
        ],
        rag: Vec::new(),
        has_lists: false,
        quotes: Vec::new(),
        budget: 0,
        config,
        before: None,
        declares_recall: false,
    };
    for budget in 100..400 {
        session.budget = budget;
        settles(&session).unwrap();
    }
}

#[test]
fn proposed_lower_completion_helps() {
    let log = Conversation::from([Message::user("x".repeat(300))]);
    let manager =
        ContextWindowManager::new(Model::custom("test"), generate::bytes(), Default::default()).unwrap();
    let limits = |completion| {
        context_window::RequestLimits::new()
            .with_model_context_len(400)
            .with_max_completion_tokens(completion)
            .with_safety_buffer(0)
    };
    let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits(200))).unwrap();
    let overflow = plan.overflow.unwrap();
    assert_eq!(overflow.tokens, 110);
    let Some(Remedy::LowerCompletion { to }) = overflow.remedies.get(1) else {
        panic!("{:?}", overflow.remedies)
    };
    let fits = |completion| {
        manager
            .build_plan(&PlanRequest::new(&log).with_limits(limits(completion)))
            .unwrap()
            .overflow
            .is_none()
    };
    assert!(fits(*to) && !fits(*to + 1));
}

/// A target without a wire format: only texts are counted. Priming, roles and merges neither cost nor save
/// tokens.
#[test]
fn the_plain_wire_format_prices_texts_alone() {
    let mut model = Model::custom("plain");
    model.wire_format = context_window::WireFormat::Plain;
    let manager = ContextWindowManager::new(model, generate::bytes(), Default::default()).unwrap();
    let log = Conversation::from([
        Message::system("abc"),
        Message::user("0123456789").with_name("ida"),
        Message::assistant("").with_tool_calls([context_window::ToolCall::new("c", "fn", "{}")]),
        Message::tool("c", "four"),
        Message::user("?"),
    ]);
    let plan = manager.build_plan(&PlanRequest::new(&log).with_state("clock", "noon")).unwrap();
    let state = "<state id=\"clock\">\nnoon\n</state>".len() as u64;
    assert_eq!(plan.estimated_tokens_total.tokens, 3 + (10 + 3) + (2 + 2) + 4 + 1 + state);
    assert!(plan.overhead.is_empty(), "{:?}", plan.overhead);
}

proptest! {
    #![proptest_config(generate::cases(500, 20_000))]

    /// An upper bound for an uncounted item is never less than its count (rule N4).
    #[test]
    fn a_bound_is_never_less_than_the_count(session in generate::session()) {
        let log = session.log();
        let counter = context_window::TokenCounter::bytes();
        let manager = ContextWindowManager::new(Model::custom("test"), counter, session.config.clone()).unwrap();
        let plan = manager.build_plan(&session.request(&log)).unwrap();
        let counted = manager.build_plan(&session.request(&log).with_excluded_counts()).unwrap();
        for (bound, exact) in plan.excluded.iter().zip(&counted.excluded) {
            prop_assert_eq!((&bound.id, bound.count), (&exact.id, exact.count));
            let is_bound = bound.token_estimate.certainty == Certainty::UpperBound;
            prop_assert!(!is_bound || bound.token_estimate.tokens >= exact.token_estimate.tokens, "{bound:?} {exact:?}");
        }
    }

    /// With a row for each message, the same messages are excluded, each for the reason of its run. Exact
    /// counts sum to those of the runs, and nothing else differs (rule O2).
    #[test]
    fn rows_of_single_messages_match_the_runs(session in generate::session()) {
        let log = session.log();
        let manager = ContextWindowManager::new(Model::custom("test"), context_window::TokenCounter::bytes(), session.config.clone()).unwrap();
        let request = session.request(&log).with_excluded_counts();
        let runs = manager.build_plan(&request).unwrap();
        let single = manager.build_plan(&request.with_excluded_messages()).unwrap();
        let mut rows = single.excluded.iter();
        for run in &runs.excluded {
            let of_run: Vec<_> = rows.by_ref().take(usize::try_from(run.count).unwrap()).collect();
            prop_assert_eq!(of_run.len() as u64, run.count);
            prop_assert_eq!(&of_run[0].id, &run.id);
            prop_assert_eq!(Some(&of_run.last().unwrap().id), run.last_id.as_ref().or(Some(&run.id)));
            for row in &of_run {
                prop_assert_eq!((row.count, &row.last_id, &row.reason, row.section), (1, &None, &run.reason, run.section));
            }
            prop_assert_eq!(of_run.iter().map(|row| row.token_estimate.tokens).sum::<u64>(), run.token_estimate.tokens);
        }
        prop_assert!(rows.next().is_none());
        let mut same = single;
        same.excluded.clone_from(&runs.excluded);
        prop_assert_eq!(same, runs);
    }

    /// Data that a conversation remembers in addition to its log, such as row hashes, change nothing (rule
    /// O3): plans and anchors equal those of the same log read from its events.
    #[test]
    fn remembered_hashes_change_no_plan(session in generate::session(), turns in 1usize..5, stays in prop::bool::ANY) {
        let mut log = session.log();
        let model = if stays { Model::named("claude-fable-5-1").unwrap() } else { Model::custom("test") };
        let manager = ContextWindowManager::new(model, context_window::TokenCounter::bytes(), session.config.clone()).unwrap();
        for turn in 0..turns {
            let twin = Conversation::from_events(log.events()).unwrap();
            let plan = manager.build_plan(&session.request(&log)).unwrap();
            let anew = manager.build_plan(&session.request(&twin)).unwrap();
            prop_assert_eq!(plan.fingerprint(), anew.fingerprint());
            prop_assert_eq!(plan.anchor(), anew.anchor());
            prop_assert_eq!(plan.repeated(), anew.repeated());
            log.push_reply(&plan, Message::assistant(format!("answer {turn}")), None);
            log.complete_turn(&plan);
            log.push(Message::user(format!("question {turn}")));
        }
    }
}

/// The session in which documents and pins take turns. If it settles, the law above needs no second case.
#[test]
fn kept_documents_and_pins_take_turns() {
    let mut config = Config::default();
    config.ttl_policy = TtlPolicy::Ask;
    config.sections.system_pinned.share = 620;
    config.sections.conversation.share = 7;
    config.sections.rag.share = 373;
    config.sections.pins_limit = 0;
    config.conversation.low_mark = 1;
    let line = |role, size, pin| Line {
        role,
        size,
        calls: Vec::new(),
        answers: None,
        life: Life { pin, ttl: None },
    };
    let document = |id, size, origin| Document { origin, ..Document::plain(id, size, 0) };
    let session = Session {
        rules: Vec::new(),
        system: None,
        focus: Some(18),
        states: vec![21],
        notes: vec![(36, Priority::High, None), (2, Priority::Normal, Some(Ttl::NoneRemaining))],
        lines: vec![
            line(Role::User, 29, None),
            line(Role::Assistant, 15, Some(Priority::Normal)),
            line(Role::User, 8, Some(Priority::High)),
            line(Role::User, 9, None),
        ],
        rag: vec![document("d1", 9, Some("o1")), document("d2", 20, None)],
        has_lists: false,
        quotes: Vec::new(),
        budget: 328,
        config,
        before: None,
        declares_recall: false,
    };
    let (log, manager) = (session.log(), session.manager());
    let next =
        |plan: &ContextPlan| manager.build_plan(&session.request(&log).with_previous(plan.anchor())).unwrap();
    let first = next(&manager.build_plan(&session.request(&log)).unwrap());
    let second = next(&first);
    assert_eq!(
        (ids(&first, Section::Rag), ids(&second, Section::Rag)),
        (vec!["d1".into(), "d2".into()], vec!["d1".into()])
    );
    assert_eq!(next(&second).included, first.included);
    assert_eq!(next(&next(&second)).included, second.included);
}
