"""Applications: real tables and images taken from file to finding, each by one command.

An application reads a folder that the user names (or makes its own data), fits, and returns an
`Outcome`: the fit, pictures, tables and a page in plain words. Nothing here writes files; the
command line does.
"""

from hidag_paper.applications.outcome import Outcome, Picture, render_outcome

__all__ = [
    "Outcome",
    "Picture",
    "render_outcome",
]
