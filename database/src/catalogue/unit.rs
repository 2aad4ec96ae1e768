//! Numbers with units, as PostgreSQL reads them: a number alone counts the parameter's own unit, `K`, `M`, `G` and `T`
//! without a `B` are read as this API's sizes are.

/// Units of sizes, in bytes.
const SIZES: &[(&str, f64)] = &[
    ("", 0.0),
    ("B", 1.0),
    ("kB", 1024.0),
    ("KB", 1024.0),
    ("K", 1024.0),
    ("k", 1024.0),
    ("MB", 1_048_576.0),
    ("M", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("G", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("T", 1_099_511_627_776.0),
];

/// Units of times, in microseconds.
const TIMES: &[(&str, f64)] = &[
    ("", 0.0),
    ("us", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("min", 6e7),
    ("h", 3.6e9),
    ("d", 8.64e10),
];

/// A size in whole units of so many bytes, rounded to the nearest as the server does.
pub(super) fn size(text: &str, unit_bytes: i64) -> Result<i128, String> {
    amount(text, SIZES, unit_bytes as f64).map(|units| units.round_ties_even() as i128)
}

/// A time in units of so many microseconds.
pub(super) fn time(text: &str, unit_micros: i64) -> Result<f64, String> {
    amount(text, TIMES, unit_micros as f64)
}

/// A time as it is compared and sent: in the parameter's own unit.
pub(super) fn time_form(units: f64, unit_micros: i64) -> String {
    let name = TIMES
        .iter()
        .find(|(_, micros)| *micros as i64 == unit_micros)
        .map_or("", |(name, _)| name);
    // Special values have no unit.
    if units < 0.0 {
        return units.to_string();
    }
    format!("{units}{name}")
}

fn amount(text: &str, units: &[(&str, f64)], own: f64) -> Result<f64, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 = number
        .trim()
        .parse()
        .ok()
        .filter(|n: &f64| n.is_finite())
        .ok_or_else(|| format!("`{text}` does not begin with a number"))?;
    let unit = unit.trim();
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) if *factor > 0.0 => Ok(number * factor / own),
        Some(_) => Ok(number),
        None => {
            let known: Vec<&str> = units.iter().map(|(name, _)| *name).skip(1).collect();
            Err(format!(
                "`{text}` has a unit that is none of {}",
                known.join(", ")
            ))
        }
    }
}
