"""Page and summary show the same grids: for every kind of experiment its own measure, beside the paper's numbers."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from marginbayes.report import summary
from marginbayes.report.beside import is_apart
from marginbayes.report.curves import curves
from marginbayes.report.facts import facts
from marginbayes.report.gaps import gap_grid
from marginbayes.report.grid import Entry, Grid, Row
from marginbayes.report.index import Index
from marginbayes.report.markdown import as_markdown
from marginbayes.report.page import render
from marginbayes.report.results import outcomes
from marginbayes.report.sections import section
from marginbayes.study import Record, load_study
from marginbayes.study.kinds import pack
from marginbayes.study.statistics import Cell

STUDIES = Path(__file__).parents[2] / "studies"
ORDERS = 7


def made(study):
    """Made-up records of all tasks of a study, with all that any kind of experiment keeps."""
    rng = np.random.default_rng(0)
    return [_record(task, rng) for task in study.tasks()]


def _record(task, rng):
    correct = rng.random(50) < 0.7
    result = {
        "accuracy": float(correct.mean()),
        "tested": 50,
        "correct": pack(correct),
        "train_accuracy": rng.random(),
        "train_cll": -100 * rng.random(),
        "fit_seconds": rng.random(),
        "structure_seconds": rng.random(),
        "parameters": int(rng.integers(10, 1000)),
    }
    if task.kind == "missing":
        result["curve"] = [[count, rng.random(), 0.1] for count in (0, 2, 4)]
    if task.kind == "parts":
        result["members"] = rng.random((3, 2)).tolist()
    if task.kind == "orders":
        drawn = task.method.options["structure_options"]["order"] == "random"
        spread = rng.random((3, ORDERS if drawn else 1))
        result |= dict(zip(("test_accuracies", "train_accuracies"), spread[:2].tolist(), strict=True))
        result |= {"accuracy": float(spread[0].mean()), "train_cll": (-100 * spread[2]).tolist()}
    if task.method.name in ("SM", "SBM"):
        bound = {"objective": 90.0, "bound": 100.0, "gap": 1 / 9, "status": "time limit", "seconds": 1.0, "trace": []}
        result["structure_certificate"] = bound
    names = (task.experiment, task.dataset, task.method.name, task.split)
    return Record(task.key, *names, "done", 1.0, result, 1, {})


def short(name):
    """The short form of a study, with the experiments that have none on their first set and two splits."""
    study = load_study(STUDIES / f"{name}.toml")
    few = [e.shortened() or replace(e, sets=e.sets[:1], protocol=_few(e.protocol)) for e in study.experiments]
    return replace(study, experiments=tuple(few))


def _few(protocol):
    return {**protocol, "sizes": protocol["sizes"][:2], "repeats": 2} if "sizes" in protocol else protocol


def lines_of(text, title):
    """The lines of the section of an experiment."""
    return text.split(f"## {title}")[1].split("\n## ")[0].splitlines()


class Numbers(HTMLParser):
    """Texts of the cells of the tables of a page; which follow a title, by that title."""

    def __init__(self):
        super().__init__()
        self.inside, self.title, self.found = [], "", {}

    def handle_starttag(self, tag, _attrs):
        self.inside.append(tag)

    def handle_endtag(self, _tag):
        self.inside.pop()

    def handle_data(self, text):
        if self.inside[-1:] in (["h2"], ["h3"]):
            self.title = text
        elif "td" in self.inside:
            self.found.setdefault(self.title, []).append(text)


@pytest.mark.parametrize("name", ["peharz2012", "pernkopf2010", "guo2005", "tschiatschek2012"])
def test_the_summary_has_every_number_of_the_tables_of_the_page(name):
    study = short(name)
    records = made(study)
    page = render(study, records)
    numbers = Numbers()
    numbers.feed(page[page.index("</nav>") + 6 : page.index("<dialog")])
    numbers.found.pop("Certificates", None)  # solve by solve, on the page alone
    text = summary(study, records)
    cells = {part for line in text.splitlines() if line.startswith("|") for part in re.split(r" \| |[|()]| [↑↓]", line)}
    known = {cell.strip() for cell in cells}
    shown = {part.strip() for found in numbers.found.values() for part in found} - {"↑", "↓"}
    assert len(shown) > 15
    assert {part.split(", ")[0] for part in shown} - known == set()


def test_table_8_has_all_five_columns_of_the_paper_beside_ours():
    study = load_study(STUDIES / "pernkopf2010.toml").only(["table1", "table8"], ["chess", "iris"])
    records = made(study)
    own = {r.dataset: r.result for r in records if r.experiment == "table8"}
    tests, trains = (100 * np.array(own["chess"][key]) for key in ("test_accuracies", "train_accuracies"))
    informed = next(
        100 * r.result["accuracy"]
        for r in records
        if (r.experiment, r.dataset, r.method) == ("table1", "chess", "TAN-OMI-CR-ML")
    )
    row = next(line for line in lines_of(summary(study, records), "Table 8") if line.startswith("| chess |"))
    assert row.split(" | ")[1:6] == [
        f"{tests.mean():.2f} ± {tests.std():.2f} (94.70 ± 0.76)",
        f"{np.median(tests):.2f} (94.75)",
        f"{tests[trains.argmin()]:.2f} (95.22)",
        f"{tests[trains.argmax()]:.2f} (93.90)",
        f"{informed:.2f} (94.93)",
    ]


def test_published_orders_stand_alone_where_no_experiment_has_the_order_by_information():
    study = load_study(STUDIES / "pernkopf2010.toml").only(["table8"], ["chess"])
    text = summary(study, made(study))
    assert "| OMI-CR |" in text
    assert "| (94.93) |" in text


def test_the_weighted_mean_of_the_published_orders_is_the_average_that_the_paper_prints():
    study = load_study(STUDIES / "pernkopf2010.toml").only(["table8"])
    sizes = {"chess": 1066, "letter": 5000, "mofn-3-7-10": 1024, "satimage": 2000, "segment": 770}
    sizes |= {"shuttle-small": 1934, "waveform-21": 4700, "australian": 690, "breast": 683, "cleve": 296, "corral": 128}
    sizes |= {"crx": 653, "diabetes": 768, "flare": 1066, "german": 1000, "glass": 214, "glass2": 163, "heart": 270}
    sizes |= {"hepatitis": 80, "iris": 150, "lymphography": 148, "pima": 768, "vote": 435, "soybean-large": 562}
    sizes |= {"vehicle": 846}
    records = [
        replace(r, result={**r.result, "tested": sizes[r.dataset] / (5 if r.split.startswith("fold") else 1)})
        for r in made(study)
    ]
    row = next(line for line in summary(study, records).splitlines() if line.startswith("| weighted mean |"))
    assert re.findall(r"\(([\d.]+)\)", row) == ["85.04", "85.06", "85.00", "84.82", "85.11"]


def test_figures_of_likelihood_show_likelihoods():
    study = short("pernkopf2010")
    records = made(study)
    text = summary(study, records)
    of_iris = {r.method: r.result for r in records if (r.experiment, r.dataset) == ("figure7", "iris")}
    drawn = of_iris["RO-CL"]["train_cll"]
    ones = [f"{of_iris[m]['train_cll'][0]:.1f}" for m in ("OMI-CL", "OMI-min-CL")]
    row = f"| iris | {ones[0]} | {ones[1]} | {np.mean(drawn):.1f} ± {np.std(drawn):.1f} |"
    assert row in lines_of(text, "Figures 7 and 8")
    by_size = {m: [r for r in records if (r.experiment, r.method) == ("figure9", m)] for m in ("NB-ML", "OMI-CL")}
    means = [f"{np.mean([r.result['train_cll'] for r in own]):.1f}" for own in by_size.values()]
    assert f"| 6 | {means[0]} | {means[1]} |" in lines_of(text, "Figure 9")


def test_curves_of_missing_features_have_a_row_for_each_count_and_end_where_a_method_does():
    study = load_study(STUDIES / "pernkopf2010.toml").only(["figure13"], ["vowel"], ["NB-ML", "NB-CL"])
    curves = {"NB-ML": [[0, 0.5, 0.0], [3, 0.4, 0.1]], "NB-CL": [[0, 0.6, 0.0]]}
    records = [replace(r, result={**r.result, "curve": curves[r.method]}) for r in made(study)]
    lines = lines_of(summary(study, records), "Figures 11 to 13")
    assert "| missing features | NB-ML | NB-CL |" in lines
    assert "| 0 | 50.00 | 60.00 |" in lines  # nothing is drawn where nothing is missing
    assert "| 3 | 40.00 ± 10.00 |  |" in lines


def test_wins_beside_the_paper_are_of_sets_for_which_it_has_both_numbers():
    study = load_study(STUDIES / "peharz2012.toml").only(sets=["letter", "chess", "adult"], methods=["NB", "SM", "SBM"])
    records = []
    for record in made(study):
        correct = np.arange(50) < (20 if record.method == "NB" else 45)
        result = {**record.result, "correct": pack(correct), "accuracy": float(correct.mean())}
        records.append(replace(record, result=result))
    outcome = outcomes(study, records)[0]
    assert outcome.wins("SM", "NB") == (3, 3)
    assert outcome.wins("SM", "NB", as_published=True) == (2, 2)  # the paper has no SM on letter
    assert outcome.wins("SBM", "NB", as_published=True) == (3, 3)
    text = summary(study, records)
    assert "| SM | 2/2 (18/14) | — | 0/0 (4/2) |" in text
    assert "SM beats NB 2 times at 68 % (2 at 95 %) on 2 sets" in text
    assert "SBM beats NB 3 times at 68 % (3 at 95 %) on 3 sets" in text


def test_gaps_are_the_largest_of_the_splits_in_per_cent_of_the_bound():
    study = load_study(STUDIES / "peharz2012.toml").only(
        sets=["vehicle", "letter", "iris"], methods=["SM", "SBM", "MDL"]
    )
    records = []
    for record in made(study):
        if record.method == "MDL":  # proved, and not in the table
            proof = {"objective": 1.0, "bound": 1.0, "gap": 0.0, "status": "optimal", "seconds": 1.0, "trace": []}
            records.append(replace(record, result={**record.result, "structure_certificate": proof}))
            continue
        proved = record.dataset == "iris" or record.split == "fold3"
        found = {**record.result["structure_certificate"], "status": "optimal" if proved else "time limit"}
        found["objective"] = 100.0 if proved else 80.0 if record.split == "fold1" else 90.0
        records.append(replace(record, result={**record.result, "structure_certificate": found}))
    grid = gap_grid(outcomes(study, records)[0])
    assert [(row.names, [(e.text, e.published) for e in row.entries]) for row in grid.rows] == [
        (("letter",), [("10.00", "∞"), ("10.00", "1.99")]),
        (("vehicle",), [("20.00", "4.57"), ("20.00", "0.00")]),
    ]
    assert "Of 22 solves of these methods, 12 are proved optimal" in grid.caption


def test_a_wide_grid_becomes_several_tables_that_have_all_columns_once():
    head = ("set", *(f"m{i}" for i in range(30)))
    rows = tuple(Row((name,), tuple(Entry(f"{name}{i}") for i in range(30))) for name in "ab")
    lines = as_markdown(Grid("", "Thirty.", head, rows))
    heads = [line.strip("| ").split(" | ") for line in lines if line.startswith("| set")]
    assert [h for own in heads for h in own[1:]] == list(head[1:])
    assert max(map(len, heads)) <= 13
    own = [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith("| a ")]
    assert [e for part in own for e in part] == [f"a{i}" for i in range(30)]


def test_captions_speak_of_brackets_only_where_there_are_some():
    for name in ("pernkopf2010", "tschiatschek2012"):
        study = short(name)
        for outcome in outcomes(study, made(study)):
            for grid in facts(outcome):
                text = as_markdown(grid)
                has = any(re.search(r"\([\d.∞]", line) for line in text if line.startswith("| ") and "---" not in line)
                assert ("In brackets" in text[0]) == has


def test_training_rows_stand_beside_test_rows_where_the_paper_speaks_of_both():
    study = load_study(STUDIES / "tschiatschek2012.toml").only(["figure4"], methods=["parts-2"])
    records = made(study)
    train, test = (100 * records[0].result[key] for key in ("train_accuracy", "accuracy"))
    assert f"| usps | parts-2 | {train:.2f} | {test:.2f} |  |  |" in summary(study, records)
    weights = {"least": 0.0, "most": 0.75, "equal_from": 1234.5, "equal": False}
    for equal, shown in ((False, "0.000 to 0.750"), (True, "equal")):
        own = replace(records[0], result={**records[0].result, "weights": {**weights, "equal": equal}})
        assert f"| {shown} | 1.23e+03 |" in summary(study, [own])


def test_what_members_weigh_and_tables_without_an_optimum_are_told():
    study = load_study(STUDIES / "tschiatschek2012.toml").only(["table1"], ["usps"], ["whole", "combined-20"])
    whole, combined = made(study)
    status = {"status": "not attained: the rows are separable"}
    whole = replace(whole, result={**whole.result, "parameters_certificate": status, "members": []})
    weights = {"least": 0.05, "most": 0.05, "equal_from": 77.0, "equal": True}
    combined = replace(combined, result={**combined.result, "weights": weights})
    text = summary(study, [whole, combined])
    assert "- usps, whole: certificate of the tables: not attained: the rows are separable." in text
    assert "All weights are equal, as they are from D = 77 on." in text
    page = render(study, [whole, combined])
    assert "not attained: the rows are separable" in page
    assert "from D = 77 on" in page


def test_the_trend_is_that_of_the_methods_that_the_claim_names():
    study = load_study(STUDIES / "tschiatschek2012.toml").only(["figure4"])
    rates = {m.name: m.options["parameters_options"]["n_parts"] / 100 for m in study.experiments[0].methods}
    records = [
        replace(r, result={**r.result, "accuracy": 0.5 if "hybrid" in r.method else rates[r.method]})
        for r in made(study)
    ]
    assert "+1.00 on the test rows" in summary(study, records)


def test_the_page_and_the_summary_say_what_the_names_of_methods_stand_for():
    study = load_study(STUDIES / "peharz2012.toml").only(sets=["iris"], methods=["TAN-CL", "MDL", "SVM", "chosen"])
    text, page = summary(study, made(study)), render(study, made(study))
    lines = text.split("## Methods")[1].splitlines()
    assert "| TAN-CL | tan | ConditionalLikelihood | l2: 0.002 0.02 0.2 2 20 |" in lines
    assert "| MDL | ExactScore(score=mdl) | ml | k: 0, class_parents: 1 or k: 1, class_parents: 2 |" in lines
    assert any(line.startswith("| SVM | support vector machine | inputs = levels | gamma: 0.03125 ") for line in lines)
    assert any(line.startswith("| chosen |  | ConditionalLikelihood | structure: nb tan kdb2, l2: ") for line in lines)
    assert '<li><a href="#methods">Methods</a></li>' in page
    assert "l2: 0.002 0.02 0.2 2 20" in page
    assert "## Methods" not in summary(study, [])
    nested = load_study(STUDIES / "tschiatschek2012.toml").only(["figure4"], methods=["parts-2"])
    assert "random_state=1, base=MarginConvex(B=1))" in summary(nested, made(nested))


def test_seconds_are_of_the_processor_where_all_records_have_them_and_the_caption_says_which():
    study = load_study(STUDIES / "peharz2012.toml").only(sets=["iris"], methods=["NB", "TAN"])
    old = made(study)
    new = [replace(r, result={**r.result, "fit_processor_seconds": 7.0}) for r in old]
    assert "| seconds of a fit | 7 | 7 |" in summary(study, new)
    assert "are of the processor" in summary(study, new)
    mixed = summary(study, [*new[1:], old[0]])
    assert "| seconds of a fit | 7 |" not in mixed
    assert "by the clock" in mixed


@pytest.mark.parametrize(
    ("study", "experiment", "label"),
    [
        ("pernkopf2010", "figure3", "training rows"),
        ("pernkopf2010", "figure9", "variables"),
        ("pernkopf2010", "figure10", "features"),
        ("guo2005", "figure6", "training rows"),
        ("guo2005", "figure9", "training sequences"),
        ("guo2005", "figure10", "training positions"),
    ],
)
def test_curves_name_what_their_sizes_count(study, experiment, label):
    found = load_study(STUDIES / f"{study}.toml").only([experiment])
    assert curves(outcomes(found, made(found)[:4])[0]).label == label


def test_accuracy_of_rows_that_all_learn_is_called_that_of_the_training_rows():
    for name, methods in (("figure7", ["RO-CL"]), ("figure7", []), ("table8", [])):
        study = load_study(STUDIES / "pernkopf2010.toml").only([name], ["iris", "corral"], methods)
        text = " ".join(grid.title + grid.caption for o in outcomes(study, made(study)) for grid in facts(o))
        assert ("ccuracy on the training rows" in text) == (name == "figure7")
        assert ("test rows" in text) == ("folds" in text) == (name == "table8")


def test_the_table_and_the_chart_of_a_classification_of_training_rows_say_so():
    study = load_study(STUDIES / "peharz2012.toml").only(sets=["iris", "corral"], methods=["NB", "TAN"])
    for whole, said in ((True, "on the training rows"), (False, "weighted by test rows")):
        own = tuple(replace(e, protocol={"whole": True} if whole else {"folds": 2}) for e in study.experiments)
        changed = replace(study, experiments=own)
        outcome = outcomes(changed, made(changed))[0]
        assert said in facts(outcome)[0].caption
        assert ("mean accuracy on the training rows, %" in section(outcome, Index())) == whole


@pytest.mark.parametrize(("tested", "outside"), [(100, False), (100_000, True)])
def test_an_interval_without_width_is_replaced_by_that_of_wilson(tested, outside):
    """Wilson's interval of n rightly classified rows of n begins at n / (n + 1.96²)."""
    right, wrong = (Cell(rate, 0.0, tested, 1.0, ()) for rate in (100.0, 0.0))
    assert is_apart(right, (99.5, None)) == is_apart(wrong, (0.5, None)) == outside
    edge = 100 * tested / (tested + 1.959964**2)
    assert not is_apart(right, (edge, None))
    assert is_apart(right, (edge - 0.006, None))
    assert not is_apart(wrong, (100 - edge, None))
    assert is_apart(wrong, (100.006 - edge, None))


def test_a_published_interval_counts_as_ours_does():
    ours = Cell(90.0, 3.0, 100, 1.0, ())
    assert is_apart(ours, (94.0, None))
    assert not is_apart(ours, (94.0, 4.0))
    assert not is_apart(ours, (94.99, 4.0))
    assert is_apart(ours, (95.01, 4.0))  # 3, 4, 5
    right = Cell(100.0, 0.0, 100, 1.0, ())  # Wilson's begins at 96.3
    assert is_apart(right, (95.0, None))
    assert not is_apart(right, (95.0, 4.0))
