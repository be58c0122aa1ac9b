#!/usr/bin/env python3
"""Measures the selection of documents by `plan-inspect`, and by other libraries on the same documents.

    CONTEXT_WINDOW_DATA=DATA benches/documents.py FOLDER --tool target/release/plan-inspect [--peers]

Builds sets of sessions from `rag_{musique,mtragun,cookcode}.jsonl.gz` in FOLDER:

- `raw_NAME`: the passages and scores of the file.
- `chunks_NAME`: passages cut into chunks of 100 words that repeat the last 20 words of the one before, with their own
  BM25 scores; fewer than 50 new words at the end are added to the last chunk. Passages of cookcode are chunks already:
  each repeats the last fifth of its neighbour's words, but no more words than it has itself.
- `words_NAME`, `characters_NAME`, `fused_NAME`: passages ranked by BM25 over words, over runs of four characters, and
  both lists. For musique, `title`, `body` and `titled`: by the first line, by the rest, and both lists.
- `forms_NAME` (`--sets forms`): the passages of the file, each with its first sentence as a shorter form; for musique
  after the title. The policies are the values of `rag.variants`.
- `few_cookcode`, `neighbours_cookcode`, `parents_cookcode` (`--sets neighbours`): the five best chunks of each question
  alone, with the chunks before and after each as dependents, and with the whole file as a dependent. All evidence of a
  question counts, also chunks that no set holds.

Evidence is text: all gold passages, or all of their chunks, because a passage was judged as a whole. Half or more of
each chunk is new, so none is evidence only because of its overlap. `plan-inspect eval` finds near-duplicates, too.

The columns `all` and `evidence` are those of `plan-inspect eval`. The others are means over the plans of every K-th
session (`--every K`), in tokens, of which each byte of the documents has the same share:

- `repeats`: documents of which 90 % of the runs of five words are in one earlier document or message.
- `overlap`: all runs of words that are in earlier documents or messages.
- `middle`: per cent of the documents with evidence whose centre is in the middle third of the documents.
- `text`: per cent of the runs of words of the evidence that the documents of the prompt have.
- `shorter`: documents that are sent in a shorter form.

With `--peers`, LangChain and Haystack choose and order documents (`pip install langchain-classic langchain-community
haystack-ai`), with the planner's room and prices. One that does not fit is skipped. LangChain's filter and MMR get
counts of words for embeddings. Its clustering filter and Haystack's rankers by meaning are left out: they need a model.
"""

import argparse
import gzip
import json
import math
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

POOL = ThreadPoolExecutor(2)
CHUNK, OVERLAP, NEAR, FEWEST, RUN = 100, 20, 0.9, 8, 5
HEAD = f"{'policy':26} budget    all evidence documents repeats overlap middle   text shorter"
COLUMNS = ("documents", "repeats", "overlap", "middle", "text", "shorter", "places")
DOCUMENT = re.compile(r"<document(?: [^>]*)?>\n(.*?)\n</document>", re.DOTALL)
OFF = {"near_duplicates": "0", "repeats": "0", "join_chunks": "false", "order": '"relevance"'}
ON = {"near_duplicates": "90", "repeats": "90", "join_chunks": "true"}
ORDERS = [("order", f'"{order}"') for order in ("relevance_last", "edges", "source")]
ALONE = [*ON.items(), *ORDERS, ("max_source_items", "2")]


def words(text: str) -> list[str]:
    """Returns the words in lower case."""
    return re.findall(r"[^\W_]+", text.lower())


def characters(text: str) -> list[str]:
    """Returns the runs of four characters in lower case, with single spaces."""
    line = " ".join(text.lower().split())
    return [line[at : at + 4] for at in range(max(len(line) - 3, 1))]


@lru_cache(maxsize=100_000)
def runs(text: str) -> frozenset[tuple[str, ...]]:
    """Returns the runs of five words."""
    found = words(text)
    return frozenset(tuple(found[at : at + RUN]) for at in range(len(found) - RUN + 1))


def bm25(texts: set[str], terms: Callable[[str], list[str]]) -> Callable[[str, str], float]:
    """Returns a function from query and text to the Okapi BM25 score (k1 1.2, b 0.75), rounded to four decimals."""
    lists = [terms(text) for text in texts]
    frequency = Counter(term for found in lists for term in set(found))
    count, length = len(lists), sum(map(len, lists)) / max(len(lists), 1)

    def score(query: str, text: str) -> float:
        found, total = Counter(terms(text)), 0.0
        norm = 1.2 * (0.25 + 0.75 * found.total() / length)
        # Sorted, because a sum of floats depends on the order.
        for term in sorted(set(terms(query)) & set(found)):
            rarity = math.log(1 + (count - frequency[term] + 0.5) / (frequency[term] + 0.5))
            total += rarity * found[term] * 2.2 / (found[term] + norm)
        return round(total, 4)

    return score


def ranked(documents: Iterable[dict], query: str, score: Callable, field: Callable[[str], str] = str) -> list[dict]:
    """Sorts documents by their scores, then by id: the order of the file is a ranking, too."""
    scored = [{**row, "score": score(query, field(row["text"]))} for row in documents]
    return sorted(scored, key=lambda row: (-row["score"], row["id"]))


def read(path: Path) -> list[dict]:
    """Reads the sessions of a file, with the question apart from the messages before it."""
    cases = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            # The last message is the question.
            messages = row.get("messages", [])[:-1]
            documents = [{key: passage[key] for key in ("id", "text", "score")} for passage in row["passages"]]
            case = {"id": row["id"], "query": row["query"], "messages": messages, "documents": documents}
            cases.append({**case, "evidence": {one["id"]: one["text"] for one in row["passages"] if one["gold"]}})
    return cases


def cut(identity: str, text: str) -> list[dict]:
    """Cuts a passage into chunks that overlap, with its spaces and lines."""
    parts, step = re.findall(r"\s*\S+", text), CHUNK - OVERLAP
    # The last chunk has at least as many new words as half a chunk.
    count = max(1, 1 + (len(parts) - OVERLAP - CHUNK // 2) // step)
    ends = [*(at * step + CHUNK for at in range(count - 1)), len(parts)]
    texts = ["".join(parts[at * step : end]).strip("\n") for at, end in enumerate(ends)]
    return [{"id": f"{identity}#{at}", "text": one, "source": identity, "position": at} for at, one in enumerate(texts)]


def code_chunk(identity: str, text: str, pool: dict[str, str]) -> dict:
    """Returns a chunk of code that repeats the end of its neighbour."""
    source, _, position = identity.rpartition("_chunk_")
    before = re.findall(r"\s*\S+", pool.get(f"{source}_chunk_{int(position) - 1}", ""))
    tail = "".join(before[len(before) - min(len(before) // 5, len(text.split())) :])
    return {"id": identity, "text": f"{tail}\n{text}".lstrip("\n"), "source": source, "position": int(position)}


def chunked(name: str, cases: list[dict]) -> list[dict]:
    """Returns the sessions with overlapping chunks. Each chunk has a `source` and a `position`."""
    pool = {row["id"]: row["text"] for case in cases for row in case["documents"]}
    cut_up = (lambda one, text: [code_chunk(one, text, pool)]) if name == "cookcode" else cut
    chunks = [{row["id"]: cut_up(row["id"], row["text"]) for row in case["documents"]} for case in cases]
    score = bm25({row["text"] for case in chunks for rows in case.values() for row in rows}, words)
    result = []
    for case, pieces in zip(cases, chunks):
        documents = ranked((row for rows in pieces.values() for row in rows), case["query"], score)
        evidence = {row["id"]: row["text"] for gold in case["evidence"] for row in pieces[gold]}
        result.append({**case, "documents": documents, "evidence": evidence})
    return result


def several(name: str, cases: list[dict]) -> dict[str, list[dict]]:
    """Returns the sets with one list, and with two, of the same passages."""
    texts = {row["text"] for case in cases for row in case["documents"]}
    fields: dict[str, tuple[Callable, Callable]] = {"words": (str, words), "characters": (str, characters)}
    pairs, sets = {"fused": ("words", "characters")}, {}
    if name == "musique":
        fields["title"] = (lambda text: text.partition("\n")[0], words)
        fields["body"] = (lambda text: text.partition("\n")[2], words)
        pairs["titled"] = ("title", "body")
    for key, (field, terms) in fields.items():
        score = bm25({field(text) for text in texts}, terms)
        sets[key] = [{**case, "documents": ranked(case["documents"], case["query"], score, field)} for case in cases]
    for key, names in pairs.items():
        both = zip(*(sets[one] for one in names))
        sets[key] = [{**row[0], "lists": {one: case["documents"] for one, case in zip(names, row)}} for row in both]
    return {f"{key}_{name}": rows for key, rows in sets.items()}


def shortened(name: str, cases: list[dict]) -> list[dict]:
    """Returns the sessions with the first sentence of each passage as a shorter form."""

    def first(text: str) -> str:
        title, _, body = text.partition("\n") if name == "musique" else ("", "", text.strip())
        sentence = re.match(r".+?(?:[.!?](?=\s)|\n\s*\n|$)", body, re.DOTALL)
        return f"{title}\n{sentence[0] if sentence else body}".lstrip("\n")

    def both(row: dict) -> dict:
        return {**row, "variants": [{"name": "summary", "text": first(row["text"])}]}

    return [{**case, "documents": [both(row) for row in case["documents"]]} for case in cases]


def beside(cases: list[dict]) -> dict[str, list[dict]]:
    """Returns the sets with few chunks: alone, with their neighbours, and with their whole files."""
    chunks = {row["id"]: row for case in cases for row in case["documents"]}
    files: dict[str, dict[int, dict]] = {}
    for row in chunks.values():
        files.setdefault(row["source"], {})[row["position"]] = row
    whole = {name: "\n".join(rows[at]["text"] for at in sorted(rows)) for name, rows in files.items()}
    sets: dict[str, list[dict]] = {"few": [], "neighbours": [], "parents": []}
    for case in cases:
        few = case["documents"][:5]
        known = {row["id"] for row in few}
        near: dict[str, dict] = {}
        for row in few:
            for at in (row["position"] - 1, row["position"] + 1):
                other = files[row["source"]].get(at)
                if other and other["id"] not in known:
                    near.setdefault(other["id"], {**other, "score": 0, "requires": []})["requires"].append(row["id"])
        parents: dict[str, dict] = {}
        for row in few:
            name = row["source"]
            parent = {"id": f"whole {name}", "text": whole[name], "score": 0, "requires": []}
            parents.setdefault(name, parent)["requires"].append(row["id"])
        sets["few"].append({**case, "documents": few})
        sets["neighbours"].append({**case, "documents": [*few, *near.values()]})
        sets["parents"].append({**case, "documents": [*few, *parents.values()]})
    return {f"{name}_cookcode": rows for name, rows in sets.items()}


class Tool:
    """The tool `plan-inspect`."""

    def __init__(self, path: str) -> None:
        self.path = path
        section = self.run("config", "show").partition("[rag]\n")[2].partition("\n[")[0]
        self.options = set(re.findall(r"^#?(\w+) (?:=|is)", section, re.MULTILINE))

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Runs a command and returns its output."""
        done = subprocess.run([self.path, *arguments], input=given, capture_output=True, encoding="utf-8")
        if done.returncode:
            raise RuntimeError(f"code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def policies(self, folder: Path, sets: list[str]) -> dict[str, str]:
        """Writes the policies that this tool has the options for, and returns the files."""
        if sets == ["forms"]:
            policies = {f"variants={order}": {"variants": f'"{order}"'} for order in ("off", "depth", "breadth")}
            return self.written(folder, policies)
        if sets == ["neighbours"]:
            return self.written(folder, {"unchanged": {}})
        off = {key: value for key, value in OFF.items() if key in self.options}
        policies = {"today": off}
        print(f"missing options of [rag]: {', '.join(sorted({key for key, _ in ALONE} - self.options)) or 'none'}")
        alone = [(key, value) for key, value in ALONE if key in self.options]
        policies |= {f"{key}={value}".replace('"', ""): {**off, key: value} for key, value in alone}
        if off:
            policies |= {"all-on": {**off, **{key: value for key, value in ON.items() if key in off}}, "unchanged": {}}
        return self.written(folder, policies)

    @staticmethod
    def written(folder: Path, policies: dict[str, dict[str, str]]) -> dict[str, str]:
        """Writes policies, and returns the files."""
        for name, options in policies.items():
            lines = ["[rag]", *(f"{key} = {value}" for key, value in options.items())]
            (folder / f"{name}.toml").write_text("\n".join(lines), encoding="utf-8")
        return {name: str(folder / f"{name}.toml") for name in policies}

    def plan(self, case: dict, budget: int, policy: str) -> dict:
        """Plans a question. Returns tokens, ids, and the texts of documents and messages."""
        messages = [*case["messages"], {"role": "user", "content": case["query"]}]
        given = json.dumps({"messages": messages, "rag": case.get("lists", case["documents"])})
        # The limits of `plan-inspect eval`.
        flags = ["plan", "-", "--config", policy, "--safety-buffer", "0", "--certainty", "exact"]
        flags += ["--context-len", str(budget + budget // 4), "--max-completion", str(budget // 4)]
        plan = json.loads(self.run(*flags, "--format", "json", given=given))
        sent = json.loads(self.run(*flags, "--format", "messages", given=given))["messages"]
        texts = [message["content"] for message in sent]
        blocks = [text for text in texts if text.startswith("<documents>")]
        return {
            "room": plan["sections"]["rag"]["budget"],
            "used": plan["sections"]["rag"]["used"],
            "ids": [row["id"] for row in plan["included"]],
            "shorter": sum("form" in row for row in plan["included"]),
            "prices": {row["id"]: row["token_estimate"] for row in plan["included"] + plan["excluded"]},
            "documents": [text for block in blocks for text in DOCUMENT.findall(block)],
            "messages": [text for text in texts if text not in blocks],
        }


def is_in(text: str, sent: set | frozenset) -> bool:
    """Checks if 90 % of the runs of a text are among others."""
    return len(words(text)) >= FEWEST and len(runs(text) & sent) >= NEAR * len(runs(text))


def found(case: dict, plan: dict) -> float:
    """Returns the share of the evidence in a prompt, as `plan-inspect eval` finds it."""
    evidence, sent = case["evidence"], set().union(*map(runs, plan["documents"] + plan["messages"]))
    return sum(one in plan["ids"] or is_in(text, sent) for one, text in evidence.items()) / len(evidence)


def layout(case: dict, plan: dict) -> Counter:
    """Returns the tokens of repeated documents and runs, and the evidence in the middle of the documents."""
    used, price = plan["used"], plan["used"] / (sum(len(text.encode()) for text in plan["documents"]) or 1)
    earlier, union = list(map(runs, plan["messages"])), set().union(*map(runs, plan["messages"]))
    golds = [runs(text) for text in case["evidence"].values()]
    sums, at = Counter(documents=used), 0.0
    for text in plan["documents"]:
        own, tokens = runs(text), price * len(text.encode())
        sums["overlap"] += tokens * len(own & union) / max(len(own), 1)
        # The union is cheap, and a repeat of one text is in it.
        if is_in(text, union) and any(is_in(text, one) for one in earlier):
            sums["repeats"] += tokens
        if any(gold and len(gold & own) >= NEAR * len(gold) for gold in golds):
            sums["places"] += 1
            sums["middle"] += used < 3 * (at + tokens / 2) < 2 * used
        at += tokens
        earlier.append(own)
        union |= own
    gold = set().union(*golds)
    sums["text"] = 100 * len(gold & union) / max(len(gold), 1)
    sums["shorter"] = plan.get("shorter", 0)
    return sums


def print_row(policy: str, budget: int, whole: float, evidence: float, rows: list[Counter]) -> None:
    """Prints a line of a table, with the means of the sample if there is one."""
    mean = {key: sum(row[key] for row in rows) / max(len(rows), 1) for key in COLUMNS}
    mean["middle"] *= 100 / (mean.pop("places") or 1)
    shown = "{:9.0f} {:7.1f} {:7.1f} {:6.1f} {:6.1f} {:7.1f}".format(*mean.values())
    print(f"{policy:26} {budget:6} {whole:6.1f} {evidence:8.1f} {shown if rows else ''}".rstrip(), flush=True)


def evaluate(tool: Tool, path: Path, cases: list[dict], args: argparse.Namespace) -> None:
    """Prints the figures of the planner for each policy and budget."""
    flags = ["--every", "0", "--budget", ",".join(map(str, args.budgets)), "--policy", ",".join(args.files.values())]
    flags += ["--baseline", "best-score,oracle", "--format", "json"]
    try:
        scores = json.loads(tool.run("eval", str(path), *flags))["scores"]
    except RuntimeError as error:
        print(f"\n{path.stem}: not measured, because this tool cannot read the set ({error})")
        return
    chosen, asked = cases[:: args.every], scores[0]["questions"]
    print(f"\n{path.stem}: {len(cases)} sessions, {asked} with evidence; tokens over {len(chosen)} sessions\n{HEAD}")
    for row in scores:
        budget, policy = row["prompt_budget"], args.files.get(row["policy"], "")
        rows = POOL.map(lambda case: layout(case, tool.plan(case, budget, policy)), chosen if policy else [])
        print_row(row["policy"], budget, row["whole_percent"], row["evidence_percent"], list(rows))


def examine(tool: Tool, path: Path, cases: list[dict], args: argparse.Namespace) -> None:
    """Prints the figures of the plans themselves, for evidence that the documents of a session may lack."""
    chosen = [case for case in cases if case["evidence"]][:: args.every]
    print(f"\n{path.stem}: {len(chosen)} sessions with evidence\n{HEAD}")
    for name, policy in args.files.items():
        for budget in args.budgets:
            plans = list(POOL.map(lambda case: tool.plan(case, budget, policy), chosen))
            shares = [found(case, plan) for case, plan in zip(chosen, plans)]
            rows = [layout(case, plan) for case, plan in zip(chosen, plans)]
            print_row(name, budget, 100 * shares.count(1) / len(shares), 100 * sum(shares) / len(shares), rows)


def langchain() -> dict[str, Callable]:
    """Returns the functions of LangChain: from session, a function that cuts, and room to documents."""
    import numpy
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.document_transformers import EmbeddingsRedundantFilter, LongContextReorder
    from langchain_core.documents import Document
    from langchain_core.embeddings import FakeEmbeddings
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    class Counts(FakeEmbeddings):
        """Counts of words, in place of a model's embeddings."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            """Returns a count for each word of the texts."""
            counts = [Counter(words(text)) for text in texts]
            terms = sorted(set().union(*counts))
            return [[float(count[term]) for term in terms] for count in counts]

    def pages(rows: list[dict]) -> list[Document]:
        return [Document(page_content=row["text"], metadata=row) for row in rows]

    def fused(case: dict, fit: Callable, _: int) -> list[dict]:
        # Only the fusion, without a check of retrievers: they have answered already.
        lists = [pages(rows) for rows in case["lists"].values()]
        fusion = EnsembleRetriever.model_construct(weights=[1 / len(lists)] * len(lists), c=60, id_key="id")
        return fit([page.metadata for page in fusion.weighted_reciprocal_rank(lists)])

    def diverse(case: dict, fit: Callable, _: int) -> list[dict]:
        question, *vectors = counts.embed_documents([case["query"], *(row["text"] for row in case["documents"])])
        order = maximal_marginal_relevance(numpy.array(question), vectors, lambda_mult=0.5, k=len(vectors))
        return fit([case["documents"][at] for at in order])

    counts, reorder = Counts(size=1), LongContextReorder().transform_documents
    redundant = EmbeddingsRedundantFilter(embeddings=counts).transform_documents
    return {
        "LangChain reorder": lambda case, fit, _: [page.metadata for page in reorder(pages(fit(case["documents"])))],
        "LangChain filter": lambda case, fit, _: fit([page.metadata for page in redundant(pages(case["documents"]))]),
        "LangChain MMR": diverse,
        "LangChain fusion": fused,
    }


def haystack() -> dict[str, Callable]:
    """Returns the functions of Haystack, like those of LangChain."""
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.rankers import LostInTheMiddleRanker

    def pages(rows: list[dict]) -> list[Document]:
        return [Document(id=row["id"], content=row["text"], score=row["score"], meta=row) for row in rows]

    fuse, ranker = DocumentJoiner(join_mode="reciprocal_rank_fusion").run, LostInTheMiddleRanker()

    def middle(rows: list[dict], room: int | None = None) -> list[dict]:
        # Three words for four tokens, the usual estimate.
        return [page.meta for page in ranker.run(pages(rows), word_count_threshold=room and room * 3 // 4)["documents"]]

    return {
        "Haystack middle": lambda case, fit, _: middle(fit(case["documents"])),
        "Haystack middle, by words": lambda case, fit, room: fit(middle(case["documents"], room)),
        "Haystack fusion": lambda case, fit, _: fit(
            [page.meta for page in fuse(map(pages, case["lists"].values()))["documents"]]
        ),
    }


def fitting(prices: dict[str, int], room: int, rows: list[dict]) -> list[dict]:
    """Returns the documents that fit, taken in this order."""
    chosen = []
    for row in rows:
        if prices[row["id"]] <= room:
            room -= prices[row["id"]]
            chosen.append(row)
    return chosen


def compare(tool: Tool, path: Path, cases: list[dict], args: argparse.Namespace) -> None:
    """Prints the figures of other libraries, for the same questions, prices and room as the planner's."""
    chosen = [case for case in cases if case["evidence"]][:: args.every]
    print(f"\n{path.stem}: {len(chosen)} sessions with evidence, other libraries\n{HEAD}")
    # The tool prices and plans the first list, because it may not read several.
    firsts, today = [{**case, "lists": case["documents"]} for case in chosen], args.files["today"]
    prices = [plan["prices"] for plan in POOL.map(lambda case: tool.plan(case, 1_000_000, today), firsts)]
    orders = {name: order for name, order in args.orders.items() if "lists" in chosen[0] or "fusion" not in name}
    for budget in args.budgets:
        plans = list(POOL.map(lambda case: tool.plan(case, budget, today), firsts))
        for name, order in orders.items():
            rows, shares = [], []
            for case, cost, plan in zip(chosen, prices, plans):
                if order:
                    sent = order(case, partial(fitting, cost, plan["room"]), plan["room"])
                    ids, texts = [row["id"] for row in sent], [row["text"] for row in sent]
                    plan = {**plan, "ids": ids, "documents": texts, "used": sum(cost[one] for one in ids)}
                shares.append(found(case, plan))
                rows.append(layout(case, plan))
            print_row(name, budget, 100 * shares.count(1) / len(shares), 100 * sum(shares) / len(shares), rows)


def main() -> None:
    """Builds the sets and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder for the sets and policies")
    parser.add_argument("--tool", default="target/release/plan-inspect", help="path of plan-inspect")
    parser.add_argument("--budgets", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    parser.add_argument("--sets", nargs="+", default=["raw", "chunks", "lists"])
    parser.add_argument("--every", type=int, default=3, metavar="K", help="examine the plan of every K-th session")
    parser.add_argument("--peers", action="store_true", help="measure other libraries instead of the planner")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tool = Tool(args.tool)
    args.files, args.orders = tool.policies(args.folder, args.sets), {"context-window, first list": None}
    args.orders["best first"] = lambda case, fit, _: fit(case["documents"])
    for load in (langchain, haystack) if args.peers else ():
        try:
            args.orders |= load()
        except ImportError as error:
            print(f"missing peer: {load.__name__} ({error}); its lines are left out")
    for name in ("musique", "mtragun", "cookcode"):
        passages = read(Path(os.environ["CONTEXT_WINDOW_DATA"], f"rag_{name}.jsonl.gz"))
        sets = {f"raw_{name}": passages} if "raw" in args.sets else {}
        sets |= {f"chunks_{name}": chunked(name, passages)} if "chunks" in args.sets else {}
        sets |= several(name, passages) if "lists" in args.sets else {}
        sets |= {f"forms_{name}": shortened(name, passages)} if "forms" in args.sets else {}
        sets |= beside(chunked(name, passages)) if name == "cookcode" and "neighbours" in args.sets else {}
        for key, cases in sets.items():
            path = args.folder / f"{key}.jsonl"
            with open(path, "w", encoding="utf-8") as file:
                for case in cases:
                    question = {"text": case["query"], "evidence": list(case["evidence"])}
                    session = {"id": case["id"], "messages": case["messages"], "questions": [question]}
                    file.write(json.dumps({**session, "rag": case.get("lists", case["documents"])}) + "\n")
            figures = examine if args.sets == ["neighbours"] else evaluate
            (compare if args.peers else figures)(tool, path, cases, args)


if __name__ == "__main__":
    main()
