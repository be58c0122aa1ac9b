"""Check that each type of the official Python SDKs passes through the planner unchanged.

    python3 -m venv target/sdk
    target/sdk/bin/pip install -r tests/sdk/requirements.txt
    target/sdk/bin/python tests/sdk/walk.py [--tool target/debug/plan-inspect] [UNION...]
    target/sdk/bin/python tests/sdk/walk.py --self-test

Every input item, message, block, part and tool that the SDKs of OpenAI, Anthropic and
Google declare is built from its type hints (`samples.py`), put into a conversation that
makes it valid (`conversations.py`), and planned by `plan-inspect` at a budget that is
never reached. The rules are:

* for its own wire format: the same JSON value, with its keys in order and its numbers in
  the same spelling, between the same neighbours. Cache marks are set for each prompt, so
  they are ignored.
* for every wire format: there is no invented assistant text.
* for another wire format: the text of a tool's result is kept or a notice names it; the
  same holds for the fields of a tool, and for a whole item.
* for an OpenAI model without reasoning of earlier turns: no item with an id is sent
  without the reasoning directly before it, because the server would refuse it.

Intended differences are in `EXCEPTIONS`, one by one, with the reason; one that no longer
differs is an error. Prints a table, then the differences by type, with an example
(`--all`: every sample). Exit: 0 all held, 1 some did not, 2 bad usage or missing parts.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import check
from comparison import (
    compare,
    conversation_of,
    declared,
    fault_elsewhere,
    invented,
    lost_fields,
    lost_texts,
    own_format,
    parted_pairs,
    wire_of,
)
from exceptions import EXCEPTIONS
from spelling import read, written
from unions import MODELS, all_unions

BUDGET = "900000"
FORGETFUL = "gpt-5.1"  # a model that reads only the reasoning of the live turn
IN_A_BODY = 20  # samples of one conversation: an image of unknown size counts up to 36,000 tokens



# --------------------------------------------------------------------------- the tool


class Tool:
    """Plans bodies with `plan-inspect`."""

    def __init__(self, path):
        self.path = path

    def plan(self, body, wire_format, model=None):
        """Returns the output body, or None, and the notices."""
        command = [self.path, "-", "--format", "messages", "--budget", BUDGET]
        command += ["--model", model or MODELS[wire_format], "--wire-format", wire_format]
        done = subprocess.run(
            command, input=written(body), capture_output=True, text=True, check=False
        )
        notices = [line for line in done.stderr.splitlines() if ": note: " in line]
        if done.returncode:
            return None, [
                done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"
            ]
        return read(done.stdout), notices


# --------------------------------------------------------------------------- the walk


class Walk:
    def __init__(self, tool):
        self.tool = tool

    def groups(self, union):
        """Yields groups of samples for one body each; tools with one name are in different groups."""
        groups = []
        for sample in union.samples:
            if sample.is_alone():
                yield [sample]
                continue
            name = sample.value.get("name") or sample.value.get("type")
            for group, names in groups:
                if len(group) < IN_A_BODY and not (union.is_tool and name in names):
                    break
            else:
                group, names = [], set()
                groups.append((group, names))
            group.append(sample)
            names.add(name)
        yield from (group for group, _ in groups)

    def planned(self, job, samples, wire_format, model=None):
        """Plans the body of samples; returns it, the output body, and notices.

        A refused body is split in halves until the refused sample is found. The reason
        is then returned instead of a body.
        """
        body = samples[0].union.wire.body([sample.turn() for sample in samples])
        out, notices = self.tool.plan(body, wire_format, model)
        if out is not None:
            return body, out, notices
        if len(samples) == 1:
            return None, None, f"refused: {notices[0]}"
        half = len(samples) // 2
        job(samples[:half])
        job(samples[half:])
        return None, None, ""

    def own(self, samples):
        """Plans samples for their own wire format."""
        wire = samples[0].union.wire
        body, out, notices = self.planned(self.own, samples, own_format(wire))
        if out is None:
            samples[0].difference = notices or samples[0].difference
            return
        texts = list(invented(body, out, wire, conversation_of(wire)))
        for number, (difference, is_equal, there) in compare(samples, body, out, wire).items():
            sample = next(s for s in samples if s.number == number)
            sample.difference, sample.is_equal = difference, is_equal
            for text in texts:
                if any(json.dumps(text) in unit for unit in there):
                    sample.difference = f"the assistant now says {text!r}: {difference}"
                    sample.is_invented = True

    def other(self, samples, wire_format):
        """Plans samples for another wire format. A sample with a missing text is planned alone."""

        def again(some):
            self.other(some, wire_format)

        body, out, notices = self.planned(again, samples, wire_format)
        if out is None:
            fault = notices
        elif len(samples) == 1:
            fault = fault_elsewhere(samples[0], body, out, notices, wire_format)
        else:
            # An invented text does not identify its sample.
            is_said = any(invented(body, out, samples[0].union.wire, wire_of(wire_format)))
            for sample in samples:
                if is_said or lost_texts(sample, out) or lost_fields(sample, out):
                    again([sample])
            return
        if fault:
            samples[0].foreign[wire_format] = fault

    def pairs(self, samples):
        """Plans Responses for a model without reasoning of earlier turns."""
        body, out, notices = self.planned(self.pairs, samples, "openai-responses", FORGETFUL)
        if out is None:
            if notices:
                samples[0].foreign[FORGETFUL] = notices
            return
        for number, fault in parted_pairs(body, out):
            sample = next(s for s in samples if s.number == number)
            sample.foreign[FORGETFUL] = fault

    def run(self, walks, others=True):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            work = (job for union in walks for job in self.jobs(union, others))
            for done in [pool.submit(*job) for job in work]:
                done.result()

    def jobs(self, union, others):
        for samples in self.groups(union):
            yield self.own, samples
            if not others:
                continue
            if union.name == "Responses items":
                yield self.pairs, samples
                for sample in samples:
                    sample.tried += 1
            # Tools that a provider runs itself are not declared to others.
            sent = [s for s in samples if not union.is_tool or declared(s.value)]
            apart = [s for s in sent if s.label in ("", "all") and not union.is_tool]
            together = [s for s in sent if s not in apart]
            for wire_format in MODELS:
                if wire_format == own_format(union.wire):
                    continue
                for sample in sent:
                    sample.tried += 1
                # A notice names an item of a type at least when it is alone.
                for group in [together, *([sample] for sample in apart)]:
                    if group:
                        yield self.other, group, wire_format


def refused_by_types(walks):
    """Yields the samples that the SDKs' own types refuse, which are faults of this test."""
    from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming

    optional = ("model", "max_tokens")
    beta = ("anthropic", MessageCreateParamsNonStreaming, optional, ())
    check.PROVIDERS["anthropic-beta"] = beta
    checkers = {}
    for union in walks:
        provider = union.wire.provider
        checker = checkers.setdefault(provider, check.Checker(provider))
        for sample in union.samples:
            body = json.loads(written(union.wire.body([sample.turn()])))
            if provider == "gemini":
                del body["model"]
            error = checker.first_error(body)
            if error:
                yield f"not valid: {' / '.join(sample.key())}: {error[0]}: {error[1]}"


# ------------------------------------------------------------------------- the report


COLUMNS = (
    "SDK",
    "version",
    "union",
    "types",
    "samples",
    "identical",
    "equal",
    "excepted",
    "invented",
    "to others",
    "held",
)


def report(walks, every):
    """Prints the table and the differences; returns their number."""
    rows = [COLUMNS, *map(row_of, walks)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    faults = [fault for union in walks for fault in faults_of(union)]
    shown = Counter()
    for sample, where, fault in faults:
        kind = f"{sample.union.package} {sample.union.name}: {sample.kind}{where}"
        shown[kind] += 1
        if every or shown[kind] == 1:
            print(f"{kind}: {sample.label or 'smallest'}: {short(fault)}")
    for kind, count in shown.items():
        if count > 1 and not every:
            print(f"{kind}: {count - 1} more")
    needless = needless_exceptions(walks)
    for key in needless:
        print(f"needless exception: {' / '.join(key)}: {EXCEPTIONS[key]}")
    return len(faults) + len(needless)


def row_of(union):
    alike = sum(not s.difference for s in union.samples)
    counts = (
        len(union.members),
        len(union.samples),
        alike,
        alike + sum(s.is_equal for s in union.samples),
        sum(bool(s.difference) and s.key() in EXCEPTIONS for s in union.samples),
        sum(s.is_invented for s in union.samples),
        sum(s.tried for s in union.samples),
        sum(s.tried - len(s.foreign) for s in union.samples),
    )
    return (union.package, version(union.package), union.name, *map(str, counts))


def faults_of(union):
    """Yields sample, wire format and fault of every difference that is no exception."""
    for sample in union.samples:
        if sample.difference and sample.key() not in EXCEPTIONS:
            yield sample, "", sample.difference
        for wire_format, fault in sample.foreign.items():
            if (*sample.key(), wire_format) not in EXCEPTIONS:
                yield sample, f" to {wire_format}", fault


def needless_exceptions(walks):
    samples = [sample for union in walks for sample in union.samples]
    used = {sample.key() for sample in samples if sample.difference}
    used |= {(*sample.key(), wire_format) for sample in samples for wire_format in sample.foreign}
    walked = {union.name for union in walks}
    return [key for key in EXCEPTIONS if key not in used and key[0] in walked]


def short(text):
    return text if len(text) <= 600 else text[:300] + " ... " + text[-280:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tool", default="target/debug/plan-inspect")
    parser.add_argument("--all", action="store_true", help="print every sample that differs")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("unions", nargs="*", metavar="UNION")
    options = parser.parse_args()
    if options.self_test:
        from walk_self_test import self_test

        examples, failures = self_test()
        for failure in failures:
            print(failure)
        print(f"self-test: {examples} examples, {len(failures)} failures")
        sys.exit(1 if failures else 0)
    walks = [walk for walk in all_unions() if not options.unions or walk.name in options.unions]
    if not os.access(options.tool, os.X_OK):
        check.give_up(f"{options.tool} is no program; build it with: cargo build -p plan-inspect")
    Walk(Tool(options.tool)).run(walks)
    failures = report(walks, options.all)
    if failures:
        print(f"FAILED: {failures} samples did not come back as they were")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
