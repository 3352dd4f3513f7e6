"""The values of a dry run, with PyTorch's own kernels over a device without a GPU.

``VRAMSCOPE_TORCH`` names a Python with PyTorch, as for ``test_recorder.py``.
"""

import json

import pytest
from dry import PROGRAMS, PYTHON, start_dry

pytestmark = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")


def run(case: str, *args: str, values: str = "small") -> tuple:
    done, facts = start_dry(PYTHON, PROGRAMS / "dry_values.py", case, *args, values=values)
    if facts.get("values") == "off" != values:
        pytest.skip("this PyTorch computes no values")
    if "No module named 'triton'" in done.stderr:
        pytest.skip("this PyTorch has no Triton")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1]), facts


@pytest.mark.parametrize("values", ["small", "full"])
def test_losses_of_training_are_those_of_the_cpu(values: str) -> None:
    told, facts = run("train", values=values)
    assert told["cuda"] == pytest.approx(told["cpu"], rel=1e-4)
    assert facts["failed"] == [] and facts["read"] == [] and facts["exact"]
    assert facts["computed"] > 500


def test_recurrent_networks_of_cudnn_are_computed() -> None:
    told, facts = run("recurrent")
    assert max(told) < 1e-5
    assert facts["exact"]


def test_sizes_are_those_that_the_values_give() -> None:
    told, facts = run("sizes")
    assert told == {
        "nonzero": [0, 2, 4, 5],
        "masked_select": [3, 3, 2, 2],
        "index": [3, 3, 2, 2],
        "unique": [[0, 1, 2, 3], [3, 1, 3, 0, 2, 2], [1, 1, 2, 2]],
        "consecutive": [3, 1, 3, 0, 2],
        "rows": [[1, 2], [3, 4]],
        "bincount": [1, 1, 2, 2],
        "repeat": [3, 3, 3, 1, 3, 3, 3, 2, 2, 2, 2],
        "equal": [True, False],
        "where": [[0, 2, 4, 5]],
        "argwhere": 4,
        "out": [[0], [2], [4], [5]],
        "put": [7, 1, 7, 0, 7, 7],
    }
    assert facts["read"] == [] and facts["exact"] and facts["failed"] == []


def test_sparse_tensors_have_the_entries_that_their_indices_give() -> None:
    told, facts = run("sparse")
    assert told == {
        "indices": [[0, 1, 3], [0, 2, 1]],
        "values": [2.0, 7.0, 1.0],
        "product": 3,
        "softmax": 3,
        "sum": 4,
        "dense": 4,
        "rows": [3, 4, 3],
    }
    assert facts["failed"] == [] and "size" not in {read["decides"] for read in facts["read"]}


def test_entries_that_are_not_known_are_as_many_as_there_can_be() -> None:
    told, facts = run("sparse_unknown")
    assert told == 3
    found = [(read["operator"], read["decides"], read["dtype"]) for read in facts["read"]]
    assert found == [("_coalesce", "size", "int64")]
    assert not facts["exact"]


def test_sparse_optimizers_have_their_temporaries() -> None:
    rows, facts = run("sparse_adam")
    # The gradient without duplicates, and what is gathered and computed for its rows.
    assert 5 < rows < 8
    assert facts["failed"] == [] and facts["exact"]


def test_numbers_do_not_raise_types() -> None:
    assert run("numbers")[0] is True


def test_reads_of_values_that_were_made_up_are_told_with_their_lines() -> None:
    _, facts = run("made_up")
    lines = (PROGRAMS / "dry_values.py").read_text().splitlines()
    at = {
        text: f"dry_values.py:{number}"
        for number, line in enumerate(lines, 1)
        for text in ("line of a size", "line of a branch", "line of an empty one")
        if line.endswith(text)
    }
    found = {(read["line"], read["operator"], read["decides"]) for read in facts["read"]}
    assert found == {
        (at["line of a size"], "nonzero", "size"),
        (at["line of a branch"], "_local_scalar_dense", "branch"),
        (at["line of an empty one"], "_local_scalar_dense", "branch"),
    }
    assert not facts["exact"]
    assert run("made_up", values="full")[1]["exact"] is False  # the empty integers


@pytest.mark.parametrize("stacks", ["python", "all"])
def test_stacks_have_no_frames_of_the_package(stacks: str) -> None:
    on, off = run("stacks", stacks)[0], run("stacks", stacks, values="off")[0]
    assert on["own"] == [] and on["calls"] == 0
    assert on["python"] == off["python"] != []


def test_tracebacks_have_no_frames_of_the_package() -> None:
    told, _ = run("tracebacks")
    assert told == [
        ["OutOfMemoryError", ["dry_values.py"]],
        ["OutOfMemoryError", ["dry_values.py"]],
        ["RuntimeError", ["dry_values.py"]],
    ]


def test_generators_of_the_program_are_untouched() -> None:
    assert run("generators")[0] == run("generators", values="off")[0]


def test_threads_do_not_disturb_each_other() -> None:
    assert run("threads")[0] == []


def test_modes_of_the_program_are_untouched() -> None:
    assert run("modes")[0] == ["cuda:0", 8.0, 8.0]


def test_views_and_conjugates_are_computed_in_place() -> None:
    assert run("views")[0] == {
        "transposed": [2.0, 6.0, 10.0],
        "part": [[14.0, 16.0], [18.0, 20.0]],
        "whole": 66.0 + 40.0,
        "conj": -(66.0 + 12.0),
        "product": product(),
        "swapped": [18.0, 9.0, 20.0, 11.0],
    }


def product() -> float:
    """By hand: the sum over pairs of rows of x·x + (x + 1)·(x + 1)."""
    rows = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    return float(
        sum(p * q + (p + 1) * (q + 1) for one in rows for two in rows for p, q in zip(one, two))
    )


def test_peaks_are_those_without_values() -> None:
    assert run("memory")[0] == run("memory", values="off")[0]


def test_what_a_captured_graph_writes_is_not_known() -> None:
    _, facts = run("graph")
    assert [read["operator"] for read in facts["read"]] == ["_local_scalar_dense"]


def test_what_a_kernel_of_triton_writes_is_not_known() -> None:
    known, facts = run("kernels_of_triton")
    if known is None:
        pytest.skip("no Triton beside this PyTorch")
    assert known == [2016, 64.0]
    assert [(read["operator"], read["dtype"]) for read in facts["read"]] == [
        ("_local_scalar_dense", "float32")
    ] * 2


def test_operators_agree_with_the_cpu() -> None:
    done, _ = start_dry(PYTHON, PROGRAMS / "dry_opinfo.py", "--seconds", "5", values="full")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["counts"]["agrees"] > 50
    assert "differs" not in told["counts"], told["found"]
