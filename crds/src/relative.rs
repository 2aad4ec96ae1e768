//! Values of parameters that are a share of the instance: `75% of memory`, `50% of cpu`. What a share comes to depends
//! on the engine and the instance size, and is computed when a campaign is planned.

use std::fmt;

/// The most of all memory that a value may ask for, parts per million.
const MOST_MEMORY: u64 = 1_000_000;
/// The most of all CPUs: 100 for each, since counts of threads may be above the CPUs.
const MOST_CPU: u64 = 100_000_000;

/// What a share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Memory of the instance.
    Memory,
    /// CPUs of the instance.
    Cpu,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        })
    }
}

/// A share of an instance's memory or CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativeValue {
    /// Parts per million: 75 % is 750,000.
    pub ppm: u64,
    /// What it is a share of.
    pub of: Resource,
}

/// A value that looks like a share of the instance and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelativeError {
    /// A share of nothing, or of something else.
    OfWhat(String),
    /// No number with a percent sign before `of`.
    Number(String),
    /// Nothing, or more than there is, which is said.
    Range(String, &'static str),
}

impl fmt::Display for RelativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfWhat(text) => write!(
                f,
                "`{text}` does not say what it is a share of: write \"75% of memory\" or \"50% of cpu\""
            ),
            Self::Number(text) => write!(
                f,
                "`{text}` is not a share in percent: write a number with at most three decimals and a percent sign, such as \"75% of memory\""
            ),
            Self::Range(text, most) => {
                write!(
                    f,
                    "`{text}` is out of range: above 0% and at most {most} is allowed"
                )
            }
        }
    }
}
impl std::error::Error for RelativeError {}

impl RelativeValue {
    /// The share that a text says; None where the text is an ordinary value.
    ///
    /// What begins with a number and a percent sign, or with a number and ends with `of memory` or `of cpu`, is meant as
    /// a share: no parameter of any engine has such a value.
    ///
    /// # Errors
    /// What is wrong with a text that is meant as a share.
    pub fn read(text: &str) -> Option<Result<Self, RelativeError>> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let rest = rest.trim_start();
        if number.is_empty() || !number.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let lower = rest.to_ascii_lowercase();
        let words: Vec<&str> = lower.split_ascii_whitespace().collect();
        let Some(unit) = lower.strip_prefix('%') else {
            let meant = matches!(words.as_slice(), ["of", _] | ["percent", ..]);
            return meant.then(|| Err(RelativeError::Number(text.to_owned())));
        };
        let of = match unit.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
            ["of", "memory"] => Resource::Memory,
            ["of", "cpu"] => Resource::Cpu,
            _ => return Some(Err(RelativeError::OfWhat(text.to_owned()))),
        };
        Some(parts_per_million(number, text).and_then(|ppm| {
            let (most, shown) = match of {
                Resource::Memory => (MOST_MEMORY, "100%"),
                Resource::Cpu => (MOST_CPU, "10000%, 100 for each CPU"),
            };
            if ppm == 0 || ppm > most {
                return Err(RelativeError::Range(text.to_owned(), shown));
            }
            Ok(Self { ppm, of })
        }))
    }

    /// So much of an amount, rounded down.
    pub fn part_of(self, amount: i64) -> i64 {
        let part = i128::from(amount) * i128::from(self.ppm) / 1_000_000;
        i64::try_from(part).unwrap_or(i64::MAX)
    }

    /// CPUs of so many thousandths, as a whole number: rounded down, at least 1.
    pub fn cpus(self, millis: i64) -> i64 {
        (self.part_of(millis) / 1000).max(1)
    }
}

fn parts_per_million(number: &str, text: &str) -> Result<u64, RelativeError> {
    let fail = || RelativeError::Number(text.to_owned());
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 3 || number.ends_with('.')
    {
        return Err(fail());
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().map_err(|_| fail())?;
    let whole: u64 = whole.parse().map_err(|_| fail())?;
    let ppm = whole
        .checked_mul(10_000)
        .and_then(|ppm| ppm.checked_add(thousandths * 10));
    ppm.ok_or_else(fail)
}

impl fmt::Display for RelativeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.ppm / 10_000, self.ppm % 10_000);
        write!(f, "{whole}")?;
        if rest > 0 {
            write!(f, ".{}", format!("{rest:04}").trim_end_matches('0'))?;
        }
        write!(f, "% of {}", self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_read() {
        for (text, ppm, of) in [
            ("75% of memory", 750_000, Resource::Memory),
            (" 12.5 % of Memory ", 125_000, Resource::Memory),
            ("0.125%  of  memory", 1250, Resource::Memory),
            ("100% of memory", 1_000_000, Resource::Memory),
            ("50% of cpu", 500_000, Resource::Cpu),
            ("200% of CPU", 2_000_000, Resource::Cpu),
        ] {
            assert_eq!(
                RelativeValue::read(text),
                Some(Ok(RelativeValue { ppm, of })),
                "{text}"
            );
        }
    }

    #[test]
    fn ordinary_values_are_not_shares() {
        for text in [
            "",
            "ON",
            "256M",
            "1.5",
            "O_DIRECT",
            "%m [%p] ",
            "of memory",
            "-1",
            "50min",
            "a 5% of memory",
            "SET NAMES utf8",
            "10 20",
            "1,2,3",
            "all of memory",
        ] {
            assert_eq!(RelativeValue::read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_meant_as_a_share_and_is_none_says_why() {
        for (text, said) in [
            ("75%", "what it is a share of"),
            ("75% memory", "what it is a share of"),
            ("75% of ram", "what it is a share of"),
            ("75% of memory or so", "what it is a share of"),
            ("75 of memory", "percent sign"),
            ("0.75 of memory", "percent sign"),
            ("75 percent of memory", "percent sign"),
            ("1.2345% of memory", "three decimals"),
            ("5.% of memory", "three decimals"),
            ("-5% of memory", "percent sign"),
            ("1-2% of cpu", "percent sign"),
            ("99999999999999999999% of cpu", "percent sign"),
            ("101% of memory", "at most 100%"),
            ("0% of memory", "above 0%"),
            ("0.000% of cpu", "above 0%"),
            ("10001% of cpu", "100 for each CPU"),
        ] {
            let error = RelativeValue::read(text)
                .unwrap_or_else(|| panic!("{text} is an ordinary value"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(said) && error.contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn cpus_are_whole_and_at_least_one() {
        let half = RelativeValue {
            ppm: 500_000,
            of: Resource::Cpu,
        };
        for (millis, cpus) in [
            (500, 1),
            (1000, 1),
            (3000, 1),
            (4000, 2),
            (16_000, 8),
            (15_900, 7),
        ] {
            assert_eq!(half.cpus(millis), cpus, "{millis}");
        }
    }

    proptest! {
        #[test]
        fn a_share_reads_back_as_it_is_written(tens in 1_u64..=100_000, cpu in any::<bool>()) {
            let of = if cpu { Resource::Cpu } else { Resource::Memory };
            let share = RelativeValue { ppm: tens * 10, of };
            prop_assert_eq!(RelativeValue::read(&share.to_string()), Some(Ok(share)));
        }

        #[test]
        fn any_text_is_read_without_harm(text in ".{0,40}") {
            let _ = RelativeValue::read(&text);
        }

        #[test]
        fn a_part_is_never_more_than_the_whole_and_grows_with_it(ppm in 1_u64..=1_000_000, a in 0_i64..1 << 50, b in 0_i64..1 << 50) {
            let share = RelativeValue { ppm, of: Resource::Memory };
            prop_assert!(share.part_of(a) <= a);
            prop_assert!(share.part_of(a.min(b)) <= share.part_of(a.max(b)));
        }
    }
}
