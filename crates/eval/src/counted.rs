//! The token counts of single messages and documents, by which baselines select.

use crate::error::Error;
use context_window::{
    Config, ContextWindowManager, Conversation, ItemId, ItemKind, Message, Model, Part, PlanRequest, RagItem,
    RequestLimits, Role, TokenCounter, Tool,
    plan::{LedgerLine, Overhead, PlannedItem},
};
use std::collections::BTreeMap;

/// A prompt budget that every prompt fits into.
const UNLIMITED: u64 = 1 << 40;

/// A message or document with its tokens.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) id: ItemId,
    /// `None` for a document.
    pub(crate) role: Option<Role>,
    pub(crate) tokens: u64,
    pub(crate) text: String,
}

/// A counter of the tokens of single messages and documents. They are those of the planner's ledger.
pub(crate) struct ItemCounter(ContextWindowManager);

/// Counted messages, and the tokens that every prompt has besides them.
pub(crate) struct CountedMessages {
    pub(crate) messages: Vec<Counted>,
    pub(crate) overhead: u64,
    /// The tokens of the overhead at the beginning of every prompt: tools, system texts and notes.
    pub(crate) fixed: u64,
}

impl ItemCounter {
    pub(crate) fn new(model: Model, counter: TokenCounter) -> Result<Self, Error> {
        let mut config = Config::default();
        // A notice about a due compaction would only take time.
        config.compaction.enabled = false;
        // Baselines have every document, with the tokens that it has alone.
        (config.rag.near_duplicates, config.rag.repeats, config.rag.join_chunks) = (0, 0, false);
        let manager = ContextWindowManager::new(model, counter, config);
        manager.map(Self).map_err(|error| Error::plan("the baselines", error))
    }

    /// Counts the messages of a conversation, in their order.
    pub(crate) fn messages(&self, log: &Conversation, tools: &[Tool]) -> Result<CountedMessages, Error> {
        let limits = RequestLimits::prompt_budget(UNLIMITED);
        let request = PlanRequest::new(log).with_tools(tools).with_limits(limits);
        let plan = self.0.build_plan(&request).map_err(|error| Error::plan("the messages", error))?;
        let tokens: BTreeMap<&ItemId, u64> =
            plan.included.iter().map(|row| (&row.id, row.token_estimate.tokens)).collect();
        let counted = log.messages().iter().zip(0..).map(|(message, position)| {
            let id = log.message_id(position);
            // A message that was rewound or has no content is not sent and takes no tokens.
            let tokens = tokens.get(&id).copied();
            let text = tokens.map(|_| joined(message)).unwrap_or_default();
            Counted { tokens: tokens.unwrap_or_default(), role: Some(message.role()), text, id }
        });
        let is_fixed = |row: &&PlannedItem| {
            // System messages at the start of the log are among the counted messages.
            matches!(row.kind, ItemKind::SystemText | ItemKind::Note | ItemKind::Rule)
                && log.position_of_message(row.id.as_str()).is_none()
        };
        let texts = plan.included.iter().filter(is_fixed).map(|row| row.token_estimate.tokens).sum::<u64>();
        let (tools, rest): (Vec<&LedgerLine>, Vec<_>) =
            plan.overhead.iter().partition(|line| line.what == Overhead::Tools);
        // A join of two texts can save a token, so a line may be negative.
        let sum = |lines: Vec<&LedgerLine>| lines.iter().map(|line| line.tokens).sum::<i64>();
        let fixed = texts + u64::try_from(sum(tools)).unwrap_or_default();
        let overhead = fixed + u64::try_from(sum(rest)).unwrap_or_default();
        Ok(CountedMessages { messages: counted.collect(), overhead, fixed })
    }

    /// Counts documents, each as the planner sends it, in their order.
    pub(crate) fn documents(&self, documents: &[RagItem]) -> Result<Vec<Counted>, Error> {
        if documents.is_empty() {
            return Ok(Vec::new());
        }
        // Documents belong to a question, and without one no document is sent.
        let log = Conversation::from([Message::user("?")]);
        let limits = RequestLimits::prompt_budget(UNLIMITED);
        let request = PlanRequest::new(&log).with_rag(documents.iter().cloned()).with_limits(limits);
        let plan = self.0.build_plan(&request).map_err(|error| Error::plan("the documents", error))?;
        let tokens: BTreeMap<&ItemId, u64> =
            plan.included.iter().map(|row| (&row.id, row.token_estimate.tokens)).collect();
        let counted = documents.iter().filter_map(|document| {
            // A second document of the same text is not sent.
            let tokens = *tokens.get(document.id())?;
            Some(Counted { id: document.id().clone(), role: None, tokens, text: document.text().to_owned() })
        });
        Ok(counted.collect())
    }
}

/// Returns the text of a message with its text parts, without the names of speakers and tools.
pub(crate) fn joined(message: &Message) -> String {
    let parts = message.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        _ => None,
    });
    [message.text()].into_iter().chain(parts).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
