"use strict";
(() => {
  const filter = document.getElementById("filter");
  const field = document.getElementById("words");
  const count = document.getElementById("count");
  const open = document.getElementById("open");
  const rows = Array.from(document.querySelectorAll("li.item"));
  const buttons = Array.from(filter.querySelectorAll("button[data-key]"));
  const chosen = { state: "", section: "" };
  const texts = new Map();

  // Texts are read when somebody searches: a page may hold thousands of them.
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const fits = (row, words) =>
    Object.entries(chosen).every(([key, value]) => !value || row.dataset[key] === value) &&
    words.every((word) => textOf(row).includes(word));

  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fits(row, words);
      if (!row.hidden) shown += 1;
    }
    const number = (n) => n.toLocaleString("en-US");
    count.textContent = `${number(shown)} of ${number(rows.length)} rows`;
  };

  field.addEventListener("input", apply);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      chosen[button.dataset.key] = button.dataset.value;
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
  filter.hidden = false;
})();
