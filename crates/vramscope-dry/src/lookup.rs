//! Functions by name, as programs ask the driver for them.

#![expect(unsafe_code, reason = "the loader finds functions by name")]

use crate::report::report;
use crate::settings::settings;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The driver's library.
const DRIVER: &CStr = c"libcuda.so.1";

/// Opens a library that is loaded already.
fn loaded(path: *const c_char) -> *mut c_void {
    // SAFETY: the path is a text. A library that is loaded runs no code when it is opened.
    unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// The library that this code is in. Null: it is part of a program.
fn own() -> *mut c_void {
    static OWN: LazyLock<AtomicPtr<c_void>> = LazyLock::new(|| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the call fills the record, and zeros are a value of it.
        let info = unsafe {
            libc::dladdr(loaded as *const c_void, info.as_mut_ptr());
            info.assume_init()
        };
        AtomicPtr::new(if info.dli_fname.is_null() { null_mut() } else { loaded(info.dli_fname) })
    });
    OWN.load(Ordering::Relaxed)
}

/// The address of a name in a library. Null: no such library or name.
fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    match CString::new(name) {
        // SAFETY: the library is open and the name ends with a zero.
        Ok(name) if !library.is_null() => unsafe { libc::dlsym(library, name.as_ptr()) },
        _ => null_mut(),
    }
}

/// The function of the driver with a name. The newest version comes first: the name without a
/// version stands for it. What this library lacks is left to the shim of the driver, which answers
/// it as unknown. Null: no such function.
///
/// # Safety
///
/// `name` is a text.
pub(crate) unsafe fn find(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller promises a text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let own = own();
    let names = [format!("vs_{name}_v2"), format!("vs_{name}")];
    let mut found = names.iter().map(|name| symbol(own, name)).find(|found| !found.is_null());
    if found.is_none() {
        found = Some(symbol(loaded(DRIVER.as_ptr()), &name)).filter(|found| !found.is_null());
    }
    if found.is_none() && settings().trace > 0 {
        report(format_args!("vramscope: the driver has no function {name}"));
    }
    found.unwrap_or(null_mut())
}
