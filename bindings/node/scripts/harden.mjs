// Changes the code that wasm-bindgen writes, so that mistakes of a caller are errors of the package.
import { readFileSync, writeFileSync } from "node:fs";

const CHANGES = [
  // A trap would keep its part of the module's stack, and enough of them end the module.
  [1, "function passStringToWasm0(arg, malloc, realloc) {\n", (line) =>
    `${line}    if (typeof arg !== 'string') throw createError('Input', \`expected a text, found \${arg === null ? 'null' : typeof arg}\`);\n`],
  [1, "throw new Error(`expected instance of ${klass.name}`);", () =>
    "throw createError('Input', `expected an object of the class ${klass.name}`);"],
  [1, "throw new Error(getStringFromWasm0(arg0, arg1));", () =>
    "const text = getStringFromWasm0(arg0, arg1);\n" +
    "            throw createError('Input', text.startsWith('null pointer') ? 'the object was freed; expected one that is in use' : text);"],
  // A scope may free an object that was freed by hand.
  [undefined, "        const ptr = this.__destroy_into_raw();\n", (line) => `${line}        if (ptr === 0) return;\n`],
];

/** Changes a module of wasm-bindgen. Fails if its code is no longer as expected. */
export function harden(file) {
  let code = readFileSync(file, "utf8");
  for (const [expected, old, replacement] of CHANGES) {
    const found = code.split(old).length - 1;
    if (found === 0 || (expected !== undefined && found !== expected)) throw new Error(`${file}: ${found} times ${old}`);
    code = code.replaceAll(old, replacement(old));
  }
  writeFileSync(file, code);
}
