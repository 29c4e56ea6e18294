"""Configuration of Sphinx for the documentation site; `make docs` builds it without a network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / name) for name in ("papers", "tools"))]

from fedcore import __version__  # noqa: E402

project = "fedcore"
author = "The fedcore developers"
version = release = __version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "expand",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
suppress_warnings: list[str] = []

# In docstrings, `name` is code, and a link where it names something that the site documents.
default_role = "py:obj"
autodoc_member_order = "bysource"
toc_object_entries = False  # the headings are the names already
autodoc_typehints = "none"  # numpydoc's sections say types with shapes
autosummary_generate = False  # numpydoc loads it and no page uses it
autodoc_default_options = {"members": True, "show-inheritance": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

html_theme = "pydata_sphinx_theme"
html_title = f"fedcore {release}"
html_static_path = [str(HERE.parents[1] / "fedcore/repro/site/assets/site.css")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None  # the same sources give the same pages
html_theme_options = {
    "logo": {"text": "fedcore"},
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
copyright = "The fedcore developers, BSD-3-Clause"
