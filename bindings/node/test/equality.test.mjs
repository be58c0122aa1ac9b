// The plans of the package are those of the native tool, byte for byte.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Manager, loadEncoding } from "context-window";
import { ownCases, realCases } from "./cases.mjs";
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

test("plans of examples, fixtures and vectors are equal", (t) => {
  if (!existsSync(tool)) return skip(t, "the native tool is not built");
  let planned = 0;
  for (const { name, text, ...options } of ownCases()) planned += compare(name, text, options);
  assert.ok(planned > 150, `${planned} plans`);
  t.diagnostic(`${planned} plans are equal`);
});

test("plans of real sessions are equal", (t) => {
  if (!existsSync(tool)) return skip(t, "the native tool is not built");
  if (!data) return skip(t, "CONTEXT_WINDOW_DATA is not set: no real session is compared");
  const wanted = process.env.FULL === "1" ? 500 : 100;
  let planned = 0;
  for (const { name, text, ...options } of realCases(wanted)) {
    if (planned < wanted) planned += compare(name, text, options);
  }
  assert.equal(planned, wanted);
  t.diagnostic(`${planned} plans are equal`);
});
