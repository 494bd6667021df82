"""The optional renderer: TikZ, many pictures as pages of one LaTeX run, rasterized by PDFium.

One process per picture would cost many times the drawing itself. Coordinates are big points, one
per pixel; the pages are rasterized at four times the size and averaged, as the default renderer
does.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from PIL import Image

from soubench.builders.errors import BuildError
from soubench.builders.shapes.configuration import COLORS, Configuration, Shape
from soubench.builders.shapes.draw import SUPERSAMPLING

PAGES_PER_RUN = 500
SECONDS_PER_RUN = 300
_PREAMBLE = r"""\documentclass{article}
\usepackage{tikz}
\pdfhorigin=0bp \pdfvorigin=0bp
\pdfcompresslevel=1
"""


def render_tikz(
    configurations: Sequence[Configuration], *, keep_tex: Path | None = None
) -> Iterator[Image.Image]:
    """Render configurations, ``PAGES_PER_RUN`` to a LaTeX run, in order.

    Args:
        configurations: What to draw; all of one run need not share a canvas size.
        keep_tex: A folder for the ``.tex`` files, which else are deleted.

    Raises:
        BuildError: LaTeX or pypdfium2 is missing, or LaTeX fails.
    """
    for image in rasterize(configurations, keep_tex=keep_tex):
        yield image.reduce(SUPERSAMPLING)


def rasterize(
    configurations: Sequence[Configuration], *, keep_tex: Path | None = None
) -> Iterator[Image.Image]:
    """Render configurations at ``SUPERSAMPLING`` times their size; see ``render_tikz``."""
    pdfium = check_installed()
    for start in range(0, len(configurations), PAGES_PER_RUN):
        chunk = configurations[start : start + PAGES_PER_RUN]
        with tempfile.TemporaryDirectory(prefix="soubench-tikz-") as folder:
            tex = Path(folder, f"pictures{start:06d}.tex")
            tex.write_text(document(chunk), encoding="ascii")
            if keep_tex is not None:
                keep_tex.mkdir(parents=True, exist_ok=True)
                shutil.copy(tex, keep_tex)
            _run_latex(tex)
            pages = pdfium.PdfDocument(tex.with_suffix(".pdf"))
            try:
                for page in pages:
                    bitmap = page.render(scale=SUPERSAMPLING, rev_byteorder=True)
                    yield bitmap.to_pil().convert("RGB")
            finally:
                pages.close()


def document(configurations: Sequence[Configuration]) -> str:
    """Return the LaTeX source of one document with a page per configuration."""
    colors = "".join(
        f"\\definecolor{{{name}}}{{RGB}}{{{r},{g},{b}}}\n" for name, (r, g, b) in COLORS.items()
    )
    pages = "".join(_page(c) for c in configurations)
    return f"{_PREAMBLE}{colors}\\begin{{document}}\n{pages}\\end{{document}}\n"


def _page(configuration: Configuration) -> str:
    side = configuration.canvas_px
    shapes = "".join(_fill(shape, side) for shape in configuration.shapes)
    # A box that is shipped out by itself is a page without margins, header or page breaking. The
    # size must be set after \begin{document}, which would set it back.
    return (
        f"\\pdfpagewidth={side}bp \\pdfpageheight={side}bp\n"
        "\\setbox0=\\hbox{\\begin{tikzpicture}[x=1bp,y=1bp]\n"
        f"\\useasboundingbox (0,0) rectangle ({side},{side});\n{shapes}"
        "\\end{tikzpicture}}\\shipout\\box0\n"
    )


def _fill(shape: Shape, side: int) -> str:
    x, y = shape.center_x, side - shape.center_y
    if shape.kind == "Circle":
        path = f"({x},{y}) circle[radius={shape.half_long}]"
    elif shape.kind == "Ellipse":
        path = (
            f"({x},{y}) ellipse[x radius={shape.half_long},y radius={shape.half_short},"
            f"rotate={shape.rotation}]"
        )
    else:
        corners = (f"({a:.4f},{side - b:.4f})" for a, b in shape.outline())
        path = " -- ".join(corners) + " -- cycle"
    return f"\\fill[{shape.color}] {path};\n"


def _run_latex(tex: Path) -> None:
    command = ["pdflatex", "-interaction=batchmode", "-halt-on-error", tex.name]
    try:
        done = subprocess.run(
            command, cwd=tex.parent, capture_output=True, text=True, timeout=SECONDS_PER_RUN
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"pdflatex did not end within {SECONDS_PER_RUN} seconds.") from error
    if done.returncode:
        log = tex.with_suffix(".log")
        text = log.read_text(errors="replace") if log.exists() else done.stdout
        errors = [line for line in text.splitlines() if line.startswith("!")]
        raise BuildError(
            f"pdflatex failed: {'; '.join(errors[:3]) or text[-300:]}. The TikZ renderer needs the "
            "packages texlive-latex-base and texlive-pictures (Debian's names)."
        )


def check_installed() -> ModuleType:
    """Return PDFium's module.

    Raises:
        BuildError: LaTeX or pypdfium2 is missing.
    """
    if shutil.which("pdflatex") is None:
        raise BuildError(
            "The TikZ renderer needs pdflatex with TikZ, which was not found. Install the packages "
            "texlive-latex-base and texlive-pictures (Debian's names), or render with Pillow."
        )
    try:
        return import_module("pypdfium2")
    except ImportError as error:
        raise BuildError(
            'The TikZ renderer needs pypdfium2: pip install "soubench[tikz]". Or use Pillow.'
        ) from error
