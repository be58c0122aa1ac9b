// The package in Node: planning, errors, state, counters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { convertToModelMessages } from "ai";
import {
  BudgetError, ConfigError, ContextWindowError, Conversation, CountError, InputError, Manager, NotFoundError, count,
  isContextOverflow, loadEncoding, models, presets,
} from "context-window";

const question = () => new Conversation([
  { role: "system", content: "Be brief." },
  { role: "user", content: "How long do refunds take?" },
]);
const estimating = (options = {}) => new Manager("gpt-4o", { tokenizer: "chars/4", ...options });

test("a plan has the messages of a provider, and says why", () => {
  const manager = estimating();
  const rag = [{ id: "refunds", text: "Refunds take 5 days.", score: 0.9, source: "faq.md" }];
  const plan = manager.plan(question(), { rag, limits: { prompt_budget: 400 } });
  assert.ok(plan.tokens > 0 && plan.tokens <= plan.budget);
  assert.equal(plan.budget, 400);
  const messages = plan.messages();
  assert.equal(messages[0].role, "system");
  assert.match(messages[1].content, /<document id="refunds" source="faq.md">/);
  assert.match(plan.reason("refunds"), /relevant/);
  assert.deepEqual(plan.included.map((row) => row.kind), ["system_text", "document", "message"]);
  assert.match(plan.text(80), /Documents/);
  assert.match(plan.html(true), /<!doctype html>/i);
  assert.doesNotMatch(plan.html(), /This page has no explanations/);
  assert.match(plan.html(false, false), /This page has no explanations/);
  assert.equal(JSON.parse(plan.json()).prompt_budget, 400);
  assert.deepEqual(plan.toJSON(), JSON.parse(JSON.stringify(plan)));
  assert.equal(`${plan}`, plan.text());
});

test("messages of the AI SDK are read", async () => {
  const ui = [
    { id: "q", role: "user", parts: [{ type: "text", text: "How warm is it?" }] },
    { id: "a", role: "assistant", parts: [
      { type: "tool-weather", toolCallId: "c", state: "output-available", input: { at: "Rome" }, output: { warm: 20 } },
      { type: "step-start" },
      { type: "text", text: "Twenty degrees." },
    ] },
  ];
  const plan = estimating().plan(new Conversation(ui));
  assert.deepEqual(plan.messages().map((one) => one.role), ["user", "assistant", "tool", "assistant"]);
  const models = await convertToModelMessages(ui);
  assert.deepEqual(estimating().plan(new Conversation(models)).messages(), plan.messages());
  assert.throws(() => question().push(models), /only an empty conversation takes/);
  const wrong = [{ role: "user", parts: [{ type: "text", txt: "lost" }] }];
  assert.throws(() => new Conversation(wrong), (error) => error instanceof InputError && !error.message.includes("--"));
});

test("what does not fit is explained", () => {
  const manager = estimating();
  const rag = [{ id: "long", text: "zebra ".repeat(400), score: 0.5 }];
  const plan = manager.plan(question(), { rag, limits: { prompt_budget: 200 } });
  assert.deepEqual(plan.excluded.map((row) => row.id), ["long"]);
  const explained = plan.explain("long");
  assert.equal(explained.included, false);
  assert.ok(explained.enters_at > 200);
  const larger = manager.plan(question(), { rag, limits: { prompt_budget: explained.enters_at } });
  assert.ok(larger.included.some((row) => row.id === "long"));
  const changes = plan.diff(larger);
  assert.deepEqual(changes.map((change) => change.id), ["long"]);
  assert.throws(() => plan.explain("nobody"), NotFoundError);
});

test("conversations survive JSON, and a Worker without memory continues from an anchor", () => {
  const manager = estimating();
  const log = question();
  const plan = manager.plan(log);
  const { id, events } = log.pushReply(plan, "5 days.", { usage: { prompt_tokens: 20, completion_tokens: 3 } });
  assert.equal(typeof id, "string");
  assert.ok(events.some((event) => event.event === "usage"));
  log.push({ role: "user", content: "And on Sundays?" });
  const again = Conversation.fromJSON(JSON.parse(JSON.stringify(log)));
  assert.equal(manager.plan(again).fingerprint, manager.plan(log).fingerprint);
  assert.equal(Conversation.fromJSON(JSON.stringify(log)).length, log.length);
  const anchor = JSON.parse(JSON.stringify(plan.anchor()));
  const stateless = new Conversation([...log.messages()]);
  const next = manager.plan(stateless, { previous: anchor });
  assert.ok(next.repeated.tokens > 0);
});

test("notes, rules and compactions", () => {
  const manager = estimating({ config: { compaction: { strategy: "digest" } } });
  const log = new Conversation();
  for (let turn = 0; turn < 12; turn++) {
    log.push([{ role: "user", content: `Question ${turn}: ${"word ".repeat(30)}` }, { role: "assistant", content: "Answer." }]);
  }
  log.pin("rule", "Answer in English.", "high");
  const job = manager.compactionDue(log, { limits: { prompt_budget: 4000 } }, true);
  assert.ok(job.archivedIds.length > 0);
  const record = manager.compactWithoutModel(log, job);
  assert.ok(record);
  assert.equal(log.length, 24);
  log.push({ role: "user", content: "And now?" });
  assert.ok(manager.plan(log).included.some((row) => row.id === "rule"));
  assert.equal(log.undoCompaction(), 1);
});

test("errors are classes with kind, path and hint", () => {
  const thrown = (work) => {
    try { work(); } catch (error) { return error; }
    return assert.fail("nothing was thrown");
  };
  const manager = estimating();
  const option = thrown(() => estimating({ config: { rag: { max_itmes: 5 } } }));
  assert.ok(option instanceof ConfigError && option instanceof ContextWindowError && option instanceof Error);
  assert.equal(option.kind, "Config");
  assert.match(option.message, /did you mean `max_items`/);
  const score = thrown(() => manager.plan(question(), { rag: [{ id: "a", text: "x", score: "high" }] }));
  assert.ok(score instanceof InputError);
  assert.match(score.message, /score/);
  assert.throws(() => manager.plan(question(), { documents: [] }), /unknown key `documents`; expected one of/);
  assert.throws(() => manager.plan(question(), { limits: { prompt_budget: 0 } }), BudgetError);
  assert.throws(() => new Conversation("hello"), /expected a message/);
  assert.throws(() => new Conversation([{ role: "nobody", content: "x" }]), InputError);
  assert.throws(() => estimating({ tokeniser: "x" }), /tokeniser/);
  assert.throws(() => Conversation.fromJSON({ version: 9, events: [] }), /version 9/);
  assert.throws(() => manager.plan(question(), 5), /expected an object/);
  const log = new Conversation();
  assert.throws(() => log.push([{ role: "user", content: "kept?" }, { role: "user", content: 5 }]), InputError);
  assert.equal(log.length, 0);
});

test("an encoding is loaded when it is asked for", async () => {
  assert.throws(() => new Manager("gpt-4o"), CountError);
  await loadEncoding("o200k_base");
  await loadEncoding("o200k_base");
  assert.equal(count("tiktoken is great!"), 6);
  assert.equal(new Manager("gpt-4o").count("antidisestablishmentarianism"), 6);
  assert.throws(() => count("x", "cl100k_base"), CountError);
  // The bytes of another file, and the file itself after them.
  await assert.rejects(loadEncoding("cl100k_base", new Uint8Array([1, 2, 3])), CountError);
  assert.throws(() => count("x", "cl100k_base"), CountError);
  await loadEncoding("cl100k_base");
  await loadEncoding("cl100k_base");
  assert.equal(count("tiktoken is great!", "cl100k_base"), 6);
  await assert.rejects(loadEncoding("p50k_base"), InputError);
});

test("a counter of the application counts, and its faults are named", () => {
  let calls = 0;
  const manager = new Manager("gpt-4o", { counter: (text) => { calls++; return text.length; } });
  assert.equal(manager.count("hello"), 5);
  assert.ok(calls > 0);
  const plan = manager.plan(question());
  assert.ok(plan.tokens > 30);
  const broken = (text) => { if (text === "x") throw new TypeError("no model"); return 1; };
  assert.throws(() => new Manager("m", { counter: broken }).count("x"), /counter `own` failed: .*no model/);
  assert.throws(() => new Manager("m", { counter: () => NaN }), /expected a number of tokens/);
  assert.throws(() => new Manager("m", { counter: 5 }), /expected a function/);
});

test("half characters and cycles are no trap", () => {
  const log = new Conversation([{ role: "user", content: "half \ud83d and \\ud83d" }]);
  assert.deepEqual(log.messages()[0].content, "half \ufffd and \\ud83d");
  const cycle = { role: "user" };
  cycle.content = cycle;
  assert.throws(() => log.push(cycle), /circular/i);
  assert.throws(() => log.push({ role: "user", content: 1n }), InputError);
});

test("memory is given back by hand and by scope", () => {
  const manager = estimating();
  const log = question();
  const plan = manager.plan(log);
  plan.free();
  assert.throws(() => plan.tokens);
  assert.equal(typeof manager[Symbol.dispose ?? "free"], "function");
  manager.free();
});

test("the catalogue", () => {
  assert.ok(models().some((model) => model.name === "gpt-4o" && model.context_len === 128000));
  assert.ok(presets().includes("rag"));
  assert.ok(isContextOverflow("This model's maximum context length is 8192 tokens"));
});
