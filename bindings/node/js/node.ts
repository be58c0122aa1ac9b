// @ts-ignore: the types of Node are no dependency of this package
import { readFileSync } from "node:fs";
// @ts-ignore: as above
import { readFile } from "node:fs/promises";
import { initSync } from "./core.js";
import { encodingLoader } from "./encodings.js";

// Without an await, so that a program may load the package by `require`, as OpenClaw does.
initSync({ module: readFileSync(new URL("./core_bg.wasm", import.meta.url)) });

export * from "./index.js";
export const loadEncoding = encodingLoader((name) => readFile(new URL(`./encodings/${name}`, import.meta.url)));
