"""How Sphinx builds the site. CONTRIBUTING.md has the command; nothing here reads the network."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

import maxmargin

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "maxmargin"
author = "The maxmargin developers"
copyright = "The maxmargin developers; BSD 3-Clause licence"
version = release = maxmargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb"]
# In docstrings, `name` is a link where there is something to link to.
default_role = "autolink"
add_module_names = False
nitpicky = True
# Private names and fitted attributes have no page of their own.
nitpick_ignore = [("py:obj", "decode"), ("py:obj", "find_corner")]  # of another module; not for users
nitpick_ignore_regex = [("py:obj", r"(.*\.)?(_\w+|\w+_)")]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types, in words
numpydoc_show_class_members = False  # the template of classes lists them

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Examples that are quick and need no data run when the site is built. The others are shown with figures that
# `docs/make_figures.py` has made from real data.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(plot_matrix_completion|plot_own_oracle|plot_product|own_problem)\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "default_thumb_file": str(DOCS / "_static" / "no_figure.svg"),
    "within_subsection_order": "gallery_order.ByTask",
    "show_signature": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "maxmargin"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "theory", "methods")}


def without_last_blank_line(app: Sphinx, doctree: nodes.document) -> None:
    """Remove the line that ends a doctest in Markdown."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, [nodes.Text(text)]  # equal, or Sphinx does not highlight


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("doctree-read", without_last_blank_line)
