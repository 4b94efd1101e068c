"""Terminal output: results on standard output, errors, warnings and progress on standard error."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EPIPE
from math import isnan
from typing import IO, TYPE_CHECKING, Any

from hidag.cli.messages import render
from hidag.exceptions import HidagError, HidagWarning, Message
from hidag.formatting import align_columns, replace_hidden

if TYPE_CHECKING:
    from hidag.parallel import Progress

_Rows = Sequence[Sequence[str]]
#: Why output could not be printed.
_LOST: list[str] = []
#: Seconds before a progress bar appears.
_DELAY = 0.7


def clean(text: str) -> str:
    """Return text without control and bidirectional characters."""
    return replace_hidden(text, keep="\n")


def one_line(text: str) -> str:
    """Return a message in one line, its lines separated by semicolons."""
    parts = [part for part in (clean(line).strip() for line in text.splitlines()) if part]
    ends = [part + (" " if part[-1] in ":;,.?" else "; ") for part in parts[:-1]]
    return "".join([*ends, *parts[-1:]])


def say(text: str = "") -> None:
    """Print a line of results."""
    _print(clean(text), sys.stdout)


def show_error(message: str | Message | HidagError | HidagWarning, kind: str = "") -> None:
    """Print an error, or another kind of message, on standard error."""
    _flush(sys.stdout)  # keep the order of the two streams where both reach one place
    _print(f"hidag: {kind}{one_line(render(message))}", sys.stderr)


def show_warning(message: str | Message | HidagWarning) -> None:
    """Print a warning on standard error."""
    show_error(message, "warning: ")


def _print(text: str, stream: IO[str]) -> None:
    """Print a line, without raising what stops the output: results are still to be written."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, errors="replace").decode(encoding), file=stream)
    except (OSError, ValueError) as error:
        _abandon(stream, error)


def _flush(stream: IO[str]) -> None:
    try:
        stream.flush()
    except (OSError, ValueError) as error:
        _abandon(stream, error)


def _abandon(stream: IO[str], error: OSError | ValueError) -> None:
    """Send the rest of a stream, also what is buffered, to nowhere; note why unless it is a pipe.

    A program that reads only the first lines (`| head`) closes its pipe, which is no error.
    """
    if isinstance(error, OSError) and error.errno != EPIPE and stream is sys.stdout:
        _LOST.append(error.strerror or str(error))
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def guarded_process() -> Iterator[None]:
    """Run a command in this process so that no signal or closed output leaves partial files.

    SIGTERM and SIGHUP end it as an exit does, which removes incomplete files; closed streams are
    replaced, and output that could not be printed is an error once everything else is done.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit_on_signal)
    code: Any = 0
    try:
        yield
    except SystemExit as end:
        code = end.code
    _flush(sys.stdout)
    if _LOST:
        show_error(f"the output could not be printed: {_LOST[0]}")
    _flush(sys.stderr)
    sys.exit(code or (1 if _LOST else 0))


def _exit_on_signal(number: int, frame: object) -> None:
    sys.exit(128 + number)


@contextmanager
def collected_warnings() -> Iterator[list[HidagWarning]]:
    """Collect the library's warnings, each once; those of other packages are ignored."""
    messages: list[HidagWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=HidagWarning)
        try:
            yield messages
        finally:
            for one in (warning.message for warning in caught):
                known = [earlier.message for earlier in messages]
                if isinstance(one, HidagWarning) and one.message not in known:
                    messages.append(one)


@contextmanager
def counting_bar() -> Iterator[Callable[..., None] | None]:
    """Yield a function that draws a bar, which appears after a delay; None without a terminal.

    Its arguments are a text, done, total, and perhaps what replaces these two at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    counted = (BarColumn(bar_width=12), TextColumn("{task.fields[value]}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("left"))
    shown = (TextColumn("{task.description}"), *counted, *times)
    bar = Bar(*shown, console=Console(stderr=True), transient=True)
    task, started, running = bar.add_task("starting", total=None, value=""), time.monotonic(), False

    def draw(text: str, n_done: int, n_all: int, value: str | None = None) -> None:
        nonlocal running
        value = f"{n_done}/{n_all}" if value is None else value
        bar.update(task, description=text, completed=n_done, total=n_all, value=value)
        if not running and time.monotonic() - started > _DELAY:
            bar.start()
            running = True

    try:
        yield draw
    finally:
        if running:
            bar.stop()


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None] | None]:
    """Yield an observer of a fit that draws a progress bar; None without a terminal."""
    with counting_bar() as draw:

        def observe(progress: Progress) -> None:
            assert draw is not None
            start, step = f"start {progress.start + 1}/{progress.n_starts}", progress.iteration
            known = not isnan(progress.objective)
            draw(
                f"{start}, step {step}/{progress.max_iter}",
                progress.start * progress.max_iter + step,
                progress.n_starts * progress.max_iter,
                f"objective {progress.objective:,.1f}" if known else "",
            )

        yield observe if draw else None


def say_columns(rows: _Rows, *, right: Sequence[int] = (), indent: str = "") -> None:
    """Print rows with aligned columns, those in ``right`` aligned on the right."""
    for line in columns(rows, right=right):
        say(f"{indent}{line}")


def columns(rows: _Rows, *, right: Sequence[int] = ()) -> list[str]:
    """Return rows as lines with aligned columns, those in ``right`` aligned on the right."""
    return align_columns([[clean(cell).replace("\n", " ") for cell in row] for row in rows], right)
