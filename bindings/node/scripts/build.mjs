// Builds the package into `dist`: the WebAssembly module, the encodings, and the JavaScript with its types.
// Needs cargo and the target wasm32-unknown-unknown (`rustup target add wasm32-unknown-unknown`).
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { harden } from "./harden.mjs";
import { writeTypes } from "./types.mjs";

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = join(here, "../..");
const [dist, sources] = [join(here, "dist"), join(here, "build/js")];
const QUICK = process.argv.includes("--quick");
const bin = (name) => join(here, "node_modules/.bin", name);
const run = (program, args, options) =>
  execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"], ...options });

// What every engine of the last years has. Others would be used as soon as they make the module smaller.
const FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"]
  .map((name) => `--enable-${name}`);

/** Builds the module. Returns its path, and the folder of the files that the build script wrote. */
function buildModule() {
  const args = ["build", "--quiet", "-p", "context-window-node", "--target", "wasm32-unknown-unknown", "--profile", "wasm"];
  // Tests need no small module, and the profile `dev` has the build scripts of other checks.
  if (QUICK) args.splice(-2);
  const lines = run("cargo", [...args, "--message-format", "json"]).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const module = lines.flatMap((line) => line.filenames ?? []).find((name) => name.endsWith("context_window_node.wasm"));
  // Builds for the machine itself write the files of other features, so the one for this target counts.
  const scripts = lines.filter((line) => line.reason === "build-script-executed" && line.package_id.includes("crates/tokens"));
  const files = scripts.find((line) => readdirSync(line.out_dir).includes("o200k_base.merges")).out_dir;
  return { module, files };
}

function main() {
  for (const folder of [dist, join(here, "build")]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(dist, "encodings"), { recursive: true });
  const { module, files } = buildModule();
  run("cargo", ["run", "--quiet", "-p", "context-window-node-builder", "--", module, dist]);
  harden(join(dist, "core.js"));
  if (!QUICK) run(bin("wasm-opt"), ["-Oz", ...FEATURES, "--strip-debug", "--strip-producers", join(dist, "core_bg.wasm"), "-o", join(dist, "core_bg.wasm")]);
  for (const name of ["o200k_base", "cl100k_base"]) {
    writeFileSync(join(dist, "encodings", `${name}.gz`), gzipSync(readFileSync(join(files, `${name}.merges`)), { level: 9 }));
  }
  cpSync(join(here, "js"), sources, { recursive: true });
  for (const name of ["core.js", "core.d.ts"]) cpSync(join(dist, name), join(sources, name));
  return writeTypes(join(root, "crates/plan-inspect/schema"), join(sources, "types.ts")).then(() => {
    run(bin("tsc"), ["-p", here], { stdio: "inherit" });
    for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(root, name), join(here, name));
    for (const file of [join(dist, "core_bg.wasm"), ...readdirSync(join(dist, "encodings")).map((name) => join(dist, "encodings", name))]) {
      const [bytes, packed] = [statSync(file).size, gzipSync(readFileSync(file), { level: 9 }).length];
      console.log(`${file.slice(here.length + 1)}: ${bytes} bytes, ${packed} compressed`);
    }
  });
}

await main();
