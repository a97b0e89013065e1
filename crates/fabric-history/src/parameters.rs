//! The parameters of HTTP addresses. Each is read by its name, and what is wrong is one line that names the parameter
//! and the values that it takes.

use std::fmt::Display;

/// The parameters of an address, percent-decoded, in their order.
pub type Pairs = Vec<(String, String)>;

/// The parameters of an address, all of which are known.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    pairs: &'a [(String, String)],
}

impl<'a> Parameters<'a> {
    /// An error if there is a parameter that is not known.
    pub fn new(pairs: &'a [(String, String)], known: &[&str]) -> Result<Self, String> {
        let is_unknown = |(name, _): &&(String, String)| !known.contains(&name.as_str());
        let Some((name, _)) = pairs.iter().find(is_unknown) else {
            return Ok(Parameters { pairs });
        };
        Err(match known.join(", ") {
            none if none.is_empty() => {
                format!("unknown parameter {name:?}: this path has no parameters")
            }
            known => format!("unknown parameter {name:?}; known: {known}"),
        })
    }

    /// The values of a parameter that may be repeated.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be left out.
    pub fn optional(&self, name: &str) -> Result<Option<&'a str>, String> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(format!("{name}: is given more than once")),
        }
    }

    /// The value of a parameter that has to be there.
    pub fn required(&self, name: &str) -> Result<&'a str, String> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    /// The value of a parameter that may be left out, read.
    pub fn read<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        self.optional(name)?;
        Ok(self.read_all(name, read)?.pop())
    }

    /// The value of a parameter that has to be there, read.
    pub fn read_required<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, String> {
        self.read(name, read)?.ok_or_else(|| missing(name))
    }

    /// The values of a parameter that may be repeated, read.
    pub fn read_all<T, E: Display>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, String> {
        let read = |text| read(text).map_err(|error| format!("{name}: {text:?} {error}"));
        self.values(name).map(read).collect()
    }

    /// A parameter that is `true` or `false`, and `false` if it is left out.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        let flag = self.read(name, |value| value.parse().map_err(|_| "must be true or false"))?;
        Ok(flag.unwrap_or(false))
    }
}

fn missing(name: &str) -> String {
    format!("parameter {name:?} is required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_names_its_parameter_and_what_it_takes() {
        let pairs = |text: &str| -> Pairs {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.into(), value.into())).collect()
        };
        let flag = |text: &str| Parameters::new(&pairs(text), &["a", "b"])?.flag("a");
        assert_eq!(flag(""), Ok(false));
        assert_eq!(flag("a=true&b=x"), Ok(true));
        for (text, says) in [
            ("a=maybe", "a: \"maybe\" must be true or false"),
            ("a=", "a: \"\" must be true or false"),
            ("a=true&a=true", "a: is given more than once"),
            ("c=1", "unknown parameter \"c\"; known: a, b"),
            ("a=x\ny", "a: \"x\\ny\" must be true or false"),
        ] {
            assert_eq!(flag(text), Err(says.into()), "{text}");
        }
        let none = pairs("c=1");
        assert_eq!(
            Parameters::new(&none, &[]).unwrap_err(),
            "unknown parameter \"c\": this path has no parameters"
        );
        let none = Parameters::new(&[], &["a"]).unwrap();
        assert_eq!(none.required("a"), Err("parameter \"a\" is required".into()));
    }
}
