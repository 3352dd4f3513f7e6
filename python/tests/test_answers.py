"""Answers print as text, show as tables in notebooks, and are short in ``repr``.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import subprocess

import nbclient
import nbformat
import pytest

import vramscope

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "test_data" / "recorded"
OOM = DATA / "oom_expandable.pickle.gz"
RANKS = DATA / "ranks_fsdp"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


@pytest.fixture(scope="module")
def snapshot() -> vramscope.Snapshot:
    return vramscope.open(OOM)


ANSWERS = {
    "summary": lambda s: s.summary,
    "device": lambda s: s.summary.devices[0],
    "findings": lambda s: s.findings,
    "finding": lambda s: s.findings[0],
    "lever": lambda s: s.what_if(plan="5GiB").plan.sets[0].lever,
    "diagnosis": lambda s: s.diagnosis,
    "peak": lambda s: s.peak(),
    "lines": lambda s: s.peak(by="line"),
    "modules of the peak": lambda s: s.peak(by="module"),
    "row": lambda s: s.peak(by="stack").rows[0],
    "steps": lambda s: s.steps,
    "step": lambda s: s.steps[0],
    "phase": lambda s: s.steps[0].phases[0],
    "modules": lambda s: s.modules,
    "module": lambda s: s.modules.root.children[0],
    "shapes": lambda s: s.shapes,
    "shape row": lambda s: s.shapes.rows[0],
    "uses": lambda s: s.uses,
    "what_if": lambda s: s.what_if(),
    "plan": lambda s: s.what_if(plan="5GiB"),
    "scenario": lambda s: s.what_if(apply=["batch:0.5"]).scenarios[0],
    "diff": lambda s: s.diff(s),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_is_a_dump(snapshot, name: str) -> None:
    answer = ANSWERS[name](snapshot)
    short = repr(answer)
    assert re.fullmatch(r"<vramscope\.\w+: .+>", short), short
    assert len(short) < 200
    text, html = str(answer), answer._repr_html_()
    assert text.strip("\n") == text
    for shown in (text, html):
        # A dataclass prints itself as `Row(name='...`.
        assert not re.search(r"\b[A-Z]\w+\(\w+=", shown)
        assert "vramscope.reader" not in shown
    assert html.startswith(("<div", "<style"))
    # Tags are closed.
    for tag in ("div", "table", "tr", "td", "th", "p"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>")


def test_a_notebook_shows_no_dump(tmp_path: pathlib.Path) -> None:
    cells = [f"import vramscope\ns = vramscope.open({str(OOM)!r})"]
    cells += ["s.diagnosis", "s.peak(by='category')", "s.peak().rows", "s.findings", "s.blocks"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    (_, *outputs) = [cell.outputs for cell in notebook.cells]
    for (output,) in outputs:
        data = output["data"]
        assert not re.search(r"\b[A-Z]\w+\(\w+=", data["text/plain"])
    shown = [output["data"].get("text/html", "") for (output,) in outputs]
    assert "vramscope-answer" in shown[0] and "out of memory" in shown[0].lower()
    assert "activation" in shown[1] and "2.83 GiB" in shown[1]
    assert all("<table>" in html for html in (shown[1], shown[3], shown[4]))


def test_names_of_files_are_escaped(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "<b>rank0&.pickle.gz"
    path.write_bytes(OOM.read_bytes())
    s = vramscope.open(path)
    for answer in (s.summary, s.peak(), s.steps, s.modules, s.diagnosis, s.findings):
        assert "<b>rank0" not in answer._repr_html_()


def test_the_diagnosis_prints_what_the_program_prints(snapshot) -> None:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [PROGRAM, "diagnose", str(OOM)]
    run = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    assert str(snapshot.diagnosis) == run.stdout.rstrip("\n")
    run = subprocess.run([*command, "--format", "markdown"], capture_output=True, check=True)
    assert snapshot.diagnosis.markdown == run.stdout.decode()
    assert snapshot.diagnosis._repr_html_() == snapshot.diagnosis.html
    run = vramscope.open_run(RANKS)
    assert str(run.diagnosis) != str(snapshot.diagnosis)
    assert run.diagnosis.markdown != snapshot.diagnosis.markdown
    assert run.diagnosis.html.startswith("<style")


def test_text_is_an_aligned_table(snapshot) -> None:
    lines = str(snapshot.peak(by="category")).splitlines()
    head = next(i for i, line in enumerate(lines) if line.strip().startswith("bytes"))
    # The program's numbers: NUMBERS.md.
    assert lines[head + 1].split() == ["2.83", "GiB", "51.7", "%", "248", "activation"]
    end = lines[head].index("bytes") + len("bytes")
    assert all(line[:end].endswith("B") for line in lines[head + 1 :])
    sites = snapshot.peak()
    assert f"and {len(sites.rows) - 20} more sites" in str(sites)


def test_every_public_name_is_listed() -> None:
    assert set(vramscope.__all__) <= set(dir(vramscope))
    assert {"open", "open_run", "show", "export_parquet", "record"} <= set(dir(vramscope))
    for name in vramscope.__all__:
        if name != "show":
            assert getattr(vramscope, name) is not None


def blocks(document: pathlib.Path, heading: str) -> list[tuple[str, str]]:
    """The code of a section, each with the output that the document states."""
    text = document.read_text(encoding="utf-8")
    section = re.split(r"\n##+ ", text.split(f"\n{heading}\n", 1)[1], maxsplit=1)[0]
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", section, re.DOTALL)
    # Ray is not installed.
    return [(code, output) for code, output in found if "vramscope.ray" not in code]


@pytest.mark.parametrize(
    ("document", "heading"), [("python.md", "## Read"), ("python.md", "### Answers in cells")]
)
def test_the_examples_of_the_documents_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, document: str, heading: str
) -> None:
    for folder, files in (("oom_1", [OOM]), ("exit", sorted(RANKS.iterdir()))):
        (tmp_path / "runs" / "42" / folder).mkdir(parents=True)
        for file in files:
            name = "rank0_memory_snapshot.pickle" if file == OOM else file.name
            (tmp_path / "runs" / "42" / folder / name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("import duckdb, polars, pyarrow, vramscope", names)
    found = blocks(ROOT / "docs" / document, heading)
    assert len(found) > 0
    for code, output in found:
        if ".report(" in code and vramscope._vramscope.viewer_part("script") is None:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if output:
            assert printed.getvalue() == output, code


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "42" / "oom_1").mkdir(parents=True)
    path = tmp_path / "runs" / "42" / "oom_1" / "rank0_memory_snapshot.pickle"
    path.write_bytes(OOM.read_bytes())
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = [c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "print(" in c]
    names: dict = {}
    exec("import polars, vramscope", names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    assert "error[oom]" in printed.getvalue()
