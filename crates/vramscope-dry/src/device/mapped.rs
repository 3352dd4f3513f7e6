//! Memory without an address, and the addresses that it is mapped to: what expandable segments use.

use super::{Devices, discard};
use crate::errors::{Code, INVALID_VALUE, OUT_OF_MEMORY};
use crate::tables::new_handle;

/// Memory of a device that was made for mapping.
#[derive(Debug)]
pub(crate) struct Physical {
    /// The device.
    pub(crate) device: i32,
    /// In bytes.
    size: u64,
    /// Handles that are not released. Two after `retain`, for example.
    handles: u64,
    /// Ranges that it is mapped to.
    mappings: u64,
}

impl Devices {
    /// Makes `size` bytes of memory of a device. Returns its handle.
    pub(crate) fn create(&mut self, device: i32, size: u64) -> Result<u64, Code> {
        self.take(device, size)?;
        let handle = new_handle();
        let physical = Physical { device, size, handles: 1, mappings: 0 };
        self.physical.insert(handle, physical);
        Ok(handle)
    }

    /// The memory of a handle.
    pub(crate) fn physical(&self, handle: u64) -> Result<&Physical, Code> {
        self.physical.get(&handle).ok_or(INVALID_VALUE)
    }

    /// Releases a handle. Memory that is mapped stays until it is unmapped.
    pub(crate) fn release_handle(&mut self, handle: u64) -> Result<(), Code> {
        let physical = self.physical.get_mut(&handle).ok_or(INVALID_VALUE)?;
        physical.handles = physical.handles.checked_sub(1).ok_or(INVALID_VALUE)?;
        self.drop_unused(handle)
    }

    /// The handle of the memory at a mapped address. It needs a release of its own.
    pub(crate) fn retain(&mut self, address: u64) -> Result<u64, Code> {
        let (first, _) = self.mapped_range(address).ok_or(INVALID_VALUE)?;
        let (_, handle) = self.mapped[&first];
        self.physical.get_mut(&handle).ok_or(INVALID_VALUE)?.handles += 1;
        Ok(handle)
    }

    /// Reserves addresses.
    pub(crate) fn reserve(&mut self, size: u64, alignment: u64) -> Result<u64, Code> {
        if size == 0 || alignment & alignment.wrapping_sub(1) != 0 && alignment != 0 {
            return Err(INVALID_VALUE);
        }
        self.reservations.reserve(size, alignment).ok_or(OUT_OF_MEMORY)
    }

    /// Gives reserved addresses back. Their memory must be unmapped.
    pub(crate) fn unreserve(&mut self, first: u64, size: u64) -> Result<(), Code> {
        let mut mapped = self.mapped.range(first..first.saturating_add(size));
        if mapped.next().is_some() || !self.reservations.release(first) {
            return Err(INVALID_VALUE);
        }
        Ok(())
    }

    /// Maps `size` bytes of memory at a reserved address.
    pub(crate) fn map(&mut self, first: u64, size: u64, handle: u64) -> Result<(), Code> {
        let end = first.checked_add(size).ok_or(INVALID_VALUE)?;
        let before = self.mapped.range(..end).next_back();
        let taken = before.is_some_and(|(&at, &(size, _))| at + size > first);
        if size == 0 || taken || !self.reservations.contains(first, size) {
            return Err(INVALID_VALUE);
        }
        let physical = self.physical.get_mut(&handle).ok_or(INVALID_VALUE)?;
        if size > physical.size {
            return Err(INVALID_VALUE);
        }
        physical.mappings += 1;
        self.mapped.insert(first, (size, handle));
        Ok(())
    }

    /// Unmaps all memory in a range, whose bounds must be bounds of mappings.
    pub(crate) fn unmap(&mut self, first: u64, size: u64) -> Result<(), Code> {
        let end = first.checked_add(size).ok_or(INVALID_VALUE)?;
        let mut inside = self.mapped.range(first..end);
        if inside.next_back().is_none_or(|(&at, &(size, _))| at + size > end) {
            return Err(INVALID_VALUE);
        }
        while let Some((&at, &(_, handle))) = self.mapped.range(first..end).next() {
            self.mapped.remove(&at);
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.mappings -= 1;
            }
            self.drop_unused(handle)?;
        }
        discard(first, size);
        Ok(())
    }

    /// The device of the memory at a mapped address.
    pub(super) fn mapped_device(&self, address: u64) -> Option<i32> {
        let (first, _) = self.mapped_range(address)?;
        Some(self.physical.get(&self.mapped[&first].1)?.device)
    }

    /// The mapping that an address lies in: first address and size.
    pub(super) fn mapped_range(&self, address: u64) -> Option<(u64, u64)> {
        let (&first, &(size, _)) = self.mapped.range(..=address).next_back()?;
        (address - first < size).then_some((first, size))
    }

    /// Gives memory back that has neither handles nor mappings.
    fn drop_unused(&mut self, handle: u64) -> Result<(), Code> {
        let physical = self.physical.get(&handle).ok_or(INVALID_VALUE)?;
        if physical.handles == 0 && physical.mappings == 0 {
            let (device, size) = (physical.device, physical.size);
            self.physical.remove(&handle);
            self.give(device, handle, size)?;
        }
        Ok(())
    }
}
