//! A process that forks takes its locks first: a thread that held one would not exist in the child.

use super::{DEVICES, Devices};
use crate::libraries::nccl::{COMMUNICATORS, Communicators};
use crate::libraries::sparse::{SIZES, Sizes};
use crate::libraries::unknown::{NAMES, Names};
use crate::runtime::timeline::{TIMELINE, Timeline};
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The locks, in the order in which a thread may take them.
type Locks = (
    MutexGuard<'static, Devices>,
    MutexGuard<'static, Timeline>,
    MutexGuard<'static, Communicators>,
    MutexGuard<'static, Sizes>,
    MutexGuard<'static, Names>,
);

thread_local! {
    /// The locks while this thread forks.
    static HELD: RefCell<Option<Locks>> = const { RefCell::new(None) };
}

/// Watches for forks, from the first call on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions need no lock that another thread can hold in the child.
        let result = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
        if result != 0 {
            crate::report::report(format_args!(
                "vramscope: forks are not watched: error {result}; a child can hang"
            ));
        }
    });
}

/// Takes all locks.
extern "C" fn before() {
    fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
    let locks = (lock(&DEVICES), lock(&TIMELINE), lock(&COMMUNICATORS), lock(&SIZES), lock(&NAMES));
    HELD.with_borrow_mut(|held| *held = Some(locks));
}

/// The child has none of the parent's memory.
extern "C" fn in_child() {
    HELD.with_borrow_mut(|held| {
        if let Some((devices, ..)) = held {
            devices.forked();
        }
    });
    after();
}

/// Releases all locks.
extern "C" fn after() {
    HELD.with_borrow_mut(|held| *held = None);
}
