//! Reads `serde` types from the tree. Each error knows the entry of the tree that it is about.

use std::fmt;

use serde::Deserializer;
use serde::de::value::{StrDeserializer, U64Deserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::tree::{Content, Document, Node, Place, join};
use super::{Mistake, SPANNED};
use crate::near::{meant, quoted};

/// More values than this are aliases of aliases: a file is at most 16 MiB.
const MOST_VALUES: usize = 1 << 22;

/// Why a type refuses a value.
#[derive(Debug)]
pub(super) enum Kind {
    /// For this reason.
    Refused(String),
    /// A key is missing in a mapping.
    Missing(&'static str),
}

/// An entry of a container that a type refuses.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) kind: Kind,
    spot: Option<Spot>,
    /// The way to the entry, from the entry up.
    way: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    container: usize,
    index: usize,
    /// It is about the key.
    at_key: bool,
}

impl Wrong {
    fn new(problem: impl Into<String>) -> Self {
        Wrong { kind: Kind::Refused(problem.into()), spot: None, way: Vec::new() }
    }

    /// The same, as it comes out of an entry of a container.
    fn out_of(mut self, document: &Document, container: usize, index: usize, at_key: bool) -> Self {
        self.spot.get_or_insert(Spot { container, index, at_key });
        self.way.push(document.step(container, index));
        self
    }

    /// Whether the mapping that misses a key had more keys, which were wrong.
    pub(super) fn has_removed(&self, document: &Document) -> bool {
        let node = self.spot.map_or(document.root, |spot| {
            document.nodes[spot.container].children().get(spot.index).map(|child| child.node)
        });
        let children = node.map_or(&[][..], |node| document.nodes[node].children());
        children.iter().any(|child| child.removed)
    }

    /// What to say of it.
    pub(super) fn mistake(&self, document: &Document) -> Mistake {
        let place = match self.spot {
            None => document.root.map_or((1, 1), |root| document.nodes[root].place),
            Some(spot) => {
                document.nodes[spot.container].children().get(spot.index).map_or((1, 1), |child| {
                    match child.key.filter(|_| spot.at_key) {
                        Some(key) => document.nodes[key].place,
                        None => child.place,
                    }
                })
            }
        };
        let key = self.way.iter().rev().fold(String::new(), |path, step| join(&path, step));
        let problem = match &self.kind {
            Kind::Refused(problem) => problem.clone(),
            Kind::Missing(field) => format!("the key {field:?} is missing"),
        };
        Mistake { line: place.0, column: place.1, key, problem }
    }

    /// Takes the entry out of the tree; `false` if there is none.
    pub(super) fn remove(&self, document: &mut Document) -> bool {
        self.spot.is_some_and(|spot| document.remove(spot.container, spot.index))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl std::error::Error for Wrong {}

/// What is known, to be put behind what is not; and what may have been meant.
fn hint(given: &str, known: &[&str]) -> String {
    format!("{}; known: {}", meant(given, known.iter().copied()), known.join(", "))
}

impl Error for Wrong {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Wrong::new(problem.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Wrong::new(format!("has to be {expected}"))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Wrong::new(format!("has to be {expected}"))
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let near = meant(given, known.iter().copied());
        Wrong::new(format!("{} is none of: {}{near}", quoted(given), known.join(", ")))
    }

    fn unknown_field(given: &str, known: &'static [&'static str]) -> Self {
        Wrong::new(format!("unknown key{}", hint(given, known)))
    }

    fn missing_field(field: &'static str) -> Self {
        Wrong { kind: Kind::Missing(field), ..Wrong::new("") }
    }
}

/// A value of the tree, to be read.
#[derive(Clone, Copy)]
pub(super) struct At<'d> {
    document: &'d Document,
    node: &'d Node,
    id: usize,
    place: Place,
}

impl<'d> At<'d> {
    /// The whole file; `None` if it is empty.
    pub(super) fn root(document: &'d Document) -> Option<Self> {
        document.values_read.set(0);
        let root = At::new(document, document.root?, None);
        (!root.node.is_null()).then_some(root)
    }

    fn new(document: &'d Document, id: usize, place: Option<Place>) -> Self {
        let node = &document.nodes[id];
        At { document, node, id, place: place.unwrap_or(node.place) }
    }

    fn scalar(&self) -> Result<&'d str, Wrong> {
        match &self.node.content {
            Content::Scalar { text, .. } => Ok(text),
            Content::List(_) => Err(Wrong::new("has to be a single value, not a list")),
            Content::Map(_) => {
                Err(Wrong::new("has to be a single value, not a mapping (keys with values)"))
            }
        }
    }

    fn integer<T: TryFrom<i128>>(&self, least: i128, most: i128) -> Result<T, Wrong> {
        let text = self.scalar()?;
        let number = whole(text).filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let range = match (least, most > u32::MAX.into()) {
                (0, true) => "that is not negative".to_owned(),
                _ => format!("between {least} and {most}"),
            };
            Wrong::new(format!("{} is not a whole number {range}", quoted(text)))
        })
    }
}

/// A whole number as YAML writes it.
fn whole(text: &str) -> Option<i128> {
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

/// Yes or no as YAML writes it, that of version 1.1 included.
fn truth(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["true", "yes", "y", "on"]) {
        Some(true)
    } else {
        is_one_of(["false", "no", "n", "off"]).then_some(false)
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let number = self.integer::<$type>(<$type>::MIN.into(), <$type>::MAX.into())?;
            visitor.$visit(number)
        }
    )+};
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Wrong;

    /// By what is written, where the type takes several.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.content {
            Content::List(_) => self.deserialize_seq(visitor),
            Content::Map(_) => self.deserialize_map(visitor),
            Content::Scalar { .. } if self.node.is_null() => visitor.visit_unit(),
            Content::Scalar { text, plain: false } => visitor.visit_str(text),
            Content::Scalar { text, .. } => {
                let truth = ["true", "True", "TRUE", "false", "False", "FALSE"]
                    .contains(&text.as_str())
                    .then(|| truth(text))
                    .flatten();
                if let Some(truth) = truth {
                    return visitor.visit_bool(truth);
                }
                match whole(text) {
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

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let text = self.scalar()?;
        let truth = truth(text)
            .ok_or_else(|| Wrong::new(format!("{} is neither true nor false", quoted(text))))?;
        visitor.visit_bool(truth)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let text = self.scalar()?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| Wrong::new(format!("{} is not a number", quoted(text))))?;
        visitor.visit_f64(number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let text = self.scalar()?;
        if self.node.is_null() {
            return Err(Wrong::new("has no value: leave the key out, or quote the text"));
        }
        visitor.visit_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_str(self.scalar()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if name == SPANNED {
            visitor.visit_seq(Parts { at: self, given: 0 })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.content {
            Content::List(_) => visitor.visit_seq(Children { at: self, next: 0 }),
            _ if self.node.is_null() => visitor.visit_seq(Children { at: self, next: 0 }),
            Content::Map(_) => Err(Wrong::new(
                "has to be a list ([a, b], or a line \"- a\" each), not a mapping (keys with values)",
            )),
            Content::Scalar { .. } => Err(Wrong::new(
                "has to be a list ([a, b], or a line \"- a\" each), not a single value",
            )),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.content {
            Content::Map(_) => visitor.visit_map(Children { at: self, next: 0 }),
            _ if self.node.is_null() => visitor.visit_map(Children { at: self, next: 0 }),
            Content::List(_) => {
                Err(Wrong::new("has to be a mapping (a line \"key: value\" each), not a list"))
            }
            Content::Scalar { .. } => Err(Wrong::new(
                "has to be a mapping (a line \"key: value\" each), not a single value",
            )),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.content {
            Content::Scalar { text, .. } => {
                let name: StrDeserializer<'_, Wrong> = text.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Content::Map(children) => {
                let mut given = children.iter().enumerate().filter(|(_, child)| !child.removed);
                match (given.next(), given.next()) {
                    (Some((index, _)), None) => visitor.visit_enum(Variant { at: self, index }),
                    (None, _) if children.is_empty() => {
                        Err(Wrong::new(format!("has to be one of: {}", known.join(", "))))
                    }
                    // Its one key was wrong: that was told.
                    (None, _) => Err(Wrong::missing_field("name")),
                    (_, Some((index, _))) => {
                        let wrong = Wrong::new(
                            "one key too many: here stands one thing, with all its keys behind its name",
                        );
                        Err(wrong.out_of(self.document, self.id, index, true))
                    }
                }
            }
            Content::List(_) => {
                Err(Wrong::new(format!("has to be one of: {}; not a list", known.join(", "))))
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct }
}

/// The entries of a list or a mapping.
struct Children<'d> {
    at: At<'d>,
    next: usize,
}

impl<'d> Children<'d> {
    /// The next entry that counts.
    fn step(&mut self) -> Result<Option<(usize, &'d super::tree::Child)>, Wrong> {
        let children = self.at.node.children();
        let found = children.iter().enumerate().skip(self.next).find(|(_, child)| !child.removed);
        self.next = found.map_or(children.len(), |(index, _)| index + 1);
        let read = self.at.document.values_read.get() + usize::from(found.is_some());
        self.at.document.values_read.set(read);
        if read > MOST_VALUES {
            return Err(Wrong::new("its aliases (*) come to too many values"));
        }
        Ok(found)
    }
}

impl<'de> SeqAccess<'de> for Children<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some((index, child)) = self.step()? else { return Ok(None) };
        let At { document, id, .. } = self.at;
        let value = seed.deserialize(At::new(document, child.node, Some(child.place)));
        value.map(Some).map_err(|wrong| wrong.out_of(document, id, index, false))
    }
}

impl<'de> MapAccess<'de> for Children<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let Some((index, child)) = self.step()? else { return Ok(None) };
        let At { document, id, .. } = self.at;
        let key = child.key.unwrap_or(child.node);
        let key = seed.deserialize(At::new(document, key, None));
        key.map(Some).map_err(|wrong| wrong.out_of(document, id, index, true))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let At { document, id, node, .. } = self.at;
        let index = self.next.saturating_sub(1);
        let child = &node.children()[index];
        let value = seed.deserialize(At::new(document, child.node, Some(child.place)));
        value.map_err(|wrong| wrong.out_of(document, id, index, false))
    }
}

/// A value with its place, for [`super::Spanned`].
struct Parts<'d> {
    at: At<'d>,
    given: usize,
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        self.given += 1;
        let number = |number: u64| -> U64Deserializer<Wrong> { number.into_deserializer() };
        match self.given {
            1 => seed.deserialize(number(self.at.place.0)).map(Some),
            2 => seed.deserialize(number(self.at.place.1)).map(Some),
            3 => seed.deserialize(self.at).map(Some),
            _ => Ok(None),
        }
    }
}

/// A name with what stands behind it: `flap: {link: x}`.
struct Variant<'d> {
    at: At<'d>,
    index: usize,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        let At { document, id, node, .. } = self.at;
        let child = &node.children()[self.index];
        let key = At::new(document, child.key.unwrap_or(child.node), None);
        let name =
            seed.deserialize(key).map_err(|wrong| wrong.out_of(document, id, self.index, true))?;
        Ok((name, self))
    }
}

impl<'d> Variant<'d> {
    fn value<T>(self, read: impl FnOnce(At<'d>) -> Result<T, Wrong>) -> Result<T, Wrong> {
        let At { document, id, node, .. } = self.at;
        let child = &node.children()[self.index];
        read(At::new(document, child.node, Some(child.place)))
            .map_err(|wrong| wrong.out_of(document, id, self.index, false))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        let refuse = |at: At<'_>| {
            if at.node.is_null() { Ok(()) } else { Err(Wrong::new("has no value of its own")) }
        };
        self.value(refuse)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        self.value(|at| seed.deserialize(at))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.value(|at| at.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.value(|at| at.deserialize_map(visitor))
    }
}
