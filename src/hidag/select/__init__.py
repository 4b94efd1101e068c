"""Select: how many latents a table speaks for, by several criteria side by side."""

from hidag.callable_room import make_callable
from hidag.select.candidates import Candidate
from hidag.select.run import select
from hidag.select.selection import Selection

__all__ = ["Candidate", "Selection", "select"]

make_callable(__name__)
