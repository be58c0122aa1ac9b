//! Documents and state retained at the position where they were sent (rule S10): each prompt begins with the
//! whole one before it.

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, ItemKind, Message, Model, PinnedItem,
    PlanRequest, PlannedItem, RagItem, RequestLimits, Role, Section, TokenCounter, Tool, ToolCall, Ttl,
    WireFormat,
    config::{Leave, Placement, ReasoningPolicy},
    plan::{ExcludedReason, LimitedBy, NoticeCode, Overhead, PolicyRule},
    render,
};
use context_window_formats::{SessionFile, SessionTexts};
use context_window_store::Journal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const MODELS: [&str; 3] = ["claude-fable-5-2", "gpt-6.2-astra", "gpt-4o"];

fn manager_for(model: &str, config: &Config) -> ContextWindowManager {
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config.clone()).unwrap()
}

fn staying() -> Config {
    let mut config = Config::default();
    config.rag.placement = Placement::WithQuestion;
    config.rag.leave = Leave::AtCut;
    config
}

/// Returns the parts of a body in order as text, without settings of the whole request.
fn pieces(plan: &ContextPlan) -> Vec<String> {
    let body = match plan.wire_format {
        WireFormat::Anthropic => serde_json::to_value(render::anthropic(plan)).unwrap(),
        WireFormat::OpenAiResponses => serde_json::to_value(render::openai_responses(plan)).unwrap(),
        _ => serde_json::to_value(render::openai(plan)).unwrap(),
    };
    let head = ["tools", "system", "instructions"].map(|key| body.get(key).cloned().unwrap_or(Value::Null));
    let messages = body.get("messages").or_else(|| body.get("input")).unwrap();
    let mut pieces: Vec<String> = head.iter().map(Value::to_string).collect();
    for message in messages.as_array().unwrap() {
        // Adjacent messages of one role are one message to the provider, so only parts and roles count.
        let said = match message.get("content") {
            Some(Value::Array(parts)) => parts.clone(),
            Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
            _ => vec![message.clone()],
        };
        pieces.extend(said.iter().map(|part| format!("{}: {part}", message["role"])));
    }
    pieces
}

/// A conversation in which each question has its own documents and clock, sometimes with agent steps.
struct Talk {
    manager: ContextWindowManager,
    log: Conversation,
    limits: RequestLimits,
    prompts: usize,
}

impl Talk {
    fn new(model: &str, config: &Config, budget: Option<u64>) -> Self {
        let limits = budget.map_or_else(RequestLimits::new, RequestLimits::prompt_budget);
        let log = Conversation::from([Message::system("Answer from the documents.")]);
        Self { manager: manager_for(model, config), log, limits, prompts: 0 }
    }

    /// Returns the documents of a prompt: one is new each time, one recurs every third time.
    fn documents(&self) -> Vec<RagItem> {
        let at = self.prompts;
        let new = RagItem::new(format!("d{at}"), 0.9, format!("Fact {at}: {}", "word ".repeat(20 + at % 7)));
        let again =
            RagItem::new(format!("e{}", at % 3), 0.4, format!("Rule {}: {}", at % 3, "note ".repeat(12)));
        vec![new, again.with_origin("rules.md")]
    }

    fn plan(&self) -> ContextPlan {
        let request = PlanRequest::new(&self.log).with_limits(self.limits).with_rag(self.documents());
        let clock = format!("It is {} o'clock.", self.prompts / 2);
        self.manager.build_plan(&request.with_state("clock", clock)).unwrap()
    }

    fn ask(&mut self) {
        self.log.push(Message::user(format!("Question {}?", self.prompts)));
    }

    /// Sends the prompt. The reply calls a tool or ends the turn.
    fn reply(&mut self, calls: bool) -> ContextPlan {
        let plan = self.plan();
        self.prompts += 1;
        let reply = Message::assistant(format!("Answer {}.", self.prompts));
        if calls {
            let id = format!("c{}", self.prompts);
            self.log.push_reply(&plan, reply.with_tool_calls([ToolCall::new(&*id, "look", "{}")]), None);
            self.log.push(Message::tool(&*id, "Found."));
        } else {
            self.log.push_reply(&plan, reply, None);
            self.log.complete_turn(&plan);
        }
        plan
    }

    /// Runs this number of turns, the n-th with n modulo 3 agent steps, and returns every plan.
    fn turns(&mut self, turns: usize) -> Vec<ContextPlan> {
        let mut plans = Vec::new();
        for turn in 0..turns {
            self.ask();
            for _ in 0..turn % 3 {
                plans.push(self.reply(true));
            }
            plans.push(self.reply(false));
        }
        plans
    }
}

/// With room for everything, the parts of a prompt begin with all parts of the one before it, for any
/// documents and state and in every wire format. No part is repeated.
#[test]
fn each_prompt_begins_with_the_whole_one_before_it() {
    for model in MODELS {
        let mut talk = Talk::new(model, &staying(), None);
        let plans = talk.turns(9);
        for pair in plans.windows(2) {
            let (then, now) = (pieces(&pair[0]), pieces(&pair[1]));
            assert!(now.len() > then.len(), "{model}");
            assert_eq!(now[..then.len()], then[..], "{model}");
            let prefix = pair[1].repeated().unwrap();
            assert_eq!(prefix.items, pair[0].included.len() as u64, "{model}");
        }
        let last = plans.last().unwrap();
        let documents: Vec<&str> = last
            .included
            .iter()
            .filter(|row| row.kind == ItemKind::Document)
            .map(|row| row.id.as_str())
            .collect();
        let mut once = documents.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(documents.len(), once.len(), "{model}: {documents:?}");
        assert_eq!(
            documents.len(),
            plans.len() + 3,
            "{model}: each new one, and three that come again and again"
        );
        assert!(last.notices.is_empty(), "{model}: {:?}", last.notices);
        let clocks = last.included.iter().filter(|row| row.kind == ItemKind::State).count();
        assert_eq!(clocks, plans.len().div_ceil(2), "{model}: the clock is sent when it has moved");
    }
}

/// By default, documents are retained for models that check reasoning, and for no others.
#[test]
fn the_default_asks_whether_the_model_checks() {
    for (model, stays) in [("claude-fable-5-2", true), ("gpt-6.2-sol", true), ("gpt-4o", false)] {
        let mut talk = Talk::new(model, &Config::default(), None);
        let plans = talk.turns(3);
        let first = plans.last().unwrap().included.iter().any(|row| row.id == "d0");
        assert_eq!(first, stays, "{model}");
    }
}

/// At every budget the ledger sums to the total, no prompt exceeds its budget, repeated items equal the
/// earlier ones, and the documents of a prompt stay within their limit.
#[test]
fn at_every_budget_a_prompt_fits_and_documents_leave_together() {
    let (mut released, mut cut, mut repeated) = (0, 0, 0);
    for model in MODELS {
        for budget in (150..1_500).step_by(23) {
            let mut talk = Talk::new(model, &staying(), Some(budget));
            let plans = talk.turns(8);
            for (at, plan) in plans.iter().enumerate() {
                let of = format!("{model} at {budget}, prompt {at}");
                assert!(plan.overflow.is_some() || plan.estimated_tokens_total.tokens <= budget, "{of}");
                let rows: i64 =
                    plan.included.iter().map(|row| i64::try_from(row.token_estimate.tokens).unwrap()).sum();
                let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
                assert_eq!(
                    rows + overhead,
                    i64::try_from(plan.estimated_tokens_total.tokens).unwrap(),
                    "{of}"
                );
                let new: u64 = plan
                    .included
                    .iter()
                    .filter(|row| row.section == Section::Rag)
                    .map(|row| row.token_estimate.tokens)
                    .sum();
                assert!(new * 1000 <= budget * 150, "{of}: {new} tokens of new documents");
                let told = |code: NoticeCode| plan.notices.iter().any(|notice| notice.code == code);
                let leave = told(NoticeCode::DocumentsReleased);
                (released, cut) =
                    (released + usize::from(leave), cut + usize::from(told(NoticeCode::WindowCut)));
                if leave {
                    // Retained items from before this turn are messages only.
                    let live = plan.included.iter().position(|row| {
                        row.section == Section::Conversation && row.id == *plan.live().unwrap()
                    });
                    let earlier = plan.included[..live.unwrap()].iter();
                    let standing = earlier
                        .filter(|row| row.section == Section::Conversation && row.kind == ItemKind::Document);
                    // Only the live question's own documents and state are right before it.
                    assert!(standing.count() <= 2, "{of}");
                } else if at > 0 && plan.overflow.is_none() && !told(NoticeCode::WindowCut) {
                    let (then, now) = (pieces(&plans[at - 1]), pieces(plan));
                    let whole = plans[at - 1].overflow.is_none() && now.starts_with(&then);
                    repeated += usize::from(whole);
                }
            }
        }
    }
    assert!(
        released > 100 && cut > 100 && repeated > 500,
        "{released} released, {cut} cut, {repeated} repeated"
    );
}

/// An evicted item is sent again when the request contains it again.
#[test]
fn evicted_document_is_sent_again_when_retrieved_again() {
    let mut talk = Talk::new("claude-fable-5-2", &staying(), Some(700));
    let document = RagItem::new("rule", 0.9, "note ".repeat(40));
    let (mut again, mut without) = (0, 0);
    for turn in 0..30 {
        talk.log.push(Message::user(format!("Question {turn}? {}", "word ".repeat(30))));
        let request = PlanRequest::new(&talk.log).with_limits(talk.limits).with_rag([document.clone()]);
        let plan = talk.manager.build_plan(&request.with_state("clock", "It is noon.")).unwrap();
        let rows = |kind: ItemKind| plan.included.iter().filter(move |row| row.kind == kind).count();
        assert_eq!(
            (rows(ItemKind::Document), rows(ItemKind::State)),
            (1, 1),
            "turn {turn}: once, and never less"
        );
        let new =
            plan.included.iter().any(|row| row.kind == ItemKind::Document && row.section == Section::Rag);
        (again, without) = (again + usize::from(new), without + usize::from(!new));
        talk.log.push_reply(&plan, Message::assistant("word ".repeat(30)), None);
        talk.log.complete_turn(&plan);
    }
    assert!(again > 2 && without > 10, "{again} times sent, {without} times it stood there");
}

/// A document with changed text is a new one, and one too large for its question has that reason.
#[test]
fn a_changed_document_is_sent_and_a_large_one_is_held_by_the_limit() {
    let mut talk = Talk::new("claude-fable-5-2", &staying(), Some(1_000));
    talk.ask();
    talk.reply(false);
    talk.ask();
    let changed = RagItem::new("d0", 0.9, "Fact 0 is another one.");
    let large = RagItem::new("large", 0.8, "word ".repeat(150));
    let request = PlanRequest::new(&talk.log).with_limits(talk.limits).with_rag([changed, large]);
    let plan = talk.manager.build_plan(&request).unwrap();
    let texts = plan.included.iter().map(|row| row.id.as_str()).filter(|id| id.starts_with("d0"));
    assert_eq!(texts.collect::<Vec<_>>(), ["d0@1", "d0"], "the old text stays where it was sent");
    let out = plan.excluded.iter().find(|row| row.id == "large").unwrap();
    assert!(
        matches!(out.reason, ExcludedReason::Budget { limited_by: LimitedBy::QuestionLimit, .. }),
        "{:?}",
        out.reason
    );
}

/// The limit of a question is a share of the tokens that reply header and wrapper leave, and no token more.
#[test]
fn question_limit_is_a_share_of_the_tokens_for_items() {
    let manager = manager_for("claude-fable-5-2", &staying());
    let log = Conversation::from([Message::user("Where is it?")]);
    let plan = |budget| {
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        manager.build_plan(&request.with_rag([RagItem::new("d", 0.9, "word ".repeat(100))])).unwrap()
    };
    let plan = (200..2_000).map(plan).find(|plan| plan.included.iter().any(|row| row.id == "d")).unwrap();
    let document = plan.included.iter().find(|row| row.id == "d").unwrap().token_estimate.tokens;
    let overhead = plan.overhead.iter().filter(|line| line.what != Overhead::Merged);
    let overhead = u64::try_from(overhead.map(|line| line.tokens).sum::<i64>()).unwrap();
    let limit = |budget: u64| (budget - overhead) * 150 / 1_000;
    assert!(limit(plan.prompt_budget) >= document && limit(plan.prompt_budget - 1) < document);
}

/// Files, journals and other stores give the same conversation: the next prompt is the same, byte for byte.
#[test]
fn sent_documents_survive_every_store() {
    for model in MODELS {
        let mut talk = Talk::new(model, &staying(), Some(900));
        talk.turns(4);
        talk.ask();
        let plan = talk.plan();
        let again = Conversation::from_events(talk.log.events()).unwrap();
        assert_eq!(again, talk.log);
        let stored = Talk { log: again, ..Talk::new(model, &staying(), Some(900)) };
        let stored = Talk { prompts: talk.prompts, ..stored };
        assert_eq!(stored.plan().to_json(), plan.to_json(), "{model}");

        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sent-with-{model}.log"));
        let _ = std::fs::remove_file(&path);
        Journal::create(&path, &talk.log).unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, talk.log);
    }
}

/// A session file names the documents that a question was sent with. Those of an unanswered question are
/// still to be sent.
#[test]
fn a_session_file_names_the_documents_of_its_questions() {
    let text = json!({
        "model": "claude-fable-5-2",
        "messages": [
            {"role": "user", "content": "How long do refunds take?", "documents": [{"id": "refunds", "text": "5 days.", "score": 0.9}]},
            {"role": "assistant", "content": "5 days."},
            {"role": "user", "content": "And exchanges?", "documents": [{"id": "exchanges", "text": "3 days.", "score": 0.8}]},
        ],
    });
    let session = SessionFile::new("session.json", text.to_string().into()).unwrap().session(None).unwrap();
    let manager = manager_for("claude-fable-5-2", &Config::default());
    let plan = manager.build_plan(&session.request()).unwrap();
    let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["refunds", "m0", "m1", "exchanges", "m2"]);
    let sections: Vec<Section> = plan.included.iter().map(|row| row.section).collect();
    assert_eq!((sections[0], sections[3]), (Section::Conversation, Section::Rag));

    let wrong = json!({"messages": [{"role": "assistant", "content": "x", "documents": [{"id": "a", "text": "b", "score": 1}]}]});
    let error =
        SessionFile::new("s.json", wrong.to_string().into()).unwrap().session(None).unwrap_err().to_string();
    assert!(error.contains("documents") && error.contains("user"), "{error}");
}

/// A redacted file gives the same plan, including documents and state of earlier prompts.
#[test]
fn redacted_session_gives_the_same_plan() {
    let mut talk = Talk::new("claude-fable-5-2", &staying(), Some(900));
    talk.turns(4);
    talk.ask();
    let plan = talk.plan();
    let documents = talk.documents();
    let clock = format!("It is {} o'clock.", talk.prompts / 2);
    let request =
        PlanRequest::new(&talk.log).with_limits(talk.limits).with_rag(documents).with_state("clock", clock);
    let json = context_window_formats::session_json(&talk.manager, &request, SessionTexts::Redacted).unwrap();
    assert!(!json.contains("Fact") && !json.contains("o'clock") && !json.contains("Rule"), "{json}");
    let session = SessionFile::new("redacted.json", json.into()).unwrap().session(None).unwrap();
    let again = talk.manager.build_plan(&session.request()).unwrap();
    let rows = |plan: &ContextPlan| -> Vec<(String, u64)> {
        plan.included.iter().map(|row| (row.id.to_string(), row.token_estimate.tokens)).collect()
    };
    assert_eq!(rows(&again), rows(&plan));
}

/// Stateless callers keep the anchor and the sent documents.
#[test]
fn stateless_caller_supplies_the_sent_documents() {
    let config = staying();
    let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), config).unwrap();
    let document = RagItem::new("d", 0.9, "A fact.");
    let mut log = Conversation::from([Message::user("What?")]);
    let first = manager.build_plan(&PlanRequest::new(&log).with_rag([document.clone()])).unwrap();
    log.push(Message::assistant("That."));
    log.remember_documents("m0", [manager.sent_document(&document)]).unwrap();
    log.push(Message::user("And?"));
    let request = PlanRequest::new(&log).with_previous(first.anchor());
    let second = manager.build_plan(&request).unwrap();
    assert_eq!(pieces(&second)[..pieces(&first).len()], pieces(&first)[..]);
    assert!(log.remember_documents("m9", []).is_err());
}

/// The question was sent without the new document, and the log records its documents (rule S10). No prompt is
/// remembered.
#[test]
fn new_documents_of_a_remembered_question_come_last() {
    for model in ["claude-fable-5-2", "gpt-6.2-astra"] {
        let manager = manager_for(model, &staying());
        let mut log = Conversation::from([Message::user("How long do refunds take?").with_id("question")]);
        let first = RagItem::new("first", 0.9, "Refunds take 5 days.");
        log.remember_documents("question", [manager.sent_document(&first)]).unwrap();
        log.push(Message::assistant("").with_tool_calls([ToolCall::new("c1", "lookup", "{}")]));
        log.push(Message::tool("c1", "3 results"));
        let plan = manager
            .build_plan(&PlanRequest::new(&log).with_rag([RagItem::new(
                "new",
                0.8,
                "Exchanges take 9 days.",
            )]))
            .unwrap();
        let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["first", "question", "m1", "m2", "new"], "{model}");
    }
}

/// Retention does not depend on reasoning: dropped reasoning, tools and steps leave documents in place.
#[test]
fn other_options_keep_document_positions() {
    let mut config = staying();
    config.conversation.reasoning = ReasoningPolicy::Drop;
    let mut talk = Talk::new("claude-fable-5-2", &config, None);
    talk.ask();
    talk.reply(true);
    let tools = [Tool::new("look", "Looks.", "{}")];
    let request = PlanRequest::new(&talk.log).with_tools(&tools).with_rag(talk.documents());
    let plan = talk.manager.build_plan(&request).unwrap();
    let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["m0", "d0", "e0", "m1", "clock@2", "m2", "m3", "d1", "e1"]);
}

/// The budgets in an explanation agree with planning at each of them, also if documents are evicted together.
#[test]
fn explanations_account_for_document_eviction() {
    let mut decided = 0;
    for model in MODELS {
        let mut talk = Talk::new(model, &staying(), Some(1_000));
        talk.turns(4);
        talk.ask();
        let anchor = talk.log.anchor().unwrap().clone();
        let anchor = crate::support::generate::without_limits(&anchor);
        let request = PlanRequest::new(&talk.log).with_previous(anchor);
        let plan = |budget: u64| {
            let limits =
                RequestLimits::prompt_budget(budget).with_model_context_len(1_500).with_safety_buffer(0);
            talk.manager.build_plan(&request.clone().with_limits(limits)).unwrap()
        };
        let plans: Vec<ContextPlan> = (1..=1_500).map(plan).collect();
        // Of two documents with one id, the newer one is explained; older ones are at earlier positions.
        let is_in = |id: &str, budget: u64| {
            let kind = |row: &PlannedItem| match id.split_once(':') {
                Some(("rag", name)) => row.kind == ItemKind::Document && row.id.as_str() == name,
                Some((_, name)) => row.kind != ItemKind::Document && row.id.as_str() == name,
                None => false,
            };
            plans[usize::try_from(budget).unwrap() - 1].included.iter().any(kind)
        };
        for budget in [300, 600, 900] {
            let limits =
                RequestLimits::prompt_budget(budget).with_model_context_len(1_500).with_safety_buffer(0);
            let request = request.clone().with_limits(limits);
            let plan = talk.manager.build_plan(&request).unwrap();
            let messages = (1..talk.log.messages().len()).map(|at| format!("item:m{at}"));
            let standing = plan.included.iter().filter(|row| row.section == Section::Conversation);
            let standing = standing.filter_map(|row| match row.kind {
                ItemKind::Document => Some(format!("rag:{}", row.id)),
                ItemKind::State => Some(format!("item:{}", row.id)),
                _ => None,
            });
            for id in messages.chain(standing) {
                let got = talk.manager.explainer(&request).explain(&id).unwrap();
                let enters = (budget..=1_500).find(|budget| is_in(&id, *budget));
                let leaves = (1..budget).rev().find(|below| is_in(&id, budget) && !is_in(&id, *below));
                assert_eq!((got.enters_at, got.leaves_at), (enters, leaves), "{model}: {id} at {budget}");
                decided += usize::from(enters.is_some_and(|at| at > budget) || leaves.is_some());
            }
        }
    }
    assert!(decided > 30, "{decided} answers say anything");
}

/// A note pinned while the model works waits for the next question. An undroppable note does not wait, nor
/// one that was sent before.
#[test]
fn a_note_of_a_running_loop_waits() {
    let mut talk = Talk::new("claude-fable-5-2", &Config::default(), None);
    talk.log.pin(PinnedItem::new("early", "Be kind."));
    talk.ask();
    talk.reply(true);
    talk.log.pin(PinnedItem::new("late", "Be quick."));
    talk.log.pin(PinnedItem::new("early", "Be kind."));
    let before = talk.plan();
    let is_in = |plan: &ContextPlan, id: &str| plan.included.iter().any(|row| row.id == *id);
    assert!(is_in(&before, "early") && !is_in(&before, "late"));
    let out = before.excluded.iter().find(|row| row.id == "late").unwrap();
    assert_eq!(out.reason, ExcludedReason::Policy(PolicyRule::NextQuestion));
    let told = before.notices.iter().find(|notice| notice.code == NoticeCode::PinWaits).unwrap();
    assert_eq!(told.ids, ["late"]);
    let answer = talk.manager.explainer(&PlanRequest::new(&talk.log)).explain("late").unwrap();
    assert!(!answer.included && answer.intervals.is_empty(), "{answer:?}");
    talk.reply(false);
    talk.ask();
    assert!(is_in(&talk.plan(), "late"), "the next question has come");

    let mut talk = Talk::new("claude-fable-5-2", &Config::default(), None);
    talk.ask();
    talk.reply(true);
    talk.log.pin(PinnedItem::new("always", "Be safe.").with_ttl(Ttl::Unlimited));
    assert!(is_in(&talk.plan(), "always"));
    // If nothing is retained, nothing waits.
    let mut talk = Talk::new("gpt-4o", &Config::default(), None);
    talk.ask();
    talk.reply(true);
    talk.log.pin(PinnedItem::new("late", "Be quick."));
    assert!(is_in(&talk.plan(), "late"));
}

/// The new items since the last prompt and its reply are the end of the next body. If the earlier part
/// changed, the call returns an error (rule O6).
#[test]
fn new_items_are_those_after_the_last_reply() {
    for model in ["gpt-6.2-astra", "claude-fable-5-2"] {
        let mut talk = Talk::new(model, &staying(), None);
        let mut continued = 0;
        for turn in 0..6 {
            talk.ask();
            for step in 0..=turn % 3 {
                let plan = talk.plan();
                let new = plan.since_last_prompt().unwrap();
                let whole = plan.messages();
                assert_eq!(new.messages()[..], whole[whole.len() - new.messages().len()..], "{model}");
                let replies =
                    new.messages().iter().filter(|message| message.role() == Role::Assistant).count();
                if plan.repeated().is_some() {
                    assert_eq!(replies, 0, "{model}: the provider has its reply");
                    assert!(new.messages().len() <= 3, "{model}: {:?}", new.messages());
                    continued += 1;
                } else {
                    assert_eq!(new.messages().len(), whole.len());
                }
                talk.reply(step < turn % 3);
            }
        }
        assert!(continued > 8, "{continued}");
        // With other instructions or a smaller budget, the provider's stored copy differs.
        talk.ask();
        let request = PlanRequest::new(&talk.log).with_focus("Where things are.");
        let plan = talk.manager.build_plan(&request).unwrap();
        let error = plan.since_last_prompt().unwrap_err().to_string();
        assert!(error.contains("`d0`") && error.contains("have the provider compact"), "{error}");
        let request = PlanRequest::new(&talk.log).with_limits(RequestLimits::prompt_budget(300));
        assert!(talk.manager.build_plan(&request).unwrap().since_last_prompt().is_err());
    }
}

/// Of two documents with one id, one is retained and one repeats it, in every step. They are not sent
/// alternately.
#[test]
fn two_documents_of_one_id_are_not_sent_in_turns() {
    let mut talk = Talk::new("claude-fable-5-2", &staying(), None);
    talk.ask();
    let pair =
        [RagItem::new("d", 0.9, "One."), RagItem::new("d", 0.5, "Two."), RagItem::new("e", 0.4, "One.")];
    for step in 0..4 {
        let request = PlanRequest::new(&talk.log).with_rag(pair.clone());
        let plan = talk.manager.build_plan(&request).unwrap();
        let documents = plan.included.iter().filter(|row| row.kind == ItemKind::Document).count();
        assert_eq!(documents, 1, "step {step}");
        let id = format!("c{step}");
        talk.log.push_reply(
            &plan,
            Message::assistant("").with_tool_calls([ToolCall::new(&*id, "look", "{}")]),
            None,
        );
        talk.log.push(Message::tool(&*id, "Found."));
    }
}

/// An evicted document in the request is sent again, also if another one with its id stays.
#[test]
fn evicted_document_is_sent_again_next_to_another_with_its_id() {
    let manager = manager_for("claude-fable-5-2", &staying());
    let call = ToolCall::new("c", "look", "{}");
    let mut log = Conversation::from([
        Message::user("Where?"),
        Message::assistant("There. ".repeat(40)),
        Message::user("And when?"),
        Message::assistant("").with_tool_calls([call]),
        Message::tool("c", "Found."),
    ]);
    let (old, new) = (RagItem::new("d", 0.9, "Old fact."), RagItem::new("d", 0.9, "New fact."));
    log.remember_documents("m0", [manager.sent_document(&old)]).unwrap();
    log.remember_documents("m2", [manager.sent_document(&new)]).unwrap();
    let (mut left, mut stood) = (0, 0);
    for budget in 60..400 {
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        let plan = manager.build_plan(&request.with_rag([old.clone()])).unwrap();
        let rows = plan.included.iter().filter(|row| row.kind == ItemKind::Document);
        let is_sent = pieces(&plan).iter().any(|piece| piece.contains("Old fact."));
        let is_listed = plan.excluded.iter().any(|row| row.kind == ItemKind::Document);
        assert!(is_sent || is_listed || plan.overflow.is_some(), "{budget}: {:?}", plan.included);
        *if rows.count() == 2 { &mut stood } else { &mut left } += 1;
    }
    assert!(left > 0 && stood > 0, "{left} budgets without one of them, {stood} with both");
}

/// A question answered without its remembered documents stays in the prompt without them.
#[test]
fn unsent_documents_are_not_retained() {
    let manager = manager_for("claude-fable-5-2", &staying());
    let mut log = Conversation::from([Message::user("What?")]);
    log.remember_documents("m0", [manager.sent_document(&RagItem::new("d", 0.9, "A fact."))]).unwrap();
    let first = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(&first, Message::assistant("That."), None);
    log.push(Message::user("And?"));
    let second = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(pieces(&second)[..pieces(&first).len()], pieces(&first)[..]);
    assert_eq!(Conversation::from_events(log.events()).unwrap(), log);
}

/// A summary request keeps documents and state at their positions, so it begins with the sent prompt.
#[test]
fn summary_request_begins_with_the_sent_prompt() {
    let mut config = staying();
    config.compaction.retain.messages = Some(1);
    let mut talk = Talk::new("claude-opus-5-5", &config, None);
    let plans = talk.turns(4);
    talk.ask();
    let job = talk.manager.compactor().now(&PlanRequest::like_last(&talk.log)).unwrap().unwrap();
    let texts: Vec<&str> = job.messages().iter().map(Message::text).collect();
    let all = texts.join("\n") + &format!("{:?}", job.messages());
    for plan in &plans {
        for row in plan.included.iter().filter(|row| row.kind == ItemKind::Document) {
            assert!(all.contains(&format!("<document id=\\\"{}\\\"", row.id)), "{}", row.id);
        }
    }
    assert!(all.contains("o'clock"));
}

/// Foreign anchors and another provider cause no panic, and the whole prompt is sent.
#[test]
fn a_continuation_needs_a_last_prompt_for_the_same_target() {
    let manager = manager_for("gpt-6.2-astra", &staying());
    let log = Conversation::from([Message::user("What?")]);
    let tools = [Tool::new("look", "Looks.", "{}")];
    for json in [
        r#"{"window_start":null,"prompt":[]}"#,
        r#"{"prompt":[["x","y",1]],"target":{"model":"m","provider":"p"}}"#,
    ] {
        let anchor: context_window::plan::Anchor = serde_json::from_str(json).unwrap();
        let request = PlanRequest::new(&log).with_tools(&tools).with_previous(anchor);
        let plan = manager.build_plan(&request).unwrap();
        assert_eq!(plan.since_last_prompt().unwrap().messages().len(), 1, "{json}");
    }
}

/// The cost of retaining a question's documents, against the cost of evicting them. They stay while the first
/// is smaller and are evicted at the first question at which it is not (rule S11). The test sums both from
/// the sent prompts.
#[test]
fn documents_are_evicted_once_rereading_cost_as_much_as_eviction() {
    // Reading costs a tenth of the input price and writing 1.25 times, so fitting documents are read about a
    // dozen times.
    let mut config = staying();
    config.rag.leave = Leave::Weighed;
    let mut talk = Talk::new("gpt-5.6", &config, None);
    let (read, write) = (400u64, 5_000u64);
    let mut released = Vec::new();
    // The cost so far of reading each document again.
    let mut rent: BTreeMap<String, u64> = BTreeMap::new();
    for turn in 0..60 {
        talk.ask();
        let plan = talk.plan();
        let last: Option<Vec<(String, String, u64)>> = talk
            .log
            .anchor()
            .and_then(context_window::plan::Anchor::sent_items)
            .map(|items| serde_json::from_value(json!(items)).unwrap());
        let documents: BTreeSet<String> =
            talk.documents().iter().map(|item| item.id().as_str().to_owned()).collect();
        let stays = |id: &str| id.starts_with('d') || id.starts_with('e') || id.starts_with("clock@");
        // The clock and the documents retrieved again would be sent again in any case.
        let standing = |id: &str| stays(id) && !id.starts_with("clock@") && !documents.contains(id);
        let before = last.iter().flat_map(|last| last.iter()).map(|piece| piece.0.as_str().to_owned());
        let stood: BTreeSet<String> = before.filter(|id| stays(id)).collect();
        let notice = plan.notices.iter().find(|notice| notice.code == NoticeCode::DocumentsReleased);
        if let Some(upkeep) = plan.upkeep {
            let pieces = last.unwrap();
            let first = pieces.iter().position(|piece| standing(piece.0.as_str())).unwrap();
            let behind = pieces[first..].iter().filter(|piece| !standing(piece.0.as_str()));
            assert_eq!(upkeep.leaving, behind.map(|piece| piece.2).sum::<u64>() * (write - read));
            let there = || pieces.iter().filter(|piece| standing(piece.0.as_str()));
            assert_eq!(upkeep.tokens, there().map(|piece| piece.2).sum::<u64>());
            let spent: u64 = there().filter_map(|piece| rent.get(piece.0.as_str())).sum();
            assert_eq!(upkeep.spent, spent, "turn {turn}");
            assert_eq!(upkeep.leave, upkeep.spent > 0 && upkeep.spent >= upkeep.leaving);
            assert_eq!(notice.is_some(), upkeep.leave);
        }
        if let Some(notice) = notice {
            assert!(notice.text.contains("has cost $0."), "{}", notice.text);
            assert!(plan.upkeep.is_some_and(|upkeep| upkeep.leave));
            // The documents leave because of their cost, so the window keeps its start.
            assert!(plan.notices.iter().all(|notice| notice.code != NoticeCode::WindowCut));
            assert_eq!(plan.window_start.as_ref().unwrap(), "m1", "turn {turn}");
            released.push(turn);
            rent.clear();
        }
        let sent = talk.reply(false);
        // Documents of the prompt before were read again, unless they were evicted just now.
        let stood = if notice.is_some() { BTreeSet::new() } else { stood };
        for row in sent.included.iter().filter(|row| stood.contains(row.id.as_str())) {
            *rent.entry(row.id.to_string()).or_default() += row.token_estimate.tokens * read;
        }
    }
    assert!(!released.is_empty(), "nothing ever left");
}

/// Documents of several questions with the same id are separate candidates, each with a row under its own id.
/// The prompt still begins with the whole one before it (rules O2, O5).
#[test]
fn documents_of_one_id_have_rows_of_their_own() {
    for model in MODELS {
        let manager = manager_for(model, &staying());
        let mut log = Conversation::new();
        let mut before: Option<ContextPlan> = None;
        for (turn, expected) in [
            vec!["dd", "m0"],
            vec!["dd@0", "m0", "m1", "dd", "m2"],
            vec!["dd@0", "m0", "m1", "dd@2", "m2", "m3", "dd", "m4"],
        ]
        .into_iter()
        .enumerate()
        {
            log.push(Message::user(format!("Question {turn}?")));
            let rag = [RagItem::new("dd", 0.5, format!("Version {turn} of it."))];
            let request = PlanRequest::new(&log).with_rag(rag);
            let plan = manager.build_plan(&request).unwrap();
            let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
            assert_eq!(ids, expected, "{model}");
            if let Some(before) = before {
                let prefix = plan.prefix(&before.anchor()).unwrap();
                assert_eq!(
                    (prefix.differs_at.clone(), prefix.tokens),
                    (None, prefix.of),
                    "{model}: {prefix:?}"
                );
            }
            let explainer = manager.explainer(&request);
            for id in ids {
                assert!(explainer.explain(id).is_ok(), "{model}: {id}");
            }
            log.push_reply(&plan, Message::assistant(format!("Answer {turn}.")), None);
            before = Some(plan);
        }
        // If the question has no documents, the newest document keeps the plain id.
        log.push(Message::user("And now?"));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        let documents = plan.included.iter().filter(|row| row.kind == ItemKind::Document);
        let ids: Vec<&str> = documents.map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["dd@0", "dd@2", "dd"], "{model}");
    }
}
