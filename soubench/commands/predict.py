"""Ask a model the questions of a dataset."""

import argparse
import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from soubench.builders.errors import RunError
from soubench.commands import Commands, positive

if TYPE_CHECKING:
    from soubench.inference.backends import Backend
    from soubench.inference.predict import Plan, Shard

COORDS = ("pixel", "model-pixel", "norm1000", "unit")
BASELINE = "baseline:"


def add_parser(commands: Commands) -> None:
    """Register ``predict``."""
    predict = commands.add_parser(
        "predict",
        help="ask a model the questions of a dataset",
        description="Ask a model the questions of a dataset and keep its replies in a RUN folder. "
        "Stopped in whatever way, the same command goes on where it stopped.",
    )
    predict.add_argument("dataset", help="name of a built dataset, exported folder, or Hub id")
    predict.add_argument("config", nargs="?", help="such as aerial (may be left out if only one)")
    predict.add_argument(
        "--model",
        required=True,
        help="Hub id, folder, the name a server uses, or baseline:random|constant|blind|oracle",
    )
    predict.add_argument("--out", metavar="RUN", type=Path, required=True, help="the RUN folder")
    predict.add_argument(
        "--backend",
        choices=("pipeline", "openai"),
        help="pipeline: transformers on this machine (default); openai: a server (default with "
        "--base-url)",
    )
    predict.add_argument("--split", help="default: the only one, else test")
    predict.add_argument("--dataset-revision", metavar="REV", help="of a dataset on the Hub")
    predict.add_argument("--prompt", metavar="FILE", type=Path, help="other words around questions")
    predict.add_argument(
        "--max-new-tokens", metavar="N", type=positive, default=1024, help="default: 1024"
    )
    predict.add_argument(
        "--max-pixels", metavar="N", type=positive, help="scale larger pictures down, in px"
    )
    predict.add_argument(
        "--no-system-role",
        action="store_true",
        help="put the system prompt before the user's text, for models without a system role",
    )
    rows = predict.add_argument_group("which rows, and how they are asked")
    rows.add_argument(
        "--limit", metavar="N", type=positive, help="rows, evenly over subsets and sub-tasks"
    )
    rows.add_argument("--seed", type=int, default=0, help="of --limit and baselines (default: 0)")
    rows.add_argument(
        "--shard", metavar="i/n", default="0/1", help="rows i, i + n, ..: one part of n, from 0"
    )
    rows.add_argument(
        "--circular", action="store_true", help="ask with every rotation of the options"
    )
    rows.add_argument(
        "--retry-errors",
        action="store_true",
        help="ask again what ended in an error, also in one that seemed to last",
    )
    rows.add_argument("--blind", action="store_true", help="leave the pictures out")
    rows.add_argument(
        "--coords",
        choices=COORDS,
        default="pixel",
        help="what coordinates in questions count (default: pixel)",
    )
    rows.add_argument(
        "--box-format",
        metavar="NAME",
        help="how the model writes boxes, as acc_at_iou names it (default: as asked)",
    )
    local = predict.add_argument_group("pipeline")
    local.add_argument("--revision", help="commit, tag or branch of the model on the Hub")
    local.add_argument("--dtype", default="auto", help="such as bfloat16 (default: auto)")
    local.add_argument("--device-map", help="as in transformers (default: auto, if there is a GPU)")
    local.add_argument(
        "--batch-size",
        metavar="N",
        type=positive,
        default=1,
        help="halved where the memory is too small (default: 1)",
    )
    server = predict.add_argument_group("openai (the key is read from OPENAI_API_KEY)")
    server.add_argument(
        "--base-url",
        metavar="URL",
        action="append",
        default=[],
        help="such as http://localhost:8000/v1; may be given several times",
    )
    server.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        default=16,
        help="requests on their way at a time (default: 16)",
    )
    server.add_argument(
        "--timeout", metavar="S", type=float, default=120.0, help="seconds (default: 120)"
    )
    server.add_argument(
        "--max-picture-bytes",
        metavar="N",
        type=positive,
        default=10_000_000,
        help="larger files are sent as smaller JPEG (default: 10000000)",
    )
    predict.set_defaults(command=_predict)


def _predict(args: argparse.Namespace) -> None:
    # Rows are only read; their own bars and notes would run into ours.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from soubench.inference.predict import PredictOptions, plan, predict
    from soubench.inference.run_folder import REPLIES_FILE

    out = args.out.expanduser()
    planned = plan(
        PredictOptions(
            dataset=args.dataset,
            config=args.config,
            out=out,
            split=args.split,
            revision=args.dataset_revision,
            limit=args.limit,
            seed=args.seed,
            shard=_shard(args.shard),
            circular=args.circular,
            blind=args.blind,
            coords=args.coords,
            box_format=args.box_format,
            words=args.prompt,
        )
    )
    backend = _backend(args, planned)
    try:
        done = predict(planned, backend, retry_errors=args.retry_errors, on_resume=_say_resumed)
    except KeyboardInterrupt:
        file = out / REPLIES_FILE
        kept = f"the replies so far are in {out}" if _has_lines(file) else "there is no reply yet"
        print(f"soubench: stopped; {kept}. The same command goes on.", file=sys.stderr)
        raise SystemExit(130) from None
    speed = f", {done.new / done.seconds:.1f} a second" if done.new and done.seconds else ""
    print(
        f"{out}: {done.asked} asked, {done.answered} answered, {done.errors} errors "
        f"({done.new} new in {done.seconds:.0f} s{speed})"
    )
    if not done.asked:
        # The run is there all the same: the other shards are scored together with it.
        print(
            f"Note: shard {args.shard} holds no rows. There are fewer rows than shards; divide "
            "them into fewer."
        )
    if done.errors:
        print(
            f"Errors count as wrong. {done.permanent} of {done.errors} are permanent: only "
            "--retry-errors asks those again; the same command asks the others."
        )
    print(f"Next: soubench score {quote(str(out))}")


def _has_lines(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _say_resumed(done: int, asked: int) -> None:
    print(f"{done} of {asked} are there already; going on.")


def _shard(text: str) -> "Shard":
    from soubench.inference.predict import Shard

    index, sign, count = text.partition("/")
    if sign and index.isdecimal() and count.isdecimal() and int(index) < int(count):
        return Shard(int(index), int(count))
    raise RunError(f"--shard: expected i/n with i from 0 to n - 1, such as 0/4; got {text!r}.")


def _backend(args: argparse.Namespace, planned: "Plan") -> "Backend":
    """Make the back end; what it needs is imported here."""
    if args.model.startswith(BASELINE):
        from soubench.inference.backends.baselines import BaselineBackend

        return BaselineBackend(args.model, planned.asked(), seed=args.seed)
    kind = args.backend or ("openai" if args.base_url else "pipeline")
    if kind == "openai":
        return _openai_backend(args)
    if args.base_url:
        raise RunError("--base-url is for --backend openai; leave one of them out.")
    try:
        from soubench.inference.backends.pipeline import PipelineBackend
    except ImportError as error:
        raise RunError(
            f'--backend pipeline needs more than the base install: pip install "soubench[models]". '
            f"({error})"
        ) from error
    return PipelineBackend(
        args.model,
        revision=args.revision,
        dtype=args.dtype,
        device_map=args.device_map,
        batch_size=args.batch_size,
        max_new_tokens=args.max_new_tokens,
        max_pixels=args.max_pixels,
        system_role=False if args.no_system_role else None,
    )


def _openai_backend(args: argparse.Namespace) -> "Backend":
    try:
        from soubench.inference.backends.openai_server import OpenAIBackend
    except ImportError as error:
        raise RunError(
            f'--backend openai needs more than the base install: pip install "soubench[api]". '
            f"({error})"
        ) from error
    return OpenAIBackend(
        args.model,
        args.base_url,
        concurrency=args.concurrency,
        timeout_s=args.timeout,
        max_new_tokens=args.max_new_tokens,
        max_pixels=args.max_pixels,
        max_bytes=args.max_picture_bytes,
        system_role=not args.no_system_role,
    )
