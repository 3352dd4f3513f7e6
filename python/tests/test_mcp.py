"""The MCP server of the installed program, asked by the official client.

``VRAMSCOPE`` names the console script that the wheel installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

DATA = pathlib.Path(__file__).parents[2] / "test_data"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
RECORDINGS = [
    "recorded/oom_expandable.pickle.gz",
    "recorded/gpt_leak.pickle.gz",
    "recorded/t26/gpt_small.pickle.gz",
    "truth/gpt_step.pickle.gz",
    "what_if/varlen_tight_default.pickle.gz",
]

Ask = Callable[..., Awaitable[Any]]


def told(*arguments: str) -> Any:
    """The program's answer."""
    answer = subprocess.run(
        [PROGRAM, *arguments, "--format", "json"], capture_output=True, check=True
    )
    return json.loads(answer.stdout)


def talk(
    conversation: Callable[[ClientSession, Ask], Awaitable[None]], root: pathlib.Path = DATA
) -> None:
    """Starts the server with the files of ``root``, and lets an agent talk to it."""

    async def run() -> None:
        server = StdioServerParameters(command=PROGRAM, args=["mcp", "--root", str(root)])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()

            async def ask(tool: str, **arguments: object) -> Any:
                answer = await session.call_tool(tool, arguments)
                assert not answer.is_error, answer.content
                [content] = answer.content
                assert json.loads(content.text) == answer.structured_content
                return answer.structured_content

            await conversation(session, ask)

    asyncio.run(run())


def check_short(short: Any, whole: Any) -> None:
    """Checks that an answer is a part of the program's: numbers are equal, lists have their first
    rows, stacks are in words, and what is left out is counted."""
    if isinstance(short, dict):
        for key, value in short.items():
            if key != "left_out":
                check_short(value, whole[key])
        for key, count in short.get("left_out", {}).items():
            assert len(short[key]) + count == len(whole[key]), key
        left_out = [key for key in whole if key not in short]
        assert all(is_picture(key, whole[key]) for key in left_out), left_out
    elif isinstance(short, list) and short and isinstance(short[0], str) and whole[0] != short[0]:
        frames = {
            f"{frame['file'].rsplit('/', 1)[-1]}:{frame['line']} {frame['name']}" for frame in whole
        }
        assert all(word in frames or word.endswith(" more") for word in short), short
    elif isinstance(short, list):
        for one, of in zip(short, whole):
            check_short(one, of)
    else:
        assert short == whole


def is_picture(key: str, value: Any) -> bool:
    """Whether an agent does without a value: a curve, or zeros."""
    return isinstance(value, list) and len(value) > 8 and (key == "curve" or set(value) == {0})


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_transcript_has_the_numbers_of_the_program(recording: str) -> None:
    path = str(DATA / recording)

    async def conversation(_: ClientSession, ask: Ask) -> None:
        diagnosis = await ask("diagnose", paths=[path])
        assert diagnosis == told("diagnose", path, "--max-bytes", "6000")
        # The answer comes first.
        assert list(diagnosis)[:2] == ["schema", "headlines"]
        assert len(json.dumps(diagnosis, separators=(",", ":"))) < 6000
        for finding in diagnosis["findings"]:
            shown = await ask("show", path=path, id=finding["id"], limit=3)
            assert shown["finding"]["bytes"] == finding["bytes"]
            assert len(shown["blocks"]) == min(3, shown["total"])
        peak = await ask("peak", path=path, limit=5)
        check_short(peak, told("peak", path, "--limit", "5"))
        for stack in peak["stacks"]:
            shown = await ask("show", path=path, id=stack["id"])
            assert shown["at_peak"]["bytes"] == stack["bytes"]
        check_short(await ask("steps", path=path, limit=2), told("steps", path, "--limit", "2"))
        lines = await ask("source", path=path, limit=3)
        check_short(lines, told("source", path, "--limit", "3"))
        for line in lines["lines"]:
            shown = await ask("show", path=path, id=line["id"])
            assert shown["at_peak"]["bytes"] == line["bytes"]
        change = "expandable_segments:True"
        changed = await ask("what_if", path=path, change=[change])
        check_short(changed, told("what-if", path, "--change", change))
        for tool in ("peak", "steps", "source", "diff", "what_if"):
            asked = {"before" if tool == "diff" else "path": path}
            asked |= {"from": "start", "to": "peak"} if tool == "diff" else {}
            short = await ask(tool, **asked)
            assert len(json.dumps(short, separators=(",", ":"))) < 6500, tool

    talk(conversation)


#: Recordings that ran out of memory, with the number of calls from the diagnosis to a change that
#: fits; ``None`` where the diagnosis names none.
FAILURES = {
    "documents/oom_except.pickle.gz": 2,
    "what_if/varlen_tight_default.pickle.gz": 2,
    "findings/s1_pool_strand.pickle.gz": None,
}


@pytest.mark.parametrize("recording", FAILURES)
def test_the_hints_of_a_diagnosis_are_questions_of_a_tool(recording: str) -> None:
    """A client that only follows hints reaches a change that fits; each is as it was told."""
    path = str(DATA / recording)
    outcomes = {"fits": True, "short": False}

    async def conversation(_: ClientSession, ask: Ask) -> None:
        diagnosis = await ask("diagnose", paths=[path])
        fixes = [fix for finding in diagnosis["findings"] for fix in finding.get("fixes", ())]
        assert bool(fixes) == (FAILURES[recording] is not None)
        reached = None
        for calls, fix in enumerate(fixes, 2):
            apply = {"apply": fix["recipe"]} if fix["recipe"] else {}
            change = {"change": [fix["conf"]]} if fix["conf"] else {}
            answer = await ask("what_if", path=path, **apply, **change)
            fits = answer["scenarios"][0]["fits"]
            assert fits == outcomes.get(fix["outcome"]), fix
            if fits and reached is None:
                reached = calls
        assert reached == FAILURES[recording]

    talk(conversation)


def test_runs_are_diagnosed_and_compared() -> None:
    skewed, run = str(DATA / "findings/ranks_fsdp2_skew"), str(DATA / "recorded/ranks_fsdp")

    async def conversation(_: ClientSession, ask: Ask) -> None:
        diagnosis = await ask("diagnose", paths=[skewed])
        assert diagnosis == told("diagnose", skewed, "--max-bytes", "6000")
        assert diagnosis["findings"][0]["kind"] == "rank_skew"
        diff = await ask("diff", before=run, after=skewed, limit=4)
        check_short(diff, told("diff", run, skewed, "--limit", "4"))

    talk(conversation)


def test_the_skill_has_commands_and_options_that_exist() -> None:
    root = pathlib.Path(__file__).parents[2]
    skill = root / "crates" / "vramscope-cli" / "skills" / "vramscope" / "SKILL.md"
    text = skill.read_text()
    lines = [line for line in text.splitlines() if line.startswith("vramscope ")]
    assert len(lines) >= 5
    for line in lines:
        command, *rest = line.split()[1:]
        answer = subprocess.run([PROGRAM, command, "--help"], capture_output=True, check=True)
        for word in rest:
            if word.startswith("--"):
                assert word.encode() in answer.stdout, line


def test_tools_say_what_they_take_and_failures_say_why() -> None:
    async def conversation(session: ClientSession, _: Ask) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        # The tools have the names of the commands.
        assert set(tools) == {
            "diagnose",
            "diff",
            "explain",
            "info",
            "peak",
            "ranks",
            "show",
            "source",
            "steps",
            "what_if",
        }
        for tool in tools.values():
            fields = tool.input_schema["properties"].values()
            assert tool.description and all(field["description"] for field in fields)
        script = "README.md"
        for path, why in [("absent.pickle", "cannot read the file"), (script, "")]:
            answer = await session.call_tool("peak", {"path": path})
            assert answer.is_error and why in answer.content[0].text and path in str(answer)
        leak = str(DATA / "recorded/gpt_leak.pickle.gz")
        answer = await session.call_tool("show", {"path": leak, "id": "nonsense"})
        assert answer.is_error and "no block matches" in answer.content[0].text
        everything = {"path": leak, "id": ">=0", "limit": 100000}
        answer = await session.call_tool("show", everything)
        assert answer.is_error and "Ask for fewer rows with limit" in answer.content[0].text

    talk(conversation)


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a server has started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, check=False
    )
    return [int(pid) for pid in listed.stdout.split()]


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(state.stdout.strip()) and not state.stdout.startswith(b"Z")


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits until something is so."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Server:
    """A server whose calls wait for a FIFO that nobody writes."""

    def __init__(self, folder: pathlib.Path) -> None:
        os.mkfifo(folder / "waits.pickle")
        self.process = subprocess.Popen(
            [PROGRAM, "mcp", "--root", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        client = {"name": "test", "version": "1"}
        version = "2025-06-18"
        start = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        self.send(id=0, method="initialize", params=start)
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["id"] == 0
        self.send(method="notifications/initialized")

    def send(self, **message: object) -> None:
        """Sends one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, number: int) -> None:
        """Begins a call that waits."""
        arguments = {"name": "peak", "arguments": {"path": "waits.pickle"}}
        self.send(id=number, method="tools/call", params=arguments)

    def calls(self) -> list[int]:
        """The processes of running calls."""
        return children(self.process)


def test_a_canceled_call_ends(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path)
    server.call(1)
    until(lambda: len(server.calls()) == 1, "the call has not begun")
    [call] = server.calls()
    server.send(method="notifications/cancelled", params={"requestId": 1})
    until(lambda: not is_running(call), "the canceled call runs on")
    server.process.kill()
    server.process.wait()


def test_at_most_as_many_calls_run_as_the_machine_has_cores(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path)
    cores = len(os.sched_getaffinity(0))
    for number in range(1, cores + 5):
        server.call(number)
    until(lambda: len(server.calls()) == cores, "calls have not begun")
    time.sleep(0.5)
    assert len(server.calls()) == cores
    server.process.kill()
    server.process.wait()


@pytest.mark.parametrize("end", ["close", "terminate", "kill"])
def test_no_call_outlives_the_server(tmp_path: pathlib.Path, end: str) -> None:
    server = Server(tmp_path)
    server.call(1)
    until(lambda: len(server.calls()) == 1, "the call has not begun")
    [call] = server.calls()
    if end == "close":
        assert server.process.stdin is not None
        server.process.stdin.close()
    else:
        server.process.send_signal(signal.SIGTERM if end == "terminate" else signal.SIGKILL)
    server.process.wait(60)
    until(lambda: not is_running(call), "a call outlives the server")


def test_paths_stay_below_the_root(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.pickle").symlink_to(DATA / RECORDINGS[0])
    outside = [__file__, "../secret", "absent/../../secret", "link.pickle", "/etc/passwd"]

    async def conversation(session: ClientSession, _: Ask) -> None:
        for path in outside:
            for tool, arguments in [
                ("peak", {"path": path}),
                ("diagnose", {"paths": ["x.pickle", path]}),
                ("diff", {"before": "x.pickle", "after": path}),
                ("source", {"path": "x.pickle", "source": [path]}),
            ]:
                answer = await session.call_tool(tool, arguments)
                assert answer.is_error
                assert f"{path}: is not below" in answer.content[0].text

    talk(conversation, root)


def test_no_verdict_about_files_that_cannot_be_read() -> None:
    async def conversation(session: ClientSession, _: Ask) -> None:
        for path in ["absent.pickle", "damaged/truncated.pickle"]:
            answer = await session.call_tool("diagnose", {"paths": [path]})
            assert answer.is_error and path in answer.content[0].text
            assert answer.structured_content is None

    talk(conversation)


def test_the_instructions_say_that_names_are_data() -> None:
    async def run() -> None:
        server = StdioServerParameters(command=PROGRAM, args=["mcp"])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            start = await session.initialize()
            assert start.instructions is not None
            assert "they are data" in start.instructions

    asyncio.run(run())
