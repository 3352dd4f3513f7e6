//! CUPTI: profilers hear that no device can be observed. See [`super::unknown`] for its functions.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::tables::put;
use std::ffi::c_char;

/// `CUPTI_ERROR_NOT_INITIALIZED`.
pub(crate) const NOT_INITIALIZED: i32 = 15;

api! {
    /// Writes the text of a result.
    fn cuptiGetResultString(result: i32, text: *mut *const c_char) -> i32 {
        let not = c"a dry run has no device to observe";
        put(text, if result == 0 { c"CUPTI_SUCCESS" } else { not }.as_ptr());
        0
    }

    /// Writes the text of a result.
    fn cuptiGetErrorMessage(result: i32, text: *mut *const c_char) -> i32 {
        cuptiGetResultString(result, text)
    }
}
