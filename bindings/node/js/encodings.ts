import { CountError, InputError } from "./errors.js";
import { installEncoding } from "./core.js";

/** The encodings that this package brings, as files of their own. */
export type EncodingName = "o200k_base" | "cl100k_base";

/** Returns the bytes of a file of this package, given its name. */
export type FileReader = (name: string) => Promise<Uint8Array>;

const NAMES: readonly string[] = ["o200k_base", "cl100k_base"];
const loading = new Map<string, Promise<void>>();

/** Builds the function that loads an encoding, once for each name. */
export function encodingLoader(read: FileReader) {
  /**
   * Loads an encoding, about 0.7 MB, so that its models are counted exactly. Without it, a manager of such a
   * model needs an estimate (`tokenizer: "chars/4"`). `file` is the file's content, where the package cannot
   * read its own files.
   */
  return async function loadEncoding(name: EncodingName, file?: Uint8Array): Promise<void> {
    if (!NAMES.includes(name)) {
      throw new InputError("Input", `encoding \`${name}\` is unknown; expected ${NAMES.join(" or ")}`);
    }
    const known = loading.get(name);
    if (known) return known;
    const load = (async () => installEncoding(name, await inflated(file ?? (await read(`${name}.gz`)))))();
    loading.set(name, load);
    // A file that could not be had may be had the next time.
    load.catch(() => loading.delete(name));
    return load;
  };
}

/** Returns the content of a gzip file. Other content is returned unchanged. */
async function inflated(file: Uint8Array): Promise<Uint8Array> {
  if (file[0] !== 0x1f || file[1] !== 0x8b) return file;
  const stream = new Blob([file as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch (error) {
    throw new CountError("Count", `the file of an encoding cannot be read: ${(error as Error).message}; expected one of this package`);
  }
}
