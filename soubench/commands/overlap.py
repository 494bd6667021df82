"""Look for pictures that two datasets share."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands, add_workers
from soubench.commands.build.common import add_max_pixels

EPILOG = """\
A and B are NAME[:CONFIG[:SPLIT]]; without them, all configs and splits. NAME is a folder (an
export, anything load_dataset reads, or just pictures), a built dataset, or a dataset on the Hub:

  soubench overlap sou-train sou-vqa
  soubench overlap my-set:all:train my-set:all:test
  soubench overlap ./pictures sou-vqa:aerial --out shared.csv

Pictures are compared by file (SHA-256), by upright RGB pixels (SHA-256), and by 64-bit perceptual
hash (imagehash.phash; not those of one color, which have no structure to compare); datasets with
group_id also by that, within the same source. Exit status: 0 if nothing is shared, 1 if something
is, 2 if the two cannot be compared, or nothing is shared but some pictures cannot be decoded: those
are compared by file alone."""


def add_parser(commands: Commands) -> None:
    """Register ``overlap``."""
    overlap = commands.add_parser(
        "overlap",
        help="look for pictures that two datasets share, near-duplicates included",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    overlap.add_argument("a", metavar="A", help="a dataset or folder of pictures")
    overlap.add_argument("b", metavar="B", help="another one")
    overlap.add_argument(
        "--max-distance",
        metavar="BITS",
        type=_bits,
        default=4,
        help="bits of 64 by which near-duplicates may differ (default: 4)",
    )
    overlap.add_argument(
        "--no-groups", dest="groups", action="store_false", help="do not compare group_id"
    )
    add_max_pixels(overlap)
    overlap.add_argument("--out", metavar="FILE.csv", type=Path, help="write all pairs there")
    add_workers(overlap)
    overlap.set_defaults(command=_overlap)


def _bits(text: str) -> int:
    if not text.isdecimal() or int(text) > 64:
        raise argparse.ArgumentTypeError(f"expected a number of bits, 0 to 64, got {text}")
    return int(text)


def _overlap(args: argparse.Namespace) -> int:
    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.overlap import compare, overlap_text, write_pairs
    from soubench.builders.publishing.picture_sets import Address, read_pictures

    a, b = Address.of(args.a), Address.of(args.b)
    if a.resolved() == b.resolved():
        raise BuildError(
            f"A and B are both {a}, which shares all with itself. Name another dataset, or two "
            "splits: NAME:CONFIG:train NAME:CONFIG:test."
        )
    out = args.out and args.out.expanduser()
    if out and not out.parent.is_dir():
        raise BuildError(f"--out {out}: there is no folder {out.parent} to write into.")
    most = args.max_pixels or MAX_PICTURE_PX
    overlap = compare(
        read_pictures(a, workers=args.workers, max_pixels=most),
        read_pictures(b, workers=args.workers, max_pixels=most),
        max_distance=args.max_distance,
        groups=args.groups,
    )
    print(overlap_text(overlap))
    if out:
        print(f"{out}: {write_pairs(overlap, out)} pairs")
    if not overlap.disjoint:
        return 1
    return 0 if overlap.complete else 2
