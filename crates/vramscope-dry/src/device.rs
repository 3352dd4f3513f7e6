//! The devices of this process and the memory that they have given out.

#![expect(unsafe_code, reason = "device memory is mapped into the program's address space")]

use crate::errors::{
    ALREADY_REGISTERED, Code, INVALID_DEVICE, INVALID_VALUE, NOT_REGISTERED, OUT_OF_MEMORY,
};
use crate::memory::{Addresses, PIECE, Reservations, round_up};
use crate::report::report;
use crate::settings::{Settings, settings};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

mod address;
pub(crate) mod fork;
mod mapped;
pub(crate) mod python;
mod shared;
#[cfg(test)]
mod tests;

use address::{
    DEVICE_ADDRESSES, DEVICES_FIRST, MOST_DEVICES, RESERVED_END, RESERVED_FIRST, discard,
};
pub(crate) use address::{is_device_memory, is_mapped, ranges};
pub(crate) use mapped::Physical;
use shared::Shared;

/// All devices.
#[derive(Debug)]
pub(crate) struct Devices {
    /// Memory of each device, in bytes.
    capacity: u64,
    /// By number.
    list: Vec<Device>,
    /// Address ranges for mapping.
    reservations: Reservations,
    /// Memory that was made for mapping, by handle.
    physical: BTreeMap<u64, Physical>,
    /// Size and handle of mapped memory, by first address.
    mapped: BTreeMap<u64, (u64, u64)>,
    /// Pinned host memory, by first address.
    pinned: BTreeMap<u64, Pinned>,
    /// Shared with the other processes of the run. `None`: this process counts alone.
    shared: Option<Shared>,
}

/// A device.
#[derive(Debug)]
struct Device {
    /// Memory of this process, with the context's, in bytes.
    used: u64,
    /// The addresses of its memory.
    addresses: Addresses,
    /// Bytes that were asked for from the device's pool, by first address.
    pooled: BTreeMap<u64, u64>,
    /// Numbers of the pool.
    pool: Pool,
}

/// Numbers of a device's memory pool, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pool {
    /// Taken from the device.
    pub(crate) reserved: u64,
    /// The greatest `reserved` until now.
    pub(crate) reserved_high: u64,
    /// Asked for.
    pub(crate) used: u64,
    /// The greatest `used` until now.
    pub(crate) used_high: u64,
}

/// Pinned host memory.
#[derive(Debug)]
struct Pinned {
    /// In bytes.
    size: u64,
    /// Whether the program allocated the memory itself.
    registered: bool,
}

/// The lock of the devices.
static DEVICES: LazyLock<Mutex<Devices>> = LazyLock::new(|| {
    fork::watch();
    // Values are computed at addresses that no copy has touched.
    is_mapped();
    Mutex::new(Devices::new(settings()))
});

thread_local! {
    /// The device that this thread works on.
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

/// The devices of this process.
pub(crate) fn devices() -> MutexGuard<'static, Devices> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of devices.
pub(crate) fn device_count() -> i32 {
    settings().devices.min(MOST_DEVICES) as i32
}

/// The device that this thread works on.
pub(crate) fn current_device() -> i32 {
    CURRENT.get()
}

/// Changes the device that this thread works on.
pub(crate) fn set_current_device(device: i32) -> Result<(), Code> {
    check_device(device)?;
    CURRENT.set(device);
    Ok(())
}

/// Fails unless a device has this number.
pub(crate) fn check_device(device: i32) -> Result<(), Code> {
    if (0..device_count()).contains(&device) { Ok(()) } else { Err(INVALID_DEVICE) }
}

impl Devices {
    /// Devices of which only the context is in use.
    fn new(settings: &Settings) -> Self {
        let device = |number: u64| {
            let first = DEVICES_FIRST + number * DEVICE_ADDRESSES;
            Device {
                used: settings.gpu.context_bytes,
                addresses: Addresses::new(first, first + DEVICE_ADDRESSES),
                pooled: BTreeMap::new(),
                pool: Pool::default(),
            }
        };
        Self {
            capacity: settings.gpu.total_bytes,
            list: (0..settings.devices.min(MOST_DEVICES) as u64).map(device).collect(),
            reservations: Reservations::new(RESERVED_FIRST, RESERVED_END),
            physical: BTreeMap::new(),
            mapped: BTreeMap::new(),
            pinned: BTreeMap::new(),
            shared: shared::open(settings),
        }
    }

    /// The device with a number.
    fn device(&mut self, number: i32) -> Result<&mut Device, Code> {
        let number = usize::try_from(number).map_err(|_| INVALID_DEVICE)?;
        self.list.get_mut(number).ok_or(INVALID_DEVICE)
    }

    /// Memory of each device, in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Changes the memory of each device, in bytes.
    pub(crate) fn set_capacity(&mut self, bytes: u64) {
        self.capacity = bytes;
    }

    /// Memory of a device in use, with the contexts', in bytes.
    pub(crate) fn used(&mut self, device: i32) -> Result<u64, Code> {
        Ok(self.processes(device)?.into_iter().map(|(_, used)| used).sum())
    }

    /// Memory of a device that is free, in bytes. Who asks gets a context.
    pub(crate) fn free(&mut self, device: i32) -> Result<u64, Code> {
        Ok(self.capacity.saturating_sub(self.touch(device)?))
    }

    /// The first address of the memory that the context of a device keeps.
    pub(crate) fn context(&mut self, device: i32) -> Result<u64, Code> {
        Ok(self.device(device)?.addresses.context())
    }

    /// Counts memory of a device as used.
    fn take(&mut self, device: i32, size: u64) -> Result<(), Code> {
        let used = self.device(device)?.used;
        let is_taken = match self.take_shared(device, used, size) {
            Some(is_taken) => is_taken,
            None => size <= self.capacity.saturating_sub(used),
        };
        if !is_taken {
            return Err(OUT_OF_MEMORY);
        }
        self.device(device)?.used += size;
        Ok(())
    }

    /// Allocates memory of a device. Returns its address, 0 for 0 bytes.
    pub(crate) fn allocate(&mut self, device: i32, bytes: u64) -> Result<u64, Code> {
        let size = round_up(bytes, PIECE).ok_or(OUT_OF_MEMORY)?;
        if size == 0 {
            return Ok(0);
        }
        let result = self.take(device, size).and_then(|()| {
            if let Some(address) = self.device(device)?.addresses.request(size) {
                self.own(address);
                return Ok(address);
            }
            // Fragmented addresses can have no room for what the device has memory for.
            self.give(device, 0, size)?;
            Err(OUT_OF_MEMORY)
        });
        if settings().trace > 1 {
            report(format_args!("vramscope: allocate {bytes} on device {device}: {result:x?}"));
        }
        result
    }

    /// Frees the memory that begins at `address`. 0 is no memory, and fine.
    pub(crate) fn release(&mut self, address: u64) -> Result<(), Code> {
        if address == 0 {
            return Ok(());
        }
        let number = Self::owner(address).ok_or(INVALID_VALUE)?;
        let device = self.device(number)?;
        if address == device.addresses.context() {
            return Err(INVALID_VALUE);
        }
        let size = device.addresses.release(address).ok_or(INVALID_VALUE)?;
        if let Some(asked) = device.pooled.remove(&address) {
            device.pool.used -= asked;
            device.pool.reserved -= size;
        }
        self.give(number, address, size)?;
        discard(address, size);
        if settings().trace > 1 {
            report(format_args!("vramscope: free {address:x}, {size} bytes"));
        }
        Ok(())
    }

    /// Allocates memory of a device from its pool.
    pub(crate) fn allocate_pooled(&mut self, device: i32, bytes: u64) -> Result<u64, Code> {
        let address = self.allocate(device, bytes)?;
        let device = self.device(device)?;
        if let Some((_, size)) = device.addresses.piece(address) {
            device.pooled.insert(address, bytes);
            let pool = &mut device.pool;
            pool.used += bytes;
            pool.used_high = pool.used_high.max(pool.used);
            pool.reserved += size;
            pool.reserved_high = pool.reserved_high.max(pool.reserved);
        }
        Ok(address)
    }

    /// The numbers of a device's pool.
    pub(crate) fn pool(&mut self, device: i32) -> Result<&mut Pool, Code> {
        Ok(&mut self.device(device)?.pool)
    }

    /// The device whose own range has an address.
    fn owner(address: u64) -> Option<i32> {
        let number = address.checked_sub(DEVICES_FIRST)? / DEVICE_ADDRESSES;
        i32::try_from(number).ok()
    }

    /// The device that an address belongs to. Reserved addresses without memory have none.
    pub(crate) fn device_of(&self, address: u64) -> Option<i32> {
        if (RESERVED_FIRST..RESERVED_END).contains(&address) {
            return self.mapped_device(address);
        }
        Self::owner(address).filter(|&device| (device as usize) < self.list.len())
    }

    /// The allocated, mapped or pinned memory that an address lies in: first address and size.
    pub(crate) fn range_of(&mut self, address: u64) -> Option<(u64, u64)> {
        self.mapped_range(address).or_else(|| self.pinned_range(address)).or_else(|| {
            let device = Self::owner(address)?;
            self.device(device).ok()?.addresses.piece(address)
        })
    }

    /// Remembers pinned host memory.
    pub(crate) fn pin(&mut self, first: u64, size: u64, registered: bool) -> Result<(), Code> {
        let last = first.saturating_add(size.saturating_sub(1));
        let before = self.pinned.range(..=last).next_back();
        if before.is_some_and(|(&at, pinned)| at + pinned.size.max(1) > first) {
            return Err(ALREADY_REGISTERED);
        }
        self.pinned.insert(first, Pinned { size, registered });
        Ok(())
    }

    /// Forgets pinned host memory that begins at `first`.
    pub(crate) fn unpin(&mut self, first: u64, registered: bool) -> Result<(), Code> {
        match self.pinned.get(&first) {
            Some(pinned) if pinned.registered == registered => {
                self.pinned.remove(&first);
                Ok(())
            }
            _ => Err(if registered { NOT_REGISTERED } else { INVALID_VALUE }),
        }
    }

    /// The pinned host memory that an address lies in: first address and size.
    pub(crate) fn pinned_range(&self, address: u64) -> Option<(u64, u64)> {
        let (&first, pinned) = self.pinned.range(..=address).next_back()?;
        (address - first < pinned.size).then_some((first, pinned.size))
    }
}
