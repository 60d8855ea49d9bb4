"""Data sets by name, and table files.

`load` takes a set from the data home (a folder that the environment variable MARGINBAYES_DATA names), else
from scikit-learn, else generates it by its rule, else fetches it from OpenML and caches it. Everything here
returns pandas frames: `pip install "marginbayes[data]"`.
"""

from marginbayes.datasets import generators, synthetic
from marginbayes.datasets.dataset import Dataset
from marginbayes.datasets.files import read_table
from marginbayes.datasets.home import data_home
from marginbayes.datasets.registry import Record, available, fetch, load, where

__all__ = [
    "Dataset",
    "Record",
    "available",
    "data_home",
    "fetch",
    "generators",
    "load",
    "read_table",
    "synthetic",
    "where",
]
