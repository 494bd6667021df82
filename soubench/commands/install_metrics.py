"""Make the metrics loadable by name."""

import argparse

from soubench.commands import Commands


def add_parser(commands: Commands) -> None:
    """Register ``install-metrics``."""
    install = commands.add_parser(
        "install-metrics", help="make evaluate.load find the metrics by name"
    )
    install.add_argument("names", nargs="*", help="metrics to install (default: all)")
    install.set_defaults(command=_install_metrics)


def _install_metrics(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.metric_cache import install_metrics

    for folder in install_metrics(args.names or None):
        name = folder.parent.name.removeprefix("evaluate-metric--")
        print(f'evaluate.load("{name}")  {folder}')
