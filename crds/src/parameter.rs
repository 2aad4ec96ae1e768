//! Values of database parameters and shares in percent, as people write them in a manifest.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::relative::{RelativeError, RelativeValue};

/// Parameters of a database by name, in the server's own spelling.
pub type Parameters = std::collections::BTreeMap<String, ParameterValue>;

/// A parameter's value: an integer, or a string (`"ON"`, `"256M"`, `"O_DIRECT"`). In a campaign also a share of the
/// instance, `"75% of memory"` or `"50% of cpu"` ([`crate::relative`]).
///
/// What any other string means (a size with K, M or G, a word, a list) is decided by the server's catalogue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// A whole number.
    Integer(i64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(i) => i.fmt(f),
            Self::Text(s) => s.fmt(f),
        }
    }
}

impl From<i64> for ParameterValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for ParameterValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl ParameterValue {
    /// The share of the instance that the value asks for; None for an ordinary value.
    ///
    /// # Errors
    /// What is wrong with a value that is meant as a share.
    pub fn relative(&self) -> Option<Result<RelativeValue, RelativeError>> {
        match self {
            Self::Integer(_) => None,
            Self::Text(text) => RelativeValue::read(text),
        }
    }

    /// The value as a whole number: integers, and strings of digits with an optional binary suffix
    /// `K`, `M`, `G` or `T` as the MySQL family and PostgreSQL's `kB`, `MB`, `GB` read them. Bytes where it is a size.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(i) => Some(*i),
            Self::Text(text) => {
                let text = text.trim();
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let factor: i64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
                    "" => 1,
                    "K" | "KB" => 1 << 10,
                    "M" | "MB" => 1 << 20,
                    "G" | "GB" => 1 << 30,
                    "T" | "TB" => 1 << 40,
                    _ => return None,
                };
                digits.parse::<i64>().ok()?.checked_mul(factor)
            }
        }
    }
}

impl JsonSchema for ParameterValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ParameterValue".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "maxLength": 1024})
    }
}

/// A share in percent, kept in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    /// Parts per million: 5 % is 50,000.
    pub ppm: u32,
}

/// A percent that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsePercentError(String);

impl fmt::Display for ParsePercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a share in percent: write a number from 0 to 100 with at most three decimals and a percent sign, such as \"5%\"",
            self.0
        )
    }
}
impl std::error::Error for ParsePercentError {}

impl Percent {
    /// A share of so many parts per million.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self { ppm }
    }
    /// The share as a fraction: 5 % is 0.05.
    pub fn fraction(self) -> f64 {
        f64::from(self.ppm) / 1e6
    }
}

impl std::str::FromStr for Percent {
    type Err = ParsePercentError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParsePercentError(text.to_owned());
        let number = text.strip_suffix('%').ok_or_else(fail)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || decimals.len() > 3 || !all_digits(whole) || !all_digits(decimals) {
            return Err(fail());
        }
        let whole: u32 = whole.parse().map_err(|_| fail())?;
        let thousandths: u32 = format!("{decimals:0<3}").parse().map_err(|_| fail())?;
        let ppm = whole
            .checked_mul(10_000)
            .and_then(|w| w.checked_add(thousandths * 10))
            .ok_or_else(fail)?;
        if ppm > 1_000_000 {
            Err(fail())
        } else {
            Ok(Self { ppm })
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.ppm / 10_000, self.ppm % 10_000);
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        write!(f, "{whole}.{}%", format!("{rest:04}").trim_end_matches('0'))
    }
}

impl Serialize for Percent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        crate::schema::percent(g)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_servers_read_them() {
        for (text, bytes) in [("256M", 268_435_456), ("1g", 1 << 30), ("8kB", 8192), ("42", 42)] {
            assert_eq!(ParameterValue::from(text).as_integer(), Some(bytes), "{text}");
        }
        for text in ["ON", "1.5G", "", "M", "99999999999999999999", "9999999999999T"] {
            assert_eq!(ParameterValue::from(text).as_integer(), None, "{text}");
        }
    }

    #[test]
    fn percent_round_trips_and_refuses_the_rest() {
        for text in ["5%", "0%", "100%", "2.5%", "0.125%"] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), text);
        }
        for text in [
            "5", "-1%", "101%", "5.%%", "1.2345%", "%", "five%", "100.001%", "+5%",
        ] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }
}
