"""Open pages that plan by themselves in a browser, and compare their plans with the tool.

    target/browser/bin/python tests/browser/live.py target/debug/plan-inspect --package bindings/node
    target/browser/bin/python tests/browser/live.py --self-test target/debug/plan-inspect --package bindings/node

The package is the built npm package. A page of each session in `examples/`, one with options, one that
is redacted, and one of a hostile session are opened as files in headless Chromium:

* the first plan has the fingerprint of the tool's plan, and so have the plans of other budgets, options and
  models, and without a document;
* pins, expired messages and all of these together: the tool makes the same plan from the saved session;
* a mistake is named and the last plan stays; Reset brings the first plan back;
* no message on the console, no error, no dialog, no request for anything but the file and its own data;
* no session text becomes an element, and a redacted page has none of the texts.

`--self-test` breaks a page in some of these ways and checks that this is found. Exit: 0 all passed, 1 something
is wrong, 2 bad usage, no browser or missing packages.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import ARGUMENTS, CHROMIUM, give_up, start, watch

ROOT = Path(__file__).resolve().parents[2]
# Milliseconds that a page has for an action: many, because a machine may be slow.
PATIENCE = 120_000
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script><!-- <script>",
    "</style></textarea><img src=x onerror=alert(3)>{{ script }}{{ data }}",
    "'\"><iframe srcdoc='<script>parent.alert(4)</script>'></iframe>\u2028\u202e\u0000",
]
# The sources of the page, in which each break must change something.
SOURCE = "".join((ROOT / "crates/plan-inspect/src/live" / name).read_text(encoding="utf-8") for name in ("page.html", "page.js"))
# Elements that a text of a session could become.
FOREIGN = "() => document.querySelectorAll('body img, body marquee, body iframe:not(#plan), body b').length"


class Live:
    """A page that plans, with its faults."""

    def __init__(self, browser, binary, package, folder):
        self.binary, self.package, self.folder = binary, package, folder
        self.wrong, self.name, self.plans = [], "", 0
        self.page = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True).new_page()
        self.page.set_default_timeout(PATIENCE)
        watch(self.page, self.complain)
        self.page.on("request", self.request)

    def complain(self, what):
        self.wrong.append(f"{self.name}: {what}")

    def expect(self, holds, what):
        if not holds:
            self.complain(what)

    def request(self, one):
        own = (self.page.url, "about:blank", "about:srcdoc")
        if not one.url.startswith(("data:", "blob:", "file:///")) and one.url not in own:
            self.complain(f"a request: {one.url}")

    def tool(self, session, *flags):
        """Returns the plan of the tool as JSON. The last budget counts."""
        flags = list(flags)
        while flags.count("--budget") > 1:
            first = flags.index("--budget")
            del flags[first : first + 2]
        made = subprocess.run([str(self.binary), str(session), "--format", "json", *map(str, flags)], check=True, stdout=subprocess.PIPE)
        return json.loads(made.stdout)

    def open(self, session, *flags, change=lambda page: page):
        """Opens the page of a session, after a change of its text."""
        path = self.folder / "live.html"
        subprocess.run([str(self.binary), str(session), *map(str, flags), "--format", "html", "--live", str(self.package), "-o", str(path)], check=True)
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        self.name = f"{session.name} {' '.join(map(str, flags))}".strip()
        self.page.goto(path.as_uri())
        return self.planned()

    def planned(self):
        """Waits for the next plan, and returns its fingerprint, or the sentence about a mistake."""
        self.page.wait_for_function("""() => !document.getElementById('fault').hidden
            || document.querySelector('#status[data-fingerprint]') && !document.body.classList.contains('stale')""")
        self.plans += 1
        fault = self.page.locator("#fault")
        return fault.text_content() if fault.is_visible() else self.page.get_attribute("#status", "data-fingerprint")

    def enter(self, field, text):
        """Enters a text into a field, and returns the fingerprint of the plan."""
        self.page.evaluate("() => { document.getElementById('fault').hidden = true; }")
        self.page.fill(f"#{field}", str(text))
        return self.planned()

    def choose(self, id, change):
        """Tries a change of an item, and returns the fingerprint of the plan."""
        self.page.evaluate("() => { document.getElementById('fault').hidden = true; }")
        self.page.locator("tr", has=self.page.locator(f"bdi:text-is({json.dumps(id)})")).locator("select").first.select_option(change)
        return self.planned()

    def saved(self, changes, excluded):
        """Saves the session of the page, and returns the fingerprint of the tool's plan of it. The session must have these changes,
        and not the excluded documents."""
        with self.page.expect_download() as download:
            self.page.click("#save")
        path = self.folder / "session.json"
        download.value.save_as(path)
        text = path.read_text(encoding="utf-8")
        for change in changes:
            self.expect(change in text, f"the saved session has no {change}")
        documents = json.loads(text).get("rag", [])
        lists = documents.values() if isinstance(documents, dict) else [documents]
        self.expect(all(one["id"] not in excluded for documents in lists for one in documents), "an excluded document is there")
        return self.tool(path)["fingerprint"]

    def session(self, path, *flags):
        """Checks one session."""
        plan = self.tool(path, *flags)
        first = plan["fingerprint"]
        self.expect(self.open(path, *flags) == first, "the first plan is another one")
        self.expect(self.page.evaluate(FOREIGN) == 0, "a text is an element")
        budget = max(plan["prompt_budget"] * 2 // 3, 1)
        seen = self.enter("budget", budget)
        self.expect(seen == self.tool(path, *flags, "--budget", budget)["fingerprint"], f"another plan at {budget}")
        wanted = self.tool(path, *flags, "--budget", budget, "--set", "rag.max_items=1", "--set", "conversation.low_mark=300")
        options = self.page.input_value("#options")
        # A table cannot be continued by dotted keys.
        if "[rag]" in options:
            changed = "conversation.low_mark = 300\n" + options.replace("[rag]\n", "[rag]\nmax_items = 1\n")
        else:
            changed = f"rag.max_items = 1\nconversation.low_mark = 300\n{options}"
        self.expect(self.enter("options", changed) == wanted["fingerprint"], "another plan with other options")
        items = self.page.locator("tbody bdi").all_text_contents()
        messages = [id for id in items if re.fullmatch("m[0-9]+", id)]
        documents = [row["id"] for row in plan["included"] if row["kind"] == "document" and row["id"] in items]
        changes = []
        if messages:
            self.choose(messages[0], "pinned")
            changes.append(f'"message_pinned":{{"id":"{messages[0]}"')
        if len(messages) > 2:
            self.choose(messages[1], "expired")
            changes.append(f'"ttl_set":{{"id":"{messages[1]}","ttl":"none_remaining"')
        if documents:
            self.choose(documents[0], "excluded")
        seen = self.planned()
        self.expect(seen == self.saved(changes, documents[:1]), "the saved session has another plan")
        said = self.enter("options", "[rag]\nfil = 3")
        self.expect("did you mean `fill`?" in said, f"a mistake in the options: {said}")
        self.expect(self.page.locator("#status[data-fingerprint]").count() == 1, "no plan stays after a mistake")
        said = self.enter("budget", "")
        self.expect("expected a number of tokens" in said or "did you mean" in said, f"no budget: {said}")
        self.page.click("#reset")
        self.expect(self.planned() == first, "Reset does not bring the first plan back")

    def models(self, path):
        """Checks other models on a page."""
        self.open(path)
        for model in ("claude-sonnet-4-5", "gemini-2.5-pro", "gpt-4", "llama-3.3-70b"):
            wanted = self.tool(path, "--model", model)
            self.expect(self.enter("model", model) == wanted["fingerprint"], f"another plan for {model}")
            self.expect(self.page.input_value("#budget") == str(wanted["prompt_budget"]), f"another budget for {model}")

    def frame(self, path):
        """Checks that the plan's page works inside of the frame."""
        self.open(path)
        plan = self.page.frame_locator("#plan")
        plan.locator("li.item summary").first.click()
        self.expect(plan.locator("a").count() == 0, "the plan has a link that leads nowhere")
        self.expect(plan.locator("li.item details[open]").count() >= 1, "a row of the plan does not open")
        select = self.page.locator("tbody select").nth(2)
        select.focus()
        self.page.evaluate("() => { document.getElementById('fault').hidden = true; }")
        select.select_option(index=1)
        self.planned()
        focused = self.page.evaluate("() => document.activeElement.dataset.key ?? ''")
        self.expect(focused != "", "the control of an item loses the focus")

    def numbered(self):
        """Checks that names that are whole numbers, and numbers such as 1.0, stay as they are if something changes."""
        documents = lambda names: [{"id": name, "score": 0.5, "text": f"Text {name}. " * 8} for name in names]
        schema = {"type": "object", "properties": {"10": {"type": "number", "minimum": 1.0}, "2": {"type": "number", "maximum": 2.50}}}
        session = {
            "model": "gpt-4o",
            "messages": [{"role": "user", "content": "Now?"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
            "rag": {"10": documents("ab"), "2": documents("cd")},
        }
        path = self.folder / "numbered.json"
        path.write_text(json.dumps(session))
        for budget in (150, 10_000):
            self.open(path, "--budget", budget)
            seen = self.choose("b", "excluded")
            session["rag"]["10"] = documents("a")
            without = self.folder / "without.json"
            without.write_text(json.dumps(session))
            self.expect(seen == self.tool(without, "--budget", budget)["fingerprint"], "another plan without a document")

    def options(self):
        """Checks a session whose options the model does not support, and another model that does."""
        path = self.folder / "options.json"
        path.write_text(json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "Now?"}]}))
        flags = ["--set", "conversation.tool_results=provider"]
        self.expect(self.open(path, *flags) == self.tool(path, *flags)["fingerprint"], "the first plan is another one")
        wanted = self.tool(path, *flags, "--model", "claude-sonnet-4-5")
        self.expect(self.enter("model", "claude-sonnet-4-5") == wanted["fingerprint"], "another plan of a model that edits")

    def redacted(self, path):
        """Checks that a redacted page has no text of its session."""
        self.open(path, "--redact")
        own = self.page.content() + self.page.frames[-1].content()
        self.expect("kettle" not in own and "Copperpot" not in own, "a redacted page has a text")

    def hostile(self):
        """Checks a session whose texts and ids try to be more than texts."""
        path = self.folder / "hostile<b>.json"
        path.write_text(json.dumps({
            "model": "gpt-4o",
            "messages": [{"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate([*HOSTILE, "Now?"])],
            "rag": [{"id": text, "score": 0.5, "text": text} for text in HOSTILE],
        }))
        self.session(path)


BREAKS = {
    "a message on the console": (lambda page: page.replace("async function main() {", "async function main() { console.warn(1);"), "the console"),
    "a request": (lambda page: page.replace("default-src 'none'", "connect-src *").replace("async function main() {", "async function main() { fetch('https://example.invalid/').catch(() => 0);"), "a request"),
    "a deaf budget": (lambda page: page.replace("budget === undefined ? limits", "true ? limits"), "another plan at"),
    "a forgotten pin": (lambda page: page.replace("return { message_pinned", "return { unpinned: 'x' }; return { message_pinned"), "the saved session has no"),
    "a deaf option": (lambda page: page.replace("config: options,", "config: data.options,"), "other options"),
    "a document that stays": (lambda page: page.replace("!excluded.has(id)", "true"), "an excluded document"),
    "a reset of nothing": (lambda page: page.replace("tried.clear();", ""), "Reset"),
}


def self_test(live):
    """Checks that each broken page is found. Returns the number of those that are not."""
    missed = 0
    example = ROOT / "examples/support-chat.json"
    whole = Live.open
    for name, (change, expected) in BREAKS.items():
        live.wrong.clear()
        if change(SOURCE) == SOURCE:
            give_up(f"{name}: the page has another text now")
        Live.open = lambda self, session, *flags, change=change: whole(self, session, *flags, change=change)
        try:
            live.session(example, "--budget", 400)
        finally:
            Live.open = whole
        if not any(expected in one for one in live.wrong):
            print(f"not found: {name}: {live.wrong}")
            missed += 1
    live.wrong.clear()
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", nargs="?", type=Path, default=ROOT / "target/debug/plan-inspect")
    parser.add_argument("--package", type=Path, default=ROOT / "bindings/node", metavar="FOLDER", help="the built npm package")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--browser", default=CHROMIUM, help=f"Chromium [default: {CHROMIUM}]")
    arguments = parser.parse_args()
    for path in (arguments.binary, Path(arguments.browser), arguments.package / "dist/core.js"):
        if not path.is_file():
            give_up(f"{path} is not there; see the head of this file")
    with tempfile.TemporaryDirectory() as name, start() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.browser, args=ARGUMENTS)
        live = Live(browser, arguments.binary.resolve(), arguments.package.resolve(), Path(name))
        if arguments.self_test:
            missed = self_test(live)
            print(f"{len(BREAKS)} broken pages: {missed} not found")
            sys.exit(1 if missed else 0)
        examples = [one for one in sorted((ROOT / "examples").glob("*.json")) if "anchor" not in one.name]
        for path in examples:
            live.session(path)
        live.session(ROOT / "examples/support-chat.json", "--budget", 400, "--set", "rag.labels=true")
        live.models(ROOT / "examples/support-chat.json")
        live.numbered()
        live.options()
        live.frame(ROOT / "examples/support-chat.json")
        live.redacted(ROOT / "examples/support-chat.json")
        live.hostile()
        for one in live.wrong:
            print(one)
        print(f"{len(examples) + 8} live pages, {live.plans} plans: {len(live.wrong)} wrong")
        sys.exit(1 if live.wrong else 0)


main()
