//! The prompts of a conversation, planned one after another as an application with this planner would have
//! planned them (replay, rule V1).

use super::Explainer;
use crate::{
    conversation::{Conversation, Entry, Event},
    error::Error,
    message::Role,
    plan::ContextPlan,
    planner::{manager::ContextWindowManager, request::PlanRequest},
    rag::RetrievedItems,
    usage::Usage,
};

/// An iterator over the prompts of a conversation, each planned after the one before it.
pub(crate) struct Replay<'a> {
    manager: &'a ContextWindowManager,
    request: PlanRequest<'a>,
    entries: Box<dyn Iterator<Item = Entry<'a>> + 'a>,
    past: Conversation,
    reported: Option<Usage>,
    prompts: usize,
    /// Number of prompts at the beginning that are counted but not planned.
    skipped: usize,
    turns: usize,
    ended: bool,
}

/// One prompt of a replay.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Step {
    /// The number of the prompt, from 1.
    pub prompt: usize,
    /// The number of its turn, from 1; 0 before the first user message.
    pub turn: usize,
    /// Number of messages in the conversation at this prompt.
    pub messages: usize,
    /// Number of compactions before this prompt.
    pub compactions: usize,
    /// The plan of the prompt. [`ContextPlan::repeated`] compares it with the prompt before it.
    pub plan: ContextPlan,
}

impl<'a> Explainer<'a> {
    /// Plans the request's conversation again from its beginning. There is one prompt before every assistant
    /// message, and the request itself is the last one. Each reply is committed
    /// ([`Conversation::push_reply`]), so every prompt continues the one before it.
    ///
    /// ```
    /// use context_window::{
    ///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter,
    /// };
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// # let manager =
    /// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
    /// let log = Conversation::from([
    ///     Message::user("How long do refunds take?"),
    ///     Message::assistant("5 days."),
    ///     Message::user("Thanks!"),
    /// ]);
    /// let request = PlanRequest::new(&log);
    /// for step in manager.explainer(&request).replay() {
    ///     let step = step?;
    ///     println!("prompt {}: {} tokens", step.prompt, step.plan.estimated_tokens_total.tokens);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// All prompts have the tools and limits of the request. Documents, state and focus hint belong to the
    /// last prompt only. Pins, compactions and rewinds happen at their places in the log. A TTL changes only
    /// by events of the log: the replay does not count it down.
    pub fn replay(&self) -> impl Iterator<Item = Result<Step, Error>> + use<'a> {
        self.replayed(0)
    }

    /// Plans only the newest prompts, at most `count`, as [`Explainer::replay`] does. The first of them is
    /// planned without a previous prompt.
    pub fn replay_newest(&self, count: usize) -> impl Iterator<Item = Result<Step, Error>> + use<'a> {
        self.replayed(self.count_prompts().saturating_sub(count))
    }

    /// Returns the number of prompts that [`Explainer::replay`] plans, including the request's own.
    #[must_use]
    pub fn count_prompts(&self) -> usize {
        // An assistant message at the beginning of the log has no prompt before it.
        let messages = self.request.log.messages().iter().skip(1);
        messages.filter(|message| message.role() == Role::Assistant).count() + 1
    }

    fn replayed(&self, skipped: usize) -> Replay<'a> {
        let Self { manager, request } = *self;
        Replay {
            manager,
            request: request.clone(),
            entries: Box::new(request.log.entries()),
            past: Conversation::new(),
            reported: None,
            prompts: 0,
            skipped,
            turns: 0,
            ended: false,
        }
    }
}

impl Replay<'_> {
    /// Plans the prompt that comes next. `last` is true for the request itself.
    fn plan(&mut self, last: bool) -> Result<Step, Error> {
        let mut request = PlanRequest { log: &self.past, previous: None, ..self.request.clone() };
        if !last {
            (request.rag, request.focus, request.state) = (RetrievedItems::default(), None, Vec::new());
        }
        let plan = self.manager.plan(&request)?;
        self.prompts += 1;
        Ok(Step {
            prompt: self.prompts,
            turn: self.turns,
            messages: self.past.messages().len(),
            compactions: self.past.compactions().count(),
            plan,
        })
    }
}

impl Iterator for Replay<'_> {
    type Item = Result<Step, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(entry) = self.entries.next() {
            match entry {
                // The sent prompt is planned again, but the provider's usage report on it is kept.
                Entry::Event(Event::Sent { usage, .. }) => self.reported = *usage,
                Entry::Event(event) => self.past.record(event.clone()),
                Entry::Message(message) => {
                    let reported = self.reported.take();
                    if message.role() != Role::Assistant || self.past.messages().is_empty() {
                        self.turns += usize::from(message.role() == Role::User && !message.is_empty());
                        self.past.push(message.clone());
                        continue;
                    }
                    if self.prompts < self.skipped {
                        self.prompts += 1;
                        self.past.push(message.clone());
                        continue;
                    }
                    let step = self.plan(false);
                    // If planning fails, the reply is still added, so that the later prompts can be planned.
                    match &step {
                        Ok(step) => drop(self.past.commit(&step.plan, message.clone(), reported.into())),
                        Err(_) => drop(self.past.push(message.clone())),
                    }
                    return Some(step);
                }
            }
        }
        (!std::mem::replace(&mut self.ended, true)).then(|| self.plan(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        message::Message,
        planner::candidates::WEIGHED,
        provider::model::{Model, RequestLimits},
        tokens::TokenCounter,
    };

    /// Returns the number of rows in a replay of `turns` turns, and the number of candidates that it weighs.
    fn work(turns: usize) -> (u64, u64) {
        let both = |at: usize| [Message::user(format!("{at}?")), Message::assistant(format!("{at}."))];
        let log: Conversation = (0..turns).flat_map(both).collect();
        let manager =
            ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default());
        let (manager, request) =
            (manager.unwrap(), PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(300)));
        WEIGHED.take();
        let rows = manager.explainer(&request).replay().map(|step| step.unwrap().plan.included.len() as u64);
        (rows.sum(), WEIGHED.take())
    }

    /// Checks that each prompt of a full window takes the work of the window, however long the conversation
    /// is.
    #[test]
    fn a_replay_of_twice_as_many_turns_is_twice_the_work_if_the_window_is_full() {
        let (some, twice) = (work(300), work(600));
        assert!(some.0 > 300 * 10, "the window is small: {} rows", some.0);
        assert!(twice.0 < some.0 * 5 / 2, "{} and {} rows", some.0, twice.0);
        assert!(twice.1 < some.1 * 5 / 2, "{} and {} candidates weighed", some.1, twice.1);
    }
}
