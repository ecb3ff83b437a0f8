//! What the messages carry: a number, so that the run can be checked, and ballast.

/// A message that carries a number.
pub trait Payload: Default + Clone + Send + Sync + Unpin + 'static {
    /// Its name in tables.
    const NAME: &'static str;

    /// A message that carries `number`, all of it written.
    fn new(number: usize) -> Self;

    /// The same, written where it lies.
    fn fill(&mut self, number: usize) {
        *self = Self::new(number);
    }

    /// The number; looks at the first and the last word of the message.
    fn number(&self) -> usize;
}

impl Payload for usize {
    const NAME: &'static str = "usize";

    #[inline]
    fn new(number: usize) -> Self {
        number
    }

    #[inline]
    fn number(&self) -> usize {
        *self
    }
}

/// `WORDS` words of eight bytes.
#[derive(Clone, Debug)]
pub struct Words<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for Words<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

/// Sixteen bytes.
pub type B16 = Words<2>;
/// A cache line.
pub type B64 = Words<8>;
/// 256 bytes.
pub type B256 = Words<32>;
/// 1 KiB.
pub type KiB = Words<128>;
/// A page.
pub type KiB4 = Words<512>;

impl<const WORDS: usize> Payload for Words<WORDS> {
    const NAME: &'static str = match WORDS {
        2 => "16 B",
        8 => "64 B",
        32 => "256 B",
        128 => "1 KiB",
        512 => "4 KiB",
        _ => "words",
    };

    #[inline]
    fn new(number: usize) -> Self {
        Self([number as u64; WORDS])
    }

    #[inline]
    fn fill(&mut self, number: usize) {
        self.0.fill(number as u64);
    }

    #[inline]
    fn number(&self) -> usize {
        // Whoever tears a message gets a number that no check expects.
        (if self.0[0] == self.0[WORDS - 1] {
            self.0[0]
        } else {
            u64::MAX
        }) as usize
    }
}

/// 1 KiB, boxed: one pointer moves, and every message is allocated and freed.
#[derive(Clone, Debug, Default)]
pub struct Boxed(Option<Box<KiB>>);

impl Payload for Boxed {
    const NAME: &'static str = "Box 1 KiB";

    #[inline]
    fn new(number: usize) -> Self {
        Self(Some(Box::new(KiB::new(number))))
    }

    #[inline]
    fn number(&self) -> usize {
        self.0.as_ref().map_or(usize::MAX, |words| words.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back() {
        fn check<T: Payload>() {
            assert_eq!(T::new(77).number(), 77, "{}", T::NAME);
            let mut message = T::default();
            message.fill(78);
            assert_eq!(message.number(), 78, "{}", T::NAME);
        }
        check::<usize>();
        check::<B16>();
        check::<KiB4>();
        check::<Boxed>();
    }

    #[test]
    fn a_torn_message_is_noticed() {
        let mut message = KiB::new(3);
        message.0[127] = 4;
        assert_ne!(message.number(), 3);
    }
}
