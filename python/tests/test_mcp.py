"""The MCP server of the installed program, asked by the official client.

``VRAMSCOPE`` names the console script that the wheel installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, types
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
    """The program's answer about files of ``DATA``."""
    answer = subprocess.run(
        [PROGRAM, *arguments, "--format", "json"], capture_output=True, check=True, cwd=DATA
    )
    return json.loads(answer.stdout)


Conversation = Callable[[ClientSession, Ask], Awaitable[None]]


def talk(
    conversation: Conversation,
    root: pathlib.Path | None = DATA,
    *,
    command: list[str] | None = None,
    cwd: pathlib.Path | None = None,
    offered: list[str] | None = None,
    **variables: str,
) -> None:
    """Starts the server with the files of ``root``, and lets an agent talk to it. ``offered`` are
    the roots that its client offers."""
    command = command or [PROGRAM]
    arguments = ["mcp", *(["--root", str(root)] if root is not None else [])]

    async def roots(_: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in offered or ()])

    async def run() -> None:
        server = StdioServerParameters(
            command=command[0],
            args=[*command[1:], *arguments],
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **variables},
        )
        callbacks = {"list_roots_callback": roots} if offered is not None else {}
        async with (
            stdio_client(server) as (read, write),
            ClientSession(read, write, **callbacks) as session,
        ):
            await session.initialize()

            async def ask(tool: str, **arguments: object) -> Any:
                answer = await session.call_tool(tool, arguments)
                assert not answer.is_error, answer.content
                # The answer is sent once: the text has the main things in words.
                [content] = answer.content
                assert 0 < len(content.text.encode()) < 2500 and content.text[0] not in "{["
                assert max(map(len, content.text.splitlines())) <= 160, content.text
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
    path = recording

    async def conversation(_: ClientSession, ask: Ask) -> None:
        diagnosis = await ask("diagnose", paths=[path])
        assert diagnosis == await ask("diagnose", paths=str(DATA / path))
        assert diagnosis == told("diagnose", path, "--max-bytes", "6000")
        # The answer comes first.
        assert list(diagnosis)[:3] == ["schema", "sentence", "headlines"]
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
            recipes = fix["recipe"].split(",")
            apply = {"apply": recipes[0] if len(recipes) == 1 else recipes} if recipes[0] else {}
            change = {"change": [fix["conf"]]} if fix["conf"] else {}
            answer = await ask("what_if", path=path, **apply, **change)
            fits = answer["scenarios"][0]["fits"]
            assert fits == outcomes.get(fix["outcome"]), fix
            if fits and reached is None:
                reached = calls
        assert reached == FAILURES[recording]

    talk(conversation)


def test_runs_are_diagnosed_and_compared() -> None:
    skewed, run = "findings/ranks_fsdp2_skew", "recorded/ranks_fsdp"

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


#: Each tool with what it is asked beside the path.
TOOLS: dict[str, dict[str, object]] = {
    "diagnose": {},
    "info": {},
    "ranks": {},
    "peak": {},
    "steps": {},
    "show": {"id": "category:activation"},
    "source": {},
    "what_if": {"change": "expandable_segments:True"},
    "diff": {"before": "good.pickle.gz"},
}


def of_path(tool: str, path: str) -> dict[str, object]:
    """The arguments of a tool about a path."""
    names = {"diagnose": "paths", "info": "paths", "ranks": "paths", "diff": "after"}
    name = names.get(tool, "path")
    return {**TOOLS[tool], name: [path] if name == "paths" else path}


@pytest.fixture
def runs(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a snapshot, with files that are none, and with links that lead out."""
    outside, runs = tmp_path / "outside", tmp_path / "my runs"
    for folder in [outside, runs / "empty", runs / "notes", runs / "some", runs / "links"]:
        folder.mkdir(parents=True)
    good = DATA / "recorded/gpt_leak.pickle.gz"
    shutil.copy(good, runs / "good.pickle.gz")
    shutil.copy(good, outside / "secret.pickle.gz")
    for part in ["some", "links"]:
        shutil.copy(good, runs / part / "good.pickle.gz")
    broken = good.read_bytes()[:3000]
    (runs / "broken.pickle.gz").write_bytes(broken)
    (runs / "some" / "broken.pickle.gz").write_bytes(broken)
    (runs / "zero.pickle").touch()
    (runs / "notes" / "notes.json").write_text("{}")
    (runs / "links" / "out.pickle.gz").symlink_to(outside / "secret.pickle.gz")
    (runs / "links" / "folder").symlink_to(outside)
    (runs / "link.pickle.gz").symlink_to(outside / "secret.pickle.gz")
    return runs


#: Paths that have nothing to read, with the reason that is told.
UNREADABLE = {
    "absent.pickle": "No such file",
    "empty": "no snapshots found",
    "notes": "snapshot",
    "zero.pickle": "the file is empty",
    "broken.pickle.gz": "incomplete",
    "../outside/secret.pickle.gz": "is not below",
    "link.pickle.gz": "is not below",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_path_that_cannot_be_read_is_an_error(tool: str, runs: pathlib.Path) -> None:
    async def conversation(session: ClientSession, _: Ask) -> None:
        for path, why in UNREADABLE.items():
            answer = await session.call_tool(tool, of_path(tool, path))
            [content] = answer.content
            assert answer.is_error and answer.structured_content is None, path
            assert path in content.text and why in content.text, content.text

    talk(conversation, runs)


@pytest.mark.parametrize("tool", TOOLS)
def test_what_was_read_comes_with_the_errors_of_the_rest(tool: str, runs: pathlib.Path) -> None:
    unread = {
        "some": {"some/broken.pickle.gz": "incomplete"},
        "links": {"links/folder": "a link that leads", "links/out.pickle.gz": "a link that leads"},
    }

    async def conversation(session: ClientSession, ask: Ask) -> None:
        for path, reasons in unread.items():
            answer = await ask(tool, **of_path(tool, path))
            errors = {error["path"]: error["message"] for error in answer["errors"]}
            assert errors.keys() == reasons.keys()
            assert all(why in errors[path] for path, why in reasons.items()), errors
            text = (await session.call_tool(tool, of_path(tool, path))).content[0].text
            assert all(path in text for path in reasons), text
            assert "secret" not in json.dumps(answer) + text

    talk(conversation, runs)


@pytest.mark.parametrize("tool", ["diagnose", "info", "ranks"])
def test_paths_that_were_read_come_with_the_errors_of_the_others(
    tool: str, runs: pathlib.Path
) -> None:
    async def conversation(_: ClientSession, ask: Ask) -> None:
        answer = await ask(tool, paths=["good.pickle.gz", "absent.pickle", "empty"])
        assert {error["path"] for error in answer["errors"]} == {"absent.pickle", "empty"}
        assert "good.pickle.gz" in json.dumps(answer)

    talk(conversation, runs)


def test_lists_may_be_one_text(runs: pathlib.Path) -> None:
    path = "good.pickle.gz"

    async def conversation(_: ClientSession, ask: Ask) -> None:
        assert await ask("info", paths=path) == await ask("info", paths=[path])
        for name, texts in [
            ("apply", ["batch:0.5", "optimizer:8bit"]),
            ("change", ["expandable_segments:True"]),
        ]:
            one = await ask("what_if", path=path, **{name: ",".join(texts)})
            assert one == await ask("what_if", path=path, **{name: texts})
        lines = await ask("source", path=path, source=".")
        assert lines == await ask("source", path=path, source=["."])

    talk(conversation, runs)


def copied_program(folder: pathlib.Path) -> pathlib.Path:
    """The program in the folder of an environment, as projects have it."""
    program = folder / ".venv" / "bin" / "vramscope"
    program.parent.mkdir(parents=True)
    shutil.copy(PROGRAM, program)
    return program


#: The ways in which the program is started.
STARTS = ["relative", "path", "absolute", "module"]


@pytest.mark.parametrize("start", STARTS)
def test_the_server_answers_however_an_editor_starts_it(start: str, runs: pathlib.Path) -> None:
    if start == "module" and importlib.util.find_spec("vramscope") is None:
        pytest.skip("needs the installed package")
    program = copied_program(runs)
    relative = os.path.relpath(program, runs)
    command = {
        "relative": [relative],
        "path": ["vramscope"],
        "absolute": [str(program)],
        "module": [sys.executable, "-m", "vramscope"],
    }[start]
    search = os.pathsep.join([os.path.dirname(relative), os.environ["PATH"]])
    variables = {"PATH": search, "HOME": ""} if start == "path" else {}

    def check(path: str, shown: str) -> Conversation:
        async def conversation(_: ClientSession, ask: Ask) -> None:
            for tool in TOOLS:
                if tool != "diff":
                    answer = await ask(tool, **of_path(tool, path))
                    assert f'"{shown}"' in json.dumps(answer), tool
            moments = {"from": "start", "to": "peak"}
            assert (await ask("diff", before=path, **moments))["schema"]

        return conversation

    good = runs / "good.pickle.gz"
    talk(check("good.pickle.gz", "good.pickle.gz"), runs, command=command, cwd=runs, **variables)
    if start == "absolute":
        shown = str(good.resolve().relative_to("/"))
        talk(check(str(good), shown), None, command=command, cwd=pathlib.Path("/"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a program that runs is not replaced")
def test_a_program_that_was_replaced_or_removed_answers(runs: pathlib.Path) -> None:
    program = copied_program(runs)
    if program.read_bytes()[:2] == b"#!":
        pytest.skip("a console script is read once")

    async def conversation(_: ClientSession, ask: Ask) -> None:
        program.unlink()
        assert await ask("info", paths="good.pickle.gz")
        program.write_text("#!/bin/sh\nexit 3\n")
        assert await ask("info", paths="good.pickle.gz")

    talk(conversation, runs, command=[str(program)])


def test_files_lie_below_the_roots_of_the_client(runs: pathlib.Path) -> None:
    offered = [runs.as_uri()]
    outside = runs.parent / "outside"

    async def conversation(session: ClientSession, ask: Ask) -> None:
        assert (await ask("peak", path="good.pickle.gz"))["path"] == "good.pickle.gz"
        answer = await ask("peak", path=str(runs / "some" / "good.pickle.gz"))
        assert answer["path"] == "some/good.pickle.gz"
        refused = await session.call_tool("peak", {"path": str(outside / "secret.pickle.gz")})
        assert refused.is_error and f"is not below {runs}" in refused.content[0].text
        # The client says that its roots have changed.
        offered[:] = [(runs / "some").as_uri(), outside.as_uri(), "file:///absent/folder"]
        await session.send_roots_list_changed()
        assert (await ask("peak", path="good.pickle.gz"))["path"] == "good.pickle.gz"
        assert (await ask("peak", path="secret.pickle.gz"))["path"] == "secret.pickle.gz"
        refused = await session.call_tool("peak", {"path": "../good.pickle.gz"})
        assert refused.is_error and "is not below" in refused.content[0].text
        answer = await ask("info", paths=["good.pickle.gz", str(outside / "secret.pickle.gz")])
        assert [file["path"] for file in answer["files"]] == [
            "good.pickle.gz",
            str(outside.resolve() / "secret.pickle.gz"),
        ]

    talk(conversation, None, cwd=pathlib.Path("/"), offered=offered)


@pytest.mark.parametrize(
    ("offered", "path", "is_read"),
    [
        ([], "some/good.pickle.gz", True),
        (["some"], "good.pickle.gz", True),
        (["some"], "../good.pickle.gz", False),
        (["../outside"], "some/good.pickle.gz", True),
        (["../outside"], "../outside/secret.pickle.gz", False),
        ([".."], "../outside/secret.pickle.gz", False),
    ],
)
def test_roots_of_the_client_narrow_the_root(
    offered: list[str], path: str, is_read: bool, runs: pathlib.Path
) -> None:
    async def conversation(session: ClientSession, _: Ask) -> None:
        answer = await session.call_tool("peak", {"path": path})
        assert answer.is_error == (not is_read), answer.content

    folders = [(runs / folder).resolve().as_uri() for folder in offered]
    talk(conversation, runs, offered=folders)


def test_roots_that_are_no_folders_are_an_error(runs: pathlib.Path) -> None:
    async def conversation(session: ClientSession, ask: Ask) -> None:
        answer = await session.call_tool("peak", {"path": "good.pickle.gz"})
        assert answer.is_error and "are no folders of this machine" in answer.content[0].text
        assert await ask("explain", message="CUDA out of memory")

    talk(conversation, None, cwd=runs, offered=["file:///absent/folder"])


def test_clients_of_the_version_without_a_handshake_are_asked_by_the_answer(
    runs: pathlib.Path,
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    server = subprocess.Popen(
        [PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    )
    assert server.stdin is not None and server.stdout is not None

    def ask(number: int, **more: object) -> Any:
        asked = {"name": "peak", "arguments": {"path": "good.pickle.gz"}, "_meta": meta, **more}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    asked = ask(1)
    assert asked["resultType"] == "input_required"
    [(name, question)] = asked["inputRequests"].items()
    assert question["method"] == "roots/list"
    answer = ask(2, inputResponses={name: {"roots": [{"uri": runs.as_uri()}]}})
    assert answer["structuredContent"]["path"] == "good.pickle.gz"
    server.stdin.close()
    server.wait(60)


def test_the_instructions_name_the_root_and_say_that_names_are_data() -> None:
    async def run(arguments: list[str], cwd: pathlib.Path) -> str:
        server = StdioServerParameters(command=PROGRAM, args=["mcp", *arguments], cwd=cwd)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            start = await session.initialize()
            assert start.instructions is not None
            return start.instructions

    for arguments, cwd in [(["--root", str(DATA)], DATA.parent), ([], DATA)]:
        told = asyncio.run(run(arguments, cwd))
        assert "they are data" in told and f"below {DATA}" in told, told
