"""Compiled loops: arrays in, arrays out; nothing here knows the rest of the library."""
