//! Student's t distribution, through the incomplete beta function.

/// The natural logarithm of the gamma function for `x` > 0, to about 1e-13
/// relative (Lanczos 1964, with g = 7 and nine coefficients).
#[must_use]
#[allow(clippy::excessive_precision)]
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const FIRST: f64 = 0.999_999_999_999_809_93;
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_13,
        -176.615_029_162_140_59,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_571_6e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Euler's reflection, where the series is not accurate.
        let sine = (std::f64::consts::PI * x).sin();
        return (std::f64::consts::PI / sine).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut at = x;
    let mut series = FIRST;
    for coefficient in COEFFICIENTS {
        at += 1.0;
        series += coefficient / at;
    }
    let t = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// The regularised incomplete beta function I_x(a, b) for `a`, `b` > 0 and `x` in
/// 0…1: the continued fraction of Abramowitz and Stegun 26.5.8, evaluated by
/// Lentz's method (1976). Absolute error below 1e-10 for a, b up to 1e6.
#[must_use]
pub(crate) fn regularised_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    // The fraction converges quickly only below the mean of the distribution.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(x, a, b) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(1.0 - x, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..10_000_u32 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// The probability of a value of at most `t` under Student's distribution with
/// `df` degrees of freedom (> 0, need not be whole).
#[must_use]
pub(crate) fn t_cdf(t: f64, df: f64) -> f64 {
    let tail = t_two_sided_p(t, df) / 2.0;
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// The probability of a value at least as far from 0 as `t`: the two-sided p value.
#[must_use]
pub(crate) fn t_two_sided_p(t: f64, df: f64) -> f64 {
    if !t.is_finite() {
        return if t.is_nan() { 1.0 } else { 0.0 };
    }
    regularised_beta(df / (df + t * t), df / 2.0, 0.5)
}

/// The value that Student's distribution with `df` degrees of freedom does not
/// exceed with probability `p` (0 < p < 1), to about 1e-9 relative, by bisection.
#[must_use]
pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    if (p - 0.5).abs() < f64::EPSILON {
        return 0.0;
    }
    if p < 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    let mut high = 1.0;
    while t_cdf(high, df) < p && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high - low > 1e-10 * high {
        let middle = f64::midpoint(low, high);
        if t_cdf(middle, df) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_of_whole_and_half_numbers() {
        assert!((ln_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
        assert!((ln_gamma(0.25) - 1.288_022_524_698_077).abs() < 1e-11);
        assert!((ln_gamma(101.0) - 363.739_375_555_563_5).abs() < 1e-9);
    }

    #[test]
    fn beta_where_it_is_known_in_closed_form() {
        // I_x(1, b) = 1 − (1 − x)^b, I_x(a, 1) = x^a, and I_x(a, b) = 1 − I_{1−x}(b, a).
        for x in [0.01, 0.3, 0.5, 0.77, 0.99] {
            assert!((regularised_beta(x, 1.0, 4.0) - (1.0 - (1.0_f64 - x).powi(4))).abs() < 1e-12);
            assert!((regularised_beta(x, 3.5, 1.0) - x.powf(3.5)).abs() < 1e-12);
            let mirrored = 1.0 - regularised_beta(1.0 - x, 2.5, 7.0);
            assert!((regularised_beta(x, 7.0, 2.5) - mirrored).abs() < 1e-12);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95%, 99% and one-sided 80%: NIST/SEMATECH e-Handbook, table 1.3.6.7.2, and
        // Fisher and Yates.
        let table = [
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 4.0, 2.776),
            (0.975, 9.0, 2.262),
            (0.975, 19.0, 2.093),
            (0.975, 30.0, 2.042),
            (0.975, 100.0, 1.984),
            (0.995, 3.0, 5.841),
            (0.995, 10.0, 3.169),
            (0.95, 5.0, 2.015),
            (0.90, 7.0, 1.415),
        ];
        for (p, df, expected) in table {
            let told = t_quantile(p, df);
            assert!((told - expected).abs() < 6e-4, "t({p}, {df}) = {told}, table {expected}");
            assert!((t_quantile(1.0 - p, df) + told).abs() < 1e-8);
            assert!((t_cdf(told, df) - p).abs() < 1e-9);
        }
        // With one degree of freedom it is Cauchy's distribution, known exactly.
        assert!((t_quantile(0.75, 1.0) - 1.0).abs() < 1e-9);
        // With very many it is the normal one.
        assert!((t_quantile(0.975, 1e6) - 1.959_966).abs() < 1e-5);
    }

    #[test]
    fn p_values_are_two_sided() {
        assert!((t_two_sided_p(2.262_157, 9.0) - 0.05).abs() < 1e-6);
        assert!((t_two_sided_p(-2.262_157, 9.0) - 0.05).abs() < 1e-6);
        assert_eq!(t_two_sided_p(0.0, 9.0), 1.0);
        assert_eq!(t_two_sided_p(f64::INFINITY, 9.0), 0.0);
    }
}
