//! Errors of the driver and of the runtime, with Nvidia's names and texts.

use std::ffi::CStr;

/// An error code. The driver and the runtime use one numbering.
pub(crate) type Code = i32;

/// Success.
pub(crate) const SUCCESS: Code = 0;
/// An argument has a wrong value.
pub(crate) const INVALID_VALUE: Code = 1;
/// The device lacks memory.
pub(crate) const OUT_OF_MEMORY: Code = 2;
/// No device has this number.
pub(crate) const INVALID_DEVICE: Code = 101;
/// A stream, an event or another handle is not known.
pub(crate) const INVALID_HANDLE: Code = 400;
/// The state does not permit the call.
pub(crate) const ILLEGAL_STATE: Code = 401;
/// No function or symbol has this name.
pub(crate) const NOT_FOUND: Code = 500;
/// Earlier work is pending.
pub(crate) const NOT_READY: Code = 600;
/// Host memory is registered already.
pub(crate) const ALREADY_REGISTERED: Code = 712;
/// Host memory is not registered.
pub(crate) const NOT_REGISTERED: Code = 713;
/// A dry run has no such feature.
pub(crate) const NOT_SUPPORTED: Code = 801;
/// An error without a more specific code.
pub(crate) const UNKNOWN: Code = 999;

/// A code with its names and text.
pub(crate) struct Error {
    /// The code.
    pub(crate) code: Code,
    /// The name in the runtime.
    pub(crate) runtime: &'static CStr,
    /// The name in the driver.
    pub(crate) driver: &'static CStr,
    /// The text, for both.
    pub(crate) text: &'static CStr,
}

/// The text of the runtime for codes that are not in the table.
pub(crate) const UNRECOGNIZED: &CStr = c"unrecognized error code";

/// The entry of a code.
pub(crate) fn find(code: Code) -> Option<&'static Error> {
    ERRORS.iter().find(|error| error.code == code)
}

/// The code of a result.
pub(crate) fn code(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}

/// Errors that programs meet. Names from `driver_types.h` and `cuda.h` of CUDA 13.0, texts as
/// `cudaGetErrorString` prints them.
const ERRORS: &[Error] = &[
    error(0, c"cudaSuccess", c"CUDA_SUCCESS", c"no error"),
    error(1, c"cudaErrorInvalidValue", c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    error(2, c"cudaErrorMemoryAllocation", c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    error(
        3,
        c"cudaErrorInitializationError",
        c"CUDA_ERROR_NOT_INITIALIZED",
        c"initialization error",
    ),
    error(4, c"cudaErrorCudartUnloading", c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    error(
        98,
        c"cudaErrorInvalidDeviceFunction",
        c"CUDA_ERROR_INVALID_VALUE",
        c"invalid device function",
    ),
    error(
        100,
        c"cudaErrorNoDevice",
        c"CUDA_ERROR_NO_DEVICE",
        c"no CUDA-capable device is detected",
    ),
    error(101, c"cudaErrorInvalidDevice", c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    error(
        201,
        c"cudaErrorDeviceUninitialized",
        c"CUDA_ERROR_INVALID_CONTEXT",
        c"invalid device context",
    ),
    error(
        209,
        c"cudaErrorNoKernelImageForDevice",
        c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        c"no kernel image is available for execution on the device",
    ),
    error(
        400,
        c"cudaErrorInvalidResourceHandle",
        c"CUDA_ERROR_INVALID_HANDLE",
        c"invalid resource handle",
    ),
    error(
        401,
        c"cudaErrorIllegalState",
        c"CUDA_ERROR_ILLEGAL_STATE",
        c"the operation cannot be performed in the present state",
    ),
    error(500, c"cudaErrorSymbolNotFound", c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    error(600, c"cudaErrorNotReady", c"CUDA_ERROR_NOT_READY", c"device not ready"),
    error(
        700,
        c"cudaErrorIllegalAddress",
        c"CUDA_ERROR_ILLEGAL_ADDRESS",
        c"an illegal memory access was encountered",
    ),
    error(
        704,
        c"cudaErrorPeerAccessAlreadyEnabled",
        c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        c"peer access is already enabled",
    ),
    error(
        712,
        c"cudaErrorHostMemoryAlreadyRegistered",
        c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        c"part or all of the requested memory range is already mapped",
    ),
    error(
        713,
        c"cudaErrorHostMemoryNotRegistered",
        c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
        c"pointer does not correspond to a registered memory region",
    ),
    error(
        719,
        c"cudaErrorLaunchFailure",
        c"CUDA_ERROR_LAUNCH_FAILED",
        c"unspecified launch failure",
    ),
    error(801, c"cudaErrorNotSupported", c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    error(
        900,
        c"cudaErrorStreamCaptureUnsupported",
        c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        c"operation not permitted when stream is capturing",
    ),
    error(
        901,
        c"cudaErrorStreamCaptureInvalidated",
        c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        c"operation failed due to a previous error during capture",
    ),
    error(999, c"cudaErrorUnknown", c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

/// An entry of the table.
const fn error(
    code: Code,
    runtime: &'static CStr,
    driver: &'static CStr,
    text: &'static CStr,
) -> Error {
    Error { code, runtime, driver, text }
}
