"""Studies: data sets, methods and protocol as data; run, resumed where they stopped, laid beside published numbers."""

from marginbayes.study.records import Record, Records
from marginbayes.study.runner import run
from marginbayes.study.spec import Experiment, Method, Study, load_study

__all__ = ["Experiment", "Method", "Record", "Records", "Study", "load_study", "run"]
