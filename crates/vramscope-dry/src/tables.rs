//! Tables of functions that need no code of their own.
//!
//! A function may have fewer parameters than its caller passes: the calling conventions of x86-64
//! and of aarch64 leave the rest unread.

#![expect(unsafe_code, reason = "results go through pointers of the caller")]

use std::sync::atomic::{AtomicU64, Ordering};

/// A new handle. Callers pass handles back and never read through them.
pub(crate) fn new_handle() -> u64 {
    // Handles have the alignment of pointers: PyTorch takes an odd stream for an id of its own.
    static NEXT: AtomicU64 = AtomicU64::new(0x1_0000);
    NEXT.fetch_add(16, Ordering::Relaxed)
}

/// Writes `value` to `place`, unless that is null.
///
/// # Safety
///
/// `place` is null or valid for writes of a `T`.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises that the place can be written to.
        unsafe { place.write(value) };
    }
}

/// Exports functions that succeed and do nothing else.
macro_rules! succeed {
    ($($name:ident)*) => {$crate::abi::api! {$(
        /// Succeeds: a dry run has nothing to do.
        fn $name() -> i32 { 0 }
    )*}};
}
pub(crate) use succeed;

/// Exports functions that fail, as on a device without the feature: the result, then names.
macro_rules! refuse {
    ($result:expr; $($name:ident)*) => {$crate::abi::api! {$(
        /// Fails: a dry run has no such feature.
        fn $name() -> i32 { $result }
    )*}};
}
pub(crate) use refuse;

/// Exports functions that write a new handle through their first argument.
macro_rules! handles {
    ($($name:ident)*) => {$crate::abi::api! {$(
        /// Writes a new handle.
        fn $name(handle: *mut u64) -> i32 {
            $crate::tables::put(handle, $crate::tables::new_handle());
            0
        }
    )*}};
}
pub(crate) use handles;

/// Exports functions that write zero to one output, or to two that follow each other: `one` or
/// `two`, the type and the place (from 1) of the output among the arguments, then names.
macro_rules! zeros {
    (@ 2 $($rest:tt)*) => { zeros! { # (a) $($rest)* } };
    (@ 3 $($rest:tt)*) => { zeros! { # (a b) $($rest)* } };
    (@ 4 $($rest:tt)*) => { zeros! { # (a b c) $($rest)* } };
    (@ 5 $($rest:tt)*) => { zeros! { # (a b c d) $($rest)* } };
    (@ 6 $($rest:tt)*) => { zeros! { # (a b c d e) $($rest)* } };
    (@ 7 $($rest:tt)*) => { zeros! { # (a b c d e f) $($rest)* } };
    (@ 8 $($rest:tt)*) => { zeros! { # (a b c d e f g) $($rest)* } };
    (@ 9 $($rest:tt)*) => { zeros! { # (a b c d e f g h) $($rest)* } };
    (@ 10 $($rest:tt)*) => { zeros! { # (a b c d e f g h i) $($rest)* } };
    (@ 11 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j) $($rest)* } };
    (@ 12 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k) $($rest)* } };
    (@ 13 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k l) $($rest)* } };
    (@ 14 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k l m) $($rest)* } };
    (@ 17 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k l m n o p) $($rest)* } };
    (@ 18 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k l m n o p q) $($rest)* } };
    (@ 20 $($rest:tt)*) => { zeros! { # (a b c d e f g h i j k l m n o p q r s) $($rest)* } };
    (# ($($before:ident)*) one $type:ty, $name:ident) => {$crate::abi::api! {
        /// Writes zero to its output.
        #[expect(unused_variables, reason = "they give the output its place")]
        fn $name($($before: usize,)* out: *mut $type) -> i32 {
            $crate::tables::put(out, <$type>::default());
            0
        }
    }};
    (# ($($before:ident)*) two $type:ty, $name:ident) => {$crate::abi::api! {
        /// Writes zero to its outputs.
        #[expect(unused_variables, reason = "they give the outputs their places")]
        fn $name($($before: usize,)* out: *mut $type, next: *mut $type) -> i32 {
            $crate::tables::put(out, <$type>::default());
            $crate::tables::put(next, <$type>::default());
            0
        }
    }};
    ($($number:ident $type:ty, $place:tt: $($name:ident)*;)*) => {
        $(zeros! { ! $number $type, $place: $($name)* })*
    };
    (! $number:ident $type:ty, $place:tt: $($name:ident)*) => {
        $(zeros! { @ $place $number $type, $name })*
    };
}
pub(crate) use zeros;
