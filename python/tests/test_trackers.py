"""The lines of docs/python.md log to W&B, MLflow and TensorBoard what PyTorch measured.

The trackers are large, so `cargo xtask test --long=trackers` installs them beside the wheel and
runs this. Nothing leaves the machine: W&B is offline, and MLflow writes to a folder.
"""

import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("wandb", "mlflow", "tensorboard"):
    pytest.importorskip(package)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
DOCUMENT = PAGE.partition("## Experiment trackers")[2]
RECORDED = ROOT / "test_data/recorded"
RECORDING = "t26/oom_observer.pickle.gz"
#: The recording under the name that the document gives it.
SNAPSHOT = Path("runs/42/oom_1/rank0_memory_snapshot.pickle")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: What the lines need around them: runs that the trackers have begun, and their ends.
PROGRAM = """
import json, pathlib, subprocess, sys
import mlflow, torch.utils.tensorboard, vramscope, wandb

mlflow.set_tracking_uri(pathlib.Path("mlruns").absolute().as_uri())
mlflow.start_run()
run = wandb.init(project="memory", mode="offline", dir=".")
for block in json.load(sys.stdin):
    exec(compile(block, "a block of docs/python.md", "exec"))
summary = {name: run.summary[name] for name in ("memory/peak_bytes", "memory/reserved_bytes")}
run.finish()
told = {"summary": summary, "mlflow": mlflow.active_run().info.run_id}
mlflow.end_run()
pathlib.Path("told.json").write_text(json.dumps(told))
"""


@dataclasses.dataclass
class Logged:
    """What the lines of the document have left in a folder."""

    folder: Path
    #: The numbers of the run of W&B.
    summary: dict[str, int]
    #: The run of MLflow.
    mlflow_run: str
    #: What the reader says in another process.
    html: str
    markdown: str


@pytest.fixture(scope="module")
def peaks() -> dict[str, int]:
    """The peaks that PyTorch measured, in `memory_stats()` of the recorded process."""
    known = json.loads((RECORDED / "expected.json").read_text())[RECORDING]
    stats = known["memory_stats"]["at_dump"]["0"]
    return {
        "memory/peak_bytes": stats["requested_bytes.all.peak"],
        "memory/reserved_bytes": stats["reserved_bytes.all.peak"],
    }


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Logged:
    folder = tmp_path_factory.mktemp("logged")
    path = folder / SNAPSHOT
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress((RECORDED / RECORDING).read_bytes()))
    # In the Python that has PyTorch, whose writer TensorBoard's line names.
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "WANDB_SILENT": "true",
    }
    blocks = BLOCK.findall(DOCUMENT)
    process = subprocess.run(
        [os.environ["VRAMSCOPE_TORCH"], "-c", PROGRAM],
        cwd=folder,
        env=environ,
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    told = json.loads((folder / "told.json").read_text())
    import vramscope

    diagnosis = vramscope.open(path).diagnosis
    # The lines of the document name a relative path.
    html, markdown = (
        text.replace(f"{folder}/", "") for text in (diagnosis.html, diagnosis.markdown)
    )
    return Logged(folder, told["summary"], told["mlflow"], html, markdown)


def test_the_document_names_each_tracker() -> None:
    blocks = "".join(BLOCK.findall(DOCUMENT))
    for line in ("wandb.log(", "mlflow.log_text(", "mlflow.log_metrics(", "writer.add_text("):
        assert line in blocks


def test_wandb_keeps_the_card_the_report_and_the_numbers(
    logged: Logged, peaks: dict[str, int]
) -> None:
    kept = {path.read_text() for path in (logged.folder / "wandb").rglob("*.html")}
    report = (logged.folder / "report.html").read_text()
    assert kept == {logged.html, report}
    assert logged.summary == peaks


def test_mlflow_keeps_the_text_the_report_and_the_numbers(
    logged: Logged, peaks: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    client = mlflow.MlflowClient((logged.folder / "mlruns").as_uri())
    names = [artifact.path for artifact in client.list_artifacts(logged.mlflow_run)]
    assert sorted(names) == ["memory.md", "report.html"]
    text = Path(client.download_artifacts(logged.mlflow_run, "memory.md")).read_text()
    assert text == logged.markdown
    report = Path(client.download_artifacts(logged.mlflow_run, "report.html"))
    assert report.read_bytes() == (logged.folder / "report.html").read_bytes()
    assert client.get_run(logged.mlflow_run).data.metrics == peaks


def test_tensorboard_shows_the_table_and_the_peak(logged: Logged, peaks: dict[str, int]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugin_util import markdown_to_safe_html

    events = EventAccumulator(str(logged.folder / "tensorboard/42"))
    events.Reload()
    (kept,) = events.Tensors("memory/text_summary")
    text = kept.tensor_proto.string_val[0].decode()
    assert text == logged.markdown
    shown = markdown_to_safe_html(text)
    assert "<table>" in shown
    assert "out of memory in backward of step 2" in shown
    (peak,) = events.Scalars("memory/peak_bytes")
    # TensorBoard keeps four bytes of a number.
    assert peak.value == pytest.approx(peaks["memory/peak_bytes"], rel=1e-6)
