"""What all dataset scripts share: rows of a finished build, prepared into the datasets cache."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from datasets.builder import Key
from tqdm import tqdm

from soubench.builders.contact_sheet import contact_sheet
from soubench.builders.errors import PublishError
from soubench.builders.publishing.dataset_cache import build_folder, publish
from soubench.dataset_scripts.row_digests import read_config, row_digests

CARD_MARKER = "<!-- this build -->"
MANIFEST = "manifest.json"
"""What a build is made of, beside its pictures; what `soubench verify` checks against."""

Rows = Callable[[], Iterator[dict[str, Any]]]
"""Makes the rows of one split, each with a unique ``id``."""
Tables = Callable[[], Iterator[pa.Table]]
"""The same as tables."""


class _PreparedConfig(datasets.DatasetBuilder):  # type: ignore[misc]  # without types
    """One config; subclasses say which configs there are, their features, and write the rows."""

    NAME: str
    """What users type after ``load_dataset``."""
    PACKAGE: str
    """The dataset's package, which holds its card and ``CITATION.bib``."""
    FEATURES: datasets.Features
    LICENSE = "other"

    def __init__(
        self,
        config_name: str,
        *,
        rows: Mapping[str, Rows | Tables],
        fingerprint: str,
        cache_dir: Path,
    ) -> None:
        self._rows = rows
        super().__init__(
            cache_dir=str(cache_dir),
            dataset_name=self.NAME,
            config_name=config_name,
            hash=fingerprint,
        )

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.config.description,
            features=self.FEATURES,
            citation=(files(self.PACKAGE) / "CITATION.bib").read_text(encoding="utf-8"),
            license=self.LICENSE,
        )

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        return [
            datasets.SplitGenerator(datasets.Split(split), gen_kwargs={"split": split})
            for split in self._rows
        ]


class PreparedBuilder(_PreparedConfig, datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Writes rows that are made one by one."""

    def _generate_examples(self, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for row in self._rows[split]():
            yield row["id"], row


class PreparedTables(_PreparedConfig, datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Writes tables, for configs that are selections of the same rows: those are made once."""

    def _generate_tables(self, split: str) -> Iterator[tuple[Key, pa.Table]]:
        for i, table in enumerate(self._rows[split]()):
            yield Key(i, 0), table


def format_configs(
    formats: Iterable[str], version: datasets.Version
) -> list[datasets.BuilderConfig]:
    """Return a config per output format of the targets."""
    return [
        datasets.BuilderConfig(
            name=name,
            version=version,
            description=f"Targets in {name} format",
        )
        for name in formats
    ]


def datasets_cache(cache_dir: Path | None) -> Path:
    """Return the datasets cache: the one given, or that of ``datasets``."""
    return (cache_dir or Path(datasets.config.HF_DATASETS_CACHE)).expanduser().resolve()


def prepare_and_publish(
    builder: type[_PreparedConfig],
    configs: Mapping[str, Mapping[str, Rows | Tables]],
    report: dict[str, Any],
    report_text: str,
    *,
    manifest: Mapping[str, Any],
    fingerprint: str,
    staged: Path,
    cache: Path,
    replaced: Iterable[str] = (),
) -> dict[str, Any]:
    """Prepare configs in a staging folder and move everything into the cache.

    Args:
        builder: The dataset's builder.
        configs: Config -> split -> its rows.
        report: What the build did; kept as ``report.json`` beside the pictures.
        report_text: The same for a person; kept as ``report.txt``.
        manifest: What the build is made of; kept as ``manifest.json`` there, too, with
            ``features`` and ``rows`` (see `row_digests`).
        fingerprint: Hash of the build.
        staged: The staging folder, with the pictures in ``build/``.
        cache: The datasets cache.
        replaced: Configs without rows whose older builds are retired all the same.

    Returns:
        The report, with ``configs``, ``report_file`` and ``folder`` (of the build) added.

    Raises:
        PublishError: The cache cannot be written.
    """
    folder = staged / "build"
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_text(
        json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (folder / "report.txt").write_text(report_text + "\n", encoding="utf-8")
    tables: dict[str, dict[str, pa.Table]] = {}
    for name, rows in tqdm(configs.items(), desc="preparing configs", unit=" configs"):
        tables[name] = _prepare(builder, name, rows, fingerprint, staged / "cache")
    described = dict(manifest) | {
        "features": builder.FEATURES.to_dict(),
        "rows": row_digests(tables, builder.FEATURES),
    }
    (folder / MANIFEST).write_text(json.dumps(described), encoding="utf-8")
    publish(
        cache,
        staged,
        builder.NAME,
        configs,
        str(builder.VERSION),
        fingerprint,
        replaced=replaced,
    )
    home = build_folder(cache, builder.NAME, fingerprint)
    return report | {
        "configs": list(configs),
        "report_file": str(home / "report.json"),
        "folder": str(home),
    }


def write_card(
    package: str, folder: Path, splits: Mapping[str, Sequence[Path]], built: str
) -> None:
    """Write a dataset's card with the build's own numbers, and a contact sheet per split.

    Args:
        package: The dataset's package, whose ``README.md`` has the line ``CARD_MARKER``.
        folder: Where ``README.md`` and ``sheets/`` go.
        splits: Split -> its pictures, in the order of the rows.
        built: A sentence on how this build was made.
    """
    lines = ["| split | pictures | contact sheet |", "|---|---|---|"]
    (folder / "sheets").mkdir(parents=True)
    for split, pictures in splits.items():
        sheet = f"sheets/{split}.png"
        contact_sheet(pictures).save(folder / sheet)
        lines.append(f"| `{split}` | {len(pictures)} | ![{split}]({sheet}) |")
    card = (files(package) / "README.md").read_text(encoding="utf-8")
    card = card.replace(CARD_MARKER, "\n".join([*lines, "", built]))
    (folder / "README.md").write_text(card, encoding="utf-8")


def _prepare(
    builder: type[_PreparedConfig],
    name: str,
    rows: Mapping[str, Rows | Tables],
    fingerprint: str,
    cache_dir: Path,
) -> dict[str, pa.Table]:
    """Prepare a config and return its splits."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        made = builder(name, rows=rows, fingerprint=fingerprint, cache_dir=cache_dir)
        made.download_and_prepare()
        return read_config(builder.NAME, Path(made.cache_dir), made.info)
    except (datasets.exceptions.DatasetGenerationError, OSError) as error:
        raise PublishError(
            f"{name}: the rows cannot be written to {cache_dir} ({error.__cause__ or error}). "
            "Make room there, or set HF_DATASETS_CACHE to another disk."
        ) from error
    finally:
        if shown:
            datasets.enable_progress_bars()
