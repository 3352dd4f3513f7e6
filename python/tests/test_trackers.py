"""Reports in experiment trackers, as docs/sharing.md logs them: W&B, MLflow and TensorBoard.

The trackers are large, so `cargo xtask test --long` installs them and runs this. Nothing leaves the
machine: W&B is offline, and MLflow writes to a folder.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("wandb", "mlflow", "tensorboard"):
    pytest.importorskip(package)

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "test_data/beside/oom_1/rank3_memory_snapshot.pickle"
PROGRAM = os.environ["VRAMSCOPE"]

WRITER = """
import sys, torch.utils.tensorboard
writer = torch.utils.tensorboard.SummaryWriter(sys.argv[1])
writer.add_text("memory/diagnosis", sys.stdin.read())
writer.close()
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    subprocess.run([PROGRAM, "export", RECORDING, "--as", "html", "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def diagnosis() -> str:
    command = [PROGRAM, "diagnose", RECORDING, "--format", "markdown"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_wandb_keeps_the_report_as_it_is(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    monkeypatch.chdir(tmp_path)
    run = wandb.init(project="memory", mode="offline", dir=str(tmp_path))
    with report.open() as html:
        run.log({"memory": wandb.Html(html, inject=False)})
    run.finish()
    kept = list(tmp_path.rglob("*.html"))
    assert kept
    assert all(path.read_bytes() == report.read_bytes() for path in kept)


def test_mlflow_keeps_the_report_and_the_text(
    report: Path, diagnosis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_artifact(str(report))
        mlflow.log_text(diagnosis, "memory.md")
    client = mlflow.MlflowClient()
    names = [artifact.path for artifact in client.list_artifacts(run.info.run_id)]
    assert sorted(names) == ["memory.md", "report.html"]
    kept = client.download_artifacts(run.info.run_id, "report.html")
    assert Path(kept).read_bytes() == report.read_bytes()


def test_tensorboard_shows_the_table(diagnosis: str, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugin_util import markdown_to_safe_html

    # The writer of PyTorch, in the Python that has it.
    torch = os.environ["VRAMSCOPE_TORCH"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [torch, "-c", WRITER, str(tmp_path / "run")]
    subprocess.run(command, input=diagnosis, check=True, text=True, env=environment)
    events = EventAccumulator(str(tmp_path / "run"))
    events.Reload()
    (kept,) = events.Tensors("memory/diagnosis/text_summary")
    text = kept.tensor_proto.string_val[0].decode()
    assert text == diagnosis
    shown = markdown_to_safe_html(text)
    assert "<table>" in shown
    assert "<strong>Out of memory: 2.00 GiB in step 3</strong>" in shown
