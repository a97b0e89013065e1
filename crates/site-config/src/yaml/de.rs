//! Deserializes `serde` types from the tree.

use serde::Deserializer;
use serde::de::value::{StrDeserializer, U64Deserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::SPANNED;
use super::error::ReadError;
use super::tree::{Child, Content, Document, Node, Position};
use crate::suggestion::quoted;

/// The most values of a file. More are aliases of aliases, as a file has at most 16 MiB.
const MAX_VALUES: usize = 1 << 22;

/// Deserializes a value of the tree.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'d> {
    document: &'d Document,
    node: &'d Node,
    id: usize,
    position: Position,
}

impl<'d> ValueDeserializer<'d> {
    /// Of the root; `None` if the file is empty.
    pub(super) fn root(document: &'d Document) -> Option<Self> {
        document.values_read.set(0);
        let root = ValueDeserializer::new(document, document.root?, None);
        (!root.node.is_null()).then_some(root)
    }

    fn new(document: &'d Document, id: usize, position: Option<Position>) -> Self {
        let node = &document.nodes[id];
        ValueDeserializer { document, node, id, position: position.unwrap_or(node.position) }
    }

    fn scalar(&self) -> Result<&'d str, ReadError> {
        match &self.node.content {
            Content::Scalar { text, .. } => Ok(text),
            Content::List(_) => Err(ReadError::new("has to be a single value, not a list")),
            Content::Map(_) => {
                Err(ReadError::new("has to be a single value, not a mapping (keys with values)"))
            }
        }
    }

    fn integer<T: TryFrom<i128>>(&self, least: i128, most: i128) -> Result<T, ReadError> {
        let text = self.scalar()?;
        let number = parse_integer(text).filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let range = match (least, most > u32::MAX.into()) {
                (0, true) => "that is not negative".to_owned(),
                _ => format!("between {least} and {most}"),
            };
            ReadError::new(format!("{} is not a whole number {range}", quoted(text)))
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
    let is_one_of = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["true", "yes", "y", "on"]) {
        Some(true)
    } else {
        is_one_of(["false", "no", "n", "off"]).then_some(false)
    }
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

    /// For types that accept several kinds of values: by the notation of the value.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.content {
            Content::List(_) => self.deserialize_seq(visitor),
            Content::Map(_) => self.deserialize_map(visitor),
            Content::Scalar { .. } if self.node.is_null() => visitor.visit_unit(),
            Content::Scalar { text, plain: false } => visitor.visit_str(text),
            Content::Scalar { text, .. } => {
                let truth = ["true", "True", "TRUE", "false", "False", "FALSE"]
                    .contains(&text.as_str())
                    .then(|| parse_bool(text))
                    .flatten();
                if let Some(truth) = truth {
                    return visitor.visit_bool(truth);
                }
                match parse_integer(text) {
                    Some(number) => match (u64::try_from(number), i64::try_from(number)) {
                        (Ok(number), _) => visitor.visit_u64(number),
                        (_, Ok(number)) => visitor.visit_i64(number),
                        _ => visitor.visit_str(text),
                    },
                    None => match text.parse::<f64>() {
                        Ok(number) if number.is_finite() => visitor.visit_f64(number),
                        _ => visitor.visit_str(text),
                    },
                }
            }
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
        let text = self.scalar()?;
        let truth = parse_bool(text)
            .ok_or_else(|| ReadError::new(format!("{} is neither true nor false", quoted(text))))?;
        visitor.visit_bool(truth)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let text = self.scalar()?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| ReadError::new(format!("{} is not a number", quoted(text))))?;
        visitor.visit_f64(number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let text = self.scalar()?;
        if self.node.is_null() {
            return Err(ReadError::new("has no value: leave the key out, or quote the text"));
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

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == SPANNED {
            visitor.visit_seq(SpannedParts { value: self, given: 0 })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.content {
            Content::List(_) => visitor.visit_seq(Entries { container: self, next: 0 }),
            _ if self.node.is_null() => visitor.visit_seq(Entries { container: self, next: 0 }),
            Content::Map(_) => Err(ReadError::new(
                "has to be a list ([a, b], or a line \"- a\" each), not a mapping (keys with values)",
            )),
            Content::Scalar { .. } => Err(ReadError::new(
                "has to be a list ([a, b], or a line \"- a\" each), not a single value",
            )),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.content {
            Content::Map(_) => visitor.visit_map(Entries { container: self, next: 0 }),
            _ if self.node.is_null() => visitor.visit_map(Entries { container: self, next: 0 }),
            Content::List(_) => {
                Err(ReadError::new("has to be a mapping (a line \"key: value\" each), not a list"))
            }
            Content::Scalar { .. } => Err(ReadError::new(
                "has to be a mapping (a line \"key: value\" each), not a single value",
            )),
        }
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
        match &self.node.content {
            Content::Scalar { text, .. } => {
                let name: StrDeserializer<'_, ReadError> = text.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Content::Map(children) => {
                let mut given = children.iter().enumerate().filter(|(_, child)| !child.removed);
                match (given.next(), given.next()) {
                    (Some((index, _)), None) => {
                        visitor.visit_enum(Variant { container: self, index })
                    }
                    (None, _) if children.is_empty() => {
                        Err(ReadError::new(format!("has to be one of: {}", known.join(", "))))
                    }
                    // Its one key was removed, and has a diagnostic.
                    (None, _) => Err(ReadError::missing_field("name")),
                    (_, Some((index, _))) => {
                        let error = ReadError::new(
                            "one key too many: here stands one thing, with all its keys behind its name",
                        );
                        Err(error.within(self.document, self.id, index, true))
                    }
                }
            }
            Content::List(_) => {
                Err(ReadError::new(format!("has to be one of: {}; not a list", known.join(", "))))
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// The entries of a list or a mapping.
struct Entries<'d> {
    container: ValueDeserializer<'d>,
    next: usize,
}

impl<'d> Entries<'d> {
    /// The next entry that is not removed.
    fn advance(&mut self) -> Result<Option<(usize, &'d Child)>, ReadError> {
        let children = self.container.node.children();
        let found = children.iter().enumerate().skip(self.next).find(|(_, child)| !child.removed);
        self.next = found.map_or(children.len(), |(index, _)| index + 1);
        let read = self.container.document.values_read.get() + usize::from(found.is_some());
        self.container.document.values_read.set(read);
        if read > MAX_VALUES {
            return Err(ReadError::new("its aliases (*) come to too many values"));
        }
        Ok(found)
    }
}

impl<'de> SeqAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some((index, child)) = self.advance()? else { return Ok(None) };
        let ValueDeserializer { document, id, .. } = self.container;
        let value =
            seed.deserialize(ValueDeserializer::new(document, child.node, Some(child.position)));
        value.map(Some).map_err(|error| error.within(document, id, index, false))
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((index, child)) = self.advance()? else { return Ok(None) };
        let ValueDeserializer { document, id, .. } = self.container;
        let key = child.key.unwrap_or(child.node);
        let key = seed.deserialize(ValueDeserializer::new(document, key, None));
        key.map(Some).map_err(|error| error.within(document, id, index, true))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let ValueDeserializer { document, id, node, .. } = self.container;
        let index = self.next.saturating_sub(1);
        let child = &node.children()[index];
        let value =
            seed.deserialize(ValueDeserializer::new(document, child.node, Some(child.position)));
        value.map_err(|error| error.within(document, id, index, false))
    }
}

/// The line, the column and the value of a [`super::Spanned`].
struct SpannedParts<'d> {
    value: ValueDeserializer<'d>,
    given: usize,
}

impl<'de> SeqAccess<'de> for SpannedParts<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        self.given += 1;
        let number = |number: u64| -> U64Deserializer<ReadError> { number.into_deserializer() };
        match self.given {
            1 => seed.deserialize(number(self.value.position.0)).map(Some),
            2 => seed.deserialize(number(self.value.position.1)).map(Some),
            3 => seed.deserialize(self.value).map(Some),
            _ => Ok(None),
        }
    }
}

/// A variant of an enum with its content: `flap: {link: x}`.
struct Variant<'d> {
    container: ValueDeserializer<'d>,
    index: usize,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let ValueDeserializer { document, id, node, .. } = self.container;
        let child = &node.children()[self.index];
        let key = ValueDeserializer::new(document, child.key.unwrap_or(child.node), None);
        let name =
            seed.deserialize(key).map_err(|error| error.within(document, id, self.index, true))?;
        Ok((name, self))
    }
}

impl<'d> Variant<'d> {
    fn value<T>(
        self,
        read: impl FnOnce(ValueDeserializer<'d>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let ValueDeserializer { document, id, node, .. } = self.container;
        let child = &node.children()[self.index];
        read(ValueDeserializer::new(document, child.node, Some(child.position)))
            .map_err(|error| error.within(document, id, self.index, false))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        let refuse = |at: ValueDeserializer<'_>| {
            if at.node.is_null() { Ok(()) } else { Err(ReadError::new("has no value of its own")) }
        };
        self.value(refuse)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.value(|at| seed.deserialize(at))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.value(|at| at.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.value(|at| at.deserialize_map(visitor))
    }
}
