// The package in one file of a bundler, which leaves out modules without effects.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(dirname(fileURLToPath(import.meta.url)));

test("a bundler keeps the module that loads WebAssembly", async () => {
  // Outside of the package, as an application has it.
  const folder = mkdtempSync(join(tmpdir(), "context-window-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(here, join(folder, "node_modules/context-window"));
  const entry = join(folder, "app.mjs");
  writeFileSync(entry, `
    import { Manager, Conversation } from "context-window";
    const manager = new Manager("gpt-4o", { tokenizer: "chars/4" });
    console.log(manager.plan(new Conversation([{ role: "user", content: "Hello" }])).tokens);
  `);
  for (const platform of ["node", "browser"]) {
    const outfile = join(folder, "out", `${platform}.mjs`);
    const { metafile } = await build({ entryPoints: [entry], bundle: true, format: "esm", platform, outfile, metafile: true, logLevel: "error" });
    const kept = Object.keys(metafile.inputs).map((name) => name.split("/").at(-1));
    assert.ok(kept.includes(platform === "node" ? "node.js" : "web.js"), kept.join(", "));
    // An application without the adapters has none of them.
    assert.ok(!kept.includes("langchain.js") && !kept.includes("trimmer.js"), kept.join(", "));
  }
  cpSync(join(here, "dist/core_bg.wasm"), join(folder, "out/core_bg.wasm"));
  const printed = execFileSync(process.execPath, [join(folder, "out/node.mjs")], { encoding: "utf8" });
  assert.match(printed, /^[1-9]\d*\n$/);
  rmSync(folder, { recursive: true });
});

test("a program loads the package and its adapters by require", { skip: process.features.require_module ? false : "this Node requires no modules" }, () => {
  // OpenClaw loads plugins like this, so no module of the package may await at its top.
  const code = `for (const name of ["", "/openclaw", "/ai-sdk", "/langchain", "/mastra"]) require("context-window" + name);
    const { Manager, Conversation } = require("context-window");
    console.log(new Manager("gpt-4o", { tokenizer: "chars/4" }).plan(new Conversation([{ role: "user", content: "Hello" }])).tokens);`;
  const printed = execFileSync(process.execPath, ["--no-warnings", "--input-type=commonjs", "--eval", code], { cwd: here, encoding: "utf8" });
  assert.match(printed, /^[1-9]\d*\n$/);
});
