"""Drawn stand-ins for the plant set, so that plant-leaves can be tried without a download.

The pictures are drawings and the labels are exact; files and folders are those of the set.
"""

from soubench.builders.demo_plants.write import FOLDER, write_demo_plants

__all__ = ["FOLDER", "write_demo_plants"]
