//! The query parameters of pages.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use fabric_history::parameters::Pairs;

/// The query parameters of a request, or the reason why they cannot be decoded.
pub type QueryResult = Result<Query<Pairs>, QueryRejection>;

/// The query parameters of a page. An empty value counts as missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryParams(Pairs);

impl From<QueryResult> for QueryParams {
    /// A query that cannot be decoded has no parameters: the page is shown nevertheless.
    fn from(query: QueryResult) -> Self {
        QueryParams(query.map(|Query(pairs)| pairs).unwrap_or_default())
    }
}

impl QueryParams {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values(key).next()
    }

    /// The values of a parameter that may be repeated.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        let values = self.0.iter().filter(move |(has, _)| has == key);
        values.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// These parameters, in the order of the address, each once.
    pub fn only(&self, keys: &[&str]) -> Pairs {
        let mut pairs = Pairs::new();
        for (key, value) in self.0.iter().filter(|(key, _)| keys.contains(&&**key)) {
            if pairs.iter().all(|(known, _)| known != key) {
                pairs.push((key.clone(), value.clone()));
            }
        }
        pairs
    }

    /// The value of a parameter, or an empty text.
    pub fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    /// The value of a parameter, parsed. The error names the parameter and the value.
    pub fn parse<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        parse(value).map(Some).map_err(|error| format!("{key}: {value:?} {error}."))
    }
}
