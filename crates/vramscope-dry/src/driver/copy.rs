//! Copies of memory.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use crate::abi::api;
use crate::device::is_mapped;
use crate::errors::SUCCESS;
use crate::runtime::copy::{copy, fill};

/// Exports functions that copy: an address, an address, a number of bytes; perhaps a stream.
macro_rules! copies {
    ($($name:ident)*) => {api! {$(
        /// Copies.
        fn $name(to: *mut u8, from: *const u8, bytes: usize) -> i32 {
            copy(to, from, bytes);
            SUCCESS
        }
    )*}};
}

copies! {
    cuMemcpy cuMemcpyAsync cuMemcpyHtoD_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoH_v2
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2
}

/// Exports functions that fill: an address, a pattern, the number of patterns; perhaps a stream.
macro_rules! fills {
    ($($name:ident $type:ty;)*) => {api! {$(
        /// Fills memory with a pattern.
        fn $name(to: *mut u8, pattern: $type, count: usize) -> i32 {
            let bytes = count.saturating_mul(size_of::<$type>());
            fill(to, &pattern.to_ne_bytes(), bytes);
            SUCCESS
        }
    )*}};
}

fills! {
    cuMemsetD8_v2 u8; cuMemsetD8Async u8; cuMemsetD16_v2 u16; cuMemsetD16Async u16;
    cuMemsetD32_v2 u32; cuMemsetD32Async u32;
}

api! {
    /// Writes 32 bits.
    fn cuStreamWriteValue32_v2(_stream: u64, to: *mut u32, value: u32, _flags: u32) -> i32 {
        if is_mapped() {
            to.write(value);
        }
        SUCCESS
    }

    /// Writes 32 bits.
    fn cuStreamWriteValue32(stream: u64, to: *mut u32, value: u32, flags: u32) -> i32 {
        cuStreamWriteValue32_v2(stream, to, value, flags)
    }
}
