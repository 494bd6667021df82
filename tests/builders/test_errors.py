"""Errors travel from worker processes to their parent."""

import pickle

from soubench.builders.errors import PictureError


def test_a_picture_error_is_the_same_after_pickling():
    error = pickle.loads(pickle.dumps(PictureError("picture_truncated", "a.png: cut off")))
    assert (error.reason, str(error)) == ("picture_truncated", "a.png: cut off")
