"""Every dataset's card has the metadata that the Hub reads."""

from pathlib import Path

import pytest
from huggingface_hub import DatasetCard

SCRIPTS = Path(__file__).parents[2] / "dataset_scripts"
FOLDERS = sorted(path.parent for path in SCRIPTS.glob("*/RELEASE_NOTES.md"))


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_card_has_metadata_and_what_a_stranger_needs(folder):
    card = DatasetCard.load(folder / "README.md")
    for key in ("license", "language", "task_categories", "size_categories", "pretty_name"):
        assert card.data.get(key), key
    # The card of any detection set has a place for the name that the user gives.
    name = "<!-- name -->" if folder.name == "detection" else folder.name.replace("_", "-")
    for text in (f"soubench build {name}", f'load_dataset("{name}"', "## License", "## Citation"):
        assert text in card.text, text
    assert card.text.count("<!-- this build -->") == 1
    assert (folder / "CITATION.bib").read_text().startswith("@")
