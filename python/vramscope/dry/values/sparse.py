"""Sparse tensors: how many entries a kernel leaves, which PyTorch reads before it allocates them.

Their kernels count in native code. The count is computed on the CPU if the indices are known. If
not, it is the greatest that there can be, and the read is reported.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable

import torch

from .compute import Cpu
from .grades import ABSENT, COMPUTED, LARGEST_MADE_UP, MADE_UP, ZERO, Grades, first_address
from .made_up import Maker
from .report import Report

#: Reads of a kernel for a count, at most. Those that are left over are dropped.
READS = 4
#: Products of entries that are made to count those of a matrix product, at most.
MOST_PRODUCTS = 1 << 22

_SOFTMAX = ("_sparse_log_softmax", "_sparse_softmax")
_SOFTMAX_BACKWARD = ("_sparse_log_softmax_backward_data", "_sparse_softmax_backward_data")
_SUMS = ("add", "add_")
#: Products of matrices, and where the first one is among the arguments.
_PRODUCTS = {"addmm": 1, "mm": 0}
_is_capturing = torch._C._cuda_isCurrentStreamCapturing

Run = Callable[[Any, Any], Any]


class Sparse:
    """Runs the kernels of sparse tensors that count."""

    def __init__(
        self,
        grades: Grades,
        cpu: Cpu,
        maker: Maker,
        report: Report,
        core: Any,
        allow: Callable[[Any], bool],
    ) -> None:
        self._grades = grades
        self._cpu = cpu
        self._maker = maker
        self._report = report
        self._core = core
        self._allow = allow

    def around(self, name: str, original: Callable[..., Any], run: Run) -> Run:
        """The function for an operator: ``run`` if its kernel counts nothing."""
        if name == "_coalesce":
            return lambda args, kwargs: self._coalesce(original, args[0])
        if name in _SOFTMAX:
            return lambda args, kwargs: self._softmax(name, original, args, args[0], args[1])
        if name in _SOFTMAX_BACKWARD:
            return lambda args, kwargs: self._softmax(name, original, args, args[1], args[2])
        if name == "_sparse_sparse_matmul":
            return lambda args, kwargs: self._product(name, original, args)
        if name in _SUMS or name in _PRODUCTS:
            at = _PRODUCTS.get(name, 0)

            def compressed(args: Any, kwargs: Any) -> Any:
                pair = args[at : at + 2]
                if all(_is_compressed(one) for one in pair):
                    return self._compressed(name, original, pair, args, kwargs)
                return run(args, kwargs)

            return compressed
        if name == "index_select":
            return lambda args, kwargs: self._uncounted(name, run, args, kwargs)
        return run

    def _uncounted(self, name: str, run: Run, args: Any, kwargs: Any) -> Any:
        """Its kernels count in between others: no count is known, and the result is too small."""
        if args[0]._nnz():
            self._report.read(name, "size", torch.int64)
        return run(args, kwargs)

    def _coalesce(self, original: Callable[..., Any], tensor: Any) -> Any:
        indices, values = tensor._indices(), tensor._values()
        entries, sizes = indices.shape[1], tensor.shape[: tensor.sparse_dim()]
        if entries < 2:
            # Its kernel copies.
            return original(tensor)
        places = self._places("_coalesce", indices, sizes)
        if places is None:
            out = self._counting("_coalesce", min(entries, math.prod(sizes)), original, (tensor,))
            self._forget(out._indices())
            self._forget(out._values())
            return out
        unique, inverse = places.unique(return_inverse=True)
        out = self._counting(None, unique.numel(), original, (tensor,))
        self._know(out._indices(), lambda target: _unflatten(unique, sizes, target))
        if self._is_known(values):
            source = self._cpu.view(values)
            self._know(out._values(), lambda to: to.zero_().index_add_(0, inverse, source))
        else:
            self._forget(out._values())
        return out

    def _softmax(
        self, name: str, original: Callable[..., Any], args: Any, tensor: Any, dim: int
    ) -> Any:
        """Its buffers have an element for each row, of those that have entries."""
        dim, kept = dim % tensor.dim(), tensor.sparse_dim()
        if dim >= kept or not tensor._nnz():
            return original(*args)
        # The kernel would do so itself, and read how many entries that leaves.
        args = [one.coalesce() if _is_sparse(one) else one for one in args]
        tensor = tensor.coalesce()
        sizes = [1 if at == dim else size for at, size in enumerate(tensor.shape[:kept])]
        indices = tensor._indices()
        places = self._places(name, indices, sizes, dim)
        if places is None:
            bound = min(indices.shape[1], math.prod(sizes))
            return self._counting(name, bound, original, args, is_deep=False)
        return self._counting(None, places.unique().numel(), original, args, is_deep=False)

    def _product(self, name: str, original: Callable[..., Any], args: Any) -> Any:
        args = [matrix.coalesce() for matrix in args]
        count, is_known = self._in_product(name, *args)
        return self._counting(None if is_known else name, count, original, args, is_deep=False)

    def _compressed(
        self, name: str, original: Callable[..., Any], pair: Any, args: Any, kwargs: Any
    ) -> Any:
        """A sum or a product of matrices of compressed rows."""
        count, is_known = (self._in_sum if name in _SUMS else self._in_product)(name, *pair)
        call = functools.partial(original, **kwargs)
        return self._counting(None if is_known else name, count, call, args, is_deep=False)

    def _in_sum(self, name: str, one: Any, other: Any) -> tuple[int, bool]:
        """How many entries a sum of matrices has at most, and whether it is that many."""
        pairs = self._entries(name, one), self._entries(name, other)
        if pairs[0] is None or pairs[1] is None:
            return min(one._nnz() + other._nnz(), one.numel()), False
        places = [rows * one.shape[1] + columns for rows, columns in pairs]
        return torch.cat(places).unique().numel(), True

    def _in_product(self, name: str, one: Any, other: Any) -> tuple[int, bool]:
        """How many entries a product of matrices has at most, and whether it is that many."""
        rows, width = one.shape[0], other.shape[1]
        left, right = self._entries(name, one), self._entries(name, other)
        if left is None or right is None:
            return min(one._nnz() * other._nnz(), rows * width), False
        of_row = torch.bincount(right[0], minlength=other.shape[0])
        repeats = of_row[left[1]]
        products = int(repeats.sum())
        if products > MOST_PRODUCTS:
            return min(products, rows * width), False
        # The right matrix has its entries by row: those of a row follow each other.
        first = (of_row.cumsum(0) - of_row)[left[1]]
        before = repeats.cumsum(0) - repeats
        at = torch.arange(products, device="cpu") + (first - before).repeat_interleave(repeats)
        places = left[0].repeat_interleave(repeats) * width + right[1][at]
        return places.unique().numel(), True

    def _entries(self, name: str, matrix: Any) -> Any:
        """Rows and columns of the entries; ``None`` if they are not known."""
        is_coo = matrix.layout is torch.sparse_coo
        held = [matrix._indices()] if is_coo else [matrix.crow_indices(), matrix.col_indices()]
        if not all(map(self._is_known, held)):
            return None
        try:
            views = [self._cpu.view(one).long() for one in held]
            if is_coo:
                return views[0][0], views[0][1]
            rows = torch.arange(matrix.shape[0], device="cpu")
            return rows.repeat_interleave(views[0].diff()), views[1]
        except Exception as error:
            self._report.fail(name, error)
            return None

    def _counting(
        self,
        unknown: str | None,
        count: int,
        original: Callable[..., Any],
        args: Any,
        is_deep: bool = True,
    ) -> Any:
        """Runs a kernel that reads a count. ``unknown`` names it if the count is a bound."""
        tally = self._report.tally
        if unknown is not None:
            self._report.read(unknown, "size", torch.int64)
        for _ in range(READS):
            self._core.dry_next(count)
        # Inner operators would compute over what kernels in between have not changed.
        before, tally.quiet = tally.quiet, max(tally.quiet, 2 if is_deep else 1)
        try:
            return original(*args)
        finally:
            tally.quiet = before
            self._core.dry_next_clear()

    def _places(self, name: str, indices: Any, sizes: Any, left_out: int = -1) -> Any:
        """Each entry's place among all, as one number; ``None`` if the indices are not known."""
        if not self._is_known(indices):
            return None
        try:
            view = self._cpu.view(indices)
            places = torch.zeros(indices.shape[1], dtype=torch.int64, device="cpu")
            for at, size in enumerate(sizes):
                if at != left_out:
                    places = places * size + view[at]
            return places
        except Exception as error:
            self._report.fail(name, error)
            return None

    def _is_known(self, tensor: Any) -> bool:
        if not tensor.numel():
            return True
        held = self._grades.get(first_address(tensor), (ABSENT, 0))[0]
        return held in (COMPUTED, ZERO) and self._allow(tensor) and not _is_capturing()

    def _know(self, tensor: Any, write: Callable[[Any], Any]) -> None:
        try:
            write(self._cpu.view(tensor))
        except Exception as error:
            self._report.fail("_coalesce", error)
            self._forget(tensor)
        else:
            self._report.tally.numbers["computed"] += 1
            self._grades[first_address(tensor)] = (COMPUTED, tensor.nbytes)

    def _forget(self, tensor: Any) -> None:
        is_small = tensor.nbytes <= LARGEST_MADE_UP
        self._grades[first_address(tensor)] = (MADE_UP if is_small else ABSENT, tensor.nbytes)
        if is_small:
            self._report.tally.numbers["made_up"] += 1
            self._maker.fill("_coalesce", tensor)


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


def _is_compressed(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_csr and value.dim() == 2


def _unflatten(places: Any, sizes: Any, target: Any) -> None:
    for at in range(len(sizes) - 1, -1, -1):
        target[at] = places % sizes[at]
        places = places // sizes[at]
