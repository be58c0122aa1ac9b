// Everything that the README shows runs, and the package has the files that it needs and no others.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(dirname(fileURLToPath(import.meta.url)));

test("the programs of the README run", () => {
  const programs = [...readFileSync(join(here, "README.md"), "utf8").matchAll(/^```js\n(.*?)^```/gms)].map((found) => found[1]);
  assert.equal(programs.length, 7);
  // Inside of the package, so that its own name leads to it.
  const folder = mkdtempSync(join(here, "build/readme-"));
  const outputs = programs.map((program, at) => {
    const file = join(folder, `${at}.mjs`);
    writeFileSync(file, program);
    return execFileSync(process.execPath, [file], { encoding: "utf8" });
  });
  rmSync(folder, { recursive: true });
  assert.match(outputs[0], /Documents/);
  assert.match(outputs[1], /^[1-9]\d*\n$/);
  assert.equal(outputs[2], "Done.\n");
  assert.equal(outputs[3], "1\n");
  assert.equal(outputs[4], "Hello.\n");
  assert.equal(outputs[5], "");
  assert.equal(outputs[6], "true did you mean `max_items`?\n");
});

test("the package has the files that it needs", () => {
  const packed = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: here, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  const files = packed[0].files.map((file) => file.path).sort();
  const names = ["ai-sdk", "core", "data", "encodings", "errors", "index", "langchain", "mastra", "node", "openclaw", "parts", "sdk", "trimmer", "types", "web", "workerd"];
  const expected = [
    "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json", "dist/core_bg.wasm", "dist/core_bg.wasm.d.ts",
    "dist/encodings/cl100k_base.gz", "dist/encodings/o200k_base.gz", ...names.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]),
  ];
  assert.deepEqual(files, expected.sort());
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  assert.deepEqual(Object.keys(manifest.dependencies ?? {}), []);
  assert.deepEqual(Object.keys(manifest.scripts).filter((name) => /install|prepare/.test(name)), []);
  assert.equal(manifest.version, readFileSync(join(here, "../../Cargo.toml"), "utf8").match(/^version = "(.*)"/m)[1]);
});

test("types accept what the README shows, and refuse mistakes", () => {
  const folder = mkdtempSync(join(here, "build/types-"));
  writeFileSync(join(folder, "right.mts"), `
    import { Conversation, Manager, type PlanJSON, type Change } from "context-window";
    const manager = new Manager("gpt-4o", { tokenizer: "chars/4", config: { rag: { max_items: 5 } }, counter: (text) => text.length });
    const log = new Conversation([{ role: "user", content: "Hello" }]);
    using plan = manager.plan(log, { rag: [{ id: "a", text: "x", score: 1 }], state: { clock: "Tuesday" }, limits: { prompt_budget: 400 } });
    const json: PlanJSON = plan.toJSON();
    const changes: Change[] = plan.diff(plan);
    const body: Record<string, unknown> = plan.body("anthropic");
    const sizes: (number | undefined)[] = [plan.usage.prompt_tokens, plan.repeated?.tokens, manager.countMessages(plan.messages())];
    console.log(json.prompt_budget, changes.length, plan.explain("a").enters_at, body, sizes, plan.headers.map(([name]) => name));
  `);
  writeFileSync(join(folder, "frameworks.mts"), `
    import { wrapLanguageModel, generateText, type LanguageModel } from "ai";
    import type { AgentMiddleware } from "langchain";
    import type { Processor } from "@mastra/core/processors";
    import * as sdk from "context-window/ai-sdk";
    import * as langchain from "context-window/langchain";
    import { ContextWindowProcessor } from "context-window/mastra";
    export const processor: Processor = new ContextWindowProcessor({ maxTokens: 900 });
    export const middleware: AgentMiddleware = langchain.contextWindowMiddleware({ maxTokens: 900 });
    export const wrapped = (model: Parameters<typeof wrapLanguageModel>[0]["model"]) =>
      wrapLanguageModel({ model, middleware: sdk.contextWindowMiddleware({ maxTokens: 900 }) });
    export const step = (model: LanguageModel) => generateText({ model, prompt: "Hello", prepareStep: sdk.prepareStep({ maxTokens: 900 }) });
  `);
  writeFileSync(join(folder, "wrong.mts"), `
    import { Conversation, Manager } from "context-window";
    // @ts-expect-error: the name of an option
    const manager = new Manager("gpt-4o", { tokeniser: "chars/4" });
    const log = new Conversation();
    // @ts-expect-error: the key of a request
    manager.plan(log, { documents: [] });
    // @ts-expect-error: the name of a format
    manager.plan(log).body("claude");
    // @ts-expect-error: a string is no message
    log.push("hello");
  `);
  // The programs of the README have types, too. A plugin's interface is given by its host.
  const programs = [...readFileSync(join(here, "README.md"), "utf8").matchAll(/^```js\n(.*?)^```/gms)].map((found) => found[1].replace("register(api)", "register(api: any)"));
  // One has a mistake in its options, and mock models have stricter types than models.
  const typed = programs.filter((program) => !/max_itmes|ai\/test/.test(program));
  assert.ok(typed.length >= 5);
  const readme = typed.map((program, at) => {
    const name = `readme${at}`;
    writeFileSync(join(folder, `${name}.mts`), program.replaceAll("catch (error)", "catch (error: any)"));
    return name;
  });
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom,esnext.disposable"];
  const checked = spawnSync(join(here, "node_modules/.bin/tsc"), [...options, "--skipLibCheck", ...["right", "frameworks", "wrong", ...readme].map((name) => join(folder, `${name}.mts`))], { encoding: "utf8" });
  assert.equal(checked.stdout, "");
  rmSync(folder, { recursive: true });
});
