//! The messages that a prompt adds to the last one, for providers that keep the conversation themselves
//! (stored conversations, rule O6).

use super::{ContextPlan, PromptPiece, Target};
use crate::{
    error::Error,
    message::{Prompt, Role},
    text::plain::short,
};

impl ContextPlan {
    /// Returns the messages that are new since the last prompt and its reply. Use it with a provider that
    /// keeps the conversation (`previous_response_id`, a conversation or thread of the provider). The result
    /// renders as a plan does. It is the whole prompt if no last prompt for this target is known.
    ///
    /// ```
    /// use context_window::{ContextWindowManager, Conversation, Message, PlanRequest, render};
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// let manager = ContextWindowManager::for_model("gpt-6.2-sol")?;
    /// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
    /// let plan = manager.build_plan(&PlanRequest::new(&log))?;
    /// log.push_reply(&plan, Message::assistant("5 days."), None);
    /// log.push(Message::user("And exchanges?"));
    /// let plan = manager.build_plan(&PlanRequest::new(&log))?;
    /// let body = serde_json::to_string(&render::openai_responses(&plan.since_last_prompt()?)).unwrap();
    /// assert!(body.contains("And exchanges?") && !body.contains("How long"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` if this prompt does not begin with the whole last prompt and its reply. Then
    /// something was cut, compacted or changed, and the provider's copy does not have that change. The error
    /// names the first such item and the possible remedies.
    pub fn since_last_prompt(&self) -> Result<Prompt, Error> {
        let target = Target::new(&self.model, &self.provider).with_wire_format(self.wire_format);
        // A provider does not hold a prompt that was made for another target.
        let held = self
            .carryover
            .before
            .as_ref()
            .filter(|last| last.anchor.target.as_ref().is_none_or(|of| of.is(&target)));
        let Some(last) = held.and_then(|last| last.anchor.prompt.as_deref()) else {
            return Ok(self.carryover.prompt.clone());
        };
        let now = self.pieces();
        let same = last.iter().zip(&now).take_while(|(then, now)| then.is_sent_as(now)).count();
        // Every item of the last prompt must be repeated, because the provider sends all of them.
        if let Some(PromptPiece { id, .. }) = last.get(same) {
            return Err(parted(id.as_str()));
        }
        // Tool definitions are an item of the remembered prompt, but not a row of the plan.
        let tools = usize::from(!self.carryover.prompt.tools.is_empty());
        let Some(replied) = same.checked_sub(tools) else { return Ok(self.carryover.prompt.clone()) };
        let reply = self.included.get(replied).filter(|row| row.role == Some(Role::Assistant));
        let Some(reply) = reply else { return Err(parted("the reply")) };
        let first = self
            .carryover
            .row_messages
            .get(replied + 1)
            .copied()
            .unwrap_or(self.carryover.prompt.messages.len());
        // A wire format may merge the reply with the next item. Such a message cannot be sent in part.
        if self.carryover.row_messages.get(replied) == Some(&first) {
            return Err(parted(reply.id.as_str()));
        }
        let messages = self.carryover.prompt.messages[first..].to_vec();
        // Cache marks count messages of the whole prompt, and are not valid for a part of it.
        Ok(Prompt { messages, marks: Vec::new(), ..self.carryover.prompt.clone() })
    }
}

fn parted(id: &str) -> Error {
    let detail = format!(
        "does not continue the conversation stored by the provider: `{}` is not sent unchanged; send the \
         whole prompt without a previous response, raise the budget, or have the provider compact",
        short(id)
    );
    Error::input("this prompt", detail)
}
