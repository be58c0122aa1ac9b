//! Plans of one question with documents, for tests of single rules. A token is a byte.

use crate::generate;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem,
    RequestLimits,
    config::{Placement, RagOptions},
};

/// Builds a manager with default options, and those that `change` makes.
pub fn manager(change: impl FnOnce(&mut RagOptions)) -> ContextWindowManager {
    let mut config = Config::default();
    change(&mut config.rag);
    ContextWindowManager::new(Model::custom("test"), generate::bytes(), config).unwrap()
}

/// Plans the next prompt of a conversation with these documents.
pub fn plan(
    manager: &ContextWindowManager,
    log: &Conversation,
    documents: impl AsRef<[RagItem]>,
    budget: u64,
) -> ContextPlan {
    let limits = RequestLimits::prompt_budget(budget);
    let request = PlanRequest::new(log).with_rag(documents.as_ref().to_vec()).with_limits(limits);
    manager.build_plan(&request).unwrap()
}

/// Builds a conversation of one short question.
pub fn question() -> Conversation {
    Conversation::from([Message::user("How?")])
}

/// Builds a document whose text repeats its id.
pub fn item(id: &str, score: f64) -> RagItem {
    RagItem::new(id, score, format!("{id} says this. ").repeat(4))
}

/// Returns the ids of the documents in a prompt.
pub fn ids(plan: &ContextPlan) -> Vec<&str> {
    plan.included.iter().filter(|row| row.kind.is_document()).map(|row| row.id.as_str()).collect()
}

/// Builds a manager that retains documents with their question, and a conversation that has retained `first`,
/// with a reply and a second question.
pub fn second_question(first: RagItem, reply: &str) -> (ContextWindowManager, Conversation) {
    let manager = manager(|rag| (rag.placement, rag.question_limit) = (Placement::WithQuestion, 1000));
    let mut log = question();
    let plan = plan(&manager, &log, [first], 2_000);
    log.push_reply(&plan, Message::assistant(reply), None);
    log.push(Message::user("And?"));
    (manager, log)
}
