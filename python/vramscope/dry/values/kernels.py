"""A function of Python in the place of a kernel of CUDA.

It calls PyTorch's own kernel, so that allocations, workspaces and streams are PyTorch's. Then, if
all inputs are known and small, the CPU computes over the same addresses.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from ..frames import drop_own_frames
from . import counts
from .compute import Cpu
from .grades import ABSENT, COMPUTED, LARGEST_MADE_UP, MADE_UP, UNWRITTEN, ZERO, Grades, unseen
from .made_up import Maker
from .numbers import as_tensors
from .plans import Plan
from .report import Report
from .sparse import Sparse

Kernel = Callable[..., Any]

#: Elements of the largest tensor of floating point that counts as read when it is copied to the
#: host. Larger ones are weights that are offloaded.
MOST_READ = 4096
#: Bytes of the largest tensor of int32 that may be the status of a batch of factorizations.
LARGEST_STATUS = 1 << 14

_FLOATING = frozenset(
    one
    for one in vars(torch).values()
    if isinstance(one, torch.dtype) and (one.is_floating_point or one.is_complex)
)
_Tensor = torch.Tensor
_STRIDED = torch.strided
_functions_off = torch._C.DisableTorchFunction
_is_capturing = torch._C._cuda_isCurrentStreamCapturing


class Limits:
    """Bytes of one operation's inputs, and of each of its results, that are computed."""

    def __init__(self, is_full: bool) -> None:
        self.floating = 1 << 62 if is_full else 1 << 20
        #: Integers and bools: masks, lengths and indices decide more, and cost less.
        self.other = 1 << 62 if is_full else 64 << 20

    def allow(self, tensor: Any) -> bool:
        """Whether a result is small."""
        limit = self.floating if tensor.dtype in _FLOATING else self.other
        return bool(tensor.nbytes <= limit)


class Kernels:
    """Makes the functions, and holds what they share."""

    def __init__(self, cpu: Cpu, maker: Maker, report: Report, core: Any, limits: Limits) -> None:
        self.grades: Grades = {}
        self._cpu = cpu
        self._maker = maker
        self._report = report
        self._core = core
        self._limits = limits
        self._sparse = Sparse(self.grades, cpu, maker, report, core, limits.allow)

    def around(self, plan: Plan, original: Kernel) -> Kernel:
        """The function for an operator, around PyTorch's own kernel."""
        if plan.allocates:
            run = self._allocation(plan, original)
        elif plan.is_resize:
            run = self._resizing(original)
        else:
            if plan.name == "zero_":
                original = self._quiet(original)
            run = self._operation(plan, original)
            if plan.name == "zero_":
                run = self._zeroing(run, original)
            if plan.is_foreign:
                run = self._sparse.around(plan.name, original, run)
        tally = self._report.tally
        places = [at for at, _ in plan.positions]

        def kernel(*args: Any, **kwargs: Any) -> Any:
            try:
                # An operator that has told its kernel what to read needs no values inside.
                if tally.quiet > 1:
                    return original(*as_tensors(places, args), **kwargs)
                with _functions_off():
                    return run(args, kwargs)
            except BaseException as error:
                drop_own_frames(error)
                raise

        return kernel

    def _allocation(self, plan: Plan, original: Kernel) -> Kernel:
        grades, limits, cpu = self.grades, self._limits, self._cpu

        def run(args: Any, kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            if out.layout is _STRIDED and out.is_cuda:
                grade = UNWRITTEN if limits.allow(out) else ABSENT
                grades[out.data_ptr() - out.storage_offset() * out.itemsize] = (grade, out.nbytes)
                if out.dtype is torch.int32 and out.nbytes <= LARGEST_STATUS:
                    # A kernel may write its status there, and read it back: zero is success.
                    cpu.clear(plan, out)
            return out

        return run

    def _resizing(self, original: Kernel) -> Kernel:
        grades, limits = self.grades, self._limits

        def run(args: Any, kwargs: Any) -> Any:
            tensor = args[0]
            if tensor.layout is not _STRIDED:
                return original(*args, **kwargs)
            before = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
            entry = grades.get(before)
            out = original(*args, **kwargs)
            after = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
            if after != before:
                # PyTorch copies what there was into the new storage.
                grade = UNWRITTEN if limits.allow(tensor) else ABSENT
                if before and entry is not None:
                    grade = min(grade, entry[0])
                grades[after] = (grade, tensor.nbytes)
            return out

        return run

    def _quiet(self, original: Kernel) -> Kernel:
        """A kernel whose inner operators need no values."""
        tally = self._report.tally

        def quiet(*args: Any, **kwargs: Any) -> Any:
            before, tally.quiet = tally.quiet, 2
            try:
                return original(*args, **kwargs)
            finally:
                tally.quiet = before

        return quiet

    def _zeroing(self, run: Kernel, original: Kernel) -> Kernel:
        """Benchmarks zero a buffer of the size of the cache again and again."""
        grades = self.grades

        def zero(args: Any, kwargs: Any) -> Any:
            tensor = args[0]
            if tensor.layout is not _STRIDED or tensor.nbytes <= LARGEST_MADE_UP:
                return run(args, kwargs)
            base = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
            if (grades.get(base) or (ABSENT,))[0] == ZERO:
                return original(*args, **kwargs)
            out = run(args, kwargs)
            if grades.get(base) == (COMPUTED, tensor.nbytes):
                grades[base] = (ZERO, tensor.nbytes)
            return out

        return zero

    def _operation(self, plan: Plan, original: Kernel) -> Kernel:
        grades, limits, report, cpu = self.grades, self._limits, self._report, self._cpu
        tally, most_floating, most_other = report.tally, limits.floating, limits.other
        positions, keywords = plan.positions, plan.keywords
        overwrites, is_out, answers = plan.overwrites, plan.is_out, plan.answers
        is_computed = not plan.is_foreign and (not answers or plan.counted)
        is_sized = plan.counted or plan.sized

        def run(args: Any, kwargs: Any) -> Any:
            found = []
            for at, writes in positions:
                if at >= len(args):
                    break
                value = args[at]
                if isinstance(value, _Tensor):
                    found.append((value, writes))
                elif isinstance(value, (list, tuple)):
                    for one in value:
                        if one is not None:
                            found.append((one, writes))
                elif value is not None:
                    args = as_tensors([one for one, _ in positions], args)
            for name, value in kwargs.items():
                if name in keywords:
                    writes = keywords[name]
                    if isinstance(value, _Tensor):
                        found.append((value, writes))
                    elif isinstance(value, (list, tuple)):
                        found += [(one, writes) for one in value if one is not None]
            grade, floating, other, can = COMPUTED, 0, 0, is_computed
            bases, written, on_device = [], [], False
            for tensor, writes in found:
                if not tensor.is_cuda:
                    can = can and tensor.device.type == "cpu" and tensor.layout is _STRIDED
                    continue
                on_device = True
                if tensor.layout is not _STRIDED:
                    can, grade = False, MADE_UP if grade > MADE_UP else grade
                    continue
                nbytes = tensor.nbytes
                if not nbytes and not writes:
                    continue
                if tensor.dtype in _FLOATING:
                    floating += nbytes
                else:
                    other += nbytes
                base = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
                entry = grades.get(base)
                if entry is None:
                    entry = grades[base] = unseen(tensor, nbytes)
                bases.append(base)
                held = entry[0]
                if writes:
                    written.append((tensor, base, entry))
                    if is_out or (overwrites and nbytes >= entry[1]):
                        continue
                elif held == UNWRITTEN:
                    held = MADE_UP
                if held < grade:
                    grade = held
            if not grade or floating > most_floating or other > most_other:
                can = False
            # A replay of a graph computes nothing, so what it would write is not known.
            elif can and on_device and _is_capturing():
                can = False

            if is_sized:
                out, result = self._sized(plan, original, args, kwargs, can)
                if grade < COMPUTED or result is None:
                    for tensor, _ in found:
                        report.read(plan.name, "branch" if answers else "size", tensor.dtype)
                        break
                if not isinstance(out, (_Tensor, tuple, list)):
                    return out
                results = _tensors(out)
            else:
                if answers and grade < COMPUTED:
                    report.read(plan.name, "branch", found[0][0].dtype)
                out = original(*args, **kwargs)
                results = (out,) if isinstance(out, _Tensor) else _tensors(out)
                result = None
                if can:
                    for one in results:
                        limit = most_floating if one.dtype in _FLOATING else most_other
                        if one.layout is not _STRIDED or one.nbytes > limit:
                            break
                    else:
                        result = cpu.run(plan, args, kwargs)
            given = 0 if result is None else cpu.give(plan, results, result)
            if given or (result is not None and not results):
                tally.numbers["computed"] += 1
                for tensor, base, entry in written:
                    if is_out:
                        base = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
                        entry = (grade, max(entry[1], tensor.nbytes))
                    grades[base] = (grade, entry[1])
                if plan.is_private:
                    given = len(results)
                for one in results[:given]:
                    if one.is_cuda and one.layout is _STRIDED:
                        base = one.data_ptr() - one.storage_offset() * one.itemsize
                        if base not in bases:
                            grades[base] = (grade, one.nbytes)
                if given < len(results):
                    self._not_computed(plan, args, results[given:], bases, (), grade)
            else:
                self._not_computed(plan, args, results, bases, written, grade)
            if plan.is_copy and grade < COMPUTED and not args[0].is_cuda:
                target = args[0]
                if target.dtype not in _FLOATING or target.numel() <= MOST_READ:
                    report.read("copy to the host", "branch", target.dtype)
            return out

        return run

    def _sized(self, plan: Plan, original: Kernel, args: Any, kwargs: Any, can: bool) -> Any:
        """Runs an operator that reads how large its result is: returns it, and that of the CPU."""
        result, tally = None, self._report.tally
        numbers: list[int] = []
        if plan.counted:
            if can:
                result = self._cpu.run(plan, args, kwargs)
            numbers = counts.of(plan, result, args)
            for number in numbers:
                self._core.dry_next(number)
        before, tally.quiet = tally.quiet, max(tally.quiet, 2 if numbers else 1)
        try:
            out = original(*args, **kwargs)
        finally:
            tally.quiet = before
            if numbers:
                self._core.dry_next_clear()
        if plan.sized and can:
            result = self._cpu.run(plan, args, kwargs)
        return out, result

    def _not_computed(
        self,
        plan: Plan,
        args: Any,
        results: Any,
        bases: list[int],
        written: Any,
        grade: int,
    ) -> None:
        grades, maker, tally = self.grades, self._maker, self._report.tally
        for tensor, base, entry in written:
            nbytes = entry[1]
            if plan.is_out:
                base = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
                nbytes = max(nbytes, tensor.nbytes)
            is_small = nbytes <= LARGEST_MADE_UP
            grades[base] = (MADE_UP if is_small else ABSENT, nbytes)
            # In place, what there was is the best guess. A copy of nothing would be zeros.
            is_whole = tensor.nbytes >= nbytes
            if is_small and is_whole and (plan.is_out or (plan.is_copy and grade == ABSENT)):
                tally.numbers["made_up"] += 1
                maker.fill(plan.name, tensor, args)
        for one in results:
            if not one.is_cuda or one.layout is not _STRIDED:
                continue
            base = one.data_ptr() - one.storage_offset() * one.itemsize
            if base in bases:
                continue
            nbytes = one.nbytes
            if nbytes <= LARGEST_MADE_UP:
                grades[base] = (MADE_UP, nbytes)
                tally.numbers["made_up"] += 1
                maker.fill(plan.name, one, args)
            else:
                grades[base] = (ABSENT, nbytes)


def _tensors(out: Any) -> Any:
    """The tensors of a result, in their order."""
    if isinstance(out, _Tensor):
        return (out,)
    if not isinstance(out, (list, tuple)):
        return ()
    found: list[Any] = []
    for one in out:
        if isinstance(one, _Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            found += _tensors(one)
    return found
