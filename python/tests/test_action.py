"""The action in ``.github/actions/memory``, step by step as GitHub's runner would run it.

The repository, its shallow clone, the dry runs and pip are real. A server of this test has the
comments. Needs the installed package, its wheel, and a Python with PyTorch in ``VRAMSCOPE_TORCH``.
"""

from __future__ import annotations

import dataclasses
import http.server
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from dry import TORCH
from steps import evaluated, steps

ACTION = pathlib.Path(__file__).parents[2] / ".github/actions/memory"
#: The programs of the installed package, and the wheel that it was installed from.
PROGRAMS = pathlib.Path(sys.executable).parent
WHEELS = sorted(pathlib.Path(sys.prefix).parent.glob("*.whl"))
REPORTS = "https://github.example/run/1/artifacts/2"

pytestmark = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")

#: Six steps with a parameter of 4 MiB. At the peak there is the input of the step before, too.
TRAIN = """
import torch

weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(6):
    batch = torch.empty({mib} << 18, device="cuda")
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
FAILS = "raise ValueError('no <b>data</b> for @everyone')\n"


@dataclasses.dataclass
class Api:
    """The part of GitHub's REST API that has the comments of a pull request."""

    comments: list[dict[str, object]] = dataclasses.field(default_factory=list)
    #: Methods, with the tokens that came with them.
    asked: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    is_read_only: bool = False
    url: str = ""

    def write(self, body: str, kind: str = "Bot") -> dict[str, object]:
        number = len(self.comments) + 1
        url = f"https://github.example/comments/{number}"
        one = {"id": number, "body": body, "user": {"type": kind}, "html_url": url}
        self.comments.append(one)
        return one

    def answer(self, method: str, path: str, body: dict[str, str]) -> tuple[int, object]:
        page = re.fullmatch(
            r"/repos/o/r/issues/17/comments\?per_page=(\d+)&page=(\d+)|"
            r"/repos/o/r/issues/comments/(\d+)|/repos/o/r/issues/17/comments",
            path,
        )
        if page is None:
            return 404, {"message": f"Not Found: {path}"}
        if method == "GET":
            count, number = int(page[1]), int(page[2])
            return 200, self.comments[count * (number - 1) : count * number]
        if self.is_read_only:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST":
            return 201, self.write(body["body"])
        changed = self.comments[int(page[3]) - 1]
        changed["body"] = body["body"]
        return 200, changed


@pytest.fixture()
def api() -> Iterator[Api]:
    api = Api()

    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length) or "{}")
            api.asked.append((self.command, self.headers["Authorization"]))
            status, answer = api.answer(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = reply

        def log_message(self, *_: object) -> None:
            """Writes nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield api
        server.shutdown()
        thread.join()


def git(folder: pathlib.Path, *words: str) -> str:
    own = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    command = ["git", *own, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@dataclasses.dataclass
class Job:
    """A job of a pull request, whose checkout is shallow and has the merge."""

    folder: pathlib.Path
    api: Api
    log: str = ""
    failed: str | None = None
    #: The inputs of the other actions.
    given: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls, folder: pathlib.Path, api: Api, base: dict[str, str], branch: dict[str, str]
    ) -> Job:
        origin = folder / "origin"
        origin.mkdir()
        git(origin, "init", "--quiet", "--initial-branch=main")
        git(origin, "commit", "--quiet", "--allow-empty", "--message=the first")
        commit(origin, base, "a change of main")
        git(origin, "checkout", "--quiet", "-b", "branch", "HEAD~1")
        commit(origin, branch, "a change of the branch")
        git(origin, "checkout", "--quiet", "-b", "merge", "main")
        git(origin, "merge", "--quiet", "--strategy-option=theirs", "--message=merge", "branch")
        git(folder, "clone", "--quiet", "--depth=1", "--branch=merge", f"file://{origin}", "work")
        (folder / "temp").mkdir()
        # The event names an older base, which the merge has left behind.
        first = git(origin, "rev-parse", "main~1").strip()
        event = {"pull_request": {"number": 17, "base": {"sha": first}}}
        (folder / "event.json").write_text(json.dumps(event))
        return cls(folder, api)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run(self, **inputs: str) -> None:
        """Runs the steps of the action until one fails."""
        (self.folder / "summary.md").write_text("")
        self.log, self.failed = "", None
        event = json.loads(self.text("event.json"))
        values = {
            "github.token": "the token",
            "github.event.pull_request.base.sha": event["pull_request"]["base"]["sha"],
        }
        given = {"python": str(TORCH), **{k.replace("_", "-"): v for k, v in inputs.items()}}
        for name, default in defaults().items():
            values[f"inputs.{name}"] = given.pop(name, evaluated(default, values))
        assert not given, f"the action has no input {given}"
        environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_API_URL": self.api.url,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_WORKSPACE": str(self.folder / "work"),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for step in steps(ACTION / "action.yml"):
            own = {name: evaluated(value, values) for name, value in step.env.items()}
            outputs = self.folder / "outputs"
            outputs.write_text("")
            if step.run:
                ended = step.start(
                    self.folder / "work", {**environ, **own, "GITHUB_OUTPUT": str(outputs)}
                )
                self.log += ended.stdout
                if ended.returncode:
                    self.failed = step.name
                    return
            else:
                self.given[step.name] = {k: evaluated(v, values) for k, v in step.given.items()}
                outputs.write_text(f"artifact-url={REPORTS}\n")
            for line in outputs.read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step.id}.outputs.{name}"] = value

    def rows(self) -> dict[str, list[str]]:
        """The rows of the summary's first table, by the name of the script."""
        table = self.text("summary.md").partition("| fits |\n")[2].partition("\n\n")[0]
        cells = [[cell.strip() for cell in row.split(" | ")] for row in table.splitlines()[1:]]
        return {row[0].strip("| `"): [cell.strip(" |") for cell in row[1:]] for row in cells}


def commit(folder: pathlib.Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", f"--message={message}")


def defaults() -> dict[str, str]:
    """The inputs of the action with their defaults."""
    text = (ACTION / "action.yml").read_text().partition("\ninputs:\n")[2].partition("\noutputs:")
    found = re.findall(r"^  ([\w-]+):\n((?:    .*\n)+)", f"{text[0]}\n", re.MULTILINE)
    values = {name: re.search(r"^    default: (.+)$", body, re.MULTILINE) for name, body in found}
    return {name: value[1].strip('"') if value else "" for name, value in values.items()}


def test_an_input_that_grows_is_told_and_the_comment_stays_one(
    tmp_path: pathlib.Path, api: Api
) -> None:
    base = {"train.py": TRAIN.format(mib=64), "fails.py": "print('runs')\n", "repaired.py": FAILS}
    branch = {
        "train.py": TRAIN.format(mib=96),
        "fails.py": FAILS,
        "repaired.py": TRAIN.format(mib=8),
        "added.py": TRAIN.format(mib=16),
    }
    job = Job.of(tmp_path, api, base, branch)
    copied = api.write("<!-- vramscope: gpu-memory -->\nof a person", kind="User")
    for _ in range(120):
        api.write("another comment")
    (tmp_path / "told").mkdir()
    job.run(
        script="train: train.py\n# a comment\nfails.py\nrepaired: repaired.py\nadded: added.py\n",
        install=f'pwd > "{tmp_path}/told/$(git rev-parse HEAD)"',
        vramscope=str(WHEELS[0]),
        fail_on="peak>+10%\npeak>1GiB",
    )
    assert job.failed == "Fail", job.log
    rows = job.rows()
    # Two inputs and the parameter.
    assert rows["train"][:3] == ["132.0 MiB", "196.0 MiB", "**+64.00 MiB, +48.5 %**"]
    assert rows["train"][3].startswith("yes, ")
    assert rows["added"][:3] == ["new", "36.00 MiB", ""]
    assert rows["repaired"][:3] == ["fails", "20.00 MiB", ""]
    assert rows["fails.py"] == ["fails", "fails", "", ""]
    summary = job.text("summary.md")
    assert summary.startswith("### GPU memory: 2 of 4 scripts fail\n")
    assert "- :x: `train`: `peak>+10%` holds: allocated\\_bytes peak: 132.0 MiB to 196.0" in summary
    told = "ValueError: no \\<b\\>data\\</b\\> for @\u200beveryone"
    assert f"- :x: `fails.py`: fails: {told}" in summary
    assert f"- `repaired` fails on the base: {told}" in summary
    assert "- `added`: the base has no peak for `peak>+10%`" in summary
    assert "| +64.00 MiB | 128.0 MiB | 192.0 MiB |" in summary
    lines = re.findall(r"^    line \[(.+)\]$", summary.partition("```mermaid")[2], re.MULTILINE)
    assert [max(map(float, line.split(", "))) for line in lines[:2]] == pytest.approx(
        [132, 196], abs=0.1
    )
    # Both were installed, each in its own checkout.
    installed = {path.name: path.read_text().strip() for path in (tmp_path / "told").iterdir()}
    merge, base_commit = (
        git(tmp_path / "origin", "rev-parse", name).strip() for name in ("merge", "main")
    )
    assert installed.keys() == {merge, base_commit}
    assert installed[merge] == str(tmp_path / "work") and base_commit[:10] in summary
    kept = job.given["Keep the reports"]
    assert kept["name"] == "gpu-memory"
    report = pathlib.Path(kept["path"], "train.html").read_text()
    assert "base/exit/" in report and "branch/exit/" in report

    # The comment is the last one, and each of another run.
    text = str(api.comments[-1]["body"])
    assert text.startswith("<!-- vramscope: gpu-memory -->\n\n### GPU memory: 2 of 4")
    assert text.endswith(f"[Reports]({REPORTS}) with the viewer and the recordings.\n")
    assert [method for method, _ in api.asked] == ["GET", "GET", "POST"]
    assert {token for _, token in api.asked} == {"Bearer the token"}

    # The context of CUDA takes 500 MiB. The rest has room for the base alone.
    api.asked.clear()
    job.run(script="train: train.py", vramscope="", memory="680MiB")
    assert job.failed == "Fail", job.log
    assert job.rows()["train"][:3] == ["132.0 MiB", "runs out", ""]
    assert job.rows()["train"][3].startswith(":x: no, ")
    assert "`oom` holds" in job.text("summary.md")
    assert [method for method, _ in api.asked] == ["GET", "GET", "PATCH"]
    assert "runs out" in str(api.comments[-1]["body"]) and len(api.comments) == 122
    assert copied["body"] == "<!-- vramscope: gpu-memory -->\nof a person"


def test_the_token_of_a_fork_gives_the_summary_alone(tmp_path: pathlib.Path, api: Api) -> None:
    job = Job.of(
        tmp_path, api, {"train.py": TRAIN.format(mib=8)}, {"train.py": TRAIN.format(mib=8)}
    )
    api.is_read_only = True
    job.run(script="train.py", vramscope="", title="Peaks", fail_on="peak>+1%\noom")
    assert job.failed is None, job.log
    assert job.text("summary.md").startswith("### Peaks: no peak changed\n")
    assert "::notice::The token may not comment" in job.log and not api.comments
    assert "<details>" not in job.text("summary.md")


def test_wrong_inputs_end_the_action_with_their_reason(tmp_path: pathlib.Path, api: Api) -> None:
    job = Job.of(tmp_path, api, {"a.py": FAILS}, {"a.py": FAILS})
    for inputs, reason in (
        ({"script": "# nothing"}, "The input script needs at least one line"),
        ({"script": "a: a.py\nA: a.py"}, "each line its own name"),
        ({"script": "a.py", "base": "nothing"}, "nothing"),
    ):
        job.run(vramscope="", **inputs)
        assert job.failed is not None and reason in job.log
    assert not api.asked


def test_a_token_goes_only_to_steps_that_run_no_code_of_the_branch() -> None:
    with_token = [step.name for step in steps(ACTION / "action.yml") if "TOKEN" in str(step.env)]
    assert with_token == ["Check out the base", "Summarize and comment"]


def test_the_workflow_of_the_documents_gives_inputs_that_there_are() -> None:
    (used,) = steps(ACTION.parents[2] / "docs/ci/dry-run.yml")[1:]
    assert used.name == "uses: ./.github/actions/memory"
    assert used.given.keys() <= defaults().keys() and "script" in used.given


@pytest.fixture()
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The modules ``runs`` and ``words`` of the action."""
    monkeypatch.syspath_prepend(str(ACTION))
    return importlib.import_module("runs"), importlib.import_module("words")


def test_a_script_fails_by_another_end_than_memory(modules: tuple[Any, Any]) -> None:
    runs, _ = modules

    def failure(status: int, outcome: str, text: str = "") -> object:
        return runs.Run(status, {"dry": {"outcome": outcome, "text": text}}).failure

    assert failure(0, "fits") is None and failure(1, "runs_out") is None
    assert failure(0, "ended", "dry run of L4: 2 steps so far, ended by the time limit") is None
    assert failure(1, "ended", "dry run of L4: 2 steps so far, then KeyError") == (
        "2 steps so far, then KeyError"
    )
    assert failure(3, "fits") == "ended with status 3"
    lines = ["usage: train.py", "train.py: error: no such option", "vramscope dry-run: the program"]
    assert runs.why_nothing([*lines[:2], f"{lines[2]} ended with status 2"]) == lines[1]
    assert runs.why_nothing([lines[0], "vramscope dry-run: cannot find a.py"]) == "cannot find a.py"


def test_names_of_a_pull_request_are_only_text(modules: tuple[Any, Any]) -> None:
    _, words = modules
    assert words.escape("<b> @me a_b\nwww.x") == "\\<b\\> @\u200bme a\\_b www\u200b.x"
    assert words.code("a|`b`") == "`` a\\|`b` ``"
    assert words.code_html("<i>&") == "<code>&lt;i&gt;&amp;</code>"


def test_a_comment_has_room_for_what_github_takes(modules: tuple[Any, Any]) -> None:
    _, words = modules
    parts = ["<!-- mark -->", "table", "a" * 500, "b" * 500]
    assert words.comment(parts, 2000).endswith("b\n")
    short = words.comment(parts, 700)
    assert len(short) <= 701 and short.endswith("a\n\nThe summary of the job has more details.\n")


def test_a_side_that_ends_early_goes_to_zero_in_the_chart(modules: tuple[Any, Any]) -> None:
    _, words = modules
    mib = 1 << 20
    chart = words.chart([[[mib, 2 * mib], [2 * mib, 2 * mib]], [[3 * mib]]])
    assert 'x-axis "step" 0 --> 2' in chart and 'y-axis "MiB" 0 --> 3.15' in chart
    assert "line [1, 2, 2, 2]\n    line [3, 3, 0, 0]\n" in chart
    assert words.chart([[], []]) == ""
