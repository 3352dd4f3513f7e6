//! The addresses of device memory, and their mapping.

use super::device_count;
use crate::report::report;
use std::sync::LazyLock;

/// The first address of the first device.
pub(super) const DEVICES_FIRST: u64 = 0x7600_0000_0000;

/// Addresses of a device, in bytes. Memory in chunks that nothing fits into needs more addresses
/// than memory.
pub(super) const DEVICE_ADDRESSES: u64 = 512 << 30;

/// Devices that the range of addresses has room for.
pub(super) const MOST_DEVICES: usize = 16;

/// The range of addresses that programs reserve and map memory into.
pub(super) const RESERVED_FIRST: u64 = 0x6000_0000_0000;

/// The end of that range.
pub(super) const RESERVED_END: u64 = 0x6800_0000_0000;

/// Whether device memory is mapped, so that copies are real.
static MAPPED: LazyLock<bool> = LazyLock::new(|| match map(device_count()) {
    Ok(()) => true,
    Err(error) => {
        report(format_args!(
            "vramscope: device memory cannot be mapped: {error}; values are not computed"
        ));
        false
    }
});

/// Whether device memory is mapped. The first call maps it.
pub(crate) fn is_mapped() -> bool {
    *MAPPED
}

/// Whether an address belongs to a device.
pub(crate) fn is_device_memory(address: u64) -> bool {
    ranges(device_count()).iter().any(|&(first, end)| (first..end).contains(&address))
}

/// First address and end of the ranges that device memory lies in.
pub(crate) fn ranges(devices: i32) -> [(u64, u64); 2] {
    let end = DEVICES_FIRST + devices as u64 * DEVICE_ADDRESSES;
    [(DEVICES_FIRST, end), (RESERVED_FIRST, RESERVED_END)]
}

/// Maps the addresses of device memory. A page exists once it is touched.
fn map(devices: i32) -> std::io::Result<()> {
    for (first, end) in ranges(devices) {
        let (address, size) = (first as *mut libc::c_void, (end - first) as usize);
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the flag keeps mappings that exist, so nothing else changes.
        let got = unsafe { libc::mmap(address, size, access, flags, -1, 0) };
        if got == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        if got != address {
            // Linux before 4.17 takes the address for a hint.
            // SAFETY: the mapping was made above and nothing uses it.
            unsafe { libc::munmap(got, size) };
            return Err(std::io::Error::from_raw_os_error(libc::EEXIST));
        }
        // A touched byte must not cost 2 MiB. A kernel without huge pages refuses, which is fine.
        // SAFETY: the range was mapped above.
        unsafe { libc::madvise(address, size, libc::MADV_NOHUGEPAGE) };
    }
    Ok(())
}

/// Gives the pages of device memory back to the system. They are zeros afterwards.
pub(super) fn discard(first: u64, size: u64) {
    if is_mapped() {
        // SAFETY: the range lies in the mapping of `map`, and its user has released it.
        unsafe { libc::madvise(first as *mut libc::c_void, size as usize, libc::MADV_DONTNEED) };
    }
}
