//! The value of a constant in a trial. `cargo xtask sweep` adds this file to the crates it sweeps.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

pub(crate) trait Number: Copy {
    fn half(self) -> Self;
    fn double(self) -> Self;
}

macro_rules! numbers {
    ($two:literal: $($number:ty)*) => {
        $(impl Number for $number {
            fn half(self) -> Self { self / $two }
            fn double(self) -> Self { self * $two }
        })*
    };
}
numbers!(2: u8 u16 u32 u64 u128 usize i32 i64 i128);
numbers!(2.0: f32 f64);

/// Constants that the run has read.
static READ: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];

/// The file that gets the index of each constant that the run reads.
static LOG: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let path = std::env::var_os("SWEEP_LOG")?;
    Some(Mutex::new(File::options().append(true).create(true).open(path).expect("the log")))
});

/// The trial: the index of a constant, and `half` or `double`.
static TRIAL: LazyLock<Option<(usize, bool)>> = LazyLock::new(|| {
    let trial = std::env::var("SWEEP_TRIAL").ok()?;
    let (index, change) = trial.split_once(' ').expect("an index and a change");
    Some((index.parse().expect("an index"), change == "half"))
});

pub(crate) fn get<T: Number>(index: usize, value: T) -> T {
    if let Some(log) = &*LOG
        && !READ[index].swap(true, Ordering::Relaxed)
    {
        writeln!(log.lock().expect("the log"), "{index}").expect("the log");
    }
    match *TRIAL {
        Some((trial, is_half)) if trial == index => {
            if is_half { value.half() } else { value.double() }
        }
        _ => value,
    }
}
