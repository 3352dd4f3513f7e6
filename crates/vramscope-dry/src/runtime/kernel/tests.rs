//! Attributes of kernels.

#![expect(unsafe_code, reason = "functions of the runtime and of the driver are called")]

use super::{FunctionAttributes, MORE_ATTRIBUTES, cudaFuncGetAttributes};
use crate::device::python::dry_set_code_version;
use crate::driver::cuFuncGetAttribute;
use crate::settings::settings;

/// `cudaFuncAttributes` with the fields of the newest version.
#[repr(C)]
struct Place(FunctionAttributes, [u8; MORE_ATTRIBUTES]);

/// The versions of PTX and binary that the runtime and the driver report.
fn versions() -> [i32; 4] {
    let mut place = Place(FunctionAttributes::default(), [0; MORE_ATTRIBUTES]);
    let mut driver = [0; 2];
    // SAFETY: all places are valid for what is written.
    unsafe {
        assert_eq!(cudaFuncGetAttributes((&raw mut place).cast(), 0x1000), 0);
        assert_eq!(cuFuncGetAttribute(&raw mut driver[0], 5, 0x1000), 0);
        assert_eq!(cuFuncGetAttribute(&raw mut driver[1], 6, 0x1000), 0);
    }
    let [ptx, binary] = place.0.versions;
    [ptx, binary, driver[0], driver[1]]
}

#[test]
fn kernels_have_the_version_of_the_code_that_was_loaded() {
    let (major, minor) = settings().gpu.capability;
    let of_device = (major * 10 + minor) as i32;
    assert_eq!(versions(), [of_device; 4]);
    dry_set_code_version(86);
    assert_eq!(versions(), [86; 4]);
    dry_set_code_version(0);
    assert_eq!(versions(), [of_device; 4]);
}
