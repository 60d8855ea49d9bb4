"""What is known of single data sets: sizes, other names, OpenML numbers, and the meaning of their cells."""

from __future__ import annotations

from dataclasses import dataclass

from marginbayes.datasets.openml import Entry

__all__ = ["ALIASES", "BOOKKEEPING", "GENERATED", "HALVED", "MISSING_LEVELS", "OPENML", "Size"]


@dataclass(frozen=True)
class Size:
    """Rows, features and classes of a data set; None where unknown."""

    rows: int | None = None
    features: int | None = None
    classes: int | None = None


GENERATED = {
    "corral": Size(128, 6, 2),
    "mofn-3-7-10": Size(1324, 10, 2),
    "monks-1": Size(556, 6, 2),
    "monks-2": Size(601, 6, 2),
    "monks-3": Size(554, 6, 2),
    "waveform-21": Size(5000, 21, 3),
    "informative-edge": Size(2000, 3, 2),
    "class-trees": Size(150_000, 10, 5),
    "skewed-moral": Size(1050, 4, 2),
    "skewed-immoral": Size(1050, 4, 2),
    "skewed-chain": Size(5250, 4, 2),
}

# Number, name there, rows, features, classes. Columns, labels and order may differ from other copies.
OPENML = {
    "adult": Entry(1590, "adult", 48842, 14, 2),
    "balance-scale": Entry(11, "balance-scale", 625, 4, 3),
    "breast": Entry(15, "breast-w", 699, 9, 2),
    "car": Entry(21, "car", 1728, 6, 4),
    "chess": Entry(3, "kr-vs-kp", 3196, 36, 2),
    "crx": Entry(29, "credit-approval", 690, 15, 2),
    "diabetes": Entry(37, "diabetes", 768, 8, 2),
    "german": Entry(31, "credit-g", 1000, 20, 2),
    "glass": Entry(41, "glass", 214, 9, 6),
    "heart": Entry(53, "heart-statlog", 270, 13, 2),
    "hepatitis": Entry(55, "hepatitis", 155, 19, 2),
    "ionosphere": Entry(59, "ionosphere", 351, 34, 2),
    "iris": Entry(61, "iris", 150, 4, 3),
    "letter": Entry(6, "letter", 20000, 16, 26),
    "lymphography": Entry(10, "lymph", 148, 18, 4),
    "mnist": Entry(554, "mnist_784", 70000, 784, 10, n_train=60000),
    "monks-1": Entry(333, "monks-problems-1", 556, 6, 2),
    "monks-2": Entry(334, "monks-problems-2", 601, 6, 2),
    "monks-3": Entry(335, "monks-problems-3", 554, 6, 2),
    "mushroom": Entry(24, "mushroom", 8124, 22, 2),
    "nursery": Entry(26, "nursery", 12960, 8),
    "optdigits": Entry(28, "optdigits", 5620, 64, 10),
    "pendigits": Entry(32, "pendigits", 10992, 16, 10),
    "satimage": Entry(182, "satimage", None, 36, 6),
    "segment": Entry(36, "segment", 2310, 19, 7),
    "sonar": Entry(40, "sonar", 208, 60, 2),
    "soybean-large": Entry(42, "soybean", 683, 35, 19),
    "spambase": Entry(44, "spambase", 4601, 57, 2),
    "splice": Entry(46, "splice", 3190, None, 3),
    "tic-tac-toe": Entry(50, "tic-tac-toe", 958, 9, 2),
    "vehicle": Entry(54, "vehicle", 846, 18, 4),
    "vote": Entry(56, "vote", 435, 16, 2),
    "waveform-40": Entry(60, "waveform-5000", 5000, 40, 3),
}

# Images at half their resolution, as the papers use them: name of the set, name of the full-size one.
HALVED = {"mnist-14x14": "mnist"}

ALIASES = {
    "breast-w": "breast",
    "credit-approval": "crx",
    "credit-g": "german",
    "heart-statlog": "heart",
    "kr-vs-kp": "chess",
    "lymph": "lymphography",
    "mnist_784": "mnist",
    "mofn": "mofn-3-7-10",
    "monks-problems-1": "monks-1",
    "monks-problems-2": "monks-2",
    "monks-problems-3": "monks-3",
    "soybean": "soybean-large",
    "waveform": "waveform-21",
    "waveform-5000": "waveform-40",
}

# Empty cells that mean something: here "neither yea nor nay".
MISSING_LEVELS = {"vote": "neither"}

# Bookkeeping columns that a set does not declare: in cb513 the mask of the residues an evaluation counts.
BOOKKEEPING = {"cb513": ("in_cb513",)}
