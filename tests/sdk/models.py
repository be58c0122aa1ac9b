"""Compare the models that the official Python SDKs name with the registry.

    target/sdk/bin/python tests/sdk/models.py target/debug/plan-inspect

Asks `plan-inspect models show` for every name in the types of OpenAI's and
Anthropic's SDK (google-genai types no names). Names missing from the registry are listed
below, each with the reason. Remove a name once the registry has it.
Nothing goes over the network.

Exit: 0 all known, 1 some not, 2 bad usage or missing packages.
"""

import subprocess
import sys
from importlib.metadata import version
from typing import get_args

try:
    from anthropic.types.model import Model
    from openai.types import AllModels, ChatModel
    from openai.types.shared import ResponsesModel
except ImportError as error:
    print(f"models.py: {error}; see tests/sdk/check.py", file=sys.stderr)
    sys.exit(2)

NO_FIGURES = "neither a catalogue nor a page of its maker has its context length"
EXCEPTIONS = {
    "gpt-5.1-mini": NO_FIGURES,
    "gpt-6-cyber": NO_FIGURES,
    "gpt-6.2-astra-law": NO_FIGURES,
    "gpt-rosalind-research": NO_FIGURES,
}


def names_in(type_):
    """Returns the texts of all literals in a type."""
    names = set()
    for argument in get_args(type_):
        names |= {argument} if isinstance(argument, str) else names_in(argument)
    return names


def is_known(tool, name):
    shown = subprocess.run(
        [tool, "models", "show", name], capture_output=True, text=True
    )
    if shown.returncode and "is not in the registry" not in shown.stderr:
        print(f"models.py: {name}: {shown.stderr}", file=sys.stderr)
        sys.exit(2)
    return shown.returncode == 0


def main(arguments):
    if len(arguments) != 1:
        print("usage: models.py PLAN-INSPECT", file=sys.stderr)
        return 2
    named = {
        "openai": names_in(ChatModel) | names_in(AllModels) | names_in(ResponsesModel),
        "anthropic": names_in(Model),
    }
    wrong = 0
    for package, names in named.items():
        unknown = {name for name in names if not is_known(arguments[0], name)}
        excepted = unknown & EXCEPTIONS.keys()
        print(
            f"{package} {version(package)}: {len(names)} models, "
            f"{len(names) - len(unknown)} known, {len(excepted)} exceptions"
        )
        if len(names) < 20:
            print(f"too few names: {package} keeps them in other types by now")
            wrong += 1
        for name in sorted(unknown - excepted):
            print(f"not in config/models.toml: {name}")
            wrong += 1
        for name in sorted((EXCEPTIONS.keys() & names) - unknown):
            print(f"known by now, so no exception: {name}")
            wrong += 1
    for name in sorted(EXCEPTIONS.keys() - set().union(*named.values())):
        print(f"no SDK names it, so no exception: {name}")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
