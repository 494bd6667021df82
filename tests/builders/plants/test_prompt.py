"""The question is the paper's, word for word, or the user's own."""

import pytest

from soubench.builders.errors import FormatError
from soubench.builders.plants.prompt import load_prompt


def test_the_question_is_word_for_word_the_papers():
    prompt = load_prompt()
    assert prompt.version == "plants-v1"
    assert prompt.question == (
        "For the given plant image predict the number of leaves and the center of the leaves"
    )


def test_a_prompt_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('question = "How many?"')
    prompt = load_prompt(path)
    assert (prompt.version, prompt.question) == ("mine", "How many?")
    assert prompt.digest != load_prompt().digest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "cannot be read", id="no file"),
        pytest.param("question = ", "expected a TOML file", id="no TOML"),
        pytest.param("version = 'x'", "expected a text at question", id="no question"),
        pytest.param("question = ' '", "expected a text at question", id="blank question"),
    ],
)
def test_a_bad_prompt_file_is_named(tmp_path, text, why):
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FormatError, match=f"mine.toml: .*{why}"):
        load_prompt(path)
