"""JSON with the order of its keys and the spelling of its numbers, and its slices."""

import json
import re

from samples import Num

MARKER = re.compile(r"\b(?:Question|Answer) \d+b?[?.]|\bmark_\d+\b")
# The planner sets new cache marks in each prompt.
CACHE_MARKS = ("cache_control", "prompt_cache_breakpoint")


def written(value):
    """Writes JSON with the original order of keys and spelling of numbers."""
    if isinstance(value, Num):
        return value.spelt
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{written(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def read(text):
    return json.loads(text, parse_float=Num, parse_int=Num, parse_constant=Num)


def unmarked(value):
    """Returns the value without cache marks; an argument of a call may have that name."""
    if isinstance(value, dict):
        return {
            key: unmarked(item)
            for key, item in value.items()
            if key not in CACHE_MARKS or not (item is None or isinstance(item, dict))
        }
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def slices(units):
    """Returns the units between two markers, by both; units with markers are left out."""
    found = {}
    before, between = None, []
    for unit in units:
        name = MARKER.search(unit)
        if name is None:
            between.append(unit)
        else:
            found[before, name.group()] = between
            before, between = name.group(), []
    found[before, None] = between
    return found


def number_of(marker):
    """Returns the number of the sample that a marker belongs to."""
    return int(re.search(r"\d+", marker).group())
