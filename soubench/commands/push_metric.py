"""Publish a metric as a Space on the Hub."""

import argparse

from soubench.commands import Commands


def add_parser(commands: Commands) -> None:
    """Register ``push-metric``."""
    push = commands.add_parser("push-metric", help="publish a metric as a Space on the Hub")
    push.add_argument("metric", help="name of the metric, such as sama")
    push.add_argument("repo_id", metavar="ORG/METRIC", help="Space; made if missing")
    push.add_argument("--private", action="store_true", help="make a private Space")
    push.add_argument("--tag", metavar="NAME", help="name of this version, such as v0.1.0")
    push.add_argument("--dry-run", action="store_true", help="only list files and bytes")
    push.set_defaults(command=_push_metric)


def _push_metric(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.push_metric import push_metric

    done = push_metric(
        args.metric, args.repo_id, private=args.private, tag=args.tag, dry_run=args.dry_run
    )
    for change in done.changes:
        if args.dry_run or change.what != "same":
            print(f"{change.what:<8} {change.size:>9,} bytes  {change.path}")
    if done.commit:
        revision = f', revision="{args.tag}"' if args.tag else ""
        print(f'Load it: evaluate.load("{args.repo_id}"{revision})')
