"""Where the documents are, and the Python in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> str:
    """Return all Python of a page as one program: later blocks may use earlier ones."""
    return "\n".join(re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S))
