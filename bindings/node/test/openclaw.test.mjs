// The adapter for OpenClaw, with a host that follows its contract. The package itself needs Node 24.
import assert from "node:assert/strict";
import { test } from "node:test";
import { contextEngine, registerContextWindow } from "context-window/openclaw";
import { BudgetError, InputError } from "context-window";

const user = (text) => ({ role: "user", content: text, timestamp: 0 });
const calls = (...ids) => ({
  role: "assistant", timestamp: 0,
  content: [{ type: "thinking", thinking: "Hm." }, ...ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { id } }))],
});
const result = (id, text) => ({ role: "toolResult", toolCallId: id, toolName: "read", content: [{ type: "text", text }], isError: false, timestamp: 0 });
const says = (text) => ({ role: "assistant", content: [{ type: "text", text }], timestamp: 0 });

function registered(options) {
  let found;
  registerContextWindow({ registerContextEngine: (id, factory) => (found = { id, factory }) }, options);
  return found;
}

test("the engine is registered, and each instance continues the windows of the one before", async () => {
  const { id, factory } = registered();
  assert.equal(id, "context-window");
  const { info } = factory();
  assert.equal(info.id, id);
  assert.equal(info.ownsCompaction, false);
  const messages = [user("One"), says("1"), user("Two")];
  const first = await factory().assemble({ sessionId: "s", messages, tokenBudget: 1000 });
  const next = await factory().assemble({ sessionId: "s", messages: [...messages, says("2"), user("Three")], tokenBudget: 1000 });
  assert.equal(next.contextProjection.epoch, first.contextProjection.epoch);
  assert.notEqual(next.contextProjection.fingerprint, first.contextProjection.fingerprint);
  assert.deepEqual(registered({ id: "mine" }).factory().info.id, "mine");
});

test("assembled messages fit, in pairs, and the epoch changes only with a cut", async () => {
  const engine = contextEngine();
  const messages = [];
  let [last, cuts, epochs] = [[], 0, 0];
  let epoch;
  for (let turn = 0; turn < 30; turn++) {
    messages.push(user(`question ${turn}`), calls(`a${turn}`, `b${turn}`), result(`a${turn}`, "page ".repeat(30)), result(`b${turn}`, "line ".repeat(20)));
    const { messages: sent, estimatedTokens, contextProjection } = await engine.assemble({ sessionId: "s", messages, tokenBudget: 700 });
    assert.ok(estimatedTokens <= 700 && estimatedTokens > 0);
    assert.ok(sent.every((message) => messages.includes(message)));
    assert.ok(sent.some((message) => message.content === `question ${turn}`) && sent.at(-1) === messages.at(-1));
    const ids = sent.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(({ type }) => type === "toolCall").map(({ id }) => id);
    assert.deepEqual(sent.filter(({ role }) => role === "toolResult").map(({ toolCallId }) => toolCallId), ids);
    const grows = last.every((message, at) => sent[at] === message);
    if (!grows) cuts++;
    if (epoch !== contextProjection.epoch) epochs++;
    // A thread that is not cut goes on.
    assert.equal(epoch === contextProjection.epoch, grows && turn > 0, `turn ${turn}`);
    [last, epoch] = [sent, contextProjection.epoch];
    messages.push(says(`answer ${turn}`));
  }
  assert.ok(cuts > 1 && epochs === cuts + 1, `${cuts} cuts, ${epochs} epochs`);
});

test("the smaller budget of host and options counts", async () => {
  const messages = Array.from({ length: 20 }, (_, at) => (at % 2 ? says("word ".repeat(40)) : user(`question ${at}`)));
  messages.push(user("Now?"));
  const tokens = async (maxTokens, tokenBudget) => (await contextEngine({ maxTokens }).assemble({ sessionId: "s", messages, tokenBudget })).estimatedTokens;
  const [small, large] = [await tokens(undefined, 200), await tokens(undefined, 400)];
  assert.ok(small <= 200 && large > 200);
  for (const budgets of [[200, 400], [400, 200], [200, undefined]]) assert.equal(await tokens(...budgets), small, String(budgets));
});

test("compaction is that of the host, and a turn is committed once", async () => {
  const given = [];
  const engine = contextEngine({ compact: async (params) => (given.push(params), { ok: true, compacted: true }) });
  assert.deepEqual(await engine.compact({ sessionId: "s", sessionKey: "k", force: true }), { ok: true, compacted: true });
  assert.deepEqual(given, [{ sessionId: "s", sessionKey: "k", force: true }]);
  assert.deepEqual(await engine.ingest({ sessionId: "s", message: user("Hi") }), { ingested: true });
  const statuses = [];
  for (const advancementKey of ["1", "2", "1"]) statuses.push((await engine.commitTurn({ advancementKey })).status);
  assert.deepEqual(statuses, ["committed", "committed", "duplicate"]);
  for (let at = 0; at < 600; at++) await engine.commitTurn({ advancementKey: `more ${at}` });
  assert.equal((await engine.commitTurn({ advancementKey: "more 599" })).status, "duplicate");
});

test("an empty session, entries of the host, and messages that are too long", async (t) => {
  const engine = contextEngine();
  assert.deepEqual(await engine.assemble({ sessionId: "s", messages: [] }), { messages: [], estimatedTokens: 0 });
  const odd = [{ role: "bashExecution", command: "ls", output: "a", timestamp: 0 }, user([{ type: "image", data: "AAAA", mimeType: "image/png" }])];
  assert.deepEqual((await engine.assemble({ sessionId: "s", messages: odd, tokenBudget: 20_000 })).messages, odd);
  const long = [user("word ".repeat(900))];
  const warn = t.mock.method(console, "warn", () => {});
  assert.deepEqual((await engine.assemble({ sessionId: "s", messages: long, tokenBudget: 100 })).messages, long);
  assert.equal(warn.mock.callCount(), 1);
  await assert.rejects(contextEngine({ onOverflow: "throw" }).assemble({ sessionId: "s", messages: long, tokenBudget: 100 }), BudgetError);
  assert.throws(() => contextEngine({ name: "x" }), InputError);
});
