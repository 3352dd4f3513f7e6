//! The compiler of kernels at run time. Its programs are empty.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::runtime::code_version;
use crate::settings::settings;
use crate::tables::{handles, put, succeed};
use std::ffi::c_char;

/// The size of an empty program, in bytes.
const PROGRAM: usize = 64;

handles! { nvrtcCreateProgram }

// cuDNN compiles through a function without a public declaration.
succeed! { nvrtcCompileProgram nvrtcDestroyProgram nvrtcAddNameExpression __nvrtcCPEx }

/// Writes an empty program.
///
/// # Safety
///
/// `place` has the size of a program.
unsafe fn write_program(place: *mut u8) -> i32 {
    // SAFETY: the caller promises the size.
    unsafe { place.write_bytes(0, PROGRAM) };
    0
}

api! {
    /// Writes the version.
    fn nvrtcVersion(major: *mut i32, minor: *mut i32) -> i32 {
        let cuda = settings().cuda;
        put(major, cuda / 1000);
        put(minor, cuda % 1000 / 10);
        0
    }

    /// Writes 1: the device's version of code.
    fn nvrtcGetNumSupportedArchs(count: *mut i32) -> i32 {
        put(count, 1);
        0
    }

    /// Writes the device's version of code.
    fn nvrtcGetSupportedArchs(versions: *mut i32) -> i32 {
        put(versions, code_version());
        0
    }

    /// Writes the size of a program.
    fn nvrtcGetCUBINSize(_program: u64, bytes: *mut usize) -> i32 {
        put(bytes, PROGRAM);
        0
    }

    /// Writes the size of a program.
    fn nvrtcGetPTXSize(_program: u64, bytes: *mut usize) -> i32 {
        put(bytes, PROGRAM);
        0
    }

    /// Writes the size of a program.
    fn nvrtcGetLTOIRSize(_program: u64, bytes: *mut usize) -> i32 {
        put(bytes, PROGRAM);
        0
    }

    /// Writes an empty program.
    fn nvrtcGetCUBIN(_program: u64, place: *mut u8) -> i32 { write_program(place) }

    /// Writes an empty program.
    fn nvrtcGetPTX(_program: u64, place: *mut u8) -> i32 { write_program(place) }

    /// Writes an empty program.
    fn nvrtcGetLTOIR(_program: u64, place: *mut u8) -> i32 { write_program(place) }

    /// Writes the size of an empty log.
    fn nvrtcGetProgramLogSize(_program: u64, bytes: *mut usize) -> i32 {
        put(bytes, 1);
        0
    }

    /// Writes an empty log.
    fn nvrtcGetProgramLog(_program: u64, log: *mut c_char) -> i32 {
        put(log, 0);
        0
    }

    /// Writes a name, equal for all kernels.
    fn nvrtcGetLoweredName(
        _program: u64, _expression: *const c_char, name: *mut *const c_char,
    ) -> i32 {
        put(name, c"kernel".as_ptr());
        0
    }

    /// Returns the name of a result.
    fn nvrtcGetErrorString(result: i32) -> *const c_char {
        if result == 0 { c"NVRTC_SUCCESS" } else { c"NVRTC_ERROR unknown" }.as_ptr()
    }
}
