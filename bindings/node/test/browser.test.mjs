// The plans in a browser are those in Node.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Manager, loadEncoding } from "context-window";
import { fingerprint, ownCases, plannedCount, realCases } from "./cases.mjs";
import { skip } from "./skip.mjs";

const here = dirname(dirname(fileURLToPath(import.meta.url)));

function browser() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {}
  }
  return undefined;
}

/** The plans that one answer of the server has, because real sessions are large. */
const BATCH = 16;
const PAGE = `<!doctype html><meta charset="utf-8"><pre id="out">waiting</pre><script type="module">
  const out = document.getElementById("out");
  try {
    const { Manager, loadEncoding } = await import("/dist/web.js");
    await loadEncoding("o200k_base");
    await loadEncoding("cl100k_base");
    const fingerprint = ${fingerprint};
    const found = [];
    for (;;) {
      const cases = await (await fetch("/cases?from=" + found.length)).json();
      if (cases.length === 0) break;
      for (const one of cases) found.push(fingerprint(Manager, one));
    }
    out.textContent = "found " + found.join(" ") + " end";
  } catch (error) {
    out.textContent = "failed " + error.stack;
  }
</script>`;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".gz": "application/octet-stream" };

test("fingerprints of plans are equal in Chromium", async (t) => {
  const program = browser();
  if (program === undefined) return skip(t, "no Chromium is here");
  // Examples, fixtures and vectors, and real sessions of each set.
  const cases = [...ownCases(), ...realCases(process.env.FULL === "1" ? 500 : 60)];
  const server = createServer((request, response) => {
    const { pathname: path, searchParams } = new URL(request.url, "http://localhost");
    if (path === "/") return response.setHeader("content-type", "text/html").end(PAGE);
    const from = Number(searchParams.get("from"));
    if (path === "/cases") return response.end(JSON.stringify(cases.slice(from, from + BATCH)));
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
    const args = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, "--virtual-time-budget=600000", "--dump-dom", url];
    const page = await new Promise((done, failed) => execFile(program, args, { encoding: "utf8", timeout: 900_000, maxBuffer: 1 << 26 }, (error, stdout) => (error ? failed(error) : done(stdout))));
    const found = /found (.*) end/.exec(page)?.[1].split(" ");
    assert.ok(found, page.slice(0, 2_000));
    await loadEncoding("o200k_base");
    await loadEncoding("cl100k_base");
    assert.deepEqual(found, cases.map((one) => fingerprint(Manager, one)));
    assert.ok(plannedCount(found) > 150, found.join(" "));
    t.diagnostic(`${plannedCount(found)} fingerprints are equal`);
  } finally {
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
