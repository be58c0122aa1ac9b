#!/usr/bin/env python3
"""Draws the frontier of options from two CSV files of `plan-inspect eval`.

    benches/frontier.py MARKS.csv SHARES.csv > docs/pictures/frontier.svg

MARKS.csv has policies named `mark-N` for the low mark N, with the prefix kept and the budget used. SHARES.csv has
policies named `share-N+recall` for the documents' share N, over two sets of sessions. The first picture shows the budget
used over the prefix kept, the second the evidence of one set over that of the other. The defaults are circles with a
ring.

The policies are files of options without compaction: `mark-600.toml` sets `conversation.low_mark`, `share-300.toml`
sets `sections.rag.share`, and the other sections share the rest. The commands:

    plan-inspect eval long_longmemeval.jsonl.gz --first 8 --every 1 --budget 2048,4096,8192 --baseline none \
        --policy mark-300.toml,...,mark-1000.toml --format csv --output MARKS.csv
    plan-inspect eval long_longmemeval.jsonl.gz long_qmsum.jsonl.gz --every 0 --budget 2048,4096 --baseline none \
        --policy share-150.toml+recall,...,share-800.toml+recall --format csv --output SHARES.csv
"""

from __future__ import annotations

import csv
import sys
from html import escape
from itertools import cycle

DEFAULTS = {"mark-600", "share-300+recall"}
WIDTH, HEIGHT, MARGIN = 420, 320, 52
COLOURS = ("#0b6bcb", "#b2480a", "#12803f", "#8250df")


def read(path: str) -> list[dict[str, str]]:
    """Reads the rows of planner policies."""
    with open(path, encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["baseline"] == "false"]


def number(policy: str) -> int:
    """Returns the value of the option in a policy's name."""
    return int(policy.split("+")[0].split("-")[1])


def marks(rows: list[dict[str, str]]) -> dict[str, list[tuple[str, float, float]]]:
    """Returns a curve for each budget: policy, prefix kept, budget used."""
    curves: dict[str, list[tuple[str, float, float]]] = {}
    for row in sorted(rows, key=lambda row: number(row["policy"])):
        point = (row["policy"], float(row["prefix_kept_percent"]), float(row["budget_used_percent"]))
        curves.setdefault(f"{int(row['prompt_budget']):,} tokens", []).append(point)
    return curves


def shares(rows: list[dict[str, str]]) -> tuple[list[str], dict[str, list[tuple[str, float, float]]]]:
    """Returns the two sets, and a curve for each budget: policy, evidence in each set."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    curves: dict[str, list[tuple[str, float, float]]] = {}
    first = [row for row in rows if row["set"] == sets[0]]
    for row in sorted(first, key=lambda row: number(row["policy"])):
        same = ("policy", "prompt_budget")
        other = next(o for o in rows if o["set"] == sets[1] and all(o[key] == row[key] for key in same))
        point = (row["policy"], float(row["whole_percent"]), float(other["whole_percent"]))
        curves.setdefault(f"{int(row['prompt_budget']):,} tokens", []).append(point)
    return sets, curves


def panel(at: int, title: str, labels: tuple[str, str], curves: dict[str, list[tuple[str, float, float]]]) -> list[str]:
    """Draws one coordinate system with its curves."""
    points = [point for curve in curves.values() for point in curve]
    low = [min(point[axis] for point in points) for axis in (1, 2)]
    high = [max(point[axis] for point in points) for axis in (1, 2)]
    span = [max(top - bottom, 1) for bottom, top in zip(low, high)]
    inner = (WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            at + MARGIN + inner[0] * (x - low[0]) / span[0],
            HEIGHT - MARGIN - inner[1] * (y - low[1]) / span[1],
        )

    lines = [f'<text x="{at + MARGIN}" y="20" class="title">{escape(title)}</text>']
    for part in range(5):
        x, y = (bottom + size * part / 4 for bottom, size in zip(low, span))
        across, up = place(x, low[1])[0], place(low[0], y)[1]
        lines.append(f'<line class="grid" x1="{at + MARGIN}" x2="{at + WIDTH - MARGIN}" y1="{up:.1f}" y2="{up:.1f}"/>')
        lines.append(f'<text x="{at + MARGIN - 6}" y="{up + 4:.1f}" class="end">{y:.0f}</text>')
        lines.append(f'<text x="{across:.1f}" y="{HEIGHT - MARGIN + 16}" class="middle">{x:.0f}</text>')
    middle = at + WIDTH // 2
    lines.append(f'<text x="{middle}" y="{HEIGHT - 12}" class="middle">{escape(labels[0])}</text>')
    upright = f'transform="rotate(-90 {at + 12} {HEIGHT // 2})"'
    lines.append(f'<text x="{at + 12}" y="{HEIGHT // 2}" class="middle" {upright}>{escape(labels[1])}</text>')
    for nth, ((name, curve), colour) in enumerate(zip(curves.items(), cycle(COLOURS))):
        lines.append(f'<text x="{at + MARGIN + 110 * nth}" y="40" fill="{colour}">{escape(name)}</text>')
        places = [place(x, y) for _, x, y in curve]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        for (policy, *_), (x, y) in zip(curve, places):
            if policy in DEFAULTS:
                lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="none" stroke="{colour}"/>')
            lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
            lines.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}" fill="{colour}">{number(policy)}</text>')
    return lines


def main() -> int:
    """Prints the picture."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    sets, by_set = shares(read(sys.argv[2]))
    low_marks = marks(read(sys.argv[1]))
    style = (
        "text { font: 11px system-ui, sans-serif; } .title { font-weight: 600; font-size: 13px; }"
        " .end { text-anchor: end; } .middle { text-anchor: middle; } .grid { stroke: #d5dae1; }"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" width="{2 * WIDTH}">',
        f"<style>{style}</style>",
        f'<rect width="{2 * WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *panel(0, "conversation.low_mark, per mille", ("prefix kept, %", "budget used, %"), low_marks),
        *panel(WIDTH, "sections.rag.share, per mille", (f"all evidence, {sets[0]}, %", f"{sets[1]}, %"), by_set),
        "</svg>",
    ]
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
