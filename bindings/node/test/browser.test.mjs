// The plans in a browser are those in Node.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { Manager, loadEncoding } from "context-window";
import { skip } from "./skip.mjs";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = join(here, "../..");
const data = process.env.CONTEXT_WINDOW_DATA;

function browser() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {}
  }
  return undefined;
}

/** The sessions: examples, and one of each set of real ones. */
function sessions() {
  const texts = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".json")).map((name) => readFileSync(join(root, "examples", name), "utf8"));
  for (const name of data ? readdirSync(data).filter((name) => /^(conv|long|rag)_.*\.gz$/.test(name)).sort() : []) {
    texts.push(gunzipSync(readFileSync(join(data, name))).toString("utf8").split("\n", 1)[0]);
  }
  return texts;
}

/** Returns the fingerprint of a plan, or the kind of its error: an anchor is no session. */
function fingerprint(manager, text) {
  try {
    return manager.planSession("s.json", text, undefined, 2000).fingerprint;
  } catch (error) {
    return error.kind;
  }
}

const PAGE = `<!doctype html><meta charset="utf-8"><pre id="out">waiting</pre><script type="module">
  const out = document.getElementById("out");
  try {
    const { Manager, loadEncoding } = await import("/dist/web.js");
    await loadEncoding("o200k_base");
    const texts = await (await fetch("/sessions")).json();
    const manager = new Manager("gpt-4o");
    const fingerprint = ${fingerprint};
    out.textContent = "found " + texts.map((text) => fingerprint(manager, text)).join(" ") + " end";
  } catch (error) {
    out.textContent = "failed " + error.stack;
  }
</script>`;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".gz": "application/octet-stream" };

test("fingerprints of plans are equal in Chromium", async (t) => {
  const program = browser();
  if (program === undefined) return skip(t, "no Chromium is here");
  const texts = sessions();
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    if (path === "/") return response.setHeader("content-type", "text/html").end(PAGE);
    if (path === "/sessions") return response.end(JSON.stringify(texts));
    try {
      const file = readFileSync(join(here, normalize(path)));
      response.setHeader("content-type", TYPES[extname(path)] ?? "text/plain").end(file);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const profile = mkdtempSync(join(tmpdir(), "context-window-browser-"));
  try {
    const url = `http://127.0.0.1:${server.address().port}/`;
    const args = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, "--virtual-time-budget=60000", "--dump-dom", url];
    const page = await new Promise((done, failed) => execFile(program, args, { encoding: "utf8", timeout: 120_000, maxBuffer: 1 << 26 }, (error, stdout) => (error ? failed(error) : done(stdout))));
    const found = /found (.*) end/.exec(page)?.[1].split(" ");
    assert.ok(found, page.slice(0, 2_000));
    await loadEncoding("o200k_base");
    const manager = new Manager("gpt-4o");
    assert.deepEqual(found, texts.map((text) => fingerprint(manager, text)));
    assert.ok(found.filter((one) => one.length === 32 || one.length === 64).length > 5, found.join(" "));
    t.diagnostic(`${found.length} fingerprints are equal`);
  } finally {
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
