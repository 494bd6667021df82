"""Draw one configuration of primitive shapes."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError, FormatError
from soubench.commands import Commands


def add_parser(commands: Commands) -> None:
    """Register ``render``."""
    render = commands.add_parser("render", help="draw one configuration of primitive shapes")
    render.add_argument("configuration", metavar="CONFIG.json", type=Path)
    render.add_argument("--renderer", choices=("pillow", "tikz"), default="pillow")
    render.add_argument("--out", metavar="FILE.png", type=Path, help="default: CONFIG.png")
    render.set_defaults(command=_render)


def _render(args: argparse.Namespace) -> None:
    import json

    from soubench.builders.shapes.configuration import from_dict
    from soubench.builders.shapes.draw import draw_picture
    from soubench.builders.shapes.tikz import render_tikz

    path: Path = args.configuration
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON of one configuration, but {error}.") from error
    configuration = from_dict(data, str(path))
    out = args.out or path.with_suffix(".png")
    if out.suffix.lower() != ".png" or out == path:
        raise BuildError(f"{out}: a picture is written as PNG: pass --out FILE.png.")
    if args.renderer == "tikz":
        (image,) = render_tikz([configuration])
    else:
        image = draw_picture(configuration)
    image.save(out)
    print(f"{out}: {image.width} x {image.height} px, configuration {configuration.md5()}")
