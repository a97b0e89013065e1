//! Enums whose variants have labels.

/// Defines an enum from a table of its variants: name, code if any, label in metrics and tables, documentation.
///
/// ```
/// display_text::labeled_enum! {
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
        $($(#[$of_variant:meta])* $variant:ident $(= $code:literal)?, $label:literal, $doc:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$of_variant])* #[doc = $doc] $variant $(= $code)?),+ }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($label),+].len()] = [$($name::$variant),+];

            /// Label in metrics and tables.
            pub fn label(self) -> &'static str {
                match self { $($name::$variant => $label),+ }
            }

            /// A sentence that explains it.
            pub fn help(self) -> &'static str {
                match self { $($name::$variant => $doc),+ }
            }

            /// The labels of all variants, for messages.
            pub fn labels() -> String {
                Self::ALL.map(Self::label).join(", ")
            }

            /// The variant with this label.
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.label() == label)
            }

            /// The variant with this discriminant, for enums whose discriminants are codes.
            pub fn from_discriminant(code: impl Into<u64>) -> Option<Self> {
                let code = code.into();
                Self::ALL.into_iter().find(|it| *it as u64 == code)
            }
        }
    };
}
