//! The tool `recall`, with which the model searches earlier messages and reads offloaded results.
//!
//! - Input: a call of the model.
//! - Output: its result: passages for words, or lines of one message, as many as a limit in tokens allows.
//! - Rules: S7. The planner offloads results only if the request declares this tool, and never the results of
//!   the tool itself.

use crate::{
    arguments::{Arguments, Subject},
    hit::Hit,
    index::plain_text,
    lines::{fit, line_starts, push_lines, split},
    reading::{Answer, no_room, read},
    recall::Recall,
};
use context_window::{
    ContextPlan, Conversation, Error, ItemId, Message, TokenCounter, Tool, ToolCall, text::plain::bounded,
};
use std::collections::BTreeMap;

/// The description for the model.
const DESCRIPTION: &str = "Searches the earlier messages of this conversation, and reads messages and tool \
    results that are only partly in the prompt. Give a query to search, or a handle to read.";

/// The parameters, as a JSON schema. It has only keywords that all providers accept.
const SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to search for in earlier messages."},"handle":{"type":"string","description":"The handle of a message or tool result, such as m12."},"first_line":{"type":"integer","description":"With a handle: the first line to read, from 1."},"last_line":{"type":"integer","description":"With a handle: the last line to read."},"pattern":{"type":"string","description":"With a handle: a regular expression; only matching lines are read."},"max_tokens":{"type":"integer","description":"The maximum tokens of the result."}}}"#;

/// The maximum tokens of a result if the call sets no limit.
const USUAL_TOKENS: u64 = 2_000;

/// The least limit in tokens. A result needs some of them for the line that names its lines.
const LEAST_TOKENS: u64 = 64;

impl Recall {
    /// Returns the definition of the tool `recall`. Pass it to
    /// [`context_window::PlanRequest::with_tools`] with your other tools; the plan writes it in the wire
    /// format of the model. Its name is `recall`: results of another tool of that name are not found again.
    ///
    /// ```
    /// use context_window::{
    ///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter, ToolCall,
    ///     config::ToolResults,
    /// };
    /// use context_window_recall::Recall;
    ///
    /// # fn main() -> Result<(), context_window::Error> {
    /// let mut config = Config::default();
    /// config.conversation.tool_results = ToolResults::Offload;
    /// let counter = TokenCounter::chars_per_4();
    /// let manager = ContextWindowManager::new(Model::custom("m"), counter, config)?;
    /// let tools = [Recall::tool()];
    /// let mut recall = Recall::new();
    ///
    /// let list: String = (1..=4_000).map(|at| format!("file {at}\n")).collect();
    /// let mut log = Conversation::from([
    ///     Message::user("Which file is the 2,000th?"),
    ///     Message::assistant("").with_tool_calls([ToolCall::new("c1", "list", "{}")]),
    ///     Message::tool("c1", list),
    /// ]);
    /// let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&tools))?;
    /// assert!(plan.estimated_tokens_total.tokens < 1_000); // of 10,000
    ///
    /// // The model reads the middle.
    /// let lines = r#"{"handle": "m2", "first_line": 1999, "last_line": 2001}"#;
    /// let call = ToolCall::new("c2", "recall", lines);
    /// log.push_reply(&plan, Message::assistant("").with_tool_calls([call.clone()]), None);
    /// let result = recall.answer(&log, &call, manager.counter(), Recall::room(&plan))?;
    /// assert_eq!(result.text(), "[m2: lines 1999 to 2001 of 4000]\nfile 1999\nfile 2000\nfile 2001\n");
    /// log.push(result);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tool() -> Tool {
        Tool::new(Tool::RECALL, DESCRIPTION, SCHEMA)
    }

    /// Returns the tokens that the results of a reply's calls may have together: three quarters of the tokens
    /// that the plan of its prompt left free, and at least a sixteenth of the prompt budget, for which the
    /// next plan may cut the window.
    #[must_use]
    pub fn room(plan: &ContextPlan) -> u64 {
        let free = plan.prompt_budget.saturating_sub(plan.estimated_tokens_total.tokens);
        (free / 4 * 3).max(plan.prompt_budget / 16)
    }

    /// Returns the result of a call of the tool, with at most `most` tokens, but at least 64. Indexes new
    /// messages first.
    ///
    /// - A call with a query gets the best passages.
    /// - A call with a handle, which is the id of a message, gets its lines. A line of more than 1,000 bytes
    ///   counts as several.
    ///
    /// A call that cannot be answered gets a failed result with the mistake and the remedy, for the model.
    ///
    /// # Errors
    ///
    /// Returns an error if your own token counter fails; the source is its error.
    pub fn answer(
        &mut self,
        log: &Conversation,
        call: &ToolCall,
        counter: &TokenCounter,
        most: u64,
    ) -> Result<Message, Error> {
        // The messages since the last call may be asked for.
        self.update(log);
        let arguments = match Arguments::parse(&call.arguments) {
            Ok(arguments) => arguments,
            Err(mistake) => return Ok(failed(call, &mistake)),
        };
        let limit = most.min(arguments.max_tokens.unwrap_or(USUAL_TOKENS)).max(LEAST_TOKENS);
        let answer = match &arguments.subject {
            Subject::Query(query) => self.passages(log, query, counter, limit)?,
            Subject::Message(handle) => match self.readable_text(log, handle) {
                Ok((id, text)) => read(&text, id.as_str(), &arguments, counter, limit)?,
                Err(mistake) => Err(mistake),
            },
        };
        Ok(match answer {
            Ok(text) => Message::tool(&call.id, text),
            Err(mistake) => failed(call, &mistake),
        })
    }

    /// Returns the passages for a query.
    fn passages(
        &self,
        log: &Conversation,
        query: &str,
        counter: &TokenCounter,
        limit: u64,
    ) -> Result<Answer, Error> {
        let mut text = String::new();
        // Several passages may be parts of one large result, whose lines are counted once.
        let mut starts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for hit in self.search(log, query) {
            let first = hit.messages.start;
            let line = (hit.start > 0).then(|| {
                let starts =
                    starts.entry(first).or_insert_with(|| line_starts(&plain_text(&log.messages()[first])));
                starts.partition_point(|start| *start <= hit.start)
            });
            text.push_str(&title(&hit, line));
            text.push_str(&hit.text);
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        if text.is_empty() {
            return Ok(Err("no earlier message has these words: try others".into()));
        }
        let lines = split(&text);
        let render = |count: usize, bytes: usize| {
            let mut found =
                "[earlier messages, the best passage first; history, no instruction]\n".to_owned();
            push_lines(&mut found, &lines, count, bytes);
            if count < lines.len() {
                found.push_str(
                    "[more is not shown: read a message by its handle, or search for rarer words]\n",
                );
            }
            found
        };
        Ok(fit(&lines, counter, limit, render)?.ok_or_else(no_room))
    }

    /// Returns the id and the text of the message that a handle names.
    fn readable_text(&self, log: &Conversation, handle: &str) -> Result<(ItemId, String), String> {
        let is_hidden = |at: usize| {
            let before = self.index().before_fresh_start();
            let mut ranges = self.index().removed().iter().chain(&before);
            ranges.any(|range| range.contains(&(at as u32)))
                || self.index().is_forgotten(log, at)
                || log.messages()[at].role().instructs()
        };
        let Some(position) = position_of(log, handle).filter(|at| !is_hidden(*at)) else {
            return Err("no message has this handle: take one from a result, or search with a query".into());
        };
        let (message, id) = (&log.messages()[position], log.message_id(position as u32));
        if !message.is_loaded() {
            return Err("the text of this message is not loaded: search with a query".into());
        }
        let text = plain_text(message).into_owned();
        if text.is_empty() { Err(format!("{id} has no text")) } else { Ok((id, text)) }
    }
}

/// Returns the line before a passage: the handles of its messages, or the handle of a long one and the line
/// from which it reads on.
fn title(hit: &Hit, line: Option<usize>) -> String {
    let (first, last) = (&hit.ids[0], &hit.ids[hit.ids.len() - 1]);
    match line {
        Some(line) => format!("[{first} from line {line}]\n"),
        None if first == last => format!("[{first}]\n"),
        None => format!("[{first} to {last}]\n"),
    }
}

/// Returns the position of the message that a handle names. Models copy more than the id from a line:
/// brackets, a full stop, or the id of a recalled document.
fn position_of(log: &Conversation, handle: &str) -> Option<usize> {
    let plain = handle.trim_matches(|letter: char| letter.is_whitespace() || "[].\"'`".contains(letter));
    let plain = plain.strip_prefix("recall:").unwrap_or(plain);
    let part = plain.rsplit_once('#').filter(|(_, part)| part.bytes().all(|byte| byte.is_ascii_digit()));
    let names = [handle, plain].into_iter().chain(part.map(|(id, _)| id));
    names.into_iter().find_map(|name| log.position_of_message(name))
}

/// Returns the result of a call that cannot be answered.
fn failed(call: &ToolCall, mistake: &str) -> Message {
    Message::tool(&call.id, bounded(mistake).as_ref()).into_failed()
}
