//! What a word is, and how often each occurs.

use std::cmp::Ordering;
use std::collections::HashMap;

/// A word, in lower case.
pub(crate) type Word = Box<[u8]>;

/// The end of the last part of `text` that surely ends no word in the middle: behind its last byte
/// that is no letter. `None` if it has only letters.
pub(crate) fn last_boundary(text: &[u8]) -> Option<usize> {
    let last = text.iter().rposition(|byte| !byte.is_ascii_alphabetic())?;
    Some(last + 1)
}

/// How often each word occurs.
///
/// A word is a run of ASCII letters of any length. All other bytes stand between words, so any
/// input has a meaning, in whatever encoding it is.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    words: HashMap<Word, u64>,
    total: u64,
}

impl Counts {
    /// Counts the words of `text`, which is changed to lower case on the way.
    pub(crate) fn add_text(&mut self, text: &mut [u8]) {
        text.make_ascii_lowercase();
        for word in text.split(|byte| !byte.is_ascii_lowercase()) {
            if word.is_empty() {
                continue;
            }
            self.total += 1;
            // Most words are old ones: do not pay for a key before it is needed.
            match self.words.get_mut(word) {
                Some(count) => *count += 1,
                None => {
                    self.words.insert(word.into(), 1);
                }
            }
        }
    }

    /// Adds all counts of `other`.
    pub(crate) fn merge(&mut self, other: Counts) {
        self.total += other.total;
        if self.words.is_empty() {
            self.words = other.words;
            return;
        }
        for (word, count) in other.words {
            *self.words.entry(word).or_default() += count;
        }
    }

    /// How many words there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How many different words there are.
    pub(crate) fn distinct(&self) -> usize {
        self.words.len()
    }

    /// The `n` most frequent words; those with equal counts in the order of the alphabet.
    pub(crate) fn top(&self, n: usize) -> Vec<(&[u8], u64)> {
        let mut words = self.unsorted();
        if n < words.len() {
            words.select_nth_unstable_by(n, by_frequency);
            words.truncate(n);
        }
        words.sort_unstable_by(by_frequency);
        words
    }

    /// All words in the order of the alphabet.
    pub(crate) fn all(&self) -> Vec<(&[u8], u64)> {
        let mut words = self.unsorted();
        words.sort_unstable();
        words
    }

    fn unsorted(&self) -> Vec<(&[u8], u64)> {
        self.words
            .iter()
            .map(|(word, count)| (&**word, *count))
            .collect()
    }
}

/// Frequent words first; those with equal counts in the order of the alphabet.
fn by_frequency(a: &(&[u8], u64), b: &(&[u8], u64)) -> Ordering {
    b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &[u8]) -> Counts {
        let mut counts = Counts::default();
        counts.add_text(&mut text.to_vec());
        counts
    }

    #[test]
    fn words_are_runs_of_letters_in_any_case() {
        let counts = counts(b"The cat's hat: the CAT-2-cat.");
        let expected: [(&[u8], u64); 4] = [(b"cat", 3), (b"hat", 1), (b"s", 1), (b"the", 2)];
        assert_eq!(counts.all(), expected);
        assert_eq!((counts.total(), counts.distinct()), (7, 4));
    }

    #[test]
    fn bytes_that_are_not_ascii_stand_between_words() {
        let counts = counts("na\u{ef}ve \u{df}x\u{0}y".as_bytes());
        let expected: [(&[u8], u64); 4] = [(b"na", 1), (b"ve", 1), (b"x", 1), (b"y", 1)];
        assert_eq!(counts.all(), expected);
    }

    #[test]
    fn text_without_letters_has_no_words() {
        for text in ["", " ", "1 2 3\n", "\u{0}\u{ff}"] {
            assert_eq!(counts(text.as_bytes()).total(), 0);
        }
    }

    #[test]
    fn merging_adds_up() {
        let mut sum = Counts::default();
        sum.merge(counts(b"a b"));
        sum.merge(counts(b"b c c"));
        let expected: [(&[u8], u64); 3] = [(b"a", 1), (b"b", 2), (b"c", 2)];
        assert_eq!(sum.all(), expected);
        assert_eq!(sum.total(), 5);
    }

    #[test]
    fn the_top_is_the_beginning_of_the_whole_order() {
        let counts = counts(b"d d c c b a a a");
        let expected: [(&[u8], u64); 4] = [(b"a", 3), (b"c", 2), (b"d", 2), (b"b", 1)];
        for n in 0..=5 {
            assert_eq!(counts.top(n), expected[..n.min(4)], "{n}");
        }
    }

    #[test]
    fn the_last_boundary_cuts_no_word() {
        assert_eq!(last_boundary(b""), None);
        assert_eq!(last_boundary(b"word"), None);
        assert_eq!(last_boundary(b"one two"), Some(4));
        assert_eq!(last_boundary(b"one "), Some(4));
        assert_eq!(last_boundary(b" one"), Some(1));
    }
}
