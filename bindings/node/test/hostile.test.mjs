// Hostile input through the interface: no trap, and no growth of memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ContextWindowError, Conversation, InputError, Manager, Plan, count, isContextOverflow, isReasoningRefusal } from "context-window";
import { initSync } from "../dist/core.js";

/** Returns the size of the module's memory, which never shrinks. */
const bytes = () => initSync().memory.buffer.byteLength;

/** Returns numbers from 0 to 1, the same ones for the same seed. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const VALUES = [
  null, true, -1, 0, 1e308, NaN, "", "x".repeat(3000), "\ud800", "\u0000", "</document>", [], {}, [[[]]], { type: "text" },
  { type: "tool_use", id: 1, input: "x" }, "tool", "assistant", "m0", [{ type: "text", text: "\udfff" }], new Date(0), undefined,
];

/** Returns a copy of plain data in which some values are others. */
function mutated(value, next, rate) {
  if (next() < rate) return VALUES[Math.floor(next() * VALUES.length)];
  if (Array.isArray(value)) return value.flatMap((one) => (next() < rate ? (next() < 0.5 ? [] : [one, one]) : [mutated(one, next, rate)]));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [next() < rate / 4 ? `${key}s` : key, mutated(one, next, rate)]));
  }
  return typeof value === "string" && next() < rate ? value.slice(0, Math.floor(next() * value.length)) + "\ud83d" : value;
}

const MESSAGES = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "See this" }, { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
  { role: "assistant", content: null, tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{\"x\": 1}" } }] },
  { role: "tool", tool_call_id: "a", content: "found" },
  { role: "assistant", content: "Done." },
  { role: "user", content: "And now?" },
];
const REQUEST = {
  rag: [{ id: "d", text: "Refunds take 5 days.", score: 0.5, source: "s", position: 2, variants: [{ name: "t", text: "Refunds" }], group: "g" }],
  tools: [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } }],
  limits: { prompt_budget: 300, max_completion: 20 }, focus: "refunds", state: { clock: "Tuesday" }, recall: true,
};

test("mutated conversations and requests are planned, or are errors with a kind", (t) => {
  const count = process.env.FULL === "1" ? 100_000 : 4_000;
  const manager = new Manager("gpt-4o", { tokenizer: "chars/4" });
  let [planned, refused] = [0, 0];
  let settled = 0;
  const formats = ["openai", "anthropic", "gemini", "openai_responses"];
  for (let at = 0; at < count; at++) {
    const next = numbers(at * 7919 + 1);
    const log = new Conversation();
    let plan;
    try {
      log.push(mutated(MESSAGES, next, next() * 0.04), formats[at % 4 === 0 ? Math.floor(next() * 4) : 0]);
      plan = manager.plan(log, mutated(REQUEST, next, next() * 0.02));
      plan.json();
      plan.body(formats[Math.floor(next() * 4)]);
      const again = Conversation.fromJSON(JSON.stringify(log));
      assert.equal(again.eventCount, log.eventCount);
      again.free();
      log.pushReply(plan, mutated({ role: "assistant", content: "So." }, next, 0.1));
      planned++;
    } catch (error) {
      assert.ok(error instanceof ContextWindowError, `${at}: ${error.stack}`);
      assert.ok(error.message.length > 0 && error.message.length < 4_000, error.message);
      refused++;
    } finally {
      plan?.free();
      log.free();
    }
    if (at === Math.floor(count / 4)) settled = bytes();
  }
  const grown = bytes() - settled;
  assert.ok(planned > count / 10 && refused > count / 10, `${planned} planned, ${refused} refused`);
  assert.ok(grown < 4 << 20, `${grown} bytes more`);
  t.diagnostic(`${planned} planned, ${refused} refused, ${grown} bytes more in the last three quarters`);
});

test("memory is flat over many plans", (t) => {
  const count = process.env.FULL === "1" ? 20_000 : 1_000;
  const manager = new Manager("gpt-4o", { tokenizer: "chars/4" });
  const log = new Conversation(Array.from({ length: 200 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `Text ${at} ${"word ".repeat(20)}` })));
  log.push({ role: "user", content: "And now?" });
  let settled = 0;
  for (let at = 0; at < count; at++) {
    const plan = manager.plan(log, { limits: { prompt_budget: 1000 + (at % 50) }, rag: [{ id: `d${at}`, text: `Document ${at}`, score: 1 }] });
    assert.ok(plan.tokens > 0);
    plan.free();
    if (at === Math.floor(count / 2)) settled = bytes();
  }
  assert.ok(bytes() - settled < 4 << 20, `${bytes() - settled} bytes more`);
  t.diagnostic(`${bytes() - settled} bytes more in the last half of ${count} plans`);
});

test("a counter that uses the conversation it counts for gets an error", () => {
  const log = new Conversation([{ role: "user", content: "How long do refunds take?" }]);
  const calls = [
    () => log.push({ role: "user", content: "More." }),
    () => log.pin("note", "text"),
    () => log.startFresh(),
    () => log.undoCompaction(),
    () => manager.compactIfDue(log),
  ];
  let [call, thrown, within] = [undefined, [], false];
  // Reading is no change, and a counter may ask for a plan of its own.
  const reads = [() => log.length, () => log.messages(), () => log.copy().free(), () => manager.plan(log, { focus: "other" }).free()];
  const counter = (text) => {
    if (call && !within) {
      within = true;
      try {
        call();
      } catch (error) {
        thrown.push(error);
      }
      within = false;
    }
    return text.length;
  };
  const manager = new Manager("my-model", { counter });
  for (call of calls) {
    thrown = [];
    manager.plan(log, { focus: `hint ${calls.indexOf(call)}` }).free();
    assert.ok(thrown.length > 0 && thrown.every((error) => error instanceof ContextWindowError), `${call}: ${thrown}`);
    assert.match(thrown[0].message, /expected a counter that only counts/);
  }
  for (call of reads) {
    thrown = [];
    manager.plan(log, { focus: `more ${reads.indexOf(call)}` }).free();
    assert.deepEqual(thrown, [], `${call}`);
  }
  // A compaction changes the conversation, so nothing can read it meanwhile.
  const long = new Conversation(Array.from({ length: 60 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `text ${at} `.repeat(40) })));
  [call, thrown] = [() => long.length, []];
  manager.compactIfDue(long, { limits: { prompt_budget: 3000 } });
  assert.ok(thrown.every((error) => error instanceof ContextWindowError));
  call = undefined;
  log.push({ role: "user", content: "Still here?" });
  assert.equal(log.length, 2);
});

test("arguments of a wrong type are errors, however often", () => {
  const manager = new Manager("m", { tokenizer: "chars/4" });
  const log = new Conversation([{ role: "user", content: "How?" }]);
  const odd = [5, {}, null, undefined, [], () => {}, Symbol("x"), new Error("x")];
  const calls = [
    (value) => log.pin(value, "x"), (value) => log.pin("x", value), (value) => log.pinMessage(value), (value) => log.setTtl(value, 1),
    (value) => new Manager(value), (value) => count(value), (value) => manager.count(value), (value) => manager.planSession("x", value),
    (value) => log.applyEvent(value), (value) => manager.plan(value), (value) => log.pushReply(value, "x"),
  ];
  for (let round = 0; round < 400; round++) {
    for (const call of calls) {
      for (const value of odd) assert.throws(() => call(value), ContextWindowError, `${call} ${String(value)}`);
    }
  }
  for (const value of odd) assert.ok(!isContextOverflow(value) && !isReasoningRefusal(value));
  assert.ok(isContextOverflow(new Error("This model's maximum context length is 8192 tokens. Please reduce the length of the messages.")));
  for (const ttl of [-1, 1.5, NaN, 0, 2 ** 32]) assert.throws(() => log.pin("n", "x", "high", ttl), InputError, String(ttl));
  assert.ok(manager.plan(log).tokens > 0, "the module still works");
});

test("objects that were freed are named, and can be freed again", () => {
  const manager = new Manager("m", { tokenizer: "chars/4" });
  const log = new Conversation([{ role: "user", content: "How?" }]);
  const plan = manager.plan(log);
  plan.free();
  plan.free();
  assert.throws(() => plan.tokens, /the object was freed/);
  assert.throws(() => plan.tokens, InputError);
  assert.throws(() => new Plan().tokens, InputError);
});

test("limits that would be no limits are refused", () => {
  const manager = new Manager("m", { tokenizer: "chars/4" });
  const log = new Conversation([{ role: "user", content: "How?" }]);
  for (const limits of [{ promptBudget: 100 }, { max_tokens: 5 }, [], 5, { prompt_budget: NaN }, { prompt_budget: Infinity }, { prompt_budget: -1 }, { prompt_budget: 1.5 }]) {
    assert.throws(() => manager.plan(log, { limits }), InputError, JSON.stringify(limits));
  }
  for (const limits of [null, undefined, { prompt_budget: null }, { prompt_budget: undefined, unknown: false }]) assert.ok(manager.plan(log, { limits }).budget > 1000);
  assert.throws(() => new Manager("m", "chars/4"), /options: expected an object/);
  assert.throws(() => new Manager("m", []), InputError);
});

test("an error of a counter that cannot be described leaves the conversation usable", () => {
  class Odd extends Error {
    get message() { throw new Error("no message"); }
    toString() { throw new Error("no text"); }
  }
  let fails = false;
  const manager = new Manager("m", { counter: (text) => { if (fails) throw new Odd(); return text.length; } });
  const log = new Conversation(Array.from({ length: 60 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `text ${at} `.repeat(40) })));
  fails = true;
  assert.throws(() => manager.compactIfDue(log, { limits: { prompt_budget: 3000 } }), ContextWindowError);
  log.push({ role: "user", content: "Still here?" });
  assert.equal(log.length, 61);
});
