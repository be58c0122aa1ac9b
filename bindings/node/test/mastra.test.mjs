// The adapter for Mastra, with the package itself and its mock model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent } from "@mastra/core/agent";
import { MastraLanguageModelV2Mock } from "@mastra/core/test-utils/llm-mock";
import { createTool } from "@mastra/core/tools";
import { ContextWindowProcessor } from "context-window/mastra";
import { InputError } from "context-window";

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const schema = { type: "object", properties: { query: { type: "string", description: "The words to look for. ".repeat(20) } } };
const search = () => createTool({
  id: "search", description: "Searches.", inputSchema: schema, execute: async () => ({ found: "a page of words ".repeat(60) }),
});

/** Returns an agent whose model calls a tool `steps` times, and the prompts that the model got. */
function agent(steps, processor, tools = { search: search() }) {
  const prompts = [];
  const model = new MastraLanguageModelV2Mock({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      const call = { type: "tool-call", toolCallId: `c${prompts.length}`, toolName: "search", input: JSON.stringify({ query: `q${prompts.length}` }) };
      const last = prompts.length > steps;
      const content = last ? [{ type: "text", text: "Done." }] : [call];
      return { content, finishReason: last ? "stop" : "tool-calls", usage, warnings: [] };
    },
  });
  const made = new Agent({ id: "a", name: "A", instructions: "Be brief.", model, tools, inputProcessors: [processor] });
  return { agent: made, prompts };
}

/** Returns the calls without a result and the results without a call. */
function alone(prompt) {
  const parts = prompt.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const ids = (type) => parts.filter((part) => part.type === type).map((part) => part.toolCallId);
  const [calls, results] = [ids("tool-call"), ids("tool-result")];
  return [...calls.filter((id) => !results.includes(id)), ...results.filter((id) => !calls.includes(id))];
}

test("each step of an agent fits, with the question and the running call", async () => {
  const sizes = [];
  const processor = new ContextWindowProcessor({ maxTokens: 1200, onPlan: (plan) => sizes.push([plan.tokens, plan.budget]) });
  const { agent: made, prompts } = agent(7, processor);
  const { text } = await made.generate("Find everything.", { maxSteps: 12 });
  assert.equal(text, "Done.");
  assert.equal(prompts.length, 8);
  assert.ok(sizes.length === 8 && sizes.every(([tokens, budget]) => tokens <= budget), JSON.stringify(sizes));
  for (const [at, prompt] of prompts.entries()) {
    assert.deepEqual(alone(prompt), []);
    assert.equal(prompt[0].role, "system");
    assert.ok(JSON.stringify(prompt).includes("Find everything."), `the question left step ${at}`);
    assert.ok(at === 0 || JSON.stringify(prompt).includes(`"c${at}"`), `the running call left step ${at}`);
  }
  assert.ok(prompts.at(-1).length < 2 + 7 * 2, "nothing was left out");
  processor.free();
});

test("an agent whose needed messages are too long keeps them, and does not call its tool without end", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { agent: made, prompts } = agent(3, new ContextWindowProcessor({ maxTokens: 150 }));
  assert.equal((await made.generate("Find everything.", { maxSteps: 12 })).text, "Done.");
  assert.ok(warn.mock.callCount() >= 3 && /they are sent nevertheless/.test(warn.mock.calls[0].arguments[0]));
  for (const [at, prompt] of prompts.entries()) {
    assert.deepEqual(alone(prompt), []);
    assert.ok(JSON.stringify(prompt).includes(at === 0 ? "Find everything." : `"c${at}"`));
  }
  const strict = agent(3, new ContextWindowProcessor({ maxTokens: 150, onOverflow: "throw" }));
  await assert.rejects(strict.agent.generate("Find everything.", { maxSteps: 12 }), /expected at most 150/);
});

test("the tools of a step are counted", async () => {
  const sizes = [];
  for (const tools of [{}, { search: search() }]) {
    const processor = new ContextWindowProcessor({ onPlan: (plan) => sizes.push(plan.tokens) });
    await agent(0, processor, tools).agent.generate("Hello");
  }
  assert.equal(sizes.length, 2);
  assert.ok(sizes[1] > sizes[0] + 80, `${sizes}`);
});

test("threads of a server keep their own windows", async () => {
  const starts = new Map();
  const processor = new ContextWindowProcessor({ maxTokens: 700, onPlan: (plan) => {
    const thread = plan.messages().map((message) => message.content).join(" ").match(/thread (\w)/)?.[1];
    starts.set(thread, [...(starts.get(thread) ?? []), plan.repeated?.tokens ?? 0]);
  } });
  const threads = ["a", "b", "c"].map((name) => [{ role: "system", content: `thread ${name}` }]);
  for (let turn = 0; turn < 6; turn++) {
    for (const messages of threads) {
      messages.push({ role: "user", content: [{ type: "text", text: `question ${turn} ` .repeat(8) }] });
      const { prompt } = processor.processLLMRequest({ prompt: messages, state: {} });
      assert.ok(prompt.every((message) => messages.includes(message)) && prompt.at(-1) === messages.at(-1));
      messages.push({ role: "assistant", content: [{ type: "text", text: `answer ${turn} `.repeat(8) }] });
    }
  }
  // Every prompt after the first one repeats the one before it in its own thread.
  for (const [thread, repeated] of starts) assert.ok(repeated.slice(1).every((tokens) => tokens > 0), `${thread}: ${repeated}`);
  assert.deepEqual([...starts.keys()], ["a", "b", "c"]);
  processor.free();
});

test("unknown options are refused", () => {
  assert.throws(() => new ContextWindowProcessor({ limit: 5 }), InputError);
});
