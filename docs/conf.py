"""Build the pages: `python -m sphinx -W docs docs/_build`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]

project = "trio_crawler"
author = "the founders of trio_crawler"
project_copyright = "2026, the founders of trio_crawler"

extensions = ["myst_parser", "sphinx.ext.autodoc", "comparative"]
exclude_patterns = ["_build", "generated"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3

smartquotes_action = "q"  # two dashes begin an option, as they do in a shell

html_theme = "furo"
html_title = "trio_crawler"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["comparative.css"]
html_js_files = ["comparative.js"]
html_search_scorer = str(DOCS / "_static/scorer.js")
html_copy_source = False
html_show_sphinx = False
# Comments carry the marks: they have to be readable too.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 80


def readable(app: Sphinx, *about: Any) -> tuple[str | None, str | None]:
    """Write a signature as it stands in the source: names short, and a default for each."""
    *_, signature, returns = about
    short = [
        each and re.sub(r"~(?:\w+\.)+", "", each) for each in (signature, returns)
    ]
    return short[0] and short[0].replace("<factory>", "..."), short[1]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", readable)
