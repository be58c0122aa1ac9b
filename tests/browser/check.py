"""Open pages of plans in a browser and check that they work.

    python3 -m venv target/browser
    target/browser/bin/pip install -r tests/browser/requirements.txt
    target/browser/bin/python tests/browser/check.py target/debug/plan-inspect
    target/browser/bin/python tests/browser/check.py target/debug/plan-inspect --shots FOLDER
    target/browser/bin/python tests/browser/check.py --self-test

The argument is the binary. It makes pages of each session in `examples/` (complete, with a
small budget, and redacted), and of a hostile and a long session created here. Each page is
opened as a file in headless Chromium, 390 and 1280 pixels wide, in light and dark, with
and without JavaScript:

* no message on the console, no error, no dialog, no request for anything but the file;
* nothing extends beyond the page or its card, with every row closed and with every row open;
* typing and the buttons filter, and the count shows the number of remaining rows;
* Tab reaches the filter and the rows, `/` focuses the filter, Enter and Space open a row,
  and the focused element is visible;
* text has the contrast of WCAG AA (4.5 to 1, 3 to 1 where it is large);
* a dark page is dark; without JavaScript every row is shown and the filter is not;
* no session text becomes an element;
* the slider on the pages of `--pages` shows every number of planning at each budget;
  on each example it shows the page of `plan-inspect --budget`; each prompt of a timeline,
  clicked, has the total that `replay` reports;
* sorting keeps every row, a link opens its row, runs unfold.

`--pages` is the folder that the test `write_slider_pages_with_expected_plans` writes if
`CONTEXT_WINDOW_PAGES` names it. `--shots` writes pictures of the pages. `--self-test` breaks
a page in each of these ways and checks that this is found. Exit: 0 all passed, 1 something
is wrong, 2 bad usage, no browser or missing packages.

The slider is moved to the budgets on both sides of changes, and to some between; the long
session has hundreds of rows. With `FULL=1` in the environment it is moved to every budget,
and the long session has thousands.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import ARGUMENTS, CHROMIUM, give_up, start, watch

ROOT = Path(__file__).resolve().parents[2]
# Everything at every budget, and a page of thousands of rows.
FULL = os.environ.get("FULL") == "1"
# Messages per side in the long session, changes that a slider is moved over, budgets per example.
TURNS, CHANGES, PLACES = (1500, sys.maxsize, 9) if FULL else (300, 12, 2)
# Number of rows above which a page lays out only the visible ones.
MANY = 500
# Milliseconds that a page has for an action: many, because a machine may be slow.
PATIENCE = 60_000
PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

HOSTILE = [
    "<script>alert('a')</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    '</bdi></summary></details></li><iframe src="https://example.com"></iframe>',
    "<a href='javascript:alert(1)'>a</a><svg onload=alert(1)>",
    "\u202edesrever\u202c \u2066x\u2069 \u200b\ufeff\u0000\u001b[31m",
    "<!-- {{ 7*7 }} {% raw %} ]]> &lt;b&gt;",
    "x" * 3000,
    "日本語" * 700,
    "שלום עולם " * 50,
]

# The elements that the page's template writes.
ELEMENTS = set(
    "a b bdi body button code dd details div dl dt footer h1 h2 h3 head header html input kbd "
    "label li line main meta ol option p path rect script section select span strong style summary svg table "
    "tbody td th thead title tr ul".split()
)

ELEMENTS_USED = "() => [...new Set([...document.querySelectorAll('*')].map(e => e.localName))]"
HANDLERS = """() => [...document.querySelectorAll(':not(html)')].flatMap(e => [...e.attributes])
    .map(a => a.name).filter(name => name.startsWith('on') || name === 'src' || name === 'style')"""
# Reads the row, not its content, which may not be laid out while it is not visible.
SHOWN = """() => [...document.querySelectorAll('li.item')]
    .filter(row => row.getBoundingClientRect().height > 10).length"""
POKING = """() => {
    const wide = document.scrollingElement.scrollWidth;
    const out = wide > innerWidth ? [`the page is ${wide} wide`] : [];
    for (const e of [...document.querySelectorAll('body *')].slice(0, 6000)) {
        // What is cut off with an ellipsis does not show behind its cell.
        if (e.closest('.scroll') || e.closest('svg') || e.matches('.skip, .fills th *, .kind *')) continue;
        if (e.closest('thead') && getComputedStyle(e.closest('thead')).position === 'absolute') continue;
        const box = e.getBoundingClientRect();
        const card = e.closest('.card, .items')?.getBoundingClientRect() ?? { left: 0, right: innerWidth };
        // A text that is not broken shows behind its own box, over what stands beside it.
        const over = e.matches('.state') && e.scrollWidth > e.clientWidth + 1;
        const outside = box.right > card.right + 1 || box.left < card.left - 1;
        if (box.width && (over || outside)) out.push(`${e.localName}.${e.className}`);
    }
    return out.slice(0, 5);
}"""
# Everything that is drawn, at every budget, set like by typing a number.
AT_BUDGETS = """budgets => {
    const runs = document.getElementById('runs');
    if (runs) runs.click();
    const field = document.getElementById('budget');
    const number = text => Number(text.replace(/[^0-9]/g, ''));
    return budgets.map(budget => {
        field.value = budget;
        field.dispatchEvent(new Event('change'));
        const rows = [...document.querySelectorAll('li.item[data-state=in] .id')].map(e => e.textContent);
        const kinds = [...document.querySelectorAll('#kinds tr')]
            .map(row => [row.querySelector('th').textContent, number(row.cells[1].textContent)]);
        const cells = new Set([...document.querySelectorAll('#grid rect')].map(e => e.getAttribute('class')));
        const legend = document.querySelectorAll('#legend li').length;
        return [budget, number(document.getElementById('total').textContent), rows.sort(), kinds,
            number(document.getElementById('of').textContent), cells.size === legend, (FIGURES)()];
    });
}"""
# Every number of the prompt that a page shows, as text; a section's budget may be a range.
FIGURES = """() => {
    const text = id => document.getElementById(id).textContent.trim();
    const cells = row => [...row.cells].map(cell => cell.textContent.trim());
    const table = id => [...document.querySelectorAll(`#${id} tbody tr`)].map(cells);
    const rows = [...document.querySelectorAll('li.item[data-state=in][data-item]')]
        .map(row => [row.querySelector('.id').textContent, row.querySelector('.tokens').textContent.trim()]);
    const stale = [...document.querySelectorAll('.own')].filter(e => e.offsetParent !== null).map(e => e.className);
    // A reason of a row that is out has numbers of its own budget.
    const why = [...document.querySelectorAll('li.item[data-state=out] .why')].map(e => e.textContent)
        .filter(said => said.startsWith('dropped'));
    return {
        total: text('total'), of: text('of'), percent: text('percent'), says: text('says'), given: text('given'),
        held: text('held'), out: text('left-out'), title: document.title + document.querySelector('h1').textContent,
        legend: [...document.querySelectorAll('#legend li')].map(e => e.textContent.trim()),
        kinds: table('kinds'), sections: table('sections'), ledger: table('ledger'), largest: table('largest'),
        conversation: document.querySelector('.figures .figure').textContent, rows: rows.sort(), stale, why,
        first: [...document.querySelectorAll('#in > li')].map(e => e.dataset.state).filter(state => state !== 'in').length,
    };
}"""
AT_BUDGETS = AT_BUDGETS.replace("FIGURES", FIGURES)
CONTRAST = """() => {
    const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
    const light = colour => {
        const [r, g, b] = numbers(colour).map(c => c / 255)
            .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = e => {
        for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (numbers(colour)[3] !== 0) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const low = new Map();
    for (const e of [...document.querySelectorAll('body *')].slice(0, 6000)) {
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || e.closest('script, [hidden]') || !e.getClientRects().length) continue;
        const style = getComputedStyle(e);
        const [a, b] = [light(style.color), light(behind(e))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
        if (ratio < (large ? 3 : 4.5)) low.set(`${e.localName}.${e.className}`, ratio.toFixed(2));
    }
    return [...low].map(one => one.join(' ')).slice(0, 5);
}"""


class Checker:
    """One browser, and the faults of the pages that it opened."""

    def __init__(self, browser):
        self.browser = browser
        self.wrong = []
        self.name = self.url = ""
        self.patience = PATIENCE
        self.opened = {}

    def expect(self, holds, what):
        if not holds:
            self.complain(what)

    def complain(self, what):
        self.wrong.append(f"{self.name}: {what}")

    def open(self, path, viewport, scheme="light", script=True):
        """Opens a page and records its messages. A file replaces the one before of the same width."""
        key = (viewport["width"], script)
        if key not in self.opened:
            self.opened[key] = self.listen(viewport, script)
        page = self.opened[key]
        page.set_default_timeout(self.patience)
        page.emulate_media(color_scheme=scheme)
        self.name = f"{path.stem}, {viewport['width']}{'' if script else ', no script'}"
        self.url = path.as_uri()
        page.goto(self.url)
        return page

    def listen(self, viewport, script):
        """Returns an empty page in a new context, with its messages recorded."""
        page = self.browser.new_context(viewport=viewport, java_script_enabled=script).new_page()
        watch(page, self.complain)
        page.on("request", lambda one: one.url == self.url or self.complain(f"a request: {one.url}"))
        return page

    def page(self, path, rows):
        """Checks everything of one page with this number of rows."""
        for _ in self.steps(path, rows):
            pass

    def steps(self, path, rows):
        """Runs the same checks step by step."""
        yield self.looks(self.open(path, PHONE))
        page = self.open(path, WIDE)
        self.expect(page.locator("li.item").count() == rows, f"not {rows} rows")
        lazy = page.locator("#items.many").count() > 0
        self.expect(lazy == (rows > MANY), f"{rows} rows, out of sight {'not ' * lazy}laid out")
        # Tab begins at the top of a page without earlier input.
        yield self.keys(page, rows)
        yield self.filters(page, rows)
        yield self.sorts(page)
        # With the rows that the script has created by now.
        yield self.looks(page)
        yield self.static(self.open(path, PHONE, script=False), rows)

    def static(self, page, rows):
        """Opens a page with its scripts off; the browser can still examine it."""
        visible = page.evaluate(SHOWN)
        self.expect(visible == rows, f"{visible} of {rows} rows are there")
        self.expect(not page.locator("#filter").is_visible(), "a filter that does nothing")

    def sorts(self, page):
        """Checks sorting, runs, and a link to an item."""
        there = "() => [...document.querySelectorAll('li.item .id')].map(e => e.textContent)"
        if page.locator("#runs").count():
            page.locator("#runs").click()
        before = page.evaluate(there)
        for by in ("session", "tokens", "kind", "score", "enters"):
            page.select_option("#sort", by)
            self.expect(sorted(page.evaluate(there)) == sorted(before), f"sorted by {by}: other rows")
        page.select_option("#sort", "tokens")
        tokens = page.evaluate(
            "() => [...document.querySelectorAll('li.item.in .tokens')].map(e => Number(e.textContent.replace(/[^0-9]/g, '')))"
        )
        self.expect(tokens == sorted(tokens, reverse=True), f"not sorted by tokens: {tokens[:9]}")
        page.select_option("#sort", "")
        self.expect(sorted(page.evaluate(there)) == sorted(before), "not all rows are back")
        items = page.evaluate("() => [...document.querySelectorAll('li.item[data-item] .id')].map(e => e.textContent)")
        if not items:
            return
        page.evaluate("id => { location.hash = '#' + encodeURIComponent(id); }", items[-1])
        page.wait_for_function("() => document.querySelector('li.item details[open]')")
        opened = page.locator("li.item > details[open] .id").first.text_content()
        self.expect(opened == items[-1], f"a link to {items[-1][:40]!r} opens {opened[:40]!r}")

    def budgets(self, path, expected):
        """Compares the slider with planning at budgets."""
        page = self.open(path, WIDE)
        # Down to a budget at which most rows are dropped.
        expected = expected[::-1]
        drawn = page.evaluate(AT_BUDGETS, [one[0] for one in expected])
        poking = page.evaluate(POKING)
        self.expect(not poking, f"at {expected[-1][0]}: pokes out: {poking}")
        for (budget, total, ids, kinds, planned), (_, seen, rows, seen_kinds, of, every_kind, figures) in zip(expected, drawn):
            self.figures(budget, planned, figures)
            # Placeholders have rows only if the plan itself has them.
            made = {one for one in ids if one.startswith("synth:")}
            self.expect((total, budget) == (seen, of), f"at {budget}: {seen} of {of} tokens, planned {total}")
            self.expect(set(ids) - made == set(rows) - made, f"at {budget}: {rows}, planned {ids}")
            self.expect(sorted(map(tuple, kinds[:12])) == sorted(map(tuple, seen_kinds)) or len(kinds) > 12,
                        f"at {budget}: {seen_kinds}, planned {kinds}")
            self.expect(every_kind, f"at {budget}: not every kind has a cell")

    def figures(self, budget, planned, shown):
        """Compares every number of a page with planning at a budget."""
        number = lambda text: int(re.sub(r"[^0-9-]", "", text) or 0)
        seen = {
            "in": number(shown["held"]),
            "out": number(shown["out"]),
            "percent": shown["percent"],
            "overhead": [number(row[1]) for row in shown["ledger"][:-3]],
            "items": number(shown["ledger"][-2][1]),
            "largest": [number(row[1]) for row in shown["largest"]],
            "conversation": number(shown["conversation"].split(" of ")[0]),
            "rows": [[name, number(tokens)] for name, tokens in shown["rows"] if not name.startswith("synth:")],
        }
        for name, value in seen.items():
            wanted = planned[name]
            # An estimate uses only the messages that a plan has examined, so it differs by budget.
            if name == "conversation" and (wanted is None or "~" in shown["conversation"]):
                continue
            self.expect(wanted == value, f"at {budget}: {name} {value}, planned {wanted}")
        said = f"over budget by {planned['over']:,}" if planned["over"] else f"fits, {planned['left']:,} free"
        self.expect(shown["says"].endswith(said), f"at {budget}: {shown['says']}, planned {said}")
        self.expect(number(shown["given"]) == budget, f"at {budget}: the card of the budget says {shown['given']}")
        beside = number(shown["ledger"][-3][1])
        self.expect(beside == sum(planned["overhead"]), f"at {budget}: overhead {beside}")
        legend = [one for one in shown["legend"] if "%" in one]
        wanted = [f"{tokens:,} {share}" for tokens, share in zip(planned["groups"], planned["shares"])]
        ends = len(legend) == len(wanted) and all(one.endswith(end) for one, end in zip(legend, wanted))
        self.expect(ends, f"at {budget}: {legend}, planned {wanted}")
        whole = sum(int(row[2].split()[0]) for row in shown["kinds"] if "<" not in row[2])
        self.expect(not shown["kinds"] or whole == 100, f"at {budget}: kinds of {whole} %")
        for row, (given, used, included, excluded) in zip(shown["sections"], planned["sections"]):
            ends = [number(part) for part in row[3].split(" to ")]
            self.expect(ends[0] <= given <= ends[-1], f"at {budget}: {row[0]} has {row[3]}, planned {given}")
            here = [number(cell) for cell in row[4:7]]
            self.expect(here == [used, included, excluded], f"at {budget}: {row}, planned {used, included, excluded}")

    def moved(self, binary, path, folder):
        """Compares a page moved to other budgets with the pages planned at them."""
        def planned_with(*flags):
            made = folder / "moved.html"
            tell(binary, "plan", path, *flags, "--format", "html", "-o", made)
            return made

        page = self.open(planned_with(), WIDE)
        here = self.name
        if not page.locator("#slider").is_visible():
            return 0
        steps = page.evaluate("() => JSON.parse(document.getElementById('data').textContent).budgets")
        edges = [one[0] for one in steps["steps"]]
        places = [edges[len(edges) * part // PLACES] for part in range(PLACES)]
        asked = {place + off for place in places for off in (-1, 0, 3)} | {steps["to"]}
        own = page.evaluate("() => Number(document.getElementById('budget').value)")
        asked = sorted(budget for budget in asked if edges[0] <= budget <= steps["to"] and budget != own)
        seen = dict(zip(asked, (one[6] for one in page.evaluate(AT_BUDGETS, asked))))
        for budget in asked:
            page = self.open(planned_with("--budget", budget), WIDE)
            wanted = page.evaluate(f"{FIGURES}")
            self.name = here
            moved = seen[budget]
            names = ["total", "of", "percent", "says", "given", "held", "out", "legend", "kinds", "ledger", "title"]
            # An estimate of the whole conversation uses only the examined messages, so it differs by budget.
            if "~" not in moved["conversation"] + wanted["conversation"]:
                names.append("conversation")
            for name in names:
                self.expect(moved[name] == wanted[name], f"at {budget}: {name} {moved[name]}, planned {wanted[name]}")
            shown = {name: tokens for name, tokens in moved["rows"] if not name.startswith("synth:")}
            planned = {name: tokens for name, tokens in wanted["rows"] if not name.startswith("synth:")}
            self.expect(shown == planned, f"at {budget}: rows {shown}, planned {planned}")
            tokens = [[row[1], row[2]] for row in moved["largest"]]
            self.expect(tokens == [[row[1], row[2]] for row in wanted["largest"]], f"at {budget}: {moved['largest']}")
            self.expect(not moved["stale"], f"at {budget}: of the own budget are in sight: {moved['stale']}")
            self.expect(not moved["why"], f"at {budget}: reasons of the own budget: {moved['why'][:3]}")
            self.expect(moved["first"] == 0, f"at {budget}: {moved['first']} rows that are out stand among what is in")
            for row, own_row in zip(moved["sections"], wanted["sections"]):
                number = lambda text: int(re.sub(r"[^0-9]", "", text))
                ends = [number(part) for part in row[3].split(" to ")]
                self.expect(ends[0] <= number(own_row[3]) <= ends[-1] and row[4:7] == own_row[4:7],
                            f"at {budget}: {row}, planned {own_row}")
        return len(asked)

    def prompts(self, path, totals):
        """Clicks each prompt of a timeline and checks it."""
        page = self.open(path, WIDE)
        seen = page.evaluate("""() => [...document.querySelectorAll('.hit')].map(hit => {
            hit.dispatchEvent(new MouseEvent('click'));
            return Number(document.getElementById('total').textContent.replace(/[^0-9]/g, ''));
        })""")
        self.expect(seen == totals, f"prompts of {seen}, replayed {totals}")

    def looks(self, page):
        """Checks widths, colours and elements, closed and open, in light and dark."""
        foreign = set(page.evaluate(ELEMENTS_USED)) - ELEMENTS
        self.expect(not foreign, f"elements that the template does not write: {foreign}")
        handlers = page.evaluate(HANDLERS)
        self.expect(not handlers, f"attributes that the template does not write: {handlers}")
        # A page of many rows lays out only the visible ones; a check of all needs all of them laid out.
        page.evaluate("() => document.getElementById('items').classList.remove('many')")
        for state, is_open in (("closed", False), ("open", True)):
            page.evaluate("to => document.querySelectorAll('details').forEach(d => d.open = to)", is_open)
            # A colour scheme changes no widths.
            poking = page.evaluate(POKING)
            self.expect(not poking, f"{state}: pokes out: {poking}")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                back = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
                dark = max(int(part) for part in re.findall(r"\d+", back)[:3]) < 64
                self.expect(dark == (scheme == "dark"), f"{scheme}: the background is {back}")
                low = page.evaluate(CONTRAST)
                self.expect(not low, f"{state}, {scheme}: too little contrast: {low}")

    def filters(self, page, rows):
        """Checks typing, buttons and the count."""

        def shown():
            return page.evaluate(SHOWN)

        def says(number):
            return page.inner_text("#count").startswith(f"{number:,} of {rows:,} ")

        label = page.get_attribute("#filter label", "for")
        field = page.locator(f"input#{label}")
        first = page.locator(".id").first.inner_text().lower()
        field.fill(first)
        self.expect(0 < shown() <= rows and says(shown()), f"typing {first[:40]!r} shows {shown()} rows")
        found = page.locator("li.item:not([hidden])").first.text_content().lower()
        self.expect(all(word in found for word in first.split()), "a row without the words")
        field.fill("no row holds this word")
        self.expect(shown() == 0 and says(0), f"words of no row show {shown()} rows")
        field.press("Escape")
        self.expect(shown() == rows and field.input_value() == "", "Escape does not clear")
        for kind, key in (("state", "in"), ("state", "out"), ("section", "rag")):
            buttons = f"button[data-key={kind}]"
            button = page.locator(f"{buttons}[data-value={key}]")
            button.click()
            there = page.locator(f"li.item[data-{kind}={key}]").count()
            self.expect(shown() == there and says(there), f"{key}: {shown()} rows for {there}")
            pressed = page.locator(f"{buttons}[aria-pressed=true]").count()
            self.expect(pressed == 1 and button.get_attribute("aria-pressed") == "true", f"{key}: not pressed")
            page.locator(f"{buttons}[data-value='']").click()
        self.expect(shown() == rows, "not everything is back")
        page.locator("#open").click()
        closed = page.locator("li.item > details:not([open])").count()
        self.expect(closed == 0, f"{closed} rows stay closed")
        page.locator("#open").click()
        self.expect(page.locator("details[open]").count() == 0, "rows stay open")
        live = page.get_attribute("#count", "aria-live")
        self.expect(live == "polite", "nobody is told the count")

    def keys(self, page, rows):
        """Checks everything without a mouse."""
        focused = "() => document.activeElement.id || document.activeElement.localName"
        outline = "() => getComputedStyle(document.activeElement).outlineStyle"
        seen = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name, ring = page.evaluate(f"() => [({focused})(), ({outline})()]")
            seen.append(name)
            # After the last element, the page itself gets the focus.
            self.expect(name == "body" or ring != "none", f"{name} does not show the focus")
        self.expect("words" in seen, f"Tab does not come to the filter: {seen}")
        self.expect(rows == 0 or "summary" in seen, f"Tab does not come to the rows: {seen}")
        page.evaluate("() => document.activeElement.blur()")
        page.keyboard.press("/")
        self.expect(page.evaluate(focused) == "words", "/ does not go to the filter")
        page.keyboard.type("a/b")
        self.expect(page.input_value("#words") == "a/b", "/ cannot be typed")
        page.keyboard.press("Escape")
        if rows == 0:
            return
        row = page.locator("li.item > details").first
        row.locator("summary").focus()
        for key, is_open in (("Enter", True), ("Space", False)):
            page.keyboard.press(key)
            self.expect(row.evaluate("d => d.open") == is_open, f"{key} does nothing to a row")


def near_changes(page):
    """Returns plans on both sides of evenly spread changes of the rows, and at some budgets between them."""
    planned = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    if FULL:
        return planned
    changes = [at for at in range(1, len(planned)) if planned[at][2] != planned[at - 1][2]]
    some = {changes[len(changes) * part // CHANGES] for part in range(CHANGES)} if changes else set()
    some |= {at - 1 for at in some} | {(len(planned) - 1) * part // 4 for part in range(5)}
    return [planned[at] for at in sorted(some)]


def sessions():
    """Writes a hostile session and a long one."""
    hostile = {
        "model": "gpt-4o",
        "system": HOSTILE[0],
        "focus": HOSTILE[1],
        "state": [{"id": "clock" + HOSTILE[3], "text": HOSTILE[2]}],
        "pinned": [{"id": "note" + HOSTILE[0], "text": HOSTILE[5]}],
        "messages": [],
        "rag": [
            {"id": f"d{n}{text}", "text": text + str(n), "score": 1 / (n + 1), "source": text}
            for n, text in enumerate(HOSTILE)
        ],
    }
    for n, text in enumerate(HOSTILE):
        call = {"id": f"c{n}", "type": "function", "function": {"name": text, "arguments": text}}
        hostile["messages"] += [
            {"id": f"u{n}{text}", "role": "user", "name": text, "content": text},
            {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
        ]
    hostile["messages"].append({"role": "user", "content": HOSTILE[1]})
    long = {"model": "gpt-4o", "messages": []}
    for n in range(TURNS):
        long["messages"] += [
            {"role": "user", "content": f"Question {n}: " + "what is it? " * (n % 7)},
            {"role": "assistant", "content": f"Answer {n}. " + "It is so. " * (n % 40)},
        ]
    long["messages"].append({"role": "user", "content": "And the last one?"})
    return {"hostile": hostile, "long": long}


def build(binary, folder):
    """Returns pages with their row counts by the plan's JSON, and timelines with the tokens of their prompts."""
    files = sorted((ROOT / "examples").glob("*.json"))
    files = [path for path in files if '"window_start"' not in path.read_text(encoding="utf-8")[:400]]
    for name, session in sessions().items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(session), encoding="utf-8")
        files.append(path)
    made, totals = [], {}
    for path in files:
        made.append(make(binary, path, folder))
        made.append(make(binary, path, folder, "-small", "--budget", "400"))
        # One page of many rows is enough.
        if path.stem != "long":
            redacted = folder / f"{path.stem}-redacted.html"
            tell(binary, "plan", path, "--redact", "--format", "html", "-o", redacted)
            made.append((redacted, made[-2][1]))
        if path.stem in ("long-talk", "support-chat"):
            # The same rows, and a timeline of the earlier prompts.
            timeline = folder / f"{path.stem}-timeline.html"
            tell(binary, "replay", path, "--format", "html", "-o", timeline)
            told = tell(binary, "replay", path, "--format", "json")
            lines = [json.loads(line) for line in told.splitlines()]
            totals[timeline] = [line["estimated_tokens_total"] for line in lines if "prompt" in line]
            made.append((timeline, made[-3][1]))
    return made, totals


def make(binary, session, folder, kind="", *flags):
    """Returns the page of a session and its number of rows."""
    page = folder / f"{session.stem}{kind}.html"
    tell(binary, "plan", session, *flags, "--format", "html", "-o", page)
    plan = json.loads(tell(binary, "plan", session, *flags, "--format", "json"))
    return page, len(plan["included"]) + len(plan["excluded"])


def tell(binary, *arguments):
    """Returns the output of the binary."""
    return subprocess.run([str(binary), *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout


BREAKS = {
    "a console message": ("</main>", "</main>", "console.error('x');", "the console"),
    "an error": ("</main>", "</main>", "null.x;", "an error"),
    "a dialog": ("</main>", "</main>", "alert(1);", "a dialog"),
    "a request": ("</main>", '<img src="https://example.invalid/x.png"></main>', "", "a request"),
    "an element": ("</main>", "<marquee></marquee></main>", "", "elements that"),
    "a handler": ("<main>", '<main onclick="x()">', "", "attributes that"),
    "a wide element": ("</main>", '<p class="w">wide</p></main>', "", "pokes out"),
    "a table that is wider than its card": ("minmax(min-content, 1fr)", "minmax(0, 0.1fr)", "", "pokes out"),
    "a light page in the dark": ("@media (prefers-color-scheme: dark)", "@media (width: 1px)", "", "background"),
    "grey on white": ("--soft: #545d68", "--soft: #b5bcc4", "", "contrast"),
    "a deaf field": ('addEventListener("input", apply)', 'addEventListener("x", apply)', "", "words of no row"),
    "a deaf button": ("chosenOf[button.dataset.key] = button.dataset.value;", "", "", "rows for"),
    "a deaf key": ('event.key === "/"', 'event.key === "§"', "", "/ does not go"),
    "an invisible focus": (":focus-visible { outline:", ":focus-visible, :focus { outline: none; x:", "", "focus"),
    "rows that only a script shows": ('<div id="listed">', '<div id="listed" hidden>', "document.getElementById('listed').hidden = false;", "rows are there"),
    "an order that is none": ("-tokens(row), inSession(row)", "inSession(row)", "", "not sorted by tokens"),
    "a link that opens nothing": ('addEventListener("hashchange", linked)', "", "", "Timeout"),
    "a row that is missing": ('<li class="item in"', '<li class="itm in"', "", "rows"),
}


# Faults that make the slider differ from planning.
SLIDER_BREAKS = {
    "items that never leave": ("for (const item of leaves) held.delete(item);", ""),
    "a step too far": ("if (steps[middle].from <= budget) low", "if (steps[middle].from <= budget + 1) low"),
    "no overhead": ("for (const [kind, , tokens] of view.overhead) add(kind, tokens);", ""),
    "an old total": ('$("total").textContent = view.mark + number(view.total)', ""),
    "an old budget on its card": ('$("given").textContent = number(view.budget)', ""),
    "an old heading": ('$("held").textContent =', "void"),
    "old sections": ('say("used", number(used));', ""),
    "an old budget of a section": ('say("budget", range(section));', ""),
    "an old ledger": ('$("ledger").tBodies[0].replaceChildren(', "void ("),
    "old largest items": ('$("largest").tBodies[0].replaceChildren(...(view === now ? ownLargest : top.map(large)))', ""),
    "a state that lies over its id": ("grid-template-columns: 7.25rem minmax", "grid-template-columns: 3rem minmax"),
    "old tokens of rows": ("count.data = view !== now", "count.data = false"),
}


def break_page(text, old, new, script):
    """Returns a page with one fault and without its policy, which would hide most faults."""
    assert old in text, old
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    text = text.replace(old, new, 1).replace("</style>", ".w { width: 3000px; }</style>", 1)
    return text.replace("</body>", f"<script>{script}</script></body>") if script else text


def self_test(checker, page, rows, folder, slider):
    """Checks that each fault is found, and that the policy alone stops an inserted script."""
    text = page.read_text(encoding="utf-8")
    missed = []
    planned = near_changes(slider) if slider else []
    checker.wrong = []
    checker.page(page, rows)
    if slider:
        checker.budgets(slider, planned)
    missed += [f"not broken, and wrong: {one}" for one in checker.wrong]
    # Each file has its own name, so that a late request of one is not attributed to the next.
    for at, (name, (old, new)) in enumerate(SLIDER_BREAKS.items() if slider else []):
        path = folder / f"slider-{at}.html"
        path.write_text(break_page(slider.read_text(encoding="utf-8"), old, new, ""), encoding="utf-8")
        checker.wrong = []
        checker.budgets(path, planned)
        if not checker.wrong:
            missed.append(f"{name} is not found")
    for at, (name, (old, new, script, found)) in enumerate(BREAKS.items()):
        path = folder / f"broken-{at}.html"
        path.write_text(break_page(text, old, new, script), encoding="utf-8")
        checker.wrong = []
        # An expected time-out needs no long wait.
        checker.patience = 3_000 if found == "Timeout" else PATIENCE
        try:
            if not any(any(found in one for one in checker.wrong) for _ in checker.steps(path, rows)):
                missed.append(f"{name} is not found; found: {checker.wrong[:3]}")
        except Exception as error:  # a page may be too broken to be driven
            if not any(found in one for one in [*checker.wrong, str(error)]):
                missed.append(f"{name} is not found; broken: {error}")
    checker.patience = PATIENCE
    path = folder / "injected.html"
    path.write_text(text.replace("</main>", "<script>alert(1)</script><img src=x onerror=alert(2)></main>"), encoding="utf-8")
    checker.wrong = []
    checker.open(path, WIDE)
    if any("a dialog" in one for one in checker.wrong):
        missed.append("the page's policy lets an injected script run")
    if not any("the console" in one for one in checker.wrong):
        missed.append("the page's policy says nothing of an injected script")
    checker.wrong = missed


def shoot(checker, pages, folder):
    """Writes pictures of the examples: the visible part, on a phone and wide, in light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [path for path, _ in pages if "-redacted" not in path.stem]:
        for name, viewport, scheme in (
            ("phone", PHONE, "light"),
            ("phone-dark", PHONE, "dark"),
            ("wide", WIDE, "light"),
            ("wide-dark", WIDE, "dark"),
        ):
            page = checker.open(path, viewport, scheme)
            page.screenshot(path=str(folder / f"{path.stem}-{name}.png"), full_page="long" not in path.stem)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", nargs="?", type=Path, default=ROOT / "target/debug/plan-inspect")
    parser.add_argument("--shots", type=Path, metavar="FOLDER")
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="pages that are tried at every budget")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--browser", default=CHROMIUM, help=f"Chromium [default: {CHROMIUM}]")
    arguments = parser.parse_args()
    if not arguments.binary.is_file():
        give_up(f"{arguments.binary} is no file; build it with: cargo build -p plan-inspect --features full")
    if not Path(arguments.browser).is_file():
        give_up(f"{arguments.browser} is not there; install it with: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name, start() as playwright:
        folder = Path(name)
        binary = arguments.binary.resolve()
        browser = playwright.chromium.launch(executable_path=arguments.browser, args=ARGUMENTS)
        checker = Checker(browser)
        if arguments.self_test:
            one = make(binary, ROOT / "examples/support-chat.json", folder, "-small", "--budget", "400")
            slider = arguments.pages and arguments.pages.resolve() / "support-chat.html"
            self_test(checker, *one, folder, slider)
            done = f"{len(BREAKS) + (len(SLIDER_BREAKS) if slider else 0) + 1} broken pages"
        else:
            pages, totals = build(binary, folder)
            for page, rows in pages:
                checker.page(page, rows)
            if arguments.shots:
                shoot(checker, pages, arguments.shots)
            for page, expected in totals.items():
                checker.prompts(page, expected)
            files = [path for path in sorted((ROOT / "examples").glob("*.json")) if path.stem != "agent-anchor"]
            moves = sum(checker.moved(binary, path, folder) for path in files)
            sliders = sorted(arguments.pages.resolve().glob("*.html")) if arguments.pages else []
            for page in sliders:
                checker.budgets(page, near_changes(page))
            done = f"{len(pages)} pages, {len(sliders)} more at every budget, {moves} moves of the slider"
        browser.close()
    for one in checker.wrong:
        print(one)
    print(f"{done}: {len(checker.wrong)} things wrong" if checker.wrong else f"{done}: all well")
    sys.exit(1 if checker.wrong else 0)


if __name__ == "__main__":
    main()
