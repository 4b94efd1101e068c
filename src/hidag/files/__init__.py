"""Files: written as a whole, and checked when they are read."""

from hidag.files.json_text import describe_damage, read_json
from hidag.files.writing import Content, cannot_write, complete_folder, fill_folder, write_file

__all__ = [
    "Content", "cannot_write", "complete_folder", "describe_damage", "fill_folder", "read_json",
    "write_file",
]  # fmt: skip
