//! Printed decimal numbers as scaled integers, without a detour through floating point.
//! A number that is not finite, negative or too big is no number: the figure is then absent, never wrong.

/// `text` times ten to the power of `places`, rounded half up: `scaled("2007.69", 3)` is 2,007,690.
///
/// A single comma is taken as the decimal separator (a tool run under another locale). `inf`, `nan`, signs, exponents
/// and anything else give `None`.
pub fn scaled(text: &str, places: usize) -> Option<u64> {
    let text = text.trim();
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let mut value: u64 = whole.parse().ok()?;
    let mut digits = fraction.bytes();
    for _ in 0..places {
        let digit = digits.next().map_or(0, |digit| digit - b'0');
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if digits.next().is_some_and(|digit| digit >= b'5') {
        value = value.checked_add(1)?;
    }
    Some(value)
}

/// A count: digits and nothing else.
pub fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.is_empty() || !all_digits(text) {
        return None;
    }
    text.parse().ok()
}

/// Thousandths of a rate (`tps`, `qps`).
pub fn milli(text: &str) -> Option<u64> {
    scaled(text, 3)
}

/// Microseconds of a time printed in milliseconds, with or without its unit.
pub fn micros_of_millis(text: &str) -> Option<u64> {
    scaled(text.trim().trim_end_matches("ms"), 3)
}

/// Microseconds of a time printed in seconds, with or without its unit.
pub fn micros_of_seconds(text: &str) -> Option<u64> {
    scaled(text.trim().trim_end_matches('s'), 6)
}

/// `count` per `micros`, in thousandths per second; `None` for an empty window.
pub fn rate_milli(count: u64, micros: u64) -> Option<u64> {
    if micros == 0 {
        return None;
    }
    let exact = (u128::from(count) * 1_000_000_000 + u128::from(micros) / 2) / u128::from(micros);
    u64::try_from(exact).ok()
}

/// Microseconds in which `count` happened at `rate_milli` thousandths per second; `None` at rate 0.
pub fn window_micros(count: u64, rate_milli: u64) -> Option<u64> {
    // count / (rate_milli / 1e3) seconds x 1e6: the same division with the operands' meanings exchanged.
    self::rate_milli(count, rate_milli)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("2007.69", 3, Some(2_007_690))]
    #[case("0.0005", 3, Some(1))]
    #[case("10.0060", 6, Some(10_006_000))]
    #[case("430,468236", 3, Some(430_468))]
    #[case("7", 3, Some(7_000))]
    #[case("18446744073709551615", 0, Some(u64::MAX))]
    #[case("18446744073709551615", 3, None)]
    #[case("18446744073709551616", 0, None)]
    #[case("inf", 3, None)]
    #[case("-nan", 3, None)]
    #[case("-1.5", 3, None)]
    #[case("1e5", 3, None)]
    #[case("1,234,567.8", 3, None)]
    #[case(".5", 3, None)]
    #[case("", 3, None)]
    fn scales(#[case] text: &str, #[case] places: usize, #[case] expected: Option<u64>) {
        assert_eq!(scaled(text, places), expected);
    }

    #[test]
    fn a_rate_and_its_window_agree() {
        assert_eq!(rate_milli(9282, 4_003_400), Some(2_318_529));
        assert_eq!(rate_milli(5, 0), None);
        assert_eq!(window_micros(9282, 2_318_500), Some(4_003_451));
    }
}
