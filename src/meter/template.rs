//! What a chat template puts around messages, learnt by rendering a few small prompts; and what a whole prompt costs as
//! rendered. The first is for weighing one message at a time, the second is the truth (rule N3).

use super::{Frames, ROLES};
use crate::{
    error::Error,
    message::{Message, Prompt, Role, Tool, ToolCall},
    model::ChatTemplate,
    render::Renderer,
    tokens::{ControlTokens, TokenCounter},
};
use std::borrow::Cow;

/// Tokens around a message where the template would not render the prompt that shows them.
const USUAL: u64 = 4;

#[derive(Debug)]
pub(super) struct Rendered {
    renderer: Renderer,
}

impl Rendered {
    pub(super) fn new(template: &ChatTemplate) -> Result<Self, Error> {
        Ok(Self { renderer: Renderer::new(template)? })
    }

    /// What stands around messages of each role, calls and the reply.
    ///
    /// # Errors
    ///
    /// When the template renders not even one user message, or the counter fails.
    pub(super) fn frames(&self, counter: &TokenCounter) -> Result<Frames, Error> {
        const TEXT: &str = "a";
        let text = counter.count(TEXT)?.n;
        let size = |messages: &[Message], reply| self.size(counter, messages, &[], reply);
        let (user, reply) = (Message::user(TEXT), Message::assistant(TEXT));
        let call = Message::assistant("").calls([ToolCall::new("call_0001", TEXT, "{}")]);
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
        let spelt = counter.count("{}")?.n + role(Role::Assistant);
        Ok(Frames {
            roles: ROLES.map(role),
            start: one.saturating_sub(role(Role::User) + text),
            priming: primed.saturating_sub(one),
            call: between(called, Some(one)).map_or(USUAL, |tokens| tokens.saturating_sub(spelt)),
            name: 0,
        })
    }

    /// What the tool definitions add to a prompt.
    pub(super) fn tools(&self, counter: &TokenCounter, tools: &[Tool]) -> Result<u64, Error> {
        let user = [Message::user("a")];
        let without = self.size(counter, &user, &[], true)?;
        Ok(self.size(counter, &user, tools, true)?.saturating_sub(without))
    }

    /// What a whole prompt costs.
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
        let (mark, messages, tools) = as_text(counter.control_tokens(), messages, tools);
        let text = self.renderer.render(&messages, &tools, reply)?;
        counter.count_rendered(&text, mark)
    }
}

/// Messages and tools whose texts name no control token, and the mark that breaks those they do name (rule N2).
fn as_text<'m>(
    control: Option<&ControlTokens>,
    messages: &'m [Message],
    tools: &'m [Tool],
) -> (Option<char>, Cow<'m, [Message]>, Cow<'m, [Tool]>) {
    let of_tools = || tools.iter().flat_map(|tool| [&*tool.name, &*tool.description, &*tool.schema]);
    let texts = || messages.iter().flat_map(Message::texts).chain(of_tools());
    let Some(control) = control.filter(|control| texts().any(|text| control.find(text).next().is_some()))
    else {
        return (None, messages.into(), tools.into());
    };
    // One that nobody used, of those that nobody else gives a meaning to.
    let unused = |mark: &char| !texts().any(|text| text.contains(*mark));
    let mark = ('\u{f0000}'..='\u{ffffd}').find(unused).unwrap_or('\u{ffffd}');
    let broken = |text: &str| broken(text, control, mark);
    let messages = messages.iter().map(|message| message.with_texts_changed(&broken)).collect();
    let tools = tools.iter().map(|tool| Tool {
        name: broken(&tool.name),
        description: broken(&tool.description),
        schema: broken(&tool.schema),
    });
    (Some(mark), messages, tools.collect())
}

/// The text with a mark after the first character of every control token that it names.
fn broken(text: &str, control: &ControlTokens, mark: char) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for (at, _) in control.find(text) {
        let inside = at + text[at..].chars().next().map_or(0, char::len_utf8);
        out.push_str(&text[from..inside]);
        out.push(mark);
        from = inside;
    }
    out.push_str(&text[from..]);
    out
}
