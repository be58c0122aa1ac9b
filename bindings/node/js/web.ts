import init from "./core.js";
import { encodingLoader } from "./encodings.js";

await init({ module_or_path: new URL("./core_bg.wasm", import.meta.url) });

export * from "./index.js";
export const loadEncoding = encodingLoader(async (name) => {
  const answer = await fetch(new URL(`./encodings/${name}`, import.meta.url));
  if (!answer.ok) throw new Error(`${answer.url}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
});
