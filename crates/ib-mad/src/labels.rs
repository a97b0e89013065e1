//! A macro for enums whose variants have labels.

/// Defines an enum from a table of its variants: name, code if any, label in metrics and tables, documentation.
///
/// ```
/// ib_mad::labeled_enum! {
///     /// A color.
///     pub enum Color {
///         Red = 1, "red", "The color of errors.";
///         Green = 2, "green", "The color of links.";
///     }
/// }
/// assert_eq!(Color::ALL.map(Color::label), ["red", "green"]);
/// ```
#[macro_export]
macro_rules! labeled_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($variant:ident $(= $code:literal)?, $label:literal, $doc:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $doc] $variant $(= $code)?),+ }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($label),+].len()] = [$($name::$variant),+];

            /// Label in metrics and tables.
            pub fn label(self) -> &'static str {
                match self { $($name::$variant => $label),+ }
            }
        }
    };
}
