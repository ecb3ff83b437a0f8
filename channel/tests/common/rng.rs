//! A small seeded generator (xorshift64*), so that a failure can be replayed.

#[derive(Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // One round of splitmix spreads small seeds over all bits; zero would stay zero.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize) % n
    }

    /// True once in `n` on average.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A short busy pause of random length, to shift threads against each other.
    pub(crate) fn jitter(&mut self) {
        for _ in 0..self.below(40) {
            std::hint::spin_loop();
        }
        if self.one_in(16) {
            std::thread::yield_now();
        }
    }
}
