//! The file that the processes of a dry run map: a slot for each that has touched a device.

use crate::device::address::MOST_DEVICES;
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Processes that the file has room for.
pub(super) const SLOTS: usize = 256;

/// What a process has taken of the devices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The process. 0: the slot is free.
    pub(super) pid: u64,
    /// When the process started, in ticks since the machine did: other processes get its number.
    pub(super) start: u64,
    /// Memory of each device, with the context's, in bytes. 0: the process has not touched it.
    pub(super) used: [u64; MOST_DEVICES],
}

/// The slots.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Slots {
    /// Slots that have been in use, from the first.
    count: usize,
    /// By number.
    list: [Slot; SLOTS],
}

/// The file's bytes.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Table {
    /// 0 until the mutex is made, which happens under a lock of the file.
    is_ready: UnsafeCell<u64>,
    /// The lock of the slots. A process that ends with it does not hold it any longer.
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    /// The slots.
    slots: UnsafeCell<Slots>,
}

// SAFETY: `with` reads and writes the slots under the lock, of threads and of processes alike.
unsafe impl Sync for Table {}

unsafe extern "C" {
    /// Sets what happens to a mutex whose owner has ended. The crate `libc` lacks it.
    fn pthread_mutexattr_setrobust(
        attributes: *mut libc::pthread_mutexattr_t,
        robust: libc::c_int,
    ) -> libc::c_int;
    /// Goes on with a mutex whose owner has ended.
    fn pthread_mutex_consistent(mutex: *mut libc::pthread_mutex_t) -> libc::c_int;
}

/// `PTHREAD_MUTEX_ROBUST` of `pthread.h`, in glibc and in musl.
const ROBUST: libc::c_int = 1;

/// The result of a function of `pthread.h`.
fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

impl Table {
    /// Maps the table in a file, for as long as the process lives. The first process makes it.
    pub(super) fn open(path: &Path) -> io::Result<&'static Self> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        file.lock()?;
        let table = Self::map(&file);
        // The mapping keeps the file open, and its lock with it.
        file.unlock()?;
        table
    }

    /// Maps the table in a locked file.
    fn map(file: &File) -> io::Result<&'static Self> {
        let size = size_of::<Self>();
        // A disk without room fails here, not at the first write to a page.
        // SAFETY: the file is open.
        check(unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) })?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping changes no other.
        let place = unsafe {
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping has the size, and stays. All zeros are a table with free slots.
        let table = unsafe { &*place.cast::<Self>() };
        // SAFETY: the file is locked, and only this function uses the field.
        let is_ready = unsafe { &mut *table.is_ready.get() };
        if *is_ready == 0 {
            table.make_mutex()?;
            *is_ready = 1;
        }
        Ok(table)
    }

    /// Makes the mutex.
    fn make_mutex(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are made first, and nobody uses the mutex before it is ready.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes))?;
            check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))?;
            check(pthread_mutexattr_setrobust(attributes, ROBUST))?;
            check(libc::pthread_mutex_init(self.mutex.get(), attributes))?;
            check(libc::pthread_mutexattr_destroy(attributes))
        }
    }

    /// Calls a function, which does not panic, with the slots. While no other process does the
    /// same, the kernel has no part in it.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Slots) -> R) -> io::Result<R> {
        // SAFETY: `open` made the mutex.
        match unsafe { libc::pthread_mutex_lock(self.mutex.get()) } {
            // Each write to the slots leaves them whole, and the slot of the ended is not counted.
            // SAFETY: this thread holds the lock.
            libc::EOWNERDEAD => check(unsafe { pthread_mutex_consistent(self.mutex.get()) })?,
            error => check(error)?,
        }
        // SAFETY: this thread holds the lock.
        let result = call(unsafe { &mut *self.slots.get() });
        // SAFETY: this thread holds the lock.
        check(unsafe { libc::pthread_mutex_unlock(self.mutex.get()) })?;
        Ok(result)
    }
}

impl Slots {
    /// The slots that have been in use.
    pub(super) fn all(&mut self) -> &mut [Slot] {
        &mut self.list[..self.count.min(SLOTS)]
    }

    /// Memory of a device that is in use, in bytes.
    pub(super) fn used(&mut self, device: usize) -> u64 {
        self.all().iter().map(|slot| slot.used[device]).sum()
    }

    /// Frees the slots of processes that have ended, except `own`.
    pub(super) fn drop_ended(&mut self, own: Option<usize>) {
        for (number, slot) in self.all().iter_mut().enumerate() {
            if slot.pid != 0 && Some(number) != own && started(slot.pid) != Some(slot.start) {
                slot.clear();
            }
        }
    }

    /// Takes a free slot for a process. `None`: there is none.
    pub(super) fn add(&mut self, pid: u64, start: u64) -> Option<usize> {
        let is_free = |slots: &mut Self| slots.all().iter().position(|slot| slot.pid == 0);
        let mut free = is_free(self);
        if free.is_none() && self.count < SLOTS {
            self.count += 1;
            free = Some(self.count - 1);
        }
        if free.is_none() {
            self.drop_ended(None);
            free = is_free(self);
        }
        let slot = &mut self.list[free?];
        slot.clear();
        (slot.pid, slot.start) = (pid, start);
        free
    }
}

impl Slot {
    /// Frees the slot.
    pub(super) fn clear(&mut self) {
        *self = Self { pid: 0, start: 0, used: [0; MOST_DEVICES] };
    }
}

/// When a process started, in ticks since the machine did. `None`: it has ended.
pub(super) fn started(pid: u64) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    started_of(&String::from_utf8_lossy(&text))
}

/// When a process started, by its `stat` (`man 5 proc`). A process that nobody has waited for yet
/// has ended, unless only its first thread has.
pub(super) fn started_of(stat: &str) -> Option<u64> {
    // The name of the program, the second field, can have blanks and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let [state, threads] = [3, 20].map(|number| fields.get(number - 3));
    if matches!(*state?, "Z" | "X") && *threads? == "1" {
        return None;
    }
    fields.get(22 - 3)?.parse().ok()
}
