// @ts-ignore: a Worker imports a module of WebAssembly itself
import module from "./core_bg.wasm";
import { initSync } from "./core.js";
import { encodingLoader } from "./encodings.js";

initSync({ module });

export * from "./index.js";
export const loadEncoding = encodingLoader(async (name) => {
  throw new Error(`${name}: a Worker has no files; pass its content, imported from "context-window/encodings/${name}"`);
});
