//! Simulates a model provider that checks the prefix of its own reasoning blocks (source: `thinking.md`, 1 to
//! 4).
//!
//! Interpretations for unspecified cases (the strict one, unless noted):
//! - Anthropic: the order of `tools` and the form of a tool result (string or blocks) matter. Another URL
//!   counts as other bytes. After the first refused block all later ones are refused. An older block that is
//!   sent again invalidates those made without it, even with others in between. Sent blocks count, dropped or
//!   not. A message with only reasoning leaves no trace (lenient). The text of a thinking block is not
//!   checked. A deferred tool counts if something in the block's prefix names it.
//! - A `compaction` with null content has failed and is ordinary content. The API ignores reasoning before
//!   the newest compaction, so it is not checked. Turns kept behind an on-demand compaction need
//!   [`Server::compacted`].
//! - OpenAI: reasoning items are not part of the history, so removing or adding one invalidates no other;
//!   each is checked alone. The items between a new compaction item and a kept item must be the end of the
//!   kept item's history when it was made. All fields of items count (`id`, `status`, marks). A changed
//!   `text.format` is `Cause::System`. History stored by the server (`previous_response_id`) is not modelled.

use serde_json::{Value, json};
use std::{collections::BTreeMap, iter, sync::Arc};

/// A provider that remembers the request for each reasoning block that it made.
pub struct Server {
    anthropic: bool,
    births: BTreeMap<String, Prefix>,
    jobs: Vec<(Value, Prefix)>,
}

/// The provider whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    Anthropic,
    OpenAiResponses,
}

/// A block that the provider would refuse or drop, with a `path` such as `messages.3.content.0` or `input.4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub path: String,
    pub seal: String,
    pub cause: Cause,
}

/// The first reason found. `Message` has the index of the first differing message in the checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    System,
    Tools,
    Message(usize),
    PreviousReasoning,
    /// A signature that the provider never made.
    Unknown,
}

/// The content before a block, from the newest compaction on. `past` is flat, so that adjacent messages of
/// one role are merged: `[role, other message fields, block]` for each block that is not reasoning. `chain`
/// holds the signatures of all reasoning.
#[derive(Clone, Default)]
struct Prefix {
    system: Arc<Value>,
    tools: Arc<[Value]>,
    past: Vec<Arc<Value>>,
    chain: Vec<String>,
}

/// A reasoning block in a request. `places` are the message indices of `prefix.past`, followed by that of the
/// block.
struct Block {
    path: String,
    seal: String,
    places: Vec<usize>,
    prefix: Prefix,
    in_reply: bool,
}

impl Server {
    pub fn new(rules: Rules) -> Self {
        let (births, jobs) = Default::default();
        let anthropic = rules == Rules::Anthropic;
        Server { anthropic, births, jobs }
    }

    /// Checks every reasoning block in a request body. Returns the blocks that the provider would refuse or
    /// drop, in order; an empty list if all are valid.
    pub fn check(&self, body: &Value) -> Vec<Refused> {
        let (blocks, _) = self.read(body, &[]);
        let mut refused: Vec<Refused> = Vec::new();
        for block in &blocks {
            let spoiled = self.anthropic && !refused.is_empty();
            let later = spoiled.then_some(Cause::PreviousReasoning);
            let (path, seal) = (block.path.clone(), block.seal.clone());
            let cause = self.judge(&blocks, block).or(later);
            refused.extend(cause.map(|cause| Refused { path, seal, cause }));
        }
        refused
    }

    /// Registers the reasoning blocks of the reply to this request by their signatures, in order. Each comes
    /// with the other parts of the reply since the block before it, or since the reply's start.
    pub fn made(&mut self, body: &Value, blocks: &[(String, Vec<Value>)]) {
        let mut reply = Vec::new();
        for (seal, between) in blocks {
            reply.extend_from_slice(between);
            let kind = if self.anthropic { "thinking" } else { "reasoning" };
            reply.push(json!({"type": kind, "signature": seal, "encrypted_content": seal}));
        }
        self.replied(body, &reply);
    }

    /// Registers the blocks of a whole reply like `made`: Anthropic's `content` or OpenAI's `output`.
    pub fn replied(&mut self, body: &Value, reply: &[Value]) {
        let new = self.read(body, reply).0.into_iter().filter(|b| b.in_reply);
        self.births.extend(new.map(|b| (b.seal, b.prefix)));
    }

    /// Registers that Anthropic answered this request (all its messages) with this on-demand compaction
    /// block. Turns kept behind the block then stay valid under the conditions of section 3. OpenAI needs no
    /// such call.
    pub fn compacted(&mut self, body: &Value, block: &Value) {
        self.jobs.push((unmarked(block), self.read(body, &[]).1));
    }

    fn judge(&self, all: &[Block], block: &Block) -> Option<Cause> {
        let Some(birth) = self.births.get(&block.seal).filter(|_| !block.seal.is_empty()) else {
            return Some(Cause::Unknown);
        };
        let (now, past) = (&block.prefix, &block.prefix.past);
        if birth.system != now.system {
            return Some(Cause::System);
        }
        if self.tools(birth, &birth.past) != self.tools(now, &birth.past) {
            return Some(Cause::Tools);
        }
        let differs = match past.as_slice() {
            _ if self.anthropic => {
                let whole = self.unfold(past, birth);
                first_difference(&whole, &birth.past).map(|i| i.saturating_sub(whole.len() - past.len()))
            }
            [mark, kept @ ..] if self.is_compaction(&mark[2]) && birth.past.first() != Some(mark) => {
                let cut = birth.past.len().saturating_sub(kept.len());
                first_difference(kept, &birth.past[cut..]).map(|i| i + 1)
            }
            _ => first_difference(past, &birth.past),
        };
        if let Some(i) = differs {
            return Some(Cause::Message(block.places[i.min(past.len())]));
        }
        // The sent part of the original chain is its end, and the rest is left out, not moved behind the
        // block.
        let gone = birth.chain.strip_suffix(now.chain.as_slice());
        let follows = gone.is_some_and(|gone| all.iter().all(|b| !gone.contains(&b.seal)));
        (self.anthropic && !follows).then_some(Cause::PreviousReasoning)
    }

    /// Returns the past with each on-demand compaction block replaced by the content it covers, as deep as
    /// `birth` needs it.
    fn unfold(&self, past: &[Arc<Value>], birth: &Prefix) -> Vec<Arc<Value>> {
        let mut whole = past.to_vec();
        for _ in &self.jobs {
            let first = whole.first().filter(|_| whole != birth.past);
            let Some((_, job)) = self.jobs.iter().find(|(b, _)| first.is_some_and(|f| f[2] == *b)) else {
                break;
            };
            let role = whole.get(1).map_or(&Value::Null, |item| &item[0]);
            let kept = role.as_str().unwrap_or("assistant"); // nothing between: the block's own message
            let same = job.system == birth.system && self.tools(job, &[]) == self.tools(birth, &[]);
            if !same || kept == "system" || job.past.last().is_none_or(|item| item[0] == kept) {
                break;
            }
            whole.splice(0..1, job.past.iter().cloned());
        }
        whole
    }

    /// Returns the tools that count. For Anthropic, deferred tools count only if `past` names them.
    fn tools<'a>(&self, of: &'a Prefix, past: &[Arc<Value>]) -> Vec<&'a Value> {
        let named = |tool: &Value| past.iter().any(|item| names(item, &tool["name"]));
        let counts = |tool: &&Value| !self.anthropic || tool["defer_loading"] != true || named(tool);
        of.tools.iter().filter(counts).collect()
    }

    fn is_compaction(&self, block: &Value) -> bool {
        let failed = self.anthropic && block["content"].is_null();
        block["type"] == "compaction" && !failed
    }

    /// Returns the reasoning blocks of a request followed by a reply, and the prefix of the next block.
    fn read(&self, body: &Value, reply: &[Value]) -> (Vec<Block>, Prefix) {
        let (mut found, mut places, mut prefix) = (Vec::new(), Vec::new(), Prefix::default());
        let root = if self.anthropic { "messages" } else { "input" };
        let mut messages = list(&body[root], |text| json!({"role": "user", "content": text}));
        let asked = messages.len();
        if self.anthropic {
            prefix.system = Arc::new(blocks(&body["system"]).iter().map(unmarked).collect());
            prefix.tools = blocks(&body["tools"]).iter().map(unmarked).collect();
            messages.push(json!({"role": "assistant", "content": reply}));
        } else {
            prefix.system = Arc::new(body["text"]["format"].clone());
            prefix.tools = blocks(&body["tools"]).into();
            messages.extend_from_slice(reply);
        }
        for (i, message) in messages.iter().enumerate() {
            let (mut rest, mut content) = (Value::Null, vec![message.clone()]);
            if self.anthropic {
                (rest, content) = (unmarked(message), blocks(&message["content"]));
                if let Some(fields) = rest.as_object_mut() {
                    fields.retain(|key, _| key != "role" && key != "content");
                }
                content.extend((content.is_empty() && i < asked).then_some(Value::Null)); // only settings
            }
            for (j, block) in content.iter().enumerate() {
                if let Some(seal) = seal(block) {
                    let inner = if self.anthropic { &format!(".content.{j}") } else { "" };
                    let (path, in_reply) = (format!("{root}.{i}{inner}"), i >= asked);
                    let places = places.iter().copied().chain([i]).collect();
                    let here = prefix.clone();
                    prefix.chain.push(seal.clone());
                    found.push(Block { path, seal, places, prefix: here, in_reply });
                    continue;
                }
                if self.is_compaction(block) {
                    (prefix.past, prefix.chain, places) = Default::default();
                    found.retain(|_| !self.anthropic); // its API ignores what stands before
                }
                let block = if self.anthropic { unmarked(block) } else { block.clone() };
                prefix.past.push(Arc::new(json!([message["role"], rest, block])));
                places.push(i);
            }
        }
        (found, prefix)
    }
}

/// Returns the signature if the block is reasoning, and an empty string if the signature is missing.
fn seal(block: &Value) -> Option<String> {
    let key = match block["type"].as_str()? {
        "thinking" => "signature",
        "redacted_thinking" => "data",
        "reasoning" => "encrypted_content",
        _ => return None,
    };
    Some(block[key].as_str().unwrap_or_default().to_string())
}

/// Returns the elements of an array. A string is one element in its long form.
fn list(value: &Value, long: fn(&str) -> Value) -> Vec<Value> {
    match value {
        Value::String(text) => vec![long(text)],
        Value::Array(items) => items.clone(),
        _ => Vec::new(),
    }
}

fn blocks(content: &Value) -> Vec<Value> {
    list(content, |text| json!({"type": "text", "text": text}))
}

/// Returns a block, tool or message without cache marks, also inside its blocks. Inputs and schemas stay
/// unchanged.
fn unmarked(value: &Value) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) => items.iter_mut().for_each(|inner| *inner = unmarked(inner)),
        Value::Object(fields) => {
            fields.remove("cache_control");
            for key in ["content", "source", "tool", "definition"] {
                fields.entry(key).and_modify(|inner| *inner = unmarked(inner));
            }
        }
        _ => {}
    }
    value
}

/// Returns true if anything other than an input names the tool. This is stricter than references and calls.
fn names(value: &Value, tool: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|inner| names(inner, tool)),
        Value::Object(fields) => fields.iter().any(|(key, inner)| match key.as_str() {
            "input" => false,
            "name" | "tool_name" => inner == tool,
            _ => names(inner, tool),
        }),
        _ => false,
    }
}

fn first_difference(a: &[Arc<Value>], b: &[Arc<Value>]) -> Option<usize> {
    (a != b).then(|| iter::zip(a, b).take_while(|(a, b)| a == b).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = "m1c0 A Tools, m3c0 B Tools, m6c0 C Tools";

    /// One test per row: the change to the server and the next request, then the refused blocks. The base
    /// request holds A, B and C, each made for the messages before it.
    macro_rules! rows { ($base:ident: $($name:ident: $edit:expr => $want:expr;)*) => { $(#[test] fn $name() {
        let (mut server, mut body) = $base();
        let edit: fn(&mut Server, &mut Value) = $edit;
        edit(&mut server, &mut body);
        let refused = server.check(&body).into_iter().map(|r| format!("{} {} {:?}", r.path, r.seal, r.cause));
        let refused = refused.collect::<Vec<_>>().join(", ").replace("messages.", "m");
        assert_eq!(refused.replace(".content.", "c").replace("input.", "i"), $want);
    })* } }

    fn claude() -> (Server, Value) {
        let body = json!({"system": "S", "tools": [{"name": "t"}, {"name": "u"}], "messages": [
            user("q0"),
            own(&[think("A"), text("a"),
                json!({"type": "tool_use", "id": "1", "name": "t", "input": {"n": 1}})]),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [text("r"),
                {"type": "image", "source": {"type": "url", "url": "https://x/i?sig=1"}}]}]},
            own(&[json!({"type": "redacted_thinking", "data": "B"}), text("b")]),
            user("q4"),
            {"role": "system", "content": "now", "clear_at": "next_user_message"},
            own(&[think("C"), text("c")]),
            user("q7"),
        ]});
        (parent(Rules::Anthropic, "messages", &body, [1, 3, 6]), body)
    }
    fn openai() -> (Server, Value) {
        let body = json!({"instructions": "I", "tools": [{"name": "t"}], "input": [
            {"role": "developer", "content": "d"}, user("q1"), reason("A"),
            {"type": "function_call", "call_id": "1", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"}, reason("B"),
            {"role": "assistant", "content": "b"}, user("q7"), reason("C"),
            {"role": "assistant", "content": "c"},
        ]});
        (parent(Rules::OpenAiResponses, "input", &body, [2, 5, 8]), body)
    }
    fn parent(rules: Rules, root: &str, body: &Value, births: [usize; 3]) -> Server {
        let mut server = Server::new(rules);
        for (seal, n) in iter::zip(["A", "B", "C"], births) {
            make(&mut server, &first(body, root, n), &[seal]);
        }
        server
    }
    fn make(server: &mut Server, body: &Value, seals: &[&str]) {
        let blocks: Vec<_> = seals.iter().map(|seal| (seal.to_string(), vec![])).collect();
        server.made(body, &blocks);
    }
    /// Returns the request when it had `n` messages.
    fn first(body: &Value, root: &str, n: usize) -> Value {
        let mut body = body.clone();
        at(&mut body, root).truncate(n);
        body
    }
    fn at<'a>(body: &'a mut Value, path: &str) -> &'a mut Vec<Value> {
        let list = body.pointer_mut(&format!("/{path}")).and_then(Value::as_array_mut);
        list.unwrap_or_else(|| panic!("no list at {path}"))
    }
    fn cut(body: &mut Value, message: usize) -> Value {
        at(body, &format!("messages/{message}/content")).remove(0)
    }
    fn bare(body: &mut Value) {
        for message in [1, 3, 6] {
            cut(body, message);
        }
    }
    fn say(body: &mut Value, message: Value) {
        let root = if body["input"].is_array() { "input" } else { "messages" };
        at(body, root).push(message);
    }
    /// Makes the next reply for the current request and appends it.
    fn next(server: &mut Server, body: &mut Value, seal: &str) {
        make(server, body, &[seal]);
        let openai = body["input"].is_array();
        say(body, if openai { reason(seal) } else { own(&[think(seal), text("said")]) });
    }
    /// Restores every message of the older request. Later messages stay.
    fn restore(body: &mut Value, old: &Value) {
        for (now, old) in iter::zip(at(body, "messages"), old["messages"].as_array().into_iter().flatten()) {
            *now = old.clone();
        }
    }
    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }
    fn think(seal: &str) -> Value {
        json!({"type": "thinking", "thinking": "", "signature": seal})
    }
    fn reason(seal: &str) -> Value {
        json!({"type": "reasoning", "encrypted_content": seal, "summary": []})
    }
    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }
    fn own(content: &[Value]) -> Value {
        json!({"role": "assistant", "content": content})
    }
    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
    }
    /// Makes a reply with D, m, E, n and F, and appends the sent part of it.
    fn several(server: &mut Server, body: &mut Value, sent: &[Value]) {
        let part = |seal: &str, between| (seal.to_string(), between);
        server.made(body, &[part("D", vec![]), part("E", vec![text("m")]), part("F", vec![text("n")])]);
        say(body, own(sent));
    }
    fn summary() -> Value {
        json!({"type": "compaction", "content": "sum", "signature": "s", "encrypted_content": "e"})
    }
    fn mark() -> Value {
        json!({"type": "ephemeral"})
    }
    /// Replaces the first `n` messages by the summary that the server wrote for `job`.
    fn compact(server: &mut Server, body: &mut Value, n: usize, job: &Value) {
        server.compacted(job, &summary());
        at(body, "messages").splice(..n, [own(&[summary()])]);
    }

    rows! { claude:
        golden_unchanged: |_, _| () => "";
        golden_system: |_, b| b["system"] = json!("T") => "m1c0 A System, m3c0 B System, m6c0 C System";
        golden_tool_more: |_, b| at(b, "tools").push(json!({"name": "v"})) => TOOLS;
        golden_thinking_stripped: |_, b| bare(b) => "";
        appended: |_, b| say(b, user("more")) => "";
        deferred_tool_added: |_, b| at(b, "tools").insert(0, json!({"name": "d", "defer_loading": true}))
            => "";
        deferred_tool_named: |s, b| {
            at(b, "tools").push(json!({"name": "d", "defer_loading": true}));
            let tool = json!({"type": "tool_reference", "name": "d"});
            say(b, json!({"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}));
            next(s, b, "D");
            b["tools"][2]["description"] = json!("new");
        } => "m9c0 D Tools";
        deferred_tool_added_whose_name_is_an_input: |s, b| {
            let mut call = call("2");
            call["input"] = json!({"name": "d"});
            say(b, own(&[call]));
            next(s, b, "D");
            at(b, "tools").push(json!({"name": "d", "defer_loading": true}));
        } => "";
        oldest_removed: |_, b| drop(cut(b, 1)) => "";
        two_oldest_removed: |_, b| drop([cut(b, 1), cut(b, 3)]) => "";
        newest_removed: |_, b| drop(cut(b, 6)) => "";
        middle_removed: |s, b| { next(s, b, "D"); cut(b, 3); }
            => "m6c0 C PreviousReasoning, m8c0 D PreviousReasoning";
        swapped: |_, b| {
            let (old, new) = (cut(b, 1), cut(b, 3));
            at(b, "messages/1/content").insert(0, new);
            at(b, "messages/3/content").insert(0, old);
        } => "m1c0 B Message(1), m3c0 A Message(1), m6c0 C PreviousReasoning";
        moved_behind_its_follower: |s, b| {
            bare(b);
            make(s, b, &["D", "E"]);
            say(b, own(&[think("E"), think("D")]));
        } => "m8c0 E PreviousReasoning, m8c1 D PreviousReasoning";
        sent_twice: |_, b| at(b, "messages/6/content").insert(0, think("C")) => "m6c1 C PreviousReasoning";
        all_put_back: |s, b| { let old = b.clone(); bare(b); next(s, b, "D"); restore(b, &old); }
            => "m8c0 D PreviousReasoning";
        oldest_put_back: |s, b| { let old = b.clone(); cut(b, 1); next(s, b, "D"); restore(b, &old); }
            => "m8c0 D PreviousReasoning";
        left_out_for_good: |s, b| { bare(b); next(s, b, "D"); next(s, b, "E"); } => "";
        cache_marks: |_, b| {
            b["system"] = json!([{"type": "text", "text": "S", "cache_control": mark()}]);
            b["tools"][1]["cache_control"] = mark();
            b["messages"][1]["content"][2]["cache_control"] = mark();
            b["messages"][2]["content"][0]["content"][0]["cache_control"] = mark();
        } => "";
        mark_in_tool_input: |_, b| b["messages"][1]["content"][2]["input"]["cache_control"] = mark()
            => "m3c0 B Message(1), m6c0 C Message(1)";
        mark_in_tool_schema: |_, b| b["tools"][0]["input_schema"]["cache_control"] = mark() => TOOLS;
        parameters: |_, b| for key in ["max_tokens", "output_config", "tool_choice", "metadata", "thinking",
            "context_management", "compaction"] { b[key] = json!({"other": 1}) } => "";
        turn_scoped_deleted: |_, b| drop(at(b, "messages").remove(5)) => "m5c0 C Message(5)";
        turn_scoped_reworded: |_, b| b["messages"][5]["content"] = json!("then") => "m6c0 C Message(5)";
        turn_scoped_for_ever: |_, b| b["messages"][5]["clear_at"] = json!("never") => "m6c0 C Message(5)";
        settings_message_added: |_, b| at(b, "messages").insert(6, json!({"role": "system", "content": [],
            "output_config": {"effort": "low"}})) => "m7c0 C Message(6)";
        first_user_message: |_, b| b["messages"][0] = user("date: 2")
            => "m1c0 A Message(0), m3c0 B Message(0), m6c0 C Message(0)";
        assistant_edited: |_, b| b["messages"][3]["content"][1] = text("B") => "m6c0 C Message(3)";
        reordered: |_, b| at(b, "messages").swap(4, 5) => "m6c0 C Message(4)";
        deleted: |_, b| drop(at(b, "messages").remove(4)) => "m5c0 C Message(4)";
        inserted_before_the_block: |_, b| at(b, "messages").insert(6, user("x")) => "m7c0 C Message(6)";
        text_added: |_, b| b["messages"][4]["content"] = json!([text("q4"), text("x")])
            => "m6c0 C Message(4)";
        text_removed: |_, b| drop(at(b, "messages/1/content").remove(1))
            => "m3c0 B Message(1), m6c0 C Message(1)";
        whitespace: |_, b| b["messages"][4] = user("q4 ") => "m6c0 C Message(4)";
        result_shortened: |_, b| b["messages"][2]["content"][0]["content"][0] = text("")
            => "m3c0 B Message(2), m6c0 C Message(2)";
        image_url: |_, b| at(b, "messages/2/content/0/content")[1]["source"]["url"] = json!("https://x/i?2")
            => "m3c0 B Message(2), m6c0 C Message(2)";
        tool_input: |_, b| b["messages"][1]["content"][2]["input"]["n"] = json!(2)
            => "m3c0 B Message(1), m6c0 C Message(1)";
        tool_removed: |_, b| drop(at(b, "tools").remove(1)) => TOOLS;
        tool_renamed: |_, b| b["tools"][1]["name"] = json!("w") => TOOLS;
        tool_edited: |_, b| b["tools"][1]["description"] = json!("w") => TOOLS;
        tools_reordered: |_, b| at(b, "tools").swap(0, 1) => TOOLS;
        foreign_reply_appended: |_, b| say(b, own(&[text("of another vendor")])) => "";
        fork: |_, b| *b = first(b, "messages", 4) => "";
        key_order: |_, b| at(b, "messages/3/content")[1] = r#"{"text": "b","type":"text"}"#.parse().unwrap()
            => "";
        string_or_block: |_, b| {
            b["system"] = json!([text("S")]);
            b["messages"][0]["content"] = json!([text("q0")]);
        } => "";
        neighbours_merged: |_, b| {
            let call = at(b, "messages/1/content").remove(2);
            at(b, "messages").insert(2, own(&[call]));
        } => "";
        neighbours_merged_before_the_block: |s, b| {
            say(b, user("x"));
            next(s, b, "D");
            at(b, "messages").splice(7..9, [json!({"role": "user", "content": [text("q7"), text("x")]})]);
        } => "";
        reply_of_several: |s, b| several(s, b, &[think("D"), text("m"), think("E"), text("n"), think("F")])
            => "";
        reply_of_several_as_whole: |s, b| {
            let reply = [think("D"), text("m"), think("E"), call("2"), call("3")];
            s.replied(b, &reply);
            say(b, own(&reply));
        } => "";
        reply_lost_one: |s, b| several(s, b, &[think("D"), text("m"), text("n"), think("F")])
            => "m8c3 F PreviousReasoning";
        reply_lost_a_text: |s, b| several(s, b, &[think("D"), think("E"), text("n"), think("F")])
            => "m8c1 E Message(8), m8c3 F Message(8)";
        reply_changed_order: |s, b| several(s, b, &[text("m"), think("D"), think("E"), text("n"), think("F")])
            => "m8c1 D Message(8), m8c2 E PreviousReasoning, m8c4 F PreviousReasoning";
        reply_lost_the_newest: |s, b| several(s, b, &[think("D"), text("m"), text("n")]) => "";
        made_after_an_edit: |s, b| { b["messages"][4] = user("x"); cut(b, 6); next(s, b, "D"); } => "";
        made_behind_a_failing_one: |s, b| { b["messages"][4] = user("x"); next(s, b, "D"); }
            => "m6c0 C Message(4), m8c0 D PreviousReasoning";
        failing_one_left_out: |s, b| {
            b["messages"][4] = user("x");
            next(s, b, "D");
            bare(b);
        } => "";
        failing_one_left_out_from_the_middle: |s, b| {
            b["messages"][4] = user("x");
            next(s, b, "D");
            cut(b, 6);
        } => "m8c0 D PreviousReasoning";
        unknown_seal: |_, b| at(b, "messages/3/content").insert(0, think("X"))
            => "m3c0 X Unknown, m3c1 B PreviousReasoning, m6c0 C PreviousReasoning";
        empty_seal: |s, b| { make(s, b, &[""]); say(b, own(&[think("")])); } => "m8c0  Unknown";
        missing_seal: |_, b| say(b, own(&[json!({"type": "thinking", "thinking": "x"})])) => "m8c0  Unknown";
        no_messages: |_, b| *b = json!({}) => "";
        threshold: |s, b| {
            s.replied(b, &[summary(), think("D"), text("d")]);
            say(b, own(&[summary(), think("D"), text("d")]));
            next(s, b, "E");
            b["messages"][0] = user("ignored by now");
        } => "";
        threshold_and_earlier_dropped: |s, b| {
            s.made(b, &[("D".to_string(), vec![summary()])]);
            say(b, own(&[summary(), think("D"), text("d")]));
            next(s, b, "E");
            at(b, "messages").drain(..8);
        } => "";
        threshold_and_ignored_thoughts_put_back: |s, b| {
            let old = b.clone();
            bare(b);
            s.replied(b, &[summary(), think("D")]);
            say(b, own(&[summary(), think("D")]));
            restore(b, &old);
        } => "";
        threshold_failed: |s, b| {
            let reply = [json!({"type": "compaction", "content": null}), think("D"), text("d")];
            s.replied(b, &reply);
            say(b, own(&reply));
            at(b, "messages").drain(..8);
        } => "m0c1 D Message(0)";
        edited_behind_a_compaction: |s, b| {
            s.made(b, &[("D".to_string(), vec![summary()])]);
            say(b, own(&[summary(), think("D"), text("d")]));
            next(s, b, "E");
            b["messages"][8]["content"][2] = text("x");
        } => "m9c0 E Message(8)";
        compaction_dropped: |s, b| {
            s.made(b, &[("D".to_string(), vec![summary()])]);
            say(b, own(&[think("D")]));
        } => "m8c0 D Message(0)";
        failed_compaction: |_, b| {
            let failed = json!({"type": "compaction", "content": null});
            at(b, "messages/6/content").insert(0, failed);
        } => "m6c1 C Message(6)";
        kept_turns: |s, b| { let job = first(b, "messages", 4); compact(s, b, 4, &job); next(s, b, "D"); }
            => "";
        kept_turns_of_a_running_loop: |s, b| { let job = first(b, "messages", 3); compact(s, b, 3, &job); }
            => "";
        kept_turns_compacted_again: |s, b| {
            let job = first(b, "messages", 4);
            compact(s, b, 4, &job);
            next(s, b, "D");
            let mut newest = summary();
            newest["content"] = json!("sum of the sum");
            s.compacted(&first(b, "messages", 3), &newest);
            at(b, "messages").splice(..3, [own(&[newest])]);
        } => "";
        kept_turns_edited: |s, b| { let job = first(b, "messages", 4); compact(s, b, 4, &job);
            b["messages"][1] = user("x"); } => "m3c0 C Message(1)";
        kept_turns_not_next: |s, b| { let job = first(b, "messages", 2); compact(s, b, 4, &job); }
            => "m3c0 C Message(1)";
        kept_turns_of_the_same_role: |s, b| {
            say(b, user("x"));
            next(s, b, "D");
            let job = first(b, "messages", 8);
            compact(s, b, 8, &job);
        } => "m2c0 D Message(0)";
        kept_turns_of_an_unknown_summary: |_, b| drop(at(b, "messages").splice(..4, [own(&[summary()])]))
            => "m3c0 C Message(0)";
        kept_turns_with_another_tool: |s, b| {
            let mut job = first(b, "messages", 4);
            at(&mut job, "tools").push(json!({"name": "v"}));
            compact(s, b, 4, &job);
        } => "m3c0 C Message(0)";
        kept_turns_begin_with_system: |s, b| { let job = first(b, "messages", 5); compact(s, b, 5, &job); }
            => "m2c0 C Message(0)";
        kept_turns_with_another_system: |s, b| {
            let mut job = first(b, "messages", 4);
            job["system"] = json!("T");
            compact(s, b, 4, &job);
        } => "m3c0 C Message(0)";
        kept_turns_behind_our_own_summary: |_, b| drop(at(b, "messages").splice(..4, [user("our summary")]))
            => "m3c0 C Message(0)";
    }

    rows! { openai:
        openai_unchanged: |_, _| () => "";
        openai_appended: |s, b| {
            say(b, json!({"type": "configuration_update", "reasoning": {"effort": "low"}}));
            say(b, json!({"type": "additional_tools", "role": "developer", "tools": [{"name": "u"}]}));
            next(s, b, "D");
        } => "";
        openai_instructions: |_, b| b["instructions"] = json!("J") => "";
        openai_parameters: |_, b| {
            b["reasoning"] = json!({"effort": "low"});
            b["text"] = json!({"verbosity": "low"});
        } => "";
        openai_tools: |_, b| at(b, "tools").push(json!({"name": "u"}))
            => "i2 A Tools, i5 B Tools, i8 C Tools";
        openai_format: |_, b| b["text"]["format"] = json!({"type": "json_object"})
            => "i2 A System, i5 B System, i8 C System";
        openai_result_shortened: |_, b| b["input"][4]["output"] = json!("")
            => "i5 B Message(4), i8 C Message(4)";
        openai_developer: |_, b| b["input"][0]["content"] = json!("e")
            => "i2 A Message(0), i5 B Message(0), i8 C Message(0)";
        openai_front_truncated: |_, b| drop(at(b, "input").drain(..2))
            => "i0 A Message(0), i3 B Message(1), i6 C Message(1)";
        openai_middle_removed: |_, b| drop(at(b, "input").remove(5)) => "";
        openai_put_back: |s, b| {
            let old = at(b, "input").remove(5);
            next(s, b, "D");
            at(b, "input").insert(5, old);
        } => "";
        openai_moved: |_, b| at(b, "input").swap(2, 3) => "i3 A Message(2)";
        openai_own_summary_in_place: |_, b| drop(at(b, "input").splice(1..7, [user("sum")]))
            => "i3 C Message(1)";
        openai_own_summary_at_the_end: |s, b| { say(b, user("sum")); next(s, b, "D"); } => "";
        openai_made_after_an_edit: |s, b| { b["input"][6]["content"] = json!("x"); next(s, b, "D"); }
            => "i8 C Message(6)";
        openai_unknown: |s, b| { say(b, reason("X")); next(s, b, "D"); } => "i10 X Unknown";
        openai_reply_of_several: |s, b| {
            let reply = [reason("D"), json!({"type": "function_call", "call_id": "2"}), reason("E")];
            s.replied(b, &reply);
            at(b, "input").extend(reply);
            next(s, b, "F");
            b["input"][11]["call_id"] = json!("3");
        } => "i12 E Message(11), i13 F Message(11)";
        openai_text_input: |s, b| { *b = json!({"input": "q"}); make(s, b, &["D"]);
            *b = json!({"input": [user("q"), reason("D")]}); } => "";
        openai_compacted: |s, b| { at(b, "input").splice(..7, [summary()]); next(s, b, "D"); } => "";
        openai_compaction_behind_user_messages: |s, b| {
            at(b, "input").splice(2..7, [summary()]);
            next(s, b, "D");
            at(b, "input").drain(..2);
        } => "";
        openai_kept_edited: |_, b| { at(b, "input").splice(..7, [summary()]); b["input"][1] = user("x"); }
            => "i2 C Message(1)";
        openai_removed_behind_the_same_compaction: |s, b| {
            at(b, "input").splice(..7, [summary()]);
            next(s, b, "D");
            at(b, "input").remove(1);
        } => "i3 D Message(2)";
        openai_compaction_lost: |s, b| {
            at(b, "input").splice(..7, [summary()]);
            next(s, b, "D");
            at(b, "input").remove(0);
        } => "i1 C Message(0), i3 D Message(0)";
    }
}
