//! Sizes as Kubernetes writes them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The bytes of a size such as `10Gi`, `500M` or `1073741824`. None for anything else.
#[must_use]
pub fn bytes(size: &Quantity) -> Option<u64> {
    let text = size.0.as_str();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_can_be_compared() {
        for (text, expected) in [
            ("10Gi", Some(10_737_418_240)),
            ("10240Mi", Some(10_737_418_240)),
            ("500M", Some(500_000_000)),
            ("7", Some(7)),
            ("1.5Gi", None),
            ("Gi", None),
            ("", None),
            ("99999999999Ti", None),
        ] {
            assert_eq!(bytes(&Quantity(text.into())), expected, "{text}");
        }
    }
}
