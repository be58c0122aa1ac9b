// The plans in a Worker of Cloudflare's runtime are those in Node.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Manager, loadEncoding } from "context-window";
import { build } from "esbuild";
import { fingerprint, ownCases, plannedCount, realCases } from "./cases.mjs";
import { skip } from "./skip.mjs";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const WORKER = `
  import { Conversation, Manager, loadEncoding } from "context-window";
  import cl100k from "context-window/encodings/cl100k_base.gz";
  import o200k from "context-window/encodings/o200k_base.gz";
  import cases from "./cases.json";
  const fingerprint = ${fingerprint};
  export default {
    async test() {
      // A model of an encoding that is not loaded needs an estimate.
      let fault;
      try { new Manager("gpt-4o"); } catch (error) { fault = error.message; }
      const estimated = new Manager("gpt-4o", { tokenizer: "chars/4" }).plan(new Conversation([{ role: "user", content: "Hello" }])).tokens;
      await loadEncoding("o200k_base", new Uint8Array(o200k));
      await loadEncoding("cl100k_base", new Uint8Array(cl100k));
      const found = JSON.parse(cases).map((one) => fingerprint(Manager, one));
      console.log("found " + JSON.stringify({ fault, estimated, found }));
    },
  };`;
// Modules of a Worker, by the type that wrangler gives files with these names.
const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = (compatibilityDate = "2026-01-01", modules = [
  (name = "worker.js", esModule = embed "worker.js"),
  (name = "core_bg.wasm", wasm = embed "core_bg.wasm"),
  (name = "cases.json", text = embed "cases.json"),
  (name = "context-window/encodings/o200k_base.gz", data = embed "o200k_base.gz"),
  (name = "context-window/encodings/cl100k_base.gz", data = embed "cl100k_base.gz"),
]))]);`;

/** Returns the path of the runtime. Returns nothing if this machine has none. */
async function runtime() {
  try {
    const program = createRequire(import.meta.url).resolve("workerd/bin/workerd");
    await promisify(execFile)(program, ["--version"]);
    return program;
  } catch {
    return undefined;
  }
}

test("fingerprints of plans are equal in a Worker", async (t) => {
  const program = await runtime();
  if (program === undefined) return skip(t, "workerd does not run here");
  const cases = [...ownCases(), ...realCases(60)];
  const folder = mkdtempSync(join(tmpdir(), "context-window-worker-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(here, join(folder, "node_modules/context-window"));
    writeFileSync(join(folder, "app.js"), WORKER);
    writeFileSync(join(folder, "cases.json"), JSON.stringify(cases));
    writeFileSync(join(folder, "config.capnp"), CONFIG);
    const conditions = ["workerd", "worker", "browser"];
    const external = ["*.wasm", "*.gz", "*.json"];
    await build({ entryPoints: [join(folder, "app.js")], bundle: true, format: "esm", conditions, external, outfile: join(folder, "worker.js"), logLevel: "error" });
    for (const name of ["core_bg.wasm", "encodings/o200k_base.gz", "encodings/cl100k_base.gz"]) {
      cpSync(join(here, "dist", name), join(folder, name.split("/").at(-1)));
    }
    const printed = await promisify(execFile)(program, ["test", join(folder, "config.capnp")], { encoding: "utf8", maxBuffer: 1 << 26 });
    const said = /found (\{.*\})/.exec(printed.stdout + printed.stderr)?.[1];
    assert.ok(said, printed.stdout + printed.stderr);
    const { fault, estimated, found } = JSON.parse(said);
    assert.match(fault, /`o200k_base` is not loaded/);
    assert.ok(estimated > 0);
    await loadEncoding("o200k_base");
    await loadEncoding("cl100k_base");
    assert.deepEqual(found, cases.map((one) => fingerprint(Manager, one)));
    assert.ok(plannedCount(found) > 150, found.join(" "));
    t.diagnostic(`${plannedCount(found)} fingerprints are equal`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
