// Writes the types of plain data from the JSON Schemas of the project.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile } from "json-schema-to-typescript";

const options = { bannerComment: "", additionalProperties: false, unreachableDefinitions: true, format: false };

/** Writes one file with the types of plans, sessions and options. */
export async function writeTypes(schemas, file) {
  const read = (name) => JSON.parse(readFileSync(join(schemas, `${name}.json`), "utf8"));
  const parts = [];
  for (const [name, namespace] of [["plan", "PlanData"], ["session", "SessionData"], ["config", "ConfigData"]]) {
    const schema = read(name);
    delete schema.$id;
    const code = await compile({ ...schema, title: "Root" }, "Root", options);
    parts.push(`export namespace ${namespace} {\n${code}}\n`);
  }
  writeFileSync(file, parts.join("\n"));
}
