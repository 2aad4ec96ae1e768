//! One parameter: what it may hold, and the one form in which its values are compared.

use std::collections::BTreeSet;

use super::unit;
use crate::audit::Bound;

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, perhaps bytes.
    Integer,
    /// A decimal number.
    Real,
    /// `ON` or `OFF`.
    Boolean,
    /// One of some words; of any, if the server does not say which: then it judges them itself.
    Word,
    /// Some of some words, or of any.
    Set,
    /// Switches, `name=on,other=off`; those not named stay as they are.
    Switches,
    /// One of some words and, where `on` or `off` is among them, what else stands for those.
    Choice,
    /// A size in units of so many bytes: a number alone counts these.
    Size(i64),
    /// A time in units of so many microseconds: a number alone counts these.
    Time(i64),
    /// Anything.
    Text,
}

/// One parameter of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Name, lower case.
    pub name: String,
    /// Global value now.
    pub value: String,
    /// What it holds.
    pub kind: Kind,
    /// Smallest and largest value of a number.
    pub range: Option<(i128, i128)>,
    /// Numbers are rounded down to a multiple of this.
    pub block: i128,
    /// Words of a word or set.
    pub words: Vec<String>,
    /// Whether it can only be set when the server starts.
    pub read_only: bool,
    /// Whether nobody can set it, not even at the start.
    pub fixed: bool,
    /// Whether it exists per session only.
    pub session_only: bool,
    /// Where the value comes from (`COMPILE-TIME`, `CONFIG`, `SQL`, `AUTO`, …).
    pub origin: String,
}

/// Words of `sql_mode` that stand for several others.
const COMBINED_MODES: &[&str] = &[
    "ANSI",
    "TRADITIONAL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "POSTGRESQL",
    "MYSQL40",
    "MYSQL323",
];

impl Variable {
    /// The value in the one form in which values of this parameter are compared, or why it cannot be one: sizes in
    /// bytes and whole blocks, `ON`/`OFF`, words as the server spells them, sets in the server's order.
    pub fn canonical(&self, value: &str) -> std::result::Result<String, String> {
        let value = value.trim();
        match self.kind {
            Kind::Integer => self.integer(value).map(|i| i.to_string()),
            Kind::Real => self.real(value).map(|f| {
                let text = format!("{f:.6}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }),
            Kind::Boolean => match value.to_ascii_uppercase().as_str() {
                "ON" | "1" | "TRUE" | "YES" => Ok("ON".to_owned()),
                "OFF" | "0" | "FALSE" | "NO" => Ok("OFF".to_owned()),
                _ => Err(format!("`{value}` is neither ON nor OFF")),
            },
            Kind::Word => self.word(value),
            Kind::Set => self.set(value),
            Kind::Switches => switches(value),
            Kind::Choice => self.choice(value),
            Kind::Size(bytes) => self.size(value, bytes).map(|units| {
                // Special values have no unit.
                let bytes = if units < 0 {
                    units
                } else {
                    units * i128::from(bytes)
                };
                bytes.to_string()
            }),
            Kind::Time(micros) => self.time(value, micros),
            Kind::Text => Ok(value.to_owned()),
        }
    }

    /// The value as it must be bound: a number sent as a string is refused by the server.
    pub fn bound(&self, value: &str) -> std::result::Result<Bound, String> {
        match self.kind {
            Kind::Integer => self.integer(value.trim()).map(Bound::Integer),
            Kind::Real => self.real(value.trim()).map(Bound::Real),
            Kind::Size(bytes) => self.size(value.trim(), bytes).map(Bound::Integer),
            _ => self.canonical(value).map(Bound::Text),
        }
    }

    fn integer(&self, value: &str) -> std::result::Result<i128, String> {
        let number = whole_number(value)
            .ok_or_else(|| format!("`{value}` is not a whole number (K, M, G and T are understood)"))?;
        self.within(number as f64, || number.to_string())?;
        if let Some((low, high)) = self.range
            && !(low..=high).contains(&number)
        {
            return Err(out_of_range(&number.to_string(), low, high));
        }
        Ok(number - number.rem_euclid(self.block))
    }

    fn real(&self, value: &str) -> std::result::Result<f64, String> {
        let number = value
            .parse::<f64>()
            .ok()
            .filter(|f| f.is_finite())
            .ok_or_else(|| format!("`{value}` is not a number"))?;
        self.within(number, || value.to_owned())?;
        Ok(number)
    }

    fn within(&self, number: f64, shown: impl Fn() -> String) -> std::result::Result<(), String> {
        match self.range {
            Some((low, high)) if number < low as f64 || number > high as f64 => {
                Err(out_of_range(&shown(), low, high))
            }
            _ => Ok(()),
        }
    }

    fn size(&self, value: &str, unit_bytes: i64) -> std::result::Result<i128, String> {
        let units = unit::size(value, unit_bytes)?;
        self.within(units as f64, || format!("{units} units of {unit_bytes} bytes"))?;
        Ok(units)
    }

    fn time(&self, value: &str, unit_micros: i64) -> std::result::Result<String, String> {
        let units = unit::time(value, unit_micros)?;
        let form = unit::time_form(units, unit_micros);
        self.within(units, || form.clone())?;
        Ok(form)
    }

    fn choice(&self, value: &str) -> std::result::Result<String, String> {
        let has = |word: &str| self.words.iter().find(|w| w.eq_ignore_ascii_case(word)).cloned();
        let stands_for = match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => "on",
            "false" | "no" | "0" => "off",
            _ => value,
        };
        has(value)
            .or_else(|| has(stands_for))
            .ok_or_else(|| format!("`{value}` is not one of {}", self.words.join(", ")))
    }

    fn word(&self, value: &str) -> std::result::Result<String, String> {
        if self.words.is_empty() {
            return Ok(value.to_ascii_uppercase());
        }
        self.words
            .iter()
            .find(|word| word.eq_ignore_ascii_case(value))
            .or_else(|| {
                value
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| self.words.get(index))
            })
            .cloned()
            .ok_or_else(|| format!("`{value}` is not one of {}", self.words.join(", ")))
    }

    fn set(&self, value: &str) -> std::result::Result<String, String> {
        if self.words.is_empty() {
            let words = value.split(',').map(str::trim).filter(|w| !w.is_empty());
            let words: BTreeSet<String> = words.map(str::to_ascii_uppercase).collect();
            return Ok(words.into_iter().collect::<Vec<_>>().join(","));
        }
        if let Ok(bits) = value.parse::<u64>() {
            let chosen = self
                .words
                .iter()
                .enumerate()
                .filter(|(i, _)| *i < 64 && bits >> i & 1 == 1);
            return Ok(chosen.map(|(_, w)| w.as_str()).collect::<Vec<_>>().join(","));
        }
        let mut chosen = vec![false; self.words.len()];
        for item in value.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            let place = self.words.iter().position(|word| word.eq_ignore_ascii_case(item));
            let Some(place) = place else {
                return Err(format!("`{item}` is not one of {}", self.words.join(", ")));
            };
            chosen[place] = true;
        }
        Ok(self
            .words
            .iter()
            .zip(chosen)
            .filter_map(|(word, chosen)| chosen.then_some(word.as_str()))
            .collect::<Vec<_>>()
            .join(","))
    }

    /// Why a wanted value could never read back as written, though the server takes it.
    pub fn ambiguous(&self, value: &str) -> Option<String> {
        let combined = value
            .split(',')
            .map(|w| w.trim().to_ascii_uppercase())
            .find(|w| COMBINED_MODES.contains(&w.as_str()))?;
        (self.name == "sql_mode")
            .then(|| format!("sql_mode: {combined} stands for several modes: write those instead"))
    }
}

fn out_of_range(value: &str, low: i128, high: i128) -> String {
    format!("{value} is out of range: {low} to {high} is allowed")
}

/// A whole number with an optional binary suffix.
fn whole_number(text: &str) -> Option<i128> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        _ => return None,
    };
    digits
        .trim()
        .parse::<i64>()
        .map(i128::from)
        .ok()
        .or_else(|| digits.trim().parse::<u64>().map(i128::from).ok())
        .map(|number| number << shift)
}

fn switches(value: &str) -> std::result::Result<String, String> {
    let mut items = Vec::new();
    for item in value.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let (name, state) = item
            .split_once('=')
            .ok_or_else(|| format!("`{item}` is not name=on or name=off"))?;
        let state = match state.trim().to_ascii_lowercase().as_str() {
            "on" | "1" => "on",
            "off" | "0" => "off",
            other => return Err(format!("`{name}={other}`: on or off is allowed")),
        };
        items.push(format!("{}={state}", name.trim().to_ascii_lowercase()));
    }
    items.sort();
    Ok(items.join(","))
}
