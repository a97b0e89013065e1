//! The keys of entries.

/// Makes a structure for the keys of each entry. All have `at`, the time of the entry.
macro_rules! keys {
    ($($name:ident { $($key:ident: $type:ty,)* })+) => {$(
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            pub at: Option<crate::scenario::value::Time>,
            $(pub $key: $type,)*
        }
    )+};
}

pub(super) use keys;
