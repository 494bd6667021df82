"""For lmms-eval: a task (YAML), its functions (``utils.py``) and the rows as Parquet.

The rows carry the words that soubench asks, so that the functions only hand them on. Answers of
every kind are carried: the tool generates text, and ``soubench score`` reads it.
"""

from importlib.resources import files
from pathlib import Path

from datasets import Features, Value

from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.exports.folder import Exported, file_name, write_readme, write_rows
from soubench.inference.questions import question_of

MAX_NEW_TOKENS = 1024
"""As in ``soubench predict``."""
COLUMNS = ("asked_system", "asked_text", "asked_type", "right_answer")
"""What is added to a row: the words of the system role and of the user, and the answer."""
TASK = """\
# Written by `soubench export --to lmms-eval`: {title}.
task: {task}
dataset_path: parquet
dataset_kwargs:
  data_files:
    {split}:
{files}
test_split: {split}
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_messages: !function utils.doc_to_messages
doc_to_target: !function utils.doc_to_target
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: {max_new_tokens}
  temperature: 0
  do_sample: false
  # Without it, replies would end at their first empty line.
  until: []
metric_list:
  - metric: soubench
    aggregation: !function utils.mean_score
    higher_is_better: true
cluster_key: group
lmms_eval_specific_kwargs:
  default:
    # false where the chat template of a model has no system role.
    system_role: true
metadata:
  - fingerprint: "{fingerprint}"
"""


def write(loaded: LoadedRows, target: Path) -> Exported:
    """Write the folder."""
    light = loaded.columns()
    asked = [question_of(row) for row in light]
    values: list[list[str]] = [
        [q.system for q in asked],
        [q.text for q in asked],
        [q.answer_type for q in asked],
        [q.answer for q in asked],
    ]
    more = Features({name: Value("string") for name in COLUMNS})
    done = write_rows(loaded, target / "data", more, values)
    task = file_name(loaded).replace("-", "_")
    text = TASK.format(
        title=f"{loaded.name}, {loaded.config}, {loaded.split}",
        task=task,
        split=loaded.split,
        files="\n".join(f"      - {file}" for file in done.files),
        max_new_tokens=MAX_NEW_TOKENS,
        fingerprint=loaded.fingerprint,
    )
    (target / f"{task}.yaml").write_text(text, encoding="utf-8")
    utils = files("soubench.inference.exports") / "lmms_eval_utils.py"
    (target / "utils.py").write_text(utils.read_text(encoding="utf-8"), encoding="utf-8")
    write_readme(target, "lmms-eval", loaded, task=task, max_new_tokens=str(MAX_NEW_TOKENS))
    return Exported(done.rows, done.pictures, (f"{task}.yaml", "utils.py", *done.files))
