// Skips a test with a loud line, which the gate counts.
import { appendFileSync } from "node:fs";

/** Skips a test, and writes its name and the reason to the list of skipped tests. */
export function skip(t, reason) {
  console.error(`*** ${reason} ***`);
  const list = process.env.CONTEXT_WINDOW_SKIPPED;
  if (list) appendFileSync(list, `node: ${t.name}\t${reason}\n`);
  t.skip(reason);
}
