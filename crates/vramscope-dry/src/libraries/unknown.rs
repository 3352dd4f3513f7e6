//! Functions that this library lacks. Shims jump to `vs_unknown` with their name.

#![expect(unsafe_code, reason = "the name comes in a register")]

use super::cupti::NOT_INITIALIZED;
use crate::report::report;
use crate::settings::settings;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Names of functions that were called.
pub(crate) type Names = BTreeSet<Vec<u8>>;

/// Names of functions that were called and that this library lacks.
pub(crate) static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(|| {
    crate::device::fork::watch();
    Mutex::default()
});

/// Answers any call: the address of the function's name comes in `rax`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vs_unknown() -> i64 {
    core::arch::naked_asm!("mov rdi, rax", "jmp {answer}", answer = sym answer)
}

/// Answers any call: the address of the function's name comes in `x16`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vs_unknown() -> i64 {
    core::arch::naked_asm!("mov x0, x16", "b {answer}", answer = sym answer)
}

/// Notes the name and returns 0, which means success to most libraries.
unsafe extern "C" fn answer(name: *const c_char) -> i64 {
    // SAFETY: a shim passes a text of its own.
    let name = unsafe { CStr::from_ptr(name) };
    note(name);
    if name.to_bytes().starts_with(b"cupti") { NOT_INITIALIZED.into() } else { 0 }
}

/// Notes the first call of a function.
fn note(name: &CStr) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if !names.contains(name.to_bytes()) {
        names.insert(name.to_bytes().to_vec());
        let settings = settings();
        let name = name.to_string_lossy();
        if settings.trace > 0 {
            report(format_args!("vramscope: a dry run has no function {name}"));
        }
        if let Some(path) = &settings.unknown {
            // One write, so that lines of several processes do not mix.
            let file = OpenOptions::new().append(true).create(true).open(path);
            let result = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
            if let Err(error) = result {
                report(format_args!("vramscope: cannot write {}: {error}", path.display()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, answer};

    #[test]
    fn unknown_functions_succeed_except_profilers() {
        // SAFETY: the names are texts.
        let answers = unsafe {
            [c"cublasNothing", c"cuptiNothing", c"cublasNothing"].map(|name| answer(name.as_ptr()))
        };
        assert_eq!(answers, [0, 15, 0]);
        let names = NAMES.lock().unwrap();
        assert!(names.contains(b"cublasNothing".as_slice()));
        assert!(names.contains(b"cuptiNothing".as_slice()));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn name_comes_in_a_register() {
        let answer: i64;
        let name = c"cuptiRegister";
        // SAFETY: the function follows the calling convention of C, and the name is a text.
        unsafe {
            core::arch::asm!(
                "call {function}",
                function = sym super::vs_unknown,
                inlateout("rax") name.as_ptr() => answer,
                clobber_abi("C"),
            );
        }
        assert_eq!(answer, 15);
        assert!(NAMES.lock().unwrap().contains(name.to_bytes()));
    }
}
