//! Enums whose variants have names.

/// Declares an enum with a name for each variant, its `name()` and its list `ALL`.
///
/// ```
/// vramscope_units::named! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Size {
///         Small = "small",
///         VeryLarge = "very_large",
///     }
/// }
/// assert_eq!(Size::ALL.map(Size::name), ["small", "very_large"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $of:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $of {
            $($(#[$of_variant])* $variant,)*
        }

        impl $of {
            /// All variants, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in JSON and texts.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
