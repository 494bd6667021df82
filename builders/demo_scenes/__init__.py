"""Drawn stand-ins for the five sources, so that everything can be tried without a download.

The pictures are drawings and the labels are exact; files and folders are those of the sources.
"""

from soubench.builders.demo_scenes.worlds import DemoObject, DemoPicture, draw_picture
from soubench.builders.demo_scenes.write import (
    FOLDERS,
    SPLITS,
    write_demo_source,
    write_demo_sources,
)

__all__ = [
    "FOLDERS",
    "SPLITS",
    "DemoObject",
    "DemoPicture",
    "draw_picture",
    "write_demo_source",
    "write_demo_sources",
]
