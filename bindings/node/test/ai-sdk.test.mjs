// The adapter for the AI SDK, with the package itself and its mock model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, jsonSchema, isStepCount, tool, wrapLanguageModel, pruneMessages as theirs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { contextWindowMiddleware, prepareStep, pruneMessages } from "context-window/ai-sdk";
import { BudgetError, InputError } from "context-window";

const usage = { inputTokens: { total: 10 }, outputTokens: { total: 5 } };
const says = (text) => ({ content: [{ type: "text", text }], finishReason: { unified: "stop" }, usage, warnings: [] });
const calls = (id, input) => ({
  content: [{ type: "tool-call", toolCallId: id, toolName: "search", input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls" }, usage, warnings: [],
});
const search = () => tool({
  description: "Searches.",
  inputSchema: jsonSchema({ type: "object", properties: { query: { type: "string" } } }),
  execute: async ({ query }) => `${query}: ${"found ".repeat(200)}`,
});

/** Checks that every call has its result right after it, and that no result is alone. */
function checkPairs(messages) {
  const open = new Set();
  for (const { role, content } of messages) {
    for (const part of Array.isArray(content) ? content : []) {
      if (part.type === "tool-call") open.add(part.toolCallId);
      if (part.type === "tool-result") assert.ok(role === "tool" && open.delete(part.toolCallId), `result ${part.toolCallId} is alone`);
    }
  }
  assert.equal(open.size, 0, "a call lost its result");
}

test("each step of an agent fits, and no call loses its result", async () => {
  const prompts = [];
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      return prompts.length < 8 ? calls(`c${prompts.length}`, { query: `q${prompts.length}` }) : says("Done.");
    },
  });
  const sizes = [];
  const { text } = await generateText({
    model, tools: { search: search() }, stopWhen: isStepCount(10),
    messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Find everything." }].slice(1),
    prepareStep: prepareStep({ maxTokens: 1500, onPlan: (plan) => sizes.push([plan.tokens, plan.budget]) }),
  });
  assert.equal(text, "Done.");
  assert.equal(prompts.length, 8);
  assert.ok(sizes.every(([tokens, budget]) => tokens <= budget && budget === 1500));
  for (const prompt of prompts) checkPairs(prompt);
  const last = prompts.at(-1);
  assert.ok(last.length < 2 + 7 * 2, "nothing was left out");
  assert.ok(last.some((message) => message.role === "user"), "the question is gone");
  assert.ok(last.at(-1).content.some((part) => part.toolCallId === "c7"), "the running call is gone");
});

test("a model behind the middleware gets prompts that fit, with its tools counted", async () => {
  const seen = [];
  const model = wrapLanguageModel({
    model: new MockLanguageModelV4({ doGenerate: async ({ prompt }) => (seen.push(prompt), says("Yes.")) }),
    middleware: contextWindowMiddleware({ maxTokens: 400 }),
  });
  const messages = [];
  for (let turn = 0; turn < 20; turn++) messages.push({ role: "user", content: `Question ${turn} ${"word ".repeat(20)}` }, { role: "assistant", content: "Answer." });
  messages.push({ role: "user", content: "And now?" });
  await generateText({ model, instructions: "Be brief.", messages, tools: { search: search() } });
  const [prompt] = seen;
  assert.equal(prompt[0].role, "system");
  assert.deepEqual(prompt.at(-1).content[0].text, "And now?");
  assert.ok(prompt.length < 20);
  assert.equal(prompt[1].role, "user");
});

test("pruneMessages keeps what fits, by reference, where the original removes by kind", () => {
  const messages = [
    { role: "user", content: "Where is my parcel?" },
    { role: "assistant", content: [{ type: "text", text: "I look." }, { type: "tool-call", toolCallId: "a", toolName: "track", input: { id: 1 } }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "track", output: { type: "text", value: "on its way ".repeat(100) } }] },
    { role: "assistant", content: "It is on its way." },
    { role: "user", content: "And the other one?" },
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "b", toolName: "track", input: { id: 2 } }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "b", toolName: "track", output: { type: "json", value: { place: "here" } } }] },
  ];
  assert.deepEqual(pruneMessages({ messages, maxTokens: 10_000 }), messages);
  const pruned = pruneMessages({ messages, maxTokens: 120 });
  assert.ok(pruned.length < messages.length && pruned.every((message) => messages.includes(message)));
  checkPairs(pruned);
  assert.equal(pruned.at(-1), messages.at(-1));
  // The original removes every call, also the running one.
  assert.ok(!theirs({ messages, toolCalls: "all" }).includes(messages.at(-1)));
});

test("an overflow is thrown, warned of, or sent, and an unknown option is refused", (t) => {
  const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "word ".repeat(500) }];
  const warn = t.mock.method(console, "warn", () => {});
  assert.deepEqual(pruneMessages({ messages, maxTokens: 100 }), [messages[0]]);
  assert.equal(warn.mock.callCount(), 1);
  assert.throws(() => pruneMessages({ messages, maxTokens: 100, onOverflow: "throw" }), BudgetError);
  assert.deepEqual(pruneMessages({ messages, maxTokens: 100, onOverflow: "send" }), messages);
  assert.throws(() => prepareStep({ maxTokenz: 5 }), InputError);
  assert.throws(() => prepareStep({ maxTokens: -5 }), /1 or more/);
});

test("files, pictures and parts of providers pass", () => {
  const messages = [
    { role: "user", content: [{ type: "text", text: "See" }, { type: "file", mediaType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }, { type: "image", image: new URL("https://example.com/a.png") }] },
    { role: "assistant", content: [{ type: "reasoning", text: "Hm." }, { type: "tool-call", toolCallId: "s", toolName: "web", input: {}, providerExecuted: true }, { type: "tool-result", toolCallId: "s", toolName: "web", output: { type: "text", value: "a dot" } }, { type: "text", text: "A dot." }] },
    { role: "user", content: "Thanks" },
  ];
  assert.deepEqual(pruneMessages({ messages, maxTokens: 100_000 }), messages);
});

test("pruneMessages removes the kinds that the original removes", () => {
  const messages = [
    { role: "user", content: "Where is it?" },
    { role: "assistant", content: [{ type: "reasoning", text: "Hm." }, { type: "tool-call", toolCallId: "a", toolName: "track", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "track", output: { type: "text", value: "here" } }] },
    { role: "assistant", content: [{ type: "text", text: "Here." }] },
    { role: "user", content: "Thanks" },
  ];
  for (const kinds of [{ reasoning: "all" }, { toolCalls: "before-last-message" }, { toolCalls: "all", emptyMessages: "keep" }]) {
    assert.deepEqual(pruneMessages({ messages, ...kinds }), theirs({ messages, ...kinds }));
  }
  // A call that waits for an approval stays, because the list is no prompt yet.
  const asked = [{ type: "tool-call", toolCallId: "b", toolName: "pay", input: {} }, { type: "tool-approval-request", toolCallId: "b", approvalId: "1" }];
  const waiting = [...messages, { role: "assistant", content: asked }];
  assert.deepEqual(pruneMessages({ messages: waiting }), waiting);
});

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** Returns the tokens of a prompt. */
function tokens(content, role = "user") {
  let found;
  const prompt = role === "tool" ? [{ role: "user", content: "See" }, ...content] : [{ role, content }];
  contextWindowMiddleware({ onPlan: (plan) => (found = plan.tokens) }).transformParams({ params: { prompt } });
  return found;
}

test("a file counts the same in each of its spellings, and never as text", () => {
  const image = (data) => tokens([{ type: "file", mediaType: "image/png", data }]);
  const spellings = [PNG, bytes(PNG), bytes(PNG).buffer, `data:image/png;base64,${PNG}`, new URL(`data:image/png;base64,${PNG}`), { type: "data", data: PNG }, { type: "data", data: bytes(PNG) }, { type: "url", url: `data:image/png;base64,${PNG}` }];
  assert.deepEqual(spellings.map(image), spellings.map(() => image(PNG)));
  assert.equal(tokens([{ type: "image", image: bytes(PNG) }]), image(PNG));
  // A text in a file is a text.
  const words = "word ".repeat(2000);
  assert.ok(tokens([{ type: "file", mediaType: "text/plain", data: { type: "text", text: words } }]) > 2000);
  // A long file is a medium: its bytes are no tokens.
  const pdf = btoa("%PDF-1.4\n" + "x".repeat(300_000));
  const all = [pdf, bytes(pdf), { type: "data", data: pdf }].map((data) => tokens([{ type: "file", mediaType: "application/pdf", data }]));
  assert.ok(all.every((one) => one === all[0] && one < 40_000), `${all}`);
  const result = (output) => tokens([
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "a", toolName: "look", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "look", output }] },
  ], "tool");
  const shot = "A".repeat(200_000);
  for (const part of [{ type: "media", data: shot, mediaType: "image/png" }, { type: "image-data", data: shot, mediaType: "image/png" }, { type: "file", mediaType: "image/png", data: { type: "data", data: shot } }]) {
    assert.ok(result({ type: "content", value: [{ type: "text", text: "See" }, part] }) < 40_000, part.type);
  }
});

test("calls that the provider executes leave with their results", () => {
  const call = (id, more) => ({ type: "tool-call", toolCallId: id, toolName: "run", input: { code: "1 + 1" }, ...more });
  const result = (id) => ({ type: "tool-result", toolCallId: id, toolName: "run", output: { type: "json", value: { text: "two ".repeat(20) } } });
  const messages = [
    { role: "user", content: "Compute." },
    { role: "assistant", content: [call("srv", { providerExecuted: true }), call("loc")] },
    { role: "tool", content: [result("loc")] },
    { role: "assistant", content: [result("srv"), { type: "text", text: "It is two." }] },
    { role: "assistant", content: [call("inline", { providerExecuted: true }), result("inline"), { type: "text", text: "Still two." }] },
    { role: "user", content: "And now?" },
  ];
  const approved = [
    messages[0],
    { role: "assistant", content: [call("m", { providerExecuted: true }), { type: "tool-approval-request", toolCallId: "m", approvalId: "1" }] },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] },
    { role: "assistant", content: [result("m"), { type: "text", text: "Two." }] },
    messages.at(-1),
  ];
  // The result of the first call comes with the running one.
  const running = [...messages.slice(0, 3), { role: "assistant", content: [result("srv"), { type: "text", text: "Next." }, call("next")] }, { role: "tool", content: [result("next")] }];
  for (const talk of [messages, approved, running]) {
    let most = 0;
    for (let maxTokens = 20; maxTokens < 600; maxTokens += 5) {
      const kept = prepareStep({ maxTokens, onOverflow: "send" })({ messages: talk }).messages;
      const parts = kept.flatMap(({ content }) => (typeof content === "string" ? [] : content));
      const ids = (type, key) => new Set(parts.filter((part) => part.type === type).map((part) => part[key]));
      const [calls, requests] = [ids("tool-call", "toolCallId"), ids("tool-approval-request", "approvalId")];
      for (const id of ids("tool-result", "toolCallId")) assert.ok(calls.has(id), `${maxTokens}: result ${id}`);
      for (const id of ids("tool-approval-response", "approvalId")) assert.ok(requests.has(id), `${maxTokens}: answer ${id}`);
      for (const id of calls) assert.ok(ids("tool-result", "toolCallId").has(id), `${maxTokens}: call ${id}`);
      assert.ok(kept.includes(talk.at(-1)), `${maxTokens}: the question or the running call is gone`);
      most = Math.max(most, kept.length);
    }
    assert.equal(most, talk.length, "with enough tokens, all stay");
  }
});

test("each step plans all messages, also those that left before", async () => {
  const [repeated, returned] = [[], []];
  let step = 0;
  const model = new MockLanguageModelV4({ doGenerate: async () => (++step < 8 ? calls(`c${step}`, { query: "q".repeat(step === 2 ? 700 : 5) }) : says("Done.")) });
  const prepare = prepareStep({ maxTokens: 900, onPlan: (plan) => repeated.push(plan.repeated) });
  await generateText({
    model, prompt: "Find everything.", instructions: "Be brief.", stopWhen: isStepCount(10),
    tools: { search: tool({ inputSchema: jsonSchema({ type: "object" }), execute: async ({ query }) => query.repeat(3) }) },
    prepareStep: (given) => {
      const prepared = prepare(given);
      returned.push(prepared.messages.length);
      return prepared;
    },
  });
  // From the second one on, each prompt knows the one before it.
  assert.ok(repeated.slice(1).every((prefix) => prefix !== undefined), JSON.stringify(repeated));
  assert.equal(returned.length, 8);
});

test("messages that left a step come back if they fit, and steering messages stay", () => {
  const prepare = prepareStep({ maxTokens: 10_000 });
  const initialMessages = [{ role: "user", content: "Find everything." }];
  const responseMessages = [
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "a", toolName: "search", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "search", output: { type: "text", value: "x" } }] },
  ];
  assert.deepEqual(prepare({ messages: initialMessages, initialMessages, responseMessages }).messages, [...initialMessages, ...responseMessages]);
  const steered = [...initialMessages, { role: "user", content: "Only the newest." }];
  assert.deepEqual(prepare({ messages: steered, initialMessages, responseMessages }).messages, steered);
});

/** Returns numbers from 0 to 1, the same ones for the same seed. */
function numbers(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

test("no random conversation loses a result, a call or the question", () => {
  for (let seed = 1; seed <= (process.env.FULL === "1" ? 20_000 : 1_500); seed++) {
    const next = numbers(seed * 7919);
    const below = (n) => Math.floor(next() * n);
    const words = () => "word ".repeat(below(20) + 1);
    const messages = next() < 0.5 ? [{ role: "system", content: words() }] : [];
    for (let turn = 0; turn <= below(5); turn++) {
      messages.push({ role: "user", content: `question ${turn} ${words()}` });
      for (let exchange = below(4); exchange > 0; exchange--) {
        // Few ids, so that later calls use them again.
        const ids = [...new Set([below(5), below(5)])];
        const isDeferred = next() < 0.3;
        const call = (id, at) => ({ type: "tool-call", toolCallId: `c${id}`, toolName: "f", input: { text: words() }, ...(isDeferred && at === 0 ? { providerExecuted: true } : {}) });
        const result = (id) => ({ type: "tool-result", toolCallId: `c${id}`, toolName: "f", output: { type: "text", value: words() } });
        messages.push({ role: "assistant", content: ids.map(call) });
        const apart = isDeferred ? ids.slice(1) : ids;
        if (next() < 0.2) messages.splice(-1, 0, { role: "assistant", content: [{ ...call(below(5), 1), providerExecuted: true }].flatMap((one) => [one, { ...result(0), toolCallId: one.toolCallId }]) });
        if (apart.length > 0) messages.push({ role: "tool", content: apart.map(result) });
        if (isDeferred) messages.push({ role: "assistant", content: [result(ids[0]), { type: "text", text: words() }] });
      }
      if (next() < 0.7) messages.push({ role: "assistant", content: [{ type: "text", text: words() }] });
    }
    if (seed % 5 === 0) assert.deepEqual(prepareStep({ maxTokens: 100_000 })({ messages }).messages, messages, `${seed}: all fit`);
    const kept = prepareStep({ maxTokens: 30 + below(400), onOverflow: "send" })({ messages }).messages;
    const places = kept.map((message) => messages.indexOf(message));
    assert.ok(places.every((at, nth) => nth === 0 || at > places[nth - 1]), `${seed}: order ${places}`);
    const open = new Map();
    for (const { content } of kept) {
      for (const part of typeof content === "string" ? [] : content) {
        if (part.type === "tool-call") {
          assert.ok(!open.has(part.toolCallId), `${seed}: call ${part.toolCallId} lost its result`);
          open.set(part.toolCallId, part);
        }
        if (part.type === "tool-result") assert.ok(open.delete(part.toolCallId), `${seed}: result ${part.toolCallId} lost its call`);
      }
    }
    assert.equal(open.size, 0, `${seed}: open calls`);
    assert.ok(kept.includes(messages.findLast(({ role }) => role === "user")), `${seed}: the question is gone`);
  }
});

test("instructions are counted, and values of options are checked", () => {
  const sizes = [];
  const prepare = prepareStep({ onPlan: (plan) => sizes.push(plan.tokens) });
  const messages = [{ role: "user", content: "Hello" }];
  for (const instructions of [undefined, "Be brief. ".repeat(40), { role: "system", content: "Be brief. ".repeat(40) }]) {
    assert.deepEqual(prepare({ messages, instructions }).messages, messages);
  }
  assert.ok(sizes[1] > sizes[0] + 80 && sizes[1] === sizes[2], `${sizes}`);
  for (const options of [{ onOverflow: "error" }, { onPlan: 5 }, { manager: {} }]) assert.throws(() => prepareStep(options), InputError);
  assert.throws(() => prepare({ messages: [messages[0], { role: "user", content: null }] }), /messages\[1\]/);
  assert.deepEqual(pruneMessages({ messages: [{ role: "user", content: "" }] }), [{ role: "user", content: "" }]);
});
