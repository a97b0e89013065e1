//! Deserializes `serde` types from the tree.

use serde::Deserializer;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::read_error::ReadError;
use super::tree::{Child, Document, EntryIndex, Kind, Node};
use crate::suggestion::quoted;

/// The most values of a file. More are aliases of aliases, as a file has at most 16 MiB.
const MAX_VALUES: usize = 1 << 22;

/// Deserializes a value of the tree.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'d> {
    document: &'d Document,
    node: &'d Node,
    id: usize,
}

impl<'d> ValueDeserializer<'d> {
    /// The deserializer of the root; `None` if the file is empty.
    pub(super) fn root(document: &'d Document) -> Option<Self> {
        document.values_read.set(0);
        let root = ValueDeserializer::new(document, document.root?);
        (!root.node.is_null()).then_some(root)
    }

    fn new(document: &'d Document, id: usize) -> Self {
        ValueDeserializer { document, node: &document.nodes[id], id }
    }

    /// The error of a value that has the wrong form.
    fn refused(&self, wanted: &str) -> ReadError {
        let is = match self.node.kind {
            Kind::Plain | Kind::Quoted => "a single value",
            Kind::List => "a list",
            Kind::Map => "a mapping (keys with values)",
        };
        ReadError::new(format!("must be {wanted}, not {is}"))
    }

    fn scalar(&self) -> Result<&'d str, ReadError> {
        match self.node.kind {
            Kind::Plain | Kind::Quoted => Ok(&self.node.text),
            Kind::List | Kind::Map => Err(self.refused("a single value")),
        }
    }

    fn entries(self) -> Entries<'d> {
        Entries { container: self, next: 0 }
    }

    fn parsed<T>(&self, parse: fn(&str) -> Option<T>, problem: &str) -> Result<T, ReadError> {
        let text = self.scalar()?;
        parse(text).ok_or_else(|| ReadError::new(format!("{} {problem}", quoted(text))))
    }

    fn integer<T: TryFrom<i128>>(&self, least: i128, most: i128) -> Result<T, ReadError> {
        // Without a range: a setting may have a smaller one than its type.
        let number = self.parsed(parse_integer, "is not a whole number")?;
        T::try_from(number).map_err(|_| {
            let range = match (least, most > u32::MAX.into()) {
                (0, true) => "that is not negative".to_owned(),
                _ => format!("between {least} and {most}"),
            };
            let text = quoted(&self.node.text);
            ReadError::new(format!("{text} is not a whole number {range}"))
        })
    }
}

/// A whole number in the notations of YAML.
fn parse_integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, radix)))
        .unwrap_or((digits, 10));
    let plain = digits.starts_with(|char: char| char.is_ascii_hexdigit()) && !digits.ends_with('_');
    let number = i128::from_str_radix(&digits.replace('_', ""), radix).ok();
    number.filter(|_| plain).map(|number| sign * number)
}

/// A boolean in the notations of YAML, including those of version 1.1.
fn parse_bool(text: &str) -> Option<bool> {
    match &*text.to_ascii_lowercase() {
        "true" | "yes" | "y" | "on" => Some(true),
        "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

fn parse_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let number = self.integer::<$type>(<$type>::MIN.into(), <$type>::MAX.into())?;
            visitor.$visit(number)
        }
    )+};
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_> {
    type Error = ReadError;

    /// For types that accept a single value or several: each single value is the text that the file has.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.kind {
            Kind::List => self.deserialize_seq(visitor),
            Kind::Map => self.deserialize_map(visitor),
            Kind::Plain if self.node.is_null() => visitor.visit_unit(),
            // `1_000` is a number, as in other keys.
            Kind::Plain => match parse_integer(&self.node.text) {
                Some(number) => visitor.visit_str(&number.to_string()),
                None => visitor.visit_str(&self.node.text),
            },
            Kind::Quoted => visitor.visit_str(&self.node.text),
        }
    }

    integers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_bool(self.parsed(parse_bool, "is neither true nor false")?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_f64(self.parsed(parse_float, "is not a number")?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let text = self.scalar()?;
        if self.node.is_null() {
            return Err(ReadError::new("has no value: remove the key, or quote the text"));
        }
        visitor.visit_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_str(self.scalar()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// For a variant of an enum that has no content.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.is_null() {
            visitor.visit_unit()
        } else {
            Err(ReadError::new("takes no value"))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.kind == Kind::List || self.node.is_null() {
            return visitor.visit_seq(self.entries());
        }
        Err(self.refused("a list ([a, b], or one line \"- a\" per entry)"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.node.kind == Kind::Map || self.node.is_null() {
            return visitor.visit_map(self.entries());
        }
        Err(self.refused("a mapping (one line \"key: value\" per key)"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let one_of = || format!("must be one of: {}", known.join(", "));
        let children = &self.node.children;
        let mut given = children.iter().enumerate().filter(|(_, child)| !child.removed);
        match (self.node.kind, given.next(), given.next()) {
            (Kind::Plain | Kind::Quoted, ..) => {
                visitor.visit_enum(StrDeserializer::new(&self.node.text))
            }
            (Kind::List, ..) => Err(ReadError::new(one_of() + "; not a list")),
            (Kind::Map, None, _) if children.is_empty() => Err(ReadError::new(one_of())),
            // Its one key was removed, and has a diagnostic.
            (Kind::Map, None, _) => Err(ReadError::repeated(one_of())),
            // `flap: {link: x}`
            (Kind::Map, Some(_), None) => {
                visitor.visit_enum(MapAccessDeserializer::new(self.entries()))
            }
            (Kind::Map, Some(_), Some((index, _))) => Err(ReadError::new(
                "too many keys: only one name is allowed here, with its keys indented below it",
            )
            .within(EntryIndex { container: self.id, index }, true)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 char bytes byte_buf unit_struct tuple tuple_struct
    }
}

/// The entries of a list or a mapping.
struct Entries<'d> {
    container: ValueDeserializer<'d>,
    next: usize,
}

impl<'d> Entries<'d> {
    /// The next entry that is not removed.
    fn advance(&mut self) -> Result<Option<&'d Child>, ReadError> {
        let children = &self.container.node.children;
        let found = children.iter().enumerate().skip(self.next).find(|(_, child)| !child.removed);
        self.next = found.map_or(children.len(), |(index, _)| index + 1);
        let read = self.container.document.values_read.get() + usize::from(found.is_some());
        self.container.document.values_read.set(read);
        if read > MAX_VALUES {
            return Err(ReadError::new("its aliases (*) expand to too many values"));
        }
        Ok(found.map(|(_, child)| child))
    }

    /// Reads the key or the value of the entry that was found last.
    fn read<'de, T: DeserializeSeed<'de>>(
        &self,
        seed: T,
        key: Option<usize>,
        child: &Child,
    ) -> Result<T::Value, ReadError> {
        let value = ValueDeserializer::new(self.container.document, key.unwrap_or(child.node));
        let entry = EntryIndex { container: self.container.id, index: self.next.saturating_sub(1) };
        seed.deserialize(value).map_err(|error| error.within(entry, key.is_some()))
    }
}

impl<'de> SeqAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(child) = self.advance()? else { return Ok(None) };
        self.read(seed, None, child).map(Some)
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some(child) = self.advance()? else { return Ok(None) };
        self.read(seed, child.key, child).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let child = &self.container.node.children[self.next.saturating_sub(1)];
        self.read(seed, None, child)
    }
}
