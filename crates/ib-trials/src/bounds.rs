//! Exact confidence bounds: of the mean of a Poisson distribution, and of a share (Clopper and Pearson, 1934).

/// The confidence of a one-sided bound.
pub const CONFIDENCE: f64 = 0.95;

/// Steps of a bisection: doubles have no more digits.
const STEPS: usize = 200;

/// The value at which a rising function reaches 0.
fn root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let middle = low.midpoint(high);
        if function(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// The natural logarithm of n!, by Stirling's series from 256 on.
fn ln_factorial(n: u64) -> f64 {
    if n < 256 {
        (2..=n).map(|factor| (factor as f64).ln()).sum()
    } else {
        let n = n as f64;
        n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + 1.0 / (12.0 * n)
    }
}

/// The probability of at most `count` events where `mean` are expected.
fn poisson_at_most(count: u64, mean: f64) -> f64 {
    let term = |n: u64| (n as f64 * mean.ln() - mean - ln_factorial(n)).exp();
    (0..=count).map(term).sum::<f64>().min(1.0)
}

/// From this count on the cube root of a chi-squared number is nearly normal (Wilson and Hilferty, 1931), to 5 digits.
const LARGE: u64 = 1000;

/// The 95% quantile of the normal distribution.
const QUANTILE: f64 = 1.644_853_6;

/// The highest mean at which so few events still have a probability of 5%: 3.0 for none (the rule of three).
pub fn poisson_upper(count: u64) -> f64 {
    if count >= LARGE {
        let more = count as f64 + 1.0;
        return more * (1.0 - 1.0 / (9.0 * more) + QUANTILE / (3.0 * more.sqrt())).powi(3);
    }
    let high = 10.0 + 2.0 * count as f64 + 10.0 * (count as f64).sqrt();
    root(1e-12, high, |mean| (1.0 - CONFIDENCE) - poisson_at_most(count, mean))
}

/// The lowest share of successes at which so many of so many trials still have a probability of 5%.
pub fn share_lower(successes: u64, trials: u64) -> f64 {
    if successes == 0 || trials == 0 {
        return 0.0;
    }
    // At least this many successes is at most so many failures.
    let at_least = |share: f64| {
        let failures = trials - successes;
        let term = |n: u64| {
            let ways = ln_factorial(trials) - ln_factorial(n) - ln_factorial(trials - n);
            let misses = if n == 0 { 0.0 } else { n as f64 * (1.0 - share).ln() };
            (ways + misses + (trials - n) as f64 * share.ln()).exp()
        };
        (0..=failures).map(term).sum::<f64>()
    };
    root(1e-9, 1.0 - 1e-12, |share| at_least(share) - (1.0 - CONFIDENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        // Means by the quantiles of the chi-squared distribution, half of those at 95%.
        for (count, upper) in
            [(0, 2.996), (1, 4.744), (2, 6.296), (5, 10.513), (10, 16.962), (100, 118.08)]
        {
            let found = poisson_upper(count);
            assert!((found - upper).abs() < 0.02, "{count}: {found}");
        }
        for (successes, trials, lower) in [
            (10, 10, 0.7411),
            (9, 10, 0.6058),
            (100, 100, 0.9705),
            (990, 1000, 0.9831),
            (0, 10, 0.0),
        ] {
            let found = share_lower(successes, trials);
            assert!((found - lower).abs() < 3e-4, "{successes} of {trials}: {found}");
        }
    }

    #[test]
    fn large_counts_have_bounds_too() {
        let upper = poisson_upper(1_000_000);
        assert!((upper - 1_001_646.0).abs() < 10.0, "{upper}");
        assert!(share_lower(100_000, 100_000) > 0.999_9);
    }
}
