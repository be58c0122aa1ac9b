//! The tokens that a chat template puts around messages, learnt by rendering a few small prompts; and the
//! tokens of a whole prompt as rendered. The first is for weighing one message at a time, the second is exact
//! (rule N3).

use super::{Frames, ROLES};
use crate::{
    error::Error,
    message::{Message, Prompt, Role, Tool, ToolCall},
    provider::{model::ChatTemplate, render::Renderer},
    tokens::TokenCounter,
};

/// Tokens around a message where the template would not render the prompt that shows them.
const USUAL: u64 = 4;

#[derive(Debug)]
pub(super) struct Rendered {
    renderer: Renderer,
}

impl Rendered {
    /// Returns the template, and the markers that content must not name: its own, and the control tokens of
    /// the counter.
    pub(super) fn new(template: &ChatTemplate, counter: &TokenCounter) -> Result<Self, Error> {
        Ok(Self { renderer: Renderer::new(template, counter.control_tokens())? })
    }

    /// Returns the prompt with texts that name no control token: it is sent and counted in this form.
    pub(super) fn neutral(&self, prompt: &mut Prompt) {
        self.renderer.neutralise(prompt);
    }

    /// Tokens around messages of each role, calls and the reply.
    ///
    /// # Errors
    ///
    /// If the template does not render even one user message, or the counter fails.
    pub(super) fn frames(&self, counter: &TokenCounter) -> Result<Frames, Error> {
        const TEXT: &str = "a";
        let text = counter.count(TEXT)?.tokens;
        let size = |messages: &[Message], reply| self.size(counter, messages, &[], reply);
        let (user, reply) = (Message::user(TEXT), Message::assistant(TEXT));
        let call = Message::assistant("").with_tool_calls([ToolCall::new("call_0001", TEXT, "{}")]);
        let (system, result) = (Message::system(TEXT), Message::tool("call_0001", TEXT));

        let one = size(std::slice::from_ref(&user), false)?;
        let primed = size(std::slice::from_ref(&user), true)?;
        let two = size(&[user.clone(), reply.clone()], false).ok();
        let three = size(&[user.clone(), reply, user.clone()], false).ok();
        let instructed = size(&[system, user.clone()], false).ok();
        let called = size(&[user.clone(), call.clone()], false).ok();
        let answered = size(&[user, call, result], false).ok();

        let between = |longer: Option<u64>, shorter: Option<u64>| {
            let difference = longer?.saturating_sub(shorter?);
            Some(difference.saturating_sub(text))
        };
        let usual = |found: Option<u64>| found.unwrap_or(USUAL);
        let role = |role: Role| match role {
            Role::System | Role::Developer => usual(between(instructed, Some(one))),
            Role::User => usual(between(three, two)),
            Role::Assistant => usual(between(two, Some(one))),
            Role::Tool => usual(between(answered, called)),
        };
        let spelt = counter.count("{}")?.tokens + role(Role::Assistant);
        Ok(Frames {
            roles: ROLES.map(role),
            start: one.saturating_sub(role(Role::User) + text),
            priming: primed.saturating_sub(one),
            call: between(called, Some(one)).map_or(USUAL, |tokens| tokens.saturating_sub(spelt)),
            ..Frames::default()
        })
    }

    /// Returns the tokens that the tool definitions add to a prompt.
    pub(super) fn tools(&self, counter: &TokenCounter, tools: &[Tool]) -> Result<u64, Error> {
        let user = [Message::user("a")];
        let without = self.size(counter, &user, &[], true)?;
        Ok(self.size(counter, &user, tools, true)?.saturating_sub(without))
    }

    /// Returns the tokens of a whole prompt.
    pub(super) fn prompt(&self, counter: &TokenCounter, prompt: &Prompt) -> Result<u64, Error> {
        self.size(counter, &prompt.messages, &prompt.tools, true)
    }

    fn size(
        &self,
        counter: &TokenCounter,
        messages: &[Message],
        tools: &[Tool],
        reply: bool,
    ) -> Result<u64, Error> {
        let text = self.renderer.render(messages, tools, reply)?;
        Ok(counter.count_rendered(&text)?)
    }
}
