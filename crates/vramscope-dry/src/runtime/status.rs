//! The last error of each thread, and the texts of errors.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use crate::abi::api;
use crate::errors::{self, Code, SUCCESS, UNRECOGNIZED};
use std::cell::Cell;
use std::ffi::c_char;

thread_local! {
    /// The last error of this thread.
    static LAST: Cell<Code> = const { Cell::new(SUCCESS) };
}

/// The code of a result. A failure becomes the thread's last error.
pub(crate) fn status(result: Result<(), Code>) -> Code {
    if let Err(code) = result {
        LAST.set(code);
    }
    errors::code(result)
}

api! {
    /// Returns the last error and forgets it.
    fn cudaGetLastError() -> i32 { LAST.replace(SUCCESS) }

    /// Returns the last error.
    fn cudaPeekAtLastError() -> i32 { LAST.get() }

    /// Returns the text of an error.
    fn cudaGetErrorString(code: i32) -> *const c_char {
        errors::find(code).map_or(UNRECOGNIZED, |error| error.text).as_ptr()
    }

    /// Returns the name of an error.
    fn cudaGetErrorName(code: i32) -> *const c_char {
        errors::find(code).map_or(UNRECOGNIZED, |error| error.runtime).as_ptr()
    }
}
