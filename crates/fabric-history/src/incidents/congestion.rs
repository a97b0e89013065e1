//! A congestion in an incident.

use std::time::SystemTime;

use serde_json::Value;

/// An open or ended congestion of a port.
#[derive(Clone, Debug)]
pub struct Root {
    pub place: String,
    pub text: String,
    pub detail: Value,
    pub ended: Option<SystemTime>,
}

impl Root {
    /// The level of a congestion: from its detail, or, of old events, from its text, which ends with it.
    pub fn level(&self) -> Option<&str> {
        let of_text = || self.text.rsplit_once('(')?.1.strip_suffix(')');
        self.detail["level"].as_str().or_else(of_text)
    }

    /// How many ports waited: old events have it in their text only, `9 ports waiting, up to 6% of the time`.
    pub fn ports(&self) -> u64 {
        let of_text = || {
            let mut words = self
                .text
                .split(' ')
                .skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
            words.next()?.replace(',', "").parse().ok()
        };
        self.detail["ports"].as_u64().or_else(of_text).unwrap_or(1)
    }

    /// The share of time that they waited.
    pub fn share(&self) -> f64 {
        let of_text = || {
            let percent = self.text.split_once('%')?.0.rsplit(' ').next()?;
            percent.parse::<f64>().ok().map(|percent| percent / 100.0)
        };
        self.detail["share"].as_f64().or_else(of_text).unwrap_or(0.0)
    }
}
