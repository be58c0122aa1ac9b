"""Runs the programs of the Python pages, the README and the notebook unchanged."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

PAGES = sorted((ROOT / "docs" / "python").glob("*.md"))


def programs(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def langchain() -> dict[str, Any]:
    import test_langchain

    return {"model": test_langchain.Fake(seen=[]), "tools": [test_langchain.look]}


def openai_agents() -> dict[str, Any]:
    import test_openai_agents
    from agents import Agent

    return {
        "agent": Agent(
            "helper", instructions="Be brief.", tools=[test_openai_agents.look], model=test_openai_agents.Answers()
        )
    }


def pydantic_ai() -> dict[str, Any]:
    from pydantic_ai.models.test import TestModel

    return {"model": TestModel()}


def llama_index() -> dict[str, Any]:
    import test_llama_index

    return {"model": test_llama_index.Model().llm, "tools": [test_llama_index.LOOK]}


def haystack() -> dict[str, Any]:
    import test_haystack

    return {"model": test_haystack.Model(), "tools": [test_haystack.look]}


def dicts() -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]}


#: The names that the programs of a page need, and the required module.
GIVEN: dict[str, tuple[str, Any]] = {
    "langchain": ("langchain", langchain),
    "openai-agents": ("agents", openai_agents),
    "pydantic-ai": ("pydantic_ai", pydantic_ai),
    "llama-index": ("llama_index.core", llama_index),
    "haystack": ("haystack", haystack),
    "litellm": ("litellm", dicts),
    "batches": ("pyarrow", dict),
    "README": ("context_window", dict),
}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "bindings" / "python" / "README.md"], ids=str)
def test_the_programs_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, given = GIVEN[page.stem]
    pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    names = dict(given())
    found = programs(page)
    assert found, "a page without a program"
    for program in found:
        if "while count(messages)" in program:
            continue  # what the README warns of
        code = compile(program, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            asyncio.run(result)


def test_every_page_is_run() -> None:
    assert {page.stem for page in PAGES} == set(GIVEN)


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # The kernel is started here and connected by a local socket.
    notebook = nbformat.read(ROOT / "bindings" / "python" / "examples" / "notebook.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert not any(output.output_type == "error" for output in shown)
    kept = nbformat.read(ROOT / "bindings" / "python" / "examples" / "notebook.ipynb", 4)
    assert all(not cell.get("outputs") for cell in kept.cells), "the notebook is kept without outputs"
