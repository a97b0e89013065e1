//! What no rule can do better: how soon a rate of errors can be told from a lower one, by how few false alarms.

/// The mean time in which the best possible test finds that errors occur at the rate `fault` instead of `allowed`,
/// with one false alarm in `between_alarms` on average; rates and times in the same unit.
///
/// For a change between two known Poisson rates no test with as few false alarms is faster than CUSUM (Lorden, 1971;
/// Moustakides, 1986). Both means are Wald's approximations, which leave out by how much the last error exceeds the
/// threshold.
pub fn shortest_mean(allowed: f64, fault: f64, between_alarms: f64) -> f64 {
    let wanted = between_alarms * divergence(allowed, fault);
    let mut threshold = wanted.ln_1p();
    for _ in 0..20 {
        threshold = (wanted + threshold + 1.0).ln();
    }
    (threshold + (-threshold).exp() - 1.0) / divergence(fault, allowed)
}

/// The least probability of a false alarm at the rate `allowed` in some time, for any rule that finds this share of
/// faults at the rate `fault` in it: what is decided diverges no more than what was counted.
pub fn least_false_alarms(allowed: f64, fault: f64, time: f64, found: f64) -> f64 {
    let entropy = -found * found.ln() - (1.0 - found) * (1.0 - found).ln();
    (-(divergence(fault, allowed) * time + entropy) / found).exp()
}

/// By how much the counts at one Poisson rate diverge from those at another, per unit of time, in nats (Kullback and
/// Leibler, 1951).
fn divergence(of: f64, from: f64) -> f64 {
    of * (of / from).ln() - (of - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::exponential;
    use ib_sim::rng::Rng;

    /// The mean time until CUSUM reaches a threshold, where errors have this rate.
    fn mean(rate: f64, [allowed, fault]: [f64; 2], threshold: f64, rng: &mut Rng) -> f64 {
        const RUNS: u32 = 2000;
        let mut time = 0.0;
        for _ in 0..RUNS {
            let mut sum = 0.0_f64;
            while sum < threshold {
                let wait = exponential(rng) / rate;
                time += wait;
                sum = (sum - wait * (fault - allowed)).max(0.0) + (fault / allowed).ln();
            }
        }
        time / f64::from(RUNS)
    }

    #[test]
    fn simulated_test_needs_the_time_that_is_computed() {
        let (rates, between) = ([0.9, 2.0], 3000.0);
        let mut rng = Rng::new(5);
        // The threshold with so many false alarms, found by trying.
        let (mut low, mut high) = (2.0, 12.0);
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            let is_low = mean(rates[0], rates, middle, &mut rng) < between;
            *(if is_low { &mut low } else { &mut high }) = middle;
        }
        let needed = mean(rates[1], rates, low, &mut rng);
        let computed = shortest_mean(rates[0], rates[1], between);
        assert!((0.9..1.1).contains(&(needed / computed)), "{needed} and {computed}");
    }

    #[test]
    fn few_errors_cannot_be_told_apart() {
        // At NDR 2.4 errors in 10 minutes are allowed.
        let [at_once, later] = [1.0, 30.0].map(|time| least_false_alarms(2.16, 4.8, time, 0.99));
        assert!((0.2..0.4).contains(&at_once), "{at_once}");
        assert!(later < 1e-12, "{later}");
        assert!((least_false_alarms(2.0, 2.0, 1.0, 0.99) - 0.945).abs() < 1e-2);
    }
}
