"""Compares the planner's output body with its input body."""

import json

from conversations import Anthropic, Chat, Gemini, Responses, Tools
from spelling import CACHE_MARKS, MARKER, number_of, slices, unmarked, written
from unions import MODELS

PARAMETERS = ("parameters", "input_schema", "parametersJsonSchema", "format")


def own_format(wire):
    return wire.provider.removesuffix("-beta")


def wire_of(wire_format):
    kinds = {
        "openai-responses": Responses,
        "openai": Chat,
        "anthropic": Anthropic,
        "gemini": Gemini,
    }
    return kinds[wire_format](wire_format, MODELS[wire_format])


def conversation_of(wire):
    return wire.conversation if isinstance(wire, Tools) else wire


def compare(samples, body, out, wire):
    """Returns, by number of the sample, its first difference, whether that is of spelling only,
    and the units that were found."""
    last = samples[-1].number
    numbers = {sample.number for sample in samples}
    differences = {}
    expected, found = slices(wire.units(body)), slices(wire.units(out))
    if samples[0].value.get("type") == "compaction":
        return compare_compaction(samples[0], wire.units(body), wire.units(out))
    for (before, behind), units in expected.items():
        number = number_of(behind) if behind else last
        number = number if number in numbers else last
        there = found.get((before, behind))
        if there != units:
            is_equal = there is not None and list(map(plain, units)) == list(map(plain, there))
            if number not in differences or differences[number][1] and not is_equal:
                differences[number] = first_difference(units, there), is_equal, there or []
    return differences


def compare_compaction(sample, units, found):
    """Compares a compaction and everything after it; earlier messages may be missing."""
    unit = written(unmarked(sample.value))
    units, found = ([u for u in us if not MARKER.search(u)] for us in (units, found))
    rest = units[units.index(unit) :]
    if found[-len(rest) :] == rest:
        return {}
    there = found[found.index(unit) :] if unit in found else found
    return {sample.number: (first_difference(rest, there), False, there)}


def plain(unit):
    """Returns a unit without the order of its keys and the spelling of its numbers."""
    head, brace, rest = unit.partition("{")
    return head + json.dumps(json.loads(brace + rest), sort_keys=True)


def first_difference(units, found):
    if found is None:
        return "the place between its neighbours is gone"
    for at, unit in enumerate(units):
        if at >= len(found):
            return f"gone: {unit}"
        if found[at] != unit:
            return f"{unit} became {found[at]}"
    return f"there is more: {found[len(units)]}"


def invented(body, out, wire_in, wire_out):
    """Yields the assistant's texts in the output that are not in the input."""
    said = {text for text in conversation_of(wire_in).words(body) if text}
    joined = sorted(said, key=len, reverse=True)
    for text in wire_out.words(out):
        if text in said or not text:
            continue
        rest = text
        for known in joined:
            rest = rest.replace(known, "")
        if rest.strip():
            yield text


def result_texts(value, within=False):
    """Yields the texts of a tool's result."""
    if isinstance(value, str):
        if within:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from result_texts(item, within)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("output", "content", "result", "response", "stdout", "stderr"):
                yield from result_texts(item, True)
            elif within and (key == "text" or isinstance(item, (dict, list))):
                yield from result_texts(item, key == "text" or within and isinstance(item, list))


def is_client_result(value):
    """Returns True for the result of a tool that the caller ran."""
    kind = value.get("type") or ""
    return (
        kind.endswith("_call_output")
        or kind == "tool_result"
        or value.get("role") in ("tool", "function")
        or value.get("functionResponse") is not None
    )


def lost_texts(sample, out):
    if not is_client_result(sample.value):
        return []
    everything = json.dumps(json.loads(written(out)), ensure_ascii=False)
    texts = {text for text in result_texts(sample.value) if str(sample.number) in text}
    return [text for text in sorted(texts) if text not in everything]


def declared(tool):
    """Returns the object with the fields of a function, empty for any other tool."""
    if tool.get("functionDeclarations"):
        return tool["functionDeclarations"][0]
    for kind in ("function", "custom"):
        if isinstance(tool.get(kind), dict):
            return {**tool, **tool[kind]}
    is_function = tool.get("type") in ("function", "custom", "namespace")
    return tool if is_function or "input_schema" in tool else {}


def lost_fields(sample, out):
    """Returns the undeclared fields of a function, except description and parameters."""
    if not sample.union.is_tool:
        return []
    everywhere = {
        (key, plain(written({key: value})))
        for tool in out.get("tools") or ()
        for inner in (tool, *tool.get("functionDeclarations", ()))
        for key, value in (tool | inner | declared(inner)).items()
    }
    known = ("type", "name", "description", "function", "custom", *PARAMETERS, *CACHE_MARKS)
    return [
        key
        for key, value in declared(sample.value).items()
        if key not in known and value is not None
        if (key, plain(written({key: value}))) not in everywhere
    ]


def fault_elsewhere(sample, body, out, notices, wire_format):
    """Returns the fault of a sample that was planned alone for another wire format, or ""."""
    texts = list(invented(body, out, sample.union.wire, wire_of(wire_format)))
    if texts:
        return f"the assistant now says {texts[0]!r}"
    if any(" B1 " not in notice for notice in notices):
        return ""
    lost = lost_texts(sample, out) + lost_fields(sample, out)
    if lost:
        return f"lost without a notice: {', '.join(lost)}"
    marked = set(marked_texts(sample.value, str(sample.number)))
    everything = json.dumps(json.loads(written(out)), ensure_ascii=False)
    is_whole = sample.label in ("", "all") and not sample.union.is_tool
    if is_whole and marked and not any(text in everything for text in marked):
        return "left out without a notice"
    return ""


def marked_texts(value, number):
    """Yields texts that prove that a sample is present: with its number, or data."""
    if isinstance(value, str) and (number in value or len(value) > 40):
        yield value.rpartition(",")[2]  # without the type of a data address
    inner = value.values() if isinstance(value, dict) else value
    for item in inner if isinstance(value, (dict, list)) else ():
        yield from marked_texts(item, number)


def parted_pairs(body, out):
    """Yields number and fault of each item with an id that is sent without its reasoning."""
    sent = {(item.get("type"), item.get("id")) for item in out["input"]}
    for thought, item in zip(body["input"], body["input"][1:]):
        is_pair = thought.get("type") == "reasoning" and item.get("id")
        if not is_pair or ("reasoning", thought["id"]) in sent:
            continue
        if (item["type"], item["id"]) in sent:
            yield number_of(thought["id"]), f"{item['type']} is sent without its reasoning"
