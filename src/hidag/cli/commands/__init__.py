"""The commands, one module for each group of related ones.

A module defines its commands on ``app``, with options beside them. To keep ``--help`` fast it
imports the library inside the functions that use it.
"""
