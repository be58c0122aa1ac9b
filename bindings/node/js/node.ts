import { initSync } from "./core.js";
import { encodingLoader } from "./encodings.js";

// @ts-ignore: the types of Node are no dependency of this package
const { readFileSync } = await import("node:fs");
// @ts-ignore: as above
const { readFile } = await import("node:fs/promises");

initSync({ module: readFileSync(new URL("./core_bg.wasm", import.meta.url)) });

export * from "./index.js";
export const loadEncoding = encodingLoader((name) => readFile(new URL(`./encodings/${name}`, import.meta.url)));
