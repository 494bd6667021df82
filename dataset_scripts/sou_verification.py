"""How the rows of any dataset of the six sub-tasks are verified."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from soubench.builders.sou.prompts import Prompts, load_prompts
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.verify import verify
from soubench.builders.verification import Problem, Row
from soubench.dataset_scripts.row_digests import first_difference
from soubench.dataset_scripts.sou import ROW_COLUMNS, conversation

BATCH_ROWS = 1024


def problems(
    tables: Mapping[str, Mapping[str, pa.Table]], manifest: Mapping[str, Any], prompt: Path | None
) -> Iterator[Problem]:
    """Yield what is wrong with the rows of the largest config, then where the others differ."""
    order = [subset["name"] for subset in manifest["head"]["subsets"]]
    largest = max(tables, key=lambda name: sum(t.num_rows for t in tables[name].values()))
    splits = sorted(tables[largest].values(), key=lambda t: order.index(t["subset"][0].as_py()))
    everything = pa.concat_tables(splits)
    prompts = load_prompts(prompt)
    yield from verify(_rows(everything.select(ROW_COLUMNS)), manifest, prompts)
    if "completion" in everything.column_names and prompts.digest == manifest["head"]["prompts"]:
        yield from _conversation_problems(everything, prompts)
    for name, view in tables.items():
        if set(view) != set(manifest["views"].get(name, ())):
            yield Problem("", "config", f"the splits of {name} are not those of the manifest")
            continue
        for split, table in view.items():
            row_id = first_difference(_view(everything, manifest["views"][name][split]), table)
            if row_id:
                message = f"the rows of {name}, {split}, are not those of {largest} from here on"
                yield Problem(row_id, "config", message)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield from batch.to_pylist()


def _view(everything: pa.Table, view: Mapping[str, Any]) -> pa.Table:
    wanted = pc.is_in(everything["subset"], pa.array(view["subsets"]))
    if view["task"] is not None:
        wanted = pc.and_(wanted, pc.equal(everything["task"], view["task"]))
    return everything.filter(wanted)


def _conversation_problems(everything: pa.Table, prompts: Prompts) -> Iterator[Problem]:
    columns = ["id", "question", "options", "answer", "system_prompt", "prompt", "completion"]
    for row in _rows(everything.select(columns)):
        letter = {"answer": LETTERS[row["answer"]]}
        for name, expected in conversation(row | letter, prompts).items():
            if row[name] != expected:
                yield Problem(row["id"], name, f"expected {expected!r:.200}")


def knows_words(manifest: Mapping[str, Any], prompt: Path | None) -> bool:
    """Say whether the prompt file is the one that the rows were made with."""
    return bool(load_prompts(prompt).digest == manifest["head"]["prompts"])


def pictures_of(manifest: Mapping[str, Any], row: Row) -> Sequence[Mapping[str, Any]]:
    """Return name, hashes and size of a row's picture."""
    found = manifest["pictures"].get(row["subset"], {}).get(row["image_id"])
    if not found:
        return []
    outlined = row["task"] == Task.OL
    made = found["marked_sha256" if outlined else "plain_sha256"]
    return [{**found, "as_is": found["as_is"] and not outlined, "made_sha256": made}]
