"""Configuration of the documentation site; `make docs` builds it offline."""

from __future__ import annotations

import hidag

project = "hidag"
author = "the hidag developers"
copyright = "2026, the hidag developers"
version = release = hidag.__version__
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "jupyter_execute"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
html_theme = "pydata_sphinx_theme"
html_title = "hidag"
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
}
html_css_files = ["site.css"]
html_static_path = ["static"]
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# The pages of docs/ link to files of the repository, which the site does not have.
suppress_warnings = ["myst.xref_missing", "myst.header"]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
