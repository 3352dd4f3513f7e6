//! Statuses of cuDNN. Their numbers changed in cuDNN 9.

use crate::settings::settings;
use std::ffi::{CStr, c_int};

/// `CUDNN_STATUS_SUCCESS`.
pub(super) const SUCCESS: c_int = 0;

/// Whether the version to report is cuDNN 9 or later.
pub(super) fn is_nine() -> bool {
    settings().cudnn_version >= 90_000
}

/// `CUDNN_STATUS_BAD_PARAM`.
pub(super) fn bad_param() -> c_int {
    if is_nine() { 2000 } else { 3 }
}

/// `CUDNN_STATUS_NOT_SUPPORTED`.
pub(super) fn not_supported() -> c_int {
    if is_nine() { 3000 } else { 9 }
}

/// The name of a status that these functions return.
pub(super) fn name(status: c_int) -> &'static CStr {
    match status {
        SUCCESS => c"CUDNN_STATUS_SUCCESS",
        _ if status == bad_param() => c"CUDNN_STATUS_BAD_PARAM",
        _ if status == not_supported() => c"CUDNN_STATUS_NOT_SUPPORTED",
        _ => c"CUDNN_STATUS (unknown)",
    }
}

/// Writes an answer to where the caller wants it.
///
/// # Safety
///
/// `out` is null or points to memory for a `T`.
#[expect(unsafe_code, reason = "writes through a pointer of the caller")]
pub(super) unsafe fn answer<T>(out: *mut T, value: T) -> c_int {
    if out.is_null() {
        return bad_param();
    }
    // SAFETY: not null, and the caller has memory there.
    unsafe { out.write(value) };
    SUCCESS
}
