//! Algorithms of convolutions, as cuDNN 8 and PyTorch to 2.3 choose them. The model answers: that
//! cuDNN has no way to plan without a device.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::legacy::{Filter, Opaque, kernels};
use super::model::{Convolution, Direction, LARGER, PLANS, USUAL};
use super::status::{SUCCESS, answer, bad_param, not_supported};
use super::tensor::Tensor;
use crate::abi::api;
use crate::notes::note;
use std::ffi::{c_int, c_void};

/// A place of the model's answer: the plan without a workspace.
const NONE: usize = 2;

/// `cudnnConvolutionFwdAlgoPerf_t`, and those of both gradients.
#[repr(C)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Performance {
    algorithm: c_int,
    status: c_int,
    /// Milliseconds.
    time: f32,
    /// Workspace in bytes.
    memory: usize,
    /// 1 if results are equal from run to run.
    determinism: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

#[cfg(test)]
impl Performance {
    /// Algorithm, status and workspace.
    pub(super) fn summary(&self) -> (c_int, c_int, usize) {
        (self.algorithm, self.status, self.memory)
    }
}

kernels! {
    cudnnConvolutionForward
    cudnnConvolutionBackwardData
    cudnnConvolutionBackwardFilter
    cudnnConvolutionBiasActivationForward
}

/// Where an algorithm stands in the model's answer: implicit products with precomputed indices are
/// the usual ones, Winograd's that are not fused are larger, plain implicit products need nothing.
fn place(direction: Direction, algorithm: c_int) -> Option<usize> {
    (0..PLANS).find(|plan| algorithm_of(direction, *plan) == algorithm)
}

fn algorithm_of(direction: Direction, plan: usize) -> c_int {
    match (plan, direction) {
        (USUAL, _) => 1,
        (LARGER, Direction::Forward) => 7,
        (LARGER, _) => 5,
        _ => 0,
    }
}

/// The algorithms for a convolution, the fastest first.
fn performances(convolution: &Convolution) -> [Performance; PLANS] {
    [USUAL, LARGER, NONE].map(|plan| Performance {
        algorithm: algorithm_of(convolution.direction, plan),
        status: SUCCESS,
        time: 0.01 * (plan + 1) as f32,
        memory: convolution.workspace(plan) as usize,
        // Number 0 of both gradients adds with atomics.
        determinism: c_int::from(plan != NONE || convolution.direction == Direction::Forward),
        math: 0,
        reserved: [0; 3],
    })
}

/// The convolution that descriptors name.
///
/// # Safety
///
/// Each pointer is null or a descriptor of this library.
unsafe fn convolution(
    direction: Direction,
    w: *const Filter,
    x: *const Tensor,
    y: *const Tensor,
) -> Option<Convolution> {
    note("cudnn_model");
    // SAFETY: the caller's descriptors live during the call.
    let (w, x, y) = unsafe { (w.as_ref()?, x.as_ref()?, y.as_ref()?) };
    Some(Convolution { direction, w: w.tensor.clone(), x: x.clone(), y: y.clone() })
}

/// Writes at most `wanted` algorithms.
///
/// # Safety
///
/// `out` is null or points to memory for `wanted` algorithms, `count` is null or for a number.
unsafe fn list(
    convolution: Option<Convolution>,
    wanted: c_int,
    count: *mut c_int,
    out: *mut Performance,
) -> c_int {
    let Some(convolution) = convolution else { return bad_param() };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if out.is_null() || wanted == 0 {
        return bad_param();
    }
    for (at, performance) in performances(&convolution).into_iter().take(wanted).enumerate() {
        // SAFETY: the place is below `wanted`.
        unsafe { out.add(at).write(performance) };
    }
    // SAFETY: the caller has memory for a number there.
    unsafe { answer(count, PLANS.min(wanted) as c_int) }
}

/// Writes the workspace of an algorithm.
///
/// # Safety
///
/// `bytes` is null or points to memory for a number.
unsafe fn size(convolution: Option<Convolution>, algorithm: c_int, bytes: *mut usize) -> c_int {
    let Some(convolution) = convolution else { return bad_param() };
    let Some(plan) = place(convolution.direction, algorithm) else { return not_supported() };
    // SAFETY: the caller has memory for a number there.
    unsafe { answer(bytes, convolution.workspace(plan) as usize) }
}

api! {
    fn cudnnGetConvolutionForwardAlgorithm_v7(
        _handle: *mut c_void,
        x: *const Tensor,
        w: *const Filter,
        _convolution: *const Opaque,
        y: *const Tensor,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
    ) -> c_int {
        list(convolution(Direction::Forward, w, x, y), wanted, count, out)
    }

    fn cudnnGetConvolutionBackwardDataAlgorithm_v7(
        _handle: *mut c_void,
        w: *const Filter,
        dy: *const Tensor,
        _convolution: *const Opaque,
        dx: *const Tensor,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
    ) -> c_int {
        list(convolution(Direction::Data, w, dx, dy), wanted, count, out)
    }

    fn cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        _handle: *mut c_void,
        x: *const Tensor,
        dy: *const Tensor,
        _convolution: *const Opaque,
        dw: *const Filter,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
    ) -> c_int {
        list(convolution(Direction::Filter, dw, x, dy), wanted, count, out)
    }

    fn cudnnFindConvolutionForwardAlgorithmEx(
        _handle: *mut c_void,
        x: *const Tensor,
        _x_data: *const c_void,
        w: *const Filter,
        _w_data: *const c_void,
        _convolution: *const Opaque,
        y: *const Tensor,
        _y_data: *mut c_void,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
        _workspace: *mut c_void,
        bytes: usize,
    ) -> c_int {
        search(convolution(Direction::Forward, w, x, y), wanted, count, out, bytes)
    }

    fn cudnnFindConvolutionBackwardDataAlgorithmEx(
        _handle: *mut c_void,
        w: *const Filter,
        _w_data: *const c_void,
        dy: *const Tensor,
        _dy_data: *const c_void,
        _convolution: *const Opaque,
        dx: *const Tensor,
        _dx_data: *mut c_void,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
        _workspace: *mut c_void,
        bytes: usize,
    ) -> c_int {
        search(convolution(Direction::Data, w, dx, dy), wanted, count, out, bytes)
    }

    fn cudnnFindConvolutionBackwardFilterAlgorithmEx(
        _handle: *mut c_void,
        x: *const Tensor,
        _x_data: *const c_void,
        dy: *const Tensor,
        _dy_data: *const c_void,
        _convolution: *const Opaque,
        dw: *const Filter,
        _dw_data: *mut c_void,
        wanted: c_int,
        count: *mut c_int,
        out: *mut Performance,
        _workspace: *mut c_void,
        bytes: usize,
    ) -> c_int {
        search(convolution(Direction::Filter, dw, x, dy), wanted, count, out, bytes)
    }

    fn cudnnGetConvolutionForwardWorkspaceSize(
        _handle: *mut c_void,
        x: *const Tensor,
        w: *const Filter,
        _convolution: *const Opaque,
        y: *const Tensor,
        algorithm: c_int,
        bytes: *mut usize,
    ) -> c_int {
        size(convolution(Direction::Forward, w, x, y), algorithm, bytes)
    }

    fn cudnnGetConvolutionBackwardDataWorkspaceSize(
        _handle: *mut c_void,
        w: *const Filter,
        dy: *const Tensor,
        _convolution: *const Opaque,
        dx: *const Tensor,
        algorithm: c_int,
        bytes: *mut usize,
    ) -> c_int {
        size(convolution(Direction::Data, w, dx, dy), algorithm, bytes)
    }

    fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
        _handle: *mut c_void,
        x: *const Tensor,
        dy: *const Tensor,
        _convolution: *const Opaque,
        dw: *const Filter,
        algorithm: c_int,
        bytes: *mut usize,
    ) -> c_int {
        size(convolution(Direction::Filter, dw, x, dy), algorithm, bytes)
    }
}

/// Answers a search. Algorithms that need more than the workspace of `bytes` do not run in it.
///
/// # Safety
///
/// As for [`list`].
unsafe fn search(
    convolution: Option<Convolution>,
    wanted: c_int,
    count: *mut c_int,
    out: *mut Performance,
    bytes: usize,
) -> c_int {
    note("cudnn_benchmark");
    // SAFETY: the caller keeps the contract of `list`.
    let status = unsafe { list(convolution, wanted, count, out) };
    if status == SUCCESS {
        let length = PLANS.min(wanted as usize);
        // SAFETY: `list` wrote this many.
        let performances = unsafe { std::slice::from_raw_parts_mut(out, length) };
        for performance in performances.iter_mut().filter(|one| one.memory > bytes) {
            performance.status = not_supported();
            performance.time = -1.0;
        }
        // Algorithms that did not run come last.
        performances.sort_by_key(|one| one.status != SUCCESS);
    }
    status
}
