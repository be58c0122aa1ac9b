// The plans of the package are those of the native tool, byte for byte.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { Manager, loadEncoding } from "context-window";
import { skip } from "./skip.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const tool = process.env.CONTEXT_WINDOW_TOOL ?? join(root, "target/debug/plan-inspect");
const data = process.env.CONTEXT_WINDOW_DATA;
const folder = mkdtempSync(join(tmpdir(), "context-window-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
await loadEncoding("o200k_base");
await loadEncoding("cl100k_base");

/** Returns the result of a plan, or the word "error". A file that one side cannot read must be one for the other, too. */
function attempt(work) {
  try {
    return work();
  } catch (error) {
    return { error: String(error.stderr ?? error.message) };
  }
}

/** Compares the plans of one session. `options` are those of both. Returns false if both refuse it. */
function compare(name, text, { model, budget, config, tokenizer }) {
  const [file, toml] = [join(folder, "session.json"), join(folder, "options.toml")];
  writeFileSync(file, text);
  writeFileSync(toml, config ?? "");
  const args = ["plan", file, "--format", "json", "--model", model, "--budget", String(budget), "--config", toml];
  if (tokenizer) args.push("--tokenizer", tokenizer);
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("CONTEXT_WINDOW_")));
  // An overflow has an exit code of its own, and its plan is printed all the same.
  const native = attempt(() => execFileSync(tool, args, { encoding: "utf8", env, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] }));
  const printed = native.error === undefined ? native : null;
  const own = attempt(() => {
    const manager = new Manager(model, { config, tokenizer });
    const plan = manager.planSession(file, text, undefined, budget);
    const json = plan.json();
    plan.free();
    manager.free();
    return json;
  });
  if (own.error !== undefined || printed === null) {
    assert.ok(own.error !== undefined && printed === null, `${name}: ${own.error ?? "planned"}\nnative: ${native.error ?? "planned"}`);
    return false;
  }
  // The tool escapes characters that could change a terminal, so texts with these are compared as data.
  const same = (json) => (/[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/.test(own) ? JSON.stringify(JSON.parse(json)) : json);
  assert.equal(same(own), same(printed.trimEnd()), name);
  return true;
}

const MODELS = ["gpt-4o", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "deepseek-reasoner"];

test("plans of examples, fixtures and vectors are equal", (t) => {
  if (!existsSync(tool)) return skip(t, "the native tool is not built");
  let planned = 0;
  const session = (folder) => readdirSync(join(root, folder)).filter((name) => name.endsWith(".json")).map((name) => [join(folder, name), readFileSync(join(root, folder, name), "utf8")]);
  for (const [name, text] of session("examples")) {
    for (const model of MODELS) for (const budget of [60, 400, 4000]) planned += compare(name, text, { model, budget });
  }
  for (const [name, text] of [...session("tests/fixtures"), ...session("tests/vectors")]) {
    const fixture = JSON.parse(text);
    // A vector has sizes in place of texts.
    const sized = JSON.stringify(fixture.session, (key, value) =>
      value && typeof value === "object" && typeof value.size === "number"
        ? { ...value, size: undefined, [value.role ? "content" : "text"]: String.fromCharCode(97 + (value.id?.length ?? 0)).repeat(value.size) }
        : value);
    const config = Object.entries(fixture.config ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join("");
    const model = fixture.session?.model ?? "gpt-4o";
    planned += compare(name, sized ?? "{}", { model, budget: fixture.budget ?? 400, config: typeof fixture.config === "string" ? fixture.config : config, tokenizer: "bytes" });
  }
  assert.ok(planned > 150, `${planned} plans`);
  t.diagnostic(`${planned} plans are equal`);
});

test("plans of real sessions are equal", (t) => {
  if (!existsSync(tool)) return skip(t, "the native tool is not built");
  if (!data) return skip(t, "CONTEXT_WINDOW_DATA is not set: no real session is compared");
  const wanted = process.env.FULL === "1" ? 500 : 100;
  const files = readdirSync(data).filter((name) => /^(conv|long|rag)_.*\.jsonl\.gz$/.test(name)).sort();
  let [planned, nth] = [0, 0];
  for (const name of files) {
    const lines = gunzipSync(readFileSync(join(data, name))).toString("utf8").split("\n").filter(Boolean);
    // Some sets have few sessions, so the others give more.
    const take = Math.ceil((wanted * 1.5) / files.length);
    for (let at = 0; at < take && at < lines.length && planned < wanted; at++) {
      const text = lines[Math.floor((at * lines.length) / Math.min(take, lines.length))];
      const [model, budget] = [MODELS[nth % MODELS.length], [500, 2000, 8000, 128000][nth % 4]];
      nth++;
      planned += compare(`${name} ${at}`, text, { model, budget });
    }
  }
  assert.equal(planned, wanted);
  t.diagnostic(`${planned} plans are equal`);
});
