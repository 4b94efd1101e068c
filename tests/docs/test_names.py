"""Links, files, commands, families, symbols and attributes that the pages name exist."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from hidag import DCRL

from .pages import DOCUMENTS, ROOT, relative

NOTATION = ROOT / "docs" / "notation.md"
PATHS = r"`((?:src|tests|examples|benchmarks|docs)/[\w./-]+)`"


def test_the_readme_lists_every_family() -> None:
    from hidag.measurement.families import ITEM_TYPES

    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| [^|]* \| [^|]* \|$", text.split("### Families")[1], re.M)
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)(?:\(\d+\))?`", row)}
    assert set(ITEM_TYPES) <= listed


def test_the_readme_lists_every_command() -> None:
    from hidag.cli.app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    line = (ROOT / "README.md").read_text("utf-8").split("The other commands: `hidag ")[1]
    line = line.split(".")[0]
    assert names == {"fit", *re.findall(r"[\w-]+(?=`)", line)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_relative_link_leads_somewhere(path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [
        target
        for target in targets
        if not target.startswith(("http://", "https://")) and not (path.parent / target).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_file_that_is_named_exists(path) -> None:
    named = re.findall(PATHS, path.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    named = set(re.findall(r"(?:^|`)make (\w+)", text, re.M))
    assert {"demo", "test"} <= named <= targets


def test_names_in_tables_of_how_to_add_are_in_their_files() -> None:
    pages = ("how_to_add.md", "how_to_add_a_family.md")
    text = "\n".join((ROOT / "docs" / page).read_text("utf-8") for page in pages)
    seen = 0
    for line in text.splitlines():
        files = re.findall(PATHS, line)
        if not line.startswith("|") or len(files) != 1 or not files[0].endswith(".py"):
            continue
        source = (ROOT / files[0]).read_text("utf-8")
        for name in re.findall(r"`([A-Za-z_]\w+(?:\.\w+)?)`", line):
            if (ROOT / Path(files[0]).parent / name).exists():
                continue
            assert name.split(".")[-1] in source, f"{name} is not in {files[0]}"
            seen += 1
    assert seen >= 10


def code_names() -> list[str]:
    """Return the names in the second column of the tables of notation.md."""
    rows = [line for line in NOTATION.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [row.split("|")[2] for row in rows]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def resolved(path: str) -> bool:
    """Return whether a dotted path leads to a module, a thing in it, or a field of that."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if is_dataclass(thing) and name in thing.__dataclass_fields__:
                return name == parts[-1]
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False


def test_notation_has_the_papers_symbols() -> None:
    assert len(code_names()) >= 35


@pytest.mark.parametrize("name", sorted(set(code_names())))
def test_names_of_the_notation_exist(name, readme) -> None:
    setting = re.fullmatch(r"DCRL\((\w+)\)", name)
    if setting:
        assert setting[1] in inspect.signature(DCRL).parameters
    elif name.startswith("DCRL."):
        assert hasattr(readme["model"], name.removeprefix("DCRL."))
    else:
        assert name.startswith("hidag.")
        assert resolved(name)


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not resolved("hidag.latent.StateSpace.nothing")
    assert not resolved("hidag.nothing")


def test_attributes_in_the_readme_exist(readme) -> None:
    rows = re.findall(r"^\| (`\w+_`[^|]*)\|", (ROOT / "README.md").read_text("utf-8"), re.M)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) >= 12
    assert [name for name in names if not hasattr(readme["model"], name)] == []
    documented = re.findall(r"(\w+_)\b(?=[ ,:])", DCRL.__doc__.split("Attributes")[1])
    assert set(documented) <= set(names)


def test_readme_lists_every_benchmark() -> None:
    named = re.findall(r"benchmarks/(\w+\.py)", (ROOT / "README.md").read_text("utf-8"))
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(named) == scripts
    plain = {path.name for path in (ROOT / "benchmarks").glob("*.py") if has_no_options(path)}
    assert plain == {"fit.py"}


def has_no_options(path: Path) -> bool:
    return "argparse" not in path.read_text("utf-8")


def packages() -> set[str]:
    """Return the names of all packages of the library."""
    return {path.parent.name for path in (ROOT / "src" / "hidag").glob("*/__init__.py")}


def contracts() -> dict[str, dict[str, list[str]]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {rule["name"]: rule for rule in project["tool"]["importlinter"]["contracts"]}


def test_contributing_has_the_order_of_imports_that_is_checked() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    stated = re.findall(r"`(hidag_paper > [^`]+)`", text)
    layers = contracts()["Packages in the order that data flow through them"]["layers"]
    assert [" ".join(order.split()) for order in stated] == [
        " > ".join(layers).replace("hidag.", "")
    ]


def test_contributing_names_every_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Layout")[1]
    tree = text.split("src/hidag/\n")[1].split("```")[0]
    named = set(re.findall(r"^  (\w+)/", tree, re.M))
    assert named == packages()


def test_contracts_name_every_package() -> None:
    rules = contracts()
    beyond = {
        "numba lives in kernels only": {"kernels"},
        "no plotting or table library below plotting": {
            *("plotting", "reporting", "cli"),
            "data",  # reads tables
        },
    }
    for name, free in beyond.items():
        held = {module.removeprefix("hidag.") for module in rules[name]["source_modules"]}
        assert held - {"hidag_paper"} == packages() - free, name
    layers = contracts()["Packages in the order that data flow through them"]["layers"]
    assert packages() <= set(re.findall(r"hidag\.(\w+)", " ".join(layers)))
