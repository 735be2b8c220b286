"""docs/experiments.md: what stands between its markers is made from the results."""

import re
from pathlib import Path

from _claims import CLAIMS, Claim
from _curves import SUBOPTIMALITY, Results
from _figures import shown
from _panels import FIGURES, Panel

MOMENTS = 1.0, 10.0


def fill(path: Path, sections: dict[str, str]) -> None:
    """Put each text between its markers, ``<!-- begin NAME -->`` and ``<!-- end NAME -->``."""
    text = path.read_text()
    for name, content in sections.items():
        pattern = rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
        text, found = re.subn(pattern, lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"{path}: expected one pair of markers for {name}, found {found}; add them.")
    path.write_text(text)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folded(title: str, content: str) -> str:
    """Return content that a reader unfolds."""
    return f"<details>\n<summary>{title}</summary>\n\n{content}\n\n</details>"


def figure_section(results: Results, name: str) -> str:
    """Return the figure and the numbers under it."""
    rows = [row for panel in FIGURES[name] for row in _panel_rows(results, panel)]
    header = [
        "panel",
        "method",
        "seeds",
        *(f"pass {k:g}" for k in MOMENTS),
        "last pass",
        "best to worst there",
    ]
    if FIGURES[name][0].x == "seconds":
        header[3:6] = ["after 1 s", "after 10 s", "at the end"]
    return f"![{name}](figures/{name}.svg)\n\n{folded('Numbers of the figure', table(header, rows))}"


def _panel_rows(results: Results, panel: Panel) -> list[list[str]]:
    digits = ".2e" if panel.quantity == SUBOPTIMALITY else ".4f"
    rows = []
    for method in shown(results, panel):
        curve = results.curve(panel.dataset, panel.lam, method, panel.quantity, panel.x)
        seeds = len(results.seeds(panel.dataset, panel.lam, method, panel.quantity))
        cells = [format(curve.at(k), digits) if k <= curve.x[-1] else "" for k in MOMENTS]
        last = f"{curve.median[-1]:{digits}} ({curve.x[-1]:.3g})"
        spread = f"{curve.best[-1]:{digits}} to {curve.worst[-1]:{digits}}" if seeds > 1 else ""
        rows.append([f"{panel.title}, {panel.quantity}", method, str(seeds), *cells, last, spread])
    return rows


def claims_section(results: Results) -> str:
    """Return every claim with its verdict, and the comparisons behind it."""
    return "\n\n".join(filter(None, (_claim(results, claim) for claim in CLAIMS)))


def _claim(results: Results, claim: Claim) -> str:
    cases = list(claim.cases(results))
    if not cases:
        return ""
    agreeing = sum(case.agrees for case in cases)
    in_part = "agrees in part" if agreeing else "does not agree"
    verdict = "agrees" if agreeing >= claim.needed * len(cases) else in_part
    rows = [[case.where, case.found, "yes" if case.agrees else "**no**"] for case in cases]
    head = (
        f"**{claim.text[0].upper()}{claim.text[1:]}**: {verdict}, in {agreeing} of {len(cases)} comparisons."
    )
    return f"{head}\n\n{folded('Comparisons', table(['where', 'found', 'as the paper says'], rows))}"


def bounds_section(results: Results) -> str:
    """Return the certified bracket of the optimum of every problem."""
    rows = []
    for dataset, lam in results.settings():
        runs = results.frame.query("dataset == @dataset and lam == @lam")
        low, high = results.bound(dataset, lam), float(runs["primal"].min())
        rows.append([dataset, lam, f"{low:.6g}", f"{high:.6g}", f"{high - low:.2g}"])
    return table(["problem", "λ", "largest dual seen", "least primal seen", "gap"], rows)
