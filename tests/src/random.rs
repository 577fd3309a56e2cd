//! Numbers that look random and can be had again by their seed.

/// A generator (splitmix64).
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed in `LEASE_TEST_SEED`, or `default`.
    #[must_use]
    pub fn seed(default: u64) -> u64 {
        let given = std::env::var("LEASE_TEST_SEED").ok();
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// One of `choices`.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(choices.len() as u64)).unwrap_or_default();
        choices
            .get(at)
            .unwrap_or_else(|| panic!("harness: nothing to choose from"))
    }

    /// True in so many of a hundred cases.
    pub const fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}
