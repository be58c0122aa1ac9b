// The adapter for LangChain.js, with the packages themselves and their fake model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage, trimMessages as theirs } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { createAgent, createMiddleware } from "langchain";
import { contextWindowMiddleware, trimMessages } from "context-window/langchain";
import { InputError, Manager } from "context-window";

const talk = () => [
  new SystemMessage("Be brief."),
  new HumanMessage("Where is my parcel?"),
  new AIMessage({ content: "", tool_calls: [{ id: "a", name: "track", args: { id: 1 } }] }),
  new ToolMessage({ tool_call_id: "a", content: "on its way ".repeat(100) }),
  new AIMessage("It is on its way."),
  new HumanMessage("And the other one?"),
  new AIMessage({ content: "", tool_calls: [{ id: "b", name: "track", args: { id: 2 } }] }),
  new ToolMessage({ tool_call_id: "b", content: "here" }),
];

const counter = (text) => Math.ceil(text.length / 4);

test("trimMessages keeps the question and its running call", async () => {
  const messages = talk();
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000 }), messages);
  const trimmed = await trimMessages(messages, { maxTokens: 120, includeSystem: true, counter });
  // Of the turn before, the question and the answer stay, and the long result leaves with its call.
  assert.deepEqual(trimmed, [messages[0], messages[1], ...messages.slice(4)]);
  assert.ok(trimmed.every((message) => messages.includes(message)));
});

test("trimMessages has the options of the original", async () => {
  const messages = talk();
  const without = await trimMessages(messages, { maxTokens: 120, counter });
  assert.ok(!without.includes(messages[0]) && without.includes(messages[5]), "the system message leaves first");
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000, counter }), messages);
  const answers = await trimMessages(messages, { maxTokens: 10_000, endOn: "ai" });
  assert.deepEqual(answers, messages.slice(0, 7));
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000, endOn: [HumanMessage] }), messages.slice(0, 6));
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000, startOn: ["ai", "tool"] }), messages.slice(2));
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000, startOn: AIMessage, includeSystem: true }), [messages[0], ...messages.slice(2)]);
  assert.deepEqual(await trimMessages(messages, { maxTokens: 10_000, startOn: "function" }), []);
  // These have a meaning for LangChain's own function only.
  for (const more of [{ strategy: "first" }, { strategy: "last", allowPartial: true }, { includeSystem: true }]) {
    const options = { maxTokens: 3, tokenCounter: (all) => all.length, ...more };
    assert.deepEqual(await trimMessages(messages, options), await theirs(messages, options));
    assert.deepEqual(await trimMessages(options).invoke(messages), await theirs(messages, options));
  }
});

test("a call that waits stays in a list that is no prompt yet, and an abandoned one leaves", async () => {
  const waiting = talk().slice(0, 7);
  assert.deepEqual(await trimMessages(waiting, { maxTokens: 10_000 }), waiting);
  const two = new AIMessage({ content: "", tool_calls: [{ id: "c", name: "track", args: {} }, { id: "d", name: "track", args: {} }] });
  const half = [new HumanMessage("Q"), two, new ToolMessage({ tool_call_id: "c", content: "here" })];
  assert.deepEqual(await trimMessages(half, { maxTokens: 10_000 }), half);
  const stopped = [...half, new HumanMessage("Stop")];
  assert.deepEqual(await trimMessages(stopped, { maxTokens: 10_000 }), [half[0], stopped.at(-1)]);
  // A model gets no call without its result, whatever the manager does with it.
  for (const options of [{}, { manager: new Manager("x", { tokenizer: "chars/4" }) }]) {
    const middleware = contextWindowMiddleware(options);
    const sent = middleware.wrapModelCall({ messages: stopped }, ({ messages }) => messages);
    assert.deepEqual(sent, [half[0], stopped.at(-1)]);
  }
});

test("as a runnable it stands before a model", async () => {
  const chain = trimMessages({ maxTokens: 120 }).pipe(new FakeListChatModel({ responses: ["Here."] }));
  assert.equal((await chain.invoke(talk())).content, "Here.");
});

test("no prompt loses a result or the question, where the original loses the question", async () => {
  const count = (messages) => messages.reduce((sum, message) => sum + Math.ceil(JSON.stringify(message.content).length / 4) + 4, 0);
  const faults = { own: 0, original: 0 };
  const check = (side, messages) => {
    const open = messages.flatMap((message) => (message.tool_calls ?? []).map((call) => call.id)).sort();
    const answered = messages.filter((message) => message.getType() === "tool").map((message) => message.tool_call_id).sort();
    const asks = messages.some((message) => message.content === "And the other one?");
    if (!asks || open.join() !== answered.join()) faults[side]++;
  };
  for (let budget = 20; budget < 500; budget += 7) {
    check("own", await trimMessages(talk(), { maxTokens: budget, includeSystem: true, onOverflow: "send" }));
    check("original", await theirs(talk(), { maxTokens: budget, strategy: "last", tokenCounter: count, includeSystem: true }));
  }
  assert.equal(faults.own, 0);
  assert.ok(faults.original > 0, JSON.stringify(faults));
});

test("the middleware gives the model what fits", () => {
  const middleware = contextWindowMiddleware({ maxTokens: 120 });
  const messages = talk();
  const seen = middleware.wrapModelCall({ messages, model: "x" }, (request) => request);
  assert.deepEqual(seen.messages, [messages[0], messages[1], ...messages.slice(4)]);
  assert.equal(seen.model, "x");
});

test("options without a meaning are refused", () => {
  assert.throws(() => trimMessages(talk(), { maxTokens: 5, strategy: "first" }), /tokenCounter/);
  assert.throws(() => trimMessages(talk(), { maxTokens: 5, strategy: "middle" }), InputError);
  assert.throws(() => trimMessages(talk(), {}), /maxTokens/);
  assert.throws(() => trimMessages(talk(), { maxTokens: 5, startsOn: "human" }), /unknown key `startsOn`/);
});

test("an agent keeps every message, and its model gets those that fit", async () => {
  const seen = [];
  // It stands behind the adapter, and sees the request that the model gets.
  const spy = createMiddleware({ name: "spy", wrapModelCall: (request, handler) => (seen.push(request), handler(request)) });
  const agent = createAgent({
    model: new FakeListChatModel({ responses: ["Here."] }), tools: [], systemPrompt: "Be brief.",
    middleware: [contextWindowMiddleware({ maxTokens: 200 }), spy],
  });
  const messages = [];
  for (let turn = 0; turn < 20; turn++) messages.push(new HumanMessage(`Question ${turn} ${"word ".repeat(20)}`), new AIMessage("Answer."));
  messages.push(new HumanMessage("And now?"));
  const state = await agent.invoke({ messages });
  assert.equal(state.messages.length, messages.length + 1);
  assert.equal(seen.length, 1);
  const [{ messages: sent }] = seen;
  assert.ok(sent.length > 1 && sent.length < 15, `${sent.length} messages`);
  assert.equal(sent[0].getType(), "human");
  assert.equal(sent.at(-1).content, "And now?");
});

test("the middleware counts the system message and the tools", () => {
  const sizes = [];
  const middleware = contextWindowMiddleware({ onPlan: (plan) => sizes.push(plan.tokens) });
  const track = tool(() => "here", { name: "track", description: "Finds a parcel. ".repeat(20), schema: { type: "object", properties: { id: { type: "number" } } } });
  const messages = [new HumanMessage("Where is my parcel?")];
  const requests = [
    { messages },
    { messages, systemMessage: new SystemMessage("") },
    { messages, systemMessage: new SystemMessage("Be brief. ".repeat(30)) },
    { messages, tools: [track, { type: "web_search_20250305", name: "web_search" }] },
  ];
  for (const request of requests) {
    const sent = middleware.wrapModelCall(request, (given) => given);
    assert.deepEqual(sent, request);
    assert.equal(sent.messages[0], messages[0]);
  }
  const [alone, empty, system, tools] = sizes;
  assert.equal(empty, alone);
  assert.ok(system > alone + 60 && tools > alone + 70, `${sizes}`);
});

test("without the system message, only the final prompt is reported", async (t) => {
  const messages = [new SystemMessage("word ".repeat(100)), new HumanMessage("Question?")];
  const warn = t.mock.method(console, "warn", () => {});
  const sizes = [];
  for (const onOverflow of ["throw", "warn", "send"]) {
    assert.deepEqual(await trimMessages(messages, { maxTokens: 60, onOverflow, onPlan: (plan) => sizes.push(plan.tokens) }), [messages[1]]);
  }
  assert.equal(warn.mock.callCount(), 0);
  assert.equal(sizes.length, 3);
});

test("blocks of calls, files and invalid calls are read once", async () => {
  const size = async (messages) => {
    let found;
    await trimMessages(messages, { maxTokens: 100_000, onPlan: (plan) => (found = plan.tokens) });
    return found;
  };
  const call = { id: "a", name: "track", args: { id: "x".repeat(400) } };
  const answered = [new ToolMessage({ tool_call_id: "a", content: "here" }), new HumanMessage("Thanks")];
  const once = await size([new HumanMessage("Q"), new AIMessage({ content: "See", tool_calls: [call] }), ...answered]);
  const blocks = [{ type: "text", text: "See" }, { type: "tool_call", ...call }];
  assert.equal(await size([new HumanMessage("Q"), new AIMessage({ content: blocks, tool_calls: [call] }), ...answered]), once);
  const data = "A".repeat(200_000);
  const image = (block) => size([new HumanMessage({ content: [block] })]);
  const expected = await image({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } });
  for (const block of [
    { type: "image", source_type: "base64", data, mime_type: "image/png" },
    { type: "image", data, mimeType: "image/png" },
    { type: "image", source: { type: "base64", data, media_type: "image/png" } },
  ]) assert.equal(await image(block), expected);
  // The result of an invalid call is its error, and the agent has to see it.
  const broken = new AIMessage({ content: "", invalid_tool_calls: [{ id: "b", name: "track", args: "{", error: "no JSON", type: "invalid_tool_call" }] });
  const error = new ToolMessage({ tool_call_id: "b", content: "no JSON", status: "error" });
  const running = [new HumanMessage("Q"), broken, error];
  assert.deepEqual(contextWindowMiddleware().wrapModelCall({ messages: running }, (request) => request).messages, running);
});
