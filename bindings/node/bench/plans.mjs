// Times the first and the next prompt of a talk beside LangChain's trimMessages with two tokenizers, in one run.
// `npm install --prefix bench && node bench/plans.mjs` after `npm run build`.
import { performance } from "node:perf_hooks";
import { AIMessage, HumanMessage, SystemMessage, trimMessages } from "@langchain/core/messages";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { getEncoding } from "js-tiktoken";
import { Conversation, Manager, loadEncoding } from "../dist/node.js";

const started = performance.now();
await loadEncoding("o200k_base");
console.log(`loading o200k_base: ${(performance.now() - started).toFixed(0)} ms`);
const tiktoken = getEncoding("o200k_base");

const WORDS = "the refund takes five days after a clerk has checked invoice number and the parcel left our store on Tuesday".split(" ");
const text = (at) => Array.from({ length: 30 + (at % 40) }, (_, n) => WORDS[(at * 7 + n * 3) % WORDS.length]).join(" ") + ` ${at}.`;
const talk = (count) => Array.from({ length: count }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: text(at) }));
const asTheirs = (messages) => messages.map(({ role, content }) => (role === "user" ? new HumanMessage(content) : new AIMessage(content)));
const PEERS = [
  ["js-tiktoken", (content) => tiktoken.encode(content).length],
  ["gpt-tokenizer", (content) => encode(content).length],
];
const counter = (count) => (messages) => messages.reduce((sum, message) => sum + 4 + count(message.content), 0);

async function timed(work) {
  const from = performance.now();
  const value = await work();
  return [performance.now() - from, value];
}

const rows = [];
for (const count of [1_000, 20_000]) {
  for (const budget of [8_000, 128_000]) {
    const messages = talk(count - 1).concat({ role: "user", content: "And now?" });
    const more = [{ role: "assistant", content: "It left today." }, { role: "user", content: "When will it be here?" }];
    const limits = { prompt_budget: budget };
    const manager = new Manager("gpt-4o", { config: { compaction: { enabled: false } } });
    const [pushing, log] = await timed(() => new Conversation(messages));
    const [first, plan] = await timed(() => manager.plan(log, { limits }));
    log.pushReply(plan, more[0].content);
    log.push(more[1]);
    const [next, again] = await timed(() => manager.plan(log, { limits }));
    const [rendering] = await timed(() => again.messages());
    const row = { messages: count, budget, "push ms": pushing, "first ms": first, "next ms": next, "render ms": rendering };
    // It counts the whole list again for each message that it drops: with 20,000 of them this takes hours.
    for (const [name, tokens] of count > 1_000 ? [] : PEERS) {
      const options = { maxTokens: budget, strategy: "last", tokenCounter: counter(tokens), includeSystem: true };
      const theirs = [new SystemMessage("Be brief."), ...asTheirs(messages)];
      const [one] = await timed(() => trimMessages(theirs, options));
      row[`trimMessages, ${name}: first ms`] = one;
      row[`trimMessages, ${name}: next ms`] = (await timed(() => trimMessages([...theirs, ...asTheirs(more)], options)))[0];
    }
    rows.push(row);
    for (const [key, value] of Object.entries(row)) console.log(`${key}: ${typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : value}`);
    console.log();
    plan.free();
    again.free();
    log.free();
    manager.free();
  }
}
