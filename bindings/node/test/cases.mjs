// The plans that are compared between targets: those of examples, fixtures, vectors and real sessions.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const data = process.env.CONTEXT_WINDOW_DATA;
const MODELS = ["gpt-4o", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "deepseek-reasoner"];

function sessions(folder) {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".json")).sort();
  return names.map((name) => [join(folder, name), readFileSync(join(root, folder, name), "utf8")]);
}

/** Returns the plans of the project's own files: name, text, model, budget and options of each. */
export function ownCases() {
  const examples = sessions("examples").flatMap(([name, text]) =>
    MODELS.flatMap((model) => [60, 400, 4000].map((budget) => ({ name, text, model, budget }))));
  const fixtures = [...sessions("tests/fixtures"), ...sessions("tests/vectors")].map(([name, text]) => {
    const fixture = JSON.parse(text);
    // A vector has sizes in place of texts.
    const sized = JSON.stringify(fixture.session, (key, value) =>
      value && typeof value === "object" && typeof value.size === "number"
        ? { ...value, size: undefined, [value.role ? "content" : "text"]: String.fromCharCode(97 + (value.id?.length ?? 0)).repeat(value.size) }
        : value);
    const options = Object.entries(fixture.config ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join("");
    const config = typeof fixture.config === "string" ? fixture.config : options;
    return { name, text: sized ?? "{}", model: fixture.session?.model ?? "gpt-4o", budget: fixture.budget ?? 400, config, tokenizer: "bytes" };
  });
  return [...examples, ...fixtures];
}

/** Yields plans of real sessions, of all sets in turn, `wanted` and some more. Yields nothing without the data. */
export function* realCases(wanted) {
  const files = data ? readdirSync(data).filter((name) => /^(conv|long|rag)_.*\.jsonl\.gz$/.test(name)).sort() : [];
  let nth = 0;
  for (const name of files) {
    const lines = gunzipSync(readFileSync(join(data, name))).toString("utf8").split("\n").filter(Boolean);
    // Some sets have few sessions, so the others give more.
    const take = Math.min(Math.ceil((wanted * 1.5) / files.length), lines.length);
    for (let at = 0; at < take; at++, nth++) {
      const text = lines[Math.floor((at * lines.length) / take)];
      yield { name: `${name} ${at}`, text, model: MODELS[nth % MODELS.length], budget: [500, 2000, 8000, 128000][nth % 4] };
    }
  }
}

/** Returns the fingerprint of a plan, or the kind of its error: an anchor is no session. */
export function fingerprint(Manager, { text, model, budget, config, tokenizer }) {
  let manager, plan;
  try {
    manager = new Manager(model, { config, tokenizer });
    plan = manager.planSession("s.json", text, undefined, budget);
    return plan.fingerprint;
  } catch (error) {
    if (error.kind === undefined) throw error;
    return error.kind;
  } finally {
    plan?.free();
    manager?.free();
  }
}

/** Returns the number of fingerprints among the results of cases. The others are kinds of errors. */
export const plannedCount = (found) => found.filter((one) => one.length === 32 || one.length === 64).length;
