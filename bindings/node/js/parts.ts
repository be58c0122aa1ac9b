// Files and pictures of frameworks as parts of OpenAI's messages, so that they are counted as media and not as text.

/** A file: its data or address as a framework has it, its type, and its name. */
export interface FileData {
  data: unknown;
  mediaType: string;
  filename?: string | undefined;
}

/** Returns a file as a part of a message. */
export function filePart({ data, mediaType, filename }: FileData): object {
  const { type, data: inner, url, text } = (data ?? {}) as { type?: string; data?: unknown; url?: unknown; text?: unknown };
  if (type === "text" && typeof text === "string") return { type: "text", text };
  const address = addressOf(type === "data" ? inner : type === "url" ? url : data, mediaType);
  if (mediaType.startsWith("image")) return { type: "image_url", image_url: { url: address } };
  const audio = /^data:audio\/(?:x-)?(wav|mp3|mpeg)[^,]*;base64,(.*)$/s.exec(address);
  if (audio) return { type: "input_audio", input_audio: { format: audio[1] === "mpeg" ? "mp3" : audio[1], data: audio[2] } };
  const file = address.startsWith("data:") ? { file_data: address, filename: filename ?? "file" } : { file_id: address };
  return { type: "file", file };
}

/** Returns the address of a file, which contains the file if the framework has it. */
function addressOf(data: unknown, mediaType: string): string {
  if (data instanceof URL) return data.href;
  if (typeof data === "string") return /^(https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`;
  const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array();
  return `data:${mediaType};base64,${base64(bytes)}`;
}

/** The bytes of one piece: a larger one would have too many arguments for a call. It is whole groups of three. */
const PIECE = 0x6000;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) text += btoa(String.fromCharCode(...bytes.subarray(at, at + PIECE)));
  return text;
}
