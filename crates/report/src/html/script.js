"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const { kinds, items, rank } = data;
  const number = (n) => n.toLocaleString("en-US");
  const SVG = "http://www.w3.org/2000/svg";

  const make = (name, classes, text) => {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const draw = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const swatch = (kind) => {
    const made = draw("svg", { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" });
    made.append(draw("rect", { class: `fill-${kind}`, width: 1, height: 1 }));
    return made;
  };

  // ---- What a prompt holds. -----------------------------------------------------------------------------------------

  // Applies what enters and leaves to what was held: item -> [tokens, tokens of reasoning].
  const change = (held, enters, leaves) => {
    for (const item of leaves) held.delete(item);
    for (let at = 0; at < enters.length; at += 3) held.set(enters[at], [enters[at + 1], enters[at + 2]]);
    return held;
  };
  // The state at a place of a list whose entries say what changes from one to the next.
  const cursor = (entries) => {
    let at = -1;
    let held = new Map();
    return (to) => {
      if (to < at) [at, held] = [-1, new Map()];
      while (at < to) {
        at += 1;
        change(held, entries[at].enters, entries[at].leaves);
      }
      return held;
    };
  };
  const now = { ...data.now, held: change(new Map(), data.now.enters, []) };
  const steps = data.budgets
    ? data.budgets.steps.map(([from, total, mark, overhead, sections, enters, leaves]) => ({ from, total, mark, overhead, sections, enters, leaves }))
    : [];
  const heldAtStep = cursor(steps);
  const heldAtPrompt = cursor(data.prompts);
  // The last step that begins at or below a budget.
  const stepOf = (budget) => {
    let [low, high] = [0, steps.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (steps[middle].from <= budget) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const atBudget = (budget) => {
    const at = stepOf(budget);
    const { total, mark, overhead, sections } = steps[at];
    // Nothing is kept for a reply of a budget that is named: it does not follow from a context length.
    return { budget, reply: 0, total, mark, overhead, sections, held: heldAtStep(at) };
  };

  // Tokens by kind, the largest first; what merging messages saves is taken from the largest.
  const byKind = (view) => {
    const sums = new Map();
    const add = (kind, tokens) => sums.set(kind, (sums.get(kind) || 0) + tokens);
    for (const [item, [tokens, thought]] of view.held) {
      add(items[item][1], tokens - thought);
      if (thought) add(data.reasoning, thought);
    }
    for (const [kind, , tokens] of view.overhead) add(kind, tokens);
    let saved = 0;
    for (const tokens of sums.values()) saved += Math.max(0, -tokens);
    const sorted = [...sums].filter(([, tokens]) => tokens > 0);
    sorted.sort((a, b) => b[1] - a[1] || kinds[a[0]][3] - kinds[b[0]][3]);
    for (const one of sorted) {
      const taken = Math.min(saved, one[1]);
      one[1] -= taken;
      saved -= taken;
    }
    return sorted.filter(([, tokens]) => tokens > 0);
  };

  // The same with all tool results as one kind, and all documents.
  const byGroup = (view) => {
    const sums = new Map();
    for (const [kind, tokens] of byKind(view)) sums.set(kinds[kind][0], (sums.get(kinds[kind][0]) || 0) + tokens);
    const place = (group) => Math.min(...kinds.filter((kind) => kind[0] === group).map((kind) => kind[3]));
    return [...sums].sort((a, b) => b[1] - a[1] || place(a[0]) - place(b[0]));
  };

  // Whole numbers by the largest remainders.
  const remainders = (parts, cells) => {
    const whole = Math.max(1, parts.reduce((sum, part) => sum + part, 0));
    const divided = parts.map((part) => Math.floor((part * cells) / whole));
    const order = parts.map((_, at) => at).filter((at) => parts[at] > 0);
    const left = (at) => (parts[at] * cells) % whole;
    order.sort((a, b) => left(b) - left(a) || a - b);
    const missing = cells - divided.reduce((sum, one) => sum + one, 0);
    for (const at of order.slice(0, missing)) divided[at] += 1;
    return divided;
  };
  // Cells; every part has one.
  const cellsOf = (parts, cells) => {
    const divided = remainders(parts, cells);
    parts.forEach((part, at) => {
      if (part === 0 || divided[at] > 0) return;
      const most = divided.indexOf(Math.max(...divided));
      if (divided[most] > 1) {
        divided[most] -= 1;
        divided[at] = 1;
      }
    });
    return divided;
  };
  const percent = (part, whole) => {
    if (whole === 0) return "0 %";
    const down = Math.floor((part * 100) / whole);
    return down === 0 && part > 0 ? "<1 %" : `${number(down)} %`;
  };
  // Of all parts of a whole; they sum to 100.
  const percentages = (parts, whole) => {
    const rest = Math.max(0, whole - parts.reduce((sum, part) => sum + part, 0));
    return remainders([...parts, rest], 100).slice(0, -1).map((one, at) => (one === 0 && parts[at] > 0 ? "<1 %" : `${one} %`));
  };

  // ---- Rows. --------------------------------------------------------------------------------------------------------

  const rows = Array.from(document.querySelectorAll("li.item"));
  const rowOf = new Map(rows.filter((row) => row.dataset.item).map((row) => [Number(row.dataset.item), row]));
  const runs = rows.filter((row) => row.dataset.state === "out");
  const insideOf = new Map();
  for (const one of data.inside) {
    if (!insideOf.has(one.run)) insideOf.set(one.run, []);
    insideOf.get(one.run).push(one);
  }
  for (const [run, inside] of insideOf) runs[run].inside = inside.map((one) => one.item);

  // Budgets at which each item is in.
  const intervals = new Map();
  steps.forEach((step, at) => {
    for (const item of step.leaves) intervals.get(item).at(-1)[1] = step.from - 1;
    for (let one = 0; one < step.enters.length; one += 3) {
      const item = step.enters[one];
      if (!intervals.has(item)) intervals.set(item, []);
      const own = intervals.get(item);
      if (own.length === 0 || own.at(-1)[1] !== null) own.push([step.from, null]);
    }
    if (at + 1 === steps.length) for (const own of intervals.values()) own.at(-1)[1] ??= data.budgets.to;
  });
  const [low, high] = data.budgets ? [data.budgets.from, data.budgets.until] : [0, 1];
  const place = (budget) => Math.max(0, Math.min(1000, ((budget - low) * 1000) / Math.max(1, high - low)));
  const said = (item) => {
    const own = intervals.get(item) || [];
    if (own.length === 0) return `at none of the budgets from ${number(steps[0].from)} to ${number(data.budgets.to)}`;
    const named = own.slice(0, 12).map(([from, to]) => (to === data.budgets.largest ? `${number(from)} and more` : from === to ? number(from) : `${number(from)} to ${number(to)}`));
    return named.join(", ") + (own.length > 12 ? `, and ${own.length - 12} more` : "");
  };
  const lane = (row, of) => {
    if (!data.budgets) return;
    const made = make("span", "lane");
    const picture = draw("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img" });
    const title = draw("title", {});
    const several = of.length > 1;
    title.textContent = several ? `${of.length} messages: the button in this row shows each` : `in the prompt at ${said(of[0])}`;
    picture.append(title);
    const kind = several ? "overhead" : kinds[items[of[0]][1]][0];
    const seen = new Set();
    for (const item of of) {
      for (const [from, to] of intervals.get(item) || []) {
        const [x, end] = [place(from), place(to)].map(Math.round);
        if (end < 0 || x > 1000 || seen.has(`${x} ${end}`)) continue;
        seen.add(`${x} ${end}`);
        picture.append(draw("rect", { class: `fill-${kind}`, x, width: Math.max(2, end - x), height: 10 }));
      }
    }
    made.append(picture);
    row.querySelector("summary").append(made);
  };
  const largest = Math.max(1, ...[...now.held.values()].map(([tokens]) => tokens));
  const share = (row, tokens, kind) => {
    const picture = draw("svg", { class: "share", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(draw("rect", { class: `fill-${kind}`, width: Math.min(1000, Math.max(4, Math.round((tokens * 1000) / largest))), height: 10 }));
    row.querySelector(".tokens").append(picture);
  };
  for (const [item, row] of rowOf) {
    lane(row, [item]);
    const held = now.held.get(item);
    if (held) share(row, held[0], kinds[items[item][1]][0]);
  }
  for (const row of runs) if (row.inside) lane(row, row.inside);

  // What the page itself says of each row: at other budgets its numbers are others.
  const saidOf = new Map();
  const remember = (row) => saidOf.set(row, { tokens: row.querySelector(".tokens").firstChild?.data ?? "", why: row.querySelector(".why").textContent });
  rows.forEach(remember);

  // The rows of the messages inside of a run, made when somebody wants to see them.
  const unfolded = new Set();
  const tokensAnywhere = new Map();
  for (const step of steps) for (let at = 0; at < step.enters.length; at += 3) tokensAnywhere.set(step.enters[at], step.enters[at + 1]);
  const textOfPiece = (piece) => {
    const made = [];
    if (piece.what) made.push(make("p", "what", piece.what));
    if (piece.text) {
      const text = make("div", piece.code ? "text code" : "text", piece.text);
      text.dir = "auto";
      made.push(text);
    }
    if (piece.note) made.push(make("p", "note", piece.note));
    return made;
  };
  const rowInside = (one, run) => {
    const [id, kind] = items[one.item];
    const row = make("li", "item out inner");
    Object.assign(row.dataset, { state: "out", section: run.dataset.section, item: one.item });
    const details = make("details");
    const summary = make("summary");
    summary.append(make("span", "state", "✕ out"), make("bdi", "id", id));
    const tokens = tokensAnywhere.get(one.item);
    const count = make("span", "tokens", tokens === undefined ? "" : `${now.mark}${number(tokens)} `);
    if (tokens !== undefined) count.append(make("span", "unit", "tokens"));
    const what = make("span", "kind");
    what.append(swatch(kinds[kind][0]), make("bdi", "", one.kind));
    const why = make("span", "why");
    why.append(make("bdi", "", saidOf.get(run).why));
    summary.append(count, what, why);
    if (one.preview) {
      const preview = make("span", "preview", one.preview);
      preview.dir = "auto";
      summary.append(preview);
    }
    const more = make("div", "more");
    for (const piece of one.pieces) more.append(...textOfPiece(piece));
    if (data.budgets) more.append(make("p", "note", `In the prompt at ${said(one.item)}.`));
    details.append(summary, more);
    row.append(details);
    lane(row, [one.item]);
    if (tokens !== undefined) share(row, tokens, kinds[kind][0]);
    rowOf.set(one.item, row);
    remember(row);
    return row;
  };
  // The page is drawn once for all of them: each time it is, every row is looked at.
  const unfold = (these) => {
    const folded = these.filter((run) => run.inside && !unfolded.has(run));
    if (folded.length === 0) return;
    for (const run of folded) {
      unfolded.add(run);
      const made = insideOf.get(runs.indexOf(run)).map((one) => rowInside(one, run));
      for (const row of made) homes.set(row, homes.get(run));
      rows.splice(rows.indexOf(run) + 1, 0, ...made);
      run.after(...made);
    }
    show(shown);
    arrange();
  };

  // ---- Drawing a prompt. --------------------------------------------------------------------------------------------

  let shown = now;
  // True while rows stand elsewhere than in the page's own order.
  let moved = false;
  const ownLargest = Array.from($("largest").tBodies[0].rows);
  const list = (names, items_, sum, mark) => {
    const named = items_.slice(0, 8).map((item) => items[item][0]);
    const more = items_.length > 8 ? ` and ${number(items_.length - 8)} more` : "";
    return `${number(items_.length)} ${names} (${mark}${number(sum)} tokens${named.length ? `: ${named.join(", ")}${more}` : ""})`;
  };
  // What the largest items are, as the page itself says it; of others their kind and how they begin.
  const labels = new Map(ownLargest.map((row) => [row.querySelector(".large").dataset.id, row.querySelector(".unit").textContent]));
  const labelOf = (item) => {
    const row = rowOf.get(item);
    const preview = row?.querySelector(".preview")?.textContent ?? "";
    const [group, name] = kinds[items[item][1]];
    const special = ["results", "documents"].includes(group) && row;
    const kind = special ? row.querySelector(".kind bdi").textContent.split(", score ")[0] : name;
    const label = [...(preview ? `${kind}: ${preview}` : kind)];
    return label.length > 160 ? `${label.slice(0, 159).join("")}…` : label.join("");
  };
  const sectionKinds = ["system_pinned", "conversation", "rag"];
  // The card of the budget: its sections, and what is sent beside the items.
  const ownFormula = $("formula").textContent;
  const budgetCard = (view) => {
    $("given").textContent = number(view.budget);
    $("formula").textContent = view === now ? ownFormula : view.name ? `the budget of ${view.name}` : "chosen by the slider";
    const range = ([from, to]) => (from === to ? number(from) : `${number(from)} to ${number(to)}`);
    const scale = Math.max(1, ...view.sections.map(([, to, used]) => Math.max(to, used)));
    const length = (tokens) => Math.floor((tokens * 10000) / scale);
    view.sections.forEach((section, at) => {
      const [, budget, used, included, excluded] = section;
      const row = $("sections").tBodies[0].rows[at];
      const say = (name, text) => (row.querySelector(`[data-name="${name}"]`).textContent = text);
      say("budget", range(section));
      say("used", number(used));
      say("in", number(included));
      say("out", number(excluded));
      const bar = row.querySelector("svg");
      bar.setAttribute("aria-label", `${number(used)} used of ${range(section)}`);
      const parts = [[sectionKinds[at], 0, used], ["free", used, Math.max(0, budget - used)]];
      const drawn = parts.filter(([, , tokens]) => tokens > 0).map(([kind, from, tokens]) => {
        const x = length(from);
        return draw("rect", { class: `fill-${kind}`, x, width: Math.max(25, length(from + tokens) - x), height: 100 });
      });
      const over = used > budget ? [draw("line", { x1: length(budget), x2: length(budget), y1: 0, y2: 100 })] : [];
      bar.replaceChildren(...drawn, ...over);
    });
    $("held").textContent = number(view.sections.reduce((sum, section) => sum + section[3], 0));
    $("left-out").textContent = number(view.sections.reduce((sum, section) => sum + section[4], 0));
    const line = (name, tokens, certainty, sum) => {
      const row = make("tr", sum ? "sum" : "");
      const head = make("th", "", name);
      head.scope = "row";
      row.append(head, make("td", "", tokens), make("td", "", certainty));
      return row;
    };
    const beside = view.overhead.reduce((sum, [, , tokens]) => sum + tokens, 0);
    const held = [...view.held.values()].reduce((sum, [tokens]) => sum + tokens, 0);
    $("ledger").tBodies[0].replaceChildren(
      ...view.overhead.map(([, name, tokens, certainty]) => line(name, number(tokens), certainty, false)),
      line("overhead", number(beside), "", true),
      line("items", number(held), "", false),
      line("prompt", view.mark + number(view.total), "", true),
    );
  };
  const show = (view) => {
    shown = view;
    const { held } = view;
    const free = Math.max(0, view.budget - view.total);
    const over = view.total - view.budget;
    $("total").textContent = view.mark + number(view.total);
    $("of").textContent = number(view.budget);
    // The figures of the plan alone are not those of another prompt.
    document.body.classList.toggle("other", view !== now);
    $("percent").textContent = percent(view.total, view.budget);
    $("says").textContent = over > 0 ? `⚠ over budget by ${number(over)}` : `fits, ${number(free)} free`;
    $("overview").classList.toggle("alarm", over > 0);
    $("view").textContent = view === now ? "Prompt" : view.name ? view.name.replace("prompt", "Prompt") : "Prompt at another budget";
    // Not part of this prompt's figures.
    if ($("advice")) $("advice").hidden = view !== now;
    const groups = byGroup(view);
    const parts = [...groups.map(([, tokens]) => tokens), free, view.reply];
    const names = [...groups.map(([kind]) => kind), "free", "reply"];
    const cells = cellsOf(parts, data.cells).flatMap((count, at) => Array(count).fill(names[at]));
    document.querySelectorAll("#grid rect").forEach((cell, at) => cell.setAttribute("class", `fill-${cells[at]}`));
    const plain = { free: ["·", "free"], reply: ["░", "reply reserve"] };
    const shares = percentages(groups.map(([, tokens]) => tokens), view.total);
    const known = (kind) => kinds.find((one) => one[0] === kind);
    $("legend").replaceChildren(
      ...names.filter((_, at) => parts[at] > 0).map((kind) => {
        const tokens = parts[names.indexOf(kind)];
        const [sign, name] = plain[kind] || [known(kind)[2], known(kind)[1].split(": ")[0]];
        const one = make("li");
        one.append(swatch(kind), make("span", "sign", sign), ` ${name} `, make("b", "", number(tokens)), " ", make("span", "unit", plain[kind] ? "" : shares[names.indexOf(kind)]));
        return one;
      }),
    );
    const table = byKind(view);
    const scale = table.length ? table[0][1] : 1;
    const rest = table.slice(12);
    const folded = rest.reduce((sum, [, own]) => sum + own, 0);
    const percents = percentages([...table.slice(0, 12).map(([, tokens]) => tokens), folded], view.total);
    const line = ([kind, tokens], at) => {
      const row = make("tr");
      const name = make("th");
      name.scope = "row";
      name.append(swatch(kinds[kind][0]), make("bdi", "", kinds[kind][1]));
      const bar = draw("svg", { class: "bar", viewBox: "0 0 10000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(draw("rect", { class: `fill-${kinds[kind][0]}`, width: Math.max(25, Math.floor((tokens * 10000) / scale)), height: 100 }));
      const drawn = make("td", "drawn");
      drawn.append(bar);
      row.append(name, make("td", "", number(tokens)), make("td", "", percents[at]), drawn);
      return row;
    };
    const further = () => {
      const row = make("tr");
      const name = make("th");
      name.scope = "row";
      name.append(swatch("overhead"), make("bdi", "", `${number(rest.length)} kinds more`));
      row.append(name, make("td", "", number(folded)), make("td", "", percents.at(-1)), make("td", "drawn"));
      return row;
    };
    $("kinds").tBodies[0].replaceChildren(...table.slice(0, 12).map(line), ...(rest.length > 0 ? [further()] : []));
    const top = [...held].sort((a, b) => b[1][0] - a[1][0] || rank[a[0]] - rank[b[0]]).slice(0, 5);
    const large = ([item, [tokens]]) => {
      const row = make("tr");
      const name = make("th");
      name.scope = "row";
      const id = make("bdi", "large", items[item][0]);
      id.addEventListener("click", () => goTo(items[item][0]));
      const what = make("span", "unit", labels.get(items[item][0]) ?? labelOf(item));
      what.dir = "auto";
      name.append(swatch(kinds[items[item][1]][0]), id, " ", what);
      row.append(name, make("td", "", view.mark + number(tokens)), make("td", "", percentages([tokens], view.total)[0]));
      return row;
    };
    $("largest").tBodies[0].replaceChildren(...(view === now ? ownLargest : top.map(large)));
    const came = [...held.keys()].filter((item) => !now.held.has(item)).sort((a, b) => rank[a] - rank[b]);
    const left = [...now.held.keys()].filter((item) => !held.has(item)).sort((a, b) => rank[a] - rank[b]);
    const sum = (all, from) => all.reduce((tokens, item) => tokens + from.get(item)[0], 0);
    const than = view.name ? "Compared with the newest prompt" : `Compared with ${number(now.budget)}`;
    $("changes").textContent =
      view === now ? "" : `${than}: ${list("dropped", left, sum(left, now.held), now.mark)}; ${list("added", came, sum(came, held), view.mark)}.`;
    budgetCard(view);
    for (const [item, row] of rowOf) {
      const [is, was] = [held.has(item), now.held.has(item)];
      row.dataset.state = is ? "in" : "out";
      row.classList.toggle("in", is);
      row.classList.toggle("out", !is);
      row.classList.toggle("came", is && !was);
      row.classList.toggle("left", was && !is);
      row.querySelector(".state").textContent = is ? (was ? "✓ in" : "+ added") : was ? "− dropped" : "✕ out";
      const own = saidOf.get(row);
      const count = row.querySelector(".tokens").firstChild;
      if (count) count.data = view !== now && is ? `${view.mark}${number(held.get(item)[0])} ` : own.tokens;
      const at = view.name ? "this prompt" : "the prompt at this budget";
      // What a budget drops has another reason at another budget; a TTL or a policy has not.
      const stays = view === now || (is && was) || (!is && !was && !own.why.startsWith("dropped"));
      row.querySelector(".why bdi").textContent = stays ? own.why : is ? `in ${at}` : `not in ${at}`;
    }
    for (const run of runs) {
      if (!run.inside) continue;
      const count = run.inside.filter((item) => held.has(item)).length;
      run.classList.toggle("came", count > 0);
      run.querySelector(".state").textContent = count > 0 ? `+ ${number(count)} in` : "✕ out";
    }
    for (const run of runs) {
      if (run.dataset.item) continue;
      const count = (run.inside ?? []).filter((item) => held.has(item)).length;
      const said = count > 0 ? `${number(count)} of its newest messages in the prompt` : run.inside ? "not in the prompt" : "";
      run.querySelector(".why bdi").textContent = view === now || (count === 0 && !saidOf.get(run).why.startsWith("dropped")) ? saidOf.get(run).why : said;
    }
    texts.clear();
    if (view !== now || moved) arrange();
    moved = view !== now;
    if (data.budgets) {
      document.documentElement.style.setProperty("--budget", `${place(view.budget) / 10}%`);
      $("budget").value = String(view.budget);
      $("range").value = String(Math.max(low, Math.min(high, view.budget)));
      $("range").setAttribute("aria-valuetext", `${number(view.budget)} tokens`);
    }
    apply();
  };

  // ---- The slider. --------------------------------------------------------------------------------------------------

  const move = (budget) => {
    const to = Math.max(steps[0].from, Math.min(data.budgets.to, Math.round(budget) || now.budget));
    choose(data.prompts.length - 1, false);
    show(to === now.budget ? now : atBudget(to));
  };
  if (data.budgets) {
    const [field, range] = [$("budget"), $("range")];
    Object.assign(range, { min: low, max: high, step: 1, value: now.budget });
    Object.assign(field, { min: steps[0].from, max: data.budgets.to, value: now.budget });
    range.addEventListener("input", () => move(Number(range.value)));
    field.addEventListener("change", () => move(Number(field.value)));
    $("fewer").addEventListener("click", () => {
      const at = stepOf(shown.budget);
      move(at > 0 ? steps[at].from - 1 : steps[0].from);
    });
    $("more").addEventListener("click", () => {
      const at = stepOf(shown.budget);
      if (at + 1 < steps.length) move(steps[at + 1].from);
    });
    $("back").addEventListener("click", () => move(now.budget));
    $("slider").hidden = false;
    if (data.budgets.to < data.budgets.largest) {
      const said = `The slider ends at ${number(data.budgets.to)}: up to the model's ${number(data.budgets.largest)} there are more changes than this page contains.`;
      $("slider").append(make("p", "note", said));
    }
    $("axis").append(make("span", "", `in the prompt at budgets from ${number(low)}`), make("span", "", `to ${number(high)}`));
    $("axis").hidden = false;
  }

  // ---- The timeline. ------------------------------------------------------------------------------------------------

  const hits = Array.from(document.querySelectorAll(".hit"));
  let chosen = hits.length - 1;
  const choose = (at, draws) => {
    if (hits.length === 0) return;
    chosen = Math.max(0, Math.min(hits.length - 1, at));
    hits.forEach((hit, other) => hit.classList.toggle("now", other === chosen));
    $("prompt").textContent = hits[chosen].querySelector("title").textContent;
    $("earlier").disabled = chosen === 0;
    $("later").disabled = chosen === hits.length - 1;
    if (!draws) return;
    const one = data.prompts[chosen];
    show(chosen === hits.length - 1 ? now : { ...one, held: new Map(heldAtPrompt(chosen)) });
  };
  if (hits.length > 0) {
    hits.forEach((hit, at) => hit.addEventListener("click", () => choose(at, true)));
    $("earlier").addEventListener("click", () => choose(chosen - 1, true));
    $("later").addEventListener("click", () => choose(chosen + 1, true));
    $("newest").addEventListener("click", () => choose(hits.length - 1, true));
    $("chosen").hidden = false;
  }

  // ---- Sorting and filtering. ---------------------------------------------------------------------------------------

  const filter = $("filter");
  const field = $("words");
  const count = $("count");
  const open = $("open");
  const buttons = Array.from(filter.querySelectorAll("button[data-key]"));
  const chosenOf = { state: "", section: "" };
  const texts = new Map();

  // Texts are read when somebody searches: a page may hold thousands of them.
  const textOf = (row) => {
    if (!texts.has(row)) {
      // Not the budgets of its lane.
      const lane = row.querySelector(".lane")?.textContent ?? "";
      texts.set(row, row.textContent.replace(lane, " ").toLowerCase());
    }
    return texts.get(row);
  };
  const fits = (row, words) =>
    Object.entries(chosenOf).every(([key, value]) => !value || row.dataset[key] === value) &&
    words.every((word) => textOf(row).includes(word));

  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let seen = 0;
    for (const row of rows) {
      row.hidden = !fits(row, words);
      if (!row.hidden) seen += 1;
    }
    count.textContent = `${number(seen)} of ${number(rows.length)} rows`;
  };

  // Rows go back to where they stand without an order: before the row that follows them there. At another budget those that are
  // in stand among what is in, in the order of the session.
  const homes = new Map(rows.map((row) => [row, row.parentElement]));
  const arrange = () => {
    const by = $("sort").value;
    const sorted = by !== "";
    $("sorted").hidden = !sorted;
    $("listed").hidden = sorted;
    const of = (row) => Number(row.dataset.item ?? -1);
    const tokens = (row) => (shown.held.get(of(row)) || now.held.get(of(row)) || [Number(row.dataset.tokens ?? tokensAnywhere.get(of(row)) ?? 0)])[0];
    // A run stands where the first of its messages does.
    const inSession = (row) => (row.dataset.item ? rank[of(row)] : row.inside ? rank[row.inside[0]] - 0.5 : items.length);
    const keys = {
      session: (row) => [inSession(row)],
      tokens: (row) => [-tokens(row), inSession(row)],
      kind: (row) => [row.dataset.item ? kinds[items[of(row)][1]][3] : kinds.length, inSession(row)],
      score: (row) => [-(row.dataset.item ? (items[of(row)][3] ?? -Infinity) : -Infinity), inSession(row)],
      enters: (row) => [(intervals.get(of(row)) || [[Infinity]])[0][0], inSession(row)],
    };
    if (!sorted && shown !== now) {
      const order = rows.map((row, at) => [row, inSession(row), at]).sort((a, b) => a[1] - b[1] || a[2] - b[2]);
      for (const [row] of order) $(row.dataset.item && row.dataset.state === "in" ? "in" : "out").append(row);
      return;
    }
    if (!sorted) {
      for (const row of rows) homes.get(row).append(row);
      return;
    }
    const key = new Map(rows.map((row) => [row, keys[by](row)]));
    const compared = (a, b) => {
      for (let at = 0; at < a.length; at += 1) if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
      return 0;
    };
    const order = rows.map((row, at) => [row, at]).sort((a, b) => compared(key.get(a[0]), key.get(b[0])) || a[1] - b[1]);
    $("sorted").querySelector("ol").append(...order.map(([row]) => row));
  };

  field.addEventListener("input", apply);
  $("sort").addEventListener("change", arrange);
  if ($("runs")) $("runs").addEventListener("click", () => unfold(runs));
  for (const run of runs) {
    if (!run.inside) continue;
    const button = make("button", "", `show its newest messages: ${number(run.inside.length)}`);
    button.type = "button";
    button.addEventListener("click", () => {
      unfold([run]);
      button.disabled = true;
    });
    run.querySelector(".more").prepend(button);
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      chosenOf[button.dataset.key] = button.dataset.value;
      for (const other of buttons.filter((other) => other.dataset.key === button.dataset.key)) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      apply();
    });
  }
  open.addEventListener("click", () => {
    const all = rows.filter((row) => !row.hidden).map((row) => row.querySelector("details"));
    const closed = all.some((details) => !details.open);
    for (const details of all) details.open = closed;
    open.textContent = closed ? "collapse all" : "expand all";
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape" && event.target === field && field.value) {
      field.value = "";
      apply();
    }
  });

  // ---- Links to an item: #m195. -------------------------------------------------------------------------------------

  const goTo = (id) => {
    const at = items.findIndex((item) => item[0] === id);
    if (at < 0) return;
    if (!rowOf.has(at)) unfold(runs.filter((run) => run.inside?.includes(at)));
    const row = rowOf.get(at);
    if (!row) return;
    row.hidden = false;
    row.querySelector("details").open = true;
    row.scrollIntoView({ block: "center" });
    row.querySelector("summary").focus({ preventScroll: true });
  };
  const linked = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      // What is no encoding is the id itself.
    }
    if (id && id !== "items") goTo(id);
  };
  addEventListener("hashchange", linked);
  // A row that is opened is what the address names.
  $("items").addEventListener("click", (event) => {
    const row = event.target.closest("summary")?.closest("li.item");
    if (!row?.dataset.item || row.querySelector("details").open) return;
    history.replaceState(null, "", `#${encodeURIComponent(items[Number(row.dataset.item)][0])}`);
  });
  for (const name of document.querySelectorAll(".large")) name.addEventListener("click", () => goTo(name.dataset.id));

  filter.hidden = false;
  if (data.budgets) show(now);
  choose(hits.length - 1, false);
  linked();
})();
