//! The random numbers of a simulation: the same for the same seed.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) instead of a crate: a seed in a scenario has to mean
//! the same in years, and no crate promises that of its generators.

/// The increment of the state: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// From this mean on a Poisson number is drawn from the normal distribution. Counting takes as many
/// draws as the number is large.
const LARGE_MEAN: f64 = 64.0;

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The stream of a seed and a key, such as a port's id and the number of a second. It does not
    /// depend on what is drawn from other streams.
    pub fn keyed(seed: u64, key: &[u64]) -> Rng {
        // The length goes in first, or [] and [0] would have related streams.
        let start = mix(seed ^ mix(key.len() as u64));
        let state = key.iter().fold(start, |state, &part| {
            mix(state.wrapping_add(STEP) ^ mix(part.wrapping_add(STEP)))
        });
        Rng { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number from 0 to 1, without 1.
    pub fn next_f64(&mut self) -> f64 {
        // An f64 has 53 bits.
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number below `n`, all with the same probability; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a product with n is below n. The few low halves that would make some numbers more
        // probable are drawn again (Lemire, "Fast random integer generation in an interval", 2019).
        let biased = n.wrapping_neg().checked_rem(n).unwrap_or(0);
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= biased {
                return (product >> 64) as u64;
            }
        }
    }

    /// A Poisson-distributed number: how often independent events occur that occur `mean` times on
    /// average. 0 for a mean that is not positive.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        if mean.is_nan() || mean <= 0.0 {
            0
        } else if mean < LARGE_MEAN {
            // Knuth: the number of factors until the product is below e^-mean.
            let least = (-mean).exp();
            let mut product = self.next_f64();
            let mut count = 0;
            while product > least {
                product *= self.next_f64();
                count += 1;
            }
            count
        } else {
            // Normal, with the first term of the skew (Cornish and Fisher), which still shows at
            // this size. The cast saturates at 0; the limit of the mean keeps it in range.
            let mean = mean.min(1e19);
            let normal = self.normal();
            #[expect(clippy::cast_sign_loss, reason = "the cast saturates at 0")]
            let count = (mean + mean.sqrt() * normal + (normal * normal - 1.0) / 6.0 + 0.5) as u64;
            count
        }
    }

    /// From the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        // 1 - x is never 0, which has no logarithm.
        let radius = (-2.0 * (1.0 - self.next_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next_f64()).cos()
    }

    /// Shuffles items by a random permutation that is a single cycle: none keeps its place (Sattolo).
    pub fn shuffle_cyclic<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn stream_matches_the_published_splitmix64() {
        // The first numbers of splitmix64.c for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(
            [rng.next_u64(), rng.next_u64(), rng.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn each_key_has_a_stable_stream() {
        assert_eq!(Rng::keyed(7, &[1, 2]), Rng::keyed(7, &[1, 2]));
        let keys: [(u64, &[u64]); 9] = [
            (7, &[]),
            (7, &[0]),
            (7, &[0, 0]),
            (7, &[1, 2]),
            (7, &[2, 1]),
            (8, &[1, 2]),
            (8, &[]),
            (0, &[]),
            (0, &[0]),
        ];
        let first: HashSet<u64> =
            keys.iter().map(|(seed, key)| Rng::keyed(*seed, key).next_u64()).collect();
        assert_eq!(first.len(), keys.len());
    }

    #[test]
    fn streams_of_neighboring_keys_are_independent() {
        let mean = (0..10_000).map(|key| Rng::keyed(1, &[key]).next_f64()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn numbers_are_in_their_ranges() {
        let mut rng = Rng::new(3);
        let mut counts = [0; 6];
        for _ in 0..60_000 {
            assert!((0.0..1.0).contains(&rng.next_f64()));
            counts[rng.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert!(rng.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn poisson_variance_equals_mean() {
        for mean in [0.01, 0.7, 5.0, 63.0, 65.0, 1e4] {
            let mut rng = Rng::new(11);
            let drawn: Vec<f64> = (0..40_000).map(|_| rng.poisson(mean) as f64).collect();
            let found = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance =
                drawn.iter().map(|value| (value - found).powi(2)).sum::<f64>() / drawn.len() as f64;
            // Five standard errors.
            let allowed = 5.0 * (mean / drawn.len() as f64).sqrt();
            assert!((found - mean).abs() < allowed, "mean {mean}: {found}");
            assert!((variance / mean - 1.0).abs() < 0.15, "variance at {mean}: {variance}");
        }
    }

    #[test]
    fn poisson_handles_extreme_means() {
        let mut rng = Rng::new(1);
        for mean in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(rng.poisson(mean), 0, "{mean}");
        }
        for mean in [1e30, f64::INFINITY] {
            assert!(rng.poisson(mean) > u64::MAX / 2, "{mean}");
        }
    }

    #[test]
    fn cyclic_shuffle_is_a_single_cycle() {
        for count in 2..40usize {
            let mut items: Vec<usize> = (0..count).collect();
            Rng::new(count as u64).shuffle_cyclic(&mut items);
            let mut place = 0;
            for turn in 1..=count {
                place = items[place];
                assert_eq!(place == 0, turn == count, "{items:?}");
            }
        }
        Rng::new(1).shuffle_cyclic::<u8>(&mut []);
    }
}
