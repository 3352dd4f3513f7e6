//! How the functions of the libraries are exported.

/// Exports functions of a library of Nvidia as `vs_NAME`, with the calling convention of C.
macro_rules! api {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $out:ty $body:block
    )*) => {$(
        $(#[$meta])*
        #[unsafe(export_name = concat!("vs_", stringify!($name)))]
        #[expect(non_snake_case, reason = "the names are those of the libraries")]
        #[allow(clippy::allow_attributes, unused_unsafe, reason = "a function may have no pointer")]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> $out {
            // SAFETY: the caller keeps the contract of the function of this name.
            unsafe { $body }
        }
    )*};
}
pub(crate) use api;
