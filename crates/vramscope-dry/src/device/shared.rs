//! Memory of a device, shared with the other processes of the dry run.
//!
//! A process that takes memory, or asks how much is free, has a context on the device from then on.
//! What a process has counts until it ends, however it ends. What the parent of a forked process
//! holds stays the parent's.

use super::Devices;
use super::address::MOST_DEVICES;
use crate::errors::Code;
use crate::report::report;
use crate::settings::Settings;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

mod table;
#[cfg(test)]
mod tests;

use table::{SLOTS, Slots, Table, started};

/// The part of this process in the memory that is shared.
#[derive(Debug)]
pub(super) struct Shared {
    /// What all processes have.
    table: &'static Table,
    /// The slot of this process. `None`: it has not touched a device.
    slot: Option<usize>,
    /// Addresses and handles of memory that the parent of this process holds.
    inherited: BTreeSet<u64>,
    /// The numbers of this process's devices for the machine.
    numbers: [usize; MOST_DEVICES],
    /// What the context of a device takes, in bytes.
    context: u64,
}

impl Shared {
    /// Maps the file of the run.
    fn open(path: &Path, context: u64, visible: Option<&str>) -> io::Result<Self> {
        let table = Table::open(path)?;
        let (pid, start) = this_process()?;
        // A program that has replaced itself by another keeps its number, and has lost its memory.
        table.with(|slots| {
            let before = slots.all().iter_mut().find(|slot| (slot.pid, slot.start) == (pid, start));
            before.into_iter().for_each(table::Slot::clear);
        })?;
        let (inherited, numbers) = (BTreeSet::new(), numbers(visible));
        Ok(Self { table, slot: None, inherited, numbers, context })
    }

    /// Calls a function with the slots and the number of this process's.
    fn with<R>(&mut self, call: impl FnOnce(&mut Slots, usize) -> R) -> io::Result<R> {
        let slot = match self.slot {
            Some(slot) => slot,
            None => {
                let (pid, start) = this_process()?;
                let slot = self.table.with(|slots| slots.add(pid, start))?;
                let full = || io::Error::other(format!("{SLOTS} processes have touched a device"));
                *self.slot.insert(slot.ok_or_else(full)?)
            }
        };
        self.table.with(|slots| call(slots, slot))
    }

    /// Counts `size` more bytes than `used` for this process, if the device has them.
    fn take(&mut self, device: i32, used: u64, size: u64, capacity: u64) -> io::Result<bool> {
        let number = self.numbers[device as usize];
        self.with(|slots, own| {
            slots.all()[own].used[number] = used;
            let fits = |slots: &mut Slots| size <= capacity.saturating_sub(slots.used(number));
            let mut is_taken = fits(slots);
            if !is_taken {
                slots.drop_ended(Some(own));
                is_taken = fits(slots);
            }
            if is_taken {
                slots.all()[own].used[number] = used + size;
            }
            is_taken
        })
    }

    /// Counts `used` bytes for this process.
    fn set(&mut self, device: i32, used: u64) -> io::Result<()> {
        let number = self.numbers[device as usize];
        self.with(|slots, own| slots.all()[own].used[number] = used)
    }

    /// Memory of a device that all processes have, in bytes.
    fn used(&mut self, device: i32) -> io::Result<u64> {
        let number = self.numbers[device as usize];
        self.with(|slots, own| {
            slots.drop_ended(Some(own));
            slots.used(number)
        })
    }

    /// The processes that have touched a device of the machine, and the bytes that each has.
    fn processes(&mut self, number: usize) -> io::Result<Vec<(u32, u64)>> {
        let own = self.slot;
        self.table.with(|slots| {
            slots.drop_ended(own);
            let all = slots.all().iter().map(|slot| (slot.pid as u32, slot.used[number]));
            all.filter(|&(_, used)| used > 0).collect()
        })
    }
}

/// The number of this process, and when it started.
fn this_process() -> io::Result<(u64, u64)> {
    let pid = u64::from(std::process::id());
    let start = started(pid).ok_or_else(|| io::Error::other("/proc does not tell the start"))?;
    Ok((pid, start))
}

/// The numbers of devices for the machine: `CUDA_VISIBLE_DEVICES` gives a process other ones. A
/// device that it does not list keeps its number.
fn numbers(visible: Option<&str>) -> [usize; MOST_DEVICES] {
    let mut numbers = std::array::from_fn(|device| device);
    for (number, word) in numbers.iter_mut().zip(visible.unwrap_or_default().split(',')) {
        match word.trim().parse() {
            Ok(listed) if listed < MOST_DEVICES => *number = listed,
            _ => break,
        }
    }
    numbers
}

/// The part of this process in the memory that is shared, if any is.
pub(super) fn open(settings: &Settings) -> Option<Shared> {
    let path = settings.shared.as_deref()?;
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    Shared::open(path, settings.gpu.context_bytes, visible.as_deref())
        .map_err(|error| tell(&error))
        .ok()
}

/// Tells that this process counts alone.
fn tell(error: &io::Error) {
    let pid = std::process::id();
    report(format_args!(
        "vramscope: devices are not shared with other processes: {error}; process {pid} counts \
         alone"
    ));
}

impl Devices {
    /// Calls a function with the memory that is shared. `None`: this process counts alone.
    fn with_shared<R>(&mut self, call: impl FnOnce(&mut Shared) -> io::Result<R>) -> Option<R> {
        call(self.shared.as_mut()?)
            .map_err(|error| {
                tell(&error);
                self.shared = None;
            })
            .ok()
    }

    /// Whether the other processes leave room for `size` bytes, which are counted then. `None`:
    /// this process counts alone.
    pub(super) fn take_shared(&mut self, device: i32, used: u64, size: u64) -> Option<bool> {
        let capacity = self.capacity;
        self.with_shared(|shared| shared.take(device, used, size, capacity))
    }

    /// Memory at an address is this process's, even if the parent had memory there.
    pub(super) fn own(&mut self, address: u64) {
        if let Some(shared) = &mut self.shared {
            shared.inherited.remove(&address);
        }
    }

    /// Counts memory as free that was an allocation's: `key` is its address or handle.
    pub(super) fn give(&mut self, device: i32, key: u64, size: u64) -> Result<(), Code> {
        if self.shared.as_mut().is_some_and(|shared| shared.inherited.remove(&key)) {
            return Ok(());
        }
        let used = &mut self.device(device)?.used;
        *used -= size;
        let used = *used;
        self.with_shared(|shared| shared.set(device, used));
        Ok(())
    }

    /// Memory of a device in use by all processes, in bytes. This process touches it.
    pub(super) fn touch(&mut self, device: i32) -> Result<u64, Code> {
        let used = self.device(device)?.used;
        let all = self.with_shared(|shared| {
            shared.set(device, used)?;
            shared.used(device)
        });
        Ok(all.unwrap_or(used))
    }

    /// The processes that use a device of the machine, and the bytes that each has.
    pub(crate) fn processes(&mut self, device: i32) -> Result<Vec<(u32, u64)>, Code> {
        let used = self.device(device)?.used;
        let processes = self.with_shared(|shared| shared.processes(device as usize));
        Ok(processes.unwrap_or_else(|| vec![(std::process::id(), used)]))
    }

    /// In a child after a fork: nothing of what the parent holds is this process's.
    pub(super) fn forked(&mut self) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        shared.slot = None;
        shared.inherited.extend(self.physical.keys());
        for device in &mut self.list {
            shared.inherited.extend(device.addresses.pieces());
            device.used = shared.context;
        }
    }
}
