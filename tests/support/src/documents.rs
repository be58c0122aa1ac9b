//! Plans of one question with documents, for tests of single rules. A token is a byte.

use crate::generate;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem,
    RequestLimits, config::RagOptions,
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
