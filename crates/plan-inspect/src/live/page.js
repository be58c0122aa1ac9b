
// Plans in the page, with the npm package: reads the changes, plans, and shows the plan of the package.
const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);

/** The number of items that the list shows. More are found by the filter. */
const MOST_ITEMS = 300;
/** The link to the items of a plan's page. Browsers follow no link in a frame that may not read this page. */
const SKIP = /<a class="skip"[^>]*>[^<]*<\/a>/;
/** Milliseconds without a further change before the page plans. */
const PATIENCE = 250;

/** Returns the bytes of a base64 text. */
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Returns the content of a gzip file. */
async function inflated(file) {
  const stream = new Blob([file]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Loads the package, with the encoding of the session. */
async function load() {
  const core = await import(`data:text/javascript;base64,${get("core").textContent}`);
  await core.default({ module_or_path: await inflated(bytes(get("module").textContent)) });
  for (const [name, file] of Object.entries(data.encodings)) core.installEncoding(name, await inflated(bytes(file)));
  return core;
}

/** Returns the items that can be tried: notes and messages of the conversation, then documents. */
function findItems(core, plan) {
  const conversation = core.Conversation.fromFile("session.json", sessionWith([], new Map()));
  const messages = data.session.events.map((event) => JSON.parse(event).entry.message).filter(Boolean);
  const ids = conversation.ids();
  conversation.free();
  // Messages that left the conversation have no ids, so no text can be told for the others.
  const text = (at) => (messages.length === ids.length ? words(messages[at]) : "");
  const notes = [...plan.included, ...plan.excluded].filter((row) => row.kind === "note");
  const documents = new Map(data.session.lists.flatMap(([, list]) => list));
  return [
    ...notes.map((row) => ({ key: `note:${row.id}`, id: row.id, kind: "note", text: "", tries: ["unpinned", "expired"] })),
    ...ids.map((id, at) => ({ key: `message:${id}`, id, kind: "message", text: text(at), tries: ["pinned", "unpinned", "expired"] })),
    ...[...documents].map(([id, json]) => ({ key: `document:${id}`, id, kind: "document", text: JSON.parse(json).text, tries: ["excluded"] })),
  ].map((item) => ({ ...item, searched: `${item.id}\n${item.text}`.toLowerCase() }));
}

/** Returns the role and the beginning of a message. */
function words(message) {
  const parts = (message.parts ?? []).map((part) => part.text ?? "");
  const calls = (message.calls ?? []).map((call) => `${call.name}()`);
  return `${message.role}: ${[message.text, ...parts, ...calls].filter(Boolean).join(" ")}`;
}

/** Returns the event that a change of a message or note adds to the conversation. */
function eventOf({ id }, change) {
  if (change === "pinned") return { message_pinned: { id, priority: "normal" } };
  if (change === "unpinned") return { unpinned: id };
  return { ttl_set: { id, ttl: "none_remaining", asked: false } };
}

/** Returns the JSON of an array, or of an object, from the JSON texts of its values. */
const array = (texts) => `[${texts.join(",")}]`;
const object = (fields) => `{${fields.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;

/**
 * Returns the session with the changes. All other texts stay as they are written. `budget` is undefined as long as it is that of the
 * session.
 */
function sessionWith(items, tried, budget) {
  const of = (kind) => items.filter((item) => (item.kind === "document") === kind && tried.has(item.key));
  const excluded = new Set(of(true).map((item) => item.id));
  const added = of(false).map((item) => JSON.stringify({ version: 1, entry: { event: eventOf(item, tried.get(item.key)) } }));
  const { fields, limits, lists, own, events } = data.session;
  const kept = lists.map(([name, list]) => [name, array(list.filter(([id]) => !excluded.has(id)).map(([, text]) => text))]);
  const others = limits.filter(([name]) => name !== "prompt_budget");
  return object([
    ...fields,
    ...(kept.length > 0 ? [["rag", kept[0][0] === null ? kept[0][1] : object(kept)]] : []),
    ["limits", object(budget === undefined ? limits : [...others, ["prompt_budget", budget]])],
    ["context_window", object([...own, ["events", array([...events, ...added])]])],
  ]);
}

/** Returns a manager for the model and the options of the page. Another model has its own tokenizer and wire format. */
function managerOf(core, model, options) {
  const own = model === data.model;
  return new core.Manager(model, {
    config: options,
    ...(own && { tokenizer: data.tokenizer }),
    ...(data.models !== null && { models: data.models }),
    ...(own && data.wire_format !== null && { wire_format: data.wire_format }),
  });
}

/** Shows a page in the frame. It has an address of its own, so that it may name its rows in it. */
function showPage(html) {
  const frame = get("plan");
  URL.revokeObjectURL(frame.src);
  frame.src = URL.createObjectURL(new Blob([html.replace(SKIP, "")], { type: "text/html" }));
}

/** Returns the ids of the included items by kind: a document may have the id of a message. */
const includedIn = (plan) => new Set(plan.included.map((row) => `${row.kind === "document" ? "document" : "item"}:${row.id}`));
const nameOf = (item) => `${item.kind === "document" ? "document" : "item"}:${item.id}`;
const count = (number) => number.toLocaleString("en");

/** Returns a sentence about the items that come and go. */
function difference(before, after) {
  const only = (one, other) => [...one].filter((name) => !other.has(name)).map((name) => name.slice(name.indexOf(":") + 1));
  const list = (names) => names.slice(0, 12).join(", ") + (names.length > 12 ? ` and ${names.length - 12} more` : "");
  const parts = [["in now", only(after, before)], ["out now", only(before, after)]].filter(([, names]) => names.length > 0);
  return parts.length === 0 ? "The same items as in the plan of the session." : parts.map(([label, names]) => `${label}: ${list(names)}`).join("; ");
}

/** Fills the list of items that match the filter. */
function list(items, included, tried, change) {
  const wanted = get("filter").value.trim().toLowerCase();
  const found = items.filter((item) => item.searched.includes(wanted));
  // The control that has the focus keeps it.
  const focused = document.activeElement?.dataset?.key;
  const rows = found.slice(0, MOST_ITEMS).map((item) => {
    const row = document.createElement("tr");
    const name = row.appendChild(document.createElement("th"));
    name.scope = "row";
    name.appendChild(document.createElement("bdi")).textContent = item.id;
    name.appendChild(document.createElement("span")).textContent = item.text.slice(0, 200) || item.kind;
    const state = row.appendChild(document.createElement("td"));
    const isIn = included.has(nameOf(item));
    state.textContent = isIn ? "✓ in" : "✕ out";
    state.className = isIn ? "in" : "out";
    const select = row.appendChild(document.createElement("td")).appendChild(document.createElement("select"));
    select.setAttribute("aria-label", `Try ${item.id}`);
    select.dataset.key = item.key;
    for (const one of ["", ...item.tries]) select.add(new Option(one || "as it is", one, false, one === (tried.get(item.key) ?? "")));
    select.addEventListener("change", () => change(item.key, select.value));
    row.classList.toggle("tried", tried.has(item.key));
    return row;
  });
  get("items").replaceChildren(...rows);
  if (focused) rows.map((row) => row.querySelector("select")).find((one) => one.dataset.key === focused)?.focus();
  get("more").hidden = found.length <= MOST_ITEMS;
  get("more").textContent = `${count(found.length - MOST_ITEMS)} more: the filter finds them.`;
}

/** Saves a text as a file. */
function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// The slider has 1,000 steps of equal ratio, because budgets differ by orders of magnitude.
const toBudget = (step) => Math.max(1, Math.round(data.largest_budget ** (step / 1000)));
const toStep = (budget) => Math.round((Math.log(Math.max(budget, 1)) / Math.log(Math.max(data.largest_budget, 2))) * 1000);

async function main() {
  const core = await load();
  const tried = new Map();
  const [budget, slider, model, options] = ["budget", "slider", "model", "options"].map(get);
  let [plan, manager, items, before, included, timer] = [];
  // Another model has another budget, unless a budget was chosen.
  let hasBudget = false;

  const reset = () => {
    tried.clear();
    hasBudget = false;
    [budget.value, model.value, options.value] = [data.budget, data.model, data.options];
  };
  const show = () => plan && list(items, included, tried, (key, value) => {
    if (value) tried.set(key, value);
    else tried.delete(key);
    later();
  });
  const fail = (error) => {
    get("fault").textContent = error.message;
    get("fault").hidden = false;
  };
  const later = () => {
    clearTimeout(timer);
    document.body.classList.add("stale");
    timer = setTimeout(replan, PATIENCE);
  };
  /** Plans with the changes. After a mistake the last plan stays, and the page says what is wrong. */
  function replan() {
    clearTimeout(timer);
    let made;
    try {
      const tokens = Number(budget.value);
      if (!Number.isSafeInteger(tokens) || tokens < 1) throw new Error("the prompt budget: expected a number of tokens, 1 or more");
      const started = performance.now();
      made = managerOf(core, model.value.trim(), options.value);
      const next = made.planSession("session.json", sessionWith(items ?? [], tried, hasBudget ? tokens : undefined));
      const spent = performance.now() - started;
      plan?.free();
      manager?.free();
      [plan, manager, made] = [next, made, undefined];
      items ??= findItems(core, plan);
      included = includedIn(plan);
      before ??= included;
      budget.value = plan.budget;
      slider.value = toStep(plan.budget);
      showPage(plan.html(data.redact, items.length <= data.most_explained));
      const over = plan.isOverflow ? ", over its budget" : "";
      get("status").textContent = `${count(plan.tokens)} of ${count(plan.budget)} tokens${over}, planned in ${Math.ceil(spent)} ms`;
      get("status").dataset.fingerprint = plan.fingerprint;
      get("changes").textContent = difference(before, included);
      get("fault").hidden = true;
      document.body.classList.remove("stale");
      show();
      return true;
    } catch (error) {
      fail(error);
      try {
        made?.free();
      } catch {
        // A manager that failed in the middle of a plan cannot be freed.
      }
      return false;
    }
  }

  get("known").replaceChildren(...core.models().map((one) => new Option(one.name)));
  reset();
  replan();
  slider.addEventListener("input", () => { [hasBudget, budget.value] = [true, toBudget(Number(slider.value))]; later(); });
  budget.addEventListener("input", () => { [hasBudget, slider.value] = [true, toStep(Number(budget.value))]; later(); });
  for (const field of [model, options]) field.addEventListener("input", later);
  get("filter").addEventListener("input", show);
  get("reset").addEventListener("click", () => { reset(); replan(); });
  // Saves the changes as they are now. With a mistake in them, nothing is saved.
  get("save").addEventListener("click", () => { if (replan()) save("session.json", plan.sessionJSON(data.redact)); });
}

main().catch((error) => {
  get("fault").textContent = `The planner cannot be loaded: ${error.message}`;
  get("fault").hidden = false;
  get("status").textContent = "";
});
