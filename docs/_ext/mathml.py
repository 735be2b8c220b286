"""Formulas as MathML, written when the site is built: they need neither the network nor JavaScript."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
# What docutils does not know, and what it can be written as.
SPELLINGS = {
    r"\\dots(?![a-zA-Z])": r"\\ldots",
    r"\\([bB]igg?|middle)(?![a-zA-Z])": "",
    r"\\frac([0-9])([0-9])": r"\\frac{\1}{\2}",
    r"(_(?:[a-z]|\{[^}]*\}))'": r"\1^{\\prime}",
}
# A letter with a bar and an index, whose index docutils puts under the letter.
BARRED = re.compile(
    r"<munderover>\s*(<m[in]>.*?</m[in]>)\s*(<m.*?)\s*(<mo[^>]*>ˉ</mo>)\s*</munderover>", re.DOTALL
)


def as_mathml(node: nodes.Node, as_block: bool) -> str:
    """Return a formula as MathML; a formula that cannot be converted is a warning."""
    text = node.astext()
    for pattern, spelling in SPELLINGS.items():
        text = re.sub(pattern, spelling, text)
    if as_block and re.search(r"(?<!\\)&|\\\\", text) and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        formula = str(tex2mathml(text, as_block=as_block))
        formula = BARRED.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', formula)
        return re.sub(r"<mo>(?=[‖∥])", '<mo stretchy="false">', formula)  # lengths are as high as letters
    except MathError as error:
        LOGGER.warning("formula: %s in %r", error, text, location=node)
        return ""


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(as_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write formulas on lines of their own; blank lines separate them."""
    for part in re.split(r"\n\s*\n", node.astext()):
        formula = as_mathml(nodes.math_block(part, part), as_block=True)
        translator.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer this way of writing formulas."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
