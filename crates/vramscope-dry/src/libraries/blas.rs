//! cuBLAS, cuBLASLt, cuSOLVER, cuRAND and cuFFT: handles and versions.

#![expect(unsafe_code, reason = "exported functions of the libraries")]

use crate::abi::api;
use crate::settings::settings;
use crate::tables::{handles, new_handle, put, zeros};
use std::ffi::{CStr, c_char};

handles! {
    cublasCreate_v2 cublasLtCreate cublasLtMatmulDescCreate cublasLtMatrixLayoutCreate
    cublasLtMatrixTransformDescCreate cublasLtMatmulPreferenceCreate cublasXtCreate
    curandCreateGenerator curandCreateGeneratorHost
    cusolverDnCreate cusolverDnCreateGesvdjInfo cusolverDnCreateParams cusolverDnCreateSyevjInfo
    cusolverSpCreate cusolverRfCreate cusolverMgCreate
}

// Math mode, pointer mode and atomics mode have their defaults. A stream is the legacy stream.
zeros! {
    one i32, 2: cublasGetMathMode cublasGetPointerMode_v2 cublasGetAtomicsMode cusolverDnGetVersion;
    one u64, 2: cublasGetStream_v2 cusolverDnGetStream curandGetStream;
}

// Algorithms that PyTorch 2.15 asks about have no numbers.
zeros! {
    one Heuristic, 8: cublasLtMatmulAlgoCheck;
    one [u64; 8], 9: cublasLtMatmulAlgoInit;
}

/// A result of `cublasLtMatmulAlgoGetHeuristic`: `cublasLtMatmulHeuristicResult_t` of cublasLt.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heuristic {
    /// The algorithm.
    algorithm: [u64; 8],
    /// Workspace, in bytes.
    workspace: usize,
    /// 0: the other fields are valid.
    state: i32,
    /// How full the device is.
    waves: f32,
    /// Reserved.
    reserved: [i32; 4],
}

/// The version of a library that comes with CUDA: 120805 for the fifth patch of 12.8.
fn version() -> i32 {
    let cuda = settings().cuda;
    cuda / 1000 * 10000 + cuda % 1000 / 10 * 100 + 5
}

/// Names and texts of results of cuBLAS, from `cublas_api.h`.
fn status_name(status: i32) -> &'static CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"unknown cuBLAS status",
    }
}

api! {
    /// Writes the version of cuBLAS.
    fn cublasGetVersion_v2(_handle: u64, place: *mut i32) -> i32 {
        put(place, version());
        0
    }

    /// Returns the name of a result.
    fn cublasGetStatusName(status: i32) -> *const c_char { status_name(status).as_ptr() }

    /// Returns the name of a result.
    fn cublasGetStatusString(status: i32) -> *const c_char { status_name(status).as_ptr() }

    /// Returns the name of a result.
    fn cublasLtGetStatusString(status: i32) -> *const c_char { status_name(status).as_ptr() }

    /// Returns the name of a result.
    fn cublasLtGetStatusName(status: i32) -> *const c_char { status_name(status).as_ptr() }

    /// Returns the version of cuBLASLt.
    fn cublasLtGetVersion() -> usize { version() as usize }

    /// Returns the version of the runtime.
    fn cublasLtGetCudartVersion() -> usize { settings().cuda as usize }

    /// Writes one algorithm without workspace: all that PyTorch takes of those it asks for.
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: u64, _operation: u64, _a: u64, _b: u64, _c: u64, _d: u64, _preference: u64,
        asked: i32, results: *mut Heuristic, found: *mut i32,
    ) -> i32 {
        let count = asked.clamp(0, 1);
        if count > 0 {
            put(results, Heuristic::default());
        }
        put(found, count);
        0
    }

    /// Writes an attribute of an algorithm, zeros, and its size.
    fn cublasLtMatmulAlgoConfigGetAttribute(
        _algorithm: u64, _attribute: i32, place: *mut u8, bytes: usize, written: *mut usize,
    ) -> i32 {
        if !place.is_null() {
            place.write_bytes(0, bytes);
        }
        put(written, bytes);
        0
    }

    /// Writes a plan: an integer of 32 bits.
    fn cufftCreate(place: *mut i32) -> i32 {
        put(place, new_handle() as i32);
        0
    }

    /// Writes the version of cuFFT.
    fn cufftGetVersion(place: *mut i32) -> i32 {
        put(place, version());
        0
    }
}
