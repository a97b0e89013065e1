//! Chance that comes out the same each time: the one source of randomness of a simulation.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) and no crate: a seed written into a scenario
//! today must mean the same in years, and no crate promises that of its generators.

/// What the state moves on by: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// From this mean on a Poisson number is drawn from the normal distribution: counting one by one
/// takes as many draws as the number is large.
const MANY: f64 = 64.0;

/// A stream of random numbers, all of them given by its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    state: u64,
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance { state: seed }
    }

    /// The stream of a seed and a place, such as a port's id and the number of a second: whoever
    /// asks at the same place finds the same, however much was drawn elsewhere in between.
    pub fn at(seed: u64, place: &[u64]) -> Chance {
        // The length goes in first, or [] and [0] would be near each other.
        let start = mixed(seed ^ mixed(place.len() as u64));
        let state = place.iter().fold(start, |state, &key| {
            mixed(state.wrapping_add(STEP) ^ mixed(key.wrapping_add(STEP)))
        });
        Chance { state }
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "a stream that never ends is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mixed(self.state)
    }

    /// A number from 0 up to, but not, 1.
    pub fn share(&mut self) -> f64 {
        // 53 bits are what a f64 holds exactly.
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number below `n`, each as likely as any other; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a product with n lies below n; the few low halves that would make some
        // numbers likelier are drawn again (Lemire, "Fast random integer generation in an
        // interval", 2019).
        let unfair = n.wrapping_neg().checked_rem(n).unwrap_or(0);
        loop {
            let product = u128::from(self.next()) * u128::from(n);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// How often something happens that happens `mean` times on average and each time by itself:
    /// what a port counts in a second. 0 for a mean that is none.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        if mean.is_nan() || mean <= 0.0 {
            0
        } else if mean < MANY {
            // Knuth: how many numbers can be multiplied before e^-mean is passed.
            let least = (-mean).exp();
            let mut product = self.share();
            let mut count = 0;
            while product > least {
                product *= self.share();
                count += 1;
            }
            count
        } else {
            // Normal, with the first term of the skew (Cornish and Fisher), which is what one
            // would still see at this size. The cast holds at 0, and the mean where it fits.
            let mean = mean.min(1e19);
            let normal = self.normal();
            #[expect(clippy::cast_sign_loss, reason = "what is below 0 is 0")]
            let count = (mean + mean.sqrt() * normal + (normal * normal - 1.0) / 6.0 + 0.5) as u64;
            count
        }
    }

    /// From the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        // 1 - share is never 0, of which there is no logarithm.
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// Brings things into a random order in which none stays where it was, and which comes back
    /// to where it began only after all have had their turn (Sattolo).
    pub fn cycle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first numbers of splitmix64.c for the seed 1234567.
        let mut chance = Chance::new(1_234_567);
        assert_eq!(
            [chance.next(), chance.next(), chance.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_place_has_its_own_stream_and_keeps_it() {
        assert_eq!(Chance::at(7, &[1, 2]), Chance::at(7, &[1, 2]));
        let places: [(u64, &[u64]); 9] = [
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
            places.iter().map(|(seed, place)| Chance::at(*seed, place).next()).collect();
        assert_eq!(first.len(), places.len());
    }

    #[test]
    fn neighbouring_places_have_nothing_in_common() {
        let mean = (0..10_000).map(|key| Chance::at(1, &[key]).share()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn shares_lie_in_their_range_and_numbers_below_their_bound() {
        let mut chance = Chance::new(3);
        let mut counts = [0; 6];
        for _ in 0..60_000 {
            assert!((0.0..1.0).contains(&chance.share()));
            counts[chance.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!((chance.below(0), chance.below(1)), (0, 0));
        assert!(chance.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn a_poisson_number_has_its_mean_and_as_much_variance() {
        for mean in [0.01, 0.7, 5.0, 63.0, 65.0, 1e4] {
            let mut chance = Chance::new(11);
            let drawn: Vec<f64> = (0..40_000).map(|_| chance.poisson(mean) as f64).collect();
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
    fn a_mean_that_is_none_is_nothing_and_a_huge_one_a_lot() {
        let mut chance = Chance::new(1);
        for mean in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(chance.poisson(mean), 0, "{mean}");
        }
        for mean in [1e30, f64::INFINITY] {
            assert!(chance.poisson(mean) > u64::MAX / 2, "{mean}");
        }
    }

    #[test]
    fn a_cycle_leaves_nothing_in_its_place() {
        for count in 2..40usize {
            let mut things: Vec<usize> = (0..count).collect();
            Chance::new(count as u64).cycle(&mut things);
            let mut place = 0;
            for turn in 1..=count {
                place = things[place];
                assert_eq!(place == 0, turn == count, "{things:?}");
            }
        }
        Chance::new(1).cycle::<u8>(&mut []);
    }
}
