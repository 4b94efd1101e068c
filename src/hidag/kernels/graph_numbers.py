"""Numbers that the graph kernels share; no kernels."""

from __future__ import annotations

import numpy as np

#: Kinds of operators.
DELETE = 0
REVERSE = 1
INSERT = 2

#: Parts of a graph, an array (5, K, n_words) of bit sets. Below a variable are those that can be
#: reached from it by going along an arrow first and never against one.
PARENTS = 0
CHILDREN = 1
NEIGHBOURS = 2
JOINED = 3
BELOW = 4

ZERO = np.uint64(0)
ONE = np.uint64(1)

#: The lowest one of a word times SHUFFLE has the place of that one in its top six bits, shuffled;
#: PLACES undoes that.
SHUFFLE = np.uint64(0x03F79D71B4CB0A89)
PLACES = np.zeros(64, dtype=np.int64)
for _place in range(64):
    PLACES[(int(SHUFFLE) << _place & (1 << 64) - 1) >> 58] = _place
