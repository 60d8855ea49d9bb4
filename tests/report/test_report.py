import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from marginbayes.report import sections, summary, write_report
from marginbayes.report.beside import beside
from marginbayes.report.claims import judged
from marginbayes.report.grid import Entry, Grid, Row
from marginbayes.report.html import as_html
from marginbayes.report.index import Index
from marginbayes.report.page import render
from marginbayes.report.pairs import significance_grid, times_grid
from marginbayes.report.results import outcomes
from marginbayes.report.sections import section
from marginbayes.study import Record, Records, load_study
from marginbayes.study.kinds import pack
from marginbayes.study.spec import Published

STUDY = Path(__file__).parents[2] / "studies" / "peharz2012.toml"


class Balanced(HTMLParser):
    """Fails where tags do not close in order."""

    VOID = ("meta", "br")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, _attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, _attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def records(tmp_path):
    """Made-up outcomes of three methods on three sets of the first study, one task failed."""
    study = load_study(STUDY)
    rng = np.random.default_rng(0)
    found = Records(tmp_path / "run")
    for task in study.only(sets=["iris", "car", "heart"], methods=["NB", "TAN", "SM"]).tasks():
        correct = rng.random(40) < {"NB": 0.8, "TAN": 0.85, "SM": 0.9}[task.method.name]
        result = {"accuracy": float(correct.mean()), "tested": 40, "correct": pack(correct), "fit_seconds": 0.1}
        result["parameters"] = 12
        if task.method.name == "SM":
            trace = [[0.1, 1.0, 9.0], [0.5, 2.0, 4.0], [1.0, 2.5, 3.0]]
            result["structure_certificate"] = {
                "objective": 2.5, "bound": 3.0, "gap": 0.2, "status": "time limit", "seconds": 1.0, "trace": trace
            }  # fmt: skip
        found.append(
            Record(task.key, task.experiment, task.dataset, task.method.name, task.split, "done", 0.2, result, 1, {})
        )
    task = study.only(sets=["vote"], methods=["NB"]).tasks()[0]
    error = {"error": "ValueError: </script> is not a set"}
    found.append(Record(task.key, "table2", "vote", "NB", task.split, "failed", 0.2, error, 1, {}))
    return found


def test_the_page_is_whole_and_needs_no_network(records):
    page = render(load_study(STUDY), records)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert "http" not in page


def test_numbers_on_the_page_are_those_of_the_records(records):
    page = render(load_study(STUDY), records)
    rates = [r.result["accuracy"] for r in records if (r.dataset, r.method) == ("iris", "NB")]
    assert f"{100 * np.mean(rates):.2f} ±" in page
    assert "94.00, " in page  # published
    assert "time limit" in page


def test_cells_that_are_coloured_have_an_arrow_as_well():
    marked = (Entry("95", "90", mark="above"), Entry("85", "90", mark="below"), Entry("90", "90"))
    page = as_html(Grid("", "", ("set", "a", "b", "c"), (Row(("iris",), marked),)), Index())
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td.*?(?=<small>)", page)]
    assert cells == ["95 ↑", "85 ↓", "90"]
    assert "↑ and green" in page


def test_the_trivial_first_bound_does_not_set_the_scale_and_the_page_says_which_solves_are_drawn(records, monkeypatch):
    monkeypatch.setattr(sections, "MOST_TRACES", 2)
    page = render(load_study(STUDY), records)
    part = page.split("<h3>Objective and bound over time</h3>")[1]
    assert part.startswith('<p class="soft">The 2 solves of 11 that took longest. The first bound, ')
    chart = part[: part.index("</svg>")]
    assert max(float(tick) for tick in re.findall(r'text-anchor="end">([\d.]+)<', chart)) == 4.0  # the first one is 9


class Cells(HTMLParser):
    """Text of the cells of tables, but for published numbers; apart from it, what stands in buttons."""

    def __init__(self):
        super().__init__()
        self.inside, self.bare, self.opening = [], [], []

    def handle_starttag(self, tag, _attrs):
        self.inside.append(tag)

    def handle_endtag(self, _tag):
        self.inside.pop()

    def handle_data(self, text):
        if "td" in self.inside and "small" not in self.inside:
            (self.opening if "button" in self.inside else self.bare).append(text.strip())


def test_every_number_opens_records_that_exist(records, second, curves):
    for study, made in ((load_study(STUDY), records), second, curves):
        page = render(study, made)
        embedded = json.loads(re.search(r'id="records">(.*?)</script>', page, re.S)[1].replace("<\\/", "</"))
        assert {r["key"] for r in embedded["records"]} == {r.key for r in made}
        used = {int(i) for names in re.findall(r'data-groups="([\d ]+)"', page) for i in names.split()}
        assert used == set(range(len(embedded["groups"])))
        assert all(r < len(embedded["records"]) for group in embedded["groups"] for r in group)
        found = Cells()
        found.feed(page[: page.index("<dialog")].split("</nav>")[1])
        assert found.opening
        assert not [text for text in found.bare if re.match(r"[-+]?\d", text)]


def test_text_from_records_cannot_break_the_page(records):
    assert "&lt;/script&gt; is not a set" in render(load_study(STUDY), records)


def test_the_page_names_the_versions_of_the_records_and_not_its_own(records):
    study = load_study(STUDY)
    made = [replace(r, versions={"python": "2.7", "numpy": "<1.0>"}) for r in records]
    page = render(study, made)
    assert "python 2.7, numpy &lt;1.0&gt;" in page
    assert np.__version__ not in page


def test_the_summary_has_a_row_for_each_finished_set_and_the_published_number(records):
    text = summary(load_study(STUDY), records)
    assert re.search(r"^\| iris \| [\d.]+ ± [\d.]+ \(94.00\)", text, re.M)
    assert "failed: vote, NB" in text
    done = sum(r.status == "done" for r in records)
    assert f"`marginbayes study run peharz2012.toml`: {done} tasks finished, 1 failed or given up" in text


def test_records_of_other_studies_are_not_counted(records):
    study = load_study(STUDY)
    strange = [replace(r, key=f"other/{r.key}", seconds=1e9) for r in records]
    assert summary(study, [*records, *strange]) == summary(study, records)


@pytest.fixture
def second():
    """Made-up outcomes of the second study: the tree always ahead, times 1, 10 and 100."""
    study = load_study(STUDY.with_name("pernkopf2010.toml"))
    seconds = {"NB-ML": 1.0, "TAN-CMI-ML": 1.0, "TAN-OMI-CR-ML": 10.0, "TAN-CR-ML": 100.0}
    tasks = study.only(["table1", "table4"], ["iris", "heart", "pima", "chess"], list(seconds)).tasks()
    made = []
    for i, task in enumerate(tasks):
        correct = np.arange(1000) < (700 + i if task.method.name == "NB-ML" else 800 + i)
        result = {"accuracy": float(correct.mean()), "tested": 1000, "correct": pack(correct)}
        result |= {"structure_seconds": seconds[task.method.name], "parameters": 3}
        names = (task.experiment, task.dataset, task.method.name, task.split)
        made.append(Record(task.key, *names, "done", 1.0, result, 1, {}))
    return study, made


def test_differences_over_sets_point_to_the_better_method_with_the_published_number_below(second):
    study, made = second
    outcome = next(o for o in outcomes(study, made) if o.experiment.name == "table1")
    p, arrow = outcome.significance("NB-ML", "TAN-CMI-ML")
    assert arrow == "⇑"
    assert p < 0.05
    assert outcome.significance("TAN-CMI-ML", "NB-ML") == (p, "⇐")
    table = as_html(significance_grid(outcome), Index())
    assert f"⇑ {outcome.significance('NB-ML', 'TAN-CR-ML')[0]:.2g}</button><small>0.0154</small>" in table


def test_times_are_relative_to_the_last_method(second):
    study, made = second
    outcome = next(o for o in outcomes(study, made) if o.experiment.name == "table4")
    shares = outcome.relative_times()
    assert list(shares) == ["UCI"]
    assert shares["UCI"] == pytest.approx({"TAN-CMI-ML": 1.0, "TAN-OMI-CR-ML": 10.0, "TAN-CR-ML": 100.0})
    assert "10.00 %</button><small>3.155 %</small>" in as_html(times_grid(outcome), Index())
    assert len(outcome.timed("UCI", "TAN-CR-ML")) == 16
    assert "| UCI | 1.00 % (0.649 %) | 10.00 % (3.155 %) | 100.00 % (100 %) |" in summary(study, made)


@pytest.fixture
def curves():
    """Made-up accuracies by size: two splits, four methods."""
    four = ["M2BN-moral", "M2BN-hybrid-moral", "M3N-moral", "MCL-moral"]
    study = load_study(STUDY.with_name("guo2005.toml")).only(["figure4"], methods=four)
    made = []
    for task in study.only(["figure4"]).tasks()[:8]:
        names = (task.experiment, task.dataset, task.method.name, task.split)
        rate = 0.5 if task.split == "10-0" else 0.9
        made.append(Record(task.key, *names, "done", 1.0, {"accuracy": rate, "tested": 100}, 1, {}))
    return study, made


def test_means_by_size_are_over_the_splits_that_all_methods_finished(curves):
    study, made = curves
    assert "| 10 | 70.00 | 70.00 | 70.00 | 70.00 |" in summary(study, made)
    assert "| 10 | 50.00 | 50.00 | 50.00 | 50.00 |" in summary(study, made[:-1])
    for seen, rate in ((made, "70.00"), (made[:-1], "50.00")):
        entry = rf"<td><button[^>]+>{rate}</button></td>"
        assert re.search(rf'<th scope="row">10</th>{entry * 4}', render(study, seen))


def test_accuracy_with_features_missing_is_averaged_place_by_place():
    study = load_study(STUDY.with_name("pernkopf2010.toml"))
    task = study.only(["figure13"]).tasks()[0]
    names = (task.experiment, task.dataset, task.method.name)
    made = [
        Record(f"{task.key}{i}", *names, f"fold{i}", "done", 1.0, {"curve": [[0, 0.9, 0.1], [5, rate, 0.1]]}, 1, {})
        for i, rate in enumerate((0.5, 0.7))
    ]
    outcome = replace(outcomes(study.only(["figure13"]), [])[0], records=tuple(made))
    page = section(outcome, Index())
    assert re.search(r'<th scope="row">0</th><td><button[^>]+>90.00 ± 10.00<', page)
    assert re.search(r'<th scope="row">5</th><td><button[^>]+>60.00 ± 10.00<', page)


def test_curves_that_ended_early_are_compared_as_far_as_they_go():
    study = load_study(STUDY.with_name("pernkopf2010.toml")).only(["figure13"])
    dataset, curves = study.tasks()[0].dataset, {"TAN-CR-ML": [0.9, 0.4], "NB-CL": [0.8, 0.5, 0.1]}
    made = [
        Record(
            m, "figure13", dataset, m, "test", "done", 1.0, {"curve": [[5 * k, r, 0.1] for k, r in enumerate(c)]}, 1, {}
        )
        for m, c in curves.items()
    ]
    outcome = replace(outcomes(study, [])[0], records=tuple(made))
    said = [what for _, what in judged(outcome)]
    assert any(f"{dataset}: TAN-CR-ML is ahead of NB-CL with 0 features missing" in what for what in said)


def test_numbers_that_json_does_not_know_do_not_keep_the_page_from_its_records(records):
    first, *others = records
    odd = replace(first, result={**first.result, "test_cll": -np.inf, "other": [np.nan]})
    page = render(load_study(STUDY), [odd, *others])
    embedded = re.search(r'<script[^>]*id="records"[^>]*>(.*?)</script>', page, re.S).group(1)
    refuse = {"parse_constant": lambda name: pytest.fail(f"{name} is no JSON")}
    assert any(r["result"].get("test_cll") == "-inf" for r in json.loads(embedded, **refuse)["records"])


def test_a_method_is_laid_beside_the_paper_by_hand_worked_numbers(records):
    study = load_study(STUDY).only(sets=["iris", "car"], methods=["NB", "SM"])
    published = Published(
        {"iris": {"NB": (0.0, None), "SVM": (99.99, None)}, "car": {"NB": (100.0, None), "SVM": (60.0, None)}}
    )
    study = replace(study, experiments=tuple(replace(e, published=published) for e in study.experiments))
    table = outcomes(study, records)[0].table
    naive, margin = beside(outcomes(study, records)[0])
    iris, car = table["iris"]["NB"].accuracy, table["car"]["NB"].accuracy
    assert (naive.method, naive.sets, naive.published) == ("NB", 2, 50.0)
    assert naive.ours == pytest.approx((iris + car) / 2)
    assert (naive.above, naive.below) == (1, 1)  # far above 0, and below 100 by more than a random interval
    assert (naive.best, naive.compared) == (0, 2)
    assert margin.published is None
    assert margin.sets == 2
    assert margin.texts()[3:7] == [""] * 4
    assert (naive.seconds, naive.parameters) == (pytest.approx(0.1), 12)
    assert f"| NB | 2 | {naive.ours:.2f} | 50.00 |" in summary(study, records)
    assert "<h3>Beside the paper</h3>" in render(study, records)


def test_costs_are_means_over_sets_whatever_their_number_of_folds(records):
    study = load_study(STUDY).only(sets=["iris", "car", "heart"], methods=["NB", "TAN"])
    costs = {"iris": 1, "car": 3, "heart": 50}
    made = [
        replace(r, result={**r.result, "fit_seconds": costs[r.dataset], "parameters": 100 * costs[r.dataset]})
        for r in records
        if r.dataset in costs and (r.method, r.dataset) != ("TAN", "heart")
    ]
    assert {len([r for r in made if r.dataset == name and r.method == "NB"]) for name in ("iris", "car")} == {5, 1}
    naive, tree = beside(outcomes(study, made)[0])
    assert (tree.seconds, tree.parameters) == (2, 200)
    assert (naive.seconds, naive.parameters) == (18, 1800)
    page = render(study, made)  # in the table, over the sets that both methods finished
    assert re.search(r"seconds of a fit</th><td><button[^>]+>2</button></td><td><button[^>]+>2</button>", page)


def test_what_has_no_result_is_named_with_the_reason(records):
    study = load_study(STUDY)
    reasons = {"SVM": {"letter": "too long"}}
    experiments = tuple(replace(e, absent={"TIMIT": "licensed"}, skip=reasons) for e in study.experiments)
    study = replace(study, experiments=experiments).only(sets=["iris", "letter"], methods=["NB", "SVM"])
    missing = outcomes(study, records)[0].missing()
    assert missing == [
        ("TIMIT", "licensed"),
        ("SVM on letter", "too long"),
        ("SVM", "5 tasks not run yet on iris"),
        ("NB", "1 task not run yet on letter"),
    ]
    assert "- No result: SVM on letter (too long)" in summary(study, records)
    assert "<li>SVM on letter: too long</li>" in render(study, records)


def test_an_empty_run_gives_a_page_that_says_so(tmp_path):
    write_report(load_study(STUDY), Records(tmp_path / "none"), tmp_path / "r.html")
    assert "Nothing of this is finished yet" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_sorts_tables_and_opens_records(records, tmp_path, scheme):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = tmp_path / "r.html"
    write_report(load_study(STUDY), records, path)
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(color_scheme=scheme)
        errors = []
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(path.as_uri())
        page.locator("thead th").nth(1).click()
        cells = page.locator("table").first.locator("tbody tr:not(.mean) td:nth-child(2)")
        shown = [float(v) for v in cells.evaluate_all("cells => cells.map(c => c.dataset.value ?? 'nan')")]
        page.locator("tr:has-text('car') td button").first.click()
        record = page.locator("dialog pre").inner_text()  # a test set: one record, shown at once
        page.keyboard.press("Escape")
        page.locator("tr:has-text('iris') td button").first.click()
        folds = page.locator("dialog details").count()
        page.locator("dialog summary").nth(1).click()
        fold = page.locator("dialog pre").inner_text()
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.close()
    assert not errors
    assert shown == sorted(shown, reverse=True)
    assert '"dataset": "car"' in record
    assert folds == 5
    assert '"dataset": "iris"' in fold
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}[scheme]


def test_a_published_average_stands_only_beside_one_of_the_same_sets(records):
    study = load_study(STUDY).only(sets=["iris", "car", "heart"], methods=["NB", "TAN"])
    published = Published({"average": {"NB": (50.0, None), "TAN": (50.0, None)}})
    extra = {"average": {"sets": 3, "weighted": False}}
    study = replace(study, experiments=tuple(replace(e, published=published, extra=extra) for e in study.experiments))
    assert "<small>50.00, " in render(study, records)
    fewer = [r for r in records if (r.dataset, r.method) != ("heart", "TAN")]
    assert "<small>50.00, " not in render(study, fewer)


def test_methods_are_ranked_by_the_splits_that_all_of_them_finished(curves):
    study, made = curves
    names = {r.method for r in made}
    better = [
        replace(r, result={**r.result, "accuracy": r.result["accuracy"] + 0.05}) if r.method == "M3N-moral" else r
        for r in made
    ]
    assert len(names) == 4
    text = summary(study, [r for r in better if r.method == "M3N-moral" or r.split != "10-0"])
    assert "Here: M3N-moral 95.00 %" in text


def test_a_ranking_tests_each_method_against_the_one_before_over_what_is_drawn(curves):
    study, _ = curves
    gains = {"M2BN-moral": (3, 5, 4, 6), "MCL-moral": (2, 1, 3, 0), "M3N-moral": (2, 2, 1, 0)}
    made = [
        Record(
            t.key, t.experiment, t.dataset, t.method.name, t.split, "done", 1.0, {"accuracy": rate, "tested": 9}, 1, {}
        )
        for t in study.only(methods=[*gains]).tasks()
        if int(t.split.split("-")[1]) < 4 and t.split.startswith(("10-", "20-"))
        for rate in [0.5 + gains[t.method.name][int(t.split.split("-")[1])] / 100]
    ]
    # By hand: gains 1 4 1 6, whose t is 2.45; 0 -1 2 0, whose t is 0.40. Sizes repeat the draws and count once.
    assert (
        "M2BN-moral 54.50 %, MCL-moral 51.50 % (p = 0.092), M3N-moral 51.25 % (p = 0.72); p: two-sided paired t-test "
        "against the one before, over 4 draws" in summary(study, made)
    )


def test_pairs_are_tested_over_sets_where_there_are_enough():
    study = load_study(STUDY.with_name("guo2005.toml")).only(["figure6"], methods=["M2BN", "M3N"])
    sets = study.experiments[0].sets
    made = []
    for task in study.tasks():
        rate = 0.5 + (task.method.name == "M2BN") * (0.02 if sets.index(task.dataset) % 2 else -0.02)
        names = (task.experiment, task.dataset, task.method.name, task.split)
        made.append(Record(task.key, *names, "done", 1.0, {"accuracy": rate, "tested": 9}, 1, {}))
    # 425 draws, but 17 sets: t = -0.24, not -1.2.
    assert "M2BN is -0.12 points apart on average (two-sided p = 0.82 over 17 sets); ahead in 200" in summary(
        study, made
    )


def test_an_order_that_ties_does_not_win():
    study = load_study(STUDY.with_name("pernkopf2010.toml")).only(["figure7"], ["iris", "corral", "heart"])
    ahead = {"iris": 5.0, "corral": 1e-5, "heart": 5.0}
    made = []
    for task in study.tasks():
        level = ahead[task.dataset] if task.method.name == "OMI-CL" else 0.0
        if (task.dataset, task.method.name) == ("heart", "OMI-min-CL"):
            level = 9.0
        result = {"accuracy": 0.5, "tested": 9, "train_cll": [level - 100], "test_accuracies": [0.5]}
        names = (task.experiment, task.dataset, task.method.name, task.split)
        made.append(Record(task.key, *names, "done", 1.0, {**result, "train_accuracies": [0.5]}, 1, {}))
    assert "Here: on 1 of 3 sets; not on corral, heart" in summary(study, made)


def test_likelihoods_are_compared_for_each_size():
    study = load_study(STUDY.with_name("pernkopf2010.toml")).only(["figure9"])
    made = []
    for task in study.tasks():
        size, repeat = map(int, task.split.split("-"))
        level = {"greedy-CL": 30.0, "OMI-CL": 20.0}.get(task.method.name, 10.0 if size < 12 else 25.0)
        noise = np.random.default_rng([size, repeat, len(task.method.name)]).normal()
        names = (task.experiment, task.dataset, task.method.name, task.split)
        made.append(
            Record(task.key, *names, "done", 1.0, {"accuracy": 0.5, "tested": 9, "train_cll": level + noise}, 1, {})
        )
    text = summary(study, made)
    assert "10: greedy-CL > OMI-CL > " in text
    assert re.search(r"14: greedy-CL > [^,]+ > OMI-CL, all apart but ", text)
    assert "for each number of variables" in text
