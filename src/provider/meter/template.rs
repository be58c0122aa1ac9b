//! Token counts for a chat template. The tokens around a message are learned from a few small renderings, and
//! estimate one message at a time. The count of a whole rendered prompt is exact (counts match the sent text,
//! rule N3).

use super::{Frames, ROLES};
use crate::{
    error::Error,
    message::{Message, Prompt, Role, Tool, ToolCall},
    provider::{model::ChatTemplate, render::Renderer},
    tokens::TokenCounter,
};

/// The assumed tokens around a message, if the template refuses the prompt that would show them.
const USUAL: u64 = 4;

/// A chat template that is ready to render.
#[derive(Debug)]
pub(super) struct Rendered {
    renderer: Renderer,
}

impl Rendered {
    /// Prepares a template. Content must not spell out its markers, which are those of the template and the
    /// control tokens of the counter.
    pub(super) fn new(template: &ChatTemplate, counter: &TokenCounter) -> Result<Self, Error> {
        Ok(Self { renderer: Renderer::new(template, counter.control_tokens())? })
    }

    /// Breaks the control tokens in the texts of a prompt. The prompt is sent and counted in this form.
    pub(super) fn neutral(&self, prompt: &mut Prompt) {
        self.renderer.neutralise(prompt);
    }

    /// Returns the tokens around messages of each role, around calls, and before the reply.
    ///
    /// # Errors
    ///
    /// Returns an error if the template does not render even one user message, or if the counter fails.
    pub(super) fn frames(&self, counter: &TokenCounter) -> Result<Frames, Error> {
        const TEXT: &str = "a";
        let text = counter.count(TEXT)?.tokens;
        let size = |messages: &[Message], reply| self.size(counter, messages, &[], reply);
        let (user, reply) = (Message::user(TEXT), Message::assistant(TEXT));
        let call = Message::assistant("").with_tool_calls([ToolCall::new("call_0001", TEXT, "{}")]);
        let (system, result) = (Message::system(TEXT), Message::tool("call_0001", TEXT));

        // Each number is the difference of two prompts that differ in one message. A template may refuse any
        // but the first two.
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
        // The call itself contains `{}` in an assistant message, so both are subtracted from the difference.
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
