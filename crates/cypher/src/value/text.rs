//! Formats numbers.

/// A float as Neo4j formats it: with a point, and with an exponent from 10⁷ on and below 10⁻³.
pub fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = float.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{float:?}");
    }
    let scientific = format!("{float:E}");
    match scientific.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn floats_have_a_point_and_large_ones_an_exponent() {
        let texts = [0.5, 4.0, -0.0, 1e7, 1.25e-4, 1e300].map(float_text);
        assert_eq!(texts, ["0.5", "4.0", "-0.0", "1.0E7", "1.25E-4", "1.0E300"]);
    }
}
