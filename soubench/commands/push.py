"""Publish a dataset on the Hub."""

import argparse

from soubench.commands import Commands, add_pictures

CONFIGS_SHOWN = 6


def add_parser(commands: Commands) -> None:
    """Register ``push``."""
    push = commands.add_parser("push", help="publish a dataset on the Hugging Face Hub")
    push.add_argument("dataset", help="name of a built dataset, or the folder of an export")
    push.add_argument("repo_id", metavar="ORG/NAME", help="dataset repository; made if missing")
    push.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME",
        help="push this config, and those that are views of the same files (default: all)",
    )
    push.add_argument("--private", action="store_true", help="make a private repository")
    push.add_argument("--tag", metavar="NAME", help="name of this version, such as v1.0.0")
    push.add_argument("--dry-run", action="store_true", help="only list files and bytes")
    add_pictures(push, verb="publish")
    push.set_defaults(command=_push)


def _push(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.push import push_dataset

    done = push_dataset(
        args.dataset,
        args.repo_id,
        configs=args.config,
        private=args.private,
        tag=args.tag,
        dry_run=args.dry_run,
        pictures=args.pictures,
        have_the_right=args.have_the_right,
        fingerprint=args.fingerprint,
    )
    if args.dry_run:
        for change in done.changes:
            print(f"{change.what:<8} {change.size:>13,} bytes  {change.path}")
    sent = [change for change in done.changes if change.what in ("new", "changed")]
    gone = sum(change.what == "deleted" for change in done.changes)
    verb = "would get" if args.dry_run else "has"
    print(
        f"{args.repo_id} {verb} {done.dataset} {done.version}, {_listed(done.configs)}: "
        f"{len(sent)} files of {sum(c.size for c in sent) / 1e6:.1f} MB new, "
        f"{len(done.changes) - len(sent) - gone} as they were, {gone} removed"
    )
    if done.kept:
        print(f"Kept as they were: {_listed(done.kept)}")
    if done.withheld:
        print(
            f"Without the pictures of {', '.join(done.withheld)}, which may not be passed on or "
            "were left out; whoever has them runs soubench attach on a download."
        )
    if done.checked is None:
        return
    check = done.checked
    print(
        f"Read back at {done.commit[:12]}: {check.files} data files by the Hub's SHA-256; "
        f"{check.rows} rows of {check.config} streamed without pictures and hashed anew "
        f"({check.rows_digest[:16]}), as in the folder that was sent"
        + (", and one row with its picture" if check.with_picture else "")
    )
    print(f"Build {done.fingerprint[:16]}; soubench pull derives that hash from the rows anew.")
    revision = f', revision="{args.tag}"' if args.tag else ""
    print(f'Load it: load_dataset("{args.repo_id}", "{check.config}"{revision})')


def _listed(configs: list[str]) -> str:
    more = len(configs) - CONFIGS_SHOWN
    shown = ", ".join(configs[:CONFIGS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"config{'s' * (len(configs) != 1)} {shown}"
