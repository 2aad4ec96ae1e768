//! Reading Kubernetes quantities: how many bytes, how many thousandths of a CPU.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The quantity in thousandths of its unit (CPUs to millicores), rounded up as Kubernetes rounds.
///
/// `None` if it is not a quantity or does not fit.
pub fn millis(quantity: &Quantity) -> Option<i64> {
    let text = quantity.0.trim().trim_start_matches('+');
    let (number, scale) = split(text)?;
    let value = number
        .parse::<f64>()
        .ok()
        .filter(|v| v.is_finite() && *v >= 0.0)?
        * scale
        * 1000.0;
    // 0.1 + 0.2 style dust must not round a whole number up.
    let rounded = value.round();
    let millis = if (value - rounded).abs() < 1e-6 * value.max(1.0) {
        rounded
    } else {
        value.ceil()
    };
    (millis < i64::MAX as f64).then_some(millis as i64)
}

/// The quantity as a whole number of its unit (memory and storage: bytes), rounded up. `None` as for [`millis`].
pub fn whole(quantity: &Quantity) -> Option<i64> {
    let text = quantity.0.trim().trim_start_matches('+');
    let (number, scale) = split(text)?;
    if let Ok(integer) = number.parse::<i64>()
        && scale >= 1.0
    {
        return integer.checked_mul(scale as i64).filter(|_| scale < 9e18);
    }
    millis(quantity).map(|m| (m + 999) / 1000)
}

fn split(text: &str) -> Option<(&str, f64)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        "Ei" => 1_152_921_504_606_846_976.0,
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            10f64.powi(digits.parse().ok()?)
        }
    };
    (!number.is_empty()).then_some((number, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_kubernetes_reads_them() {
        for (text, expected) in [
            ("1", 1000),
            ("500m", 500),
            ("0.5", 500),
            ("2.5", 2500),
            ("1e3", 1_000_000),
            ("100u", 1),
            (".5", 500),
        ] {
            assert_eq!(millis(&Quantity(text.into())), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("16Gi", 17_179_869_184),
            ("1G", 1_000_000_000),
            ("1500m", 2),
            ("1.5Gi", 1_610_612_736),
            ("7Ei", 7 << 60),
        ] {
            assert_eq!(whole(&Quantity(text.into())), Some(expected), "{text}");
        }
        for text in ["", "Gi", "1gb", "-1", "1 Gi", "ten", "9999999Ei"] {
            assert_eq!(whole(&Quantity(text.into())), None, "{text}");
        }
    }
}
